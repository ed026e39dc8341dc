"""When the kernel is asked again which way a target is reached, on both engines."""

from __future__ import annotations

import pytest

from tests.build import (
    DEPRECATED,
    OPTIMISTIC,
    SECONDARY,
    Host,
    addr,
    begin,
    end,
    entry,
    flush,
    gone,
    link,
    loss,
    nexthop,
    route,
    rule,
)
from tracker.address import host_network, parse_network
from tracker.capture.record import Addr, Link, Nexthop, Record
from tracker.engine.base import Engine
from tracker.model import AF_INET, AF_INET6, GROUNDS_MAX, TARGETS_MAX, Ground, Grounds, Scope

ETH0 = link(2, "eth0")
ETH1 = link(3, "eth1")
DARK = link(4, "eth2", carrier=False)
TEN, SIX = addr("192.0.2.10/24", 2), addr("2001:db8::10/64", 2)
RED = link(5, "red", kind="vrf", vrf_table=7)
RA = route(via="fe80::1", oif=2, proto=9, expires=30)
RUNNING = 0x40


def ground(address: str, ifindex: int) -> Ground:
    target = host_network(address)
    return Ground(target.family, target.address, ifindex)


WAY = Grounds(frozenset({2}), frozenset({1}), frozenset({ground("192.0.2.10", 2)}))
"""Over eth0 and its nexthop object, from its address."""


@pytest.fixture
def host(engine: Engine) -> Host:
    """It asks for a target of IPv4, and knows what the answer rests on."""
    host = Host(engine)
    host.send(ETH0, ETH1, DARK, TEN, SIX, nexthop(1, oif=2), nexthop(2, oif=3))
    engine.set_targets((host_network("203.0.113.7"),))
    engine.set_grounds(WAY)
    return host


def grows(host: Host, *records: Record) -> int:
    before = host.engine.lookups()
    host.send(*records)
    return host.engine.lookups() - before


@pytest.mark.parametrize(
    "record",
    [
        route("203.0.113.0/24", oif=2),
        gone(route("203.0.113.7/32", oif=2, table=77)),
        route("200.0.0.0/5", oif=2),
        route(oif=2),
        route(oif=2, table=77),
        gone(route(oif=2, kind=7)),
        flush("203.0.113.0/24", table=77),
        flush(),
        rule(100),
        gone(rule(100, table=77)),
        nexthop(1, oif=2),
        gone(nexthop(1)),
        entry(nexthop(1, oif=3)),
        loss(Scope.ADDR6),
        addr("192.0.2.11/24", 2),
        gone(TEN),
        addr("192.0.2.10/24", 2, flags=SECONDARY),
        addr("192.0.2.10/32", 3),
        addr("203.0.113.1/24", 3),
        link(2, "eth0", carrier=False),
        link(2, "eth0", up=False),
        link(2, "eth0", master=5),
        link(2, "uplink"),
        gone(ETH0),
        link(4, "eth2"),
        entry(addr("192.0.2.11/24", 2)),
    ],
    ids=str,
)
def test_what_may_lead_to_a_target_counts_once(host: Host, record: Record) -> None:
    assert grows(host, record) == 1


@pytest.mark.parametrize(
    "record",
    [
        route("203.0.113.8/32", oif=2),
        route("203.0.112.0/24", oif=2),
        route("203.0.113.0/24", oif=2, table=255),
        route("203.0.113.0/24", oif=2, rtm_flags=0x200),
        route("2001:db8:f::/48", oif=2),
        route(family=AF_INET6, oif=2),
        flush("203.0.112.0/24"),
        flush(table=255),
        rule(100, family=AF_INET6),
        entry(route("203.0.113.0/24", oif=2)),
        entry(nexthop(1, oif=2)),
        nexthop(2, oif=4),
        gone(nexthop(2)),
        gone(nexthop(9)),
        TEN,
        addr("192.0.2.10/24", 2, flags=DEPRECATED),
        gone(addr("192.0.2.99/24", 2)),
        addr("198.51.100.11/24", 3),
        addr("2001:db8::11/64", 2),
        gone(SIX),
        link(2, "eth0", mtu=9000),
        link(3, "eth1", carrier=False),
        link(3, "eth1", up=False),
        link(3, "eth1", master=5),
        gone(ETH1),
        gone(DARK),
        link(4, "eth2", up=False),
        link(6, "eth3"),
        RED,
    ],
    ids=str,
)
def test_what_cannot_lead_to_a_target_does_not_count(host: Host, record: Record) -> None:
    assert grows(host, record) == 0


def test_a_link_that_was_live_when_asked_may_flap(host: Host) -> None:
    assert grows(host, link(3, "eth1", carrier=False), ETH1, gone(ETH1), ETH1) == 0


def test_a_link_that_comes_later_may_come_up(host: Host) -> None:
    assert grows(host, link(6, "eth3", up=False), link(6, "eth3", carrier=False)) == 0
    assert grows(host, link(6, "eth3")) == 0
    host.engine.set_grounds(WAY)
    assert grows(host, gone(DARK), DARK, link(4, "eth2")) == 0


def test_on_a_link_that_is_not_live_each_message_counts(host: Host) -> None:
    """The kernel ends nexthop objects with any of them."""
    assert grows(host, link(2, "eth0", carrier=False)) == 1
    assert grows(host, link(2, "eth0", carrier=False, mtu=9000)) == 1
    assert grows(host, entry(link(2, "eth0", carrier=False))) == 0
    assert grows(host, ETH0, link(2, "eth0", mtu=9000)) == 1


def test_carrier_that_is_shown_early_counts_again_when_it_is_told(host: Host) -> None:
    assert isinstance(ETH0.payload, Link)
    running = ETH0.payload._replace(flags=ETH0.payload.flags | RUNNING)
    assert grows(host, ETH0._replace(payload=running)) == 1


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        (ground("192.0.2.10", 2), 0),
        (ground("192.0.2.10", 3), 1),
        (ground("192.0.2.99", 2), 1),
        (ground("192.0.2.99", 0), 0),
    ],
    ids=["of its link", "of another link", "gone", "named"],
)
def test_a_borrowed_source_may_be_any_address(host: Host, source: Ground, counts: int) -> None:
    host.engine.set_grounds(Grounds(sources=frozenset({source})))
    assert grows(host, addr("198.51.100.11/24", 3)) == counts


@pytest.mark.parametrize(
    ("source", "counts"),
    [(ground("192.0.2.10", 2), 0), (ground("192.0.2.10", 3), 1)],
    ids=["of its link", "borrowed"],
)
def test_a_link_is_borrowed_from_within_its_vrf_alone(
    host: Host, source: Ground, counts: int
) -> None:
    """IPv4 addresses stay where they are without a word, and no route names the link."""
    host.send(RED, link(6, "br0", kind="bridge"))
    host.engine.set_grounds(Grounds(sources=frozenset({source})))
    assert grows(host, link(2, "eth0", master=5)) == counts
    assert grows(host, ETH0) == counts
    assert grows(host, link(2, "eth0", master=6)) == 0


@pytest.mark.parametrize("flags", [0, DEPRECATED, OPTIMISTIC], ids=["good", "old", "optimistic"])
def test_a_poor_source_of_ipv6_may_be_replaced_by_any_address(host: Host, flags: int) -> None:
    host.engine.set_targets((host_network("2001:db8:f::7"),))
    grounds = Grounds(sources=frozenset({ground("2001:db8::10", 2)}))
    host.engine.set_grounds(grounds)
    assert grows(host, addr("2001:db8::10/64", 2, flags=flags)) == (flags != 0)
    host.engine.set_grounds(grounds)
    assert grows(host, addr("2001:db8:9::9/64", 3)) == (flags != 0)


@pytest.mark.parametrize(
    ("grounds", "record"),
    [
        (Grounds(any_address=frozenset({AF_INET})), addr("198.51.100.11/24", 3)),
        (Grounds(any_nexthop=True), nexthop(2, oif=4)),
        (Grounds(frozenset(range(100, 100 + GROUNDS_MAX + 1))), link(7, "eth5")),
        (None, addr("198.51.100.11/24", 3)),
        (None, link(3, "eth1", carrier=False)),
        (None, gone(nexthop(9))),
    ],
    ids=["address", "nexthop", "too many", *["unknown"] * 3],
)
def test_what_is_not_known_counts(host: Host, grounds: Grounds | None, record: Record) -> None:
    host.engine.set_grounds(Grounds())
    assert grows(host, by_another_name(record)) == 0
    host.engine.set_grounds(grounds)
    assert grows(host, record) == 1


def by_another_name(record: Record) -> Record:
    """The same of something else."""
    payload = record.payload
    if isinstance(payload, Link):
        return record._replace(payload=payload._replace(ifindex=77, name="eth77"))
    if isinstance(payload, Nexthop):
        return record._replace(payload=payload._replace(id=77))
    assert isinstance(payload, Addr)
    return record._replace(payload=payload._replace(ifindex=77))


def test_other_targets_make_all_count_again(host: Host) -> None:
    assert grows(host, addr("198.51.100.11/24", 3)) == 0
    host.engine.set_targets((host_network("203.0.113.8"),))
    assert grows(host, addr("198.51.100.12/24", 3)) == 1


def test_a_sweep_counts(host: Host) -> None:
    assert grows(host, begin(Scope.ADDR4)) == 0
    assert grows(host, entry(addr("192.0.2.11/24", 2))) == 1
    assert grows(host, end(Scope.ADDR4)) == 1


def test_a_route_that_ends_counts_for_who_does_not_know_the_time(host: Host) -> None:
    host.engine.set_targets((host_network("2001:db8:f::7"),))
    host.send(RA)
    before = host.engine.lookups()
    host.engine.tick(host.now + 31_000_000_000)
    assert host.engine.lookups() == before + 1
    host.engine.set_grounds(WAY)
    host.send(RA)
    before = host.engine.lookups()
    host.engine.tick(host.now + 100_000_000_000)
    assert host.engine.lookups() == before


def test_losses_count(host: Host) -> None:
    before = host.engine.lookups()
    host.engine.lose(())
    assert host.engine.lookups() == before
    host.engine.lose(tuple(Scope))
    assert host.engine.lookups() == before + 1


def test_without_targets_nothing_counts(host: Host) -> None:
    host.engine.set_targets(())
    assert grows(host, route(oif=2), rule(100), loss(), gone(TEN), gone(ETH0), nexthop(1)) == 0
    host.engine.lose(tuple(Scope))
    assert grows(host) == 0


def test_other_targets_count_once(host: Host) -> None:
    before = host.engine.lookups()
    targets = (host_network("203.0.113.7"), host_network("2001:db8:f::7"))
    host.engine.set_targets(targets)
    host.engine.set_targets(targets)
    assert host.engine.targets == targets
    assert host.engine.lookups() == before + 1
    assert grows(host, rule(100, family=AF_INET6)) == 1


@pytest.mark.parametrize(
    "targets",
    [
        (parse_network("203.0.113.0/24"),),
        (host_network("203.0.113.7"),) * (TARGETS_MAX + 1),
    ],
    ids=["network", "too many"],
)
def test_targets_are_some_host_addresses(host: Host, targets: tuple[object, ...]) -> None:
    before = host.engine.targets
    with pytest.raises(ValueError, match="Invalid argument"):
        # Networks in both cases, which the parametrisation hides.
        host.engine.set_targets(targets)  # type: ignore[arg-type]
    assert host.engine.targets == before


def test_a_vrf_is_found_by_name(host: Host) -> None:
    def moves(*records: Record) -> int:
        before = host.engine.vrfs()
        host.send(*records)
        return host.engine.vrfs() - before

    assert host.engine.vrf("red") == (0, 0)
    assert moves(RED) == 1
    assert host.engine.vrf("red") == (5, 7)
    assert moves(RED) == 0
    assert moves(link(5, "red", kind="vrf", vrf_table=9)) == 1
    assert host.engine.vrf("red") == (5, 9)
    assert moves(link(5, "blue", kind="vrf", vrf_table=9)) == 1
    assert (host.engine.vrf("red"), host.engine.vrf("blue")) == ((0, 0), (5, 9))
    assert moves(gone(RED)) == 1
    assert host.engine.vrf("blue") == (0, 0)


def test_only_a_vrf_has_a_table(host: Host) -> None:
    host.send(link(5, "red", kind="bridge", vrf_table=7))
    assert host.engine.vrf("red").table == 0
    assert host.engine.vrf("eth0").table == 0


def test_of_two_with_one_name_the_first_counts(host: Host) -> None:
    host.send(link(6, "red", kind="vrf", vrf_table=9), RED)
    assert host.engine.vrf("red").table == 7


def test_a_nexthop_object_is_found_by_its_id(host: Host) -> None:
    group = nexthop(3, members=((1, 5), (2, 1)))
    host.send(group)
    assert host.engine.nexthop(3) == group.payload
    assert host.engine.nexthop(9) is None
