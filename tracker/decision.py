"""One state machine: turns rankings into a decision that people can rely on.

A node's address is an identity, so the decision follows the ranking reluctantly. One `Decider`
serves one selection and family. It has no clock: every call is told the time (CLOCK_BOOTTIME,
nanoseconds), and `deadline` says when it wants to be asked again at the latest.
"""

from __future__ import annotations

from typing import NamedTuple

from tracker.engine.base import NEVER
from tracker.model import AF_OF, Criterion, PolicyTable, Reject, Row, State, Tier, View

IFA_F_DEPRECATED = 0x20

_PATHS = (Criterion.DEFAULT_ROUTE, Criterion.PREFSRC)


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


class _Challenge(NamedTuple):
    """A better address, and what makes it better."""

    address: str
    path: bool
    """Only default routes and their metrics speak for it."""


def deprecated(row: Row) -> bool:
    """Whether the kernel avoids this address for new connections (the flag, not the lifetime)."""
    return bool(row.flags & IFA_F_DEPRECATED)


def _searched(policy: PolicyTable) -> tuple[object, ...]:
    """The parts of a policy that say where to look for an address."""
    lists = policy.mode, policy.mode_names, policy.mode_networks, policy.hints
    return policy.table, policy.fallback, policy.fallback_name, *lists


class Decider:
    """The decision for one family of one selection."""

    def __init__(
        self, policy: PolicyTable, stability: Stability, now: int, last: Remembered | None = None
    ) -> None:
        self._policy = policy
        self._stability = stability
        self.state = State.SETTLING
        self.address: str | None = None
        self.row: Row | None = None
        """The row that was decided on; kept while the address is away."""
        self.deadline = NEVER
        self.held = 0
        """How often an address came back in time."""
        self.cause = b""
        """The record that led to the last change of address or state."""
        self._since = now
        self._hold_until = 0
        self._named = False
        self._challenge: _Challenge | None = None
        self._challenge_since = 0
        self.reconfigured = False
        """The policy became another one, and what it makes of the address is not settled yet."""
        self._rerouted = False
        """That policy looks for addresses elsewhere, so paths alone may speak for another one."""
        self._inherited = last
        self._before = last if last is not None and last.same_boot else None

    @property
    def remembered(self) -> Remembered | None:
        """What to keep for a restart; None while there is nothing."""
        if self.address is None:
            return self._before if self.unsettled else None
        return Remembered(
            address=self.address,
            hold_until=self._hold_until if self.state is State.HOLDING else None,
            named=self._named,
            lost=self.state is State.LOST,
            same_boot=True,
        )

    @property
    def unsettled(self) -> bool:
        """Whether people still see the last run's answer, which this one has yet to replace."""
        return self.state is State.SETTLING and self._before is not None

    @property
    def shown(self) -> str | None:
        """The address that people see: an empty answer is never published over a value."""
        if self._before is not None and self.unsettled:
            return self._before.address
        return self.address

    def must_wait(self, now: int, view: View) -> bool:
        """Whether a first decision should wait, where `view` stands on dumps that failed."""
        due = self._since + self._stability.settle_max
        if self.state is not State.SETTLING or (now >= due and view.best is not None):
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
            self._rerouted = self._rerouted or _searched(policy) != _searched(before)
            self._named = False

    def end_reconfiguration(self) -> None:
        """What another policy makes of the address is settled."""
        self.reconfigured = self._rerouted = False

    def step(self, now: int, view: View) -> bool:
        """Look at the ranking. True if the address that people see became another one."""
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
            getattr(self, f"_{state.value}")(now, view)
        return self.address != before

    def _inherit(self, now: int, view: View, last: Remembered) -> None:
        """Take over the last run's answer if it is still good, or its hold if that still runs."""
        self._named = last.named
        self.address = last.address
        if self._valid(view):
            self._adopt(view.incumbent)
        elif last.same_boot and last.hold_until is not None and last.hold_until > now:
            self.state = State.HOLDING
            # No longer than a hold that begins now: the file may be damaged, or the clock another
            # one, as in a container that was moved.
            self._hold_until = min(last.hold_until, now + self._stability.hold)
        elif last.same_boot and last.lost:
            self.state = State.LOST
        else:
            self.address = None
            self._named = False

    # One method a state, named after it.

    def _settling(self, now: int, view: View) -> None:
        stability = self._stability
        quiet = max(self._since, view.last_change_ns) + stability.settle
        due = min(quiet, self._since + stability.settle_max)
        if now < due:
            self.deadline = due
            return
        self.cause = view.cause
        if view.best is not None:
            self._take(view.best)
        elif self._before is not None:
            self.address = self._before.address
            self.state = State.LOST
        else:
            self.state = State.NONE

    def _none(self, now: int, view: View) -> None:
        self._take_when_settled(now, view)

    def _stable(self, now: int, view: View) -> None:
        if not self._valid(view):
            stability = self._stability
            self.state = State.HOLDING
            self._hold_until = now + (stability.settle if self.reconfigured else stability.hold)
            self._challenge = None
            self.cause = view.cause
            return
        assert view.incumbent is not None
        self._adopt(view.incumbent)
        challenge = self._challenger(view)
        if challenge is None:
            self._challenge = None
            self.end_reconfiguration()
            return
        reluctant = challenge.path and not self._rerouted
        wait = self._stability.failback if reluctant else self._stability.settle
        if wait is None:
            self._challenge = None
            self.end_reconfiguration()
        elif self._waited(now, challenge, wait, view):
            assert view.best is not None
            self._take(view.best)

    def _holding(self, now: int, view: View) -> None:
        if self._valid(view):
            self.held += 1
            self._adopt(view.incumbent)
            return
        if now < self._hold_until:
            self.deadline = self._hold_until
        elif self._coming_back(view):
            # Duplicate address detection takes about a second; its end is a change.
            return
        elif (best := self._replacement(view)) is not None:
            self._take(best)
        else:
            self.state = State.LOST
            self.end_reconfiguration()

    def _lost(self, now: int, view: View) -> None:
        if self._valid(view):
            self.cause = view.cause
            self._adopt(view.incumbent)
        else:
            self._take_when_settled(now, view)

    def _take_when_settled(self, now: int, view: View) -> None:
        """Take the first address that has been the best for `settle`."""
        best = self._replacement(view)
        if best is None:
            self._challenge = None
            return
        challenge = _Challenge(best.address, path=False)
        if self._waited(now, challenge, self._stability.settle, view):
            self._take(best)

    def _replacement(self, view: View) -> Row | None:
        """The best row, if it is any better than to keep what there is.

        An incumbent that only lost its carrier is not given up for an address without one.
        """
        best, row = view.best, view.incumbent
        if best is None or best.address == self.address:
            return None
        here = row is not None and row.address == self.address and row.own_reject is Reject.NONE
        return best if best.carrier or not here else None

    def _waited(self, now: int, challenge: _Challenge, wait: int, view: View) -> bool:
        """Whether `challenge` has stood for `wait`; else the deadline is set."""
        if self._challenge != challenge:
            self._challenge = challenge
            self._challenge_since = now
            self.cause = view.cause
        due = self._challenge_since + wait
        if now >= due:
            return True
        self.deadline = due
        return False

    def _take(self, row: Row) -> None:
        self.address = row.address
        self._challenge = None
        self._adopt(row)

    def _adopt(self, row: Row | None) -> None:
        """Settle on the row that now carries the address, also when it moved to another link."""
        assert row is not None
        self.state = State.STABLE
        self.row = row
        if row.own_reject is Reject.NONE:
            self._named = self._value(row, Criterion.PREFSRC) == 0

    def _valid(self, view: View) -> bool:
        row = view.incumbent
        if row is None or row.address != self.address or not row.carrier:
            return False
        if row.own_reject is Reject.EXCLUDED_INTERFACE and self._named:
            # It was eligible by its default route alone, and to lose only that is no reason.
            return True
        if row.own_reject is not Reject.NONE or self._has_left_mode(row):
            return False
        best = view.best
        other = best is not None and best.address != row.address
        return not (deprecated(row) and other and best is not None and not deprecated(best))

    def _has_left_mode(self, row: Row) -> bool:
        """Whether the mode took it and does no longer: a filter like any other. One that merely
        filled in, by a fallback, may lose its path as in mode default-route.
        """
        if row.reject is not Reject.NOT_IN_MODE or not self._narrows(row):
            return False
        return self.row is None or self.row.tier is Tier.ROUTE

    def _narrows(self, row: Row) -> bool:
        return self._policy.narrows(AF_OF[row.family])

    def _coming_back(self, view: View) -> bool:
        row = view.incumbent
        return (
            row is not None
            and row.address == self.address
            and row.own_reject is Reject.TENTATIVE
            and row.carrier
        )

    def _challenger(self, view: View) -> _Challenge | None:
        best = view.best
        if best is None or best.address == self.address:
            return None
        # Behind `incumbent` nothing can speak against the incumbent, so what is left
        # without a mark is the tier and the paths.
        if view.first_diff >= 0:
            criterion = self._policy.criteria[view.first_diff]
            if criterion in self._policy.displacing:
                return _Challenge(best.address, path=False)
            if criterion not in _PATHS:
                return None
        # What is in the mode comes before what only filled in.
        by_mode = view.first_diff < 0 and best.tier is Tier.ROUTE and self._narrows(best)
        return _Challenge(best.address, path=not by_mode)

    def _value(self, row: Row, criterion: Criterion) -> int | None:
        try:
            return row.values[self._policy.criteria.index(criterion)]
        except ValueError:
            return None

    @property
    def pathless(self) -> bool:
        """Whether the address that is kept has no default route of its own any more."""
        return self.row is not None and self.row.tier not in (Tier.ROUTE, Tier.LOOPBACK)
