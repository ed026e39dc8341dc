"""Tiers, fallback, rivals and what else a view says, on both engines."""

from __future__ import annotations

import pytest

from tests.build import (
    BLACKHOLE,
    DEPRECATED,
    TENTATIVE,
    Host,
    addr,
    begin,
    by,
    end,
    entry,
    gone,
    leg,
    link,
    loss,
    policy,
    route,
)
from tracker.capture.record import Kind, Record, Task, decode, describe
from tracker.engine.base import Engine
from tracker.model import FAMILIES, Criterion, PolicyTable, Reject, Scope, Tier
from tracker.policy.compile import default_route_policy
from tracker.policy.criteria import DEFAULT_ORDER

LO = link(1, "lo", loopback=True)
ETH0, ETH1 = link(2, "eth0"), link(3, "eth1")
TEN, TWENTY = addr("192.0.2.10/24", 2), addr("198.51.100.20/24", 3)
ON_LO = addr("203.0.113.1/32", 1)
DEFAULT = route(via="192.0.2.1", oif=2)


def compiled(fallback: str) -> PolicyTable:
    return default_route_policy(families=FAMILIES, fallback=fallback)


@pytest.fixture
def host(engine: Engine) -> Host:
    host = Host(engine)
    host.send(LO, ETH0, ETH1)
    return host


# Tiers


def test_an_address_on_the_default_routes_link_comes_first(host: Host) -> None:
    host.send(TEN, TWENTY, ON_LO, DEFAULT)
    assert [(row.address, row.tier, row.reject) for row in host.rows()] == [
        ("192.0.2.10", Tier.ROUTE, Reject.NONE),
        ("198.51.100.20", Tier.FALLBACK, Reject.NO_DEFAULT_ROUTE),
        ("203.0.113.1", Tier.LOOPBACK, Reject.NO_DEFAULT_ROUTE),
    ]
    assert [row.own_reject for row in host.rows()] == [Reject.NONE] * 3


def test_lo_counts_where_the_uplinks_have_no_address(host: Host) -> None:
    host.send(ON_LO, DEFAULT)
    assert host.best() == "203.0.113.1"
    host.send(TEN)
    assert host.best() == "192.0.2.10"


def test_lo_does_not_count_without_a_default_route(host: Host) -> None:
    host.send(ON_LO)
    assert host.best() is None
    assert host.row("203.0.113.1").tier is Tier.NONE
    assert host.row("203.0.113.1").reject is Reject.NO_DEFAULT_ROUTE


def test_a_default_over_lo_leads_nowhere(host: Host) -> None:
    host.send(ON_LO, route(oif=1))
    assert host.row("203.0.113.1").tier is Tier.LOOPBACK


def test_an_address_that_a_default_names_counts_wherever_it_is(host: Host) -> None:
    host.send(ON_LO, TEN, route(via="192.0.2.1", oif=2, src="203.0.113.1"))
    assert host.row("203.0.113.1").tier is Tier.ROUTE
    assert host.best() == "203.0.113.1"


def test_a_rejected_address_keeps_its_own_reason(host: Host) -> None:
    host.send(addr("192.0.2.10/24", 2, flags=TENTATIVE), DEFAULT)
    (row,) = host.rows()
    assert (row.reject, row.own_reject, row.tier, row.rank) == (
        Reject.TENTATIVE,
        Reject.TENTATIVE,
        Tier.ROUTE,
        0,
    )


def test_rejected_rows_come_last_by_address(host: Host) -> None:
    low = addr("10.0.0.1/8", 3)
    bad = addr("192.0.2.11/24", 2, flags=TENTATIVE)
    host.send(bad, TWENTY, TEN, addr("192.0.2.9/24", 2), low, DEFAULT)
    listed = ["192.0.2.9", "192.0.2.10", "10.0.0.1", "192.0.2.11", "198.51.100.20"]
    assert [row.address for row in host.rows()] == listed
    assert [row.rank for row in host.rows()] == [1, 2, 0, 0, 0]


# Fallback


@pytest.mark.parametrize(
    ("fallback", "records", "best"),
    [
        ("none", [TEN], None),
        ("auto", [TEN], "192.0.2.10"),
        ("auto", [TEN, addr("192.0.2.10/32", 3)], "192.0.2.10"),
        ("auto", [TEN, TWENTY], None),
        ("auto", [TEN, route(oif=3)], None),
        ("auto", [TEN, route(oif=3, via="fe80::1")], None),
        ("auto", [TEN, route(oif=3, kind=BLACKHOLE)], "192.0.2.10"),
        ("auto", [TEN, route(oif=3, table=7)], "192.0.2.10"),
        ("auto", [TEN, addr("2001:db8::1/64", 3)], "192.0.2.10"),
        ("auto", [TEN, link(9, "docker0"), addr("172.17.0.1/16", 9)], "192.0.2.10"),
        ("auto", [ON_LO], None),
        ("physical", [TEN, TWENTY], "192.0.2.10"),
        ("physical", [TEN, TWENTY, route(oif=3)], "198.51.100.20"),
        ("physical", [TEN, route(oif=3)], "192.0.2.10"),
        ("physical", [link(2, "docker0"), TEN], None),
        ("physical", [ON_LO], None),
        ("interface:eth1", [TEN, TWENTY], "198.51.100.20"),
        ("interface:eth?", [TEN, TWENTY], "192.0.2.10"),
        ("interface:eth1", [TEN], None),
        ("interface:eth1", [TEN, TWENTY, DEFAULT], "192.0.2.10"),
        ("interface:lo", [TEN, ON_LO], "203.0.113.1"),
    ],
)
def test_the_fallback_takes_what_it_says(
    engine: Engine, fallback: str, records: list[Record], best: str | None
) -> None:
    host = Host(engine, compiled(fallback))
    host.send(LO, ETH0, ETH1)
    host.send(*records)
    assert host.best() == best
    ranked = [row.address for row in host.rows() if row.rank]
    assert ranked[:1] == ([best] if best else [])


def test_auto_gives_way_to_the_other_familys_default_route(host: Host) -> None:
    host.send(TEN)
    assert host.best() == "192.0.2.10"
    host.send(route(oif=3, via="fe80::1"))
    assert host.best() is None
    assert host.row("192.0.2.10").reject is Reject.NO_DEFAULT_ROUTE
    assert host.view().other_defaults == 1


def test_the_view_counts_what_the_fallback_could_take(host: Host) -> None:
    host.send(TEN, TWENTY, addr("192.0.2.10/32", 3), addr("10.0.0.1/8", 2, flags=TENTATIVE))
    assert host.view().fallback_count == 2


# The incumbent


def test_the_incumbent_is_looked_for_by_address(host: Host) -> None:
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    assert host.view().incumbent is None
    host.send(addr("192.0.2.10/24", 3), addr("192.0.2.10/32", 9))
    incumbent = host.view().incumbent
    assert incumbent is not None
    assert (incumbent.ifindex, incumbent.own_reject) == (3, Reject.NONE)
    host.send(gone(addr("192.0.2.10/24", 3)))
    incumbent = host.view().incumbent
    assert incumbent is not None
    assert (incumbent.ifindex, incumbent.own_reject) == (9, Reject.LINK_DOWN)


def test_the_incumbents_best_entry_counts(host: Host) -> None:
    host.send(addr("192.0.2.10/24", 2), addr("192.0.2.10/24", 3), route(oif=3))
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    incumbent = host.view().incumbent
    assert incumbent is not None
    assert (incumbent.ifindex, incumbent.rank) == (3, 1)


def test_a_rejected_incumbent_is_the_one_with_the_first_reason(host: Host) -> None:
    tentative = addr("192.0.2.10/24", 3, flags=TENTATIVE)
    host.send(addr("192.0.2.10/24", 9), tentative)
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    incumbent = host.view().incumbent
    assert incumbent is not None
    assert incumbent.own_reject is Reject.TENTATIVE


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([TEN, DEFAULT], -1),
        ([TWENTY, DEFAULT, addr("192.0.2.11/24", 2)], -1),
        ([TEN, TWENTY, DEFAULT], -1),
        ([TEN, TWENTY, route(oif=3)], -2),
        (
            [TEN, TWENTY, route(oif=2, metric=5), route(oif=3)],
            DEFAULT_ORDER.index(Criterion.DEFAULT_ROUTE),
        ),
        (
            [addr("192.0.2.10/24", 2, flags=DEPRECATED), addr("192.0.2.30/24", 2), DEFAULT],
            DEFAULT_ORDER.index(Criterion.NOT_DEPRECATED),
        ),
    ],
)
def test_the_first_difference_to_the_incumbent_is_told(
    host: Host, records: list[Record], expected: int
) -> None:
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    host.send(*records)
    assert host.view().first_diff == expected


def test_the_address_alone_can_be_the_difference(engine: Engine) -> None:
    host = Host(engine, policy(criteria=(Criterion.IFINDEX,)))
    host.send(ETH0, TEN, addr("192.0.2.9/24", 2), DEFAULT)
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    assert host.view().first_diff == 1


# Rivals and defaults


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (addr("198.51.100.20/24", 2), True),
        (addr("192.0.2.20/24", 2), False),
        (addr("192.0.2.20/32", 2, flags=0), False),
        (addr("192.0.0.20/16", 2), False),
        (addr("198.51.100.20/24", 2, flags=DEPRECATED), False),
        (addr("198.51.100.20/24", 2, flags=TENTATIVE), False),
        (addr("198.51.100.20/24", 3), False),
        (addr("198.51.100.20/24", 2, cstamp=9), True),
    ],
)
def test_another_network_on_equal_terms_is_a_rival(
    host: Host, other: Record, expected: bool
) -> None:
    host.send(TEN, route(oif=2), other)
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    assert host.view().rival is expected


def test_host_addresses_are_networks_of_their_own(host: Host) -> None:
    host.send(addr("192.0.2.10/32", 2), addr("192.0.2.11/32", 2), route(oif=2))
    assert host.view().rival


def test_the_gateway_settles_it(host: Host) -> None:
    host.send(TEN, addr("198.51.100.20/24", 2), DEFAULT)
    assert not host.view().rival


def test_a_policy_without_the_last_criteria_has_rivals_by_address_alone(engine: Engine) -> None:
    host = Host(engine, policy(criteria=(Criterion.AGE,)))
    host.send(ETH0, TEN, addr("198.51.100.20/24", 2, cstamp=1), route(oif=2))
    assert not host.view().rival
    host.send(addr("198.51.100.20/24", 2))
    assert host.view().rival


def test_links_that_defaults_lead_over_are_counted(host: Host) -> None:
    host.send(TEN, TWENTY, route(oif=2), route(oif=3, metric=5), route(legs=(leg(2), leg(9))))
    assert host.view().default_links == 2
    host.send(gone(TWENTY))
    assert host.view().default_links == 1


def test_counts_do_not_overflow(host: Host) -> None:
    host.send(*(route(oif=9, metric=metric) for metric in range(300)))
    assert host.view().default_routes == 255
    assert host.view("ipv6").other_defaults == 255


def test_an_ipv6_peer_that_changes_moves_its_address(host: Host) -> None:
    """Of equal addresses the one with the lower peer comes first; IPv6 has it in no key."""
    host.engine.set_policy(0, policy(criteria=()))
    host.send(addr("2001:db8::10/64", 2), addr("2001:db8::10/64", 3))
    host.send(route(via="fe80::1", oif=2), route(via="fe80::1", oif=3, metric=7))
    for peer, ifindex in (("2001:db8::99", 3), ("", 2)):
        host.send(addr("2001:db8::10/64", 2, peer=peer))
        best = host.view("ipv6").best
        assert best is not None
        assert best.ifindex == host.rows("ipv6")[0].ifindex == ifindex


# Changes and causes


def test_a_change_is_told_once(host: Host) -> None:
    assert host.engine.changed() == {(0, "ipv4"), (0, "ipv6")}
    assert host.engine.changed() == set()
    host.send(TEN)
    assert host.engine.changed() == {(0, "ipv4")}
    host.send(addr("192.0.2.10/24", 2, valid=60))
    assert host.engine.changed() == set()
    host.send(DEFAULT)
    assert host.engine.changed() == {(0, "ipv4"), (0, "ipv6")}, "it counts for both"


def test_a_policy_that_is_set_is_a_change(host: Host) -> None:
    host.engine.changed()
    host.engine.set_policy(0, policy())
    assert host.engine.changed() == {(0, "ipv4"), (0, "ipv6")}
    host.engine.set_policy(3, policy())
    assert host.engine.changed() == {(3, "ipv4"), (3, "ipv6")}
    host.engine.drop_policy(3)
    assert host.engine.changed() == set()


def cause(host: Host) -> str:
    raw = host.view().cause
    return describe(decode(raw), host.engine.link_name) if raw else ""


def test_the_cause_is_the_record_that_changed_the_answer(host: Host) -> None:
    assert cause(host) == ""
    host.send(TEN)
    assert cause(host) == "RTM_NEWADDR 192.0.2.10/24 eth0"
    host.send(DEFAULT, route(via="192.0.2.1", oif=2, metric=9), addr("192.0.2.99/24", 2))
    assert cause(host) == "RTM_NEWROUTE default via 192.0.2.1 dev eth0"
    host.send(link(2, "eth0", mtu=9000))
    assert cause(host) == "RTM_NEWROUTE default via 192.0.2.1 dev eth0"
    host.send(link(2, "eth0", carrier=False))
    assert cause(host) == "RTM_NEWLINK eth0"
    host.engine.set_policy(0, policy())
    assert cause(host) == ""


def test_the_end_of_a_dump_can_be_the_cause(host: Host) -> None:
    host.send(TEN, DEFAULT)
    host.send(begin(Scope.ADDR4), entry(addr("127.0.0.1/8", 1)), end(Scope.ADDR4))
    assert cause(host) == "dump of addr4 ends"


def test_a_cause_keeps_one_leg(host: Host) -> None:
    host.send(TEN, route(legs=(leg(3, "198.51.100.1"), leg(2, "192.0.2.1"))))
    assert cause(host) == "RTM_NEWROUTE default via 198.51.100.1 dev eth1"


@pytest.mark.parametrize(
    "record",
    [
        TEN,
        link(2, "eth0", carrier=False),
        DEFAULT,
        route(legs=(leg(3, "198.51.100.1"), leg(2, "192.0.2.1"))),
    ],
    ids=describe,
)
def test_a_cause_keeps_who_made_it(host: Host, record: Record) -> None:
    if record is not TEN:
        host.send(TEN)
    if record.kind is Kind.LINK:
        host.send(DEFAULT)
    host.send(by(record, Task(9, "kworker/0:1", "kernel")))
    kept = decode(host.view().cause)
    assert kept.task == Task(9, "kworker/0:1", "kernel")
    assert kept.kind is record.kind


def test_an_incumbent_is_no_cause(host: Host) -> None:
    host.send(TEN, addr("192.0.2.9/24", 2), DEFAULT)
    before = host.view()
    host.engine.set_incumbent(0, "ipv4", "192.0.2.10")
    after = host.view()
    assert after.best != before.best
    assert (after.cause, after.last_change_ns) == (before.cause, before.last_change_ns)
    host.send(loss())
    assert host.view().cause == before.cause


def test_the_time_of_the_last_change_is_that_of_its_record(host: Host) -> None:
    host.send(TEN)
    at = host.now
    host.send(addr("192.0.2.10/24", 2, valid=60), link(9, "eth9"), TWENTY._replace())
    assert host.view().last_change_ns == host.now
    at = host.now
    host.send(TWENTY, addr("2001:db8::1/64", 2))
    assert host.view().last_change_ns == at
    assert host.view("ipv6").last_change_ns == host.now


def test_malformed_bytes_end_it_and_are_counted(host: Host) -> None:
    before = host.engine.snapshot()
    assert host.engine.apply(b"\1" * 40) == 0
    assert host.count("malformed") == 1
    assert host.engine.snapshot() == before


def test_selections_do_not_mix(host: Host) -> None:
    host.engine.set_policy(1, policy(table=7))
    host.send(TEN, TWENTY, DEFAULT, route(oif=3, table=7))
    host.engine.set_incumbent(1, "ipv4", "192.0.2.10")
    best = host.engine.view(1, "ipv4").best
    assert best is not None
    assert best.address == "198.51.100.20"
    assert host.view().incumbent is None
    assert host.engine.tables() == [7, 254]


def test_an_unknown_selection_is_refused(host: Host) -> None:
    with pytest.raises(ValueError, match="Invalid argument"):
        host.engine.view(5, "ipv4")
    with pytest.raises(ValueError, match="Invalid argument"):
        host.engine.set_incumbent(5, "ipv4", None)
    with pytest.raises(ValueError, match="Invalid argument"):
        host.engine.set_policy(16, policy())


def test_links_have_names(host: Host) -> None:
    assert host.engine.link_name(2) == "eth0"
    assert host.engine.link_name(99) == "if99"
