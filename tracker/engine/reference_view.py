"""The order of all candidates of a selection and what follows from it (docs/engine.md section 5,
rules 5 to 9)."""

from __future__ import annotations

from typing import NamedTuple

from tracker.engine.reference_filters import contains
from tracker.engine.reference_rank import Default, Judged
from tracker.model import (
    AF_OF,
    Criterion,
    Fallback,
    Network,
    PolicyTable,
    Reject,
    Row,
    Tier,
    View,
)

SATURATED = 255
SAME_OR_MISSING = -1
TIER_DIFFERS = -2


class Defaults(NamedTuple):
    """Default routes of the policy's table, seen from one family."""

    own: tuple[Default, ...]
    """Unicast ones of the family."""
    other: int
    """Unicast ones of the other family."""
    bad: int
    """Those of the family that are not unicast."""


class Ranking:
    """The addresses of one family, judged by one selection."""

    def __init__(
        self,
        policy: PolicyTable,
        incumbent: bytes | None,
        defaults: Defaults,
        judged: list[Judged],
    ) -> None:
        self._policy = policy
        self._defaults = defaults
        self._judged = judged
        self._candidates = [one for one in judged if _is_candidate(one)]
        self._first = min(self._candidates, key=_order, default=None)
        self.best = self._first if self._first and self._stands(self._first) else None
        """The first candidate, if its tier stands."""
        self.incumbent = min(
            (one for one in judged if one.packed == incumbent), key=_incumbent_order, default=None
        )
        """The best entry of the incumbent's address, rejected or not."""
        self.first_diff = self._first_diff()

    def _stands(self, first: Judged) -> bool:
        """Rule 5: `auto` falls back only where nothing could be confused."""
        if first.row.tier is not Tier.FALLBACK or self._policy.fallback is not Fallback.AUTO:
            return True
        has_default = bool(self._defaults.own) or bool(self._defaults.other)
        return not has_default and self._fallback_count() == 1

    def _fallback_count(self) -> int:
        fallback = (one for one in self._candidates if one.row.tier is Tier.FALLBACK)
        return len({one.packed for one in fallback})

    def _first_diff(self) -> int:
        best, incumbent = self.best, self.incumbent
        if best is None or incumbent is None or best.packed == incumbent.packed:
            return SAME_OR_MISSING
        if best.row.tier is not incumbent.row.tier:
            return TIER_DIFFERS
        return _first_difference(best.row, incumbent.row)

    @property
    def core(self) -> tuple[object, ...]:
        """What rule 10 calls a change of best, of the incumbent or of their order."""
        best, incumbent = self.best, self.incumbent
        return (
            best and best.order,
            incumbent and (incumbent.row.own_reject, incumbent.order),
            self.first_diff,
        )

    def rows(self) -> list[Row]:
        """Ranked ones first in order, then rejected ones by address (rule 6)."""
        ranked = sorted((one for one in self._candidates if self._in_best_tier(one)), key=_order)
        rejected = [one for one in self._judged if one not in ranked]
        rejected.sort(key=lambda one: (one.packed, *one.order[-3:]))
        return [self._final(one, rank) for rank, one in enumerate(ranked, 1)] + [
            self._final(one, 0) for one in rejected
        ]

    def _in_best_tier(self, one: Judged) -> bool:
        return self.best is not None and one.row.tier is self.best.row.tier

    def _final(self, one: Judged, rank: int) -> Row:
        """The row with what depends on the others: its rank, and no reject if it has one."""
        return one.row._replace(rank=rank, reject=Reject.NONE) if rank else one.row

    def view(self, last_change_ns: int, cause: bytes) -> View:
        """What a decision needs to know."""
        return View(
            best=self._ranked(self.best),
            incumbent=self._ranked(self.incumbent),
            default_routes=min(len(self._defaults.own), SATURATED),
            other_defaults=min(self._defaults.other, SATURATED),
            bad_defaults=min(self._defaults.bad, SATURATED),
            default_links=min(self._default_links(), SATURATED),
            rival=self._has_rival(),
            first_diff=self.first_diff,
            fallback_count=self._fallback_count(),
            last_change_ns=last_change_ns,
            cause=cause,
        )

    def _ranked(self, one: Judged | None) -> Row | None:
        if one is None or not (_is_candidate(one) and self._in_best_tier(one)):
            return one and one.row
        better = sum(
            other.order < one.order for other in self._candidates if self._in_best_tier(other)
        )
        return self._final(one, 1 + better)

    def _default_links(self) -> int:
        """Rule 9."""
        over = {leg.oif for route in self._defaults.own for leg in route.legs}
        usable = {one.row.ifindex for one in self._candidates if one.row.tier is Tier.ROUTE}
        return len(over & usable)

    def _has_rival(self) -> bool:
        """Rule 8: another network qualifies on equal terms."""
        best = self.best
        return best is not None and any(
            self._in_best_tier(one)
            and not _same_network(best, one)
            and self._is_tie_break(_first_difference(best.row, one.row))
            for one in self._candidates
        )

    def _is_tie_break(self, position: int) -> bool:
        """Whether a difference there says nothing about the quality of an address."""
        criteria = self._policy.criteria
        if position == len(criteria) or criteria[position] is Criterion.INCUMBENT:
            return True
        return Criterion.GLOBAL_BEFORE_ULA in criteria[:position]


def _order(one: Judged) -> tuple[object, ...]:
    return one.order


def _is_candidate(one: Judged) -> bool:
    return one.row.own_reject is Reject.NONE and one.row.tier is not Tier.NONE


def _incumbent_order(one: Judged) -> tuple[object, ...]:
    """Rule 7. Tier.NONE is the last tier by its value."""
    if one.row.own_reject is Reject.NONE:
        return (0, *one.order)
    peer = one.order[-2]
    return (1, one.row.own_reject, one.row.ifindex, one.row.prefixlen, peer)


def _first_difference(one: Row, other: Row) -> int:
    for position, (left, right) in enumerate(zip(one.values, other.values, strict=True)):
        if left != right:
            return position
    return len(one.values)


def _same_network(one: Judged, other: Judged) -> bool:
    """One prefix holds the other's address; host-length ones only if they are equal."""
    family = AF_OF[one.row.family]
    return contains(Network(family, one.row.prefixlen, one.packed), family, other.packed) or (
        contains(Network(family, other.row.prefixlen, other.packed), family, one.packed)
    )
