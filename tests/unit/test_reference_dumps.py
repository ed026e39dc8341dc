"""Dumps that meet events, losses and audits, on both engines."""

from __future__ import annotations

import pytest

from tests.build import (
    DEPRECATED,
    MS,
    REPLACE,
    Host,
    addr,
    begin,
    end,
    entry,
    fail,
    gone,
    leg,
    link,
    loss,
    nexthop,
    policy,
    route,
)
from tracker.capture.record import LEGS_MAX, Record, describe, iter_records
from tracker.model import AF_INET6, Dirty, Scope

ETH0, ETH1 = link(2, "eth0"), link(3, "eth1")
TEN, TWENTY = addr("192.0.2.10/24", 2), addr("192.0.2.20/24", 3)
DEFAULT = route(via="192.0.2.1", oif=2)
OTHER = route(via="198.51.100.1", oif=3, metric=5)


def state(host: Host) -> list[str]:
    return [describe(record) for record in iter_records(host.engine.snapshot())]


def lines(*records: Record) -> list[str]:
    return [describe(record) for record in records]


def lost(scope: Scope, ifindex: int = 0, table: int = 0) -> Dirty:
    return Dirty(scope, ifindex, table, lost=True, rule=0)


# What a dump does to the state


@pytest.mark.parametrize(
    ("scope", "old", "new"),
    [
        (Scope.LINK, [ETH0], [ETH1]),
        (Scope.ADDR4, [TEN], [TWENTY]),
        (Scope.ADDR6, [addr("2001:db8::1/64", 2)], [addr("2001:db8::2/64", 2)]),
        (Scope.NEXTHOP, [nexthop(1, oif=2)], [nexthop(2, oif=2)]),
        (Scope.ROUTE4, [DEFAULT], [OTHER]),
        (Scope.ROUTE6, [route(via="fe80::1", oif=2)], [route(via="fe80::1", oif=2, metric=5)]),
    ],
)
def test_what_a_dump_does_not_show_is_swept(
    host: Host, scope: Scope, old: list[Record], new: list[Record]
) -> None:
    host.send(*old)
    host.send(begin(scope), *map(entry, new))
    assert state(host) == lines(*old, *new)
    host.send(end(scope))
    assert state(host) == lines(*new)
    assert host.dirt() == []


def test_a_dump_of_one_link_sweeps_that_link_alone(host: Host) -> None:
    host.send(TEN, addr("192.0.2.11/24", 2), TWENTY)
    host.dump(Scope.ADDR4, TEN, ifindex=2)
    assert state(host) == lines(TEN, TWENTY)


def test_a_dump_of_one_table_sweeps_that_table_alone(host: Host) -> None:
    host.engine.set_policy(1, policy(table=7))
    seven = route(oif=2, table=7)
    host.send(DEFAULT, OTHER, seven, route(oif=2, metric=9, table=7))
    host.send(begin(Scope.ROUTE4, table=7), entry(seven), end(Scope.ROUTE4))
    assert state(host) == lines(seven, DEFAULT, OTHER)


def test_ipv4_and_ipv6_are_swept_apart(host: Host) -> None:
    six = addr("2001:db8::1/64", 2)
    host.send(TEN, six, DEFAULT, route(via="fe80::1", oif=2))
    host.dump(Scope.ROUTE4)
    assert state(host) == lines(TEN, six, route(via="fe80::1", oif=2))


def test_entries_replace_the_list_of_their_key_in_order(host: Host) -> None:
    one, two, three = (route(via=f"192.0.2.{last}", oif=2) for last in (1, 2, 3))
    host.send(one, two, three)
    host.dump(Scope.ROUTE4, two, one)
    assert state(host) == lines(two, one)


def test_addresses_on_a_link_that_is_swept_stay(host: Host) -> None:
    host.send(ETH0, ETH1, TEN)
    host.dump(Scope.LINK, ETH1)
    assert state(host) == lines(ETH1, TEN)
    assert host.count("inferred.R1") == 0


def test_a_dump_of_links_still_acts_on_edges(host: Host) -> None:
    host.send(ETH0, DEFAULT)
    host.dump(Scope.LINK, link(2, "eth0", up=False))
    assert host.view().default_routes == 0
    assert host.count("inferred.R1") == 1


def test_a_dump_of_addresses_fires_no_rule(host: Host) -> None:
    host.send(ETH0, TEN, DEFAULT)
    host.dump(Scope.ADDR4, TWENTY)
    assert host.view().default_routes == 1
    assert host.dirt() == []


def test_routes_go_with_a_nexthop_object_that_a_dump_lacks(host: Host) -> None:
    """On a link without carrier the kernel ends both, some time later, and tells of neither."""
    host.send(ETH0, TEN, nexthop(7, oif=2), DEFAULT, route(nh_id=7, metric=3))
    host.send(route(family=AF_INET6, nh_id=7, oif=2, metric=3))
    host.dump(Scope.NEXTHOP)
    assert host.view().default_routes == 1
    assert {dirty.scope: dirty.rule for dirty in host.engine.dirty()} == {
        Scope.ROUTE4: 3,
        Scope.ROUTE6: 3,
    }
    assert host.count("inferred.R3") == 1


def test_an_entry_without_a_dump_is_an_event(host: Host) -> None:
    host.send(entry(TEN), entry(route(oif=2, nl_flags=REPLACE)))
    host.send(begin(Scope.ADDR4, ifindex=3), entry(addr("192.0.2.11/24", 2)), end(Scope.ADDR4))
    assert len(state(host)) == 3


def test_an_end_without_a_dump_is_ignored(host: Host) -> None:
    host.send(TEN, end(Scope.ADDR4))
    assert state(host) == lines(TEN)
    assert host.count("ignored") == 1


# Events win


def test_a_change_since_the_begin_wins(host: Host) -> None:
    host.send(TEN)
    host.send(begin(Scope.ADDR4))
    host.send(addr("192.0.2.10/24", 2, flags=DEPRECATED), TWENTY)
    host.send(entry(TEN), end(Scope.ADDR4))
    assert host.row("192.0.2.10").flags == DEPRECATED
    assert state(host) == lines(TEN, TWENTY), "what came since is not swept"
    assert host.count("ignored") == 1


def test_a_change_before_the_begin_gives_way(host: Host) -> None:
    host.send(addr("192.0.2.10/24", 2, flags=DEPRECATED))
    host.send(begin(Scope.ADDR4), entry(TEN), end(Scope.ADDR4), after=1)
    assert host.row("192.0.2.10").flags != DEPRECATED


@pytest.mark.parametrize(
    ("scope", "record"),
    [
        (Scope.LINK, ETH0),
        (Scope.ADDR4, TEN),
        (Scope.NEXTHOP, nexthop(1, oif=2)),
        (Scope.ROUTE4, DEFAULT),
    ],
)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("before", "stays_away"), [(0, True), (19 * MS, True), (20 * MS, False), (500 * MS, False)]
)
def test_a_deletion_shortly_before_the_begin_wins(
    host: Host, scope: Scope, record: Record, known: bool, before: int, stays_away: bool
) -> None:
    if known:
        host.send(record)
    host.send(gone(record))
    host.send(begin(scope), after=before)
    host.send(entry(record), end(scope))
    assert state(host) == ([] if stays_away else lines(record))


def test_a_deletion_during_the_dump_wins(host: Host) -> None:
    host.send(begin(Scope.ADDR4), entry(TWENTY))
    host.send(gone(TEN), entry(TEN), end(Scope.ADDR4))
    assert state(host) == lines(TWENTY)


def test_the_look_back_holds_where_the_key_has_come_back(host: Host) -> None:
    host.send(DEFAULT, OTHER)
    host.send(gone(DEFAULT), route(via="192.0.2.9", oif=2))
    host.send(begin(Scope.ROUTE4), entry(DEFAULT), entry(OTHER), end(Scope.ROUTE4), after=MS)
    assert state(host) == lines(route(via="192.0.2.9", oif=2), OTHER)


def test_addresses_that_went_with_their_link_stay_away(host: Host) -> None:
    host.send(ETH0, TEN, TWENTY)
    host.send(gone(ETH0))
    host.send(begin(Scope.ADDR4), entry(TEN), entry(TWENTY), end(Scope.ADDR4), after=MS)
    assert state(host) == lines(TWENTY)


def test_one_changed_alias_protects_the_whole_key(host: Host) -> None:
    one, two = route(via="192.0.2.1", oif=2), route(via="192.0.2.2", oif=2)
    host.send(one)
    host.send(begin(Scope.ROUTE4), entry(one))
    host.send(two)
    host.send(entry(route(via="192.0.2.3", oif=2)), end(Scope.ROUTE4))
    assert state(host) == lines(two, one)


# Dirt, losses and failures


def test_a_loss_makes_its_scopes_stale(host: Host) -> None:
    host.send(loss(Scope.ADDR4, Scope.LINK))
    assert host.dirt() == [lost(Scope.LINK), lost(Scope.ADDR4)]
    host.engine.lose((Scope.ROUTE6,))
    assert host.dirt()[-1] == lost(Scope.ROUTE6)


def test_a_begin_takes_the_dirt_off(host: Host) -> None:
    host.send(loss(Scope.ADDR4, Scope.ADDR6))
    host.send(begin(Scope.ADDR4))
    assert host.dirt() == [lost(Scope.ADDR6)]


def test_a_begin_takes_off_only_what_it_covers(host: Host) -> None:
    host.send(link(5, "red", kind="vrf", vrf_table=9), ETH0, ETH1)
    host.send(link(2, "eth0", master=5), link(3, "eth1", master=5))
    host.send(loss(Scope.ADDR6))
    host.send(begin(Scope.ADDR4, ifindex=2), begin(Scope.ADDR6))
    assert host.dirt() == [Dirty(Scope.ADDR4, 3, 0, lost=False, rule=5)]


def test_a_loss_voids_the_dump_that_is_open(host: Host) -> None:
    host.send(TEN)
    host.send(begin(Scope.ADDR4), loss(), entry(TWENTY), end(Scope.ADDR4))
    assert state(host) == lines(TEN, TWENTY), "shown is taken, nothing is swept"
    assert lost(Scope.ADDR4) in host.dirt()
    assert host.count("voided.addr4") == 1


def test_a_voided_dump_gives_its_dirt_back(host: Host) -> None:
    host.send(ETH0, DEFAULT)
    host.send(loss(Scope.ROUTE4))
    host.send(begin(Scope.ROUTE4), link(2, "eth0", up=False), end(Scope.ROUTE4))
    assert host.dirt() == [
        lost(Scope.ROUTE4),
        Dirty(Scope.ROUTE4, 0, 254, lost=False, rule=1),
    ]


def test_a_second_begin_replaces_the_first(host: Host) -> None:
    host.send(TEN, TWENTY, loss(Scope.ADDR4))
    host.send(begin(Scope.ADDR4), entry(TEN), begin(Scope.ADDR4, ifindex=2), end(Scope.ADDR4))
    assert host.dirt() == [lost(Scope.ADDR4)]
    assert state(host) == lines(TWENTY)


def test_a_failed_dump_keeps_what_there_is(host: Host) -> None:
    host.send(TEN)
    host.send(begin(Scope.ADDR4), entry(TWENTY), fail(Scope.ADDR4))
    assert state(host) == lines(TEN, TWENTY)
    assert host.dirt() == [lost(Scope.ADDR4)]
    host.send(begin(Scope.ROUTE4, table=254), fail(Scope.ROUTE4))
    assert host.dirt()[-1] == lost(Scope.ROUTE4, table=254)


def test_a_dump_that_could_not_begin_has_failed_too(host: Host) -> None:
    host.send(fail(Scope.ADDR6, ifindex=2))
    assert host.dirt() == [lost(Scope.ADDR6, ifindex=2)]


def test_a_reason_that_is_worse_stays(host: Host) -> None:
    host.engine.set_policy(0, policy(table=9))
    host.send(ETH0, route(oif=2, table=9), link(2, "eth0", up=False))
    assert lost(Scope.ROUTE4, table=9) in host.dirt()
    assert len([dirty for dirty in host.dirt() if dirty.scope is Scope.ROUTE4]) == 1


# Dumps that show nothing


def test_an_empty_address_dump_is_believed_the_second_time(host: Host) -> None:
    host.send(TEN)
    host.dump(Scope.ADDR4)
    assert state(host) == lines(TEN)
    assert host.dirt() == [lost(Scope.ADDR4)]
    host.dump(Scope.ADDR4)
    assert state(host) == []
    assert host.dirt() == []


def test_a_full_dump_between_two_empty_ones_breaks_the_row(host: Host) -> None:
    host.send(TEN)
    host.dump(Scope.ADDR4)
    host.dump(Scope.ADDR4, TEN)
    host.dump(Scope.ADDR4)
    assert state(host) == lines(TEN)


def test_an_empty_dump_of_links_is_never_believed(host: Host) -> None:
    for _ in range(3):
        host.dump(Scope.LINK)
        assert host.dirt() == [lost(Scope.LINK)]


@pytest.mark.parametrize("scope", [Scope.NEXTHOP, Scope.ROUTE4, Scope.ROUTE6])
def test_other_empty_dumps_are_believed(host: Host, scope: Scope) -> None:
    host.send(nexthop(1, oif=2), DEFAULT, route(oif=2, via="fe80::1"))
    host.dump(scope)
    assert len(state(host)) == 2
    assert host.dirt() == []


def test_an_empty_dump_of_one_link_is_believed(host: Host) -> None:
    host.send(TEN, TWENTY)
    host.dump(Scope.ADDR4, ifindex=2)
    assert state(host) == lines(TWENTY)


def test_an_empty_dump_is_believed_where_nothing_was(host: Host) -> None:
    host.dump(Scope.ADDR4)
    assert host.dirt() == []


# Dumps that may have ended at a route too large for an answer

LARGE = route(legs=tuple(leg(2, f"192.0.2.{n}") for n in range(LEGS_MAX)))
LARGE6 = route(family=AF_INET6, legs=tuple(leg(2, f"fe80::{n + 1:x}") for n in range(LEGS_MAX)))


def end_dump(host: Host, scope: Scope, *shown: Record, unproven: bool, table: int = 0) -> None:
    host.send(begin(scope, table=table), *map(entry, shown), end(scope, unproven=unproven))


@pytest.mark.parametrize(("scope", "large"), [(Scope.ROUTE4, LARGE), (Scope.ROUTE6, LARGE6)])
def test_a_large_route_that_may_not_fit_any_answer_stays(
    host: Host, scope: Scope, large: Record
) -> None:
    host.send(large, OTHER)
    for _ in range(3):
        end_dump(host, scope, unproven=True)
        assert sorted(state(host)) == sorted(lines(large, OTHER))
        assert host.dirt() == [lost(scope)]


def test_a_dump_of_a_table_says_nothing_of_large_routes_in_others(host: Host) -> None:
    host.engine.set_policy(1, policy(table=7))
    host.clean()
    host.send(LARGE, route(via="192.0.2.1", oif=2, table=7))
    end_dump(host, Scope.ROUTE4, unproven=True, table=7)
    assert state(host) == lines(LARGE)


@pytest.mark.parametrize(
    ("known", "shown", "unproven"),
    [
        (LARGE, [], False),
        (LARGE, [DEFAULT], True),
        (route(legs=(leg(2, "192.0.2.1"),) * (LEGS_MAX - 1)), [], True),
        (route(legs=(leg(2, "192.0.2.1"),) * LEGS_MAX, nh_id=4), [], True),
    ],
    ids=["whole", "another in its place", "not large", "a nexthop object"],
)
def test_other_routes_that_are_not_shown_are_gone(
    host: Host, known: Record, shown: list[Record], unproven: bool
) -> None:
    host.send(known)
    end_dump(host, Scope.ROUTE4, *shown, unproven=unproven)
    assert state(host) == lines(*shown)


def test_an_event_for_a_large_route_leaves_the_dump_doubtful(host: Host) -> None:
    """It need not be told twice that the route is there."""
    host.send(begin(Scope.ROUTE4), LARGE, end(Scope.ROUTE4, unproven=True))
    assert state(host) == lines(LARGE)
    assert host.dirt() == [Dirty(Scope.ROUTE4, 0, 0, lost=False, rule=9)]
