"""What `check` is given: options that hold networks, files of other clusters' ranges."""

from __future__ import annotations

import os
from ipaddress import IPv6Network, ip_network
from typing import TYPE_CHECKING, NamedTuple

from tracker.address import network_text, parse, parse_network, text
from tracker.capture.fields import as_text, read_bytes
from tracker.clusternet.nat64 import LENGTHS
from tracker.clusternet.ranges import IPNetwork, Range, family_of
from tracker.errors import InputError, UsageError
from tracker.printable import printable

if TYPE_CHECKING:
    from tracker.cli.options import Arguments, Option


class Request(NamedTuple):
    """What the command line asks for."""

    nodes: tuple[IPNetwork, ...]
    others: list[Range]
    peers: tuple[str, ...]
    ipv6: str
    masks: dict[str, int]
    free: int
    """Prefix length; 0 = nothing."""
    within: tuple[IPNetwork, ...]
    most: int
    """How many of them."""
    nat64: tuple[IPv6Network, ...]
    dns64: bool
    pref64: int
    """Seconds; 0 = do not wait."""


def network(value: str) -> IPNetwork:
    """A network as everywhere in the configuration. Raises ValueError."""
    return ip_network(network_text(parse_network(value)))


def networks(arguments: Arguments, option: Option) -> tuple[IPNetwork, ...]:
    """The networks of an option. Raises UsageError."""
    found = []
    for value in arguments.values(option.name):
        try:
            found.append(network(value))
        except ValueError as error:
            raise _wrong(option, error, "networks such as 10.0.0.0/8") from None
    return tuple(found)


def addresses(arguments: Arguments, option: Option) -> tuple[str, ...]:
    """The addresses of an option, in canonical text. Raises UsageError."""
    found = []
    for value in arguments.values(option.name):
        try:
            found.append(text(parse(value)))
        except ValueError as error:
            raise _wrong(option, error, "IP addresses") from None
    return tuple(found)


def node_masks(arguments: Arguments, option: Option) -> dict[str, int]:
    """Prefix lengths by family: up to 32 is IPv4. Raises UsageError."""
    found = {}
    for value in arguments.values(option.name):
        length = prefix_length(value, option)
        found["ipv4" if length <= 32 else "ipv6"] = length
    return found


def prefix_length(value: str, option: Option) -> int:
    """ "/24" or "24". Raises UsageError."""
    digits = value.removeprefix("/")
    if not digits.isascii() or not digits.isdigit() or not 1 <= int(digits) <= 128:
        raise _wrong(option, value, "a prefix length such as /24 or /64")
    return int(digits)


def whole_number(value: str, option: Option, most: int) -> int:
    """A number from 1. Raises UsageError."""
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= most:
        raise _wrong(option, value, f"1 to {most}")
    return int(value)


def nat64(arguments: Arguments, option: Option) -> tuple[IPv6Network, ...]:
    """Prefixes of NAT64. Raises UsageError."""
    found = []
    for prefix in networks(arguments, option):
        if not isinstance(prefix, IPv6Network) or prefix.prefixlen not in LENGTHS:
            lengths = ", ".join(f"/{length}" for length in LENGTHS)
            raise _wrong(option, str(prefix), f"IPv6 prefixes of {lengths} (RFC 6052)")
        found.append(prefix)
    return tuple(found)


def others(arguments: Arguments, option: Option) -> list[Range]:
    """Ranges of other clusters: each value is a network or a file of them.

    Raises UsageError, InputError.
    """
    found = []
    for value in arguments.values(option.name):
        try:
            found.append(Range("other", network(value), "another cluster"))
        except ValueError as error:
            if value != "-" and not os.path.exists(value):
                line = f"{error}, and there is no such file"
                raise _wrong(option, line, "networks, and files of them") from None
            found += _file(value)
    return found


def _file(path: str) -> list[Range]:
    """Lines of networks, after the name of their cluster if there is one; "#" begins a comment."""
    found = []
    for number, line in enumerate(as_text(read_bytes(path)).splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        name = words.pop(0).rstrip(":") if words and "/" not in words[0] else ""
        source = f"cluster {name}" if name else path
        for word in words:
            try:
                found.append(Range("other", network(word), source))
            except ValueError as error:
                raise InputError(
                    f"{path}: line {number}: {printable(str(error))}; allowed: networks, after "
                    "the name of their cluster if there is one"
                ) from None
    return found


def within(arguments: Arguments, option: Option, length: int) -> tuple[IPNetwork, ...]:
    """Networks in which to look for free ranges of a prefix length. Raises UsageError."""
    found = networks(arguments, option)
    for outer in found:
        if not outer.prefixlen <= length <= outer.max_prefixlen:
            raise _wrong(
                option, f"{outer}: no /{length} of {family_of(outer)} lies in it", "larger networks"
            )
    return found


def _wrong(option: Option, what: object, allowed: str) -> UsageError:
    return UsageError(f"check: {option.name}: {what}; allowed: {allowed}")
