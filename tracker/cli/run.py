"""addrtracker run: the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.cli import follow, options
from tracker.clock import SystemClock
from tracker.daemon import Daemon
from tracker.log import logger

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.session import Memory, Session

VERBOSE = options.Option("--verbose", "log more: what came and went without a change")
OPTIONS = (options.CONFIG, options.NETNS, options.SOURCE, options.ENGINE, VERBOSE)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """Until SIGINT or SIGTERM."""
    config = follow.configuration(arguments)
    clock = SystemClock()
    log = logger(verbose=arguments.flag("--verbose"))
    source = follow.open_host(arguments, config, lambda why: log.warning("passed over", reason=why))

    def make_session(memory: Memory | None) -> Session:
        return follow.session(source, config, clock, memory=memory)

    Daemon(make_session, config, log, clock).run()
    return 0
