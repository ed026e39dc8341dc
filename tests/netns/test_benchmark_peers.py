"""The comparison with others: real readers of real changes, and readers that go wrong."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import storms
from benchmarks.peers import process
from benchmarks.peers.following import Row, follow
from benchmarks.peers.process import NotStartedError, Reader, stop
from benchmarks.peers.registry import BY_NAME, Peer
from benchmarks.storms import IPV4, IPV6, Addresses, Ground

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUTES = 2000
FLIP_MS = 1
SMALL_BUFFER = 4096
SHORT_SECONDS = 0.5


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    storms.build("load", "floor", "peer-relist")


@pytest.fixture
def ground() -> Iterator[Ground]:
    with storms.ground() as made:
        yield made


def scripted(body: str) -> Peer:
    """A reader of our own."""

    def start(ground: Ground, watch: str, directory: Path) -> Reader:
        return Reader(ground.namespace, [sys.executable, "-c", f"import signal, time\n{body}"])

    return Peer("scripted", "scripted", "to go wrong", "none", start)


@pytest.mark.parametrize("family", [IPV4, IPV6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize(
    "name", ["recv", "ring", "bpf", "netlink", "ip-monitor", "iproute", "async", "ndb", "bird"]
)
def test_all_see_the_same_changes(ground: Ground, name: str, family: Addresses) -> None:
    """Slowly: nobody has any reason to miss one."""
    course = follow(
        BY_NAME[name],
        ground,
        family.watch,
        lambda made: made.load("flips", "eth0", 6, family.flipping, 50),
    )
    assert course.outcome == ""
    assert course.delays.changes == 6
    assert course.delays.missed == 0
    assert course.measured["wrong"] == 0
    assert course.measured["cpu_s"] > 0
    assert course.measured["peak_rss_mb"] > 1


def test_what_the_kernel_dropped_is_counted(ground: Ground) -> None:
    with storms.recv(ground, IPV4.watch, SMALL_BUFFER) as reader:
        reader.begin(10)
        stop(reader.pid)
        ground.routes(ROUTES)
        reader.signal(signal.SIGCONT)
        assert reader.wait_until_quiet(10)
        assert 0 < reader.lost() < 2 * ROUTES


def test_a_reader_that_stands_still_is_behind(ground: Ground) -> None:
    with storms.recv(ground) as reader:
        reader.begin(10)
        stop(reader.pid)
        ground.routes(ROUTES)
        assert not reader.wait_until_quiet(SHORT_SECONDS)
        reader.signal(signal.SIGCONT)


def test_a_reader_that_does_not_end_is_named(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "END_SECONDS", SHORT_SECONDS)
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
    stuck = scripted(body + "time.sleep(600)")
    course = follow(stuck, ground, IPV4.watch, lambda made: made.flips(2, FLIP_MS))
    assert course.outcome == "did not end at SIGTERM"
    assert course.delays.missed == 2


def test_a_reader_that_ends_by_itself_is_named(ground: Ground) -> None:
    asked = scripted("print('ready', flush=True); signal.pause()")
    started: list[Reader] = []

    def start(ground: Ground, watch: str, directory: Path) -> Reader:
        # It is a Reader; the type of Peer.start says only that it can be entered.
        started.append(asked.start(ground, watch, directory))  # type: ignore[arg-type]
        return started[-1]

    def load(made: Ground) -> Row:
        started[-1].signal(signal.SIGKILL)
        return {"changes": [(0, "+10.1.0.10")]}

    course = follow(asked._replace(start=start), ground, IPV4.watch, load)
    assert course.outcome == "ended by itself with status -9"
    assert course.delays.missed == 1


def test_a_reader_that_is_never_ready_is_refused(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "READY_SECONDS", SHORT_SECONDS)
    for body, why in (("raise SystemExit(3)", "ended with status 3"), ("time.sleep(600)", "not")):
        with pytest.raises(NotStartedError, match=why):
            follow(scripted(body), ground, IPV4.watch, lambda made: made.flips(2, FLIP_MS))


def test_a_program_that_cannot_be_started_is_refused(ground: Ground) -> None:
    with pytest.raises(NotStartedError, match="No such file"):
        Reader(ground.namespace, ["/nowhere/program"])


def test_a_report_that_cannot_be_read_is_named(ground: Ground) -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: print('no') or exit(0))\n"
    odd = scripted(body + "print('ready', flush=True)\nsignal.pause()")
    course = follow(odd, ground, IPV4.watch, lambda made: made.flips(2, FLIP_MS))
    assert course.outcome == "what it reported is no JSON"
