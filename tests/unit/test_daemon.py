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
from tracker.config import Config
from tracker.daemon import Daemon
from tracker.engine.reference import ReferenceEngine
from tracker.log import logger
from tracker.model import Scope
from tracker.notify import Notifier
from tracker.session import INSTANT, Session, Settings


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
    given: Case, directory: Path, settings: Settings = SETTINGS
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
