"""Arithmetic of address ranges: what overlaps, what is left, what is free."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network
from typing import NamedTuple

from tracker.model import IPV4, IPV6

IPNetwork = IPv4Network | IPv6Network


class Range(NamedTuple):
    """A network that something uses."""

    use: str
    """"nodes", "pods", "services", "host" (a link of this host is in it), "other"."""
    network: IPNetwork
    source: str
    """Where it comes from, for people: "networks.pods", "eth0", "cluster b"."""
    foreign: bool = False
    """A host network that is on no link of the node's own: containers beside the cluster, VPNs."""


class Overlap(NamedTuple):
    """Two ranges that have addresses in common; `shared` is the smaller one."""

    first: Range
    second: Range
    shared: IPNetwork


def family_of(network: IPNetwork) -> str:
    """The family, "ipv4" or "ipv6"."""
    return IPV4 if network.version == 4 else IPV6


def families(networks: Iterable[IPNetwork]) -> tuple[str, ...]:
    """The families of networks, in order of appearance."""
    return tuple(dict.fromkeys(map(family_of, networks)))


def inside(network: IPNetwork, outer: IPNetwork) -> bool:
    """Whether `network` lies in `outer`; one of the other family does not."""
    return _covers(outer, network)


def _covers(outer: IPNetwork, inner: IPNetwork) -> bool:
    if outer.version != inner.version or outer.prefixlen > inner.prefixlen:
        return False
    shift = outer.max_prefixlen - outer.prefixlen
    return int(outer.network_address) >> shift == int(inner.network_address) >> shift


def overlaps(ranges: Iterable[Range]) -> Iterator[Overlap]:
    """Every pair of ranges with addresses in common, in the order of `ranges`.

    Of two networks that overlap one contains the other, so each is looked up by its first bits: a
    host with a thousand networks and a list of a thousand more cost no million comparisons.
    """
    every = list(ranges)
    by_head: dict[tuple[int, int, int], list[int]] = {}
    for position, entry in enumerate(every):
        by_head.setdefault(_head(entry.network, entry.network.prefixlen), []).append(position)
    lengths = sorted({(version, length) for version, length, _ in by_head})
    for position, entry in enumerate(every):
        network = entry.network
        for version, length in lengths:
            if version != network.version or length > network.prefixlen:
                continue
            for other in by_head.get(_head(network, length), ()):
                # Equal networks find each other from both sides.
                if length < network.prefixlen or other < position:
                    low, high = sorted((position, other))
                    yield Overlap(every[low], every[high], network)


def _head(network: IPNetwork, length: int) -> tuple[int, int, int]:
    shift = network.max_prefixlen - length
    return network.version, length, int(network.network_address) >> shift


def gaps(network: IPNetwork, used: Iterable[IPNetwork]) -> Iterator[tuple[int, int]]:
    """First and last address, as numbers, of each stretch of `network` that `used` leaves."""
    first, last = int(network.network_address), int(network.broadcast_address)
    taken = sorted(
        (int(other.network_address), int(other.broadcast_address))
        for other in used
        if other.version == network.version
    )
    for start, end in taken:
        if start > last:
            break
        if start > first:
            yield first, start - 1
        first = max(first, end + 1)
    if first <= last:
        yield first, last


def left(network: IPNetwork, used: Iterable[IPNetwork]) -> list[IPNetwork]:
    """The networks that remain of `network` without `used`."""
    kind = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    return [
        piece
        for start, end in gaps(network, used)
        for piece in ipaddress.summarize_address_range(kind(start), kind(end))
    ]


def free(within: IPNetwork, used: Iterable[IPNetwork], prefixlen: int) -> Iterator[IPNetwork]:
    """Networks of `prefixlen` in `within` that share no address with `used`, lowest first."""
    if not within.prefixlen <= prefixlen <= within.max_prefixlen:
        return
    size = 1 << (within.max_prefixlen - prefixlen)
    make = IPv4Network if within.version == 4 else IPv6Network
    for start, end in gaps(within, used):
        aligned = -(-start // size) * size
        while aligned + size - 1 <= end:
            yield make((aligned, prefixlen))
            aligned += size
