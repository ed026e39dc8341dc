"""`addrtracker run` as a whole process: its start, its memory, and that it sleeps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from benchmarks.figures import (
    FAMILIES,
    RUN,
    RUN_RSS,
    RUN_WAKE_UPS,
    Measured,
    median_difference,
    median_ratio,
    routes_rss,
    routes_time,
)
from benchmarks.processes import MB, Run
from benchmarks.samples import PEAK_RSS, MemoryOf, group_of_samples, hand_over

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.hosts import Hosts

ROUNDS = 9
SETTLED_SECONDS = 1
IDLE_SECONDS = 10
SCRAPES = 10

HOSTS = {"1000": "no routes", **{family: f"100000 {family} routes" for family in FAMILIES}}
"""Hosts, and what they are called."""


class Start(NamedTuple):
    """One start."""

    seconds: float
    peak: float
    """VmHWM in MB."""


Starts = dict[str, list[Start]]


@pytest.fixture(scope="module")
def starts(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Starts:
    """By turns, and each as the first run of its host."""
    for name in HOSTS:
        Run(hosts[name], tmp_path_factory.mktemp("run")).close()  # makes the bytecode
    found: Starts = {name: [] for name in HOSTS}
    for _ in range(ROUNDS):
        for name, before in found.items():
            run = Run(hosts[name], tmp_path_factory.mktemp("run"))
            before.append(Start(run.seconds, run.rss()["VmHWM"]))
            run.close()
    return found


@group_of_samples(f"process: {RUN}")
@pytest.mark.parametrize("host", HOSTS, ids=HOSTS.values())
def test_start(host: str, starts: Starts, benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    hand_over(benchmark, [start.seconds for start in starts[host]])
    memory.put(PEAK_RSS, [start.peak * MB for start in starts[host]])


@pytest.mark.parametrize("family", FAMILIES)
def test_figures(family: str, starts: Starts, figures: Measured) -> None:
    without, routes = starts["1000"], starts[family]
    more = median_difference([s.seconds for s in routes], [s.seconds for s in without])
    figures.put(routes_time(RUN, family), more, 1e3)
    ratio = median_ratio([s.peak for s in routes], [s.peak for s in without])
    figures.put(routes_rss("run", family), ratio)


def test_idle(hosts: Hosts, figures: Measured, tmp_path: Path) -> None:
    """Far from the first audit, which comes 54 s after the start or later."""
    run = Run(hosts["1000"], tmp_path)
    # What is measured is that nothing happens for a while, so there is nothing to wait for.
    time.sleep(SETTLED_SECONDS)
    before = run.wake_ups()
    time.sleep(IDLE_SECONDS)
    figures.put(RUN_WAKE_UPS, run.wake_ups() - before)
    for _ in range(SCRAPES):
        run.scrape()
    figures.put(RUN_RSS, run.rss()["VmHWM"])
    run.close()
