"""The filter in the kernel: what it saves, and what it costs others, beside what does without."""

from __future__ import annotations

import contextlib
import json
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.figures import (
    CHANGE_C,
    CHANGE_PLAIN,
    CHANGE_PYTHON,
    CHANGE_RING,
    CHANGE_STEP,
    DROPPED,
    FLIP_MS,
    LINKS,
    PAIRS,
    START_BCC,
    START_LIBBPF,
    STORM_LOST,
    STORM_MISSED,
    STORM_PLAIN_RATIO,
    STORM_PROCESSOR,
    STORM_RATIO,
    STORM_ROUTES,
    STORM_RSS,
    WRITER,
    WRITER_ALONE,
    Measured,
    median_ratio,
)
from benchmarks.processes import MB
from benchmarks.samples import hand_over, measured
from benchmarks.sights import delays
from benchmarks.storms import Ground, build, on_bpf, recv, tracker
from tests.tiers import BCC, BPF, NETLINK, RING, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.peers.process import Reader

STORMS = 3
ROUTES_OF_A_ROUND = 100_000
WRITER_ROUNDS = 9
FLIPS = 120
CHANGE_ROUNDS = 9
FLIP_PAUSE_MS = 10
SETTLE_SECONDS = 0.1
"""Behind so few changes there is nothing that could be left to read."""
STARTS = {str(BPF): 11, str(BCC): 3}
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    build("load", "floor")


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.delete()


class Storm:
    """One storm: what the recv loop and the tracker made of it."""

    def __init__(self, ground: Ground, tier: Tier) -> None:
        with recv(ground) as bare, tracker(ground, str(tier)) as session:
            self.changes = ground.routes(STORM_ROUTES, FLIP_MS)["changes"]
            self.session = session.report()
            self.bare = bare.report()
        assert delays(self.changes, self.bare["sights"]).missed == 0
        self.missed = delays(self.changes, self.session["sights"]).missed
        self.ratio = self.session["processor"] / self.bare["processor"]


def storms(ground: Ground, tier: Tier) -> list[Storm]:
    return [Storm(ground, tier) for _ in range(STORMS)]


@pytest.mark.benchmark(group="processor time of a storm", timer=measured)
def test_storm(ground: Ground, figures: Measured, benchmark: BenchmarkFixture) -> None:
    found = storms(ground, BPF)
    sessions = [storm.session for storm in found]
    taken = [session["processor"] for session in sessions]
    hand_over(benchmark, taken)
    benchmark.extra_info["bare_recv_s"] = [storm.bare["processor"] for storm in found]
    benchmark.extra_info["counters"] = sessions[-1]["counters"]
    figures.put(STORM_MISSED, sum(storm.missed for storm in found))
    figures.put(STORM_RATIO, statistics.median(storm.ratio for storm in found))
    figures.put(STORM_PROCESSOR, statistics.median(taken))
    figures.put(STORM_LOST, sum(session["lost"] for session in sessions))
    figures.put(STORM_RSS, max(session["grown"] for session in sessions) / MB)


@pytest.mark.benchmark(group="processor time of a storm", timer=measured)
def test_storm_on_the_plain_tier(
    ground: Ground, figures: Measured, benchmark: BenchmarkFixture
) -> None:
    found = storms(ground, NETLINK)
    hand_over(benchmark, [storm.session["processor"] for storm in found])
    benchmark.extra_info["missed"] = [storm.missed for storm in found]
    figures.put(STORM_PLAIN_RATIO, statistics.median(storm.ratio for storm in found))


def of_program(descriptor: int) -> tuple[int, int]:
    """Nanoseconds in a program, and how often it ran."""
    text = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    found = dict(re.findall(r"^(run_\w+):\s+(\d+)$", text, re.MULTILINE))
    return int(found["run_time_ns"]), int(found["run_cnt"])


@pytest.fixture
def _bpf_stats() -> Iterator[None]:
    before = STATS.read_text()
    STATS.write_text("1")
    yield
    STATS.write_text(before)


@pytest.mark.usefixtures("_bpf_stats")
def test_time_in_the_kernel(ground: Ground, figures: Measured) -> None:
    with on_bpf(ground, "ring", RING) as (reader, program):
        before_ns, before = of_program(program)
        ground.routes(ROUTES_OF_A_ROUND)
        after_ns, after = of_program(program)
        assert reader.report()["messages"] == 0
    assert after - before >= 2 * ROUTES_OF_A_ROUND
    figures.put(DROPPED, (after_ns - before_ns) / (after - before))


@pytest.mark.benchmark(group="a writer's route add", timer=measured)
def test_writer(ground: Ground, figures: Measured, benchmark: BenchmarkFixture) -> None:
    listeners: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
        "nobody": contextlib.nullcontext,
        "plain": lambda: recv(ground),
        "bpf": lambda: tracker(ground, str(BPF)),
    }
    took: dict[str, list[float]] = {name: [] for name in listeners}
    for _ in range(WRITER_ROUNDS):
        for name, listen in listeners.items():
            with listen():
                seconds = ground.routes(ROUTES_OF_A_ROUND)["add_seconds"]
            took[name].append(seconds / ROUTES_OF_A_ROUND)
    hand_over(benchmark, took["bpf"])
    benchmark.extra_info["route_add_s"] = took
    figures.put(WRITER, median_ratio(took["bpf"], took["plain"]))
    figures.put(WRITER_ALONE, median_ratio(took["bpf"], took["nobody"]))


@pytest.mark.benchmark(group=f"processor time of {PAIRS} veth pairs", timer=measured)
def test_links(ground: Ground, figures: Measured, benchmark: BenchmarkFixture) -> None:
    with tracker(ground, str(NETLINK)) as plain, tracker(ground, str(BPF)) as filtered:
        ground.links(PAIRS)
        reports = {"netlink": plain.report(), "bpf": filtered.report()}
    hand_over(benchmark, [reports["bpf"]["processor"]])
    benchmark.extra_info["reports"] = reports
    figures.put(LINKS, reports["bpf"]["processor"] / reports["netlink"]["processor"])


@pytest.mark.benchmark(group="one change on an idle host", timer=measured)
def test_change(ground: Ground, figures: Measured, benchmark: BenchmarkFixture) -> None:
    @contextlib.contextmanager
    def in_c(what: str) -> Iterator[Reader]:
        with on_bpf(ground, what, RING) as (reader, _):
            yield reader

    readers: dict[str, Callable[[], contextlib.AbstractContextManager[Reader]]] = {
        "ring": lambda: in_c("ring"),
        "C": lambda: in_c("source"),
        "Python": lambda: tracker(ground, str(BPF)),
        "netlink": lambda: tracker(ground, str(NETLINK)),
    }
    took: dict[str, list[float]] = {name: [] for name in readers}
    tails: dict[str, list[float | None]] = {name: [] for name in readers}
    ends: list[float] = []
    for _ in range(CHANGE_ROUNDS):
        for name, start in readers.items():
            with start() as reader:
                changes = ground.flips(FLIPS, FLIP_PAUSE_MS)["changes"]
                report = reader.report(SETTLE_SECONDS)
            found = delays(changes, report.get("decided", report["sights"]))
            if name == "Python":
                ends.append(statistics.median(delays(changes, report["sights"]).seconds))
            took[name].append(statistics.median(found.seconds))
            tails[name].append(found.row()["p99_s"])
    hand_over(benchmark, took["Python"])
    benchmark.extra_info |= {"median_s": took, "p99_s": tails, "end_of_step_s": ends}
    figures.put(CHANGE_RING, statistics.median(took["ring"]), 1e6)
    figures.put(CHANGE_C, median_ratio(took["C"], took["ring"]))
    figures.put(CHANGE_PYTHON, median_ratio(took["Python"], took["ring"]))
    figures.put(CHANGE_STEP, median_ratio(ends, took["ring"]))
    figures.put(CHANGE_PLAIN, statistics.median(took["netlink"]), 1e6)


@pytest.mark.benchmark(group="load and attach", timer=measured)
@pytest.mark.parametrize("tier", [BPF, BCC], ids=str)
def test_start(tier: Tier, ground: Ground, figures: Measured, benchmark: BenchmarkFixture) -> None:
    took = []
    for _ in range(STARTS[str(tier)]):
        with tracker(ground, str(tier)) as reader:
            took.append(json.loads(reader.ready)["opened"])
    hand_over(benchmark, took)
    figures.put({BPF: START_LIBBPF, BCC: START_BCC}[tier], statistics.median(took), 1e3)
