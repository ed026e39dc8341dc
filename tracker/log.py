"""Log lines on standard error: key-value on a terminal, JSON otherwise."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO, cast

from tracker.clock import rfc3339
from tracker.model import NANOSECONDS, Change
from tracker.printable import printable

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

    from tracker.sink import Sink


_AT = "said_at"
"""Of a line that waited: when it was said, CLOCK_REALTIME in nanoseconds."""


class _Unfailing:
    """A stream whose end may be gone: tracking goes on without a log."""

    def __init__(self, stream: TextIO | Sink) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


class Log:
    """What the daemon says, from any thread.

    Lines wait until start(): structlog takes longer to import than everything up to the first
    decision, and whoever waits for that comes first.
    """

    def __init__(self, make: Callable[[], FilteringBoundLogger]) -> None:
        self._make = make
        self._logger: FilteringBoundLogger | None = None
        self._waiting: list[tuple[str, str, dict[str, object]]] = []
        self._starting = threading.Lock()

    def start(self) -> None:
        """Write what waits, and from now on each line as it comes."""
        with self._starting:
            if self._logger is None:
                made = self._make()
                for level, event, about in self._waiting:
                    getattr(made, level)(event, **about)
                self._waiting.clear()
                self._logger = made

    def debug(self, event: str, **about: object) -> None:
        """For who asks for more."""
        self._say("debug", event, about)

    def info(self, event: str, **about: object) -> None:
        """What happened."""
        self._say("info", event, about)

    def warning(self, event: str, **about: object) -> None:
        """What somebody should look at."""
        self._say("warning", event, about)

    def error(self, event: str, **about: object) -> None:
        """What was asked for and not done."""
        self._say("error", event, about)

    def _say(self, level: str, event: str, about: dict[str, object]) -> None:
        if self._logger is None:
            with self._starting:
                if self._logger is None:
                    self._waiting.append((level, event, about | {_AT: time.time_ns()}))
                    return
        getattr(self._logger, level)(event, **about)


def logger(
    stream: TextIO | Sink | None = None,
    *,
    verbose: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Log:
    """A logger that threads may share; `verbose` adds the debug lines."""
    output = sys.stderr if stream is None else stream
    return Log(lambda: _structlog(output, verbose=verbose, colours="NO_COLOR" not in environ))


def _structlog(stream: TextIO | Sink, *, verbose: bool, colours: bool) -> FilteringBoundLogger:
    import logging  # noqa: PLC0415 - see Log

    import structlog  # noqa: PLC0415

    render: list[Processor]
    if stream.isatty():
        render = [
            _printable,
            _stamp_clock,
            structlog.dev.ConsoleRenderer(
                colors=colours,
                sort_keys=False,
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ]
    else:
        render = [
            _stamp,
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    made = structlog.wrap_logger(
        # A line is one write: whoever dies after it has not left half a line.
        structlog.WriteLogger(cast("TextIO", _Unfailing(stream))),
        processors=[structlog.processors.add_log_level, *render],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.INFO
        ),
        cache_logger_on_first_use=True,
    )
    return cast("FilteringBoundLogger", made)


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


def _said(event: EventDict) -> int:
    said: int = event.pop(_AT, 0)
    return said or time.time_ns()


def _stamp_clock(_logger: object, _method: str, event: EventDict) -> EventDict:
    at = time.localtime(_said(event) // NANOSECONDS)
    event["timestamp"] = time.strftime("%H:%M:%S", at)
    return event


def _stamp(_logger: object, _method: str, event: EventDict) -> EventDict:
    event["timestamp"] = rfc3339(_said(event))
    return event


def _printable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """No name of an interface may move the cursor of whoever looks at the log."""
    return {k: printable(v) if isinstance(v, str) else v for k, v in event.items()}
