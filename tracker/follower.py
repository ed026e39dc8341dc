"""One selection and family as a session follows it, and what it looks like from outside."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, NamedTuple

from tracker.engine.base import NEVER
from tracker.model import AF_OF, NANOSECONDS, Choice, Scope, State
from tracker.remarks import around, reason, warnings

if TYPE_CHECKING:
    from tracker.decision import Decider
    from tracker.engine.base import Engine
    from tracker.guidance import Found
    from tracker.model import Decision, PolicyTable, Row, View
    from tracker.policy.modes import Guide

REMARKS_NS = NANOSECONDS
"""Where an answer stays, what is said about it (warnings, the reason) is said anew no more often:
a default route that flaps is no reason to write files and log lines hundreds of times a second."""

_FAMILY_SCOPES = {
    "ipv4": frozenset({Scope.LINK, Scope.ADDR4, Scope.NEXTHOP, Scope.ROUTE4}),
    "ipv6": frozenset({Scope.LINK, Scope.ADDR6, Scope.NEXTHOP, Scope.ROUTE6}),
}


class About(NamedTuple):
    """What a selection asks for, and what that stands for now."""

    policy: PolicyTable
    guide: Guide
    found: Found


class Follower:
    """The decider of one selection and family, and the view that it last saw."""

    def __init__(self, selection: str, index: int, family: str, decider: Decider) -> None:
        """`index` is the engine's number of the selection."""
        self.selection = selection
        self.index = index
        self.family = family
        self.decider = decider
        self.view: View | None = None
        self.named: str | None = None
        """The incumbent that the engine knows."""
        self.decided_ns = 0
        """CLOCK_BOOTTIME at which it was known that the address is another one."""
        self.published: str | None = None
        self.waits = False
        """Its policy is new and not known in full yet: what was decided under the old one stays."""
        self._judged_by: About | None = None
        """What the row that was decided on was judged by: its values mean nothing elsewhere."""
        self._remarks: tuple[tuple[str, ...], bool] = ((), False)
        """Warnings and whether it is ambiguous, as they were before a hold."""
        self._others: tuple[Row, ...] = ()
        """What the mode takes as well."""
        self._extra: tuple[Row, ...] = ()
        """The next best, as many as are asked for."""
        self._chosen: Choice | None = None
        """What choice() said last."""
        self._chosen_from: tuple[object, ...] = ()
        """All that it depends on."""
        self._looked: tuple[object, ...] = ()
        """What `_others` and `_extra` stand on."""
        self._noticed: int | None = None
        """When it was seen that they stand on something that has changed."""

    @property
    def is_new(self) -> bool:
        """Whether there is an address other than what was published."""
        return self.decider.address not in {None, self.published}

    def note(self, about: About) -> None:
        """The decider has looked at a view that stands on this."""
        if self.decider.state is State.STABLE:
            self._judged_by = about

    def look_around(self, engine: Engine, about: About, now: int) -> int:
        """See what a mode takes beside the answer, and the further addresses that are wanted.

        All rows are looked at, which takes longer than a decision: so, but for the first time, a
        second after a change and not before. When to look again, NEVER = when something wakes us
        up.
        """
        decider, view, extra = self.decider, self.view, about.guide.extra
        narrow = about.policy.narrows(AF_OF[self.family])
        if not extra:
            self._extra = ()
        if decider.state is not State.STABLE or not (extra or narrow) or view is None:
            return NEVER
        if self.waits:
            return NEVER
        again = NEVER
        if extra:
            # What is behind the best is no change of a view, so nobody is woken up for it.
            view = engine.view(self.index, self.family)
            again = now + REMARKS_NS
        looked = decider.address, view.last_change_ns, about.policy, extra
        if looked == self._looked:
            self._noticed = None
            return again
        if self._looked:
            if self._noticed is None:
                self._noticed = now
            if now < self._noticed + REMARKS_NS:
                return self._noticed + REMARKS_NS
        self._looked, self._noticed = looked, None
        rows = engine.rows(self.index, self.family)
        self._extra, self._others = around(rows, decider.address, about.policy, extra)
        return again

    def choice(self, about: About, *, stale: bool, expected: bool) -> Choice:
        """The decision as people see it. `stale`: the state may be out of date; `expected`: a
        family without an address is worth a warning.
        """
        decider = self.decider
        shown = decider.state, decider.address, decider.row, self.view, self.waits
        depends = (*shown, about, stale, expected, self._judged_by, self._others, self._extra)
        # Of two families one has changed, most often.
        same = self._chosen_from and all(map(is_, depends, self._chosen_from))
        if self._chosen is None or not same:
            self._chosen = self._choose(about, stale=stale, expected=expected)
            self._chosen_from = depends
        return self._chosen

    def _choose(self, about: About, *, stale: bool, expected: bool) -> Choice:
        decider, row = self.decider, self.decider.row
        assert self.view is not None
        if decider.state is not State.HOLDING and not self.waits:
            self._remarks = warnings(
                self.family,
                about.policy,
                self.view,
                decider,
                expected=expected,
                guide=about.guide,
                found=about.found,
                others=self._beside(self._others),
            )
        texts, ambiguous = self._remarks
        lost = decider.state is State.LOST
        stale = stale or lost or decider.unsettled
        return Choice(
            family=self.family,
            address=decider.shown,
            state=decider.state,
            stale=stale and decider.shown is not None,
            prefixlen=row.prefixlen if row is not None else 0,
            interface=row.interface if row is not None else "",
            ifindex=row.ifindex if row is not None else 0,
            reason=self.reason(about),
            warnings=texts,
            ambiguous=ambiguous,
            # Where an answer is lost nobody is left, further addresses least of all.
            extra=self._beside(self._extra) if decider.shown and not lost else (),
        )

    def _beside(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """Without the answer, which may have been another one when we looked."""
        return tuple(row for row in rows if row.address != self.decider.address)

    def reason(self, about: About) -> str:
        """Why this address, or why none."""
        assert self.view is not None
        judged_by = self._judged_by
        if self.decider.row is not None and judged_by is not None:
            about = about if about.policy == judged_by.policy else judged_by
        return reason(
            self.family,
            about.policy,
            self.view,
            self.decider,
            guide=about.guide,
            found=about.found,
        )


def all_choices(decision: Decision) -> list[Choice]:
    """Of all selections."""
    named = [choice for by_family in decision.selections.values() for choice in by_family.values()]
    return [*decision.choices.values(), *named]


def visible(choices: dict[str, Choice]) -> dict[str, Choice]:
    """As publishers see them: a hold is nobody's business."""
    return {
        family: choice._replace(state=State.STABLE) if choice.state is State.HOLDING else choice
        for family, choice in choices.items()
    }


def answer_alone(choice: Choice) -> tuple[object, ...]:
    """Without what is only said about it."""
    return choice.family, choice.address, choice.state, choice.stale


def is_stale(engine: Engine, family: str) -> bool:
    """Whether changes that a family depends on were lost and have yet to be read again."""
    scopes = _FAMILY_SCOPES[family]
    return any(dirty.lost and dirty.scope in scopes for dirty in engine.dirty())
