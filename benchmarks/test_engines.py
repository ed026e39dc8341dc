"""Both engines as Python sees them: from a record to the answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from benchmarks.engines import BEST, CHANGES, MODES, filled, set_mode
from benchmarks.figures import ADDRESS_CHANGES, COMPARED, LINK_CHANGES, TO_REFERENCE, Measured
from benchmarks.samples import MemoryOf, group, median, rounds
from tests import build, engines

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.engine_runs import EngineRuns
    from benchmarks.growth import Curves

SIZES = (10, 100, 1000, 10_000, 100_000)
RANKINGS = 5
MOST = {"native": 100_000, "reference": 10_000}
"""The reference sorts everything at each record: with 100,000 addresses one takes seconds."""

each_engine = pytest.mark.parametrize("engine", sorted(engines.NAMES))
each_engine_and_size = pytest.mark.parametrize(
    ("engine", "size"),
    [(name, size) for name in sorted(engines.NAMES) for size in SIZES if size <= MOST[name]],
)
with_answers = pytest.mark.parametrize(
    ("engine", "size"), [("native", 1000), ("native", 10_000), ("reference", 1000)]
)


@group("engine")
@each_engine_and_size
@pytest.mark.parametrize("change", CHANGES)
def test_change(change: str, engine: str, size: int, benchmark: BenchmarkFixture) -> None:
    """Of the best address: two records, it is deprecated and another one no longer."""
    benchmark.group = f"engine: {change}"
    host = filled(engines.make(engine), size)
    changes = itertools.cycle(CHANGES[change](host, size))
    assert benchmark(lambda: host.apply(next(changes))) in {1, 2}


@group("engine: a change of the best address among 1000, by mode")
@each_engine
@pytest.mark.parametrize("mode", MODES)
def test_change_in_a_mode(engine: str, mode: str, benchmark: BenchmarkFixture) -> None:
    host = filled(engines.make(engine), 1000)
    set_mode(host, mode)
    best = host.view(0, "ipv4").best
    assert best is not None
    assert best.address == BEST
    changes = itertools.cycle(CHANGES["best address"](host, 1000))
    assert benchmark(lambda: host.apply(next(changes))) == 2


@group("engine: view")
@with_answers
def test_view(engine: str, size: int, benchmark: BenchmarkFixture) -> None:
    host = filled(engines.make(engine), size)
    assert benchmark(host.view, 0, "ipv4").best.address == BEST


@group("engine: rows")
@with_answers
def test_rows(engine: str, size: int, benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    host = filled(engines.make(engine), size)
    assert len(benchmark(host.rows, 0, "ipv4")) == size
    memory.allocated(lambda: host.rows(0, "ipv4"))


@pytest.fixture(scope="module")
def rankings(curves: Curves) -> dict[str, list[tuple[float, float]]]:
    """Points of the whole rankings, by engine."""
    return {name: [] for name in engines.NAMES}


@group("engine: whole ranking")
@each_engine_and_size
def test_whole_ranking(
    engine: str,
    size: int,
    benchmark: BenchmarkFixture,
    figures: Measured,
    engine_runs: EngineRuns,
    rankings: dict[str, list[tuple[float, float]]],
) -> None:
    """A policy that is set anew: nothing that was ranked before is of use."""
    host = filled(engines.make(engine), size)
    rounds(benchmark, host.set_policy, RANKINGS, args=(0, build.policy()))
    best = host.view(0, "ipv4").best
    assert best is not None
    assert best.address == BEST
    taken = median(benchmark)
    if taken is None:
        return
    rankings[engine].append((size, taken))
    if (engine, size) == ("reference", COMPARED):
        changes = (*ADDRESS_CHANGES, *LINK_CHANGES)
        dearest = max(engine_runs.seconds(change, COMPARED) for change in changes)
        figures.put(TO_REFERENCE, dearest / taken)


def test_growth(rankings: dict[str, list[tuple[float, float]]], curves: Curves) -> None:
    for name, points in rankings.items():
        if len(points) > 2:
            curves.put("recompute", f"{name}, called by Python", points, fitted_from=1000)


@group("engine: state from nothing")
@with_answers
def test_fill(engine: str, size: int, benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    """All records of a host, then its policy."""
    rounds(benchmark, lambda: filled(engines.make(engine), size), 3)
    memory.allocated(lambda: filled(engines.make(engine), size))
