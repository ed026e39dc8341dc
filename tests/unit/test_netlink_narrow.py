"""Dumps that confirm what rules made of IPv6 routes ask for one protocol where that is all."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit import netlink_hooks
from tests.unit.netlink_hooks import MAIN, Kernel, done
from tests.unit.netlink_payloads import events, shown, told
from tracker.capture.payload import Leg, Op, Payload, Route
from tracker.model import Scope

STATIC, BOOT, BGP = 4, 3, 186
REPLACE = 0x100
AUDIT = 1
ETH0 = 7


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return netlink_hooks.build(str(tmp_path_factory.mktemp("narrow")))


def default(gateway: int, protocol: int = STATIC, metric: int = 1024, legs: int = 1) -> Route:
    gateways = (bytes([0xFE, 0x80, *[0] * 13, gateway + leg]) for leg in range(legs))
    hops = tuple(Leg(ETH0, 1, gw_family=10, gw=each) for each in gateways)
    return Route(10, MAIN, metric, 0, b"", proto=protocol, legs=hops)


class Host:
    """A kernel that has shown its table once."""

    def __init__(self, built: Any, *routes: Route) -> None:
        self.kernel = Kernel(built)
        self.asked(*routes, table=0)

    def hears(self, payload: Payload, op: Op = Op.NEW, flags: int = 0) -> None:
        raw = bytearray(told(payload, op))
        struct.pack_into("=H", raw, 6, flags)
        self.kernel.events.append(bytes(raw))
        self.kernel.drain()
        assert events(self.kernel.applied())

    def asked(self, *routes: Route, table: int = MAIN, flags: int = 0) -> int:
        """The protocol that is asked for where the table has these."""
        self.kernel.answers = [[b"".join(map(shown, routes)), done()]]
        assert self.dump(table, flags) == 0
        return self.kernel.requests.pop()[16 + 5]

    def dump(self, table: int = MAIN, flags: int = 0) -> int:
        lib = self.kernel.lib
        return int(lib.at_source_dump(self.kernel.source, Scope.ROUTE6, 0, table, flags))


def test_what_was_replaced_is_looked_for_among_its_own(built: Any) -> None:
    host = Host(built, default(1))
    host.hears(default(2), flags=REPLACE)
    assert host.asked(default(2)) == STATIC


@pytest.mark.parametrize(
    "doubt",
    [
        lambda host: host.hears(default(2, BGP), flags=REPLACE),
        lambda host: host.hears(default(5, legs=2), flags=REPLACE),
        lambda host: host.kernel.lib.at_engine_lose(host.kernel.engine, 1 << Scope.ROUTE6),
        lambda host: None,
    ],
    ids=["another protocol", "siblings", "a loss", "no doubt"],
)
def test_all_is_asked_for_where_there_may_be_others(
    built: Any, doubt: Callable[[Host], None]
) -> None:
    host = Host(built, default(1))
    doubt(host)
    assert host.asked(default(2)) == 0


def test_an_audit_is_never_narrow(built: Any) -> None:
    host = Host(built, default(1))
    host.hears(default(2), flags=REPLACE)
    assert host.asked(default(2), flags=AUDIT) == 0


def test_what_a_dump_shows_gone_is_no_longer_looked_for(built: Any) -> None:
    host = Host(built, default(1, BGP))
    host.hears(default(2), flags=REPLACE)
    assert host.asked(default(2)) == 0
    host.hears(default(3), flags=REPLACE)
    assert host.asked(default(3)) == STATIC


def test_what_came_during_a_dump_is_looked_for(built: Any) -> None:
    host = Host(built, default(1))
    host.hears(default(2), flags=REPLACE)
    host.kernel.events += [errno.EAGAIN, told(default(1, BGP, metric=9))]
    assert host.asked(default(2)) == STATIC
    host.hears(default(3), flags=REPLACE)
    assert host.asked(default(1, BGP, metric=9), default(3)) == 0


def test_a_dump_that_failed_is_followed_by_one_of_all(built: Any) -> None:
    host = Host(built, default(1))
    host.hears(default(2), flags=REPLACE)
    host.kernel.answers = [[errno.EIO]]
    assert host.dump() < 0
    assert host.asked(default(2)) == 0
