"""What tests ask of pytest-benchmark, what they hand to it that was timed elsewhere, and the memory
beside the time."""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from benchmarks.units import quantity

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

SECONDS = 0.3
ROUNDS = 3
"""Of each benchmark in this process, or as many rounds as it takes to fill SECONDS."""
PEAK_RSS = "peak RSS"
ALLOCATED = "allocated by Python"
ENGINE = "allocated by the engine"

_now = 0.0


def group(name: str) -> pytest.MarkDecorator:
    """The mark of a benchmark in this process; the group's name is the same from run to run."""
    return pytest.mark.benchmark(group=name, max_time=SECONDS, min_rounds=ROUNDS)


def rounds(benchmark: BenchmarkFixture, target: Callable[..., Any], count: int, **more: Any) -> Any:
    """So many rounds of one call each; `more` as for BenchmarkFixture.pedantic."""
    pedantic: Callable[..., Any] = benchmark.pedantic
    return pedantic(target, rounds=count, **more)


def median(benchmark: BenchmarkFixture) -> float | None:
    """Of what was measured, in seconds; None with --benchmark-disable."""
    return benchmark.stats.stats.median if benchmark.stats is not None else None


def measured() -> float:
    """A clock that goes on by what was measured by a C program, or by turns with other things;
    for `pytest.mark.benchmark(timer=measured)`."""
    return _now


def group_of_samples(name: str) -> pytest.MarkDecorator:
    """The mark of a benchmark that gets its samples by hand_over()."""
    return pytest.mark.benchmark(group=name, timer=measured)


def hand_over(benchmark: BenchmarkFixture, samples: Sequence[float]) -> None:
    """Each sample, in seconds, as one round on that clock."""
    left = iter(samples)

    def set_clock(now: float) -> None:
        global _now  # noqa: PLW0603 - the timer is a function without arguments
        _now = now

    rounds(benchmark, lambda: set_clock(next(left)), len(samples), setup=lambda: set_clock(0.0))


# Memory.


class Memory(NamedTuple):
    """What a benchmark took beside time."""

    benchmark: str
    kind: str
    size: float
    """Bytes."""


class MemoryOf:
    """Notes the memory of one benchmark: in its extra_info, and for the table."""

    def __init__(self, request: pytest.FixtureRequest, table: list[Memory]) -> None:
        self._benchmark: BenchmarkFixture = request.getfixturevalue("benchmark")
        self._name = request.node.name
        self._table = table

    def put(self, kind: str, sizes: Sequence[float]) -> None:
        """Bytes, of one or more rounds; the median counts."""
        size = statistics.median(sizes)
        self._benchmark.extra_info[f"{kind}, bytes"] = size
        self._table.append(Memory(self._name, kind, size))

    def allocated(self, function: Callable[[], object]) -> None:
        """The peak of what Python allocates during one more call."""
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            function()
            self.put(ALLOCATED, [tracemalloc.get_traced_memory()[1] - before])
        finally:
            tracemalloc.stop()


def lines(table: list[Memory]) -> list[str]:
    """The table of memory as text."""
    cells = [(memory.benchmark, quantity(memory.size, "bytes"), memory.kind) for memory in table]
    cells.insert(0, ("benchmark", "memory", ""))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        f"{name:{widths[0]}}  {size:>{widths[1]}}  {kind}".rstrip() for name, size, kind in cells
    ]
