"""A wait ends when something is due, and for nothing else."""

from __future__ import annotations

import os
import resource
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tracker.capture.base import Wake
from tracker.capture.netlink import boot_ns, enter_netns
from tracker.capture.record import Addr, iter_records
from tracker.engine.base import NEVER
from tracker.engine.native import NativeEngine
from tracker.errors import UsageError
from tracker.model import FAMILIES, Scope
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.tiers import Tier
    from tracker.capture.netlink import NetlinkSource

MS = 1_000_000
BETTER = "route add default via 192.0.2.1 metric 50 src 192.0.2.11"


def long() -> int:
    """A deadline that a test must not reach."""
    return boot_ns() + 10_000 * MS


@pytest.fixture
def source(host: Namespace, router: Namespace, tier: Tier) -> Iterator[NetlinkSource]:
    """A source that has read everything; this thread is inside of `host`."""
    connect(host, "eth0", router, "eth0")
    host.batch(["addr add 192.0.2.11/24 dev eth0", "route add default via 192.0.2.1 metric 100"])
    # Nothing comes by itself any more: no DAD, no router solicitation.
    host.sysctl("ipv6/conf/all/disable_ipv6", 1)
    with host.entered():
        engine = NativeEngine()
        engine.set_policy(0, default_route_policy(families=FAMILIES))
        source = tier.open(engine)
        source.drain()
        for scope in Scope:
            assert source.dump(scope)
        assert engine.dirty() == []
        engine.changed()
        yield source
        source.close()


def test_a_deadline_ends_it_and_not_before(source: NetlinkSource) -> None:
    deadline = boot_ns() + 20 * MS
    assert source.wait(deadline) == Wake.TIMEOUT
    assert boot_ns() >= deadline


def test_a_deadline_that_is_over_ends_it_at_once(source: NetlinkSource) -> None:
    assert source.wait(0) == Wake.TIMEOUT


def test_deadlines_can_come_and_go(source: NetlinkSource) -> None:
    """A timer that fired once must not fire again."""
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT
    threading.Timer(0.05, source.wake).start()
    assert source.wait(NEVER) == Wake.USER
    later = boot_ns() + 3600_000 * MS
    threading.Timer(0.05, source.wake).start()
    assert source.wait(later) == Wake.USER
    sooner = boot_ns() + 20 * MS
    assert source.wait(sooner) == Wake.TIMEOUT
    assert boot_ns() >= sooner


def test_a_wake_before_the_wait_is_not_lost(source: NetlinkSource) -> None:
    source.wake()
    source.wake()
    assert source.wait(long()) == Wake.USER
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT


@pytest.mark.both_loaders
def test_a_change_ends_it(source: NetlinkSource, host: Namespace) -> None:
    adding = threading.Timer(0.05, host.ip, [BETTER])
    adding.start()
    assert source.wait(long()) == Wake.CHANGED
    adding.join()
    # It is the caller who takes the change off.
    assert source.wait(long()) == Wake.CHANGED
    assert (0, "ipv4") in source.engine.changed()
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT


@pytest.mark.both_loaders
def test_changes_that_matter_to_nobody_do_not_end_it(
    source: NetlinkSource, host: Namespace
) -> None:
    host.batch([f"route add 10.0.{n}.0/24 via 192.0.2.1" for n in range(100)])
    host.ip("route add default via 192.0.2.1 table 100")
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT
    assert source.counters()["dropped.RTM_NEWROUTE"] == 101


def test_changes_that_alter_no_answer_do_not_end_it(source: NetlinkSource, host: Namespace) -> None:
    host.batch([f"addr add 192.0.2.{n}/24 dev eth0" for n in range(12, 112)])
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT
    assert len(source.engine.rows(0, "ipv4")) == 102


def test_new_dirt_ends_it_and_old_dirt_does_not(source: NetlinkSource, host: Namespace) -> None:
    host.ip("link set eth0 down")
    assert Wake.DIRTY in source.wait(long())
    dirt = source.engine.dirty()
    assert {dirty.scope for dirty in dirt} == {Scope.ROUTE4}
    source.engine.changed()
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT
    source.engine.lose((Scope.LINK,))
    assert source.wait(boot_ns() + MS) == Wake.TIMEOUT
    assert source.drain() == Wake.DIRTY


def test_records_in_the_tap_end_it(source: NetlinkSource, host: Namespace) -> None:
    source.tap(1 << 16)
    host.ip("addr add 192.0.2.12/24 dev eth0")
    assert source.wait(long()) == Wake.TAP
    (record,) = iter_records(source.read_tap())
    assert isinstance(record.payload, Addr)
    assert source.read_tap() == b""


def test_a_signal_ends_it_after_its_handler_ran(source: NetlinkSource) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert source.wait(long()) == Wake.USER
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [signal.SIGALRM]


def test_ctrl_c_ends_it_as_everywhere(source: NetlinkSource) -> None:
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        source.wait(long())


def test_an_idle_wait_sleeps_all_the_time(source: NetlinkSource) -> None:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    assert source.wait(boot_ns() + 300 * MS) == Wake.TIMEOUT
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before <= 2


def test_a_closed_source_says_so_and_can_still_be_woken(source: NetlinkSource) -> None:
    source.close()
    source.wake()
    source.close()
    with pytest.raises(ValueError, match="closed"):
        source.wait(0)


def test_a_namespace_that_does_not_exist_is_one_line(host: Namespace) -> None:
    with pytest.raises(UsageError, match=r"^network namespace 'nowhere': No such file"):
        enter_netns("nowhere")


def test_a_file_that_is_no_namespace_is_one_line(host: Namespace) -> None:
    with pytest.raises(UsageError, match=r"^network namespace '/etc/hosts': Invalid argument"):
        enter_netns("/etc/hosts")


def test_a_namespace_can_be_entered_by_name_and_by_path(host: Namespace) -> None:
    inode = os.stat(host.path).st_ino
    with host.entered():
        pass
    for name in (host.name, host.path):
        done: list[int] = []

        def enter(name: str = name, done: list[int] = done) -> None:
            enter_netns(name)
            done.append(os.stat("/proc/thread-self/ns/net").st_ino)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert done == [inode]
