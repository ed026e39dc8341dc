"""The engine in C. Importing this raises ImportError where the extension was not built."""

from __future__ import annotations

import errno
import os

# The C part of socket alone: `socket` doubles the time in which Python starts.
from _socket import inet_ntop, inet_pton
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tracker._engine import ffi, lib
from tracker.errors import ConfigError
from tracker.model import (
    AF_INET,
    AF_INET6,
    AF_OF,
    FAMILY_OF,
    GROUNDS_MAX,
    IPV4,
    IPV6,
    Dirty,
    Grounds,
    Network,
    PolicyTable,
    Reject,
    Row,
    Scope,
    Tier,
    View,
    Vrf,
)

if TYPE_CHECKING:
    from tracker.capture.record import Nexthop

__all__ = ["NativeEngine"]

_ROW = Struct("=6I4B4x16s16s4BI24Q16s")
"""struct at_row; decoded as a whole, since reading field by field costs ten times as much."""
_GLANCE = Struct(f"=I2B2x2B6xi4xQ{2 * '4xI24x16s16x3B?212x'}")
"""struct at_glance, as far as Glance shows it."""
_BEST_AT = ffi.offsetof("struct at_glance", "view", "best")
_INCUMBENT_AT = ffi.offsetof("struct at_glance", "view", "incumbent")
_VIEWED_BEST = ffi.offsetof("struct at_view", "best")
_VIEWED_INCUMBENT = ffi.offsetof("struct at_view", "incumbent")
_APPLIED = Struct(f"={3 * lib.AT_KINDS}Q")
_DIRTY_ROOM = 64
_RECORD_BYTES = 2048
_DRIFT_BYTES = 16 * _RECORD_BYTES

_REJECTS = tuple(Reject)
_TIERS = tuple(Tier)
_SCOPES = tuple(Scope)
_KINDS = {
    1: "addr",
    2: "link",
    3: "route",
    4: "nexthop",
    5: "loss",
    6: "dump",
    7: "rule",
    8: "flush",
}
_OPS = {1: "new", 2: "del"}
_SNAPSHOT_KINDS = (lib.AT_KIND_LINK, lib.AT_KIND_ADDR, lib.AT_KIND_NEXTHOP, lib.AT_KIND_ROUTE)
_new = tuple.__new__
"""Makes a NamedTuple without a detour through Python."""


class _GlancedRow(NamedTuple):
    """What a decider asks of a row at once."""

    family: str
    address: str
    flags: int
    reject: Reject
    own_reject: Reject
    tier: Tier
    carrier: bool
    engine: NativeEngine
    selection: int
    offset: int
    """In the glance."""

    def whole(self) -> Row:
        """All of it."""
        fields = _ROW.unpack_from(ffi.buffer(self.engine.glanced), self.offset)
        criteria = self.engine.criteria[self.selection]
        return _decode(fields, AF_OF[self.family], criteria)


class _Glance(NamedTuple):
    """What a decider asks of a view at once."""

    selection: int
    family: str
    best: _GlancedRow | None
    incumbent: _GlancedRow | None
    first_diff: int
    last_change_ns: int
    engine: NativeEngine

    @property
    def cause(self) -> bytes:
        """The record, as in View."""
        view = self.engine.glanced.view
        return bytes(ffi.buffer(view.cause, view.cause_size))


class NativeEngine:
    """State and ranking of one network namespace, in C (native/engine.h).

    One thread uses it; counters may be read from any.
    """

    name = "native"

    def __init__(self) -> None:
        self.handle = ffi.gc(lib.at_engine_new(), lib.at_engine_free)
        """For sources in C, which feed the engine without Python."""
        if not self.handle:
            raise MemoryError
        self.targets: tuple[Network, ...] = ()
        """Those that were set last."""
        self.criteria: dict[int, int] = {}
        """Number of criteria by selection: how many values a row has."""
        self._dirt = ffi.new("struct at_dirty[]", _DIRTY_ROOM)
        self._view = ffi.new("struct at_view *")
        self._viewed = ffi.buffer(self._view)
        self.glanced = ffi.new("struct at_glance *")
        """Where sources in C say what they have woken up for."""
        self._glanced = ffi.buffer(self.glanced)
        self._incumbents = [""] * (2 * lib.AT_SELECTIONS_MAX)
        """By the bit of their view."""
        self._counters = ffi.new("struct at_counters *")

    # Policy.

    def set_policy(self, selection: int, policy: PolicyTable) -> None:
        """Set or replace a selection and rank it anew."""
        table, _keep = _policy(policy)
        _check(lib.at_engine_set_policy(self.handle, selection, table))
        self.criteria[selection] = len(policy.criteria)

    def set_mode_networks(self, selection: int, networks: tuple[Network, ...]) -> None:
        """Replace the networks of a list, whatever else the policy has; ValueError without a
        selection."""
        array = _networks(networks)
        _check(lib.at_engine_set_mode_networks(self.handle, selection, array, len(networks)))

    def drop_policy(self, selection: int) -> None:
        """Forget a selection."""
        _check(lib.at_engine_drop_policy(self.handle, selection))
        del self.criteria[selection]

    def set_incumbent(self, selection: int, family: str, address: str | None) -> None:
        """Name the present answer, which stays among equals."""
        number = AF_OF[family]
        packed = ffi.NULL if address is None else inet_pton(number, address)
        _check(lib.at_engine_set_incumbent(self.handle, selection, number, packed))
        if address is not None:
            bit = 2 * selection + (number == AF_INET6)
            self._incumbents[bit] = inet_ntop(number, packed)

    def set_v6_silent_down(self, on: bool) -> None:
        """Follow net.ipv6.route.skip_notify_on_dev_down."""
        lib.at_engine_set_v6_silent_down(self.handle, on)

    # Changes.

    def apply(self, records: bytes) -> int:
        """Apply records one after the other; how many. Malformed ones end it and are counted."""
        before = self._applied()
        done: int = lib.at_engine_apply(self.handle, ffi.from_buffer(records), len(records))
        if done == -errno.EINVAL:
            return self._applied() - before
        _check(done)
        return done

    def tick(self, now_ns: int) -> None:
        """Run what is due by `now_ns` (CLOCK_BOOTTIME)."""
        lib.at_engine_tick(self.handle, now_ns)

    def deadline(self) -> int:
        """CLOCK_BOOTTIME in ns of the next tick that is due, NEVER without one."""
        return int(lib.at_engine_deadline(self.handle))

    def lose(self, scopes: tuple[Scope, ...]) -> None:
        """Mark scopes as lost."""
        lib.at_engine_lose(self.handle, sum(1 << scope for scope in set(scopes)))

    # Answers.

    def changed(self) -> set[tuple[int, str]]:
        """(selection, family) of each view that changed since the last call."""
        bits = lib.at_engine_changed(self.handle)
        self.glanced.changed = 0
        if not bits:
            return set()
        found = set()
        while bits:
            bit = bits.bit_length() - 1
            found.add((bit >> 1, IPV6 if bit & 1 else IPV4))
            bits ^= 1 << bit
        return found

    def glance(self) -> _Glance | None:
        """The first view that changed, which stays so; behind a wait only. None = there is none,
        or a scope is dirty."""
        # As little as can be: behind a wake-up each step of Python takes twenty times as long.
        fields = _GLANCE.unpack_from(self._glanced)
        if not fields[0]:
            # The source is one that feeds the engine from Python.
            lib.at_engine_glance(self.handle, self.glanced)
            fields = _GLANCE.unpack_from(self._glanced)
        (
            changed, bit, dirty, has_best, has_incumbent, first_diff, last_change_ns,
            flags, local, reject, own_reject, tier, carrier,
            its_flags, _, its_reject, its_own_reject, its_tier, its_carrier,
        ) = fields  # fmt: skip
        if dirty or not changed:
            return None
        selection = bit >> 1
        family = IPV6 if bit & 1 else IPV4
        best = incumbent = None
        if has_incumbent:
            incumbent = _new(_GlancedRow, (
                family, self._incumbents[bit], its_flags, _REJECTS[its_reject],
                _REJECTS[its_own_reject], _TIERS[its_tier], its_carrier, self, selection,
                _INCUMBENT_AT,
            ))  # fmt: skip
        if has_best:
            address = inet_ntop(AF_INET6, local) if bit & 1 else inet_ntop(AF_INET, local[:4])
            best = _new(_GlancedRow, (
                family, address, flags, _REJECTS[reject], _REJECTS[own_reject], _TIERS[tier],
                carrier, self, selection, _BEST_AT,
            ))  # fmt: skip
        return _new(_Glance, (selection, family, best, incumbent, first_diff, last_change_ns, self))

    def view(self, selection: int, family: str) -> View:
        """What a decision needs."""
        view = self._view
        number = AF_OF[family]
        _check(lib.at_engine_view(self.handle, selection, number, view))
        count = self.criteria[selection]
        best = incumbent = None
        if view.has_best:
            best = _decode(_ROW.unpack_from(self._viewed, _VIEWED_BEST), number, count)
        if view.has_incumbent:
            fields = self._viewed[_VIEWED_INCUMBENT : _VIEWED_INCUMBENT + _ROW.size]
            # Most often it is the best one.
            if best is not None and fields == self._viewed[_VIEWED_BEST : _VIEWED_BEST + _ROW.size]:
                incumbent = best
            else:
                incumbent = _decode(_ROW.unpack(fields), number, count)
        return View(
            best=best,
            incumbent=incumbent,
            default_routes=view.default_routes,
            other_defaults=view.other_defaults,
            bad_defaults=view.bad_defaults,
            default_links=view.default_links,
            rival=bool(view.rival),
            first_diff=view.first_diff,
            fallback_count=view.fallback_count,
            last_change_ns=view.last_change_ns,
            cause=bytes(ffi.buffer(view.cause, view.cause_size)),
        )

    def rows(self, selection: int, family: str) -> list[Row]:
        """Every address, ranked ones first in order, then rejected ones by address."""
        number = AF_OF[family]
        lib.at_engine_counters(self.handle, self._counters)
        room = self._counters.addresses
        rows = ffi.new("struct at_row[]", room)
        count = min(room, lib.at_engine_rows(self.handle, selection, number, rows, room))
        criteria = self.criteria.get(selection, 0)
        raw = ffi.buffer(rows, count * _ROW.size)
        return [_decode(fields, number, criteria) for fields in _ROW.iter_unpack(raw)]

    def dirty(self) -> list[Dirty]:
        """Scopes to be dumped, lost ones first."""
        count = lib.at_engine_dirty(self.handle, self._dirt, _DIRTY_ROOM)
        if not count:
            return []
        dirt = self._dirt
        if count > _DIRTY_ROOM:
            dirt = ffi.new("struct at_dirty[]", count)
            count = lib.at_engine_dirty(self.handle, dirt, count)
        return [
            Dirty(_SCOPES[entry.scope], entry.ifindex, entry.table, bool(entry.lost), entry.rule)
            for entry in dirt[0:count]
        ]

    def tables(self) -> list[int]:
        """Routing tables that some selection names."""
        tables = ffi.new("uint32_t[]", lib.AT_SELECTIONS_MAX)
        count = lib.at_engine_tables(self.handle, tables, lib.AT_SELECTIONS_MAX)
        return list(tables[0:count])

    def vrf(self, name: str) -> Vrf:
        """The VRF of that name, zeros = there is none."""
        table = ffi.new("uint32_t *")
        raw = name.encode("utf-8", "surrogateescape")
        return Vrf(int(lib.at_engine_vrf(self.handle, raw, table)), table[0])

    def vrfs(self) -> int:
        """Grows when a VRF's name leads to another link or table."""
        return int(lib.at_engine_vrfs(self.handle))

    def nexthop(self, number: int) -> Nexthop | None:
        """The nexthop object of this id, None = it is not known."""
        from tracker.capture.record import decode  # noqa: PLC0415 - for few

        out = ffi.new("uint8_t[]", _RECORD_BYTES)
        size = lib.at_engine_nexthop(self.handle, number, out)
        return cast("Nexthop", decode(bytes(ffi.buffer(out, size))).payload) if size else None

    # What is asked of the kernel.

    def set_targets(self, targets: tuple[Network, ...]) -> None:
        """Name the addresses whose way the kernel is asked for; ValueError for more than
        TARGETS_MAX, or one that is not of host length."""
        _check(lib.at_engine_set_targets(self.handle, _networks(targets), len(targets)))
        self.targets = targets

    def set_grounds(self, grounds: Grounds | None) -> None:
        """Say what the kernel's answers rest on; None = nobody knows, or there are more than
        GROUNDS_MAX of a kind."""
        if grounds is None or grounds.size > GROUNDS_MAX:
            lib.at_engine_set_grounds(self.handle, ffi.NULL)
            return
        raw = ffi.new("struct at_grounds *")
        raw.n_links, raw.n_nexthops = len(grounds.links), len(grounds.nexthops)
        raw.n_sources = len(grounds.sources)
        raw.any_nexthop = grounds.any_nexthop
        raw.any_address = [AF_INET in grounds.any_address, AF_INET6 in grounds.any_address]
        raw.links[0 : raw.n_links] = list(grounds.links)
        raw.nexthops[0 : raw.n_nexthops] = list(grounds.nexthops)
        for entry, source in zip(raw.sources, grounds.sources, strict=False):
            entry.family, entry.ifindex = source.family, source.ifindex
            ffi.memmove(entry.address, source.address, len(source.address))
        lib.at_engine_set_grounds(self.handle, raw)

    def lookups(self) -> int:
        """Grows when the kernel may answer otherwise for a target."""
        return int(lib.at_engine_lookups(self.handle))

    def link_name(self, ifindex: int) -> str:
        """Name of a link, "ifN" for one that is not known (any more)."""
        name = ffi.new("char[]", lib.AT_NAME_LEN)
        if lib.at_engine_link_name(self.handle, ifindex, name) < 0:
            return f"if{ifindex}"
        return _name(ffi.string(name))

    def drifts(self) -> bytes:
        """Records of the keys on which audits differed since the last call, the newest 16 at
        most; an entry that was missing from the dump has op DEL."""
        out = ffi.new("uint8_t[]", _DRIFT_BYTES)
        return bytes(ffi.buffer(out, lib.at_engine_drifts(self.handle, out, _DRIFT_BYTES)))

    def snapshot(self) -> bytes:
        """The state as dump entries: links, addresses, nexthops, routes, each by key."""
        parts = []
        for kind in _SNAPSHOT_KINDS:
            size = lib.at_engine_snapshot(self.handle, kind, ffi.NULL, 0)
            out = ffi.new("uint8_t[]", size)
            lib.at_engine_snapshot(self.handle, kind, out, size)
            parts.append(bytes(ffi.buffer(out, size)))
        return b"".join(parts)

    def counters(self) -> dict[str, int]:
        """Flat counters: applied.KIND.OP, ignored, malformed, inferred.RN, drift.SCOPE,
        voided.SCOPE, flushed, links, addresses, routes, nexthops, rebuilds."""
        raw = ffi.new("struct at_counters *")
        lib.at_engine_counters(self.handle, raw)
        counters = {
            f"applied.{kind_name}.{op_name}": raw.applied[kind][op]
            for kind, kind_name in _KINDS.items()
            for op, op_name in _OPS.items()
        }
        counters |= {f"inferred.R{rule}": raw.inferred[rule] for rule in range(1, 11)}
        for scope in _SCOPES:
            name = scope.name.lower()
            counters[f"drift.{name}"] = raw.drift[scope]
            counters[f"voided.{name}"] = raw.voided[scope]
        plain = (
            "ignored",
            "malformed",
            "flushed",
            "links",
            "addresses",
            "routes",
            "nexthops",
            "rebuilds",
        )
        return counters | {name: getattr(raw, name) for name in plain}

    def _applied(self) -> int:
        lib.at_engine_counters(self.handle, self._counters)
        return sum(_APPLIED.unpack(ffi.buffer(self._counters.applied)))


def _decode(fields: tuple[Any, ...], family: int, criteria: int) -> Row:
    """One struct at_row: 0 ifindex, 1 flags, 4 cstamp, 7 prefixlen, 9 proto, 10 local, 11 peer,
    12 reject, 13 own_reject, 14 tier, 15 carrier, 16 rank, 17 values, last the name."""
    local, peer = fields[10], fields[11]
    if family == AF_INET:
        local, peer = local[:4], peer[:4]
    return Row._make(
        (
            FAMILY_OF[family],
            inet_ntop(family, local),
            fields[7],
            inet_ntop(family, peer) if any(peer) else "",
            fields[0],
            _name(fields[-1]),
            fields[1],
            fields[9],
            fields[4],
            _REJECTS[fields[12]],
            _REJECTS[fields[13]],
            _TIERS[fields[14]],
            fields[15] == 1,
            fields[16],
            fields[17 : 17 + criteria],
        )
    )


def _name(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _check(result: int) -> None:
    if result >= 0:
        return
    if result == -errno.ENOMEM:
        raise MemoryError
    raise ValueError(os.strerror(-result))


def _policy(policy: PolicyTable) -> tuple[Any, list[Any]]:
    """The policy as struct at_policy, and what must live as long as it."""
    table = ffi.new("struct at_policy *")
    table.families = sum(1 << (AF_OF[family] == AF_INET6) for family in policy.families)
    table.fallback = policy.fallback
    table.mode = policy.mode
    table.fallback_name = _pattern(policy.fallback_name)
    table.table = policy.table
    table.n_criteria = len(policy.criteria)
    for position, criterion in enumerate(policy.criteria):
        table.criteria[position] = criterion
        table.displacing[position] = criterion in policy.displacing
    exclude_names = [_pattern(name) for name in policy.exclude_names]
    keep_names = [_pattern(name) for name in policy.keep_names]
    # Cut where the parser cuts the kind of a link.
    kinds = [kind.encode()[: lib.AT_NAME_LEN - 1] for kind in policy.exclude_kinds]
    keep = [
        ffi.new(f"char[][{lib.AT_PATTERN_LEN}]", exclude_names),
        ffi.new(f"char[][{lib.AT_PATTERN_LEN}]", keep_names),
        ffi.new(f"char[][{lib.AT_NAME_LEN}]", kinds),
        _networks(policy.exclude),
        _networks(policy.statics),
        _networks(policy.internal),
        ffi.new(f"char[][{lib.AT_PATTERN_LEN}]", list(map(_pattern, policy.mode_names))),
        _networks(policy.mode_networks),
        _networks(policy.hints),
    ]
    table.n_exclude_names, table.n_keep_names, table.n_exclude_kinds = map(len, keep[:3])
    table.n_exclude, table.n_static, table.n_internal = map(len, keep[3:6])
    table.n_mode_names, table.n_mode_networks, table.n_hints = map(len, keep[6:])
    table.exclude_names, table.keep_names, table.exclude_kinds = keep[:3]
    table.exclude, table.statics, table.internal = keep[3:6]
    table.mode_names, table.mode_networks, table.hints = keep[6:]
    return table, keep


def _pattern(pattern: str) -> bytes:
    raw = pattern.encode("utf-8", "surrogateescape")
    if len(raw) >= lib.AT_PATTERN_LEN:
        raise ConfigError(f"pattern {pattern!r}: at most {lib.AT_PATTERN_LEN - 1} bytes")
    return raw


def _networks(networks: tuple[Network, ...]) -> Any:
    array = ffi.new("struct at_network[]", len(networks))
    for entry, network in zip(array, networks, strict=True):
        entry.family = network.family
        entry.prefixlen = network.prefixlen
        ffi.memmove(entry.address, network.address, len(network.address))
    return array
