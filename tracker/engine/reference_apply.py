"""One record after the other into the state (docs/engine.md sections 1, 2 and 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeAlias

from tracker.capture.record import (
    DUMP_UNPROVEN,
    F_DUMP,
    F_TRUNCATED,
    LEGS_MAX,
    Addr,
    Dump,
    Flush,
    Header,
    Kind,
    Link,
    Loss,
    Nexthop,
    Op,
    Phase,
    Record,
    Route,
    Rule,
    encode,
)
from tracker.engine import reference_routes as routes
from tracker.engine import reference_rules as rules
from tracker.engine.reference_dumps import OpenDump
from tracker.engine.reference_state import (
    ADDR_SCOPE,
    ROUTE_SCOPE,
    Alias,
    RouteKey,
    State,
    addr_key,
    alias_of,
    route_key,
)
from tracker.model import AF_INET, NANOSECONDS, Scope

IFA_F_TENTATIVE = 0x40

LATE_FLAGS = 0x40 | 0x10000 | 0x20000
"""IFF_RUNNING, IFF_LOWER_UP, IFF_DORMANT: dumps show them before they are announced (linkwatch)."""
LATE_NS = 5 * NANOSECONDS
"""An announcement that has not come by then does not come."""

Known: TypeAlias = Addr | Link | Nexthop
"""Kinds with one value per key; a route key has a list."""


class Applier:
    """Changes a state as records say, and counts them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.applied: Counter[tuple[Kind, Op]] = Counter()
        self.ignored = 0
        self.flushed = 0
        self._name_claimed = False
        """Two links had one name since the last dump of links ended."""
        self._ahead: dict[int, int] = {}
        """When an audit saw late flags of a link that no event has told yet."""

    def apply(self, record: Record) -> None:
        """Apply one record."""
        self.state.now = max(self.state.now, record.header.boot_ns)
        self.applied[record.kind, record.header.op] += 1
        payload = record.payload
        if isinstance(payload, Loss):
            self.lose(scope for scope in Scope if payload.scopes & 1 << scope)
        elif isinstance(payload, Dump):
            self._dump_mark(payload)
        elif isinstance(payload, Rule):
            pass  # no selection depends on rules
        elif isinstance(payload, Flush):
            self._flush(payload)
        elif isinstance(payload, Route):
            self._route(record, payload)
        else:
            self._value(record, payload)

    def lose(self, scopes: Iterable[Scope]) -> None:
        """Messages about these scopes were lost."""
        for scope in scopes:
            self.state.dumps.mark(scope, lost=True)

    def _flush(self, flush: Flush) -> None:
        """The trace tier saw the kernel remove a route; it says nothing of the others (R11)."""
        if flush.family == AF_INET and flush.dst_len == 0 and flush.table in self.state.tables:
            self.flushed += 1
            self.state.dumps.mark(Scope.ROUTE4, table=flush.table, rule=11)

    # Links, addresses and nexthops: one value per key.

    def _value(self, record: Record, value: Known) -> None:
        header = record.header
        scope, key = _identity(value)
        ifindex = value.ifindex if isinstance(value, Addr) else 0
        dump = self.state.dumps.for_entry(scope, ifindex) if _is_entry(header) else None
        if dump is not None:
            self._value_entry(dump, key, value, record)
            return
        self.state.dumps.touch(scope, key, self.state.now, deleted=header.op is Op.DEL)
        if isinstance(value, Link):
            self._ahead.pop(value.ifindex, None)
        if header.op is Op.DEL:
            self._value_deleted(scope, key)
        elif isinstance(value, Link):
            self._link_event(value)
        else:
            self.state.values(scope)[key] = value
        if header.flags & F_TRUNCATED and isinstance(value, Nexthop):
            self.state.dumps.mark(scope, rule=9)

    def _link_event(self, link: Link) -> None:
        old = self.state.links.get(link.ifindex)
        self.state.links[link.ifindex] = link
        if old is None or old.name != link.name:
            self._check_name(link)
        rules.link_changed(self.state, old, link)

    def _check_name(self, link: Link) -> None:
        """A message with an old name can come after a rename, so one of two links is wrong."""
        others = (other for other in self.state.links.values() if other.ifindex != link.ifindex)
        if link.name and not self._name_claimed and link.name in [other.name for other in others]:
            self._name_claimed = True
            self.state.dumps.mark(Scope.LINK, void=False)

    def _value_deleted(self, scope: Scope, key: Hashable) -> None:
        old = self.state.values(scope).pop(key, None)
        if old is None:
            self.ignored += 1  # R7
        elif isinstance(old, Link):
            rules.link_deleted(self.state, old)
        elif isinstance(old, Nexthop):
            rules.nexthop_deleted(self.state, old.id)
        else:
            rules.address_gone(self.state, addr_key(old))

    def _value_entry(self, dump: OpenDump, key: Hashable, value: Known, record: Record) -> None:
        dump.shown[key] += 1
        if self.state.dumps.event_wins(dump, key):
            self.ignored += 1
            return
        values = self.state.values(dump.scope)
        old = values.get(key)
        if isinstance(value, Link):
            value = self._as_announced(dump, old, value)
        if _differs(old, value):
            self.state.dumps.differs(dump, key, encode(record))
        values[key] = value
        if isinstance(value, Link):
            rules.link_changed(self.state, old, value)

    def _as_announced(self, dump: OpenDump, old: Link | None, link: Link) -> Link:
        """Carrier that an audit finds is no drift until the announcement is overdue."""
        since = self._ahead.pop(link.ifindex, self.state.now)
        if old is None or not dump.audit:
            return link
        told = link._replace(flags=link.flags & ~LATE_FLAGS | old.flags & LATE_FLAGS)
        overdue = self.state.now - since >= LATE_NS
        if told == link or _differs(old, told) or overdue:
            return link
        self._ahead[link.ifindex] = since
        return told

    # Routes: a list of aliases per key.

    def _route(self, record: Record, route: Route) -> None:
        state, header = self.state, record.header
        if not state.keeps(route):
            self.ignored += 1
            return
        scope, key, alias = ROUTE_SCOPE[route.family], route_key(route), alias_of(route, state.now)
        dump = state.dumps.for_entry(scope, 0, key.table) if _is_entry(header) else None
        if dump is not None:
            self._route_entry(dump, key, alias, record)
            return
        state.dumps.touch(scope, key, state.now, deleted=header.op is Op.DEL)
        aliases = state.routes.get(key, ())
        if header.op is Op.DEL:
            changed = routes.delete(route.family, aliases, alias)
            self.ignored += changed == aliases
            doubt = routes.leaves_doubt(route.family, aliases, changed, None)
        else:
            changed, replaced = routes.insert(route.family, aliases, alias, header.nl_flags)
            state.inferred[9] += replaced
            doubt = bool(replaced) or routes.leaves_doubt(route.family, aliases, changed, alias)
            self._check_nexthop(alias)
        state.set_aliases(key, changed)
        if doubt or header.flags & F_TRUNCATED:
            state.dumps.mark(scope, table=key.table, rule=9)

    def _check_nexthop(self, alias: Alias) -> None:
        """A route on a nexthop object that nobody described leads nowhere that we know."""
        if alias.nh_id and alias.nh_id not in self.state.nexthops and not alias.legs:
            self.state.dumps.mark(Scope.NEXTHOP, rule=3)

    def _route_entry(self, dump: OpenDump, key: RouteKey, alias: Alias, record: Record) -> None:
        state = self.state
        position = dump.shown[key]
        dump.shown[key] += 1
        aliases = state.routes.get(key, ())
        old = aliases[position] if position < len(aliases) else None
        differs = old is None or state.as_announced(old) != state.as_announced(alias)
        if state.dumps.event_wins(dump, key):
            self.ignored += 1
            dump.doubtful |= differs
            return
        if differs:
            state.dumps.differs(dump, key, encode(record))
        state.set_aliases(key, (*aliases[:position], alias, *aliases[position + 1 :]))
        self._check_nexthop(alias)

    # Dumps.

    def _dump_mark(self, mark: Dump) -> None:
        dumps = self.state.dumps
        if mark.phase is Phase.BEGIN:
            dumps.begin(mark, self.state.now)
        elif mark.phase is Phase.FAIL:
            dumps.fail(mark)
        else:
            if mark.scope is Scope.LINK:
                self._name_claimed = False
            if mark.scope in dumps.open:
                self._end(mark)
            else:
                self.ignored += 1

    def _end(self, mark: Dump) -> None:
        scope = mark.scope
        of_routes = scope in ROUTE_SCOPE.values()
        known = bool(of_routes or self.state.values(scope))
        unproven = of_routes and bool(mark.flags & DUMP_UNPROVEN)
        large = unproven and self._lacks_large(self.state.dumps.open[scope])
        dump = self.state.dumps.end(scope, known=known, believed=not large)
        if dump is None:
            return
        if of_routes:
            self._sweep_routes(dump)
        else:
            self._sweep_values(dump)

    def _sweep_values(self, dump: OpenDump) -> None:
        values = self.state.values(dump.scope)
        before = set(values)
        for key, value in sorted(values.items()):
            ifindex = value.ifindex if isinstance(value, Addr) else 0
            covered = dump.place.ifindex in (0, ifindex)
            if covered and key not in dump.shown and self.state.dumps.untouched(dump, key):
                self.state.dumps.differs(dump, key, as_record(value, self.state, Op.DEL))
                del values[key]
        if dump.scope is Scope.NEXTHOP:
            rules.nexthops_swept(self.state, before - values.keys())

    def _lacks_large(self, dump: OpenDump) -> bool:
        """Whether it did not show a route that may be too large for any answer: the kernel ends a
        dump there, without an error. How large it is nobody knows who has 64 of its legs.
        """
        return any(
            len(alias.legs) == LEGS_MAX and not alias.nh_id
            for key, aliases in self.state.routes.items()
            if self._covers(dump, key) and self.state.dumps.untouched(dump, key)
            for alias in aliases[dump.shown[key] :]
        )

    @staticmethod
    def _covers(dump: OpenDump, key: RouteKey) -> bool:
        return ROUTE_SCOPE[key.family] is dump.scope and dump.place.table in (0, key.table)

    def _sweep_routes(self, dump: OpenDump) -> None:
        state = self.state
        for key, aliases in sorted(state.routes.items()):
            shown = dump.shown[key]
            if not self._covers(dump, key) or shown >= len(aliases):
                continue
            if state.dumps.untouched(dump, key):
                gone = route_of(key, aliases[shown], state.now)
                state.dumps.differs(dump, key, as_record(gone, state, Op.DEL))
                state.set_aliases(key, aliases[:shown])
            else:
                dump.doubtful = True
        if dump.doubtful:
            state.dumps.mark(dump.scope, table=dump.place.table, rule=9)


def _is_entry(header: Header) -> bool:
    return bool(header.flags & F_DUMP) and header.op is Op.NEW


def _identity(value: Known) -> tuple[Scope, Hashable]:
    if isinstance(value, Link):
        return Scope.LINK, value.ifindex
    if isinstance(value, Nexthop):
        return Scope.NEXTHOP, value.id
    return ADDR_SCOPE[value.family], addr_key(value)


def _differs(old: Known | None, new: Known) -> bool:
    """What an audit calls a difference: what messages would have told."""
    if old is None:
        # A manually added IPv6 address shows in a dump before its first message.
        return not (isinstance(new, Addr) and new.flags & IFA_F_TENTATIVE)
    return _announced(old) != _announced(new)


def _announced(value: Known) -> Known:
    if isinstance(value, Link):
        return value._replace(lower=0, mtu=0, operstate=0)
    if isinstance(value, Nexthop):
        return value._replace(flags=0)
    return value._replace(valid=0, preferred=0, cstamp=0)


def route_of(key: RouteKey, alias: Alias, now: int) -> Route:
    """A stored alias as the payload of a record."""
    remaining = max(1, -((now - alias.end) // NANOSECONDS)) if alias.end else 0
    return Route(
        key.family,
        key.table,
        key.metric,
        tos=key.tos,
        proto=alias.proto,
        type=alias.type,
        scope=alias.scope,
        pref=alias.pref,
        prefsrc=alias.prefsrc,
        nh_id=alias.nh_id,
        expires=remaining,
        legs=alias.legs,
    )


def cause_of(record: Record) -> bytes:
    """A record as a view keeps it: one leg at most, no members."""
    payload = record.payload
    if isinstance(payload, Route):
        payload = payload._replace(legs=payload.legs[:1])
    elif isinstance(payload, Nexthop):
        payload = payload._replace(members=())
    return encode(record._replace(payload=payload))


def as_record(payload: Known | Route, state: State, op: Op = Op.NEW) -> bytes:
    """Something stored, as the entry of a dump would show it."""
    return encode(Record(Header(op, boot_ns=state.now, flags=F_DUMP), payload))
