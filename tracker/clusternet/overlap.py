"""Findings about ranges that share addresses, or take addresses that others use."""

from __future__ import annotations

from collections.abc import Iterable

from tracker.clusternet.blocks import UNUSABLE, public
from tracker.clusternet.finding import Finding, error, warning
from tracker.clusternet.ranges import (
    IPNetwork,
    Overlap,
    Range,
    family_of,
    inside,
    left,
    overlaps,
)

_CLUSTER = ("nodes", "pods", "services")
_DO = {
    "pods": "give the pods another range",
    "services": "give the services another range",
    "nodes": "give one of them another range",
}
_WHY = {
    frozenset({"pods", "services"}): "an address may belong to a pod and to a service",
    frozenset({"nodes", "pods"}): "an address may belong to a node and to a pod",
    frozenset({"nodes", "services"}): "nodes in it are out of reach behind service addresses",
}
SHOWN = 4
"""Networks that a line names."""


def overlap_findings(ranges: Iterable[Range]) -> list[Finding]:
    """What is wrong with ranges that overlap.

    Of nodes, pods and services all addresses are to be told apart, and those of pods and services
    from the networks of this host and from other clusters. Two clusters may have their nodes in
    one network, as long as no address is given twice.
    """
    return [finding for found in overlaps(ranges) for finding in _judge(found)]


def _judge(found: Overlap) -> list[Finding]:
    uses = {found.first.use, found.second.use}
    if uses <= set(_CLUSTER):
        return [_within_cluster(found)]
    ours = next((entry for entry in found[:2] if entry.use in _CLUSTER), None)
    if ours is None:
        return []
    theirs = found.second if ours is found.first else found.first
    if "host" in uses:
        return [] if ours.use == "nodes" else [_with_host(ours, theirs, found.shared)]
    return [_with_other(ours, theirs, found.shared)]


def _within_cluster(found: Overlap) -> Finding:
    first, second = sorted(found[:2], key=lambda entry: _CLUSTER.index(entry.use))
    code = f"overlap-{first.use}-{second.use}"
    data = _data(first, second, found.shared)
    if first.use == second.use:
        text = f"{_named(first)} and {_named(second)} overlap: one of them is of no use; remove it"
        return warning(code, text, **data)
    why = _WHY[frozenset({first.use, second.use})]
    todo = _DO["pods" if second.use == "pods" else "services"]
    return error(code, f"{_named(first)} overlap {_named(second)}: {why}; {todo}", **data)


def _with_host(ours: Range, host: Range, shared: IPNetwork) -> Finding:
    code = f"overlap-host-{ours.use}"
    data = _data(ours, host, shared)
    if host.foreign:
        text = (
            f"{_named(ours)} overlap {host.network} on {host.source}, which is no part of the "
            f"cluster: one of them is out of reach from this host; {_DO[ours.use]}, or renumber "
            f"{host.source}"
        )
        return warning(code, text, **data)
    text = (
        f"{_named(ours)} overlap {host.network}, to which this host is connected by {host.source}: "
        f"neighbours in {shared} are out of reach, and addresses in it are never the node's; "
        f"{_DO[ours.use]}"
    )
    return error(code, text, **data)


def _with_other(ours: Range, other: Range, shared: IPNetwork) -> Finding:
    code = f"overlap-other-{ours.use}"
    text = f"{_named(ours)} overlap {other.network} of {other.source}"
    data = _data(ours, other, shared)
    if ours.use == "nodes":
        text += ": no harm as long as no address is given twice; see that one hand gives them out"
        return warning(code, text, **data)
    text += f": neither can reach the other's {shared}; {_DO[ours.use]}"
    return error(code, text, **data)


def _named(entry: Range) -> str:
    return f"{entry.use} {entry.network} ({entry.source})"


def _data(first: Range, second: Range, shared: IPNetwork) -> dict[str, object]:
    return {
        "family": family_of(shared),
        "shared": str(shared),
        "ranges": [
            {"use": entry.use, "network": str(entry.network), "source": entry.source}
            for entry in (first, second)
        ],
    }


def space_findings(ranges: Iterable[Range], own: Iterable[IPNetwork]) -> list[Finding]:
    """What is wrong with where ranges of pods and services lie.

    `own`: public networks that are ours (networks.public, networks.internal). IPv4 space that is
    public and not ours is somebody's, so an error. An IPv6 range may well be ours without being
    named, since global addresses without NAT are how IPv6 is meant to be used: a warning.
    """
    ours = tuple(own)
    found = []
    for entry in ranges:
        if entry.use not in {"pods", "services"}:
            continue
        network = entry.network
        if bad := [str(block) for block in UNUSABLE if inside(block, network)] or [
            str(network) for block in UNUSABLE if inside(network, block)
        ]:
            text = (
                f"{_named(entry)} has addresses that no host can be reached at ({_some(bad)}); "
                f"{_DO[entry.use]}"
            )
            found.append(error("range-unusable", text, **_space(entry, bad)))
            continue
        taken = [str(part) for piece in public(network) for part in left(piece, ours)]
        if not taken:
            continue
        text = (
            f"{_named(entry)} takes public addresses ({_some(taken)}): from here their owners are "
            f"out of reach; {_DO[entry.use]}, or name them in networks.public if they are yours"
        )
        make = error if network.version == 4 else warning
        found.append(make("range-public", text, **_space(entry, taken)))
    return found


def _some(networks: list[str]) -> str:
    more = len(networks) - SHOWN
    shown = ", ".join(networks[:SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _space(entry: Range, networks: list[str]) -> dict[str, object]:
    return {
        "use": entry.use,
        "network": str(entry.network),
        "family": family_of(entry.network),
        "parts": networks,
    }
