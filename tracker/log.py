"""Log lines on standard error: key-value on a terminal, JSON otherwise."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from tracker.model import NANOSECONDS, Change
from tracker.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.sink import Sink

    Render = Callable[[str, str, Mapping[str, object]], str]

_EVENT_WIDTH = 30
"""Of the event on a terminal, so that what is said about it stands in a column."""
_CYAN = 36
_COLOURS = {"debug": 2, "info": 32, "warning": 33, "error": 31}
_AMBIGUOUS = frozenset(" ='\"")
"""With one of these a value has to be quoted."""


class Log:
    """Writes one line for one event, from any thread."""

    def __init__(self, stream: TextIO | Sink, render: Render, *, verbose: bool) -> None:
        self._stream = stream
        self._render = render
        self._verbose = verbose
        self._writing = threading.Lock()

    def debug(self, event: str, **about: object) -> None:
        """For who asks for more."""
        if self._verbose:
            self._write("debug", event, about)

    def info(self, event: str, **about: object) -> None:
        """What happened."""
        self._write("info", event, about)

    def warning(self, event: str, **about: object) -> None:
        """What somebody should look at."""
        self._write("warning", event, about)

    def error(self, event: str, **about: object) -> None:
        """What was asked for and not done."""
        self._write("error", event, about)

    def _write(self, level: str, event: str, about: Mapping[str, object]) -> None:
        line = self._render(level, event, about)
        # The end of the stream may be gone: tracking goes on without a log. A line is one write:
        # whoever dies after it has not left half a line.
        with self._writing, contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()


def logger(
    stream: TextIO | Sink | None = None,
    *,
    verbose: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Log:
    """A logger that threads may share; `verbose` adds the debug lines."""
    stream = sys.stderr if stream is None else stream
    render = _terminal(colours="NO_COLOR" not in environ) if stream.isatty() else _json
    return Log(stream, render, verbose=verbose)


def log_change(log: Log, change: Change) -> None:
    """One line for one primary address that became another one."""
    cause = change.cause
    about: dict[str, object] = {"selection": change.selection} if change.selection else {}
    about |= {
        "family": change.family,
        "from": change.old,
        "to": change.new,
        "reason": change.reason,
        "cause": cause.change if cause is not None else None,
    }
    if cause is not None and cause.process is not None:
        about |= {"process": cause.process, "pid": cause.pid, "attribution": cause.attribution}
    log.info("primary address changed", **about, seconds=change.took_ns / NANOSECONDS)


def _json(level: str, event: str, about: Mapping[str, object]) -> str:
    seconds, rest = divmod(time.time_ns(), NANOSECONDS)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    timestamp = f"{stamp}.{rest // 1000:06}Z"
    line = {**about, "event": event, "level": level, "timestamp": timestamp}
    return json.dumps(line, ensure_ascii=False, default=repr)


def _terminal(*, colours: bool) -> Render:
    def paint(colour: int, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if colours else text

    def render(level: str, event: str, about: Mapping[str, object]) -> str:
        pairs = [f"{paint(_CYAN, key)}={_value(value)}" for key, value in about.items()]
        shown = paint(_COLOURS[level], f"{level:<7}")
        told = f"{printable(event):<{_EVENT_WIDTH}}"
        return " ".join([time.strftime("%H:%M:%S"), f"[{shown}]", told, *pairs])

    return render


def _value(value: object) -> str:
    """No name of an interface may move the cursor of whoever looks at the log."""
    text = printable(value if isinstance(value, str) else repr(value))
    return repr(text) if isinstance(value, str) and _AMBIGUOUS & set(text) else text
