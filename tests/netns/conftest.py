"""Namespaces, real programs and the daemon; each test leaves nothing behind."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.netns.daemon import QUICK, Daemon, Reader
from tests.netns.following import Following
from tests.netns.namespace import PROGRAMS, Namespace
from tests.tiers import BCC, BPF, NETLINK, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("netns")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What opens a source does so on every tier; a core set with both loaders of bpf."""
    if "tier" not in metafunc.fixturenames:
        return
    only = metafunc.definition.get_closest_marker("only_tiers")
    both = metafunc.definition.get_closest_marker("both_loaders")
    tiers = only.args if only is not None else (NETLINK, BPF, *((BCC,) if both else ()))
    metafunc.parametrize("tier", tiers, ids=str)


class StartDaemon(Protocol):
    def __call__(self, namespace: Namespace, config: str = QUICK) -> Daemon: ...


class StartProgram(Protocol):
    def __call__(self, namespace: Namespace, *arguments: str) -> subprocess.Popen[bytes]: ...


@pytest.fixture
def new_namespace() -> Iterator[Callable[[], Namespace]]:
    """Makes namespaces; they go at the end of the test."""
    made: list[Namespace] = []

    def make() -> Namespace:
        made.append(Namespace())
        return made[-1]

    yield make
    for namespace in made:
        namespace.delete()


@pytest.fixture
def host(new_namespace: Callable[[], Namespace]) -> Namespace:
    """The namespace that plays the node."""
    return new_namespace()


@pytest.fixture
def router(new_namespace: Callable[[], Namespace]) -> Namespace:
    """The namespace that plays the network around the node."""
    return new_namespace()


@pytest.fixture
def program() -> Callable[[str], str]:
    """Path of a program that only tests need, unpacked by tools/unpack-programs."""

    def path(name: str) -> str:
        found = PROGRAMS / name
        assert found.exists(), f"no {found}: tools/unpack-programs makes it"
        return str(found)

    return path


@pytest.fixture
def start_program(new_namespace: Callable[[], Namespace], tmp_path: Path) -> Iterator[StartProgram]:
    """Starts programs inside namespaces, their output in tmp_path; they end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(namespace: Namespace, *arguments: str) -> subprocess.Popen[bytes]:
        name = Path(arguments[0]).name
        with open(tmp_path / f"{name}-{len(started)}.log", "wb") as log:
            started.append(namespace.start(*arguments, log=log))
        return started[-1]

    yield start
    for process in reversed(started):
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def start_daemon(
    new_namespace: Callable[[], Namespace], tmp_path: Path, tier: Tier
) -> Iterator[StartDaemon]:
    """Starts `addrtracker run`; it ends with the test."""
    started: list[Daemon] = []

    def start(namespace: Namespace, config: str = QUICK) -> Daemon:
        directory = tmp_path / f"daemon-{len(started)}"
        started.append(Daemon(namespace, directory, config, *tier.options))
        return started[-1]

    yield start
    for daemon in started:
        daemon.close()


@pytest.fixture
def read_files() -> Iterator[Callable[[Daemon], Reader]]:
    """Starts a reader of a daemon's files; at the end every read must have been whole."""
    readers: list[Reader] = []

    def read(daemon: Daemon) -> Reader:
        readers.append(Reader(daemon.files))
        readers[-1].start()
        return readers[-1]

    yield read
    for reader in readers:
        reader.finish()


@pytest.fixture
def follow(host: Namespace, tmp_path: Path, tier: Tier) -> Iterator[Callable[[], Following]]:
    """Follows `host` in this thread, which stays inside until the end of the test."""
    made: list[Following] = []

    def start() -> Following:
        made.append(Following(host, tmp_path, tier))
        return made[-1]

    with host.entered():
        yield start
        for following in made:
            following.audit()
            following.close()
