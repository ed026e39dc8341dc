"""What systemd hears."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracker.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def service_manager(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[socket.socket, str]]:
    name = str(tmp_path / "notify") if request.param == "path" else f"@addrtracker-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        listening.settimeout(10)
        yield listening, name


def test_everything_is_heard(service_manager: tuple[socket.socket, str]) -> None:
    listening, name = service_manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    assert notifier.ready("192.0.2.1,\n2001:db8::1")
    assert listening.recv(200) == b"READY=1\nSTATUS=192.0.2.1, 2001:db8::1"
    assert notifier.status("ipv4 lost")
    assert listening.recv(200) == b"STATUS=ipv4 lost"
    assert notifier.reloading(5_000_000_999)
    assert listening.recv(200) == b"RELOADING=1\nMONOTONIC_USEC=5000000"
    assert notifier.watchdog()
    assert listening.recv(200) == b"WATCHDOG=1"
    assert notifier.stopping()
    assert listening.recv(200) == b"STOPPING=1"


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "/nonexistent/x"},
        {"NOTIFY_SOCKET": "vsock:2:3"},
    ],
)
def test_nobody_listening_is_no_failure(environ: dict[str, str]) -> None:
    assert Notifier(environ).ready("x") is False


def test_a_full_queue_does_not_block(tmp_path: Path) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name)
        notifier = Notifier({"NOTIFY_SOCKET": name})
        assert not all(notifier.watchdog() for _ in range(10_000))


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15_000_000_000),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 15_000_000_000),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "1"}, 1_000_000),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_wants_half_its_time(environ: dict[str, str], interval: int | None) -> None:
    assert Notifier(environ, pid=7).watchdog_interval_ns == interval
