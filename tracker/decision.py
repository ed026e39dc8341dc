"""One state machine: turns rankings into a decision that people can rely on.

A node's address is an identity, so the decision follows the ranking reluctantly. One `Decider`
serves one selection and family. It has no clock: every call is told the time (CLOCK_BOOTTIME,
nanoseconds), and `deadline` says when it wants to be asked again at the latest.
"""

from __future__ import annotations

from typing import NamedTuple

from tracker.engine.base import NEVER
from tracker.model import AF_OF, Criterion, Judged, PolicyTable, Reject, Row, Sight, State, Tier

IFA_F_DEPRECATED = 0x20

_PATHS = (Criterion.DEFAULT_ROUTE, Criterion.PREFSRC)

# Globals are found at once, members of an enumeration are looked for.
_SETTLING, _STABLE, _HOLDING, _LOST = State.SETTLING, State.STABLE, State.HOLDING, State.LOST
_ELIGIBLE = Reject.NONE


class Stability(NamedTuple):
    """How reluctant a decision is; all in nanoseconds."""

    settle: int
    settle_max: int
    hold: int
    failback: int | None
    """None = never."""


class Remembered(NamedTuple):
    """What a restart needs to know of one family."""

    address: str
    hold_until: int | None
    """CLOCK_BOOTTIME; None = it was not being held."""
    named: bool
    """It passed the filters because a default route named it as its source."""
    lost: bool
    """It was published as stale, with nobody to replace it."""
    same_boot: bool
    """False: the host was booted since, so a hold or a stale value means nothing any more."""


def deprecated(row: Judged) -> bool:
    """Whether the kernel avoids this address for new connections (the flag, not the lifetime)."""
    return bool(row.flags & IFA_F_DEPRECATED)


def _searched(policy: PolicyTable) -> tuple[object, ...]:
    """The parts of a policy that say where to look for an address."""
    lists = policy.mode, policy.mode_names, policy.mode_networks, policy.hints
    return policy.table, policy.fallback, policy.fallback_name, *lists


def _speaking(policy: PolicyTable) -> tuple[bool | None, ...]:
    """What speaks for another address where it differs first from the incumbent, by position of
    the criteria, the address itself at last: True = a path, False = what displaces, None = nothing.
    """
    speaks = [
        False if criterion in policy.displacing else True if criterion in _PATHS else None
        for criterion in policy.criteria
    ]
    return (*speaks, None)


class Decider:
    """The decision for one family of one selection."""

    def __init__(
        self, policy: PolicyTable, stability: Stability, now: int, last: Remembered | None = None
    ) -> None:
        self._policy = policy
        self._speaks = _speaking(policy)
        self._stability = stability
        self.state = _SETTLING
        self.address: str | None = None
        self._row: Judged | None = None
        self._namer: Judged | None = None
        """The eligible row that was decided on last, until it is known what named it."""
        self.deadline = NEVER
        self.held = 0
        """How often an address came back in time."""
        self.cause = b""
        """The record that led to the last change of address or state."""
        self._causing: Sight | None = None
        """What shows it."""
        self._since = now
        self._hold_until = 0
        self._named = False
        self._challenge: tuple[str, bool] | None = None
        """A better address, and whether only default routes and their metrics speak for it."""
        self._challenge_since = 0
        self.reconfigured = False
        """The policy became another one, and what it makes of the address is not settled yet."""
        self._rerouted = False
        """That policy looks for addresses elsewhere, so paths alone may speak for another one."""
        self._sought = False
        """A policy that looks elsewhere came since the row was decided on."""
        self._rehold = False
        """Another policy came since the hold was looked at."""
        self._inherited = last
        self._before = last if last is not None and last.same_boot else None

    @property
    def remembered(self) -> Remembered | None:
        """What to keep for a restart; None while there is nothing."""
        if self.address is None:
            return self._before if self.unsettled else None
        return Remembered(
            address=self.address,
            hold_until=self._hold_until if self.state is _HOLDING else None,
            named=self._named,
            lost=self.state is _LOST,
            same_boot=True,
        )

    @property
    def unsettled(self) -> bool:
        """Whether people still see the last run's answer, which this one has yet to replace."""
        return self.state is _SETTLING and self._before is not None

    @property
    def shown(self) -> str | None:
        """The address that people see: an empty answer is never published over a value."""
        if self._before is not None and self.unsettled:
            return self._before.address
        return self.address

    def must_wait(self, now: int, view: Sight) -> bool:
        """Whether a first decision should wait, where `view` stands on dumps that failed."""
        due = self._since + self._stability.settle_max
        if self.state is not _SETTLING or (now >= due and view.best is not None):
            return False
        self.deadline = due if now < due else NEVER
        return True

    def set_policy(self, policy: PolicyTable, stability: Stability) -> None:
        """Go on under another policy. What it changes goes through settling: an address that it
        rejects is not held, for it will not come back.
        """
        before, self._policy = self._policy, policy
        self._stability = stability
        if policy != before:
            self.reconfigured = True
            searched = _searched(policy) != _searched(before)
            self._rerouted = self._rerouted or searched
            self._sought = self._sought or searched
            self._rehold = True
            self._named = False
            self._speaks = _speaking(policy)

    def follow(self, policy: PolicyTable, stability: Stability) -> None:
        """What the same policy depends on is another list or table now."""
        self._policy, self._stability = policy, stability

    def end_reconfiguration(self) -> None:
        """What another policy makes of the address is settled."""
        self.reconfigured = self._rerouted = False

    def step(self, now: int, view: Sight) -> bool:
        """Look at the ranking. True if the address that people see became another one."""
        changed = self.glance(now, view)
        self.keep()
        return changed

    def glance(self, now: int, view: Sight) -> bool:
        """The same, but keep() is to be called while what `view` shows is still there."""
        self.deadline = NEVER
        if self._inherited is not None:
            self._inherit(now, view, self._inherited)
            self._inherited = None
        before = self.address
        state = None
        # A state may lead to the next one at the same instant. Where the address changes, the
        # view does not fit any more: its incumbent is another one.
        while self.state is not state and self.address == before:
            state = self.state
            if state is _STABLE:
                self._stable(now, view)
            elif state is _HOLDING:
                self._holding(now, view)
            elif state is _SETTLING:
                self._settling(now, view)
            elif state is _LOST:
                self._lost(now, view)
            else:
                self._none(now, view)
        return self.address != before

    def keep(self) -> None:
        """Take what was decided on from the view that showed it."""
        row, namer = self._row, self._namer
        if row is not None:
            self._row = row.whole()
            namer = self._row if namer is row else namer
        if namer is not None:
            self._named = self._value(namer.whole(), Criterion.PREFSRC) == 0
            self._namer = None
        if self._causing is not None:
            self.cause = self._causing.cause
            self._causing = None

    @property
    def row(self) -> Row | None:
        """The row that was decided on; kept while the address is away."""
        return self._row.whole() if self._row is not None else None

    def _inherit(self, now: int, view: Sight, last: Remembered) -> None:
        """Take over the last run's answer if it is still good, or its hold if that still runs."""
        self._named = last.named
        self.address = last.address
        if self._valid(view):
            self._adopt(view.incumbent)
        elif last.same_boot and last.hold_until is not None and last.hold_until > now:
            self.state = _HOLDING
            # No longer than a hold that begins now: the file may be damaged, or the clock another
            # one, as in a container that was moved.
            self._hold_until = min(last.hold_until, now + self._stability.hold)
        elif last.same_boot and last.lost:
            self.state = _LOST
        else:
            self.address = None
            self._named = False

    # One method a state.

    def _settling(self, now: int, view: Sight) -> None:
        stability = self._stability
        quiet = max(self._since, view.last_change_ns) + stability.settle
        due = min(quiet, self._since + stability.settle_max)
        if now < due:
            self.deadline = due
            return
        self._causing = view
        if view.best is not None:
            self._take(view.best)
        elif self._before is not None:
            self.address = self._before.address
            self.state = _LOST
        else:
            self.state = State.NONE

    def _none(self, now: int, view: Sight) -> None:
        self._take_when_settled(now, view)

    def _stable(self, now: int, view: Sight) -> None:
        if not self._valid(view):
            stability = self._stability
            self.state = _HOLDING
            self._hold_until = now + (stability.settle if self.reconfigured else stability.hold)
            self._challenge = None
            self._causing = view
            return
        assert view.incumbent is not None
        self._adopt(view.incumbent)
        best = view.best
        path = self._challenges(view)
        if best is None or path is None:
            self._challenge = None
            self.end_reconfiguration()
            return
        reluctant = path and not self._rerouted
        wait = self._stability.failback if reluctant else self._stability.settle
        if wait is None:
            self._challenge = None
            self.end_reconfiguration()
        elif self._waited(now, best.address, path, wait, view):
            self._take(best)

    def _holding(self, now: int, view: Sight) -> None:
        if self._valid(view):
            self.held += 1
            self._adopt(view.incumbent)
            return
        if self._rehold and view.incumbent is not None:
            # It is here, and it is the policy that does not want it.
            self._hold_until = min(self._hold_until, now + self._stability.settle)
        self._rehold = False
        if now < self._hold_until:
            self.deadline = self._hold_until
        elif self._coming_back(view):
            # Duplicate address detection takes about a second; its end is a change.
            return
        elif (best := self._replacement(view)) is not None:
            self._take(best)
        else:
            self.state = _LOST
            self.end_reconfiguration()

    def _lost(self, now: int, view: Sight) -> None:
        if self._valid(view):
            self._causing = view
            self._adopt(view.incumbent)
        else:
            self._take_when_settled(now, view)

    def _take_when_settled(self, now: int, view: Sight) -> None:
        """Take the first address that has been the best for `settle`."""
        best = self._replacement(view)
        if best is None:
            self._challenge = None
            return
        if self._waited(now, best.address, False, self._stability.settle, view):
            self._take(best)

    def _replacement(self, view: Sight) -> Judged | None:
        """The best row, if it is any better than to keep what there is.

        An incumbent that only lost its carrier is not given up for an address without one.
        """
        best, row = view.best, view.incumbent
        if best is None or best.address == self.address:
            return None
        here = row is not None and row.address == self.address and row.own_reject is _ELIGIBLE
        return best if best.carrier or not here else None

    def _waited(self, now: int, address: str, path: bool, wait: int, view: Sight) -> bool:
        """Whether a challenge has stood for `wait`; else the deadline is set."""
        challenge = address, path
        if self._challenge != challenge:
            self._challenge = challenge
            self._challenge_since = now
            self._causing = view
        due = self._challenge_since + wait
        if now >= due:
            return True
        self.deadline = due
        return False

    def _take(self, row: Judged) -> None:
        self.address = row.address
        self._challenge = None
        self._adopt(row)

    def _adopt(self, row: Judged | None) -> None:
        """Settle on the row that now carries the address, also when it moved to another link."""
        assert row is not None
        self.state = _STABLE
        self._sought = self._rehold = False
        self._row = row
        if row.own_reject is _ELIGIBLE:
            self._namer = row

    def _valid(self, view: Sight) -> bool:
        row = view.incumbent
        if row is None or row.address != self.address or not row.carrier:
            return False
        if row.own_reject is not _ELIGIBLE:
            # It was eligible by its default route alone, and to lose only that is no reason.
            return row.own_reject is Reject.EXCLUDED_INTERFACE and self._is_named()
        if self._has_left_mode(row):
            return False
        best = view.best
        if not deprecated(row) or best is None or best.address == row.address:
            return True
        return deprecated(best)

    def _is_named(self) -> bool:
        self.keep()
        return self._named

    def _has_left_mode(self, row: Judged) -> bool:
        """Whether the mode took it and does no longer: a filter like any other. One that merely
        filled in, by a fallback, may lose its path as in mode default-route.
        """
        if row.reject is not Reject.NOT_IN_MODE or not self._narrows(row):
            return False
        return self._sought or self._row is None or self._row.tier is Tier.ROUTE

    def _narrows(self, row: Judged) -> bool:
        return self._policy.narrows(AF_OF[row.family])

    def _coming_back(self, view: Sight) -> bool:
        row = view.incumbent
        return (
            row is not None
            and row.address == self.address
            and row.own_reject is Reject.TENTATIVE
            and row.carrier
        )

    def _challenges(self, view: Sight) -> bool | None:
        """Whether the best address is one to go over to, and then whether by its path alone."""
        best = view.best
        if best is None or best.address == self.address:
            return None
        # Behind `incumbent` nothing can speak against the incumbent, so what is left
        # without a mark is the tier and the paths.
        if view.first_diff >= 0:
            return self._speaks[view.first_diff]
        # What is in the mode comes before what only filled in.
        return not (best.tier is Tier.ROUTE and self._narrows(best))

    def _value(self, row: Row, criterion: Criterion) -> int | None:
        try:
            return row.values[self._policy.criteria.index(criterion)]
        except ValueError:
            return None
