"""Route messages and the lists of aliases that they change, on both engines."""

from __future__ import annotations

import pytest

from tests.build import (
    APPEND,
    BLACKHOLE,
    REPLACE,
    RTPROT_RA,
    RTPROT_STATIC,
    UNREACHABLE,
    Host,
    addr,
    gone,
    leg,
    link,
    nexthop,
    policy,
    route,
)
from tracker.address import text
from tracker.capture.record import Record, Route, iter_records
from tracker.model import AF_INET, AF_INET6, Scope

A, B, C = leg(2, "192.0.2.1"), leg(3, "198.51.100.1"), leg(4, "203.0.113.1")
A6, B6, C6 = leg(2, "fe80::a"), leg(3, "fe80::b"), leg(4, "fe80::c")


def four(*legs: object, **changes: object) -> Record:
    # Keywords of many types, by name.
    return route(legs=legs, **changes)  # type: ignore[arg-type]


def six(*legs: object, **changes: object) -> Record:
    # Keywords of many types, by name.
    return route(legs=legs, family=AF_INET6, **changes)  # type: ignore[arg-type]


def kept(host: Host) -> list[list[str]]:
    """Gateways of every alias, in order."""
    payloads = [record.payload for record in iter_records(host.engine.snapshot())]
    return [[text(leg.gw) for leg in p.legs] for p in payloads if isinstance(p, Route)]


def stored(host: Host) -> list[Route]:
    payloads = [record.payload for record in iter_records(host.engine.snapshot())]
    return [payload for payload in payloads if isinstance(payload, Route)]


@pytest.fixture
def bare(host: Host) -> Host:
    return host


@pytest.mark.parametrize(
    ("messages", "lists"),
    [
        ([four(A), four(B)], ["B", "A"]),
        ([four(A), four(B, nl_flags=APPEND)], ["A", "B"]),
        ([four(A), four(B), four(C, nl_flags=REPLACE)], ["C", "A"]),
        ([four(A), four(A)], ["A"]),
        ([four(A), four(A, proto=RTPROT_RA)], ["A", "A"]),
        ([four(A), four(A, src="192.0.2.10")], ["A", "A"]),
        ([four(A), four(A, kind=UNREACHABLE)], ["A", "A"]),
        ([four(A), four(A, metric=5)], ["A", "A"]),
        ([four(A), four(A, tos=4)], ["A", "A"]),
        ([four(A, B), four(A, B)], ["AB"]),
        ([four(A), four(B), gone(four(A))], ["B"]),
        ([four(A), four(B), gone(four())], ["A"]),
        ([four(A), four(B), gone(four(leg(2)))], ["B"]),
        ([four(A), four(B), gone(four(leg(0, "192.0.2.1")))], ["B"]),
        ([four(A), gone(four(B))], ["A"]),
        ([four(A), gone(four(A, B))], ["A"]),
        ([four(A, B), gone(four(A))], ["AB"]),
        ([four(A), gone(four(A, metric=5))], ["A"]),
        ([four(A), gone(four(A, proto=RTPROT_RA))], ["A"]),
        ([four(A), gone(four(A, proto=0, kind=0, scope=255))], []),
        ([four(A, scope=2), gone(four(A, scope=3))], ["A"]),
        ([four(A), gone(four(A, src="192.0.2.10"))], ["A"]),
        ([four(A, src="192.0.2.10"), gone(four(A))], []),
        ([four(A, nh_id=7), gone(four(B, nh_id=7))], []),
        ([four(A, nh_id=7), gone(four(A, nh_id=8))], ["A"]),
    ],
)
def test_ipv4_aliases_are_kept_in_kernel_order(
    bare: Host, messages: list[Record], lists: list[str]
) -> None:
    bare.send(*messages)
    gateways = {"A": "192.0.2.1", "B": "198.51.100.1", "C": "203.0.113.1"}
    assert kept(bare) == [[gateways[letter] for letter in letters] for letters in lists]


@pytest.mark.parametrize(
    ("messages", "lists"),
    [
        ([six(A6), six(B6)], ["a", "b"]),
        ([six(A6), six(A6, proto=RTPROT_RA)], ["a"]),
        ([six(A6), six(A6, B6, nl_flags=APPEND)], ["ab"]),
        ([six(C6), six(A6), six(B6), six(A6, B6)], ["c", "ab"]),
        ([six(A6, C6), six(A6, B6)], ["ac", "ab"]),
        ([six(A6), six(A6, nl_flags=APPEND)], ["a"]),
        ([six(A6, B6), six(B6)], ["ab"]),
        ([six(A6), six(B6), six(C6, nl_flags=REPLACE)], ["c"]),
        ([six(kind=UNREACHABLE), six(kind=BLACKHOLE)], [""]),
        ([six(kind=UNREACHABLE), six(A6, B6)], ["", "ab"]),
        ([six(A6), six(A6, metric=5)], ["a", "a"]),
        ([six(A6), six(A6, tos=4)], ["a"]),
        ([six(A6, B6), gone(six(A6))], ["b"]),
        ([six(A6, B6), gone(six(B6, A6))], []),
        ([six(A6, B6), six(A6, C6), gone(six(A6))], ["b", "ac"]),
        ([six(A6), gone(six(B6))], ["a"]),
        ([six(A6), gone(six(A6, proto=RTPROT_RA))], ["a"]),
        ([six(A6), gone(six(A6, proto=0, kind=0))], []),
        ([six(A6), six(B6), gone(six())], ["b"]),
        ([six(A6, nh_id=7), six(B6, nh_id=7)], ["b"]),
        ([six(A6), six(A6, nh_id=7)], ["a", "a"]),
        ([six(A6, nh_id=7), six(A6)], ["a", "a"]),
        ([six(A6, nh_id=7), six(A6, B6)], ["a", "ab"]),
        ([six(A6, nh_id=7), six(B6, nh_id=8), gone(six(nh_id=7))], ["b"]),
    ],
)
def test_ipv6_aliases_are_lists_of_siblings(
    bare: Host, messages: list[Record], lists: list[str]
) -> None:
    bare.send(*messages)
    assert kept(bare) == [[f"fe80::{letter}" for letter in letters] for letters in lists]


def test_an_equal_ipv4_route_changes_nothing_but_its_preference(bare: Host) -> None:
    bare.send(four(A), four(B, nl_flags=APPEND))
    bare.send(four(B, pref=1))
    assert [found.pref for found in stored(bare)] == [0, 1]


@pytest.mark.parametrize("named", [(A6, B6), (B6, A6)], ids=["in order", "turned"])
def test_siblings_of_two_protocols_go_by_what_the_message_shows_of_one(
    bare: Host, named: tuple[object, ...]
) -> None:
    """ip6_route_del() tells of all siblings at once, with the attributes of the first."""
    bare.send(six(A6, B6, proto=RTPROT_STATIC))
    bare.send(gone(six(*named, proto=RTPROT_RA)))
    assert kept(bare) == []


def test_an_ipv6_message_updates_the_route_that_has_its_leg(bare: Host) -> None:
    bare.send(six(A6, B6))
    bare.send(six(leg(3, "fe80::b", weight=9), pref=3, src="2001:db8::1", proto=RTPROT_RA))
    (found,) = stored(bare)
    assert (found.pref, found.proto, text(found.prefsrc)) == (3, RTPROT_RA, "2001:db8::1")
    assert [leg.weight for leg in found.legs] == [1, 1]


def test_the_list_that_is_announced_has_the_weights(bare: Host) -> None:
    bare.send(six(A6))
    bare.send(six(leg(2, "fe80::a", weight=5), B6, nl_flags=APPEND))
    (found,) = stored(bare)
    assert [leg.weight for leg in found.legs] == [5, 1]


@pytest.mark.parametrize(
    "other",
    [
        route("10.0.0.0/8", oif=2),
        route("0.0.0.0/1", oif=2),
        route("::/96", oif=2),
        route(oif=2, table=7),
        route(oif=2, rtm_flags=0x200),
        gone(route(oif=2, table=7)),
    ],
)
def test_what_is_no_default_route_of_a_wanted_table_is_not_kept(bare: Host, other: Record) -> None:
    before = bare.dirt()
    bare.send(other)
    assert stored(bare) == []
    assert bare.count("ignored") == 1
    assert bare.dirt() == before


def test_a_route_counts_only_if_it_is_unicast(bare: Host) -> None:
    bare.send(route(kind=UNREACHABLE, metric=1), route(oif=2), route(oif=2, family=AF_INET6))
    view = bare.view()
    assert (view.default_routes, view.other_defaults, view.bad_defaults) == (1, 1, 1)


def test_a_new_table_is_asked_for_and_an_old_one_forgotten(bare: Host) -> None:
    bare.send(route(oif=2), route(oif=2, table=7))
    bare.engine.set_policy(0, policy(table=7))
    assert stored(bare) == []
    assert bare.engine.tables() == [7]
    assert [(dirty.scope, dirty.table, dirty.lost) for dirty in bare.dirt()] == [
        (Scope.ROUTE4, 7, True),
        (Scope.ROUTE6, 7, True),
    ]
    bare.send(route(oif=2, table=7))
    assert len(stored(bare)) == 1
    bare.engine.drop_policy(0)
    assert stored(bare) == []
    assert bare.dirt() == []


def test_a_known_nexthop_object_gives_the_legs(bare: Host) -> None:
    bare.send(link(2, "eth0"), link(3, "eth1"))
    bare.send(addr("192.0.2.10/24", 2), addr("198.51.100.10/24", 3))
    bare.send(four(A, nh_id=7))
    assert bare.best() == "192.0.2.10", "from the message while the object is not known"
    bare.send(nexthop(7, oif=3, via="198.51.100.1"))
    assert bare.best() == "198.51.100.10"


def test_a_group_gives_legs_with_the_weights_of_its_members(bare: Host) -> None:
    bare.send(link(2, "eth0"), link(3, "eth1"))
    bare.send(addr("192.0.2.10/24", 2), addr("198.51.100.10/24", 3))
    bare.send(nexthop(1, oif=2), nexthop(2, oif=3), nexthop(3, members=((1, 1),)))
    bare.send(nexthop(9, members=((1, 4), (2, 8), (3, 99), (5, 99))), route(nh_id=9))
    assert bare.best() == "198.51.100.10"
    assert bare.row("198.51.100.10").values[13] == 65535 - 8
    assert bare.row("192.0.2.10").values[13] == 65535 - 4


def test_a_blackhole_nexthop_has_no_leg(bare: Host) -> None:
    bare.send(link(2, "eth0"), addr("192.0.2.10/24", 2))
    bare.send(nexthop(7, oif=2, blackhole=True), four(A, nh_id=7))
    assert bare.best() is None


def test_a_snapshot_brings_the_same_state_back(bare: Host) -> None:
    bare.send(
        link(3, "eth1", kind="bond", mtu=9000, lower=7),
        link(2, "eth0", carrier=False),
        addr("192.0.2.10/24", 2, peer="192.0.2.11", cstamp=5, valid=60),
        addr("2001:db8::10/64", 3),
        addr("10.0.0.1/8", 9),
        nexthop(7, oif=3, via="fe80::1", family=AF_INET6),
        nexthop(3, members=((7, 2),)),
        four(A, B, metric=4, src="192.0.2.10", tos=8),
        six(A6, metric=1024, proto=RTPROT_RA, expires=30, pref=1),
        route(family=AF_INET6, nh_id=3),
    )
    raw = bare.engine.snapshot()
    again = type(bare.engine)()
    again.set_policy(0, policy())
    assert again.apply(raw) == 10
    assert again.snapshot() == raw
    kinds = [record.kind.name for record in iter_records(raw)]
    assert kinds == ["LINK"] * 2 + ["ADDR"] * 3 + ["NEXTHOP"] * 2 + ["ROUTE"] * 3
    families = [found.family for found in stored(bare)]
    assert families == [AF_INET, AF_INET6, AF_INET6]
    assert stored(bare)[0].proto == RTPROT_STATIC


def test_a_snapshot_rounds_the_rest_of_a_lifetime_up(bare: Host) -> None:
    bare.send(six(A6, proto=RTPROT_RA, expires=30))
    bare.send(link(2, "eth0"), after=500_000_000)
    assert [found.expires for found in stored(bare)] == [30]
    bare.send(link(2, "eth0"), after=29_600_000_000)
    assert [found.expires for found in stored(bare)] == [1]


def test_one_of_two_equal_routes_that_goes_leaves_doubt(host: Host) -> None:
    """A dump can show one twice, of which the kernel took the first away meanwhile."""
    twins = route(family=AF_INET6, legs=(leg(2, "fe80::1"), leg(3, "fe80::1")), metric=5)
    host.dump(Scope.ROUTE6, twins, twins)
    assert host.dirt() == []
    host.send(gone(twins))
    assert host.scopes() == [Scope.ROUTE6]
