"""addrtracker watch: decisions as they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.cli import options
from tracker.cli.follow import configuration, helpers, open_host, session
from tracker.cli.limits import COUNT, SECONDS, Limits
from tracker.cli.output import console, print_json, wants_table
from tracker.clock import SystemClock, rfc3339
from tracker.model import State
from tracker.node import node_document

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.config import Networks
    from tracker.model import Decision

OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.SOURCE,
    options.LOADER,
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
    source = open_host(arguments, config).source
    watching = session(source, config, clock, helpers=helpers(source, config))
    teller = _Teller(config.networks, as_table=wants_table(arguments))
    with limits.signals(watching.source):
        watching.start()
        first = watching.decision()
        changed = any(c.state is not State.SETTLING for c in first.choices.values())
        while True:
            with limits.output():
                told = changed and teller.tell(watching.decision())
            if told:
                limits.count()
            if limits.reached:
                break
            changed = watching.step(limits.deadline)
    return 0


class _Teller:
    """Prints decisions that differ."""

    def __init__(self, networks: Networks, *, as_table: bool) -> None:
        self._networks = networks
        self._as_table = as_table
        self._last: dict[str, Any] = {}

    def tell(self, decision: Decision) -> bool:
        """True if it was printed."""
        document = node_document(decision, self._networks)
        # Why a family has no address is not in the document, and may change often.
        if document == self._last:
            return False
        self._last = document
        if self._as_table:
            _print_lines(decision)
        else:
            print_json(document)
        return True


def _print_lines(decision: Decision) -> None:
    out = console()
    choices = list(decision.choices.items())
    for name, named in decision.selections.items():
        choices += [(f"{name} {family}", choice) for family, choice in named.items()]
    for label, choice in choices:
        where = f" on {choice.interface}" if choice.interface else ""
        more = f", also {', '.join(row.address for row in choice.extra)}" if choice.extra else ""
        stale = ", stale" if choice.stale else ""
        out.print(
            f"{rfc3339(decision.time_ns)}  {label}  {choice.address or 'none'}{where}{more}  "
            f"({choice.state}{stale}: {choice.reason})",
            soft_wrap=True,
        )
    cause = decision.cause
    if cause is not None:
        out.print(f"  after {cause.change}{cause.by}", style="dim", soft_wrap=True)
    for text in decision.warnings:
        out.print(f"  warning: {text}", style="yellow", soft_wrap=True)
    for name, named in decision.selections.items():
        for text in dict.fromkeys(text for c in named.values() for text in c.warnings):
            out.print(f"  warning: {name}: {text}", style="yellow", soft_wrap=True)
