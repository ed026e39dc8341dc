"""addrtracker explain: every candidate, ranked, and why each other address is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.address import family_of, parse, text
from tracker.cli import options
from tracker.cli.follow import configuration, look
from tracker.cli.output import print_json, wants_table
from tracker.errors import UsageError
from tracker.model import Criterion, Reject
from tracker.policy.criteria import describe_row, loser_reason, winner_reason
from tracker.printable import quoted
from tracker.session import NODE

if TYPE_CHECKING:
    from tracker.capture.cases import Case
    from tracker.capture.recording import Recording
    from tracker.cli.options import Arguments
    from tracker.follower import About
    from tracker.model import Decision, PolicyTable, Row
    from tracker.session import Session

SELECTION = options.Option("--selection", "a named one instead of the node's", "NAME")
ALL = options.Option("--all", "every row, not only those that fit the screen")
ALL_COLUMNS = options.Option("--all-columns", "every criterion, not only those that decide")
OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.FROM,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    SELECTION,
    ALL,
    ALL_COLUMNS,
)
WORDS = (0, 1, "[ADDRESS]")


def run(arguments: Arguments) -> int:
    """0, also where there is no address: then it says why."""
    wanted = _address(arguments)
    config = configuration(arguments)
    if files := arguments.values("--from"):
        from tracker.cli.play import play  # noqa: PLC0415 - only for files

        played = play(files, config, arguments, look=True)
        session, once = played.session, _is_snapshot(played.given)
    else:
        session, once = look(arguments, config), True
    name = _selection(arguments, session)
    if once:
        _forget_incumbents(session, name)
    families = explanation(session, name)
    if wanted is not None:
        families = _only(families, wanted)
    if wants_table(arguments):
        from tracker.cli.explain_table import print_tables  # noqa: PLC0415 - JSON needs none

        print_tables(
            families,
            _warnings(session.decision(), name),
            everything=arguments.flag(ALL.name),
            all_columns=arguments.flag(ALL_COLUMNS.name),
        )
    else:
        print_json({"selection": name, "families": families} if name else {"families": families})
    return 0


def _selection(arguments: Arguments, session: Session) -> str:
    """The name of the selection that is asked for."""
    name = arguments.value(SELECTION.name, NODE)
    if name not in session.policies:
        known = ", ".join(filter(None, session.policies)) or "none is configured"
        raise UsageError(
            f"explain: {SELECTION.name} {quoted(name)}: no such selection; allowed: {known}"
        )
    return name


def _is_snapshot(given: Case | Recording) -> bool:
    """Whether nothing happens in a file, and nothing is said of what was before."""
    from tracker.capture.cases import Case  # noqa: PLC0415 - only for files

    return isinstance(given, Case) and not given.events and not given.previously_published


def _forget_incumbents(session: Session, name: str) -> None:
    """Nothing was here before this look, so "it was the answer" explains nothing."""
    for family in session.policies[name].families:
        session.engine.set_incumbent(session.index(name), family, None)


def _warnings(decision: Decision, name: str) -> tuple[str, ...]:
    if name == NODE:
        return decision.warnings
    return tuple(text for c in decision.selections[name].values() for text in c.warnings)


def explanation(session: Session, name: str = NODE) -> dict[str, Any]:
    """One selection by family: what was chosen and why, and every address."""
    decision = session.decision()
    choices = decision.choices if name == NODE else decision.selections[name]
    about = session.about(name)
    return {
        family: {
            "chosen": choices[family].address,
            "reason": choices[family].reason,
            "candidates": _candidates(
                about, session.engine.rows(session.index(name), family), choices[family].address
            ),
        }
        for family in about.policy.families
    }


def _candidates(about: About, rows: list[Row], chosen: str | None) -> list[dict[str, Any]]:
    policy = about.policy
    best = rows[0] if rows and rows[0].rank else None
    kept = _kept(rows, chosen)
    return [
        {
            "address": row.address,
            "prefixlen": row.prefixlen,
            "peer": row.peer or None,
            "interface": row.interface,
            "ifindex": row.ifindex,
            "eligible": row.reject is Reject.NONE,
            "reason": _reason(about, row, best, kept=kept),
            "rank": row.rank or None,
            "decided_by": _decided_by(policy, row, best),
            "criteria": describe_row(policy, row) if row.reject is Reject.NONE else {},
        }
        for row in rows
    ]


def _kept(rows: list[Row], chosen: str | None) -> Row | None:
    """The row of a chosen address that is not the best: a decision follows with reluctance."""
    if not rows or rows[0].address == chosen:
        return None
    return next((row for row in rows if row.rank and row.address == chosen), None)


def _decided_by(policy: PolicyTable, row: Row, best: Row | None) -> str | None:
    """The first criterion that decided between the best and this one; None without a contest."""
    if row.reject is not Reject.NONE or best is None or row is best:
        return None
    return _first_difference(policy, row, best).label


def _first_difference(policy: PolicyTable, row: Row, other: Row) -> Criterion:
    for criterion, own, first in zip(policy.criteria, row.values, other.values, strict=True):
        if own != first:
            return criterion
    return Criterion.ADDRESS


def _reason(about: About, row: Row, best: Row | None, *, kept: Row | None) -> str:
    """Why it is the best, what it is behind the best by, or why it is none."""
    if row.reject is not Reject.NONE:
        return row.reject.label
    policy = about.policy
    if best is not None and row is not best:
        by = _first_difference(policy, row, best)
        return loser_reason(policy, row, by, about.guide.mode, about.found.words)
    why = winner_reason(policy, row, about.guide.mode, about.found.words)
    if kept is None:
        return why
    by = _first_difference(policy, kept, row)
    return f"{why}; ahead by {by.label}, but {kept.address} stays"


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
