"""addrtracker replay: what a recording or a case would have published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.cli import options
from tracker.cli.follow import configuration
from tracker.cli.output import print_json, wants_table
from tracker.cli.play import play
from tracker.model import Cause
from tracker.node import node_document

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.model import Change

OPTIONS = (options.CONFIG, options.OUTPUT, options.ENGINE)
WORDS = (1, 64, "FILE")


def run(arguments: Arguments) -> int:
    """0 when the file could be played, whatever came of it."""
    played = play(arguments.words, configuration(arguments), arguments)
    node = node_document(played.session.decision(), played.config.networks)
    changes = [_change(seconds, change) for seconds, change in played.changes]
    if wants_table(arguments):
        _print_table(changes, list(played.warnings))
    else:
        print_json({"changes": changes, "node": node, "warnings": list(played.warnings)})
    return 0


def _change(seconds: float, change: Change) -> dict[str, Any]:
    """`t` is seconds since the start had settled, or since the recording began."""
    shown = {
        "t": round(seconds, 6),
        "family": change.family,
        "from": change.old,
        "to": change.new,
        "cause": cause_of(change.cause),
        "reason": change.reason,
    }
    return {**shown, "selection": change.selection} if change.selection else shown


def cause_of(cause: Cause | None) -> dict[str, Any] | None:
    """A cause as the node document has it."""
    return None if cause is None else dict(zip(cause._fields, cause, strict=True))


def _print_table(changes: list[dict[str, Any]], warnings: list[str]) -> None:
    from tracker.cli.output import console, table  # noqa: PLC0415 - JSON needs none

    shown = table("seconds", "family", "from", "to", "reason", "cause")
    for change in changes:
        cause = change["cause"]
        shown.add_row(
            f"{change['t']:.3f}",
            change["family"],
            change["from"] or "none",
            change["to"],
            change["reason"],
            f"{cause['change']}{Cause(**cause).by}" if cause is not None else "",
        )
    out = console()
    out.print(shown)
    for text in warnings:
        out.print(f"warning: {text}", style="yellow", soft_wrap=True)
