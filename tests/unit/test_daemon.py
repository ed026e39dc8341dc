"""What the daemon says, and when it is ready."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_replay import POLICIES, SECOND, SETTINGS, START, case, gone
from tracker.capture.base import Wake
from tracker.capture.cases import Case
from tracker.capture.replay import CaseSource
from tracker.clock import VirtualClock
from tracker.config import Config, Listen
from tracker.daemon import Daemon, Reloading
from tracker.engine.reference import ReferenceEngine
from tracker.errors import ConfigError
from tracker.guidance import Helpers
from tracker.lastrun import INSTANT, Settings
from tracker.log import logger
from tracker.model import FAMILIES, PolicyTable, Scope
from tracker.notify import Notifier
from tracker.policy.compile import policy
from tracker.session import NODE, Session


class Ending(CaseSource):
    """Stops the daemon when everything was played."""

    daemon: Daemon | None = None

    def wait(self, deadline_ns: int) -> Wake:
        woken = super().wait(deadline_ns)
        if self.finished and self.daemon is not None:
            self.daemon._stopping = True
        return woken


class Listening(Notifier):
    """Keeps what the service manager would hear."""

    def __init__(self) -> None:
        super().__init__({})
        self.heard: list[str] = []

    def ready(self, status: str) -> bool:
        self.heard.append(f"ready: {status}")
        return True


def made(
    given: Case,
    directory: Path,
    settings: Settings = SETTINGS,
    reloading: Reloading | None = None,
) -> tuple[Daemon, io.StringIO, Listening]:
    """A daemon on a virtual clock, its files in `directory`, without metrics and state."""
    clock = VirtualClock(START)
    engine = ReferenceEngine()
    engine.lose(tuple(Scope))
    source = Ending(engine, clock, given, tail_ns=200 * SECOND)
    said, notifier = io.StringIO(), Listening()
    config = Config("n1", state="", files=str(directory / "files"), metrics=None)
    daemon = Daemon(
        lambda memory: Session(source, POLICIES, settings, clock, memory=memory),
        config,
        logger(said, verbose=True),
        clock,
        notifier,
        reloading=reloading,
    )
    source.daemon = daemon
    return daemon, said, notifier


def lines(given: Case, directory: Path) -> list[dict[str, Any]]:
    """All that it logs until everything was played."""
    daemon, said, _ = made(given, directory)
    daemon.run()
    return [json.loads(line) for line in said.getvalue().splitlines()]


def about(logged: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in logged if line["event"] == event]


def test_a_loss_is_told_with_its_scope(tmp_path: Path) -> None:
    overrun = {"type": "ENOBUFS", "t": 1, "data": {"scopes": ["addr4"]}}
    logged = about(lines(case(overrun), tmp_path), "changes were lost, read again")
    assert [(line["level"], line["scope"]) for line in logged] == [("warning", "addr4")]


def test_a_dump_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    failing = {"type": "DUMP_FAILED", "t": 1, "data": {"scopes": ["route4"], "times": 2}}
    logged = about(lines(case(failing), tmp_path), "dump failed")
    assert logged
    assert {(line["level"], line["scope"]) for line in logged} == {("warning", "route4")}
    assert all(line["error"] == "as the file has it" for line in logged)


def test_what_an_audit_repaired_is_told(tmp_path: Path) -> None:
    vanished = {"ifindex": 3, "address": "198.51.100.10", "prefixlen": 24}
    silent = {"type": "KERNEL_SILENT", "t": 1, "data": {"removed_addresses": [vanished]}}
    logged = about(lines(case(silent), tmp_path), "audit found drift")
    assert [(line["level"], line["record"]) for line in logged] == [
        ("warning", "RTM_DELADDR 198.51.100.10/24 eth3")
    ]


def test_an_address_that_came_back_in_time_is_a_debug_line(tmp_path: Path) -> None:
    back = {"type": "RTM_NEWADDR", "t": 3, "data": gone("192.0.2.10")["data"]}
    route = {"family": "inet", "dst": "default", "gateway": "192.0.2.1", "oif": 2, "metric": 100}
    again = {"type": "RTM_NEWROUTE", "t": 3, "data": route}
    logged = lines(case(gone("192.0.2.10", t=1), back, again), tmp_path)
    assert [line["level"] for line in about(logged, "an address went and came back in time")] == [
        "debug"
    ]
    assert [(line["from"], line["to"]) for line in about(logged, "primary address changed")] == [
        (None, "192.0.2.10"),
        (None, "2001:db8::10"),
    ]


@pytest.mark.parametrize("writable", [True, False], ids=["written", "could-not-be"])
def test_ready_is_said_after_the_files(tmp_path: Path, writable: bool) -> None:
    daemon, _, notifier = made(case(), tmp_path, INSTANT)
    if not writable:
        (tmp_path / "files").write_text("in the way")
    daemon.session.start()
    daemon._tell(daemon.session.published())
    daemon._notify()
    assert notifier.heard == [], "nothing is written yet"
    daemon._files.step()
    daemon._notify()
    assert notifier.heard == ["ready: 192.0.2.10, 2001:db8::10"]
    assert (tmp_path / "files/node.json").exists() == writable
    daemon._notify()
    assert len(notifier.heard) == 1


SECOND_LINK = policy("interface", families=FAMILIES, interfaces=["eth3"])


class Wanting(Reloading):
    """A file that says what it is told, and what came of reading it."""

    def __init__(self, config: Config, policies: dict[str, PolicyTable] | Exception) -> None:
        self.config: Config | Exception = config
        self.policies = policies
        self.reports: list[str] = []

    def read(self, running: Config) -> tuple[Config, list[tuple[str, object, object]]]:
        if isinstance(self.config, Exception):
            raise self.config
        return self.config, [("families written", False, True)]

    def apply(self, session: Session, config: Config) -> bool:
        wanted = self.policies if config == self.config else POLICIES
        if isinstance(wanted, Exception):
            raise wanted
        return session.reload(wanted, {}, SETTINGS, Helpers(), config.hostname)

    def report(self, error: str) -> None:
        self.reports.append(error)


def other_config(directory: Path) -> Config:
    return Config(
        "n2",
        state="",
        files=str(directory / "files"),
        metrics=Listen("127.0.0.1", 0),
        families_written=True,
    )


@pytest.mark.parametrize(
    ("at", "fault", "error"),
    [
        ("read", ConfigError("families: none"), "families: none"),
        ("read", RecursionError("too deep"), "RecursionError: too deep"),
        ("apply", ValueError("no room"), "ValueError: no room"),
        ("apply", RuntimeError("can't start new thread"), "RuntimeError: can't start new thread"),
    ],
)
def test_a_reload_that_fails_anywhere_changes_nothing(
    tmp_path: Path, at: str, fault: Exception, error: str
) -> None:
    reloading = Wanting(other_config(tmp_path), {NODE: SECOND_LINK})
    if at == "read":
        reloading.config = fault
    else:
        reloading.policies = fault
    daemon, said, _ = made(case(), tmp_path, reloading=reloading)
    running = daemon._config
    daemon._reload_asked = True
    daemon.run()
    logged = [json.loads(line) for line in said.getvalue().splitlines()]
    refused = about(logged, "configuration refused, the old one stays")
    assert [(line["level"], line["error"]) for line in refused] == [("error", error)]
    assert about(logged, "configuration changed") == []
    assert about(logged, "serving metrics") == []
    assert reloading.reports == [error]
    assert daemon._config is running
    assert (daemon._publisher.reorder, daemon._server, daemon._reloads) == (False, None, (0, 1))
    assert daemon.session.policies == POLICIES
    # It has gone on.
    assert daemon.session.decision().choices["ipv4"].address == "192.0.2.10"


def test_what_fails_behind_the_session_takes_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reloading = Wanting(other_config(tmp_path), {NODE: SECOND_LINK})
    daemon, _, _ = made(case(), tmp_path, reloading=reloading)
    running = daemon._config
    serve = daemon._serve_metrics

    def failing() -> None:
        if daemon._config.metrics is not None:
            raise RuntimeError("can't start new thread")
        serve()

    monkeypatch.setattr(daemon, "_serve_metrics", failing)
    daemon._reload_asked = True
    daemon.run()
    assert reloading.reports == ["RuntimeError: can't start new thread"]
    assert daemon._config is running
    assert daemon._publisher.reorder is False
    assert (daemon.session.policies, daemon.session.hostname) == (POLICIES, "n1")
    assert daemon.session.decision().choices["ipv4"].address == "192.0.2.10"


def test_a_reload_is_taken_as_a_whole_and_says_nothing_too_soon(tmp_path: Path) -> None:
    reloading = Wanting(other_config(tmp_path), {NODE: SECOND_LINK})
    daemon, said, _ = made(case(), tmp_path, reloading=reloading)
    daemon.session.start()
    daemon._reload()
    assert reloading.reports == [""]
    assert (daemon._publisher.reorder, daemon._config.hostname) == (True, "n2")
    assert daemon._server is not None
    daemon._server.stop()
    assert daemon._told is None, "nothing has been decided yet"
    while not daemon.session.step():
        pass
    assert daemon.session.decision().choices["ipv4"].address == "198.51.100.10"
    daemon._log.start()
    daemon._reload()
    assert daemon._told is not None, "now there is something to say"
    logged = [json.loads(line) for line in said.getvalue().splitlines()]
    assert len(about(logged, "serving metrics")) == 1
    assert len(about(logged, "configuration changed")) == 2
