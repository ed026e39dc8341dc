"""What a decision says about itself: why this address, and what is worth a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.address import network_text, text
from tracker.model import AF_OF, FAMILY_OF, Fallback, Mode, Reject, State, Tier
from tracker.policy.compile import TABLE_MAIN, TABLE_NOWHERE
from tracker.policy.criteria import winner_reason
from tracker.policy.modes import ROUTE_TO

if TYPE_CHECKING:
    from tracker.decision import Decider
    from tracker.guidance import Found
    from tracker.model import Network, PolicyTable, Row, View
    from tracker.policy.modes import Guide

_SHOWN = 3
"""How many of a list a text names."""
_TAKEN = (Reject.NONE, Reject.EXCLUDED_ADDRESS)


def reason(
    family: str, policy: PolicyTable, view: View, decider: Decider, *, guide: Guide, found: Found
) -> str:
    """Why the family has this address, or why it has none."""
    if decider.row is not None:
        return winner_reason(policy, decider.row, guide.mode, found.words)
    if decider.shown is not None:
        return "the last run's answer"
    if decider.state is State.SETTLING:
        return "settling"
    if policy.narrows(AF_OF[family]):
        return _none_in_mode(family, policy, view, guide, found)
    return none_reason(policy, view)


def none_reason(policy: PolicyTable, view: View) -> str:
    """Why a family has no candidate in mode default-route."""
    if view.default_routes:
        return "no eligible address on a link with a default route, nor on lo"
    return _no_default_route(policy, view) + _no_fallback(policy, view)


def _no_default_route(policy: PolicyTable, view: View) -> str:
    text = f"no default route in table {table_name(policy.table)}"
    if view.bad_defaults:
        text += ", only one of type unreachable, blackhole or prohibit"
    return text


def _no_fallback(policy: PolicyTable, view: View) -> str:
    if view.fallback_count and policy.fallback is Fallback.AUTO:
        if view.other_defaults:
            return "; fallback auto: the other family has a default route"
        if view.fallback_count > 1:
            return f"; fallback auto: {view.fallback_count} addresses are left, not one"
    elif policy.fallback is Fallback.INTERFACE:
        return f"; fallback: no eligible address on {policy.fallback_name}"
    elif policy.fallback is Fallback.DEFAULT_ROUTE:
        if view.default_routes:
            return "; fallback default-route: no eligible address behind one"
        return f"; fallback default-route: {_no_default_route(policy, view)}"
    elif policy.fallback is not Fallback.NONE:
        return f"; fallback {policy.fallback.name.lower()}: no eligible address"
    return ""


def _none_in_mode(family: str, policy: PolicyTable, view: View, guide: Guide, found: Found) -> str:
    """Why nothing is in the mode."""
    said = [remark.text for remark in found.remarks if remark.family == family]
    networks = [network for network in policy.mode_networks if FAMILY_OF[network.family] == family]
    listed = list(policy.mode_names) or list(map(_shown, networks))
    if said and not listed:
        text = "; ".join(said)
    elif listed or policy.mode is Mode.DEFAULT_ROUTE:
        text = "; ".join([f"no eligible address in {mode_text(policy, guide, listed)}", *said])
    else:
        text = f"mode {guide.mode} names no {family} address or network"
    return text + _no_fallback(policy, view)


def mode_text(policy: PolicyTable, guide: Guide, listed: list[str]) -> str:
    """The mode and what it lists, for example "mode cidr (10.0.0.0/8)"."""
    words = []
    if policy.mode is Mode.LIST:
        shown = ", ".join(listed[:_SHOWN]) + (", ..." if len(listed) > _SHOWN else "")
        words.append(f"mode {guide.mode}" + (f" ({shown})" if shown else ""))
    if policy.hints:
        words.append(f"the subnet of a hint ({', '.join(text(h.address) for h in policy.hints)})")
    return " and ".join(words)


def _shown(network: Network) -> str:
    is_host = network.prefixlen == len(network.address) * 8
    return text(network.address) if is_host else network_text(network)


def table_name(table: int) -> str:
    """ "main" for 254, else the number."""
    if table == TABLE_NOWHERE:
        return "of a VRF that is not there"
    return "main" if table == TABLE_MAIN else str(table)


def warnings(
    family: str,
    policy: PolicyTable,
    view: View,
    decider: Decider,
    *,
    expected: bool,
    guide: Guide,
    found: Found,
    others: tuple[Row, ...],
) -> tuple[tuple[str, ...], bool]:
    """Texts, and whether the answer is ambiguous. `others` is what the mode takes as well."""
    texts = []
    ambiguous = False
    if decider.address is None:
        if expected and decider.state is State.NONE:
            texts.append(f"{family}: wanted, not there yet")
    elif decider.state is State.LOST:
        texts.append(f"{family}: {decider.address} is not usable any more, nothing replaces it")
    elif decider.state is State.STABLE:
        narrow = policy.narrows(AF_OF[family])
        ambiguous = view.rival or (view.default_links > 1 and not narrow)
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
        if narrow:
            texts += _mode_warnings(family, policy, view, guide, others)
        else:
            texts += _path_warnings(family, policy, view, decider)
    told = [remark for remark in found.remarks if remark.family == family]
    texts += [f"{family}: {remark.text}" for remark in told]
    return tuple(texts), ambiguous or any(remark.ambiguous for remark in told)


def around(
    rows: list[Row], address: str | None, policy: PolicyTable, extra: int
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The next `extra` addresses behind the answer, and what else the mode takes: what is
    eligible, and what was excluded by its address, as a VIP is.
    """
    ranked: dict[str, Row] = {}
    other: dict[str, Row] = {}
    for row in rows:
        if row.address == address or row.address in ranked:
            continue
        if row.reject is Reject.NONE and len(ranked) < extra:
            ranked[row.address] = row
        elif row.tier is Tier.ROUTE and row.reject in _TAKEN:
            other.setdefault(row.address, row)
    narrow = rows and policy.narrows(AF_OF[rows[0].family])
    return tuple(ranked.values()), tuple(other.values()) if narrow else ()


def _mode_warnings(
    family: str, policy: PolicyTable, view: View, guide: Guide, others: tuple[Row, ...]
) -> list[str]:
    row, best = view.incumbent, view.best
    texts = []
    mode = mode_text(policy, guide, [])
    is_best = row is not None and (best is None or best.address == row.address)
    if row is not None and is_best and row.tier is not Tier.ROUTE:
        fallback = policy.fallback.name.lower().replace("_", "-")
        texts.append(f"{family}: nothing is in {mode}, fallback {fallback}")
    asked = policy.mode is Mode.LIST and guide.mode == ROUTE_TO
    if others and not asked:  # whoever asks for ways says what else there is
        shown = [
            row.address if row.reject is Reject.NONE else f"{row.address} ({row.reject.label})"
            for row in others[:_SHOWN]
        ]
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        texts.append(f"{family}: {mode} also matches {', '.join(shown)}{more}")
    return texts


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
