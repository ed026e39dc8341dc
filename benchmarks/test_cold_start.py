"""From nothing to an answer on a host with a full table, beside the least that anybody could do."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

import pytest

from benchmarks import bare
from benchmarks.figures import COLD_FLOOR, COLD_RUN, COLD_SHOW, FULL, Measured, median_ratio
from benchmarks.processes import MB, PASS, SHOW, Run, timed
from benchmarks.samples import PEAK_RSS, MemoryOf, group_of_samples, hand_over
from benchmarks.storms import build

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.hosts import Hosts

ROUNDS = 9
BARE, PYTHON, RUN = "bare C dump and parse", "python -c pass", "run"
COMMANDS = {PYTHON: PASS, "show": SHOW}

Samples = dict[str, list[float]]


class Starts(NamedTuple):
    """Seconds of each, round by round."""

    seconds: Samples
    peaks: list[float]
    """Bytes that `run` had at most."""


@pytest.fixture(scope="module")
def starts(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Starts:
    """By turns: what disturbs a round disturbs all of them."""
    build("floor")
    found = Starts({name: [] for name in (BARE, *COMMANDS, RUN)}, [])
    for number in range(ROUNDS + 1):
        took = {name: timed(command, hosts[FULL]).seconds for name, command in COMMANDS.items()}
        took[BARE] = bare.dump(hosts[FULL])
        run = Run(hosts[FULL], tmp_path_factory.mktemp("run"))
        took[RUN] = run.seconds
        if number:  # the first one made the bytecode and filled the page cache
            for name, seconds in took.items():
                found.seconds[name].append(seconds)
            found.peaks.append(run.rss()["VmHWM"] * MB)
        run.close()
    return found


@group_of_samples(f"cold start: {FULL}")
@pytest.mark.parametrize("name", [BARE, *COMMANDS, RUN])
def test_cold_start(
    name: str, starts: Starts, benchmark: BenchmarkFixture, memory: MemoryOf
) -> None:
    hand_over(benchmark, starts.seconds[name])
    if name == RUN:
        memory.put(PEAK_RSS, starts.peaks)


def test_figures(starts: Starts, figures: Measured) -> None:
    seconds = starts.seconds
    both = zip(seconds[BARE], seconds[PYTHON], strict=True)
    least = [dump + start for dump, start in both]
    figures.put(COLD_FLOOR, statistics.median(least), 1e3)
    figures.put(COLD_SHOW, median_ratio(seconds["show"], least))
    figures.put(COLD_RUN, median_ratio(seconds[RUN], least))
