"""The source without an extension sees what the C source sees, and survives what it must."""

from __future__ import annotations

import errno
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.netlink_bytes import RTM_NEWADDR, message, u32
from tests.netns.namespace import Namespace, connect
from tests.netns.test_netlink_snapshot import ADDRESSES, LINKS, OTHER_TABLE, ROUTES
from tracker.capture.base import Source, Wake
from tracker.capture.netlink import NetlinkSource
from tracker.capture.pyroute2 import Pyroute2Source, boot_ns
from tracker.capture.record import Addr, Route, iter_records
from tracker.engine.base import NEVER, Engine
from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine
from tracker.model import FAMILIES, NANOSECONDS, Scope
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_NS = 5 * NANOSECONDS
ENOBUFS_BYTES = 4096


def with_policies(engine: Engine) -> Engine:
    engine.set_policy(0, default_route_policy(families=FAMILIES))
    engine.set_policy(1, default_route_policy(families=FAMILIES, table=OTHER_TABLE))
    engine.lose(tuple(Scope))
    return engine


def resync(source: Source) -> None:
    """Read what is queued and dump whatever is dirty."""
    source.drain()
    while dirt := source.engine.dirty():
        for dirty in dirt:
            assert source.dump(dirty.scope, dirty.ifindex, dirty.table)


def state(engine: Engine) -> list[Any]:
    """Everything that is known, without what depends on when it was read."""
    found: list[Any] = []
    for record in iter_records(engine.snapshot()):
        payload = record.payload
        if isinstance(payload, Addr):
            payload = payload._replace(valid=0, preferred=0)
        elif isinstance(payload, Route):
            legs = sorted(leg._replace(flags=0) for leg in payload.legs)
            shown = payload._replace(legs=tuple(legs), rtm_flags=0, expires=0)
            payload = shown._replace(expires=int(payload.expires > 0))
        found.append(payload)
    return found


class Two:
    """Both sources on the namespace that the calling thread has entered."""

    def __init__(self, engine: Engine) -> None:
        native = NativeEngine()
        with_policies(native)
        self.netlink = NetlinkSource(native)
        self.pyroute2 = Pyroute2Source(with_policies(engine))

    def expect_the_same(self) -> None:
        """At this quiet point, or at one that the kernel reaches by itself."""
        give_up = boot_ns() + PATIENCE_NS
        while True:
            resync(self.netlink)
            resync(self.pyroute2)
            theirs, ours = state(self.netlink.engine), state(self.pyroute2.engine)
            if theirs == ours:
                return
            if boot_ns() > give_up:
                assert ours == theirs
            self.pyroute2.wait(boot_ns() + NANOSECONDS // 10)

    def close(self) -> None:
        self.netlink.close()
        self.pyroute2.close()


@pytest.fixture(params=[NativeEngine, ReferenceEngine], ids=["native", "reference"])
def two(host: Namespace, router: Namespace, request: pytest.FixtureRequest) -> Iterator[Two]:
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")
    with host.entered():
        both = Two(request.param())
        both.expect_the_same()
        yield both
        fresh = Two(request.param())
        fresh.expect_the_same()
        fresh.close()
        both.close()


NEXTHOPS = [
    ["nexthop add id 1 via 192.0.2.1 dev eth0", "nexthop add id 2 via fe80::2 dev eth1"],
    ["nexthop add id 10 group 1,3/2", "nexthop add id 11 blackhole"],
    ["route add default nhid 10 metric 5", "route add ::/0 nhid 2 metric 6"],
    ["nexthop replace id 1 via 192.0.2.2 dev eth0"],
    ["nexthop del id 2"],
    ["link set eth0 down"],
]
VIEWED = {
    "links": LINKS,
    "addresses": ADDRESSES,
    "routes": [
        ["addr add 192.0.2.11/24 dev eth0", "addr add 198.51.100.11/24 dev eth1"],
        ["addr add 2001:db8::11/64 dev eth0 nodad", "addr add 2001:db8:1::11/64 dev eth1 nodad"],
        *ROUTES,
    ],
    "nexthops": [["addr add 192.0.2.11/24 dev eth0"], *NEXTHOPS],
}


@pytest.mark.parametrize("steps", VIEWED.values(), ids=VIEWED)
def test_both_sources_see_the_same(host: Namespace, two: Two, steps: Sequence[list[str]]) -> None:
    for step in steps:
        host.batch(step)
        two.expect_the_same()
    assert two.pyroute2.counters()["malformed"] == 0


@pytest.fixture
def source(host: Namespace, router: Namespace) -> Iterator[Pyroute2Source]:
    connect(host, "eth0", router, "eth0")
    host.ip("addr add 192.0.2.10/24 dev eth0")
    with host.entered():
        made = Pyroute2Source(with_policies(NativeEngine()))
        resync(made)
        yield made
        made.close()


def routes(verb: str, count: int) -> list[str]:
    return [f"route {verb} 10.{n >> 8}.{n & 255}.0/24 via 192.0.2.1" for n in range(count)]


def test_a_full_table_is_not_delivered(host: Namespace, source: Pyroute2Source) -> None:
    before = source.counters().get("seen.RTM_NEWROUTE", 0)
    host.batch([*routes("add", 5000), "route add default via 192.0.2.1"])
    source.drain()
    assert source.counters()["seen.RTM_NEWROUTE"] == before + 1
    assert source.counters()["overruns"] == 0
    assert source.engine.counters()["routes"] == 1


def test_a_dump_of_a_full_table_finds_the_defaults(host: Namespace, source: Pyroute2Source) -> None:
    host.batch([*routes("add", 5000), "route add default via 192.0.2.1"])
    host.batch(["route add 0.0.0.0/1 via 192.0.2.1", "route add ::/0 via fe80::1 dev eth0"])
    fresh = Pyroute2Source(with_policies(NativeEngine()))
    resync(fresh)
    assert fresh.engine.counters()["routes"] == 2
    fresh.close()


def test_a_message_that_the_kernel_cannot_make_is_a_loss(
    source: Pyroute2Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    resync(source)

    class Failing:
        """Says so once, as the kernel does."""

        told = False

        def recvfrom(self, *_: int) -> tuple[bytes, tuple[int, int]]:
            if self.told:
                raise BlockingIOError
            self.told = True
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))

    with monkeypatch.context() as patched:
        patched.setattr(source, "_socket", Failing())
        source.drain()
    assert {dirty.scope for dirty in source.engine.dirty() if dirty.lost} == set(Scope)


def test_an_overrun_is_a_loss_and_then_repaired(host: Namespace, source: Pyroute2Source) -> None:
    small = Pyroute2Source(with_policies(NativeEngine()), ENOBUFS_BYTES)
    resync(small)
    resync(source)
    numbers = range(1, 200)
    host.batch([f"addr add 198.51.100.{n}/32 dev eth0" for n in numbers])
    host.batch([f"addr del 198.51.100.{n}/32 dev eth0" for n in numbers])
    host.batch(["addr add 203.0.113.1/24 dev eth0"])
    small.drain()
    assert small.counters()["overruns"] >= 1
    assert {dirty.scope for dirty in small.engine.dirty() if dirty.lost} == set(Scope)
    give_up = boot_ns() + PATIENCE_NS
    while (ours := state(small.engine)) != (theirs := state(source.engine)):
        if boot_ns() > give_up:
            assert ours == theirs
        resync(small)
        resync(source)
    small.close()


def test_a_wait_ends_at_its_deadline(source: Pyroute2Source) -> None:
    deadline = boot_ns() + NANOSECONDS // 20
    # IPv6 may have something to say about the new link at first.
    while not (bits := source.wait(deadline)) & Wake.TIMEOUT:
        assert bits
    assert boot_ns() >= deadline


def test_a_wait_ends_when_another_thread_wakes_it(source: Pyroute2Source) -> None:
    waker = threading.Timer(0.05, source.wake)
    waker.start()
    while not source.wait(NEVER) & Wake.USER:
        resync(source)
    waker.join()


def test_dirt_that_waits_for_its_pace_ends_no_wait(source: Pyroute2Source) -> None:
    source.engine.lose((Scope.LINK,))
    assert source.drain() & Wake.DIRTY
    deadline = boot_ns() + NANOSECONDS // 20
    while not (bits := source.wait(deadline)) & Wake.TIMEOUT:
        # IPv6 may have something to say about the new link at first.
        assert bits & ~Wake.CHANGED == 0
    assert Wake.DIRTY not in bits


def test_new_dirt_ends_a_wait_beside_old_dirt(host: Namespace, source: Pyroute2Source) -> None:
    host.ip("route add default via 192.0.2.1")
    source.drain()
    source.engine.lose((Scope.LINK,))
    host.ip("link set eth0 down")
    while not source.wait(boot_ns() + PATIENCE_NS) & Wake.DIRTY:
        pass
    assert {Scope.LINK, Scope.ROUTE4} <= {dirty.scope for dirty in source.engine.dirty()}


def test_both_sources_tell_the_same_receive_buffer(two: Two) -> None:
    told = two.pyroute2._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert two.pyroute2.counters()["rcvbuf"] == told
    assert two.netlink.counters()["rcvbuf"] == told


def test_a_change_ends_a_wait(host: Namespace, source: Pyroute2Source) -> None:
    source.drain()
    host.ip("addr add 203.0.113.1/24 dev eth0")
    assert source.wait(NEVER) & Wake.CHANGED
    assert any(row.address == "203.0.113.1" for row in source.engine.rows(0, "ipv4"))


def test_a_table_that_does_not_exist_is_empty(source: Pyroute2Source) -> None:
    assert source.dump(Scope.ROUTE4, table=OTHER_TABLE)
    assert source.dump(Scope.ROUTE6, table=OTHER_TABLE)


def test_a_link_that_has_gone_has_no_addresses(source: Pyroute2Source) -> None:
    assert source.dump(Scope.ADDR4, ifindex=999)
    assert source.engine.counters()["addresses"] > 0


def test_nonsense_is_counted_and_read_again(source: Pyroute2Source) -> None:
    no_address = message(RTM_NEWADDR, bytes([2, 24, 0, 0]) + u32(1))
    for nonsense in (b"\xff" * 40, bytes(40), no_address, no_address[:-1]):
        resync(source)
        before = source.counters()["malformed"]
        source._apply_events(nonsense)
        assert source.counters()["malformed"] == before + 1
        assert {dirty.scope for dirty in source.engine.dirty()} == set(Scope)


def test_a_failed_dump_keeps_what_was_known(
    source: Pyroute2Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracker.capture import pyroute2

    def broken(_asked: object) -> Iterator[Any]:
        raise pyroute2._DumpFailed(5)
        yield

    monkeypatch.setattr(pyroute2, "_answer", broken)
    known = state(source.engine)
    assert not source.dump(Scope.ADDR4)
    assert state(source.engine) == known
    assert [(d.scope, d.lost) for d in source.engine.dirty()] == [(Scope.ADDR4, True)]
    assert source.counters()["dump_failures.addr4"] == 1
    assert source.dump_error
