"""Both engines as Python sees them: from a record to the answer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from benchmarks.engines import BEST, best_in_turn, filled, other_in_turn
from benchmarks.figures import SIZES, Measured, reference
from benchmarks.samples import median, rounds
from tests import build, engines
from tracker.address import host_network

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

MODES = {
    "default-route": build.policy(),
    "interface": build.listed(names=("bond0", "eth*")),
    "cidr": build.listed(networks=("192.168.0.0/16", "10.0.0.0/8")),
    "hint": build.policy(hints=(host_network(BEST),)),
    "route-to": build.listed(networks=(BEST,)),
}

each_engine = pytest.mark.parametrize("engine", sorted(engines.NAMES))
each_size = pytest.mark.parametrize("size", SIZES)


@pytest.mark.benchmark(group="engine: a change of the best address")
@each_engine
@each_size
def test_change_of_best(engine: str, size: int, benchmark: BenchmarkFixture) -> None:
    """Two records: the best address is deprecated, another one no longer."""
    host = filled(engines.make(engine), size)
    changes = itertools.cycle(best_in_turn())
    assert benchmark(lambda: host.apply(next(changes))) == 2


@pytest.mark.benchmark(group="engine: a change of another address")
@each_engine
@each_size
def test_change_of_another(engine: str, size: int, benchmark: BenchmarkFixture) -> None:
    host = filled(engines.make(engine), size)
    changes = itertools.cycle(other_in_turn(size))
    assert benchmark(lambda: host.apply(next(changes))) == 1


@pytest.mark.benchmark(group="engine: a change of the best address, by mode")
@each_engine
@pytest.mark.parametrize("mode", sorted(MODES))
def test_change_in_a_mode(engine: str, mode: str, benchmark: BenchmarkFixture) -> None:
    """As test_change_of_best, among as many candidates."""
    host = filled(engines.make(engine), SIZES[0])
    host.set_policy(0, MODES[mode])
    host.set_targets((host_network("203.0.113.7"),) if mode == "route-to" else ())
    changes = itertools.cycle(best_in_turn())
    assert benchmark(lambda: host.apply(next(changes))) == 2


@pytest.mark.benchmark(group="engine: view")
@each_engine
@each_size
def test_view(engine: str, size: int, benchmark: BenchmarkFixture) -> None:
    host = filled(engines.make(engine), size)
    assert benchmark(host.view, 0, "ipv4").best.address == BEST


@pytest.mark.benchmark(group="engine: rows")
@each_engine
@each_size
def test_rows(engine: str, size: int, benchmark: BenchmarkFixture) -> None:
    host = filled(engines.make(engine), size)
    assert len(benchmark(host.rows, 0, "ipv4")) == size


@pytest.mark.benchmark(group="engine: whole ranking")
@each_engine
@each_size
def test_whole_ranking(
    engine: str, size: int, benchmark: BenchmarkFixture, figures: Measured
) -> None:
    """A policy that is set anew: nothing that was ranked before is of use."""
    host = filled(engines.make(engine), size)
    rounds(benchmark, host.set_policy, 7, args=(0, build.policy()))
    best = host.view(0, "ipv4").best
    assert best is not None
    assert best.address == BEST
    if engine == "reference":
        figures.put(reference(size), median(benchmark), 1e3)
