"""Every message is accounted for, and what concerns no answer wakes nobody."""

from __future__ import annotations

import contextlib
import resource
import threading
from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import connect
from tests.soak.check import comparable
from tests.tiers import BPF, NETLINK, SMALLEST_RING
from tracker.capture.base import Wake
from tracker.engine.base import NEVER
from tracker.engine.native import NativeEngine
from tracker.model import FAMILIES
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.netns.namespace import Namespace
    from tests.tiers import Tier
    from tracker.capture.netlink import NetlinkSource

CHANGED = {
    "RTM_NEWLINK", "RTM_DELLINK", "RTM_NEWADDR", "RTM_DELADDR", "RTM_NEWROUTE", "RTM_DELROUTE",
    "RTM_NEWNEXTHOP", "RTM_DELNEXTHOP",
}  # fmt: skip
"""What churn() brings messages of."""
CONTAINERS = 100


def churn(host: Namespace) -> None:
    """Some of each kind: what matters, what says nothing new, and what matters to nobody."""
    for table in ("main", "100"):
        host.batch([f"route add 10.0.{n}.0/24 via 192.0.2.1 table {table}" for n in range(200)])
        host.batch([f"route del 10.0.{n}.0/24 table {table}" for n in range(200)])
        host.ip(f"route add default via 192.0.2.1 table {table}")
        host.ip(f"route add default via 2001:db8::1 table {table}")
        host.ip(f"route del default table {table}")
        host.ip(f"-6 route del default table {table}")
    host.batch([f"addr add 192.0.2.{n}/24 dev eth0" for n in range(20, 120)])
    host.batch([f"addr del 192.0.2.{n}/24 dev eth0" for n in range(20, 120)])
    host.batch([f"nexthop add id {n} via 192.0.2.{n} dev eth0" for n in range(20, 40)])
    host.batch([f"nexthop del id {n}" for n in range(20, 40)])
    host.batch([f"link set eth0 mtu {1400 + n % 2}" for n in range(50)])
    host.batch([f"link add veth{n} type veth peer name far{n}" for n in range(10)])
    host.batch([f"link set veth{n} up" for n in range(10)])
    host.batch(["link add br0 type bridge", "link set veth1 master br0"])
    host.batch(["link del br0", *(f"link del veth{n}" for n in range(10))])


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    connect(host, "eth0", router, "peer0")
    host.ip("addr add 192.0.2.11/24 dev eth0")
    host.ip("addr add 2001:db8::11/64 dev eth0 nodad")
    return host


@contextlib.contextmanager
def opened(namespace: Namespace, tier: Tier, **sizes: int) -> Iterator[NetlinkSource]:
    """A source that has read everything."""
    with namespace.entered():
        engine = NativeEngine()
        engine.set_policy(0, default_route_policy(families=FAMILIES))
        source = tier.open(engine, **sizes)
        resync(source)
        yield source
        source.close()


def resync(source: NetlinkSource) -> None:
    source.drain()
    while dirt := source.engine.dirty():
        for dirty in dirt:
            assert source.dump(dirty.scope, dirty.ifindex, dirty.table)


def by_type(source: NetlinkSource, group: str) -> dict[str, int]:
    return {
        name.partition(".")[2]: count
        for name, count in source.counters().items()
        if name.startswith(f"{group}.")
    }


def expect_sums(source: NetlinkSource) -> None:
    """seen = dropped + emitted + lost, of each type."""
    dropped, emitted, lost = (by_type(source, group) for group in ("dropped", "emitted", "lost"))
    summed = {name: dropped[name] + emitted[name] + lost[name] for name in dropped}
    assert by_type(source, "seen") == summed
    assert source.counters()["residual"] == 0


@pytest.mark.both_loaders
def test_every_message_is_dropped_or_emitted(node: Namespace, tier: Tier) -> None:
    with opened(node, tier) as source:
        churn(node)
        resync(source)
        expect_sums(source)
        seen, emitted, lost = (by_type(source, group) for group in ("seen", "emitted", "lost"))
        assert {name for name, count in seen.items() if count} >= CHANGED
        assert {name for name, count in emitted.items() if count} >= CHANGED
        assert set(lost.values()) == {0}


@pytest.mark.both_loaders
def test_what_found_no_room_is_accounted_for_as_well(node: Namespace, tier: Tier) -> None:
    with opened(node, tier, rcvbuf=1, ring=SMALLEST_RING) as source:
        for _ in range(3):
            churn(node)
            assert Wake.DIRTY in source.drain()
            resync(source)
        expect_sums(source)
        if tier.source == "bpf":
            lost = by_type(source, "lost")
            assert lost["RTM_NEWADDR"] > 0
            # What is dropped in the kernel takes no room.
            assert lost["RTM_NEWROUTE"] < 20


def test_both_tiers_see_the_same_messages(node: Namespace) -> None:
    with opened(node, NETLINK) as plain, opened(node, BPF) as filtered:
        before = by_type(plain, "seen"), by_type(filtered, "seen")
        churn(node)
        resync(plain)
        resync(filtered)
        after = by_type(plain, "seen"), by_type(filtered, "seen")
        plainly, in_the_kernel = (
            {name: count - was[name] for name, count in now.items()}
            for now, was in zip(after, before, strict=True)
        )
        assert plainly == in_the_kernel
        assert comparable(plain.engine.snapshot()) == comparable(filtered.engine.snapshot())


class Waiting(threading.Thread):
    """A source that waits in a thread of its own; how often it slept is counted."""

    def __init__(self, namespace: Namespace, tier: Tier) -> None:
        super().__init__()
        self._namespace = namespace
        self._tier = tier
        self._ready = threading.Event()
        self._source: NetlinkSource | None = None
        self._ended = False
        self.sleeps = 0
        self.start()
        assert self._ready.wait(60)

    def run(self) -> None:
        with opened(self._namespace, self._tier) as self._source:
            source = self._source
            source.engine.changed()
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
            self._ready.set()
            while not self._ended:
                source.wait(NEVER)
                source.engine.changed()
            self.sleeps = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
            resync(source)
            self.links = len(source.engine.snapshot())

    def finish(self) -> int:
        """How often it slept."""
        assert self._source is not None
        self._ended = True
        self._source.wake()
        self.join()
        return self.sleeps


def test_containers_that_come_and_go_wake_nobody(host: Namespace, router: Namespace) -> None:
    for where in ("all", "default"):
        host.sysctl(f"ipv6/conf/{where}/disable_ipv6", 1)
    connect(host, "eth0", router, "peer0")
    host.ip("addr add 192.0.2.11/24 dev eth0")
    waiting = {str(tier): Waiting(host, tier) for tier in (NETLINK, BPF)}
    for _ in range(2):
        names = [f"veth{number}" for number in range(CONTAINERS)]
        host.batch([f"link add {name} type veth peer name {name}p" for name in names])
        host.batch([f"link set {name} up group 21" for name in names])
        host.ip("link del group 21")
    sleeps = {name: each.finish() for name, each in waiting.items()}
    assert waiting["bpf"].links == waiting["netlink"].links
    # The netlink tier wakes for nearly each of their messages, this one when its ring fills up.
    assert sleeps["netlink"] > CONTAINERS
    assert sleeps["bpf"] <= 5
