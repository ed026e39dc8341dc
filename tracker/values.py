"""Values as people write them in a configuration: durations, sizes, addresses, names.

Each parser takes what TOML gave and returns the value, or raises ValueError; the message, if
there is one, says more than the list of what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from tracker.address import contains, network_text, parse, parse_network, text
from tracker.config import Listen
from tracker.model import NANOSECONDS
from tracker.policy.compile import TABLE_LOCAL
from tracker.policy.patterns import is_literal, is_pattern
from tracker.printable import quoted

T = TypeVar("T")

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)", re.ASCII)
_SIZE_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"(\d{1,7})(KiB|MiB|GiB)", re.ASCII)
_DURATION_MOST = 366 * 24 * 3600 * NANOSECONDS
_DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*", re.ASCII)
_HOST_NAME_MOST = 253
_LABEL = re.compile(_DNS_LABEL, re.ASCII)
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,63}", re.ASCII)
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,8}|\d{1,10}", re.ASCII)

DURATION = 'a duration such as "500ms", "10s" or "2m"'
RING = 'a power of two of bytes, "4KiB" to "1GiB"'
RING_LEAST = 4 << 10
RING_MOST = 1 << 30
ADDRESSES = 'a list of IP addresses such as ["192.0.2.10", "2001:db8::10"]'
NETWORKS = 'a list of networks such as ["10.0.0.0/8", "fd00::/8"]'
HOST_NAME = 'an RFC 1123 subdomain such as "n1" or "n1.example", or "" for the kernel\'s name'
PEERS = "a list of IP addresses, or NAME=ADDRESS for the selection NAME"
NAT64 = "a list of IPv6 prefixes of /32, /40, /48, /56, /64 or /96 (RFC 6052)"
OTHERS = 'lists of networks by the name of a cluster such as {berlin = ["10.0.0.0/16"]}'
NODE_MASK = "a list of prefix lengths such as [24, 64], one for each family; up to 32 it is IPv4"

_NOT_UNICAST = tuple(
    (parse_network(block), what)
    for block, what in (
        ("127.0.0.0/8", "a loopback address"),
        ("::1/128", "the loopback address"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("fe80::/10", "a link-local address, and no link is named"),
    )
)

INTERFACE_MOST = 15
"""Bytes of an interface's name (IFNAMSIZ without its end)."""

TABLE_FILES = ("/etc/iproute2/rt_tables", "/usr/share/iproute2/rt_tables")
_TABLES = {"main": 254, "default": 253}


def duration(value: object) -> int:
    """Nanoseconds of "1s", "500ms", "1m30s"; at most a year."""
    text_ = _string(value)
    total = 0.0
    end = 0
    while match := _DURATION.match(text_, end):
        total += float(match[1]) * _UNITS[match[2]]
        end = match.end()
    if end != len(text_) or not text_ or total > _DURATION_MOST:
        raise ValueError
    return round(total)


def duration_or_none(value: object) -> int | None:
    """As `duration`; "never" is None."""
    return None if value == "never" else duration(value)


def duration_or_zero(value: object) -> int:
    """As `duration`, more than nothing; "never" is 0."""
    if value == "never":
        return 0
    return duration(value) or _refuse()


def ring_size(value: object) -> int:
    """Bytes of a ring buffer, "4KiB" to "1GiB": the kernel takes powers of two alone."""
    match = _SIZE.fullmatch(_string(value))
    size = int(match[1]) * _SIZE_UNITS[match[2]] if match else 0
    if not RING_LEAST <= size <= RING_MOST or size & (size - 1):
        raise ValueError
    return size


def one_of(*choices: str) -> Callable[[object], str]:
    """A parser that takes one of `choices`."""

    def take(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError
        return value

    return take


def list_of(item: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    """A parser of lists, each element by `item`; what is wrong names the element."""

    def take(value: object) -> tuple[T, ...]:
        found: dict[T, None] = {}
        for element in _list(value):
            try:
                taken = item(element)
            except ValueError as error:
                raise ValueError(str(error) or f"{shown(element)} is not allowed") from None
            if taken in found:
                raise ValueError(f"{shown(element)} is there twice")
            found[taken] = None
        return tuple(found)

    return take


def address(value: object) -> str:
    """An address of a host in canonical text; an IPv4-mapped one is IPv4."""
    packed = parse(_string(value))
    if not any(packed):
        raise ValueError(f"{shown(value)} is the unspecified address")
    return text(packed)


def unicast(value: object) -> str:
    """As `address`, of another host: one that packets can be sent to.

    Link-local IPv6 addresses are refused as well, since they mean nothing without a link.
    """
    ip = address(value)
    for network_, what in _NOT_UNICAST:
        if contains(network_, parse(ip)):
            raise ValueError(f"{shown(value)} is {what}")
    return ip


def network(value: object) -> str:
    """A network in canonical text, host bits clear."""
    return network_text(parse_network(_string(value)))


def networks_by_name(value: object) -> Mapping[str, tuple[str, ...]]:
    """Lists of networks, each under the name of a cluster."""
    found = {}
    for name, networks in _table(value).items():
        if not _CLUSTER_NAME.fullmatch(name):
            raise ValueError(f"{shown(name)}: names are 1 to 63 of letters, digits, _, . and -")
        try:
            found[name] = list_of(network)(networks)
        except ValueError as error:
            raise ValueError(f"{name}: {error}" if str(error) else f"{name} has no list") from None
    return found


def nat64_prefix(value: object) -> str:
    """A prefix that stands for IPv4 addresses."""
    from tracker.clusternet.nat64 import LENGTHS  # noqa: PLC0415 - imports ipaddress

    prefix = network(value)
    head, _, length = prefix.partition("/")
    if ":" not in head or int(length) not in LENGTHS:
        raise ValueError
    return prefix


def peer(value: object) -> str:
    """An address of another host, after the name of a selection and "=" if it is one's peer."""
    name, named, ip = _string(value).rpartition("=")
    return f"{selection_name(name)}={unicast(ip)}" if named else unicast(ip)


def node_masks(value: object) -> tuple[int, ...]:
    """Prefix lengths, one for each family at most."""
    lengths = list_of(whole_number(1, 128))(value)
    if len({length <= 32 for length in lengths}) < len(lengths):
        raise ValueError("two of one family")
    return lengths


def interface_pattern(value: object) -> str:
    """A glob for names of interfaces."""
    if not isinstance(value, str) or not is_pattern(value):
        raise ValueError
    if value.startswith("!"):
        raise ValueError(f'{shown(value)}: "!" in front has no meaning here')
    return value


def exclusion(value: object) -> str:
    """A glob, or one with "!" in front, which takes an interface out of the exclusions."""
    interface_pattern(_string(value).removeprefix("!"))
    return _string(value)


def fallback(value: object) -> str:
    """What to do without a default route."""
    kind, colon, name = _string(value).partition(":")
    if colon and kind == "interface":
        return f"interface:{interface_pattern(name)}"
    return one_of("auto", "none", "physical", "default-route")(value)


def whole_number(least: int, most: int) -> Callable[[object], int]:
    """A parser of whole numbers."""

    def take(value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError
        return value

    return take


def interface_name(value: object) -> str:
    """The name of one interface; "" = none."""
    name = _string(value)
    fits = len(name.encode("utf-8", "surrogateescape")) <= INTERFACE_MOST
    if name and not (is_pattern(name) and is_literal(name) and fits):
        raise ValueError
    return name


def selection_name(name: str) -> str:
    """What a selection may be called: it names files and is a label of metrics."""
    if not _LABEL.fullmatch(name):
        raise ValueError
    return name


def text_or_texts(value: object) -> str | list[str]:
    """A string or a list of strings, as it is."""
    if isinstance(value, str):
        return value
    return [_string(element) for element in _list(value)]


def routing_table(value: object) -> int:
    """The number of a routing table given by number or name."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str):
        number = _TABLES.get(value)
        if number is None:
            number = int(value, 0) if _NUMBER.fullmatch(value) else table_names().get(value)
    if number is None:
        known = ", ".join(sorted({*_TABLES, *table_names()} - {"unspec", "local"}))
        raise ValueError(f"{shown(value)} is no table that this host knows ({known})")
    if not 0 < number < 1 << 32 or number == TABLE_LOCAL:
        raise ValueError
    return number


def table_names(files: tuple[str, ...] = TABLE_FILES) -> dict[str, int]:
    """Tables named in iproute2's files; the first file that is there counts, and its *.conf."""
    for path in files:
        if os.path.exists(path):
            names = _read_tables(path)
            folder = path + ".d"
            if os.path.isdir(folder):
                for name in sorted(os.listdir(folder)):
                    if name.endswith(".conf"):
                        names.update(_read_tables(os.path.join(folder, name)))
            return names
    return {}


def _read_tables(path: str) -> dict[str, int]:
    names = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.partition("#")[0].split()
            if len(words) >= 2 and _NUMBER.fullmatch(words[0]):
                names[words[1]] = int(words[0], 16 if words[0].startswith("0x") else 10)
    return names


def host_name(value: object) -> str:
    """A node name; "" = the kernel's. Blanks around it go and it gets lower case, as the kubelet
    makes it; then it is what Kubernetes takes for the name of a Node, an RFC 1123 subdomain.
    """
    given = _string(value)
    name = given.strip(" ").lower()
    if name and not (given.isascii() and is_host_name(name)):
        raise ValueError
    return name


def is_host_name(name: str) -> bool:
    """Whether a name is an RFC 1123 subdomain, each label of it what the name service takes."""
    return len(name) <= _HOST_NAME_MOST and _HOST_NAME.fullmatch(name) is not None


def absolute_path(value: object) -> str:
    """The path of a directory."""
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError
    return value


def path_or_off(value: object) -> str:
    """The path of a directory; "" turns it off."""
    return "" if value == "" else absolute_path(value)


def listen(value: object) -> Listen | None:
    """An address and a port; "" turns it off, port 0 takes a free one."""
    if value == "":
        return None
    host, _, port = _string(value).rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError
    bracketed = host.startswith("[") and host.endswith("]")
    if (":" in host) != bracketed:
        raise ValueError
    host = host.strip("[]")
    if host != "localhost":
        host = text(parse(host))
    return Listen(host, int(port))


def _refuse() -> NoReturn:
    raise ValueError


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError


def _table(value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise ValueError


def _list(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise ValueError


def shown(value: Any) -> str:
    """The value as it stood in the file, in one line that fits a screen."""
    if isinstance(value, bool):
        line = str(value).lower()
    elif isinstance(value, str):
        line = '"' + value.replace('"', '\\"') + '"'
    elif isinstance(value, list):
        line = "[" + ", ".join(shown(element) for element in value) + "]"
    elif isinstance(value, dict):
        line = "a table"
    else:
        line = str(value)
    return quoted(line)
