"""Entries larger than what the kernel makes of a dump's first part, unless it is told better."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import connect
from tests.netns.test_netlink_snapshot import OTHER_TABLE
from tests.soak.rtnl import NLM_F_CREATE, RTM_NEWROUTE, Leg, Rtnl, ifindex
from tracker.capture.netlink import NetlinkSource
from tracker.capture.payload import LEGS_MAX, Route
from tracker.capture.pyroute2 import Pyroute2Source
from tracker.capture.record import Nexthop, Payload, iter_records
from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine
from tracker.model import AF_INET, AF_INET6, FAMILIES, Scope
from tracker.policy.compile import default_route_policy
from tracker.profiles import live

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.netns.namespace import Namespace
    from tracker.capture.base import Source
    from tracker.engine.base import Engine

LEGS = 1000
"""16 or 28 bytes each: less than the 32 KiB that the kernel makes at most."""
LARGER_THAN_ANY_ANSWER = 2100

SOURCES: dict[str, Callable[[], Source]] = {
    "netlink": lambda: NetlinkSource(NativeEngine()),
    "pyroute2": lambda: Pyroute2Source(ReferenceEngine()),
}


@pytest.fixture
def rtnl(host: Namespace, router: Namespace) -> Iterator[Rtnl]:
    """Requests in a host with an uplink, which the calling thread has entered."""
    connect(host, "eth0", router, "eth0")
    host.ip("addr add 192.0.2.10/20 dev eth0")
    host.ip("addr add 2001:db8::10/64 dev eth0 nodad")
    with host.entered():
        rtnl = Rtnl()
        yield rtnl
        rtnl.close()


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, rtnl: Rtnl) -> Iterator[Source]:
    """Knows nothing yet."""
    source = SOURCES[request.param]()
    source.engine.set_policy(0, default_route_policy(families=FAMILIES))
    source.engine.set_policy(1, default_route_policy(families=FAMILIES, table=OTHER_TABLE))
    yield source
    source.close()


def gateways(first: str, count: int) -> list[Leg]:
    index = ifindex("eth0")
    return [Leg(index, str(ip_address(first) + number)) for number in range(count)]


def add(rtnl: Rtnl, legs: list[Leg], metric: int, table: int = 254) -> None:
    family = AF_INET6 if ":" in legs[0].gateway else AF_INET
    assert rtnl.route(RTM_NEWROUTE, NLM_F_CREATE, family, legs, metric=metric, table=table) == 0


def known(engine: Engine) -> list[Payload]:
    return [record.payload for record in iter_records(engine.snapshot())]


def routes(engine: Engine) -> dict[tuple[int, int], int]:
    """Legs by family and metric."""
    found = (payload for payload in known(engine) if isinstance(payload, Route))
    return {(route.family, route.metric): len(route.legs) for route in found}


def test_a_route_over_many_gateways_does_not_end_a_dump(rtnl: Rtnl, source: Source) -> None:
    """An IPv4 default comes first in its table; an IPv6 one does in a table without others."""
    add(rtnl, gateways("192.0.2.20", LEGS), 10)
    add(rtnl, gateways("192.0.2.20", 1), 500)
    add(rtnl, gateways("2001:db8::20", LEGS), 10, OTHER_TABLE)
    add(rtnl, gateways("2001:db8::20", 1), 500, OTHER_TABLE)
    for scope in (Scope.ROUTE4, Scope.ROUTE6):
        assert source.dump(scope)
    assert routes(source.engine) == {
        (AF_INET, 10): LEGS_MAX,
        (AF_INET, 500): 1,
        (AF_INET6, 10): LEGS_MAX,
        (AF_INET6, 500): 1,
    }


@pytest.mark.parametrize("table", [254, OTHER_TABLE])
def test_a_route_larger_than_any_answer_stays_once_it_was_announced(
    rtnl: Rtnl, source: Source, table: int
) -> None:
    """The dump of it ends without an error, and without what comes behind it."""
    assert source.dump(Scope.ROUTE4)
    add(rtnl, gateways("192.0.2.20", LARGER_THAN_ANY_ANSWER), 10, table)
    add(rtnl, gateways("192.0.2.20", 1), 500, table)
    source.drain()
    source.dump(Scope.ROUTE4)
    assert routes(source.engine) == {(AF_INET, 10): LEGS_MAX, (AF_INET, 500): 1}
    assert Scope.ROUTE4 in {dirty.scope for dirty in source.engine.dirty() if dirty.lost}


def test_a_large_group_of_nexthops_does_not_end_a_dump(rtnl: Rtnl, source: Source) -> None:
    """It comes first by its id."""
    members = range(2, LEGS)
    for ident, leg in zip(members, gateways("192.0.2.20", LEGS), strict=False):
        assert rtnl.nexthop(ident, AF_INET, leg) == 0
    assert rtnl.group(1, members) == 0
    assert source.dump(Scope.NEXTHOP)
    idents = [payload.id for payload in known(source.engine) if isinstance(payload, Nexthop)]
    assert idents == [1, *members]


def test_profiles_read_a_route_over_many_gateways(rtnl: Rtnl) -> None:
    add(rtnl, gateways("192.0.2.20", LEGS), 10)
    read = live.read("node", live.Resolver("localhost"))
    (default,) = (route for route in read.routes if route.metric == 10)
    assert len(default.hops) == LEGS
