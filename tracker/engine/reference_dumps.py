"""Dirt, dumps and who wins over whom (docs/engine.md sections 2 and 4)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from typing import Any, NamedTuple

from tracker.capture.record import DUMP_AUDIT, Dump
from tracker.model import NANOSECONDS, Dirty, Scope

LOOK_BACK = 20 * NANOSECONDS // 1000
"""How long before its begin a dump can still show what a message said was deleted: the kernel
broadcasts the deletion of a route before it unlinks it (fib_table_delete)."""

DRIFTS_KEPT = 16

ROUTE_SCOPES = (Scope.ROUTE4, Scope.ROUTE6)
ADDR_SCOPES = (Scope.ADDR4, Scope.ADDR6)


class Place(NamedTuple):
    """What one dump covers within a scope."""

    ifindex: int
    """0 = all."""
    table: int
    """0 = all that are wanted."""

    def covers(self, other: Place) -> bool:
        """Whether a dump of this shows all of the other."""
        return self.ifindex in (0, other.ifindex) and self.table in (0, other.table)

    def overlaps(self, other: Place) -> bool:
        """Whether something may lie in both."""
        return (0 in (self.ifindex, other.ifindex) or self.ifindex == other.ifindex) and (
            0 in (self.table, other.table) or self.table == other.table
        )


class Reason(NamedTuple):
    """Why a scope is dirty."""

    lost: bool
    """Messages were lost or a dump failed: answers are stale."""
    rule: int
    """n of Rn, 0 = none of them."""

    def joined(self, other: Reason) -> Reason:
        """Both: a loss wins, else the first rule stays."""
        lost = self.lost or other.lost
        return Reason(lost, 0 if lost else self.rule)


class OpenDump:
    """A dump between its begin and its end."""

    def __init__(self, scope: Scope, place: Place, begun: int, *, audit: bool) -> None:
        self.scope = scope
        self.place = place
        self.begun = begun
        self.audit = audit
        self.voided = False
        self.doubtful = False
        """An event won over what it showed of a list of aliases."""
        self.taken: dict[Place, Reason] = {}
        """Dirt that the begin took off."""
        self.shown: Counter[Hashable] = Counter()
        """Entries by key."""
        self.drifted: set[Hashable] = set()


class Dumps:
    """The open dumps, the dirt, and when each key was last touched."""

    def __init__(self) -> None:
        self.open: dict[Scope, OpenDump] = {}
        self.dirt: dict[Scope, dict[Place, Reason]] = {scope: {} for scope in Scope}
        self.drift: Counter[Scope] = Counter()
        self.voided: Counter[Scope] = Counter()
        self.drifts: deque[bytes] = deque(maxlen=DRIFTS_KEPT)
        self._changed: dict[Scope, dict[Any, int]] = {scope: {} for scope in Scope}
        self._deleted: dict[Scope, dict[Any, int]] = {scope: {} for scope in Scope}
        self._empty: set[Scope] = set()
        """Scopes whose last dump showed nothing, which was not believed."""

    # What changed, and when.

    def touch(self, scope: Scope, key: Hashable, now: int, *, deleted: bool = False) -> None:
        """An event or a rule changed a key; `deleted`: an event deleted it, known or not."""
        self._changed[scope][key] = now
        if deleted:
            self._deleted[scope][key] = now

    def event_wins(self, dump: OpenDump, key: Hashable) -> bool:
        """Whether an entry for this key is older than what is known."""
        changed = self._changed[dump.scope].get(key)
        deleted = self._deleted[dump.scope].get(key)
        return self.touched_since(dump, changed) or (
            deleted is not None and deleted > dump.begun - LOOK_BACK
        )

    def untouched(self, dump: OpenDump, key: Hashable) -> bool:
        """Whether no event or rule changed a key since the dump's begin."""
        return not self.touched_since(dump, self._changed[dump.scope].get(key))

    @staticmethod
    def touched_since(dump: OpenDump, when: int | None) -> bool:
        """Whether `when` is at or after the dump's begin."""
        return when is not None and when >= dump.begun

    # Dirt.

    def mark(
        self,
        scope: Scope,
        ifindex: int = 0,
        table: int = 0,
        *,
        lost: bool = False,
        rule: int = 0,
        void: bool = True,
    ) -> None:
        """Make a scope dirty; an open dump of the same cannot be believed any more."""
        place = Place(ifindex, table)
        self._add(scope, place, Reason(lost, rule))
        if void and scope in self.open and self.open[scope].place.overlaps(place):
            self.open[scope].voided = True

    def _add(self, scope: Scope, place: Place, reason: Reason) -> None:
        before = self.dirt[scope].get(place)
        self.dirt[scope][place] = reason if before is None else before.joined(reason)

    def dirty(self) -> list[Dirty]:
        """Scopes to be dumped, lost ones first."""
        entries = [
            Dirty(scope, place.ifindex, place.table, reason.lost, reason.rule)
            for scope, places in self.dirt.items()
            for place, reason in places.items()
        ]
        return sorted(entries, key=lambda dirty: (not dirty.lost, *dirty[:3]))

    def forget_table(self, table: int) -> None:
        """Nobody names this routing table any more."""
        for scope in ROUTE_SCOPES:
            self.dirt[scope].pop(Place(0, table), None)
            marks: list[dict[Any, int]] = [self._changed[scope], self._deleted[scope]]
            if scope in self.open:
                marks.append(self.open[scope].shown)
                self.open[scope].taken.pop(Place(0, table), None)
                self.open[scope].drifted = {
                    key
                    for key in self.open[scope].drifted
                    if key.table != table  # type: ignore[attr-defined]
                }
            for mark in marks:
                for key in [key for key in mark if key.table == table]:
                    del mark[key]

    # Dumps.

    def begin(self, mark: Dump, now: int) -> None:
        """Open a dump: its scope's dirt is taken off, as far as the dump covers it."""
        scope, place = mark.scope, place_of(mark)
        self._give_back(scope)
        dump = OpenDump(scope, place, now, audit=bool(mark.flags & DUMP_AUDIT))
        for other in list(self.dirt[scope]):
            if place.covers(other):
                dump.taken[other] = self.dirt[scope].pop(other)
        self.open[scope] = dump
        self._forget(scope, now)

    def _give_back(self, scope: Scope) -> None:
        dump = self.open.pop(scope, None)
        for place, reason in dump.taken.items() if dump else ():
            self._add(scope, place, reason)

    def _forget(self, scope: Scope, now: int) -> None:
        """Drop marks that cannot matter to a dump that begins now or later."""
        changed, deleted = self._changed[scope], self._deleted[scope]
        self._changed[scope] = {key: at for key, at in changed.items() if at >= now}
        self._deleted[scope] = {key: at for key, at in deleted.items() if at > now - LOOK_BACK}

    def for_entry(self, scope: Scope, ifindex: int = 0, table: int = 0) -> OpenDump | None:
        """The open dump that an entry belongs to."""
        dump = self.open.get(scope)
        return dump if dump and dump.place.covers(Place(ifindex, table)) else None

    def differs(self, dump: OpenDump, key: Hashable, record: bytes) -> None:
        """An entry (or the lack of it) differs from what was known; counted by audits."""
        if dump.audit and key not in dump.drifted:
            dump.drifted.add(key)
            self.drift[dump.scope] += 1
            self.drifts.append(record)

    def fail(self, mark: Dump) -> None:
        """A dump failed: what is known stays, but is stale."""
        dump = self.open.pop(mark.scope, None)
        place = dump.place if dump else place_of(mark)
        self.mark(mark.scope, place.ifindex, place.table, lost=True)

    def end(self, scope: Scope, *, known: bool, believed: bool = True) -> OpenDump | None:
        """Close a dump. Returns it if what it did not show is to be swept.

        `known`: the state has entries in the scope. Not `believed`: it counts as failed.
        """
        dump = self.open[scope]
        if dump.voided:
            self._give_back(scope)
            self.voided[scope] += 1
            return None
        del self.open[scope]
        if not believed or self._is_suspicious(dump, known=known):
            self.mark(scope, dump.place.ifindex, dump.place.table, lost=True)
            return None
        return dump

    def _is_suspicious(self, dump: OpenDump, *, known: bool) -> bool:
        """A dump that shows nothing where something must be; an address dump is believed when
        it says so twice, a link dump never: there is always a loopback device."""
        if dump.shown.total() == 0 and dump.scope is Scope.LINK:
            return True
        if dump.scope not in ADDR_SCOPES or dump.place.ifindex:
            return False
        if dump.shown.total() == 0 and known and dump.scope not in self._empty:
            self._empty.add(dump.scope)
            return True
        self._empty.discard(dump.scope)
        return False


def place_of(mark: Dump) -> Place:
    """What a mark covers: a link counts for addresses only, a table for routes only."""
    ifindex = mark.ifindex if mark.scope in ADDR_SCOPES else 0
    return Place(ifindex, mark.table if mark.scope in ROUTE_SCOPES else 0)
