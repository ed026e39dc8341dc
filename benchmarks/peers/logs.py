"""Logs of programs that tell nobody else what they know: sights from their lines.

All of them write the time of the wall clock, in UTC, with microseconds. A sight is in the form of
benchmarks/sights.py.
"""

from __future__ import annotations

import ipaddress
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.sights import Event

_SIGNS = {"added": "+", "removed": "-", "ADD": "+", "DELETE": "-", "": "+", "Deleted ": "-"}


class Log(NamedTuple):
    """How the lines of a program look."""

    line: re.Pattern[str]
    """Groups: time, sign (one of _SIGNS) and address."""
    time: str
    """For strptime; microseconds at its end."""


IP_MONITOR = Log(
    re.compile(r"^\[(?P<time>\S+)\] (?P<sign>|Deleted )\d+: \S+ +inet6? (?P<address>[^/ ]+)/"),
    "%Y-%m-%dT%H:%M:%S.%f",
)
"""`ip -o -ts monitor`."""

BIRD = Log(
    re.compile(
        r"^(?P<time>\S+ \S+) <TRACE> direct1 < address (?P<address>\S+) on interface \S+ "
        r"(?P<sign>added|removed)$"
    ),
    "%Y-%m-%d %H:%M:%S.%f",
)
"""BIRD 2, `debug { interfaces }`: names the network of an address, not the address."""

ZEBRA = Log(
    re.compile(
        r"^(?P<time>\S+ \S+) ZEBRA: .*MESSAGE: ZEBRA_INTERFACE_ADDRESS_(?P<sign>ADD|DELETE) "
        r"(?P<address>[^/ ]+)/"
    ),
    "%Y/%m/%d %H:%M:%S.%f",
)
"""FRR's zebra, `debug zebra events`."""


def boot_offset() -> int:
    """What the wall clock is behind CLOCK_BOOTTIME, in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.time_ns()


def sights(log: Log, lines: Iterable[str], offset: int) -> Iterator[Event]:
    """What the lines tell of addresses."""
    for line in lines:
        found = log.line.match(line)
        if found:
            at = datetime.strptime(found["time"], log.time).replace(tzinfo=UTC)
            seconds, micro = int(at.timestamp()), at.microsecond
            when = seconds * 1_000_000_000 + micro * 1000 + offset
            yield when, _SIGNS[found["sign"]] + found["address"]


def named(sights: Iterable[Event], changes: Sequence[Event]) -> Iterator[Event]:
    """Sights that name a network, with the address instead that changes name."""
    addresses = {what[1:] for _, what in changes}
    for at, what in sights:
        network = ipaddress.ip_network(what[1:])
        for address in addresses:
            if ipaddress.ip_address(address) in network:
                yield at, what[0] + address
