"""Where log lines go when whoever reads them may be slow, or stop reading."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import threading
from typing import TextIO

LINES = 1000
"""Lines that may wait."""


class Sink:
    """Takes lines at once and writes them in a thread of its own.

    A pipe that nobody empties, or a terminal that was stopped by Ctrl-S, would else stop every
    decision with it. Lines that find no room are counted, and the count is written as soon as
    there is some.
    """

    def __init__(self, stream: TextIO) -> None:
        """`stream` has a descriptor, and no other writer that waits for it."""
        # Not by the stream itself: its lock would be held for as long as nobody reads.
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding
        self._terminal = stream.isatty()
        self._lines: queue.Queue[bytes | None] = queue.Queue(LINES)
        self._begun = ""
        self._lost = 0
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        """Start the thread: until then lines wait."""
        # Signals are for those who wait for them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self._terminal

    def write(self, text: str) -> int:
        """Take a part of a line, from one thread at a time; it is a line when its end is there."""
        self._begun += text
        if text.endswith("\n"):
            line, self._begun = self._begun, ""
            try:
                self._lines.put_nowait(self._bytes(line))
            except queue.Full:
                with self._counting:
                    self._lost += 1
        return len(text)

    def flush(self) -> None:
        """Nothing waits here that could be hurried."""

    def close(self, seconds: float = 1.0) -> None:
        """Give what waits this time to be read, twice at most, then leave it."""
        if self._thread.ident is None:
            return
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=seconds)
            self._thread.join(seconds)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)
            with self._counting:
                lost, self._lost = self._lost, 0
            if lost:
                self._write(self._bytes(self._lost_line(lost)))

    def _write(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            while line:
                line = line[os.write(self._descriptor, line) :]

    def _bytes(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")

    def _lost_line(self, lost: int) -> str:
        event = "log lines were lost, nobody read them"
        if self._terminal:
            return f"{event}: {lost}\n"
        return json.dumps({"lines": lost, "event": event, "level": "warning"}) + "\n"
