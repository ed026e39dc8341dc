"""From what a source brings to what consumers get, in one process."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import generate_latest

from benchmarks.engines import BEST, PREFIXLEN, SECOND, Fed, best_in_turn, other_in_turn
from benchmarks.samples import rounds
from tests import build
from tests.soak.rtnl import Rtnl, ifindex
from tracker.api.metrics import MetricsCollector, registry
from tracker.capture.netlink import NetlinkSource
from tracker.clock import SystemClock, VirtualClock
from tracker.config import Networks
from tracker.engine.native import NativeEngine
from tracker.lastrun import INSTANT
from tracker.node import node_document
from tracker.publish.files import FilesPublisher
from tracker.session import NODE, Session
from tracker.stats import DECISION_BOUNDS, Histogram, collect

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.hosts import Host
    from tracker.capture.base import Source
    from tracker.clock import Clock

SIZE = 1000
FOREVER = 0xFFFFFFFF


def session_of(source: Source, clock: Clock) -> Session:
    return Session(source, {NODE: build.policy()}, INSTANT, clock, hostname="n1")


def started() -> tuple[Session, Fed]:
    source = Fed(NativeEngine(), SIZE)
    session = session_of(source, VirtualClock())
    session.start()
    return session, source


@pytest.mark.benchmark(group="session: start, 1000 addresses")
def test_session_start(benchmark: BenchmarkFixture) -> None:
    """Dumps of records that are ready, and the first decision."""

    def prepare() -> tuple[tuple[Session], dict[str, object]]:
        return (session_of(Fed(NativeEngine(), SIZE), VirtualClock()),), {}

    rounds(benchmark, Session.start, 20, setup=prepare)


@pytest.mark.benchmark(group="session: one step, 1000 addresses")
def test_step_without_a_change_of_the_decision(benchmark: BenchmarkFixture) -> None:
    session, source = started()
    source.changes = itertools.cycle(other_in_turn(SIZE))
    assert benchmark(session.step) is False


@pytest.mark.benchmark(group="session: one step, 1000 addresses")
def test_step_with_another_primary_address(benchmark: BenchmarkFixture) -> None:
    session, source = started()
    source.changes = itertools.cycle(best_in_turn())

    def step() -> bool:
        changed = session.step()
        session.take_changes()
        return changed

    assert benchmark(step) is True


@pytest.mark.benchmark(group="session: one step, 1000 addresses")
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


@pytest.mark.benchmark(group="session: document")
def test_node_document(benchmark: BenchmarkFixture) -> None:
    session, _ = started()
    document = benchmark(lambda: node_document(session.decision(), Networks()))
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


@pytest.mark.benchmark(group="files")
def test_publish_another_address(
    benchmark: BenchmarkFixture, documents: Iterator[dict[str, object]], tmp_path: Path
) -> None:
    """Three files, each written, fsynced and renamed."""
    publisher = FilesPublisher(str(tmp_path))
    written = rounds(benchmark, publisher.publish, 50, setup=lambda: ((next(documents),), {}))
    assert written == 3


@pytest.mark.benchmark(group="files")
def test_publish_what_is_there(
    benchmark: BenchmarkFixture, documents: Iterator[dict[str, object]], tmp_path: Path
) -> None:
    publisher = FilesPublisher(str(tmp_path))
    document = next(documents)
    publisher.publish(document)
    assert benchmark(publisher.publish, document) == 0


@pytest.mark.benchmark(group="metrics, 1000 addresses")
def test_collect(benchmark: BenchmarkFixture) -> None:
    """What the session's own thread does for a scrape."""
    session, _ = started()
    stats = benchmark(collect, session, Histogram(DECISION_BOUNDS))
    assert sum(stats.candidates.values()) == SIZE


@pytest.mark.benchmark(group="metrics, 1000 addresses")
def test_scrape(benchmark: BenchmarkFixture) -> None:
    """All of it, in the thread that answers."""
    session, _ = started()
    took = Histogram(DECISION_BOUNDS)
    own = registry(MetricsCollector(lambda: collect(session, took)))
    assert b"addrtracker_candidates" in benchmark(generate_latest, own)
