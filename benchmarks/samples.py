"""What tests ask of pytest-benchmark, and what they hand to it that was timed elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

_now = 0.0


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


def hand_over(benchmark: BenchmarkFixture, samples: Sequence[float]) -> None:
    """Each sample, in seconds, as one round on that clock."""
    left = iter(samples)

    def set_clock(now: float) -> None:
        global _now  # noqa: PLW0603 - the timer is a function without arguments
        _now = now

    rounds(benchmark, lambda: set_clock(next(left)), len(samples), setup=lambda: set_clock(0.0))
