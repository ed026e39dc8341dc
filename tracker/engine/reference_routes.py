"""How a route message changes the list of aliases of its key (docs/engine.md section 2).

Pure functions: a list goes in, the new list comes out.
"""

from __future__ import annotations

from collections import Counter

from tracker.capture.record import Leg
from tracker.engine.reference_state import Alias
from tracker.model import AF_INET

NLM_F_REPLACE = 0x100
NLM_F_APPEND = 0x800

RT_SCOPE_NOWHERE = 255

Aliases = tuple[Alias, ...]


def insert(family: int, aliases: Aliases, new: Alias, nl_flags: int) -> tuple[Aliases, int]:
    """The list after RTM_NEWROUTE, and how many aliases it replaced unannounced (R9)."""
    replace = bool(nl_flags & NLM_F_REPLACE)
    append = bool(nl_flags & NLM_F_APPEND)
    if family == AF_INET:
        return _insert_ipv4(aliases, new, replace=replace, append=append)
    return _insert_ipv6(aliases, new, replace=replace, append=append)


def _insert_ipv4(
    aliases: Aliases, new: Alias, *, replace: bool, append: bool
) -> tuple[Aliases, int]:
    if replace:
        return (new, *aliases[1:]), min(len(aliases), 1)
    for position, alias in enumerate(aliases):
        if _same_ipv4(alias, new):
            return _put(aliases, position, alias._replace(end=new.end, pref=new.pref)), 0
    return ((*aliases, new) if append else (new, *aliases)), 0


def _same_ipv4(one: Alias, other: Alias) -> bool:
    return one._replace(end=0, pref=0) == other._replace(end=0, pref=0)


def _insert_ipv6(
    aliases: Aliases, new: Alias, *, replace: bool, append: bool
) -> tuple[Aliases, int]:
    if replace:
        return (new,), len(aliases)
    if new.nh_id:
        return _update(aliases, new, [alias.nh_id == new.nh_id for alias in aliases]), 0
    if len(new.legs) > 1 or append:
        return _insert_siblings(aliases, new), 0
    for position, alias in enumerate(aliases):
        if not alias.nh_id and _has_legs_of(alias, new):
            return _put(aliases, position, new._replace(legs=alias.legs)), 0
    return (*aliases, new), 0


def _update(aliases: Aliases, new: Alias, fits: list[bool]) -> Aliases:
    if True in fits:
        return _put(aliases, fits.index(True), new)
    return (*aliases, new)


def _has_legs_of(alias: Alias, new: Alias) -> bool:
    if not new.legs:
        return not alias.legs
    return _hop(new.legs[0]) in [_hop(leg) for leg in alias.legs]


def _insert_siblings(aliases: Aliases, new: Alias) -> Aliases:
    """The whole list of legs is announced: what it contains was announced before."""
    announced = {_hop(leg) for leg in new.legs}
    contained = [
        not alias.nh_id and bool(alias.legs) and {_hop(leg) for leg in alias.legs} <= announced
        for alias in aliases
    ]
    place = contained.index(True) if True in contained else len(aliases)
    before = aliases[:place]
    after = [alias for alias, gone in zip(aliases, contained, strict=True) if not gone][place:]
    return (*before, new, *after)


def _hop(leg: Leg) -> tuple[int, int, bytes]:
    return leg.oif, leg.gw_family, leg.gw


def _put(aliases: Aliases, position: int, alias: Alias) -> Aliases:
    return (*aliases[:position], alias, *aliases[position + 1 :])


def delete(family: int, aliases: Aliases, named: Alias) -> Aliases:
    """The list after RTM_DELROUTE; the same list if nothing matched."""
    if family == AF_INET:
        return _delete_first(aliases, [_matches_ipv4(alias, named) for alias in aliases])
    if named.nh_id:
        return tuple(alias for alias in aliases if alias.nh_id != named.nh_id)
    if not named.legs:
        return _delete_first(aliases, [_fits(alias, named) for alias in aliases])
    for leg in named.legs:
        aliases = _delete_leg(aliases, named, leg)
    return aliases


def leaves_doubt(family: int, before: Aliases, after: Aliases, new: Alias | None) -> bool:
    """Whether a message (a NEW of `new`, or a DEL) leaves open what the kernel has now.

    IPv4: a NEW that equals an alias is one more alias, which differs in what we do not look at,
    such as RTA_METRICS (fib_find_info), unless a dump that was under way showed it before.
    IPv6: a message shows one set of attributes for all siblings, that of the first, though each
    has its own; which one is the first can change with every leg that goes (rt6_fill_node).
    """
    if family == AF_INET:
        return new is not None and any(_same_ipv4(alias, new) for alias in before)
    # Two may be equal, by what a dump showed.
    gone = [alias for alias in (Counter(before) - Counter(after)) if not alias.nh_id]
    if new is None:
        return any(len(alias.legs) > 1 for alias in gone)
    return any(
        _attributes(alias) != _attributes(new) and max(len(alias.legs), len(new.legs)) > 1
        for alias in gone
    )


def _attributes(alias: Alias) -> Alias:
    return alias._replace(end=0, legs=())


def _delete_first(aliases: Aliases, matches: list[bool]) -> Aliases:
    if True not in matches:
        return aliases
    position = matches.index(True)
    return (*aliases[:position], *aliases[position + 1 :])


def _fits(alias: Alias, named: Alias) -> bool:
    """Type and protocol; 0 is any."""
    return named.type in (0, alias.type) and named.proto in (0, alias.proto)


def _matches_ipv4(alias: Alias, named: Alias) -> bool:
    """What fib_table_delete and fib_nh_match of the kernel compare."""
    return (
        _fits(alias, named)
        and named.scope in (0, RT_SCOPE_NOWHERE, alias.scope)
        and named.prefsrc in (b"", alias.prefsrc)
        and named.nh_id in (0, alias.nh_id)
        and (bool(named.nh_id) or not named.legs or _match_legs(alias.legs, named.legs))
    )


def _match_legs(legs: tuple[Leg, ...], named: tuple[Leg, ...]) -> bool:
    return len(legs) == len(named) and all(
        want.oif in (0, leg.oif)
        and (want.gw_family == 0 or (want.gw_family, want.gw) == (leg.gw_family, leg.gw))
        for leg, want in zip(legs, named, strict=True)
    )


def _delete_leg(aliases: Aliases, named: Alias, gone: Leg) -> Aliases:
    """From an alias of this type and protocol before others: siblings may differ in both, and the
    message shows those of one of them."""
    having = [i for i, alias in enumerate(aliases) if _hop(gone) in map(_hop, alias.legs)]
    fitting = [i for i in having if _fits(aliases[i], named)] or [
        i for i in having if max(len(aliases[i].legs), len(named.legs)) > 1
    ]
    if not fitting:
        return aliases
    position = fitting[0]
    alias = aliases[position]
    at = [_hop(leg) for leg in alias.legs].index(_hop(gone))
    legs = (*alias.legs[:at], *alias.legs[at + 1 :])
    if legs:
        return _put(aliases, position, alias._replace(legs=legs))
    return (*aliases[:position], *aliases[position + 1 :])
