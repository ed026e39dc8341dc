"""Readers as processes, and what they cost: all of it read from /proc, for all of them alike."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.processes import ENVIRON, ROOT, status_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from tests.netns.namespace import Namespace

QUIET_SECONDS = 0.3
"""So long nothing may be left to read, and no processor time be used, until a reader is done."""
QUIET_SHARE = 0.03
"""What timers of a program may use of it."""
READY_SECONDS = 15.0
END_SECONDS = 10.0
STEP_SECONDS = 0.02
"""Between two looks at a process: there is no event for what is waited for here."""
RESET_PEAK = "5"
"""To /proc/PID/clear_refs: the peak of the RSS begins anew."""


class NotStartedError(Exception):
    """A program ended, or said nothing, before it was ready."""


class Usage(NamedTuple):
    """What a process and its children have used until now."""

    processor: float
    """Seconds that its threads ran, in user and kernel mode."""
    wake_ups: int
    rss: int
    """Bytes."""
    peak: int
    """Bytes, since begin()."""


class Reader:
    """A process that follows what the kernel announces in a namespace, until SIGTERM.

    It prints a line when it is ready, and one JSON object at its end, unless `log` is given: then
    its output goes there and nobody needs to understand it while it runs.
    """

    def __init__(
        self,
        namespace: Namespace,
        command: Sequence[str],
        fds: Sequence[int] = (),
        log: Path | None = None,
        is_ready: Callable[[Reader], bool] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; it is ready when this returns. `is_ready` is asked where it prints no line.

        Raises NotStartedError.
        """
        with contextlib.ExitStack() as stack:
            out: Any = subprocess.PIPE if log is None else stack.enter_context(log.open("w"))
            stack.enter_context(namespace.entered())
            self.began = time.monotonic()
            try:
                self._process = subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env={**ENVIRON, **(environ or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=None if log is None else subprocess.STDOUT,
                    pass_fds=fds,
                )
            except OSError as error:
                raise NotStartedError(f"{command[0]}: {error.strerror}") from error
        self.pid = self._process.pid
        try:
            self.ready = self._line() if is_ready is None else self._wait_until(is_ready)
        except NotStartedError:
            self.kill()
            raise
        self.ready_seconds = time.monotonic() - self.began
        """From exec until it was ready."""
        self.quiet_since = time.monotonic()
        """Since when it has had nothing to do, as wait_until_quiet() has found."""
        self._before = self.usage()

    def _line(self) -> str:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], READY_SECONDS)
        line = self._process.stdout.readline().decode() if ready else ""
        if not line:
            raise NotStartedError(self._why())
        return line

    def _wait_until(self, is_ready: Callable[[Reader], bool]) -> str:
        give_up = time.monotonic() + READY_SECONDS
        while not is_ready(self):
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise NotStartedError(self._why())
            # Others tell of themselves by a log or a socket only: this is how often we look.
            time.sleep(STEP_SECONDS / 10)
        return ""

    def _why(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Who has closed its output is about to end.
            self._process.wait(STEP_SECONDS)
        status = self._process.poll()
        if status is None:
            return f"not ready within {READY_SECONDS:g} s"
        return f"ended with status {status} before it was ready"

    # What it costs.

    def _processes(self) -> list[int]:
        """It and its children, and theirs."""
        found = [self.pid]
        for pid in found:  # which grows meanwhile
            for task in _tasks(pid):
                with contextlib.suppress(OSError):
                    found += map(int, (task / "children").read_text().split())
        return found

    def _reset_peak(self) -> None:
        for pid in self._processes():
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)

    def usage(self) -> Usage:
        """All that it has used since it was started, at its end too."""
        processor, wake_ups, rss, peak = 0, 0, 0, 0
        for pid in self._processes():
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                if "VmRSS" in status:
                    rss += status_number(status, "VmRSS") * 1024
                    peak += status_number(status, "VmHWM") * 1024
            for task in _tasks(pid):
                with contextlib.suppress(OSError):
                    processor += int((task / "schedstat").read_text().split()[0])
                    text = (task / "status").read_text()
                    wake_ups += status_number(text, "voluntary_ctxt_switches")
        return Usage(processor / 1e9, wake_ups, rss, peak)

    def begin(self, seconds: float) -> None:
        """Count from here on, once it has come to rest, or so many seconds later."""
        self.wait_until_quiet(seconds)
        self._reset_peak()
        self._before = self.usage()

    def used(self) -> Usage:
        """Since begin(), or since it was ready; RSS is the growth."""
        now, before = self.usage(), self._before
        return Usage(
            now.processor - before.processor,
            now.wake_ups - before.wake_ups,
            now.rss - before.rss,
            now.peak,
        )

    # Whether it is done.

    def is_alive(self) -> bool:
        """Whether it runs still."""
        return self._process.poll() is None

    def status(self) -> int | None:
        """How it ended by itself; None = it runs."""
        return self._process.poll()

    def has_socket(self) -> bool:
        """Whether it listens: some netlink socket of the namespace has groups."""
        return any(int(row[3], 16) for row in self._sockets())

    def _sockets(self) -> list[list[str]]:
        """Rows of /proc/net/netlink: of all in its namespace."""
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{self.pid}/net/netlink").read_text().splitlines()
            return [line.split() for line in lines[1:]]
        return []

    def lost(self) -> int:
        """Messages that the kernel dropped for want of room, at sockets that are still open."""
        return sum(int(row[8]) for row in self._sockets())

    def _is_reading(self) -> bool:
        if any(int(row[4]) for row in self._sockets()):
            return True
        return any(_state(task) in "RD" for pid in self._processes() for task in _tasks(pid))

    def wait_until_quiet(self, seconds: float, quiet: float = QUIET_SECONDS) -> bool:
        """Wait until nothing is left to read and it does nothing; False = not in that time."""
        give_up = time.monotonic() + seconds
        self.quiet_since, processor = time.monotonic(), self.usage().processor
        while time.monotonic() - self.quiet_since < quiet:
            if not self.is_alive():
                return False
            if time.monotonic() > give_up:
                return False
            # Quiet is what lasts: nobody tells of it.
            time.sleep(STEP_SECONDS)
            used = self.usage().processor
            if self._is_reading() or used - processor > QUIET_SHARE * quiet:
                self.quiet_since, processor = time.monotonic(), used
        return True

    # Its end.

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> bytes:
        """SIGTERM, and what it still prints; raises TimeoutExpired."""
        self.signal(signal.SIGTERM)
        out, _ = self._process.communicate(timeout=END_SECONDS)
        return out or b""

    def report(self, quiet: float = QUIET_SECONDS) -> dict[str, Any]:
        """End it, once it has read everything: what it printed, and what it used."""
        self.wait_until_quiet(END_SECONDS, quiet)
        used = self.used()
        report: dict[str, Any] = json.loads(self.end())
        return report | {"processor": used.processor, "grown": used.rss}

    def kill(self) -> None:
        """End it at once."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()


def _tasks(pid: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from Path(f"/proc/{pid}/task").iterdir()


def _state(task: Path) -> str:
    """R = it runs or waits for a processor, S = it waits for something else."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def stop(pid: int) -> None:
    """SIGSTOP, and wait until it stands still."""
    os.kill(pid, signal.SIGSTOP)
    while any(_state(task) not in "TtX" for task in _tasks(pid)):
        # Only who is the parent is told of a stop.
        time.sleep(STEP_SECONDS / 10)
