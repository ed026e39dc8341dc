"""Every source tells when the kernel may answer otherwise for a target, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tests.tiers import BPF, SMALLEST_RING, TIERS
from tracker.address import host_network
from tracker.capture.base import Wake
from tracker.capture.netlink import boot_ns
from tracker.capture.pyroute2 import Pyroute2Source
from tracker.engine.native import NativeEngine
from tracker.model import FAMILIES, NANOSECONDS, Scope
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.capture.base import Source

TARGETS = tuple(map(host_network, ("203.0.113.7", "2001:db8:f::7")))


@pytest.fixture(params=["netlink", "bpf", "pyroute2"])
def source(request: pytest.FixtureRequest, host: Namespace, router: Namespace) -> Iterator[Source]:
    """A source that has read everything; this thread is inside of `host`."""
    # No link-local address, whose end of DAD would be told a second later.
    host.sysctl("ipv6/conf/default/addr_gen_mode", 1)
    connect(host, "eth0", router, "eth0")
    host.batch(
        [
            "addr add 192.0.2.11/24 dev eth0",
            "addr add 2001:db8::11/64 dev eth0 nodad",
            "route add default via 192.0.2.1 metric 100",
            "nexthop add id 7 via 192.0.2.1 dev eth0",
        ]
    )
    with host.entered():
        engine = NativeEngine()
        engine.set_policy(0, default_route_policy(families=FAMILIES))
        tier = TIERS.get(request.param)
        source: Source = tier.open(engine) if tier else Pyroute2Source(engine)
        engine.set_targets(TARGETS)
        source.drain()
        for scope in Scope:
            assert source.dump(scope)
        quiet(source)
        yield source
        source.close()


def quiet(source: Source) -> None:
    """Until the kernel has nothing more to say of what it was asked to do."""
    while source.wait(boot_ns() + NANOSECONDS // 5) != Wake.TIMEOUT:
        source.engine.changed()


def told(source: Source) -> bool:
    """Whether a wait ends because of lookups, before one second is over."""
    deadline = boot_ns() + NANOSECONDS
    while not (bits := source.wait(deadline)) & Wake.TIMEOUT:
        if bits & Wake.LOOKUPS:
            return True
        source.engine.changed()
    return bool(bits & Wake.LOOKUPS)


@pytest.mark.parametrize(
    "command",
    [
        "route add 203.0.113.0/24 via 192.0.2.1",
        "route add 203.0.113.7/32 via 192.0.2.1 table 77",
        "route add 192.0.0.0/4 dev eth0 table 77",
        "route add unreachable default metric 4000",
        "route add default via 192.0.2.1 table 77",
        "-6 route add 2001:db8:f::/48 dev eth0",
        "-6 route add blackhole 2000::/3 table 77",
        "rule add to 203.0.113.0/24 table 77 priority 100",
        "-6 rule add fwmark 7 table 77",
        "nexthop replace id 7 via 192.0.2.2 dev eth0",
        "addr add 192.0.2.12/24 dev eth0",
        "addr del 2001:db8::11/64 dev eth0",
        "link set eth0 down",
    ],
)
def test_what_may_lead_to_a_target_is_told(source: Source, host: Namespace, command: str) -> None:
    before = source.engine.lookups()
    host.ip(command)
    assert told(source)
    assert source.engine.lookups() > before


def test_other_routes_are_not_told(source: Source, host: Namespace) -> None:
    before = source.engine.lookups()
    host.batch(
        [
            "route add 203.0.112.0/24 via 192.0.2.1",
            "route add 203.0.113.8/32 via 192.0.2.1",
            "route add 198.51.100.0/24 via 192.0.2.1 table 77",
            "route add 2001:db8:e::/48 dev eth0",
            "link set eth0 mtu 1400",
        ]
    )
    assert not told(source)
    assert source.engine.lookups() == before


def test_without_targets_nothing_is_told(source: Source, host: Namespace) -> None:
    source.engine.set_targets(())
    assert told(source)
    before = source.engine.lookups()
    host.batch(["route add 203.0.113.0/24 via 192.0.2.1", "rule add table 77 priority 100"])
    assert not told(source)
    assert source.engine.lookups() == before
    source.engine.set_targets(TARGETS)
    assert told(source)
    host.ip("route del 203.0.113.0/24")
    assert told(source)


def test_rules_that_find_no_room_in_the_ring_are_told(host: Namespace) -> None:
    """No scope of the state is about rules, so nothing is dumped."""
    with host.entered():
        engine = NativeEngine()
        source = BPF.open(engine, ring=SMALLEST_RING)
        engine.set_targets(TARGETS)
        source.drain()
        for scope in Scope:
            assert source.dump(scope)
        quiet(source)
        host.batch([f"rule add table 77 priority {number}" for number in range(100, 300)])
        before = engine.lookups()
        assert told(source)
        lost = source.counters()["lost.RTM_NEWRULE"]
        assert engine.counters()["applied.loss.new"] == 1
        assert lost > 0
        assert engine.lookups() == before + 200 - lost + 1
        assert engine.dirty() == []
        source.close()
