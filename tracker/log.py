"""Log lines on standard error: key-value on a terminal, JSON otherwise."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO, cast

import structlog

from tracker.model import NANOSECONDS, Change
from tracker.printable import printable

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

    from tracker.sink import Sink


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


def _printable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """No name of an interface may move the cursor of whoever looks at the log."""
    return {k: printable(v) if isinstance(v, str) else v for k, v in event.items()}


def logger(
    stream: TextIO | Sink | None = None,
    *,
    verbose: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> FilteringBoundLogger:
    """A logger that threads may share; `verbose` adds the debug lines."""
    stream = sys.stderr if stream is None else stream
    render: list[Processor]
    if stream.isatty():
        render = [
            _printable,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(
                colors="NO_COLOR" not in environ,
                sort_keys=False,
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ]
    else:
        render = [
            structlog.processors.TimeStamper(fmt="iso", utc=True),
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


def log_change(log: FilteringBoundLogger, change: Change) -> None:
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
