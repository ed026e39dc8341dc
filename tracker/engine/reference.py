"""The engine in plain Python: the rules of docs/engine.md, readable, and the oracle for the C one.

It judges anew after every record; only the rows of links that nothing changed for are kept.
"""

from __future__ import annotations

# The C part of socket alone: `socket` doubles the time in which Python starts.
from _socket import inet_pton
from typing import NamedTuple

from tracker.capture.record import (
    Addr,
    Kind,
    MalformedRecord,
    Nexthop,
    Op,
    Record,
    iter_records,
)
from tracker.engine import reference_rules as rules
from tracker.engine.base import NEVER
from tracker.engine.reference_apply import Applier, as_record, cause_of, route_of
from tracker.engine.reference_filters import Site
from tracker.engine.reference_lookups import Lookups
from tracker.engine.reference_rank import Default, Judged, Setting, judge, pref_rank
from tracker.engine.reference_state import RTN_UNICAST, Alias, State
from tracker.engine.reference_view import Defaults, Ranking
from tracker.model import (
    AF_OF,
    FAMILIES,
    IPV4,
    IPV6,
    Dirty,
    Grounds,
    Network,
    PolicyTable,
    Row,
    Scope,
    View,
    Vrf,
)

__all__ = ["ReferenceEngine"]

SELECTIONS_MAX = 16
CRITERIA_MAX = 24


class Key(NamedTuple):
    """One view."""

    selection: int
    family: str


class Watch:
    """What is remembered of one view."""

    def __init__(self, now: int) -> None:
        self.last_change_ns = now
        self.cause = b""
        self.ranking: Ranking
        """The present one."""
        self.core: tuple[object, ...] = ()
        self.rows: dict[int, tuple[Judged, ...]] = {}
        """By link, as judged last."""
        self.settings: dict[int, Setting] = {}
        """What they were judged by."""
        self.reported: View | None = None
        """The view at the last changed(), without cause and last_change_ns."""


class ReferenceEngine:
    """State and ranking of one network namespace."""

    name = "reference"

    def __init__(self) -> None:
        self._state = State()
        self._applier = Applier(self._state)
        self._lookups = Lookups(self._state)
        self._malformed = 0
        self._rebuilds = 0
        self._policies: dict[int, PolicyTable] = {}
        self._incumbents: dict[Key, bytes] = {}
        self._watches: dict[Key, Watch] = {}

    # Policy.

    def set_policy(self, selection: int, policy: PolicyTable) -> None:
        """Set or replace a selection and rank it anew.

        Raises ValueError for a selection that is not 0 to 15 and for too many criteria.
        """
        if not 0 <= selection < SELECTIONS_MAX or len(policy.criteria) > CRITERIA_MAX:
            raise ValueError("Invalid argument")
        self._policies[selection] = policy
        for family in FAMILIES:
            self._watches[Key(selection, family)] = Watch(self._state.now)
        self._follow_policies()

    def set_mode_networks(self, selection: int, networks: tuple[Network, ...]) -> None:
        """Replace the networks of a list, whatever else the policy has; ValueError without a
        selection."""
        self._check(selection)
        self._policies[selection] = self._policies[selection]._replace(mode_networks=networks)
        for family in FAMILIES:
            self._judge(Key(selection, family))

    def drop_policy(self, selection: int) -> None:
        """Forget a selection; ValueError if there is none."""
        self._check(selection)
        del self._policies[selection]
        for family in FAMILIES:
            key = Key(selection, family)
            del self._watches[key]
            self._incumbents.pop(key, None)
        self._follow_policies()

    def _follow_policies(self) -> None:
        self._state.set_tables(frozenset(policy.table for policy in self._policies.values()))
        self._judge_all()

    def set_incumbent(self, selection: int, family: str, address: str | None) -> None:
        """Name the present answer, which stays among equals; ValueError without a selection."""
        self._check(selection)
        key = Key(selection, family)
        if address is None:
            self._incumbents.pop(key, None)
        else:
            self._incumbents[key] = inet_pton(AF_OF[family], address)
        watch = self._watches[key]
        before = watch.last_change_ns
        self._judge(key)
        watch.last_change_ns = before

    def set_v6_silent_down(self, on: bool) -> None:
        """Follow net.ipv6.route.skip_notify_on_dev_down."""
        self._state.v6_silent_down = on

    def _check(self, selection: int) -> None:
        if selection not in self._policies:
            raise ValueError("Invalid argument")

    # Changes.

    def apply(self, records: bytes) -> int:
        """Apply records one after the other; how many. A malformed one ends it and is counted."""
        applied = 0
        try:
            for record in iter_records(records):
                self._applier.apply(record)
                self._lookups.applied(record)
                self._judge_all(record)
                applied += 1
        except MalformedRecord:
            self._malformed += 1
        return applied

    def tick(self, now_ns: int) -> None:
        """Run what is due by `now_ns` (CLOCK_BOOTTIME): routes whose advertisement ended."""
        self._state.now = max(self._state.now, now_ns)
        expired = self._state.inferred[10]
        rules.expire(self._state)
        if self._state.inferred[10] != expired:
            self._lookups.expired()
        self._judge_all()

    def deadline(self) -> int:
        """CLOCK_BOOTTIME in ns of the next tick that is due, NEVER without one."""
        ends = [alias.end for aliases in self._state.routes.values() for alias in aliases]
        return min((end for end in ends if end), default=NEVER)

    def lose(self, scopes: tuple[Scope, ...]) -> None:
        """Mark scopes as lost."""
        self._applier.lose(scopes)
        if scopes:
            self._lookups.lost()

    # Answers.

    def changed(self) -> set[tuple[int, str]]:
        """(selection, family) of each view that changed since the last call."""
        found: set[tuple[int, str]] = set()
        for key, watch in self._watches.items():
            view = watch.ranking.view(0, b"")
            if view != watch.reported:
                watch.reported = view
                found.add((key.selection, key.family))
        return found

    def glance(self) -> None:
        """None: nothing is faster than view() here."""
        return

    def view(self, selection: int, family: str) -> View:
        """What a decision needs; ValueError without such a selection."""
        self._check(selection)
        key = Key(selection, family)
        watch = self._watches[key]
        return watch.ranking.view(watch.last_change_ns, watch.cause)

    def rows(self, selection: int, family: str) -> list[Row]:
        """Every address, ranked ones first in order, then rejected ones by address."""
        self._check(selection)
        return self._watches[Key(selection, family)].ranking.rows()

    def dirty(self) -> list[Dirty]:
        """Scopes to be dumped, lost ones first."""
        return self._state.dumps.dirty()

    def tables(self) -> list[int]:
        """Routing tables that some selection names."""
        return sorted(self._state.tables)

    def vrf(self, name: str) -> Vrf:
        """The VRF of that name, zeros = there is none."""
        vrfs = [link for link in self._state.links.values() if link.kind == "vrf"]
        found = [Vrf(link.ifindex, link.vrf_table) for link in vrfs if link.name == name]
        return min(found, default=Vrf(0, 0))

    def vrfs(self) -> int:
        """Grows when a VRF's name leads to another link or table."""
        return self._lookups.vrfs

    def nexthop(self, number: int) -> Nexthop | None:
        """The nexthop object of this id, None = it is not known."""
        return self._state.nexthops.get(number)

    # What is asked of the kernel.

    @property
    def targets(self) -> tuple[Network, ...]:
        """Those that were set last."""
        return self._lookups.targets

    def set_targets(self, targets: tuple[Network, ...]) -> None:
        """Name the addresses whose way the kernel is asked for; ValueError for more than
        TARGETS_MAX, or one that is not of host length."""
        self._lookups.set_targets(targets)

    def set_grounds(self, grounds: Grounds | None) -> None:
        """Say what the kernel's answers rest on; None = nobody knows, or there are more than
        GROUNDS_MAX of a kind."""
        self._lookups.set_grounds(grounds)

    def lookups(self) -> int:
        """Grows when the kernel may answer otherwise for a target."""
        return self._lookups.generation

    def link_name(self, ifindex: int) -> str:
        """Name of a link, "ifN" for one that is not known (any more)."""
        link = self._state.links.get(ifindex)
        return link.name if link is not None else f"if{ifindex}"

    def drifts(self) -> bytes:
        """Records of the keys on which audits differed since the last call, the newest 16 at
        most; an entry that was missing from the dump has op DEL."""
        records = b"".join(self._state.dumps.drifts)
        self._state.dumps.drifts.clear()
        return records

    def snapshot(self) -> bytes:
        """The state as dump entries: links, addresses, nexthops, routes, each by key."""
        state = self._state
        plain = (Scope.LINK, Scope.ADDR4, Scope.ADDR6, Scope.NEXTHOP)
        values = [value for scope in plain for _, value in sorted(state.values(scope).items())]
        routes = [
            route_of(key, alias, state.now)
            for key, aliases in sorted(state.routes.items())
            for alias in aliases
        ]
        return b"".join(as_record(payload, state) for payload in [*values, *routes])

    def counters(self) -> dict[str, int]:
        """Flat counters: applied.KIND.OP, ignored, malformed, inferred.RN, drift.SCOPE,
        voided.SCOPE, flushed, links, addresses, routes, nexthops, rebuilds."""
        state, applied = self._state, self._applier.applied
        counters = {
            f"applied.{kind.name.lower()}.{op.name.lower()}": applied[kind, op]
            for kind in Kind
            for op in Op
        }
        counters |= {f"inferred.R{rule}": state.inferred[rule] for rule in range(1, 11)}
        for scope in Scope:
            counters[f"drift.{scope.name.lower()}"] = state.dumps.drift[scope]
            counters[f"voided.{scope.name.lower()}"] = state.dumps.voided[scope]
        return counters | {
            "ignored": self._applier.ignored,
            "malformed": self._malformed,
            "flushed": self._applier.flushed,
            "links": len(state.links),
            "addresses": sum(map(len, state.addresses.values())),
            "routes": sum(map(len, state.routes.values())),
            "nexthops": len(state.nexthops),
            "rebuilds": self._rebuilds,
        }

    # Ranking.

    def _judge_all(self, record: Record | None = None) -> None:
        """Rank every view; the record, if there is one, is the cause of what changes."""
        for key, watch in self._watches.items():
            core = watch.core
            self._judge(key)
            if record is not None and watch.core != core:
                watch.cause = cause_of(record)

    def _judge(self, key: Key) -> None:
        watch, policy = self._watches[key], self._policies[key.selection]
        incumbent = self._incumbents.get(key)
        defaults = self._defaults(policy, key.family)
        rows: dict[int, tuple[Judged, ...]] = {}
        settings: dict[int, Setting] = {}
        for index, addresses in self._addresses_by_link(key.family).items():
            site = self._site(index)
            setting = Setting(policy, incumbent, index, site, tuple(addresses), defaults.own)
            same = watch.settings.get(index) == setting
            rows[index] = watch.rows[index] if same else judge(setting)
            settings[index] = setting
        if rows != watch.rows:
            watch.last_change_ns = self._state.now
        watch.rows, watch.settings = rows, settings
        judged = [one for ones in rows.values() for one in ones]
        watch.ranking = Ranking(policy, incumbent, defaults, judged)
        watch.core = watch.ranking.core
        self._rebuilds += 1

    def _addresses_by_link(self, family: str) -> dict[int, list[Addr]]:
        found: dict[int, list[Addr]] = {}
        for key, addr in self._state.addresses[AF_OF[family]].items():
            found.setdefault(key.ifindex, []).append(addr)
        return found

    def _site(self, index: int) -> Site:
        link = self._state.links.get(index)
        return Site(link, self._state.links.get(link.master) if link is not None else None)

    def _defaults(self, policy: PolicyTable, family: str) -> Defaults:
        own = self._aliases(policy.table, family)
        other = self._aliases(policy.table, IPV6 if family == IPV4 else IPV4)
        return Defaults(
            tuple(
                self._default(AF_OF[family], metric, alias)
                for metric, alias in own
                if alias.type == RTN_UNICAST
            ),
            sum(alias.type == RTN_UNICAST for _, alias in other),
            sum(alias.type != RTN_UNICAST for _, alias in own),
        )

    def _aliases(self, table: int, family: str) -> list[tuple[int, Alias]]:
        """Default routes of a table, each with its metric."""
        return [
            (key.metric, alias)
            for key, aliases in self._state.routes.items()
            if key.table == table and key.family == AF_OF[family]
            for alias in aliases
        ]

    def _default(self, family: int, metric: int, alias: Alias) -> Default:
        legs = self._state.legs(alias)
        reachable = any(self._state.live(leg.oif) for leg in legs)
        return Default(metric, pref_rank(family, alias.pref), alias.prefsrc, legs, reachable)
