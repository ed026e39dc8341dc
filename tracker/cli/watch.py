"""addrtracker watch: decisions as they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.cli import options
from tracker.cli.follow import configuration, open_host, session
from tracker.cli.limits import COUNT, SECONDS, Limits
from tracker.cli.output import console, print_json, wants_table
from tracker.clock import SystemClock
from tracker.node import node_document, rfc3339

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.model import Decision

OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.SOURCE,
    options.ENGINE,
    COUNT,
    SECONDS,
)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """Until SIGINT, SIGTERM or a limit: the first decision as soon as it stands, then each
    that differs.
    """
    config = configuration(arguments)
    clock = SystemClock()
    limits = Limits(arguments, clock)
    watching = session(open_host(arguments, config), config, clock)
    as_table = wants_table(arguments)
    last: dict[str, Any] = {}
    with limits.signals(watching.source):
        watching.start()
        while not limits.reached:
            if not watching.step(limits.deadline):
                continue
            decision = watching.decision()
            document = node_document(decision, config.networks)
            # Why a family has no address is not in the document, and may change often.
            if document == last:
                continue
            last = document
            if as_table:
                _print_lines(decision)
            else:
                print_json(document)
            limits.count()
    return 0


def _print_lines(decision: Decision) -> None:
    out = console()
    for family, choice in decision.choices.items():
        where = f" on {choice.interface}" if choice.interface else ""
        stale = ", stale" if choice.stale else ""
        out.print(
            f"{rfc3339(decision.time_ns)}  {family}  {choice.address or 'none'}{where}  "
            f"({choice.state}{stale}: {choice.reason})",
            soft_wrap=True,
        )
    cause = decision.cause
    if cause is not None:
        process = f" by {cause.process} ({cause.pid})" if cause.process is not None else ""
        out.print(f"  after {cause.change}{process}", style="dim", soft_wrap=True)
    for text in decision.warnings:
        out.print(f"  warning: {text}", style="yellow", soft_wrap=True)
