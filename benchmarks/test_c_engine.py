"""The C engine without Python: engine_bench.c, run several times."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from benchmarks.engine_runs import DEFAULT
from benchmarks.figures import (
    ADDRESS_CHANGES,
    ADDRESS_MOST,
    BYTES,
    COMPARED,
    LINK_CHANGES,
    MODES,
    TO_WHOLE,
    TOLD,
    Measured,
    of_address,
    of_link,
    of_mode,
)
from benchmarks.samples import group_of_samples, hand_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.engine_runs import EngineRuns, Printed
    from benchmarks.growth import Curves

SIZES = (10, 100, 1000, 10_000, 100_000)
CHANGES = (*ADDRESS_CHANGES, *LINK_CHANGES)
TOLD_CHANGE = "best address flags, told"
WHOLE = "whole ranking"
LINK_COMES = "link comes or goes"
DEFAULT_COMES = "default route comes or goes"


def note(benchmark: BenchmarkFixture, runs: Sequence[Printed]) -> None:
    hand_over(benchmark, [run["median_ns"] / 1e9 for run in runs])
    benchmark.extra_info["p99_ns"] = statistics.median(run["p99_ns"] for run in runs)


@group_of_samples("C engine")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", [*CHANGES, TOLD_CHANGE, WHOLE])
def test_addresses(
    change: str, size: int, engine_runs: EngineRuns, benchmark: BenchmarkFixture, figures: Measured
) -> None:
    benchmark.group = f"C engine: {change}, by addresses of the host"
    note(benchmark, engine_runs.times(change, size))
    seconds = engine_runs.seconds(change, size)
    if change in ADDRESS_CHANGES and size in ADDRESS_MOST:
        figures.put(of_address(change, size), seconds, 1e9)
    if (change, size) == (TOLD_CHANGE, 1000):
        figures.put(TOLD, seconds, 1e9)


@group_of_samples("C engine")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", LINK_CHANGES)
def test_addresses_of_a_link(
    change: str, size: int, engine_runs: EngineRuns, benchmark: BenchmarkFixture, figures: Measured
) -> None:
    benchmark.group = f"C engine: {change}, by addresses of the link"
    note(benchmark, engine_runs.times(change, size, "link addresses"))
    if size == 1000:
        seconds = engine_runs.seconds(change, size, "link addresses")
        figures.put(of_link(change), seconds / size, 1e9)


@group_of_samples("C engine: a link comes or goes, by links of the host")
@pytest.mark.parametrize("size", [10, 100, 1000, 10_000])
def test_links(size: int, engine_runs: EngineRuns, benchmark: BenchmarkFixture) -> None:
    note(benchmark, engine_runs.times(LINK_COMES, size, "links"))


@group_of_samples("C engine: a default route comes or goes, by those of the host")
@pytest.mark.parametrize("size", [1, 10, 100, 1000])
def test_default_routes(size: int, engine_runs: EngineRuns, benchmark: BenchmarkFixture) -> None:
    note(benchmark, engine_runs.times(DEFAULT_COMES, size, "default routes"))


@group_of_samples("C engine")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("mode", [DEFAULT, *MODES])
def test_modes(
    mode: str, change: str, engine_runs: EngineRuns, benchmark: BenchmarkFixture
) -> None:
    benchmark.group = f"C engine: {change} among 1000 addresses, by mode"
    note(benchmark, engine_runs.times(change, 1000, mode=mode))


@pytest.mark.parametrize("mode", MODES)
def test_dearest_change_in_a_mode(mode: str, engine_runs: EngineRuns, figures: Measured) -> None:
    """Run by run: what slows one mode down slows the other one beside it."""
    ratios = []
    for change in CHANGES:
        runs, beside = (engine_runs.times(change, 1000, mode=each) for each in (mode, DEFAULT))
        pairs = zip(runs, beside, strict=True)
        ratios.append(statistics.median(a["median_ns"] / b["median_ns"] for a, b in pairs))
    figures.put(of_mode(mode), max(ratios))


def test_to_whole_ranking(engine_runs: EngineRuns, figures: Measured) -> None:
    dearest = max(engine_runs.seconds(change, COMPARED) for change in CHANGES)
    figures.put(TO_WHOLE, dearest / engine_runs.seconds(WHOLE, COMPARED))


def test_memory(engine_runs: EngineRuns, figures: Measured) -> None:
    for name, figure in BYTES.items():
        size, taken = engine_runs.memory(name)[-1]
        assert str(size) in figure.name
        figures.put(figure, taken / size)


def test_growth(engine_runs: EngineRuns, curves: Curves) -> None:
    for change in CHANGES:
        curves.put("addresses", change, engine_runs.curve(change))
    curves.put("recompute", "C engine", engine_runs.curve(WHOLE), fitted_from=1000)
    for change in LINK_CHANGES:
        points = engine_runs.curve(change, "link addresses")
        curves.put("link-addresses", change, points, fitted_from=100)
    curves.put("links", "C engine", engine_runs.curve(LINK_COMES, "links"))
    points = engine_runs.curve(DEFAULT_COMES, "default routes")
    curves.put("default-routes", "C engine", points, fitted_from=10)
    for name in BYTES:
        points = [(size, float(taken)) for size, taken in engine_runs.memory(name)]
        curves.put("memory", f"C engine: {name}", points, fitted_from=10)
