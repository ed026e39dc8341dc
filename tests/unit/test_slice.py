"""Who waits for changes asks the kernel for a short slice, and for nothing else."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from typing import NamedTuple

from tracker.capture.netlink import NetlinkSource, boot_ns
from tracker.engine.native import NativeEngine

LONG, SHORT = 3_000_000, 100_000
NORMAL, BATCH = 0, 3
SET, GET = (314, 315) if os.uname().machine == "x86_64" else (274, 275)
LIBC = ctypes.CDLL(None, use_errno=True)


class Attributes(NamedTuple):
    """struct sched_attr, as far as it is of interest here."""

    size: int = 48
    policy: int = NORMAL
    flags: int = 0
    nice: int = 0
    priority: int = 0
    runtime: int = LONG
    """Of a normal thread its slice, since Linux 6.12; 0 before."""
    deadline: int = 0
    period: int = 0


LAYOUT = struct.Struct("=IIQiIQQQ")


def change(attributes: Attributes) -> None:
    assert LIBC.syscall(SET, 0, LAYOUT.pack(*attributes), 0) == 0


def present() -> Attributes:
    room = ctypes.create_string_buffer(LAYOUT.size)
    assert LIBC.syscall(GET, 0, room, LAYOUT.size, 0) == 0
    return Attributes(*LAYOUT.unpack(room))


def waiting(attributes: Attributes) -> tuple[Attributes, Attributes]:
    """What a thread has before it waits for the first time, and behind that."""
    found = []

    def run() -> None:
        change(attributes)
        found.append(present())
        source = NetlinkSource(NativeEngine())
        source.wait(boot_ns())
        found.append(present())
        source.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    before, after = found
    return before, after


def test_a_long_slice_becomes_a_short_one() -> None:
    before, after = waiting(Attributes(nice=1))
    assert before.nice == 1
    assert after == before._replace(runtime=min(before.runtime, SHORT))


def test_another_class_stays() -> None:
    before, after = waiting(Attributes(policy=BATCH))
    assert before.policy == BATCH
    assert after == before
