"""What a run prints at its end and writes to .build/: its figures, memory and growth."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import growth, samples
from benchmarks.engine_runs import EngineRuns
from benchmarks.figures import Measured, lines
from benchmarks.hosts import Host, Hosts

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / ".build"
JSON = BUILD / "benchmarks.json"
PLOTS = BUILD / "growth"
TABLE = {"columns": ["median", "iqr", "rounds"], "sort": "name"}
"""The plugin's table, where the command line says nothing else: all columns are a line too long."""

_measured = pytest.StashKey[Measured]()
_curves = pytest.StashKey[growth.Curves]()
_memory = pytest.StashKey[list[samples.Memory]]()
_began = pytest.StashKey[float]()
_busy = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_measured] = Measured()
    config.stash[_curves] = growth.Curves()
    config.stash[_memory] = []
    config.stash[_began] = time.monotonic()
    config.stash[_busy] = os.getloadavg()[0]
    for name, value in TABLE.items():
        if not any(argument.startswith(f"--benchmark-{name}") for argument in _arguments(config)):
            setattr(config.option, f"benchmark_{name}", value)
    if not (config.option.benchmark_json or config.option.collectonly):
        BUILD.mkdir(exist_ok=True)
        config.option.benchmark_json = str(JSON)


def _arguments(config: pytest.Config) -> tuple[str, ...]:
    return tuple(map(str, config.invocation_params.args))


def _is_whole(config: pytest.Config) -> bool:
    """Whether everything was to be measured, not a part."""
    option = config.option
    selects = option.keyword, option.markexpr, option.deselect, option.ignore, option.ignore_glob
    is_part = any(selects) or option.collectonly or option.benchmark_disable
    return not is_part and [Path(path).resolve() for path in config.args] == [HERE]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:
    config: Any = session.config
    # Where only tests without a benchmark ran, the plugin would complain that it has nothing.
    if not config._benchmarksession.benchmarks:
        config._benchmarksession.json = None
    yield
    if rows := config.stash[_curves].rows():
        from benchmarks.growth_plots import draw_all

        draw_all(rows, PLOTS)
    if exitstatus == pytest.ExitCode.OK and _unmeasured(config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _unmeasured(config: pytest.Config) -> list[str]:
    """Figures that a whole run was to measure and did not: a fault of the benchmarks."""
    return config.stash[_measured].missing() if _is_whole(config) else []


def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    for benchmark in output_json["benchmarks"]:
        benchmark["stats"].pop("data", None)  # each round: 85 MB, of which nobody asks anything
    output_json["seconds"] = time.monotonic() - config.stash[_began]
    output_json["busy"] = [config.stash[_busy], os.getloadavg()[0]]
    output_json["figures"] = config.stash[_measured].rows()
    output_json["growth"] = config.stash[_curves].rows()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.option.collectonly:
        return
    rows = config.stash[_measured].rows()
    if not _is_whole(config):
        rows = [row for row in rows if row["value"] is not None]
    sections = {
        "memory": samples.lines(config.stash[_memory]),
        "growth": growth.lines(config.stash[_curves].rows()),
        "figures": lines(rows),
    }
    for name, (head, *rest) in sections.items():
        if rest:
            terminalreporter.section(name)
            for line in (head, *rest):
                terminalreporter.write_line(line.rstrip())
    for name in _unmeasured(config):
        terminalreporter.write_line(f"not measured: {name}", red=True)


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Measured:
    """Where values of figures go."""
    return request.config.stash[_measured]


@pytest.fixture(scope="session")
def curves(request: pytest.FixtureRequest) -> growth.Curves:
    """Where curves go."""
    return request.config.stash[_curves]


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> samples.MemoryOf:
    """Where the memory of this benchmark goes."""
    return samples.MemoryOf(request, request.config.stash[_memory])


@pytest.fixture(scope="session")
def engine_runs() -> EngineRuns:
    """What benchmarks/engine_bench.c measures."""
    return EngineRuns()


@pytest.fixture(scope="session")
def hosts() -> Iterator[Hosts]:
    """Network namespaces in which nothing changes."""
    made = Hosts()
    yield made
    for host in made.values():
        host.delete()


@pytest.fixture
def own_host() -> Iterator[Host]:
    """One of 1,000 addresses to do anything with."""
    host = Host(1000)
    yield host
    host.delete()
