"""Values as people write them in a configuration: durations, sizes, addresses, names.

Each parser takes what TOML gave and returns the value, or raises ValueError; the message, if
there is one, says more than the list of what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from tracker.address import network_text, parse, parse_network, text
from tracker.config import Listen
from tracker.model import NANOSECONDS
from tracker.policy.compile import TABLE_LOCAL
from tracker.policy.patterns import is_literal, is_pattern
from tracker.printable import printable

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
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)
_SELECTION_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,8}|\d{1,10}", re.ASCII)

DURATION = 'a duration such as "500ms", "10s" or "2m"'
RING = 'a power of two of bytes, "4KiB" to "1GiB"'
RING_LEAST = 4 << 10
RING_MOST = 1 << 30
ADDRESSES = 'a list of IP addresses such as ["192.0.2.10", "2001:db8::10"]'
NETWORKS = 'a list of networks such as ["10.0.0.0/8", "fd00::/8"]'

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
        found: list[T] = []
        for element in _list(value):
            try:
                taken = item(element)
            except ValueError as error:
                raise ValueError(str(error) or f"{shown(element)} is not allowed") from None
            if taken in found:
                raise ValueError(f"{shown(element)} is there twice")
            found.append(taken)
        return tuple(found)

    return take


def address(value: object) -> str:
    """An address of a host in canonical text; an IPv4-mapped one is IPv4."""
    packed = parse(_string(value))
    if not any(packed):
        raise ValueError(f"{shown(value)} is the unspecified address")
    return text(packed)


def network(value: object) -> str:
    """A network in canonical text, host bits clear."""
    return network_text(parse_network(_string(value)))


def interface_pattern(value: object) -> str:
    """A glob for names of interfaces."""
    if not isinstance(value, str) or not is_pattern(value):
        raise ValueError
    return value


def exclusion(value: object) -> str:
    """A glob, or one with "!" in front, which takes an interface out of the exclusions."""
    pattern = interface_pattern(value)
    interface_pattern(pattern.removeprefix("!"))
    return pattern


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
    if not _SELECTION_NAME.fullmatch(name):
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
    """A node name, lower case as the kubelet makes it; "" = the kernel's."""
    name = _string(value).strip().lower()
    if name and (len(name) > 253 or not _HOST_NAME.fullmatch(name)):
        raise ValueError
    return name


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
    line = printable(line)
    return line if len(line) <= 60 else line[:57] + "..."
