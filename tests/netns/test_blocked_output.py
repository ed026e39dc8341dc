"""Commands that follow end by a signal also when nobody takes what they write."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.netns.daemon import COMMAND
from tests.netns.namespace import connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.netns.namespace import Namespace

PATIENCE = 20


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    """A host with an address, so that there is something to tell."""
    connect(host, "eth0", router, "eth0")
    host.ip("addr add 192.0.2.10/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    return host


@pytest.fixture
def full(tmp_path: Path) -> Iterator[str]:
    """A named pipe that is full."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(end, bytes(4096)):
            pass
    yield path
    os.close(end)


def inode_of(process: subprocess.Popen[bytes], descriptor: int) -> int:
    try:
        return os.stat(f"/proc/{process.pid}/fd/{descriptor}").st_ino
    except OSError:
        return 0


def is_writing_to(process: subprocess.Popen[bytes], path: str) -> bool:
    """Whether its main thread is in a system call on the file: number, then arguments."""
    with open(f"/proc/{process.pid}/syscall", encoding="ascii") as file:
        words = file.read().split()
    return len(words) > 1 and inode_of(process, int(words[1], 16)) == os.stat(path).st_ino


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["watch", "events", "record"])
def test_a_signal_ends_what_nobody_reads(
    node: Namespace, full: str, command: str, number: signal.Signals
) -> None:
    words = [COMMAND, command, *([full] if command == "record" else [])]
    with open(full, "r+b", buffering=0) as output:
        process = subprocess.Popen(
            node.command([*words, "--source", "netlink"]),
            stdout=output,
            stderr=subprocess.PIPE,
        )
    assert process.stderr is not None
    if command == "events":
        assert b"following by" in process.stderr.readline()
        node.ip("addr add 192.0.2.11/24 dev eth0")
    give_up = time.monotonic() + PATIENCE
    try:
        while not is_writing_to(process, full):
            assert process.poll() is None
            assert time.monotonic() < give_up
            os.sched_yield()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
