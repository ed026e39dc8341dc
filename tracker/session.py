"""From a source to a decision: dumps what is dirty, follows the rankings, runs the timers.

Everything that follows a host goes through here: the daemon, the commands that look once, and
replays on a virtual clock. There is one thread; nothing in it waits for anything but the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.capture.base import Wake
from tracker.capture.resync import Resync, next_audit
from tracker.causes import cause_of, is_dump_entry
from tracker.decision import Decider
from tracker.engine.base import NEVER
from tracker.follower import (
    REMARKS_NS,
    About,
    Follower,
    all_choices,
    answer_alone,
    is_stale,
    visible,
)
from tracker.guidance import Guidance, Helpers, configured
from tracker.lastrun import left_behind
from tracker.model import (
    NANOSECONDS,
    Cause,
    Change,
    Choice,
    Decision,
    PolicyTable,
    Scope,
    State,
)
from tracker.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracker.capture.base import Source
    from tracker.clock import Clock
    from tracker.decision import Remembered
    from tracker.lastrun import LastRun, Memory, Settings
    from tracker.policy.modes import Guide

START = "start"
"""Cause of the dumps that a session begins with."""

POLICY = "policy"
"""Cause of the dumps that another policy asks for."""

RELOAD = "reload of the configuration"
"""Cause of changes that come of it."""

NODE = ""
"""Name of the node's own selection."""

OVERSLEPT_NS = NANOSECONDS
"""A wait that ends this much after its deadline: the process was stopped or the host slept."""

_CHANGED = Wake.CHANGED
_SETTLING = State.SETTLING


class Session:
    """Follows one network namespace."""

    def __init__(
        self,
        source: Source,
        policies: Mapping[str, PolicyTable],
        settings: Settings,
        clock: Clock,
        *,
        hostname: str = "",
        memory: Memory | None = None,
        guides: Mapping[str, Guide] | None = None,
        helpers: Helpers | None = None,
    ) -> None:
        """`policies` are the tables of all selections, the node's own first; `guides` say what
        some of them depend on, and `helpers` whom to ask for it.
        """
        self.source = source
        self.engine = source.engine
        self.settings = settings
        self.hostname = hostname
        self.resync = Resync(source, clock)
        self.generation = 0
        self.decision_changes: dict[tuple[str, str], int] = {}
        self._clock = clock
        self._memory = memory
        self._kept: LastRun | None = None
        self._guidance = Guidance(guides or {}, helpers or Helpers(), source.engine)
        self._configured = configured(policies, self._guidance)
        self._has_targets = False
        self._tables = Tables(source.engine, policies)
        self._abouts: dict[str, About] = {}
        """What about() said, while that stands."""
        self._followers: list[Follower] = []
        self._ahead: Follower | None = None
        """What was decided on at a glance, to be followed in this step."""
        self._changes: list[Change] = []
        self._drifts: list[bytes] = []
        self._time_ns = 0
        self._cause: Cause | None = None
        self._said: Decision | None = None
        """What the last step made of things, for published()."""
        self._published: tuple[object, ...] | None = None
        self._answered: tuple[object, ...] | None = None
        """The part of it that is the answer, not a remark."""
        self._remarked = 0
        self._remark_at = NEVER
        self._audit_at = NEVER

    # Life.

    def start(self, read: Callable[[], None] = lambda: None) -> bool:
        """Read everything once and decide for the first time; True as from step(). `read` is
        called in between, before anything may start a thread.
        """
        last = self._memory.load() if self._memory is not None else None
        if last is not None:
            self.generation = last.generation
            self._time_ns = last.time_ns
        now = self._clock.boot_ns()
        self._tables.enter()
        for selection, policy in self.policies.items():
            for family in policy.families:
                kept = last.remembered.get((selection, family)) if last is not None else None
                self._begin(selection, family, now, kept)
            self._guidance.inherit(selection, self._incumbents(selection))
        self._time_ns = self._time_ns or self._clock.wall_ns()
        self._set_targets()
        self.source.refresh()
        self.source.drain()
        self.resync.run(START)
        read()
        # It may have taken seconds, and left a source that has read nothing meanwhile.
        self.source.drain()
        self._guide(START)
        self._plan_audit()
        return self._decide()

    def reload(
        self,
        policies: Mapping[str, PolicyTable],
        guides: Mapping[str, Guide],
        settings: Settings,
        helpers: Helpers,
        hostname: str,
    ) -> bool:
        """Go on under another configuration; answers stay until what it changes has settled.

        True if there is something to say, as from step(). Where the engine refuses a table it
        raises, and nothing has changed.
        """
        now = self._clock.boot_ns()
        guidance = Guidance(guides, helpers, self.engine, self._guidance)
        wanted = dict(policies)
        wanted.update(guidance.step(now, wanted, self._incumbents))
        try:
            self._tables.exchange(wanted)
        except Exception:
            for each in self._followers:
                each.index = self.index(each.selection)
                self._name(each, each.named)
            # The others were asked meanwhile.
            self._guidance.again()
            raise
        self.settings, self.hostname, self._guidance = settings, hostname, guidance
        self._abouts.clear()
        before, self._configured = self._configured, configured(policies, guidance)
        self._followers = [f for f in self._followers if f.family in self._families(f.selection)]
        known = {(f.selection, f.family): f for f in self._followers}
        for name, policy in wanted.items():
            is_same = self._configured[name] == before.get(name)
            for family in policy.families:
                if follower := known.get((name, family)):
                    if is_same:
                        follower.decider.follow(policy, settings.stability)
                    else:
                        follower.decider.set_policy(policy, settings.stability)
                    self._name(follower, follower.decider.address)
                    self._look_anew(follower)
                else:
                    self._begin(name, family, now, None)
        self._set_targets()
        self.resync.run(POLICY)
        self._plan_audit()
        self._published = self._answered = None
        return self._decide()

    def _families(self, selection: str) -> tuple[str, ...]:
        policy = self.policies.get(selection)
        return policy.families if policy is not None else ()

    def _look_anew(self, follower: Follower) -> None:
        """Whatever the engine says: values are others under another table."""
        follower.waits = self._waits(follower)
        if not follower.waits:
            follower.view = None

    def _waits(self, follower: Follower) -> bool:
        """Whether the answer of another policy has to stay until this one's list is known."""
        is_late = follower.selection in self._guidance.pending
        return is_late and follower.decider.state is not _SETTLING

    def _begin(self, selection: str, family: str, now: int, kept: Remembered | None) -> None:
        """Follow a family of a selection from now on."""
        policy = self.policies[selection]
        decider = Decider(policy, self.settings.stability, now, kept)
        follower = Follower(selection, self.index(selection), family, decider)
        if kept is not None:
            follower.published = kept.address if kept.same_boot else None
            self._name(follower, kept.address)
        self._followers.append(follower)

    def _set_targets(self) -> None:
        targets = self._guidance.targets
        if targets or self._has_targets:
            self.engine.set_targets(targets)
            self._has_targets = bool(targets)

    def resume(self) -> None:
        """Read everything again before the next decision: nobody watched for a while."""
        self._said = None
        self.engine.lose(tuple(Scope))
        self._guidance.again()

    def step(self, until_ns: int = NEVER) -> bool:
        """Wait for one thing to happen, at most until `until_ns` (CLOCK_BOOTTIME).

        True if what people see changed, or is to be said again after an audit: take `decision()`
        and `take_changes()`.
        """
        deadline = min(until_ns, self.deadline())
        latest = max(deadline, self._clock.boot_ns())
        woken = self.source.wait(deadline)
        now = self._clock.boot_ns()
        if woken is _CHANGED and now < deadline and self._guidance.idle:
            self._glance(now)
        if now > latest + OVERSLEPT_NS:
            self.resume()
        if now >= deadline:
            # Messages may wait that speak against what is about to be decided.
            self.source.drain()
        self.engine.tick(now)
        self.resync.run()
        self._guide()
        if now >= self._audit_at:
            self._audit()
        return self._decide()

    def deadline(self) -> int:
        """CLOCK_BOOTTIME of the next thing that is due by itself."""
        deciders = min((f.decider.deadline for f in self._followers if not f.waits), default=NEVER)
        due = (self.resync.deadline(), self._guidance.deadline, self._audit_at, self._remark_at)
        return min(deciders, *due)

    @property
    def policies(self) -> Mapping[str, PolicyTable]:
        """The tables of all selections, the node's own first."""
        return self._tables.policies

    @property
    def pending(self) -> bool:
        """Whether somebody has yet to answer for the first time, a name server for example."""
        return bool(self._guidance.pending)

    def index(self, selection: str) -> int:
        """The engine's number of a selection."""
        return self._tables.index(selection)

    def about(self, selection: str) -> About:
        """What a selection asks for, and what that stands for now."""
        about = self._abouts.get(selection)
        if about is None:
            found = self._guidance.found(selection)
            about = About(self.policies[selection], self._guidance.guide(selection), found)
            self._abouts[selection] = about
        return about

    # What came out.

    def take_changes(self) -> list[Change]:
        """Changes of addresses since the last call, oldest first."""
        changes, self._changes = self._changes, []
        return changes

    def take_drifts(self) -> list[bytes]:
        """What audits found since the last call: records, see Engine.drifts."""
        drifts, self._drifts = self._drifts, []
        return drifts

    def decision(self) -> Decision:
        """The state of things now."""
        choices: dict[str, dict[str, Choice]] = {name: {} for name in self.policies}
        for follower in self._followers:
            choices[follower.selection][follower.family] = self._choice(follower)
        node = choices.pop(NODE)
        return Decision(
            generation=self.generation,
            time_ns=self._time_ns,
            hostname=self.hostname,
            families=self.policies[NODE].families,
            choices=node,
            selections=choices,
            cause=self._cause,
            warnings=tuple(text for choice in node.values() for text in choice.warnings),
        )

    def published(self) -> Decision:
        """The decision as publishers see it: a hold may end as if nothing had been."""
        if self._said is not None:
            return self._said
        decision = self.decision()
        return decision._replace(
            choices=visible(decision.choices),
            selections={name: visible(each) for name, each in decision.selections.items()},
        )

    @property
    def held(self) -> int:
        """How often an address went and came back in time."""
        return sum(follower.decider.held for follower in self._followers)

    # Inside.

    def _guide(self, cause: str = POLICY) -> None:
        """Find out what policies depend on, and follow it."""
        if self._guidance.idle:
            return
        now = self._clock.boot_ns()
        self._abouts.clear()
        changed = self._guidance.step(now, self.policies, self._incumbents)
        if changed:
            self._tables.follow(changed)
        for follower in self._followers:
            name = follower.selection
            if name in changed:
                follower.decider.follow(changed[name], self.settings.stability)
            if name in changed or (follower.waits and not self._waits(follower)):
                self._look_anew(follower)
        if changed:
            self.resync.run(cause)

    def _incumbents(self, selection: str) -> dict[str, str | None]:
        # At the start a decider has no address yet, but the last run had.
        return {
            f.family: f.decider.address or f.named
            for f in self._followers
            if f.selection == selection
        }

    def _glance(self, now: int) -> None:
        """Decide before anything else where a change is all that there is: nothing is dirty, no
        timer is due, nobody has to be asked. The rest of the step does what this leaves out.
        """
        glance = self.engine.glance()
        if glance is None:
            return
        for follower in self._followers:
            if follower.index == glance.selection and follower.family == glance.family:
                decider = follower.decider
                if follower.view is None or follower.waits or decider.state is _SETTLING:
                    return
                if decider.glance(now, glance):
                    follower.decided_ns = self._clock.boot_ns()
                    self._ahead = follower
                decider.keep()
                follower.note(self.about(follower.selection))
                return

    def _decide(self) -> bool:
        now = self._clock.boot_ns()
        unseen = self._follow_all(self.engine.changed(), now)
        while unseen:
            unseen = self._follow_all(unseen, now)
        return self._publish()

    def _follow_all(self, changed: set[tuple[int, str]], now: int) -> set[tuple[int, str]]:
        """Look at what changed or is due; which views changed by that and were not seen."""
        moved = []
        for follower in self._followers:
            if follower.waits:
                continue
            due = follower.decider.deadline <= now or follower.decider.state is _SETTLING
            look = follower.view is None or due or (follower.index, follower.family) in changed
            if follower is self._ahead or (look and self._look(follower, now)):
                moved.append(follower)
        self._ahead = None
        seen = set()
        for follower in moved:
            # Once more with the view that fits: an address without carrier is held from the
            # beginning, not from whatever wakes us up next.
            if self._follow(follower):
                if self._look(follower, now):
                    self._follow(follower)
                else:
                    seen.add((follower.index, follower.family))
        # To name an incumbent changes its view, which would end the next wait at once.
        return self.engine.changed() - seen if seen else seen

    def _look(self, follower: Follower, now: int) -> bool:
        """True if there is another address."""
        decider = follower.decider
        view = self.engine.view(follower.index, follower.family)
        follower.view = view
        waits = decider.state is _SETTLING and (
            follower.selection in self._guidance.pending or is_stale(self.engine, follower.family)
        )
        if waits and decider.must_wait(now, view):
            return False
        decider.step(now, view)
        follower.note(self.about(follower.selection))
        if follower.is_new:
            follower.decided_ns = self._clock.boot_ns()
        return follower.is_new or decider.address != follower.named

    def _follow(self, follower: Follower) -> bool:
        """Note another address; True if the engine was told, which makes for another view."""
        address = follower.decider.address
        if follower.is_new:
            self._changed(follower)
        if address == follower.named:
            return False
        self._name(follower, address)
        return True

    def _name(self, follower: Follower, address: str | None) -> None:
        self.engine.set_incumbent(follower.index, follower.family, address)
        follower.named = address

    def _changed(self, follower: Follower) -> None:
        decider, now = follower.decider, follower.decided_ns
        assert decider.address is not None
        cause, came_ns = None, now
        if decider.reconfigured:
            cause = Cause(RELOAD, None, None)
            decider.end_reconfiguration()
        elif follower.published is not None or not is_dump_entry(decider.cause):
            cause, came_ns = cause_of(self.engine, decider.cause, now)
        change = Change(
            selection=follower.selection,
            family=follower.family,
            old=follower.published,
            new=decider.address,
            reason=follower.reason(self.about(follower.selection)),
            cause=cause,
            boot_ns=now,
            took_ns=max(0, now - came_ns),
        )
        follower.published = decider.address
        self._changes.append(change)
        self.generation += 1
        self._time_ns = self._clock.wall_ns()
        self._cause = change.cause
        key = (follower.selection, follower.family)
        self.decision_changes[key] = self.decision_changes.get(key, 0) + 1

    def _publish(self) -> bool:
        """Whether what people see differs from what they last saw, or has to be said again."""
        self._said = None
        if not self._may_publish():
            return False
        self._remember()
        now = self._clock.boot_ns()
        looks = (f.look_around(self.engine, self.about(f.selection), now) for f in self._followers)
        self._remark_at = min(looks, default=NEVER)
        decision = self._said = self.published()
        choices = all_choices(decision)
        seen = (decision.hostname, decision.generation, *choices)
        if seen == self._published:
            return False
        answer = (decision.generation, *map(answer_alone, choices))
        if answer == self._answered and now < self._remarked + REMARKS_NS:
            self._remark_at = min(self._remark_at, self._remarked + REMARKS_NS)
            return False
        self._published, self._answered, self._remarked = seen, answer, now
        return True

    def _may_publish(self) -> bool:
        """Nothing is said before there is something to say."""
        deciders = [follower.decider for follower in self._followers]
        settling = any(decider.state is State.SETTLING for decider in deciders)
        return not settling or any(decider.address is not None for decider in deciders)

    def _remember(self) -> None:
        if self._memory is None:
            return
        last = left_behind(self.generation, self._time_ns, self._followers)
        if last != self._kept:
            self._kept = last
            self._memory.save(last)

    def _audit(self) -> None:
        self.source.refresh()
        self.resync.audit()
        if drifts := self.engine.drifts():
            self._drifts.append(drifts)
        # What was written may be gone as well.
        self._kept = None
        self._published = None
        self._plan_audit()

    def _plan_audit(self) -> None:
        if self.settings.audit:
            self._audit_at = next_audit(self._clock.boot_ns(), self.settings.audit)

    def _choice(self, follower: Follower) -> Choice:
        return follower.choice(
            self.about(follower.selection),
            stale=is_stale(self.engine, follower.family),
            expected=follower.family in self.settings.expected,
        )
