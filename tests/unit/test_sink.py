"""Log lines that nobody reads."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from typing import Any, TextIO

import pytest

from tracker.log import logger
from tracker.sink import LINES, Sink


class Pipe:
    """One that holds a page."""

    def __init__(self) -> None:
        self.read_end, write_end = os.pipe()
        self._rest = b""
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        self.stream: TextIO = os.fdopen(write_end, "w", encoding="utf-8")

    def read(self) -> list[dict[str, Any]]:
        """Whole lines of what is there now; waits for the first byte."""
        self._rest += os.read(self.read_end, 4096)
        *whole, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in whole]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.stream.close()
    os.close(made.read_end)


def test_lines_come_in_order_and_all_of_them(pipe: Pipe) -> None:
    sink = Sink(pipe.stream)
    sink.start()
    log = logger(sink)
    log.start()
    for number in range(10):
        log.info("line", number=number, name="e\udcff")
    sink.close()
    assert [line["number"] for line in pipe.read()] == list(range(10))


def test_nobody_waits_for_a_reader_and_what_was_lost_is_counted(pipe: Pipe) -> None:
    sink = Sink(pipe.stream)
    sink.start()
    log = logger(sink)
    log.start()
    total = 3 * LINES
    for number in range(total):
        log.info("a line that is long enough for a page to be full after some of them", n=number)
    sink.close(seconds=0)
    found: list[dict[str, Any]] = []
    while sum(line.get("lines", 1) for line in found) < total:
        found += pipe.read()
    sink.close()
    numbers = [line["n"] for line in found if "n" in line]
    assert numbers == sorted(set(numbers))
    assert LINES <= len(numbers) <= total - LINES


def test_a_reader_that_left_stops_nobody(pipe: Pipe) -> None:
    with open("/dev/null", "rb") as nothing:
        os.dup2(nothing.fileno(), pipe.read_end)
    sink = Sink(pipe.stream)
    sink.start()
    for _ in range(10):
        log = logger(sink)
        log.start()
        log.info("line")
    sink.close()
    assert not any(thread.name == "log" for thread in threading.enumerate())
