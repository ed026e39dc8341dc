"""From what a source brings to what consumers get, in one process."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import generate_latest

from benchmarks.engines import BEST, PREFIXLEN, SECOND, Fed, best_in_turn, other_in_turn
from benchmarks.samples import MemoryOf, group, rounds
from tests import build
from tests.soak.rtnl import Rtnl, ifindex
from tracker.api.metrics import MetricsCollector, registry
from tracker.capture.netlink import NetlinkSource
from tracker.capture.resync import Resync
from tracker.clock import SystemClock, VirtualClock
from tracker.config import Networks
from tracker.decision import Decider
from tracker.engine.native import NativeEngine
from tracker.lastrun import INSTANT
from tracker.model import IPV4, Scope
from tracker.node import node_document
from tracker.publish.files import FilesPublisher
from tracker.session import NODE, Session
from tracker.stats import DECISION_BOUNDS, Histogram, collect

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.hosts import Host, Hosts
    from tracker.capture.base import Source
    from tracker.clock import Clock
    from tracker.model import View

SIZE = 1000
FOREVER = 0xFFFFFFFF


def session_of(source: Source, clock: Clock) -> Session:
    return Session(source, {NODE: build.policy()}, INSTANT, clock, hostname="n1")


def started() -> tuple[Session, Fed]:
    source = Fed(NativeEngine(), SIZE)
    session = session_of(source, VirtualClock())
    session.start()
    return session, source


@group("session: start, 1000 addresses")
def test_session_start(benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    """Dumps of records that are ready, and the first decision."""

    def prepare() -> tuple[tuple[Session], dict[str, object]]:
        return (session_of(Fed(NativeEngine(), SIZE), VirtualClock()),), {}

    rounds(benchmark, Session.start, 20, setup=prepare)
    (session,), _ = prepare()
    memory.allocated(session.start)


RESYNCED = {
    "1000": "1000 addresses",
    "20000": "20000 addresses",
    "IPv4": "1000 addresses, 100000 IPv4 routes",
    "IPv6": "1000 addresses, 100000 IPv6 routes",
}


@group("session: from a loss of everything to the verified answer")
@pytest.mark.parametrize("host", RESYNCED, ids=RESYNCED.values())
def test_resync(host: str, benchmark: BenchmarkFixture, hosts: Hosts) -> None:
    """The step that asks the kernel for all that it has, and ends with nothing in doubt."""
    clock = SystemClock()
    with hosts[host].namespace.entered():
        session = session_of(NetlinkSource(NativeEngine()), clock)
        session.start()

        def lose() -> None:
            session.resync = Resync(session.source, clock)  # as after a quiet time
            session.engine.lose(tuple(Scope))
            assert any(dirty.lost for dirty in session.engine.dirty())

        rounds(benchmark, session.step, 10, setup=lose)
        assert session.engine.dirty() == []
    session.source.close()


def sights_in_turn() -> tuple[Decider, list[View]]:
    """A decider, and views of which each makes it take the other one of two addresses."""
    session, _ = started()
    engine, views = session.engine, []
    for incumbent, change in zip((BEST, SECOND), best_in_turn(), strict=True):
        engine.set_incumbent(0, IPV4, incumbent)
        engine.apply(change)
        views.append(engine.view(0, IPV4))
    decider = Decider(build.policy(), INSTANT.stability, 0)
    decider.step(1, views[1]._replace(incumbent=None))
    assert decider.address == BEST
    return decider, views


@group("decision")
def test_decision_that_stays(benchmark: BenchmarkFixture) -> None:
    decider, views = sights_in_turn()
    decider.step(2, views[0])
    stays = views[1]._replace(incumbent=views[1].incumbent, best=views[1].incumbent)
    assert benchmark(decider.step, 3, stays) is False


@group("decision")
def test_decision_for_another_address(benchmark: BenchmarkFixture) -> None:
    decider, views = sights_in_turn()
    given = itertools.cycle(views)
    assert benchmark(lambda: decider.step(2, next(given))) is True


@group("session: one step, 1000 addresses")
def test_step_without_a_change_of_the_decision(benchmark: BenchmarkFixture) -> None:
    session, source = started()
    source.changes = itertools.cycle(other_in_turn(SIZE))
    assert benchmark(session.step) is False


@group("session: one step, 1000 addresses")
def test_step_with_another_primary_address(benchmark: BenchmarkFixture) -> None:
    session, source = started()
    source.changes = itertools.cycle(best_in_turn())

    def step() -> bool:
        changed = session.step()
        session.take_changes()
        return changed

    assert benchmark(step) is True


@group("session: one step, 1000 addresses")
def test_step_from_the_socket(benchmark: BenchmarkFixture, own_host: Host) -> None:
    """Two messages wait on a real socket: they make another address the primary one."""
    preferred = itertools.cycle(((0, FOREVER), (FOREVER, 0)))
    with own_host.namespace.entered():
        rtnl = Rtnl()
        eth0 = ifindex("eth0")
        session = session_of(NetlinkSource(NativeEngine()), SystemClock())
        session.start()

        def change() -> None:
            for address, seconds in zip((BEST, SECOND), next(preferred), strict=True):
                assert rtnl.address(True, eth0, address, PREFIXLEN, seconds) == 0

        assert rounds(benchmark, session.step, 300, setup=change) is True
    session.source.close()
    rtnl.close()


@group("session: document")
def test_node_document(benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    session, _ = started()

    def make() -> dict[str, Any]:
        return node_document(session.decision(), Networks())

    document = benchmark(make)
    memory.allocated(make)
    assert document["primary"]["ipv4"] == BEST


@pytest.fixture
def documents() -> Iterator[dict[str, Any]]:
    """One that differs from the last one, for ever."""
    session, source = started()
    source.changes = itertools.cycle(best_in_turn())

    def differ() -> Iterator[dict[str, object]]:
        while session.step():
            yield node_document(session.decision(), Networks())

    return differ()


@group("files: a document")
def test_publish_another_address(
    benchmark: BenchmarkFixture, documents: Iterator[dict[str, object]], tmp_path: Path
) -> None:
    """Three files, each written, fsynced and renamed."""
    publisher = FilesPublisher(str(tmp_path))
    written = rounds(benchmark, publisher.publish, 50, setup=lambda: ((next(documents),), {}))
    assert written == 3


@group("files: a document")
def test_publish_what_is_there(
    benchmark: BenchmarkFixture, documents: Iterator[dict[str, object]], tmp_path: Path
) -> None:
    publisher = FilesPublisher(str(tmp_path))
    document = next(documents)
    publisher.publish(document)
    assert benchmark(publisher.publish, document) == 0


@group("metrics: 1000 addresses")
def test_collect(benchmark: BenchmarkFixture) -> None:
    """What the session's own thread does for a scrape."""
    session, _ = started()
    stats = benchmark(collect, session, Histogram(DECISION_BOUNDS))
    assert sum(stats.candidates.values()) == SIZE


@group("metrics: 1000 addresses")
def test_scrape(benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    """All of it, in the thread that answers."""
    session, _ = started()
    took = Histogram(DECISION_BOUNDS)
    own = registry(MetricsCollector(lambda: collect(session, took)))
    assert b"addrtracker_candidates" in benchmark(generate_latest, own)
    memory.allocated(lambda: generate_latest(own))
