"""`addrtracker show --output json` as a whole process, by turns with what it is compared with."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.figures import (
    FAMILIES,
    SHOW_MANY,
    SHOW_RATIO,
    SHOW_RATIO_CPU,
    Measured,
    median_difference,
    median_ratio,
    routes_rss,
    routes_time,
)
from benchmarks.processes import ENVIRON, MB, PASS, SHOW, Took, peak_of_show, timed
from benchmarks.samples import PEAK_RSS, MemoryOf, group_of_samples, hand_over

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.hosts import Hosts

ROUNDS = 25
PEAKS = 5

Samples = dict[str, list[Took]]

PLAIN = "python -c pass"
FEW = "show, 1000 addresses"
MANY = "show, 20000 addresses on 20 links"
ROUTES = {family: f"show, 1000 addresses and 100000 {family} routes" for family in FAMILIES}

COMMANDS = {
    PLAIN: ("1000", PASS),
    FEW: ("1000", SHOW),
    MANY: ("20000", SHOW),
    **{name: (family, SHOW) for family, name in ROUTES.items()},
}
"""The host and the command of each."""


@pytest.fixture(scope="module")
def samples(hosts: Hosts) -> Samples:
    """One of each in every round: what disturbs a round disturbs all of them."""
    for host, command in COMMANDS.values():
        timed(command, hosts[host])  # makes the bytecode and fills the page cache
    found: Samples = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, (host, command) in COMMANDS.items():
            found[name].append(timed(command, hosts[host]))
    return found


def walls(took: list[Took]) -> list[float]:
    return [one.seconds for one in took]


@group_of_samples("process: show")
@pytest.mark.parametrize("name", COMMANDS)
def test_process(
    name: str, samples: Samples, hosts: Hosts, benchmark: BenchmarkFixture, memory: MemoryOf
) -> None:
    hand_over(benchmark, walls(samples[name]))
    host, command = COMMANDS[name]
    if command == SHOW:
        memory.put(PEAK_RSS, [peak_of_show(hosts[host]) * MB])
    took = [took.processor for took in samples[name]]
    benchmark.extra_info["processor_s"] = statistics.median(took)


def test_figures(samples: Samples, figures: Measured) -> None:
    few, plain = samples[FEW], samples[PLAIN]
    figures.put(SHOW_RATIO, median_ratio(walls(few), walls(plain)))
    figures.put(
        SHOW_RATIO_CPU, median_ratio([t.processor for t in few], [t.processor for t in plain])
    )
    figures.put(SHOW_MANY, median_difference(walls(samples[MANY]), walls(few)), 1e3)
    for family, name in ROUTES.items():
        more = median_difference(walls(samples[name]), walls(few))
        figures.put(routes_time("show", family), more, 1e3)


@pytest.mark.parametrize("family", FAMILIES)
def test_peak(family: str, hosts: Hosts, figures: Measured) -> None:
    pairs = [(peak_of_show(hosts[family]), peak_of_show(hosts["1000"])) for _ in range(PEAKS)]
    figures.put(routes_rss("show", family), median_ratio(*zip(*pairs, strict=True)))


@group_of_samples("process: show")
def test_without_bytecode(hosts: Hosts, benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """As after an installation that compiled nothing: every module is compiled first."""
    environ = {**ENVIRON, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    hand_over(benchmark, walls([timed(SHOW, hosts["1000"], environ) for _ in range(7)]))
