"""The figures of a run: a table at its end, and beside the benchmarks in .build/benchmarks.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import Measured, lines
from benchmarks.hosts import Host, Hosts

BUILD = Path(__file__).resolve().parents[1] / ".build"
JSON = BUILD / "benchmarks.json"

_measured = pytest.StashKey[Measured]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_measured] = Measured()
    if not (config.option.benchmark_json or config.option.collectonly):
        BUILD.mkdir(exist_ok=True)
        config.option.benchmark_json = str(JSON)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    # Where only tests without a benchmark ran, the plugin would complain that it has nothing.
    plugin: Any = session.config
    if not plugin._benchmarksession.benchmarks:
        plugin._benchmarksession.json = None
    yield


def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    output_json["figures"] = config.stash[_measured].rows()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.option.collectonly:
        return
    terminalreporter.section("figures")
    for line in lines(config.stash[_measured].rows()):
        terminalreporter.write_line(line.rstrip())


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Measured:
    """Where values of figures go."""
    return request.config.stash[_measured]


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
