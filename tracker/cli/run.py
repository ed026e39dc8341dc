"""addrtracker run: the daemon."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tracker.cli import follow, options
from tracker.clock import SystemClock
from tracker.daemon import Daemon
from tracker.log import logger
from tracker.sink import Sink

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from tracker.cli.options import Arguments
    from tracker.config import Config
    from tracker.session import Memory, Session

VERBOSE = options.Option("--verbose", "log more: what came and went without a change")
OPTIONS = (options.CONFIG, options.NETNS, options.SOURCE, options.ENGINE, VERBOSE)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """Until SIGINT or SIGTERM."""
    config = follow.configuration(arguments)
    sink = Sink(sys.stderr)
    try:
        _follow(arguments, config, logger(sink, verbose=arguments.flag("--verbose")))
    finally:
        sink.close()
    return 0


def _follow(arguments: Arguments, config: Config, log: FilteringBoundLogger) -> None:
    clock = SystemClock()
    source = follow.open_host(arguments, config, lambda why: log.warning("passed over", reason=why))

    def make_session(memory: Memory | None) -> Session:
        return follow.session(source, config, clock, memory=memory)

    Daemon(make_session, config, log, clock).run()
