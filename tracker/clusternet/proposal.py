"""Free ranges to propose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv6Network
from itertools import islice

from tracker.clusternet.blocks import PRIVATE, UNUSABLE
from tracker.clusternet.ranges import IPNetwork, free, inside


def usual(prefixlen: int, random_bits: int) -> list[IPNetwork]:
    """Where to look for a range of `prefixlen` if nothing else is said: RFC 1918 up to /32, else
    /48s of unique local addresses, drawn at random as RFC 4193 section 3.2 wants it.

    `random_bits`: 40 of them.
    """
    if prefixlen <= 32:
        return list(PRIVATE)
    head = 0xFD << 40 | random_bits & ((1 << 40) - 1)
    return [IPv6Network((head << 80, 48))]


def propose(
    within: Sequence[IPNetwork],
    used: Iterable[IPNetwork],
    prefixlen: int,
    count: int,
    routes: Iterable[IPNetwork] = (),
) -> list[IPNetwork]:
    """At most `count` networks of `prefixlen` that share nothing with `used`, nor with blocks that
    no host can be reached at, lowest first in each network of `within`, in their order.

    `routes` count as used, too, but one for all of a network that was asked for, such as a route
    for all private addresses, says nothing about what in it is free.
    """
    taken, ways = [*used, *UNUSABLE], list(routes)
    found = (
        network
        for outer in within
        for network in free(
            outer, [*taken, *(way for way in ways if not inside(outer, way))], prefixlen
        )
    )
    return list(islice(found, count))
