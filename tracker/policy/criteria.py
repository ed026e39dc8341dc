"""The order of the criteria, and what their values mean to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from tracker.address import network_text, parse, same_subnet, text
from tracker.model import (
    AF_OF,
    NO_ROUTE,
    Criterion,
    Fallback,
    Mode,
    Network,
    PolicyTable,
    Reject,
    Row,
    Tier,
)

DEFAULT_ORDER = (
    Criterion.STATIC,
    Criterion.MODE,
    Criterion.INTERNAL,
    Criterion.DEFAULT_ROUTE,
    Criterion.PREFSRC,
    Criterion.NOT_DEPRECATED,
    Criterion.NOT_VIP_LIKE,
    Criterion.NOT_TEMPORARY,
    Criterion.ASSIGNED,
    Criterion.INCUMBENT,
    Criterion.GATEWAY_ON_LINK,
    Criterion.PRIMARY_FLAG,
    Criterion.GLOBAL_BEFORE_ULA,
    Criterion.NEXTHOP_WEIGHT,
    Criterion.IFINDEX,
    Criterion.AGE,
)
"""Of the default policy; the address itself is always last and implied."""

DISPLACING = frozenset(
    {
        Criterion.STATIC,
        Criterion.MODE,
        Criterion.INTERNAL,
        Criterion.NOT_DEPRECATED,
        Criterion.NOT_VIP_LIKE,
        Criterion.NOT_TEMPORARY,
        Criterion.ASSIGNED,
    }
)
"""Marked D: a challenger that is better by one of these may displace a valid incumbent."""

WEIGHT_MAX = 65535
CENTISECONDS = 100

Value: TypeAlias = dict[str, int | bool | str] | int | float | bool | None
"""What `explain` prints: a fact, ready for JSON."""

_NO_WORDS: Mapping[Network, str] = MappingProxyType({})
_PREFS = ("high", "medium", "low")


def describe(policy: PolicyTable, criterion: Criterion, value: int) -> Value:
    """The fact behind a raw value of a criterion.

    default-route is {"metric", "live", "pref"} or None without a route; static and mode are a
    position in their list, or None outside of it; internal is None where no network is
    configured; nexthop-weight is None without a nexthop; age is when the address was created, in
    seconds since boot; the others are true where the criterion is met.
    """
    return _DESCRIBE.get(criterion, _describe_flag)(policy, value)


def describe_row(policy: PolicyTable, row: Row) -> dict[str, Value]:
    """Every criterion of a row by its label, in the policy's order."""
    return {
        criterion.label: describe(policy, criterion, value)
        for criterion, value in zip(policy.criteria, row.values, strict=True)
    }


def _describe_flag(_policy: PolicyTable, value: int) -> Value:
    return value == 0


def _describe_static(policy: PolicyTable, value: int) -> Value:
    return value if value < len(policy.statics) else None


def _describe_mode(policy: PolicyTable, value: int) -> Value:
    if policy.mode is Mode.DEFAULT_ROUTE:
        return None
    return value if value < len(policy.mode_names) + len(policy.mode_networks) else None


def _describe_internal(policy: PolicyTable, value: int) -> Value:
    return value == 0 if policy.internal else None


def _describe_default_route(_policy: PolicyTable, value: int) -> Value:
    if value == NO_ROUTE:
        return None
    dead, metric, pref = split_route(value)
    return {"metric": metric, "live": not dead, "pref": _PREFS[pref]}


def _describe_weight(_policy: PolicyTable, value: int) -> Value:
    return WEIGHT_MAX - value or None


def _describe_number(_policy: PolicyTable, value: int) -> Value:
    return value


def _describe_age(_policy: PolicyTable, value: int) -> Value:
    return value / CENTISECONDS


_DESCRIBE: dict[Criterion, Callable[[PolicyTable, int], Value]] = {
    Criterion.STATIC: _describe_static,
    Criterion.MODE: _describe_mode,
    Criterion.INTERNAL: _describe_internal,
    Criterion.DEFAULT_ROUTE: _describe_default_route,
    Criterion.NEXTHOP_WEIGHT: _describe_weight,
    Criterion.IFINDEX: _describe_number,
    Criterion.AGE: _describe_age,
}


def split_route(value: int) -> tuple[bool, int, int]:
    """Dead, metric and router preference (0 high, 1 medium, 2 low) of a value of default-route."""
    return bool(value >> 34 & 1), value >> 2 & 0xFFFFFFFF, value & 3


def winner_reason(
    policy: PolicyTable, row: Row, mode: str = "", words: Mapping[Network, str] = _NO_WORDS
) -> str:
    """Why this row is the answer, or why it stays the answer.

    `mode` is what the configuration calls it, `words` what networks of its list stand for.
    """
    if row.reject is not Reject.NONE:
        return f"kept: {row.reject.label}"
    if _value(policy, row, Criterion.STATIC, len(policy.statics)) < len(policy.statics):
        return "static"
    if not policy.narrows(AF_OF[row.family]):
        reason = _BY_TIER[row.tier](policy, row)
    elif row.tier is Tier.ROUTE:
        reason = _by_mode(policy, row, mode, words)
    elif row.tier is Tier.LOOPBACK:
        by_route = _value(policy, row, Criterion.DEFAULT_ROUTE, NO_ROUTE) != NO_ROUTE
        why = _by_route(policy, row) if by_route else _by_loopback(policy, row)
        reason = f"fallback default-route: {why}"
    else:
        reason = _by_fallback(policy, row)
    if policy.internal and _value(policy, row, Criterion.INTERNAL, 1) == 0:
        return f"inside networks.internal, {reason}"
    return reason


def loser_reason(
    policy: PolicyTable,
    row: Row,
    by: Criterion,
    mode: str = "",
    words: Mapping[Network, str] = _NO_WORDS,
) -> str:
    """What a row is behind by: of a list, which entry of it takes the row."""
    if (
        by is Criterion.MODE
        and describe(policy, by, row.values[policy.criteria.index(by)]) is not None
    ):
        return f"behind by {_by_mode(policy, row, mode, words)}"
    return f"behind by {by.label}"


def _by_mode(policy: PolicyTable, row: Row, mode: str, words: Mapping[Network, str]) -> str:
    hint = _hint_of(policy, row)
    beside = f"in the subnet of hint {hint}" if hint else ""
    if policy.mode is Mode.DEFAULT_ROUTE:
        return beside
    position = _value(policy, row, Criterion.MODE, 0)
    names = policy.mode_names
    if position < len(names):
        pattern = names[position]
        why = row.interface if pattern == row.interface else f"{row.interface} ({pattern})"
        reason = f"mode interface: {why}"
    else:
        network = policy.mode_networks[position - len(names)]
        is_host = network.prefixlen == len(network.address) * 8
        why = words.get(network, "listed" if is_host else f"inside {network_text(network)}")
        reason = f"mode {mode or ('static' if is_host else 'cidr')}: {why}"
    return f"{reason}, {beside}" if beside else reason


def _hint_of(policy: PolicyTable, row: Row) -> str:
    """The first hint that the subnet of an address holds, "" = there are none of its family."""
    subnet = Network(AF_OF[row.family], row.prefixlen, parse(row.address))
    held = (hint for hint in policy.hints if hint.family == subnet.family)
    return next((text(hint.address) for hint in held if same_subnet(subnet, hint.address)), "")


def _value(policy: PolicyTable, row: Row, criterion: Criterion, otherwise: int) -> int:
    if criterion not in policy.criteria:
        return otherwise
    return row.values[policy.criteria.index(criterion)]


def _by_route(policy: PolicyTable, row: Row) -> str:
    value = _value(policy, row, Criterion.DEFAULT_ROUTE, NO_ROUTE)
    dead, metric, _ = split_route(value)
    if _value(policy, row, Criterion.PREFSRC, 1) == 0:
        reason = f"prefsrc of the default route, metric {metric}"
    elif value == NO_ROUTE:
        reason = "default-route"
    else:
        reason = f"default-route metric {metric}"
    return f"{reason}, without carrier" if dead and value != NO_ROUTE else reason


def _by_loopback(_policy: PolicyTable, row: Row) -> str:
    return f"on {row.interface}: routing on the host"


def _by_fallback(policy: PolicyTable, row: Row) -> str:
    if policy.fallback is Fallback.AUTO:
        return "fallback auto: the only address of an ordinary link"
    if policy.fallback is Fallback.INTERFACE:
        return f"fallback interface: {row.interface}"
    return f"fallback {policy.fallback.name.lower()}: on {row.interface}"


_BY_TIER: dict[Tier, Callable[[PolicyTable, Row], str]] = {
    Tier.ROUTE: _by_route,
    Tier.LOOPBACK: _by_loopback,
    Tier.FALLBACK: _by_fallback,
}
