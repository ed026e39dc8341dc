"""addrtracker run: the daemon."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from tracker.cli import follow, options
from tracker.clock import SystemClock
from tracker.errors import ConfigError
from tracker.lock import LockedError, locked
from tracker.log import logger
from tracker.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.capture.base import Source
    from tracker.cli.options import Arguments
    from tracker.config import Config
    from tracker.lastrun import Memory
    from tracker.log import Log
    from tracker.session import Session

VERBOSE = options.Option("--verbose", "log more: what came and went without a change")
OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    VERBOSE,
)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """Until SIGINT or SIGTERM."""
    config = follow.configuration(arguments)
    # Whoever finds the note in the lock may send one at once.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        with locked(filter(None, (config.state, config.files))) as locks:
            lock = locks.get(os.path.realpath(config.files))
            _run(arguments, config, lock)
    except LockedError as error:
        where = config.path or "the defaults"
        line = f"{where}: another addrtracker that runs here uses the directory {error}"
        raise ConfigError(f"{line}; allowed: one that no other uses") from None
    return 0


def _run(arguments: Arguments, config: Config, lock: int | None) -> None:
    opening = follow.begin_host(arguments, config)
    trace = follow.Tracing("")
    sink = Sink(sys.stderr)
    log = logger(sink, verbose=arguments.flag("--verbose"))

    def complete() -> str:
        nonlocal trace
        passed_over, attached = opening.complete()
        trace = attached or trace
        # Before any thread starts, that of the log included: privileges are a thread's own.
        dropped = follow.drop_privileges()
        sink.start()
        for why in passed_over:
            log.warning("passed over", reason=why)
        _log_trace(log, trace)
        if dropped:
            log.info("privileges given up", capabilities=list(dropped))
        return trace.way

    try:
        _follow(opening.source, complete, config, lock, log)
    finally:
        trace.close()
        sink.close()


def _log_trace(log: Log, trace: follow.Tracing) -> None:
    if trace.way:
        log.info("tracing silent removals", way=trace.way, probes=list(trace.probes))
    for why in trace.passed_over:
        log.debug("passed over", reason=why)


def _follow(
    source: Source, complete: Callable[[], str], config: Config, lock: int | None, log: Log
) -> None:
    # Behind begin_host(): meanwhile a thread may be waiting for the kernel.
    from tracker.cli.reloader import Reloader  # noqa: PLC0415
    from tracker.daemon import Daemon  # noqa: PLC0415

    clock = SystemClock()
    helpers = follow.helpers(source, config)

    def make_session(memory: Memory | None) -> Session:
        return follow.session(source, config, clock, memory=memory, helpers=helpers)

    reloading = Reloader(config.path, helpers, lock)
    Daemon(make_session, config, log, clock, reloading=reloading).run(complete)
