"""What a decision says about itself: why this address, and what is worth a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.model import Fallback, State, Tier
from tracker.policy.criteria import winner_reason

if TYPE_CHECKING:
    from tracker.decision import Decider
    from tracker.model import PolicyTable, View

_MAIN = 254


def reason(policy: PolicyTable, view: View, decider: Decider) -> str:
    """Why the family has this address, or why it has none."""
    if decider.row is not None:
        return winner_reason(policy, decider.row)
    if decider.shown is not None:
        return "the last run's answer"
    if decider.state is State.SETTLING:
        return "settling"
    return none_reason(policy, view)


def none_reason(policy: PolicyTable, view: View) -> str:
    """Why a family has no candidate."""
    if view.default_routes:
        return "no eligible address on a link with a default route, nor on lo"
    text = f"no default route in table {table_name(policy.table)}"
    if view.bad_defaults:
        text += ", only one of type unreachable, blackhole or prohibit"
    if view.fallback_count and policy.fallback is Fallback.AUTO:
        if view.other_defaults:
            text += "; fallback auto: the other family has a default route"
        elif view.fallback_count > 1:
            text += f"; fallback auto: {view.fallback_count} addresses are left, not one"
    elif policy.fallback is Fallback.INTERFACE:
        text += f"; fallback: no eligible address on {policy.fallback_name}"
    elif policy.fallback is not Fallback.NONE:
        text += f"; fallback {policy.fallback.name.lower()}: no eligible address"
    return text


def table_name(table: int) -> str:
    """ "main" for 254, else the number."""
    return "main" if table == _MAIN else str(table)


def warnings(
    family: str, policy: PolicyTable, view: View, decider: Decider, *, expected: bool
) -> tuple[tuple[str, ...], bool]:
    """Texts, and whether the answer is ambiguous."""
    texts = []
    ambiguous = False
    if decider.address is None:
        if expected and decider.state is State.NONE:
            texts.append(f"{family}: wanted, not there yet")
    elif decider.state is State.LOST:
        texts.append(f"{family}: {decider.address} is not usable any more, nothing replaces it")
    elif decider.state is State.STABLE:
        ambiguous = view.rival or view.default_links > 1
        if view.rival:
            texts.append(
                f"{family}: ambiguous: an address of another network qualifies on equal terms; "
                "a mode or an exclusion would settle it"
            )
        elif ambiguous:
            texts.append(
                f"{family}: ambiguous: default routes lead out over {view.default_links} links; "
                "a mode or an exclusion would settle it"
            )
        texts += _path_warnings(family, policy, view, decider)
    return tuple(texts), ambiguous


def _path_warnings(family: str, policy: PolicyTable, view: View, decider: Decider) -> list[str]:
    row, best = view.incumbent, view.best
    if row is None:
        return []
    table = table_name(policy.table)
    is_best = best is not None and best.address == row.address
    if row.tier is Tier.FALLBACK and is_best:
        kind = policy.fallback.name.lower()
        why = "no default route" if not view.default_routes else "no usable address behind one"
        return [f"{family}: {why} in table {table}, fallback {kind}"]
    if row.tier in (Tier.FALLBACK, Tier.NONE):
        if not view.default_routes:
            return [f"{family}: default route lost, {decider.address} stays"]
        return [f"{family}: no default route over {row.interface}, {decider.address} stays"]
    return []
