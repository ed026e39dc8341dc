"""The source of the BPF tier on the real kernel: what it reads, what it loses and gets back."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.namespace import connect
from tests.tiers import RING, SMALLEST_RING
from tracker.address import host_network
from tracker.capture.base import Wake
from tracker.capture.bpf import BpfSource, Maps, create_maps
from tracker.capture.loader import load
from tracker.capture.netlink import RCVBUF, boot_ns
from tracker.capture.record import Link, Loss, LossCause, Record, Route, describe, iter_records
from tracker.clock import SystemClock
from tracker.engine.native import NativeEngine
from tracker.errors import UnsupportedError
from tracker.lastrun import INSTANT
from tracker.model import FAMILIES, Dirty, Grounds, Scope
from tracker.policy.compile import default_route_policy
from tracker.session import NODE, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netns.namespace import Namespace

MS = 1_000_000
SO_ATTACH_BPF, SO_DETACH_FILTER = 50, 27
EVERYTHING = (1 << len(Scope)) - 1


class Opened:
    """A source that has read everything, in the namespace that this thread is in."""

    def __init__(
        self,
        ring: int = RING,
        rcvbuf: int = RCVBUF,
        before_feeding: Callable[[], None] = lambda: None,
    ) -> None:
        self.maps: Maps = create_maps(ring)
        self.maps.place_filter()
        loaded = load(self.maps._asdict())
        self.program = loaded.program
        self.engine = NativeEngine()
        self.policy = default_route_policy(families=FAMILIES)
        self.engine.set_policy(0, self.policy)
        self.source = BpfSource(self.engine, rcvbuf)
        before_feeding()
        self.source.feed(self.maps, loaded.program, loaded.loader, attribution=loaded.attribution)
        self.source.tap(1 << 20)
        self.resync()
        self.records()
        self.engine.changed()

    def set_table(self, table: int) -> None:
        self.engine.set_policy(0, self.policy._replace(table=table))

    def resync(self) -> None:
        self.source.drain()
        while dirt := self.engine.dirty():
            for dirty in dirt:
                assert self.source.dump(dirty.scope, dirty.ifindex, dirty.table)

    def records(self) -> list[str]:
        """What was read since the last call, in words."""
        return [describe(record, self.engine.link_name) for record in self._taken()]

    def losses(self) -> list[Loss]:
        """Losses since the last call."""
        payloads = [record.payload for record in self._taken()]
        return [payload for payload in payloads if isinstance(payload, Loss)]

    def _taken(self) -> list[Record]:
        raw = b""
        while part := self.source.read_tap():
            raw += part
        return list(iter_records(raw))

    def addresses(self, family: str = "ipv4") -> set[str]:
        return {row.address for row in self.engine.rows(0, family)}

    def link(self, name: str) -> Link:
        payloads = [record.payload for record in iter_records(self.engine.snapshot())]
        return next(p for p in payloads if isinstance(p, Link) and p.name == name)

    def audit(self) -> None:
        """The state is the kernel's."""
        for scope in Scope:
            assert self.source.dump(scope, audit=True)
        drift = {k: v for k, v in self.engine.counters().items() if k.startswith("drift.") and v}
        assert not drift

    def settle(self) -> None:
        """Wait for a moment, which is when the kernel is told which links wake."""
        woken = Wake(0)
        while woken != Wake.TIMEOUT:
            self.engine.changed()
            self.records()
            woken = self.source.wait(boot_ns() + 5 * MS)


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    # No DAD, no router solicitation: nothing comes by itself.
    for where in ("all", "default"):
        host.sysctl(f"ipv6/conf/{where}/disable_ipv6", 1)
    connect(host, "eth0", router, "eth0")
    host.ip("addr add 192.0.2.11/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    return host


@pytest.fixture
def open_source(node: Namespace) -> Iterator[Callable[..., Opened]]:
    made: list[Opened] = []

    def make(**how: Any) -> Opened:
        made.append(Opened(**how))
        return made[-1]

    with node.entered():
        yield make
        for opened in made:
            opened.source.close()


def duplicate(opened: Opened) -> socket.socket:
    """The socket of a source."""
    return socket.socket(fileno=os.dup(opened.source.fileno()))


class WakeUps:
    """Whether the kernel woke the readers of a ring, asleep or not: data alone is no event."""

    def __init__(self, opened: Opened) -> None:
        self._poll = select.epoll()
        self._poll.register(opened.maps.ring, select.EPOLLIN | select.EPOLLET)
        self._poll.poll(0)

    def came(self, seconds: float = 10) -> bool:
        return bool(self._poll.poll(seconds))

    def close(self) -> None:
        self._poll.close()


def test_changes_come_through_the_ring_alone(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source()
    node.ip("addr add 192.0.2.12/24 dev eth0")
    node.ip("route add default via 192.0.2.2 metric 7")
    node.ip("route add 10.0.0.0/8 via 192.0.2.1")
    node.ip("link set eth0 mtu 1400")
    node.ip("link set eth0 down")
    with duplicate(opened) as its, pytest.raises(BlockingIOError):
        its.recv(1, socket.MSG_DONTWAIT)
    opened.source.drain()
    # Once more, maybe, when the kernel has judged the carrier.
    assert list(dict.fromkeys(opened.records())) == [
        "RTM_NEWADDR 192.0.2.12/24 eth0",
        "RTM_NEWROUTE default via 192.0.2.2 dev eth0 metric 7",
        "RTM_NEWLINK eth0",
    ]
    opened.resync()
    opened.audit()


def test_what_came_before_the_program_is_applied(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    def before_feeding() -> None:
        node.ip("addr add 192.0.2.12/24 dev eth0")
        node.ip("route add 10.0.0.0/8 via 192.0.2.1")

    opened = open_source(before_feeding=before_feeding)
    node.ip("addr add 192.0.2.13/24 dev eth0")
    node.ip("route add default via 192.0.2.2 metric 7")
    opened.source.drain()
    assert opened.records() == [
        "RTM_NEWADDR 192.0.2.13/24 eth0",
        "RTM_NEWROUTE default via 192.0.2.2 dev eth0 metric 7",
    ]
    counters = opened.source.counters()
    assert (counters["seen.RTM_NEWADDR"], counters["emitted.RTM_NEWADDR"]) == (2, 2)
    assert counters["emitted.RTM_NEWROUTE"] == 1
    assert counters["seen.RTM_NEWROUTE"] == counters["dropped.RTM_NEWROUTE"] + 1
    assert (counters["residual"], counters["unfiltered"]) == (0, 0)
    opened.audit()


def test_a_storm_goes_on_while_the_program_is_attached(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    both = ("add", "del")
    commands = [f"addr {what} 192.0.2.{n}/24 dev eth0" for n in range(20, 220) for what in both]
    storm = threading.Thread(target=node.batch, args=(10 * commands,))
    opened = open_source(before_feeding=storm.start)
    storm.join()
    opened.resync()
    opened.audit()
    assert opened.source.counters()["residual"] == 0


def test_what_it_opened_is_closed_with_it(node: Namespace) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with node.entered():
        Opened().source.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_attached_is_closed_and_said(node: Namespace) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with node.entered():
        source = BpfSource(NativeEngine())
        with pytest.raises(UnsupportedError, match="cannot attach a BPF program"):
            source.feed(create_maps(RING), os.memfd_create("x"), "libbpf", attribution=False)
        source.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


# Losses.


def test_a_burst_into_a_small_ring_is_a_loss_of_its_scope_until_it_is_dumped(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source(ring=SMALLEST_RING)
    node.batch([f"addr add 192.0.2.{number}/24 dev eth0" for number in range(20, 220)])
    assert Wake.DIRTY in opened.source.drain()
    (loss,) = opened.losses()
    assert (loss.cause, loss.scopes) == (LossCause.RING, 1 << Scope.ADDR4)
    assert loss.messages == opened.source.counters()["lost.RTM_NEWADDR"] > 0
    assert Dirty(Scope.ADDR4, 0, 0, True, 0) in opened.engine.dirty()
    assert len(opened.addresses()) < 200
    opened.resync()
    assert len(opened.addresses()) == 202
    opened.audit()
    # And from then on by messages again.
    node.ip("addr del 192.0.2.100/24 dev eth0")
    opened.source.drain()
    assert "192.0.2.100" not in opened.addresses()
    assert opened.losses() == []
    assert opened.source.counters()["residual"] == 0


def test_an_answer_is_stale_from_a_loss_until_the_dump(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source(ring=SMALLEST_RING)
    session = Session(opened.source, {NODE: opened.policy}, INSTANT, SystemClock())
    session.start()
    assert not session.decision().choices["ipv4"].stale
    node.batch([f"addr add 192.0.2.{number}/24 dev eth0" for number in range(20, 220)])
    opened.source.drain()
    choices = session.decision().choices
    assert (choices["ipv4"].stale, choices["ipv4"].address) == (True, "192.0.2.11")
    give_up = boot_ns() + 10_000 * MS
    while session.decision().choices["ipv4"].stale:
        session.step(give_up)
        assert boot_ns() < give_up
    assert session.decision().choices["ipv4"].address == "192.0.2.11"
    assert len(opened.addresses()) == 202


def test_a_loss_wakes_who_waits(node: Namespace, open_source: Callable[..., Opened]) -> None:
    opened = open_source(ring=SMALLEST_RING)
    node.batch([f"addr add 192.0.2.{number}/24 dev eth0" for number in range(20, 220)])
    woken = Wake(0)
    while Wake.DIRTY not in woken:
        woken = opened.source.wait(boot_ns() + 10_000 * MS)
        assert Wake.TIMEOUT not in woken
        opened.engine.changed()


def test_a_link_that_found_no_room_is_told_again(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    """What the program remembers of a link is what is in the ring, not what it saw."""
    opened = open_source(ring=SMALLEST_RING)
    node.batch(["link set eth0 promisc on", "link set eth0 promisc off"] * 40)
    node.ip("link set eth0 down")
    assert opened.source.counters()["lost.RTM_NEWLINK"] > 0
    opened.resync()
    node.ip("link set eth0 up")
    node.ip("link set eth0 down")
    opened.resync()
    assert not opened.link("eth0").flags & 1
    opened.audit()


@contextlib.contextmanager
def detached(opened: Opened) -> Iterator[None]:
    """Without the program on the socket, as if somebody had taken it off."""
    with duplicate(opened) as its:
        its.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        yield
        its.setsockopt(socket.SOL_SOCKET, SO_ATTACH_BPF, opened.program)


def test_messages_without_the_filter_are_a_loss_and_are_not_read(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source()
    with detached(opened):
        node.ip("addr add 192.0.2.12/24 dev eth0")
        node.ip("link set eth0 down")
    assert Wake.DIRTY in opened.source.wait(boot_ns() + 10_000 * MS)
    (loss,) = opened.losses()
    assert (loss.cause, loss.scopes) == (LossCause.UNFILTERED, EVERYTHING)
    assert loss.messages == opened.source.counters()["unfiltered"] > 2
    assert opened.addresses() == {"192.0.2.11", "127.0.0.1"}
    opened.resync()
    assert opened.addresses() == {"192.0.2.11", "192.0.2.12", "127.0.0.1"}
    opened.audit()


def test_an_overrun_of_the_socket_is_a_loss_of_everything(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source(rcvbuf=1)
    with detached(opened):
        node.ip("link set eth0 down")
        node.batch([f"addr add 192.0.2.{number}/24 dev eth0" for number in range(20, 220)])
    # Comes up as the program saw it last, which is no reason to say nothing.
    assert Wake.DIRTY in opened.source.wait(boot_ns() + 10_000 * MS)
    counters = opened.source.counters()
    assert counters["overruns"] == 1
    assert counters["lost"] > 0
    causes = [loss.cause for loss in opened.losses()]
    assert causes == [LossCause.OVERRUN, LossCause.UNFILTERED]
    assert all(dirty.lost for dirty in opened.engine.dirty())
    opened.resync()
    assert len(opened.addresses()) == 202
    assert not opened.link("eth0").flags & 1
    opened.audit()
    node.ip("link set eth0 up")
    opened.resync()
    assert opened.link("eth0").flags & 1
    opened.audit()


# What the kernel is told.


def test_a_policy_that_wants_another_table_gets_its_routes(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source()
    node.ip("route add default via 192.0.2.7 table 7")
    opened.source.drain()
    assert opened.records() == []
    before = opened.source.counters()["dropped.RTM_NEWROUTE"]
    opened.set_table(7)
    opened.source.drain()
    wanted = [Dirty(scope, 0, 7, True, 0) for scope in (Scope.ROUTE4, Scope.ROUTE6)]
    assert opened.engine.dirty() == wanted
    # Between the new filter and the dump.
    node.ip("route add default via 192.0.2.8 table 7 metric 3")
    opened.resync()
    via = [
        record.payload.legs[0].gw[-1]
        for record in iter_records(opened.engine.snapshot())
        if isinstance(record.payload, Route)
    ]
    assert via == [7, 8]
    opened.records()
    node.ip("route add default via 192.0.2.9 metric 9")
    node.ip("route add default via 192.0.2.9 metric 9 table 7")
    opened.source.drain()
    assert opened.records() == ["RTM_NEWROUTE default via 192.0.2.9 dev eth0 metric 9 table 7"]
    assert opened.source.counters()["dropped.RTM_NEWROUTE"] == before + 1
    opened.audit()


def test_quiet_links_wake_nobody_and_are_read_with_what_comes_next(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source()
    node.ip("link set eth0 alias x")
    opened.settle()
    wake_ups = WakeUps(opened)
    node.ip("link add veth9 type veth peer name veth8")
    node.ip("link set veth9 up")
    node.ip("link set veth8 up")
    # No news of a link that matters.
    node.ip("link set eth0 alias y")
    assert not wake_ups.came(0)
    node.ip("addr add 192.0.2.12/24 dev eth0")
    assert wake_ups.came()
    wake_ups.close()
    opened.source.drain()
    assert opened.link("veth9").flags & 1
    assert opened.link("veth8").flags & 1


def test_many_quiet_links_wake_before_the_ring_is_full(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source(ring=SMALLEST_RING)
    opened.settle()
    wake_ups = WakeUps(opened)
    node.batch([f"link add veth{number} type veth peer name vethp{number}" for number in range(8)])
    assert wake_ups.came()
    wake_ups.close()
    opened.resync()
    opened.audit()


def test_a_link_that_is_renamed_into_a_quiet_name_wakes(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source()
    node.ip("link add eth7 type veth peer name eth8")
    opened.settle()
    wake_ups = WakeUps(opened)
    node.ip("link set eth7 name veth7")
    assert wake_ups.came()
    node.ip("link set veth7 up")
    opened.source.drain()
    wake_ups.came(0)
    node.ip("link set veth7 down")
    assert not wake_ups.came(0)
    wake_ups.close()
    opened.source.drain()
    assert not opened.link("veth7").flags & 1


@pytest.mark.parametrize(
    "commands",
    [
        ["route add default dev wg9 metric 9"],
        ["nexthop add id 5 dev wg9"],
        ["route add default via 192.0.2.1 metric 9 src 10.9.0.1"],
        ["addr add 10.9.0.2/24 dev wg9", "route add default via 192.0.2.1 metric 9 src 10.9.0.2"],
    ],
    ids=["route", "nexthop object", "source of a route", "address that comes later"],
)
def test_a_quiet_link_that_a_choice_depends_on_wakes(
    node: Namespace, open_source: Callable[..., Opened], commands: list[str]
) -> None:
    node.ip("link add wg9 type veth peer name wg8")
    node.batch(["link set wg8 up", "link set wg9 up", "addr add 10.9.0.1/24 dev wg9"])
    opened = open_source()
    opened.settle()
    wake_ups = WakeUps(opened)
    node.ip("link set wg9 promisc on")
    assert not wake_ups.came(0)
    node.batch(commands)
    opened.resync()
    opened.settle()
    wake_ups.came(0)
    node.ip("link set wg9 down")
    assert wake_ups.came()
    wake_ups.close()
    opened.resync()
    assert not opened.link("wg9").flags & 1


def test_a_link_is_watched_no_longer_than_it_matters(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    node.ip("link add wg9 type veth peer name wg8")
    node.batch(["link set wg8 up", "link set wg9 up"])
    opened = open_source()
    node.ip("route add default dev wg9 metric 9")
    opened.resync()
    opened.settle()
    node.ip("route del default dev wg9 metric 9")
    opened.resync()
    opened.settle()
    wake_ups = WakeUps(opened)
    node.ip("link set wg9 down")
    assert not wake_ups.came(0)
    wake_ups.close()


def test_a_policy_that_takes_a_quiet_link_hears_of_it_at_once(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    node.ip("link add wg9 type veth peer name wg8")
    opened = open_source()
    opened.settle()
    wake_ups = WakeUps(opened)
    node.ip("link set wg9 up")
    assert not wake_ups.came(0)
    table = default_route_policy(families=FAMILIES, exclude_interfaces=["!wg*"])
    opened.engine.set_policy(0, table)
    opened.settle()
    assert opened.link("wg9").flags & 1
    wake_ups.came(0)
    node.ip("link set wg8 up")
    assert wake_ups.came()
    wake_ups.close()


def test_a_policy_that_takes_a_quiet_link_hears_of_its_addresses_at_once(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    node.batch(["link add wg9 type veth peer name wg8", "link set wg8 up"])
    opened = open_source()
    node.ip("link set wg9 up")
    opened.resync()
    opened.settle()
    wake_ups = WakeUps(opened)
    node.ip("addr add 10.9.0.1/24 dev wg9")
    assert not wake_ups.came(0)
    opened.engine.set_policy(
        0, default_route_policy(families=FAMILIES, exclude_interfaces=["!wg*"])
    )
    opened.settle()
    wake_ups.came(0)
    node.ip("addr add 10.9.0.2/24 dev wg9")
    assert wake_ups.came()
    wake_ups.close()
    opened.source.drain()
    assert "10.9.0.2" in opened.addresses()


@pytest.mark.parametrize("known", [False, True], ids=["any link", "its link"])
def test_a_route_to_a_target_goes_with_a_link_that_is_excluded_and_wakes(
    node: Namespace, open_source: Callable[..., Opened], known: bool
) -> None:
    node.ip("link add veth9 type veth peer name veth8")
    node.batch(["link set veth8 up", "link set veth9 up", "route add 203.0.113.0/24 dev veth9"])
    opened = open_source()
    opened.engine.set_targets((host_network("203.0.113.7"),))
    if known:
        opened.engine.set_grounds(Grounds(frozenset({ifindex(node, "veth9")})))
    opened.settle()
    before = opened.engine.lookups()
    wake_ups = WakeUps(opened)
    node.ip("link set veth9 down")
    assert wake_ups.came()
    wake_ups.close()
    opened.source.drain()
    assert opened.engine.lookups() > before


def test_an_excluded_link_that_is_not_on_the_way_to_a_target_wakes_nobody(
    node: Namespace, open_source: Callable[..., Opened]
) -> None:
    opened = open_source()
    opened.engine.set_targets((host_network("203.0.113.7"),))
    opened.engine.set_grounds(Grounds(frozenset({ifindex(node, "eth0")})))
    opened.settle()
    node.ip("link add veth9 type veth peer name veth8")
    node.batch(["link set veth8 up", "link set veth9 up"])
    opened.resync()
    opened.settle()
    before = opened.engine.lookups()
    wake_ups = WakeUps(opened)
    node.batch(["addr add 10.9.0.1/24 dev veth9", "link set veth9 down"])
    assert not wake_ups.came(0)
    wake_ups.close()
    opened.source.drain()
    assert "10.9.0.1" in opened.addresses()
    assert opened.engine.lookups() == before


def ifindex(node: Namespace, link: str) -> int:
    (found,) = node.json(f"link show dev {link}")
    number: int = found["ifindex"]
    return number
