"""R1 to R11: what the kernel does silently, both engines infer and want confirmed."""

from __future__ import annotations

import pytest

from tests.build import (
    BLACKHOLE,
    MS,
    REPLACE,
    RTPROT_RA,
    Host,
    addr,
    begin,
    end,
    entry,
    flush,
    gone,
    leg,
    link,
    nexthop,
    policy,
    route,
    rule,
    truncated,
)
from tracker.capture.record import Record
from tracker.engine.base import NEVER
from tracker.model import AF_INET6, Dirty, Scope

ADDRESS = addr("192.0.2.10/24", 2)
DEFAULT = route(via="192.0.2.1", oif=2)
DEFAULT6 = route(via="fe80::1", oif=2, metric=1024)
MULTIPATH = route(legs=(leg(2, "192.0.2.1"), leg(3, "198.51.100.1")), metric=5)
MULTIPATH6 = route(family=AF_INET6, legs=(leg(2, "fe80::1"), leg(3, "fe80::2")), metric=5)


@pytest.fixture
def two_links(host: Host) -> Host:
    host.send(link(2, "eth0"), link(3, "eth1"), ADDRESS, addr("198.51.100.10/24", 3))
    return host


def wanted(scope: Scope, rule: int) -> Dirty:
    """The dump that confirms a rule of routes."""
    return Dirty(scope, 0, 254, lost=False, rule=rule)


# R1


@pytest.mark.parametrize("down", [link(2, "eth0", up=False), gone(link(2, "eth0"))])
def test_r1_a_link_that_goes_down_takes_its_ipv4_routes_along(
    two_links: Host, down: Record
) -> None:
    two_links.send(DEFAULT, MULTIPATH)
    two_links.send(down)
    assert two_links.view().default_routes == 1, "multipath with a leg elsewhere stays"
    assert two_links.count("inferred.R1") == 1
    assert wanted(Scope.ROUTE4, 1) in two_links.dirt()


def test_r1_ipv6_routes_stay_until_their_message_comes(two_links: Host) -> None:
    two_links.send(DEFAULT6)
    two_links.send(link(2, "eth0", up=False))
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE6, 1)]


def test_r1_a_link_without_routes_costs_no_dump(two_links: Host) -> None:
    two_links.send(DEFAULT, route(kind=BLACKHOLE, metric=9), DEFAULT6)
    two_links.send(link(9, "veth0", up=False), link(9, "veth0"), gone(link(9, "veth0")))
    assert two_links.dirt() == []


def test_r1_only_the_edge_fires(two_links: Host) -> None:
    two_links.send(link(2, "eth0", up=False))
    two_links.send(DEFAULT)
    two_links.send(link(2, "eth0", up=False))
    assert two_links.view().default_routes == 1


def test_r1_a_new_link_that_is_down_has_no_routes(host: Host) -> None:
    host.send(DEFAULT)
    host.send(link(2, "eth0", up=False))
    assert host.view().default_routes == 0


def test_r8_ipv6_routes_go_silently_where_the_sysctl_says_so(two_links: Host) -> None:
    two_links.engine.set_v6_silent_down(on=True)
    two_links.send(DEFAULT6, MULTIPATH6)
    two_links.send(link(2, "eth0", up=False))
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.count("inferred.R8") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE6, 8)]


# R2


def test_r2_the_last_ipv4_address_takes_the_routes_of_its_link_along(two_links: Host) -> None:
    second = addr("192.0.2.11/24", 2)
    two_links.send(second, DEFAULT, DEFAULT6)
    two_links.send(gone(ADDRESS))
    assert two_links.view().default_routes == 1
    two_links.send(gone(second))
    assert two_links.view().default_routes == 0
    assert two_links.count("inferred.R2") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 2)]


def test_r2_ipv6_addresses_do_not_count(two_links: Host) -> None:
    six = addr("2001:db8::10/64", 2)
    two_links.send(six, DEFAULT6)
    two_links.send(gone(six))
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.dirt() == []


# R3

ON_OBJECT = route(oif=2, via="192.0.2.1", nh_id=7)


def test_r3_a_deleted_nexthop_takes_its_ipv4_routes_along(two_links: Host) -> None:
    two_links.send(nexthop(7, oif=2, via="192.0.2.1"), ON_OBJECT)
    two_links.send(gone(nexthop(7)))
    assert two_links.view().default_routes == 0
    assert two_links.count("inferred.R3") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 3)]


def test_r3_ipv6_routes_of_a_deleted_nexthop_are_asked_for(two_links: Host) -> None:
    two_links.send(nexthop(7, oif=2, family=AF_INET6))
    two_links.send(route(family=AF_INET6, oif=2, nh_id=7))
    two_links.send(gone(nexthop(7)))
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE6, 3)]


def test_r3_a_group_goes_with_its_last_member(two_links: Host) -> None:
    members = [nexthop(1, oif=2), nexthop(2, oif=3)]
    two_links.send(*members, nexthop(9, members=((1, 1), (2, 1))), route(nh_id=9))
    two_links.send(gone(nexthop(1)))
    assert two_links.view().default_routes == 1
    assert two_links.row("192.0.2.10").values[3] > two_links.row("198.51.100.10").values[3]
    two_links.send(gone(nexthop(2)))
    assert two_links.view().default_routes == 0
    assert two_links.count("nexthops") == 0
    assert two_links.count("inferred.R3") == 2, "the group and the route"


@pytest.mark.parametrize("dead", [link(2, "eth0", carrier=False), link(2, "eth0", up=False)])
def test_r3_a_link_without_carrier_has_no_nexthops(two_links: Host, dead: Record) -> None:
    two_links.send(nexthop(7, oif=2), nexthop(8, oif=3), route(nh_id=7), route(nh_id=8, metric=2))
    two_links.send(dead)
    assert two_links.view().default_routes == 1
    assert two_links.count("nexthops") == 1
    assert Dirty(Scope.NEXTHOP, 0, 0, lost=False, rule=3) in two_links.dirt()


def test_r3_an_unknown_nexthop_is_asked_for(two_links: Host) -> None:
    two_links.send(ON_OBJECT)
    assert two_links.dirt() == [], "its message names the legs"
    two_links.send(route(nh_id=8, metric=2))
    assert two_links.dirt() == [Dirty(Scope.NEXTHOP, 0, 0, lost=False, rule=3)]


# R4


def test_r4_routes_go_with_their_preferred_source(two_links: Host) -> None:
    two_links.send(addr("192.0.2.11/24", 2), route(via="192.0.2.1", oif=2, src="192.0.2.11"))
    two_links.send(gone(addr("192.0.2.11/24", 2)))
    assert two_links.view().default_routes == 0
    assert two_links.count("inferred.R4") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 4)]


def test_r4_an_address_that_is_elsewhere_too_is_not_gone(two_links: Host) -> None:
    two_links.send(addr("192.0.2.11/24", 2), addr("192.0.2.11/32", 3))
    two_links.send(route(via="192.0.2.1", oif=2, src="192.0.2.11"))
    two_links.send(gone(addr("192.0.2.11/24", 2)))
    assert two_links.view().default_routes == 1
    assert two_links.dirt() == []


def test_r4_ipv6_routes_only_lose_their_preferred_source(two_links: Host) -> None:
    source = addr("2001:db8::10/64", 2)
    two_links.send(source, route(via="fe80::1", oif=2, src="2001:db8::10"))
    assert two_links.row("2001:db8::10").values[4] == 0
    two_links.send(gone(source))
    two_links.send(addr("2001:db8::10/128", 2))
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.row("2001:db8::10").values[4] == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE6, 4)]
    assert two_links.count("inferred.R4") == 0


def test_r4_addresses_go_with_their_link(two_links: Host) -> None:
    two_links.send(route(via="198.51.100.1", oif=3, src="192.0.2.10"))
    two_links.send(gone(link(2, "eth0")))
    assert [row.address for row in two_links.rows()] == ["198.51.100.10"]
    assert two_links.count("inferred.R4") == 1


# R5


def test_r5_a_link_that_joins_a_vrf_loses_its_ipv4_routes(two_links: Host) -> None:
    two_links.send(link(5, "red", kind="vrf", vrf_table=100), DEFAULT, DEFAULT6)
    two_links.send(link(2, "eth0", master=5))
    assert two_links.view().default_routes == 0
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.count("inferred.R5") == 1
    assert two_links.dirt() == [
        Dirty(Scope.ADDR4, 2, 0, lost=False, rule=5),
        Dirty(Scope.ADDR6, 2, 0, lost=False, rule=5),
        wanted(Scope.ROUTE4, 5),
        wanted(Scope.ROUTE6, 5),
    ]


def test_r5_a_bridge_is_no_vrf(two_links: Host) -> None:
    two_links.send(link(5, "br0", kind="bridge"), DEFAULT)
    two_links.send(link(2, "eth0", master=5))
    assert two_links.view().default_routes == 1
    assert two_links.dirt() == []


# R6


@pytest.mark.parametrize("dead", [link(2, "eth0", carrier=False), gone(link(2, "eth0"))])
def test_r6_what_comes_back_with_a_link_is_asked_for(two_links: Host, dead: Record) -> None:
    two_links.send(dead)
    two_links.send(MULTIPATH, DEFAULT6, nexthop(7, oif=2))
    two_links.send(link(2, "eth0"))
    assert two_links.dirt() == [
        Dirty(Scope.NEXTHOP, 0, 0, lost=False, rule=6),
        wanted(Scope.ROUTE4, 6),
        wanted(Scope.ROUTE6, 6),
    ]


# R7


def test_r7_deleting_what_is_not_known_does_nothing(two_links: Host) -> None:
    two_links.send(DEFAULT)
    before = two_links.engine.snapshot(), two_links.dirt()
    two_links.send(
        gone(link(9, "gone")),
        gone(addr("10.0.0.1/8", 2)),
        gone(nexthop(5)),
        gone(route(via="192.0.2.1", oif=2, metric=77)),
        after=0,
    )
    assert (two_links.engine.snapshot(), two_links.dirt()) == before
    assert two_links.count("ignored") == 4


# R9


def test_r9_a_replaced_ipv4_route_was_removed_unannounced(two_links: Host) -> None:
    two_links.send(DEFAULT)
    two_links.send(route(via="198.51.100.1", oif=3, nl_flags=REPLACE))
    assert two_links.best() == "198.51.100.10"
    assert two_links.view().default_routes == 1
    assert two_links.count("inferred.R9") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 9)]


def test_r9_replacing_nothing_is_adding(two_links: Host) -> None:
    two_links.send(route(via="192.0.2.1", oif=2, nl_flags=REPLACE))
    assert two_links.best() == "192.0.2.10"
    assert two_links.dirt() == []


def test_r9_an_ipv6_replace_stands_for_all_routes_of_the_key(two_links: Host) -> None:
    two_links.send(DEFAULT6, route(via="fe80::2", oif=3, metric=1024))
    two_links.send(route(via="fe80::3", oif=3, metric=1024, nl_flags=REPLACE))
    assert two_links.view("ipv6").default_routes == 1
    assert two_links.count("inferred.R9") == 2
    assert two_links.dirt() == [wanted(Scope.ROUTE6, 9)]


@pytest.mark.parametrize(
    ("record", "dirty"),
    [
        (truncated(MULTIPATH), wanted(Scope.ROUTE4, 9)),
        (truncated(gone(MULTIPATH6)), wanted(Scope.ROUTE6, 9)),
        (truncated(nexthop(1, members=((2, 1),))), Dirty(Scope.NEXTHOP, 0, 0, lost=False, rule=9)),
    ],
)
def test_r9_a_record_that_was_cut_is_asked_for(
    two_links: Host, record: Record, dirty: Dirty
) -> None:
    two_links.send(record)
    assert two_links.dirt() == [dirty]


def test_r9_a_cut_entry_of_a_dump_is_not_asked_for_again(two_links: Host) -> None:
    two_links.send(begin(Scope.ROUTE4), entry(truncated(MULTIPATH)), end(Scope.ROUTE4))
    assert two_links.dirt() == []


# R10


def test_r10_a_route_ends_with_its_router_advertisement(two_links: Host) -> None:
    two_links.send(addr("2001:db8::10/64", 2))
    two_links.send(route(via="fe80::1", oif=2, proto=RTPROT_RA, expires=30))
    due = two_links.now + 30_000 * MS
    assert two_links.engine.deadline() == due
    two_links.engine.tick(due - 1)
    assert two_links.view("ipv6").default_routes == 1
    two_links.engine.tick(due)
    assert two_links.view("ipv6").default_routes == 0
    assert two_links.count("inferred.R10") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE6, 10)]
    assert two_links.engine.deadline() == NEVER


def test_r10_a_new_advertisement_moves_the_end(two_links: Host) -> None:
    announced = route(via="fe80::1", oif=2, proto=RTPROT_RA, expires=30)
    two_links.send(announced)
    two_links.send(announced, after=20_000 * MS)
    assert two_links.engine.deadline() == two_links.now + 30_000 * MS


@pytest.mark.parametrize(
    "other",
    [
        route(via="fe80::1", oif=2, expires=30),
        route(via="192.0.2.1", oif=2, proto=RTPROT_RA, expires=30),
        route(via="fe80::1", oif=2, proto=RTPROT_RA),
    ],
)
def test_r10_other_routes_do_not_end(two_links: Host, other: Record) -> None:
    two_links.send(other)
    assert two_links.engine.deadline() == NEVER


# Names and rules that meet dumps


def test_a_name_that_two_links_claim_is_asked_for_once(host: Host) -> None:
    host.send(link(2, "eth0"), link(3, "eth1"))
    host.send(link(3, "eth0"))
    assert host.dirt() == [Dirty(Scope.LINK, 0, 0, lost=False, rule=0)]
    host.send(begin(Scope.LINK), link(4, "eth0"))
    assert host.dirt() == []
    host.send(end(Scope.LINK))
    host.send(link(5, "eth0"))
    assert host.scopes() == [Scope.LINK]


def test_a_rule_voids_the_dump_of_its_scope(two_links: Host) -> None:
    two_links.send(DEFAULT)
    two_links.send(begin(Scope.ROUTE4), entry(DEFAULT), link(2, "eth0", up=False))
    two_links.send(entry(DEFAULT), end(Scope.ROUTE4))
    assert two_links.view().default_routes == 0, "the rule wins over an older dump"
    assert two_links.count("voided.route4") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 1)]


def test_a_dump_after_a_rule_corrects_it(two_links: Host) -> None:
    two_links.send(DEFAULT)
    two_links.send(link(2, "eth0", up=False))
    two_links.send(begin(Scope.ROUTE4), entry(DEFAULT), end(Scope.ROUTE4), after=MS)
    assert two_links.view().default_routes == 1
    assert two_links.dirt() == []


def test_a_rule_does_not_reach_into_other_tables(host: Host) -> None:
    host.engine.set_policy(1, policy(table=7))
    for scope in (Scope.ROUTE4, Scope.ROUTE6):
        host.send(begin(scope), end(scope))
    host.send(link(2, "eth0"), route(via="192.0.2.1", oif=2, table=7))
    host.send(link(2, "eth0", up=False))
    assert host.dirt() == [Dirty(Scope.ROUTE4, 0, 7, lost=False, rule=1)]


# R11


def test_r11_a_default_that_a_trace_saw_go_is_asked_for(two_links: Host) -> None:
    two_links.send(DEFAULT)
    two_links.send(flush(oif=2))
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 11)]
    assert two_links.view().default_routes == 1, "only the rules remove"
    assert two_links.count("flushed") == 1
    assert two_links.count("applied.flush.del") == 1


@pytest.mark.parametrize(
    "record",
    [flush("10.0.0.0/8"), flush(table=9), flush(family=AF_INET6), rule(100), gone(rule(100))],
)
def test_r11_other_removals_and_policy_rules_mean_nothing(two_links: Host, record: Record) -> None:
    two_links.send(DEFAULT)
    before = two_links.view()
    two_links.send(record)
    assert two_links.dirt() == []
    assert two_links.count("flushed") == 0
    assert two_links.view() == before


def test_r11_a_removal_during_a_dump_voids_it(two_links: Host) -> None:
    two_links.send(begin(Scope.ROUTE4), entry(DEFAULT), flush(), end(Scope.ROUTE4))
    assert two_links.count("voided.route4") == 1
    assert two_links.dirt() == [wanted(Scope.ROUTE4, 11)]
