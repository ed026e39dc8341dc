"""What ranks candidates, on both engines: the value of each criterion, and the order of all."""

from __future__ import annotations

import pytest

from tests.build import (
    BLACKHOLE,
    DEPRECATED,
    MANAGETEMPADDR,
    PERMANENT,
    SECONDARY,
    TEMPORARY,
    Host,
    addr,
    gone,
    leg,
    link,
    policy,
    route,
)
from tracker.address import text
from tracker.capture.record import Addr, Leg, Record
from tracker.engine.base import Engine
from tracker.model import FAMILIES, NO_ROUTE, Criterion
from tracker.policy.compile import default_route_policy
from tracker.policy.criteria import DEFAULT_ORDER

TEN = "192.0.2.10"
TEN6 = "2001:db8::10"
WEIGHT = 65535


def value(host: Host, address: str, criterion: Criterion) -> int:
    return host.row(address).values[DEFAULT_ORDER.index(criterion)]


def packed(metric: int, *, dead: int = 0, pref: int = 1) -> int:
    return dead << 34 | metric << 2 | pref


@pytest.fixture
def uplink(host: Host) -> Host:
    host.send(link(2, "eth0"), link(3, "eth1"), addr(f"{TEN}/24", 2), addr(f"{TEN6}/64", 2))
    return host


def test_static_is_the_position_in_the_list(engine: Engine) -> None:
    host = Host(engine, default_route_policy(families=FAMILIES, static=["192.0.2.11", TEN]))
    host.send(link(2, "eth0"), *(addr(f"192.0.2.{last}/24", 2) for last in (9, 10, 11)))
    values = [value(host, f"192.0.2.{last}", Criterion.STATIC) for last in (9, 10, 11)]
    assert values == [2, 1, 0]


def test_mode_has_no_list_here(uplink: Host) -> None:
    assert value(uplink, TEN, Criterion.MODE) == 0


def test_internal_prefers_the_configured_networks(engine: Engine) -> None:
    host = Host(engine, default_route_policy(families=FAMILIES, internal=["192.0.2.0/28"]))
    host.send(link(2, "eth0"), addr(f"{TEN}/24", 2), addr("192.0.2.20/24", 2))
    assert value(host, TEN, Criterion.INTERNAL) == 0
    assert value(host, "192.0.2.20", Criterion.INTERNAL) == 1


def test_internal_says_nothing_where_it_is_not_configured(uplink: Host) -> None:
    assert value(uplink, TEN, Criterion.INTERNAL) == 0


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], NO_ROUTE),
        ([route(oif=3)], NO_ROUTE),
        ([route(oif=2, kind=BLACKHOLE)], NO_ROUTE),
        ([route(oif=2, table=7)], NO_ROUTE),
        ([route(oif=2)], packed(0)),
        ([route(oif=2, metric=0xFFFFFFFF)], packed(0xFFFFFFFF)),
        ([route(oif=2, metric=100), route(oif=2, metric=50)], packed(50)),
        ([route(oif=3, metric=5), route(oif=2, metric=50)], packed(50)),
        ([route(oif=3, metric=5, src=TEN), route(oif=2, metric=50)], packed(5)),
        ([route(legs=(leg(3), leg(2)), metric=7)], packed(7)),
        ([route(oif=2, metric=4), link(2, "eth0", carrier=False)], packed(4, dead=1)),
        ([route(oif=3, src=TEN, metric=4), link(3, "eth1", carrier=False)], packed(4, dead=1)),
        (
            [route(legs=(leg(3), leg(9)), src=TEN, metric=4), route(oif=2, metric=9)],
            packed(4),
        ),
        (
            [route(oif=9, src=TEN, metric=4), route(oif=2, metric=9)],
            packed(9),
        ),
        ([route(oif=2, pref=1)], packed(0)),
    ],
)
def test_default_route_is_the_best_one_over_the_link_or_naming_the_address(
    uplink: Host, records: list[Record], expected: int
) -> None:
    uplink.send(*records)
    assert value(uplink, TEN, Criterion.DEFAULT_ROUTE) == expected


@pytest.mark.parametrize(("pref", "rank"), [(0, 1), (1, 0), (3, 2), (2, 1)])
def test_router_preference_breaks_ties_of_metric(uplink: Host, pref: int, rank: int) -> None:
    uplink.send(route(oif=2, via="fe80::1", metric=1024, pref=pref))
    assert value(uplink, TEN6, Criterion.DEFAULT_ROUTE) == packed(1024, pref=rank)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([route(oif=2)], 1),
        ([route(oif=2, src=TEN)], 0),
        ([route(oif=2, src="192.0.2.11")], 1),
        ([route(oif=2, metric=5), route(oif=2, src=TEN, metric=9)], 1),
        ([route(oif=2, metric=5), route(oif=3, src=TEN, metric=5)], 0),
    ],
)
def test_prefsrc_is_of_the_best_route(uplink: Host, records: list[Record], expected: int) -> None:
    uplink.send(*records)
    assert value(uplink, TEN, Criterion.PREFSRC) == expected


@pytest.mark.parametrize(
    ("address", "flags", "proto", "criterion", "expected"),
    [
        ("192.0.2.20/24", PERMANENT, 0, Criterion.NOT_DEPRECATED, 0),
        ("192.0.2.20/24", DEPRECATED, 0, Criterion.NOT_DEPRECATED, 1),
        ("2001:db8::20/64", TEMPORARY, 0, Criterion.NOT_TEMPORARY, 1),
        ("2001:db8::20/64", PERMANENT, 0, Criterion.NOT_TEMPORARY, 0),
        ("192.0.2.20/24", SECONDARY, 0, Criterion.NOT_TEMPORARY, 0),
        ("192.0.2.20/24", SECONDARY, 0, Criterion.PRIMARY_FLAG, 1),
        ("192.0.2.20/24", PERMANENT, 0, Criterion.PRIMARY_FLAG, 0),
        ("2001:db8::20/64", TEMPORARY, 0, Criterion.PRIMARY_FLAG, 0),
        ("2001:db8::20/64", MANAGETEMPADDR, 0, Criterion.ASSIGNED, 1),
        ("2001:db8::20/64", 0, 2, Criterion.ASSIGNED, 1),
        ("2001:db8::20/64", 0, 1, Criterion.ASSIGNED, 0),
        ("fd00::20/64", PERMANENT, 0, Criterion.GLOBAL_BEFORE_ULA, 1),
        ("fc00::20/64", PERMANENT, 0, Criterion.GLOBAL_BEFORE_ULA, 1),
        ("2001:db8::20/64", PERMANENT, 0, Criterion.GLOBAL_BEFORE_ULA, 0),
        ("10.0.0.20/8", PERMANENT, 0, Criterion.GLOBAL_BEFORE_ULA, 0),
    ],
)
def test_flags_of_an_address_rank_it(
    host: Host, address: str, flags: int, proto: int, criterion: Criterion, expected: int
) -> None:
    host.send(link(2, "eth0"), addr(address, 2, flags=flags, proto=proto))
    assert value(host, address.partition("/")[0], criterion) == expected


@pytest.mark.parametrize(
    ("others", "flags", "expected"),
    [
        ([], PERMANENT, 0),
        ([addr("192.0.2.11/24", 2)], PERMANENT, 1),
        ([addr("192.0.2.11/24", 2)], 0, 0),
        ([addr("192.0.2.11/24", 3)], PERMANENT, 0),
        ([addr("192.0.2.11/32", 2)], PERMANENT, 0),
        ([addr("169.254.0.1/16", 2)], PERMANENT, 0),
        ([addr("2001:db8::11/64", 2)], PERMANENT, 0),
        ([addr("192.0.2.11/24", 2), gone(addr("192.0.2.11/24", 2))], PERMANENT, 0),
    ],
)
def test_a_permanent_host_address_beside_a_wider_one_looks_like_a_vip(
    host: Host, others: list[Record], flags: int, expected: int
) -> None:
    host.send(link(2, "eth0"), link(3, "eth1"), addr("192.0.2.99/32", 2, flags=flags), *others)
    assert value(host, "192.0.2.99", Criterion.NOT_VIP_LIKE) == expected


def test_an_autoconfigured_address_makes_no_vip_of_another(host: Host) -> None:
    host.send(link(2, "eth0"), addr("2001:db8::99/128", 2))
    host.send(addr("2001:db8::5/64", 2, flags=MANAGETEMPADDR))
    assert value(host, "2001:db8::99", Criterion.NOT_VIP_LIKE) == 0


def test_the_incumbent_stays_among_equals(uplink: Host) -> None:
    uplink.send(addr("192.0.2.9/24", 2), route(via="192.0.2.1", oif=2))
    assert uplink.best() == "192.0.2.9"
    uplink.engine.set_incumbent(0, "ipv4", TEN)
    assert value(uplink, TEN, Criterion.INCUMBENT) == 0
    assert value(uplink, "192.0.2.9", Criterion.INCUMBENT) == 1
    assert uplink.best() == TEN
    uplink.engine.set_incumbent(0, "ipv4", None)
    assert uplink.best() == "192.0.2.9"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([route(via="192.0.2.1", oif=2)], 0),
        ([route(via="192.0.3.1", oif=2)], 1),
        ([route(via="192.0.2.1", oif=3)], 1),
        ([route(oif=2)], 1),
        ([route(legs=(leg(3, "198.51.100.1"), leg(2, "192.0.2.1")))], 0),
        ([route(legs=(Leg(2, 1, 0, 10, bytes(16)),))], 1),
        ([route(via="192.0.2.1", oif=2, kind=BLACKHOLE)], 1),
        ([route(via="192.0.2.1", oif=2), link(2, "eth0", carrier=False)], 0),
    ],
)
def test_the_gateway_may_lie_in_the_prefix(
    uplink: Host, records: list[Record], expected: int
) -> None:
    uplink.send(*records)
    assert value(uplink, TEN, Criterion.GATEWAY_ON_LINK) == expected


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], WEIGHT),
        ([route(oif=2)], WEIGHT - 1),
        ([route(legs=(leg(2, weight=3), leg(3, weight=9)))], WEIGHT - 3),
        ([route(legs=(leg(2, weight=3), leg(2, "192.0.2.1", weight=5)))], WEIGHT - 5),
        ([route(oif=2), route(legs=(leg(2, weight=9),), metric=5)], WEIGHT - 1),
        ([route(oif=3, src=TEN)], WEIGHT),
    ],
)
def test_the_weight_is_that_of_the_best_routes_legs_on_the_link(
    uplink: Host, records: list[Record], expected: int
) -> None:
    uplink.send(*records)
    assert value(uplink, TEN, Criterion.NEXTHOP_WEIGHT) == expected


def test_ifindex_and_age_are_taken_as_they_are(host: Host) -> None:
    host.send(link(2, "eth0"), addr(f"{TEN}/24", 2, cstamp=77))
    assert value(host, TEN, Criterion.IFINDEX) == 2
    assert value(host, TEN, Criterion.AGE) == 77


ORDERED = [
    ("lower metric", addr("192.0.2.20/24", 2), addr("192.0.2.10/24", 3)),
    ("lower ifindex", addr("192.0.2.20/24", 4), addr("192.0.2.10/24", 5)),
    ("older", addr("192.0.2.20/24", 2, cstamp=1), addr("192.0.2.10/24", 2, cstamp=2)),
    ("lower address", addr("192.0.2.10/24", 2), addr("192.0.2.20/24", 2)),
    ("shorter prefix", addr("192.0.2.10/24", 2), addr("192.0.2.10/25", 2)),
    ("no peer", addr("192.0.2.10/24", 2), addr("192.0.2.10/24", 2, peer="192.0.2.1")),
    ("primary", addr("192.0.2.20/24", 2), addr("192.0.2.10/24", 2, flags=SECONDARY)),
    ("not deprecated", addr("192.0.2.20/24", 2), addr("192.0.2.10/24", 2, flags=DEPRECATED)),
]


@pytest.mark.parametrize(("why", "first", "second"), ORDERED)
@pytest.mark.parametrize("turn", [1, -1])
def test_candidates_are_ordered_whatever_came_first(
    host: Host, why: str, first: Record, second: Record, turn: int
) -> None:
    host.send(link(2, "eth0"), link(3, "eth1"), link(4, "eth2"), link(5, "eth3"))
    host.send(route(oif=2, metric=1), route(oif=3, metric=2), route(oif=4), route(oif=5))
    host.send(*(first, second)[::turn])
    one, other = host.rows()
    got = [(row.address, row.prefixlen, row.peer, row.ifindex, row.rank) for row in (one, other)]
    want = []
    for rank, record in enumerate((first, second), 1):
        payload = record.payload
        assert isinstance(payload, Addr)
        peer = text(payload.peer) if payload.peer else ""
        want.append((text(payload.local), payload.prefixlen, peer, payload.ifindex, rank))
    assert got == want, why


def test_the_policy_gives_the_order(engine: Engine) -> None:
    host = Host(engine, policy(criteria=(Criterion.AGE, Criterion.IFINDEX)))
    host.send(link(2, "eth0"), link(3, "eth1"), route(oif=2), route(oif=3, metric=9))
    host.send(addr(f"{TEN}/24", 2, cstamp=9), addr("192.0.2.20/24", 3, cstamp=1))
    assert [row.values for row in host.rows()] == [(1, 3), (9, 2)]
    assert host.best() == "192.0.2.20"


def test_a_policy_without_criteria_still_has_an_order(engine: Engine) -> None:
    host = Host(engine, policy(criteria=()))
    host.send(link(2, "eth0"), link(3, "eth1"), route(oif=2), route(oif=3))
    host.send(addr(f"{TEN}/24", 3), addr(f"{TEN}/24", 2))
    assert [row.ifindex for row in host.rows()] == [2, 3]
