"""When the kernel is asked again which way a target is reached, on both engines."""

from __future__ import annotations

import pytest

from tests.build import (
    DEPRECATED,
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
from tracker.capture.record import Record
from tracker.engine.base import Engine
from tracker.model import AF_INET6, TARGETS_MAX, Scope

ETH0 = link(2, "eth0")
TEN, SIX = addr("192.0.2.10/24", 2), addr("2001:db8::10/64", 2)
RED = link(5, "red", kind="vrf", vrf_table=7)
RA = route(via="fe80::1", oif=2, proto=9, expires=30)


@pytest.fixture
def host(engine: Engine) -> Host:
    """It asks for a target of IPv4."""
    host = Host(engine)
    host.send(ETH0, TEN, SIX, nexthop(1, oif=2))
    engine.set_targets((host_network("203.0.113.7"),))
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
        gone(nexthop(9)),
        loss(Scope.ADDR6),
        addr("192.0.2.11/24", 2),
        gone(TEN),
        link(2, "eth0", carrier=False),
        gone(ETH0),
        link(3, "eth1"),
        link(3, "eth1", carrier=False),
        entry(addr("192.0.2.11/24", 2)),
        RED,
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
        entry(nexthop(1, oif=3)),
        TEN,
        addr("192.0.2.10/24", 2, flags=DEPRECATED),
        gone(addr("192.0.2.99/24", 2)),
        addr("2001:db8::11/64", 2),
        gone(SIX),
        link(2, "eth0", mtu=9000),
        link(3, "eth1", up=False),
    ],
    ids=str,
)
def test_what_cannot_lead_to_a_target_does_not_count(host: Host, record: Record) -> None:
    assert grows(host, record) == 0


def test_a_link_without_carrier_that_goes_down_counts(host: Host) -> None:
    """Its routes were still used, unless a sysctl says otherwise."""
    host.send(link(2, "eth0", carrier=False))
    assert grows(host, link(2, "eth0", up=False)) == 1
    assert grows(host, link(2, "eth0", up=False)) == 0


def test_a_sweep_counts(host: Host) -> None:
    assert grows(host, begin(Scope.ADDR4)) == 0
    assert grows(host, entry(addr("192.0.2.11/24", 2))) == 1
    assert grows(host, end(Scope.ADDR4)) == 1


def test_a_route_that_ends_counts_for_ipv6(host: Host) -> None:
    host.send(RA)
    before = host.engine.lookups()
    host.engine.tick(host.now + 31_000_000_000)
    assert host.engine.lookups() == before
    host.engine.set_targets((host_network("2001:db8:f::7"),))
    host.send(RA)
    before = host.engine.lookups()
    host.engine.tick(host.now + 100_000_000_000)
    assert host.engine.lookups() == before + 1


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
    host.engine.set_targets(())
    assert host.engine.vrf_table("red") == 0
    assert grows(host, RED) == 1
    assert host.engine.vrf_table("red") == 7
    assert grows(host, RED) == 0
    assert grows(host, link(5, "red", kind="vrf", vrf_table=9)) == 1
    assert host.engine.vrf_table("red") == 9
    assert grows(host, link(5, "blue", kind="vrf", vrf_table=9)) == 1
    assert (host.engine.vrf_table("red"), host.engine.vrf_table("blue")) == (0, 9)
    assert grows(host, gone(RED)) == 1
    assert host.engine.vrf_table("blue") == 0


def test_only_a_vrf_has_a_table(host: Host) -> None:
    host.send(link(5, "red", kind="bridge", vrf_table=7))
    assert host.engine.vrf_table("red") == 0
    assert host.engine.vrf_table("eth0") == 0


def test_of_two_with_one_name_the_first_counts(host: Host) -> None:
    host.send(link(6, "red", kind="vrf", vrf_table=9), RED)
    assert host.engine.vrf_table("red") == 7
