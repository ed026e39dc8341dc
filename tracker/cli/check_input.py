"""What `check` is told: by options, by the configuration, by files of other clusters' ranges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

from tracker import values
from tracker.capture.fields import as_text, read_bytes
from tracker.clusternet.proposal import usual
from tracker.clusternet.ranges import IPNetwork, Range, family_of
from tracker.errors import InputError, UsageError
from tracker.model import IPV4, IPV6
from tracker.printable import quoted
from tracker.session import NODE

if TYPE_CHECKING:
    from tracker.cli.options import Arguments, Option
    from tracker.config import Config


NETWORKS = "networks such as 10.0.0.0/8"
PEERS = "IP addresses of other hosts, or NAME=ADDRESS for the selection NAME"
NAT64 = "IPv6 prefixes of /32, /40, /48, /56, /64 or /96 (RFC 6052)"


class Named(NamedTuple):
    """Values, and the option or the key of the configuration that they come from."""

    source: str
    networks: tuple[IPNetwork, ...] = ()


class Request(NamedTuple):
    """What is to be looked at, by the command line and the configuration."""

    nodes: Named
    others: list[Range]
    peers: dict[str, tuple[str, ...]]
    """By selection, NODE = the node's own."""
    ipv6: str
    masks: dict[str, int]
    free: int
    """Prefix length; 0 = nothing."""
    within: tuple[IPNetwork, ...]
    most: int
    """How many of them."""
    nat64: Named
    dns64: bool
    pref64: int
    """Seconds; 0 = do not wait."""


def network(value: str) -> IPNetwork:
    """A network as everywhere in the configuration. Raises ValueError."""
    return ip_network(values.network(value))


def networks(texts: Iterable[str]) -> tuple[IPNetwork, ...]:
    """Networks of the configuration."""
    return tuple(map(ip_network, texts))


def given(
    arguments: Arguments, option: Option, parse: Callable[[object], str], allowed: str
) -> tuple[str, ...]:
    """The values of an option, read as the same key of the configuration is. Raises UsageError."""
    found = []
    for value in arguments.values(option.name):
        try:
            found.append(parse(value))
        except ValueError as error:
            raise wrong(option, str(error) or quoted(value), allowed) from None
    return tuple(dict.fromkeys(found))


def named(
    arguments: Arguments,
    option: Option,
    parse: Callable[[object], str],
    allowed: str,
    configured: tuple[str, Iterable[str]],
) -> Named:
    """What an option says, else what a key does. Raises UsageError."""
    if arguments.flag(option.name):
        return Named(option.name, networks(given(arguments, option, parse, allowed)))
    key, texts = configured
    return Named(key, networks(texts))


def peers(arguments: Arguments, option: Option, config: Config) -> dict[str, tuple[str, ...]]:
    """What each selection is to be the source towards: what its mode asks the way to, too.

    Raises UsageError.
    """
    asked = config.check.peers
    if arguments.flag(option.name):
        asked = given(arguments, option, values.peer, PEERS)
    found = {NODE: [*config.select.route_to]}
    found |= {name: [*select.route_to] for name, select in config.selections.items()}
    for peer in asked:
        name, _, address = peer.rpartition("=")
        if name not in found:
            known = ", ".join(config.selections) or "none is configured"
            raise wrong(
                option, f'there is no selection "{quoted(name)}"', f"NAME=ADDRESS of {known}"
            )
        found[name].append(address)
    return {name: tuple(dict.fromkeys(each)) for name, each in found.items()}


def node_masks(arguments: Arguments, option: Option, config: Config) -> dict[str, int]:
    """Prefix lengths by family: up to 32 is IPv4. Raises UsageError."""
    lengths = config.check.node_mask
    if arguments.flag(option.name):
        lengths = tuple(prefix_length(v, option) for v in arguments.values(option.name))
        try:
            values.node_masks(list(lengths))
        except ValueError as error:
            raise wrong(option, error, "one for each family") from None
    return {IPV4 if length <= 32 else IPV6: length for length in lengths}


def prefix_length(value: str, option: Option) -> int:
    """ "/24" or "24". Raises UsageError."""
    digits = value.removeprefix("/")
    if not _is_number(digits, 128):
        raise wrong(option, quoted(value), "a prefix length such as /24 or /64")
    return int(digits)


def whole_number(value: str, option: Option, most: int) -> int:
    """A number from 1. Raises UsageError."""
    if not _is_number(value, most):
        raise wrong(option, quoted(value), f"1 to {most}")
    return int(value)


def _is_number(text: str, most: int) -> bool:
    """Python refuses to read a number of thousands of digits."""
    fits = len(text) <= len(str(most))
    return fits and text.isascii() and text.isdigit() and 1 <= int(text) <= most


def others(arguments: Arguments, option: Option, config: Config) -> list[Range]:
    """Ranges of other clusters: each value is a network or a file of them.

    Raises UsageError, InputError.
    """
    if not arguments.flag(option.name):
        by_name = config.networks.others.items()
        return [
            Range("other", network, f"cluster {name}")
            for name, texts in by_name
            for network in networks(texts)
        ]
    found = []
    for value in arguments.values(option.name):
        try:
            found.append(Range("other", network(value), "another cluster"))
        except ValueError as error:
            if value != "-" and not os.path.exists(value):
                line = f"{error}, and there is no such file"
                raise wrong(option, line, "networks, and files of them") from None
            found += _file(value)
    return found


def _file(path: str) -> list[Range]:
    """Lines of networks, after the name of their cluster and a colon if there is one; "#" begins a
    comment.
    """
    found = []
    for number, line in enumerate(as_text(read_bytes(path)).splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        try:
            found += _line(words, path)
        except ValueError as error:
            raise InputError(
                f"{path}: line {number}: {error}; allowed: networks, after the name of their "
                "cluster and a colon if there is one"
            ) from None
    return found


def _line(words: list[str], path: str) -> list[Range]:
    # Whatever else is no network is a mistake, such as an address without its length.
    if not words or not words[0].endswith(":"):
        return [Range("other", network(word), path) for word in words]
    name, *texts = words
    if not texts:
        raise ValueError(f"{values.shown(name)} has no networks")
    return [Range("other", network(text), f"cluster {name[:-1]}") for text in texts]


def free(arguments: Arguments, option: Option, within: Option) -> tuple[int, tuple[IPNetwork, ...]]:
    """The wanted prefix length, 0 = none is, and where to look. Raises UsageError."""
    value = arguments.value(option.name)
    if not value:
        return 0, ()
    length = prefix_length(value, option)
    outers = networks(given(arguments, within, values.network, NETWORKS))
    for outer in outers:
        if not outer.prefixlen <= length <= outer.max_prefixlen:
            what = f"{outer}: no /{length} of {family_of(outer)} lies in it"
            raise wrong(within, what, "larger networks")
    if not outers and not any(outer.prefixlen <= length for outer in usual(length, 0)):
        raise wrong(
            option,
            f"/{length}: nothing of that size is searched without {within.name}",
            "/8 to /32 for private networks, /48 to /128 for unique local ones, or with "
            f"{within.name} any",
        )
    return length, outers


def wrong(option: Option, what: object, allowed: str) -> UsageError:
    """For raising: what is wrong with an option, and what is allowed."""
    return UsageError(f"check: {option.name}: {what}; allowed: {allowed}")
