"""The C engine without Python: engine_bench.c, run several times."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.figures import CHANGES, FIGURES, MODES, Figure, Measured, mode_ratio
from benchmarks.samples import hand_over, measured, median

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

ROOT = Path(__file__).resolve().parents[1]
RUNS = 7
SAMPLES = 4000
"""Of each run, a hundredth of that for a change of a whole link."""

DEFAULT = "default-route"
Runs = dict[tuple[str, str], list[dict[str, Any]]]
OF_C = [figure for figure in FIGURES if figure.name.startswith("C: ")]


@pytest.fixture(scope="module")
def medians() -> Runs:
    """What each run printed, by mode and the name of the figure."""
    program = ROOT / ".build/engine_bench"
    program.parent.mkdir(exist_ok=True)
    sources = map(str, [ROOT / "benchmarks/engine_bench.c", *(ROOT / "native").glob("*.c")])
    include = [f"-I{ROOT / 'native'}", f"-I{ROOT / 'bpf'}"]
    command = ["gcc", "-std=gnu11", "-O2", *include, "-o", str(program), *sources]
    subprocess.run(command, check=True)
    found = defaultdict(list)
    for _ in range(RUNS):
        done = subprocess.run([program, str(SAMPLES)], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            printed = json.loads(line)
            found[printed["mode"], _name(printed)].append(printed)
    return found


def _name(printed: dict[str, Any]) -> str:
    each = " on the link, for each" if printed["per"] == "address" else ""
    return f"C: {printed['name']}, {printed['n']} addresses{each}"


@pytest.mark.benchmark(group="C engine", timer=measured)
@pytest.mark.parametrize("figure", OF_C, ids=[figure.name.removeprefix("C: ") for figure in OF_C])
def test_c_engine(
    figure: Figure,
    medians: Runs,
    benchmark: BenchmarkFixture,
    figures: Measured,
) -> None:
    runs = medians[DEFAULT, figure.name]
    hand_over(benchmark, [run["median_ns"] / 1e9 for run in runs])
    benchmark.extra_info["p99_ns"] = [run["p99_ns"] for run in runs]
    figures.put(figure, median(benchmark), 1e9)


@pytest.mark.benchmark(group="C engine, modes", timer=measured)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("mode", MODES)
def test_modes(
    mode: str, change: str, medians: Runs, benchmark: BenchmarkFixture, figures: Measured
) -> None:
    """Run by run: what slows one mode down slows the other one beside it."""
    runs, beside = medians[mode, f"C: {change}"], medians[DEFAULT, f"C: {change}"]
    hand_over(benchmark, [run["median_ns"] / 1e9 for run in runs])
    ratios = [
        run["median_ns"] / other["median_ns"] for run, other in zip(runs, beside, strict=True)
    ]
    figures.put(mode_ratio(mode, change), statistics.median(ratios))


def test_every_measurement_is_a_figure(medians: Runs) -> None:
    default = {(DEFAULT, figure.name) for figure in OF_C}
    assert set(medians) == default | {(mode, f"C: {name}") for mode in MODES for name in CHANGES}
