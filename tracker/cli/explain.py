"""addrtracker explain: every candidate, ranked, and why each other address is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.address import family_of, parse, text
from tracker.cli import options
from tracker.cli.follow import configuration, look
from tracker.cli.output import print_json, wants_table
from tracker.errors import UsageError
from tracker.model import Reject
from tracker.policy.criteria import describe_row, winner_reason
from tracker.session import NODE

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.model import PolicyTable, Row
    from tracker.session import Session

ALL = options.Option("--all", "every row, not only those that fit the screen")
OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.FROM,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    ALL,
)
WORDS = (0, 1, "[ADDRESS]")


def run(arguments: Arguments) -> int:
    """0, also where there is no address: then it says why."""
    wanted = _address(arguments)
    config = configuration(arguments)
    if files := arguments.values("--from"):
        from tracker.cli.play import play  # noqa: PLC0415 - only for files

        session = play(files, config, arguments).session
    else:
        session = look(arguments, config)
        _forget_incumbents(session)
    families = explanation(session)
    if wanted is not None:
        families = _only(families, wanted)
    if wants_table(arguments):
        from tracker.cli.explain_table import print_tables  # noqa: PLC0415 - JSON needs none

        print_tables(families, session.decision().warnings, everything=arguments.flag("--all"))
    else:
        print_json({"families": families})
    return 0


def _forget_incumbents(session: Session) -> None:
    """Nothing was here before this look, so "it was the answer" explains nothing."""
    index = list(session.policies).index(NODE)
    for family in session.policies[NODE].families:
        session.engine.set_incumbent(index, family, None)


def explanation(session: Session) -> dict[str, Any]:
    """The node's selection by family: what was chosen and why, and every address."""
    decision = session.decision()
    policy = session.policies[NODE]
    index = list(session.policies).index(NODE)
    return {
        family: {
            "chosen": decision.choices[family].address,
            "reason": decision.choices[family].reason,
            "candidates": _candidates(policy, session.engine.rows(index, family)),
        }
        for family in policy.families
    }


def _candidates(policy: PolicyTable, rows: list[Row]) -> list[dict[str, Any]]:
    best = rows[0] if rows and rows[0].rank else None
    return [
        {
            "address": row.address,
            "prefixlen": row.prefixlen,
            "peer": row.peer or None,
            "interface": row.interface,
            "ifindex": row.ifindex,
            "eligible": row.reject is Reject.NONE,
            "reason": _reason(policy, row, best),
            "rank": row.rank or None,
            "criteria": describe_row(policy, row) if row.reject is Reject.NONE else {},
        }
        for row in rows
    ]


def _reason(policy: PolicyTable, row: Row, best: Row | None) -> str:
    """Why it is the best, what it is behind the best by, or why it is none."""
    if row.reject is not Reject.NONE:
        return row.reject.label
    if best is None or row is best:
        return winner_reason(policy, row)
    for criterion, own, first in zip(policy.criteria, row.values, best.values, strict=True):
        if own != first:
            return f"behind by {criterion.label}"
    return "behind by address"


def _address(arguments: Arguments) -> str | None:
    if not arguments.words:
        return None
    try:
        return text(parse(arguments.words[0]))
    except ValueError as error:
        raise UsageError(f"explain: {error}; allowed: an address of this host") from None


def _only(families: dict[str, Any], address: str) -> dict[str, Any]:
    """The family of one address, with that address alone."""
    family = families.get(family_of(address))
    if family is None:
        wanted = ", ".join(families)
        raise UsageError(f"explain: {address}: this family is not wanted; wanted: {wanted}")
    candidates = [entry for entry in family["candidates"] if entry["address"] == address]
    if not candidates:
        known = len(family["candidates"])
        raise UsageError(
            f"explain: {address} is on no interface; allowed: one of the {known} that "
            "`addrtracker explain` shows"
        )
    return {family_of(address): {**family, "candidates": candidates}}
