"""How costs grow with routes, links and the rate of events, on a real kernel.

Everybody listens at the same time: what the machine does meanwhile hits all of them.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from benchmarks.figures import FAMILIES
from benchmarks.peers.process import Reader
from benchmarks.processes import SHOW, Run, timed
from benchmarks.samples import group_of_samples, hand_over
from benchmarks.storms import BUILD, Ground, build, recv, tracker
from tests.tiers import BPF, NETLINK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.growth import Curves
    from benchmarks.hosts import Hosts

STARTS = 3
ROUTES = (1000, 10_000, 100_000)
CHURNED = (3000, 10_000, 30_000, 100_000)
PAIRS = (30, 100, 300)
RATES = (100, 1000, 10_000, 100_000)
RATE_SECONDS = 2

READERS: dict[str, Callable[[Ground], Reader]] = {
    "addrtracker, bpf": lambda ground: tracker(ground, str(BPF)),
    "addrtracker, netlink": lambda ground: tracker(ground, str(NETLINK)),
    "bare recv loop": recv,
}
Points = dict[str, list[tuple[float, float]]]


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    build("load", "floor")


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.delete()


def processor(ground: Ground, load: Callable[[], object]) -> dict[str, float]:
    """Seconds that each reader took for a load."""
    with contextlib.ExitStack() as stack:
        readers = {name: stack.enter_context(start(ground)) for name, start in READERS.items()}
        load()
        return {name: reader.report()["processor"] for name, reader in readers.items()}


def note(
    benchmark: BenchmarkFixture, curves: Curves, plot: str, points: Points, fitted_from: float = 0
) -> None:
    """Keep the curves; the benchmark is the last point of the first one."""
    for name, of_it in points.items():
        curves.put(plot, name, of_it, fitted_from)
    first = next(iter(points.values()))
    hand_over(benchmark, [first[-1][1]])
    benchmark.extra_info["points"] = points


@pytest.mark.parametrize("family", FAMILIES)
@group_of_samples("growth: cold start over routes")
def test_starts(
    family: str,
    hosts: Hosts,
    curves: Curves,
    benchmark: BenchmarkFixture,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def run(host: str) -> float:
        started = Run(hosts[host], tmp_path_factory.mktemp("run"))
        started.close()
        return started.seconds

    dump = (str(BUILD / "floor"), "dump")
    ways: dict[str, Callable[[str], float]] = {
        f"run to its first decision, {family}": run,
        f"show, {family}": lambda host: timed(SHOW, hosts[host]).seconds,
        f"bare C dump and parse, {family}": lambda host: timed(dump, hosts[host]).seconds,
    }
    points: Points = {name: [] for name in ways}
    for count in ROUTES:
        host = family if count == ROUTES[-1] else f"{family}/{count}"
        for name, way in ways.items():
            way(host)
            points[name].append((count, statistics.median(way(host) for _ in range(STARTS))))
    note(benchmark, curves, "cold-start", points)


@group_of_samples("growth: processor time of routes that do not matter")
def test_routes(ground: Ground, curves: Curves, benchmark: BenchmarkFixture) -> None:
    points: Points = {name: [] for name in READERS}
    for count in CHURNED:
        for name, taken in processor(ground, lambda n=count: ground.routes(n)).items():  # type: ignore[misc]
            points[name].append((count, taken))
    note(benchmark, curves, "routes", points)


@group_of_samples("growth: processor time of veth pairs")
def test_pairs(ground: Ground, curves: Curves, benchmark: BenchmarkFixture) -> None:
    points: Points = {name: [] for name in READERS}
    for count in PAIRS:
        for name, taken in processor(ground, lambda n=count: ground.links(n)).items():  # type: ignore[misc]
            points[name].append((count, taken))
    note(benchmark, curves, "pairs", points)


@group_of_samples("growth: processor time by rate")
def test_rate(ground: Ground, curves: Curves, benchmark: BenchmarkFixture) -> None:
    points: Points = {name: [] for name in READERS}
    for rate in RATES:
        done: dict[str, float] = {}

        def load(rate: int = rate, done: dict[str, float] = done) -> None:
            done.update(ground.load("rate", "eth0", rate, RATE_SECONDS, "10.1.0.10/24", 0))

        taken = processor(ground, load)
        reached = done["sent"] / done["seconds"]
        for name, seconds in taken.items():
            # The load takes away what it left, behind its time.
            points[name].append((reached, seconds * reached / done["messages"]))
    note(benchmark, curves, "events", points)
