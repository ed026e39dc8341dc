"""Other commands as whole processes, on a host of 1,000 addresses."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from benchmarks.figures import COMPARE, Measured
from benchmarks.processes import ADDRTRACKER, timed
from benchmarks.samples import group_of_samples, hand_over

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from benchmarks.hosts import Hosts

ROUNDS = 5
COMMANDS = ("compare", "explain")


@group_of_samples("process: other commands, 1000 addresses")
@pytest.mark.parametrize("name", COMMANDS)
def test_command(name: str, hosts: Hosts, benchmark: BenchmarkFixture, figures: Measured) -> None:
    command = (ADDRTRACKER, name, "--output", "json")
    host = hosts["1000"]
    timed(command, host)  # makes the bytecode and fills the page cache
    seconds = [timed(command, host).seconds for _ in range(ROUNDS)]
    hand_over(benchmark, seconds)
    if name == "compare":
        figures.put(COMPARE, statistics.median(seconds), 1e3)
