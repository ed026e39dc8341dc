"""Removals that the kernel does not announce, R1 to R10 (docs/engine.md section 3)."""

from __future__ import annotations

from collections.abc import Callable

from tracker.capture.record import Link
from tracker.engine.reference_state import (
    ADDR_SCOPE,
    IFF_UP,
    ROUTE_SCOPE,
    AddrKey,
    Alias,
    RouteKey,
    State,
    is_live,
)
from tracker.model import AF_INET, AF_INET6, Scope


def link_changed(state: State, old: Link | None, new: Link) -> None:
    """R5, then R1 and R3 or R6, for the edges between two values of a link."""
    index = new.ifindex
    if old is not None and old.master != new.master and _vrf_concerned(state, old, new):
        _flush_ipv4(state, index, rule=5)
        _doubt(state, AF_INET6, _has_leg_on(state, index), rule=5)
        for scope in ADDR_SCOPE.values():
            state.dumps.mark(scope, index, rule=5)
    if not new.flags & IFF_UP and (old is None or old.flags & IFF_UP):
        _link_down(state, index)
    went_down = old is not None and old.flags & IFF_UP and not new.flags & IFF_UP
    if went_down or (is_live(old) and not is_live(new)):
        _lose_nexthops_of(state, index)
    elif not is_live(new):
        _doubt_nexthops_of(state, index, rule=3)
    if is_live(new) and not is_live(old):
        _revive_link(state, index)


def link_deleted(state: State, old: Link) -> None:
    """R1, R3, and R4 for the addresses that go with the link."""
    _link_down(state, old.ifindex)
    if old.flags & IFF_UP:
        _lose_nexthops_of(state, old.ifindex)
    for family, scope in ADDR_SCOPE.items():
        for key in state.addresses_of(old.ifindex, family):
            del state.addresses[family][key]
            state.dumps.touch(scope, key, state.now, deleted=True)
            _forget_source(state, key)


def _vrf_concerned(state: State, old: Link, new: Link) -> bool:
    return state.is_vrf(old.master) or state.is_vrf(new.master)


def _link_down(state: State, index: int) -> None:
    """R1: fib_disable_ip flushes IPv4 routes silently. IPv6 announces its deletions, except a
    multipath route that loses a leg; R8: or not at all."""
    _flush_ipv4(state, index, rule=1)
    if state.v6_silent_down:
        _remove(state, AF_INET6, _has_leg_on(state, index), _all_legs_on(state, index), rule=8)
    else:
        _doubt(state, AF_INET6, _has_leg_on(state, index), rule=1)


def _flush_ipv4(state: State, index: int, *, rule: int) -> None:
    """IPv4 is taken from a link: routes with all legs on it go, others keep a dead leg."""
    _remove(state, AF_INET, _has_leg_on(state, index), _all_legs_on(state, index), rule)


def address_gone(state: State, key: AddrKey) -> None:
    """R2 and R4: an address was deleted by an event."""
    if key.family == AF_INET and not state.addresses_of(key.ifindex, AF_INET):
        _flush_ipv4(state, key.ifindex, rule=2)
    _forget_source(state, key)


def _forget_source(state: State, gone: AddrKey) -> None:
    """R4: IPv4 routes with the address as prefsrc go (fib_sync_down_addr); IPv6 ones lose it
    (rt6_remove_prefsrc)."""
    if any(key.local == gone.local for key in state.addresses[gone.family]):
        return

    def names(alias: Alias) -> bool:
        return alias.prefsrc == gone.local

    if gone.family == AF_INET:
        _remove(state, AF_INET, names, names, rule=4)
        return
    for key, aliases in _of_family(state, AF_INET6):
        if any(names(alias) for alias in aliases):
            cleared = (a._replace(prefsrc=b"") if names(a) else a for a in aliases)
            _change(state, key, tuple(cleared), rule=4)


def nexthop_deleted(state: State, number: int) -> None:
    """R3: the kernel deletes the IPv4 routes on a nexthop object silently."""
    _nexthops_gone(state, {number})


def _lose_nexthops_of(state: State, index: int) -> None:
    """R3: nexthop_flush_dev deletes the objects on a dead link silently."""
    gone = {number for number, nexthop in state.nexthops.items() if nexthop.oif == index}
    if not gone:
        return
    for number in gone:
        del state.nexthops[number]
        state.dumps.touch(Scope.NEXTHOP, number, state.now)
    state.inferred[3] += len(gone)
    state.dumps.mark(Scope.NEXTHOP, rule=3)
    _nexthops_gone(state, gone)


def _nexthops_gone(state: State, gone: set[int]) -> None:
    nexthops_swept(state, gone | _leave_groups(state, gone))


def nexthops_swept(state: State, gone: set[int]) -> None:
    """R3, of the routes on objects that are not there any more."""

    def uses(alias: Alias) -> bool:
        return alias.nh_id in gone

    _remove(state, AF_INET, uses, uses, rule=3)
    _doubt(state, AF_INET6, uses, rule=3)


def _leave_groups(state: State, gone: set[int]) -> set[int]:
    """Take members out of their groups; the groups that went with their last one."""
    emptied = set()
    for number, group in sorted(state.nexthops.items()):
        left = tuple(member for member in group.members if member.id not in gone)
        if left == group.members:
            continue
        state.dumps.touch(Scope.NEXTHOP, number, state.now)
        if left:
            state.nexthops[number] = group._replace(members=left)
        else:
            del state.nexthops[number]
            state.inferred[3] += 1
            emptied.add(number)
    return emptied


def _revive_link(state: State, index: int) -> None:
    """R6: routes and nexthops that come back with a link are not announced."""
    for family in (AF_INET, AF_INET6):
        _doubt(state, family, _has_leg_on(state, index), rule=6)
    _doubt_nexthops_of(state, index, rule=6)


def _doubt_nexthops_of(state: State, index: int, *, rule: int) -> None:
    """What happens to objects on a link is not announced; on one without carrier any change of
    the link may end them (nh_netdev_event)."""
    if any(nexthop.oif == index for nexthop in state.nexthops.values()):
        state.dumps.mark(Scope.NEXTHOP, rule=rule)


def expire(state: State) -> None:
    """R10: the kernel announces the end of a router's default route up to 30 s late."""

    def over(alias: Alias) -> bool:
        return 0 < alias.end <= state.now

    _remove(state, AF_INET6, over, over, rule=10)


Test = Callable[[Alias], bool]


def _has_leg_on(state: State, index: int) -> Test:
    return lambda alias: any(leg.oif == index for leg in state.legs(alias))


def _all_legs_on(state: State, index: int) -> Test:
    return lambda alias: bool(legs := state.legs(alias)) and all(leg.oif == index for leg in legs)


def _of_family(state: State, family: int) -> list[tuple[RouteKey, tuple[Alias, ...]]]:
    return [(key, aliases) for key, aliases in state.routes.items() if key.family == family]


def _remove(state: State, family: int, concerned: Test, gone: Test, rule: int) -> None:
    """Remove the aliases that are `gone`; tables with one that is `concerned` become dirty."""
    for key, aliases in _of_family(state, family):
        if any(concerned(alias) for alias in aliases):
            left = tuple(alias for alias in aliases if not gone(alias))
            state.inferred[rule] += len(aliases) - len(left)
            _change(state, key, left, rule)


def _doubt(state: State, family: int, concerned: Test, rule: int) -> None:
    """Tables with an alias that is `concerned` become dirty; nothing is removed."""
    for key, aliases in _of_family(state, family):
        if any(concerned(alias) for alias in aliases):
            _change(state, key, aliases, rule)


def _change(state: State, key: RouteKey, aliases: tuple[Alias, ...], rule: int) -> None:
    scope = ROUTE_SCOPE[key.family]
    if aliases != state.routes[key]:
        state.set_aliases(key, aliases)
        state.dumps.touch(scope, key, state.now)
    state.dumps.mark(scope, table=key.table, rule=rule)
