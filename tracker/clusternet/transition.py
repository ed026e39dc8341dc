"""Where a cluster stands between IPv4-only, dual-stack and IPv6-only, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracker.clusternet.families import NAMES, Cluster
from tracker.clusternet.nat64 import Prefix
from tracker.clusternet.ranges import families
from tracker.model import FAMILIES, IPV4, IPV6

IPV4_ONLY = "ipv4-only"
BETWEEN = "between"
DUAL_STACK = "dual-stack"
IPV6_ONLY = "ipv6-only"
UNKNOWN = "unknown"


class Stage(NamedTuple):
    """Where it stands."""

    now: str
    """"ipv4-only", "between" (some parts have both families, or differ), "dual-stack",
    "ipv6-only"; "unknown" = there is nothing to go by."""
    next: str | None
    """The next step; None = there is none."""
    missing: tuple[str, ...]
    """What that step, or the last one, lacks; one line each."""
    parts: dict[str, list[str]]
    """Families of nodes, pods and services; a part that nothing is known of has none."""
    nat64: list[dict[str, str]]
    clat: list[str]

    def as_json(self) -> dict[str, Any]:
        """Itself, by name of field."""
        return self._asdict() | {"missing": list(self.missing)}


def stage(
    cluster: Cluster,
    present: Sequence[str],
    nat64: Sequence[Prefix] = (),
    clat: Sequence[str] = (),
) -> Stage:
    """Where the cluster stands.

    `present`: families in which this node has an address that would do, wanted or not. `clat`:
    interfaces of a CLAT. IPv6-only is judged by what is configured: nodes that reach IPv4 through
    a CLAT have no IPv4 of their own.
    """
    parts = {
        "nodes": [family for family in cluster.wanted if family in cluster.primary],
        "pods": list(families(cluster.pods)),
        "services": list(families(cluster.services)),
    }
    now = _now([set(part) for part in parts.values() if part])
    following = {IPV4_ONLY: DUAL_STACK, BETWEEN: DUAL_STACK, DUAL_STACK: IPV6_ONLY}.get(now)
    missing: list[str] = []
    if following == DUAL_STACK:
        missing = _for_dual_stack(cluster, parts, present)
    elif following == IPV6_ONLY:
        missing = _for_ipv6_only(cluster, parts, nat64, clat)
    elif now == IPV6_ONLY and not nat64:
        missing = [_NO_NAT64]
    return Stage(
        now=now,
        next=following,
        missing=tuple(missing),
        parts=parts,
        nat64=[{"prefix": str(prefix.network), "source": prefix.source} for prefix in nat64],
        clat=list(clat),
    )


_NO_NAT64 = (
    "no NAT64 noticed, so IPv4-only peers are out of reach: a route for 64:ff9b::/96 or a prefix "
    "named by networks.nat64, --nat64, --dns64 or --pref64 would show one"
)


def _now(parts: list[set[str]]) -> str:
    if not parts:
        return UNKNOWN
    if all(part == {IPV4} for part in parts):
        return IPV4_ONLY
    if all(part == {IPV6} for part in parts):
        return IPV6_ONLY
    return DUAL_STACK if all(len(part) == 2 for part in parts) else BETWEEN


def _for_dual_stack(
    cluster: Cluster, parts: dict[str, list[str]], present: Sequence[str]
) -> list[str]:
    missing = []
    for family in FAMILIES:
        name = NAMES[family]
        if family not in parts["nodes"]:
            if family in cluster.wanted:
                missing.append(f"nodes: this one has no {name} address")
            elif family in present:
                missing.append(f"nodes: this one has {name}, and families does not want it")
            else:
                missing.append(f"nodes: {name} is neither wanted (families) nor here")
        for part in ("pods", "services"):
            if not parts[part]:
                missing.append(f"{part}: networks.{part} is empty, so nothing is known")
            elif family not in parts[part]:
                missing.append(f"{part}: no range of {name} in networks.{part}")
    return list(dict.fromkeys(missing))


def _for_ipv6_only(
    cluster: Cluster, parts: dict[str, list[str]], nat64: Sequence[Prefix], clat: Sequence[str]
) -> list[str]:
    missing = []
    if parts["services"][:1] == [IPV4]:
        missing.append(
            "services: their first family is IPv4, and the address of the API server in the "
            "cluster with it; IPv6 has to come first"
        )
    if cluster.wanted[0] == IPV4:
        missing.append("nodes: their first family is IPv4; put ipv6 first in families")
    if not nat64:
        missing.append(_NO_NAT64)
    if not clat:
        missing.append(
            "no CLAT noticed (a link clat or v4-*, an address in 192.0.0.0/29): programs that know "
            "IPv4 alone need one on the node"
        )
    return missing
