"""How costs grow with routes, links and the rate of events, on a real kernel.

Everybody listens at the same time: what the machine does meanwhile hits all of them.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import bare
from benchmarks.figures import FAMILIES
from benchmarks.peers.process import Reader
from benchmarks.processes import SHOW, Run, timed
from benchmarks.samples import group_of_samples, hand_over
from benchmarks.storms import IPV4, Ground, build, recv, tracker
from tests.tiers import BPF, NETLINK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.growth import Curves
    from benchmarks.hosts import Hosts

STARTS = 3
ROUTES = (1000, 10_000, 30_000, 100_000)
STARTS_FITTED_FROM = 10_000
"""What a start costs without any route is most of it below."""
CHURNED = (3000, 10_000, 30_000, 100_000)
PAIRS = (30, 100, 300)
RATES = (100, 1000, 10_000, 100_000)
RATE_SECONDS = 2
FLIPS_MS = (100, 10, 1)

READERS: dict[str, Callable[[Ground], Reader]] = {
    "addrtracker, bpf": lambda ground: tracker(ground, str(BPF)),
    "addrtracker, netlink": lambda ground: tracker(ground, str(NETLINK)),
    "bare recv loop": recv,
}
each_reader = pytest.mark.parametrize("reader", READERS)

Points = dict[str, list[tuple[float, float]]]


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    build("load", "floor")


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.delete()


def processor(ground: Ground, load: Callable[[], dict[str, Any]]) -> tuple[Any, dict[str, float]]:
    """What the load said, and the seconds that it took each reader."""
    with contextlib.ExitStack() as stack:
        readers = {name: stack.enter_context(start(ground)) for name, start in READERS.items()}
        done = load()
        return done, {name: reader.report()["processor"] for name, reader in readers.items()}


def last(benchmark: BenchmarkFixture, points: list[tuple[float, float]]) -> None:
    """The curve's last point is what runs are compared by."""
    hand_over(benchmark, [points[-1][1]])
    benchmark.extra_info["points"] = points


def put(curves: Curves, plot: str, points: Points) -> Points:
    for name, of_it in points.items():
        curves.put(plot, name, of_it)
    return points


# Cold start over routes.


def run(hosts: Hosts, host: str, tmp_path_factory: pytest.TempPathFactory) -> float:
    started = Run(hosts[host], tmp_path_factory.mktemp("run"))
    started.close()
    return started.seconds


WAYS: dict[str, Callable[[Hosts, str, pytest.TempPathFactory], float]] = {
    "run to its first decision": run,
    "show": lambda hosts, host, _: timed(SHOW, hosts[host]).seconds,
    "bare C dump and parse": lambda hosts, host, _: bare.dump(hosts[host]),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", WAYS)
@group_of_samples("growth: cold start with 100000 routes")
def test_start(
    way: str,
    family: str,
    hosts: Hosts,
    curves: Curves,
    benchmark: BenchmarkFixture,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    points: list[tuple[float, float]] = []
    for count in ROUTES:
        host = family if count == ROUTES[-1] else f"{family}/{count}"
        WAYS[way](hosts, host, tmp_path_factory)
        took = [WAYS[way](hosts, host, tmp_path_factory) for _ in range(STARTS)]
        points.append((count, statistics.median(took)))
    curves.put("cold-start", f"{way}, {family}", points, STARTS_FITTED_FROM)
    last(benchmark, points)


# Processor time.


@pytest.fixture(scope="module")
def routes(ground: Ground, curves: Curves) -> Points:
    points: Points = {name: [] for name in READERS}
    for count in CHURNED:
        # mypy cannot infer a lambda with defaults, which bind this round's values.
        for name, taken in processor(ground, lambda n=count: ground.routes(n))[1].items():  # type: ignore[misc]
            points[name].append((count, taken))
    return put(curves, "routes", points)


@pytest.fixture(scope="module")
def pairs(ground: Ground, curves: Curves) -> Points:
    points: Points = {name: [] for name in READERS}
    for count in PAIRS:
        # mypy cannot infer a lambda with defaults, which bind this round's values.
        for name, taken in processor(ground, lambda n=count: ground.links(n))[1].items():  # type: ignore[misc]
            points[name].append((count, taken))
    return put(curves, "pairs", points)


@pytest.fixture(scope="module")
def rates(ground: Ground, curves: Curves) -> Points:
    """A second's processor time; the load takes away what it left, behind its time."""
    points: Points = {name: [] for name in READERS}
    for rate in RATES:
        words = ("rate", "eth0", rate, RATE_SECONDS, IPV4.flipping, 0)
        # mypy cannot infer a lambda with defaults, which bind this round's values.
        done, taken = processor(ground, lambda words=words: ground.load(*words))  # type: ignore[misc]
        reached = done["sent"] / done["seconds"]
        for name, seconds in taken.items():
            points[name].append((reached, seconds * reached / done["messages"]))
    return put(curves, "rates", points)


@pytest.fixture(scope="module")
def flips(ground: Ground, curves: Curves) -> Points:
    """A second's processor time of changes that all matter."""
    points: Points = {name: [] for name in READERS}
    for every_ms in FLIPS_MS:
        count = RATE_SECONDS * 1000 // every_ms
        words = (count, every_ms)
        # mypy cannot infer a lambda with defaults, which bind this round's values.
        _, taken = processor(ground, lambda words=words: ground.flips(*words))  # type: ignore[misc]
        for name, seconds in taken.items():
            points[name].append((count / RATE_SECONDS, seconds / RATE_SECONDS))
    return put(curves, "flips", points)


@group_of_samples("growth: 100000 routes that do not matter")
@each_reader
def test_routes(reader: str, routes: Points, benchmark: BenchmarkFixture) -> None:
    last(benchmark, routes[reader])


@group_of_samples("growth: 300 veth pairs")
@each_reader
def test_pairs(reader: str, pairs: Points, benchmark: BenchmarkFixture) -> None:
    last(benchmark, pairs[reader])


@group_of_samples("growth: a second of 1000 changes of the best address")
@each_reader
def test_flips(reader: str, flips: Points, benchmark: BenchmarkFixture) -> None:
    last(benchmark, flips[reader])


@group_of_samples("growth: a second of 100000 messages")
@each_reader
def test_rate(reader: str, rates: Points, benchmark: BenchmarkFixture) -> None:
    last(benchmark, rates[reader])
