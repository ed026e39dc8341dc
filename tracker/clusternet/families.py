"""Findings about families: what services need, in which order, unique local or global."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Network
from typing import NamedTuple

from tracker.clusternet.blocks import ULA_LOCAL, ipv6_kind
from tracker.clusternet.finding import Finding, error, note, warning
from tracker.clusternet.ranges import IPNetwork, families, inside
from tracker.model import IPV4, IPV6

NAMES = {IPV4: "IPv4", IPV6: "IPv6"}
_REVERSE = {"ula": "global", "global": "ula"}
_SPOKEN = {"ula": "unique local", "global": "global"}


class Cluster(NamedTuple):
    """The networks of a cluster and what this node has."""

    nodes: tuple[IPNetwork, ...] = ()
    pods: tuple[IPNetwork, ...] = ()
    services: tuple[IPNetwork, ...] = ()
    primary: Mapping[str, str] = {}
    """The node's primary address by family; families without one are not there."""
    wanted: tuple[str, ...] = (IPV4, IPV6)
    """Families of the node in order, as configured or as they follow."""


def family_findings(cluster: Cluster) -> list[Finding]:
    """Families that services need and the node or the pods lack, and their order.

    The sources of the rules: a service has endpoints only of its own family, so nodes and pods
    need each family of the services; kube-apiserver refuses an advertise address that is not of
    the family of the first service range (pkg/controlplane/apiserver/options/validation.go, "must
    match public address family"); the first pod range gives the pods their primary address.
    """
    services, pods = families(cluster.services), families(cluster.pods)
    found = [finding for family in services for finding in _needed(family, cluster, pods)]
    for family in pods:
        if services and family not in services:
            text = (
                f"pods have {NAMES[family]} addresses, and no service has: add a range of "
                f"{NAMES[family]} to networks.services if services are to have them, too"
            )
            found.append(note("family-pods-only", text, family=family))
    if services and pods and services[0] != pods[0] and set(services) == set(pods):
        text = (
            f"networks.pods begins with {NAMES[pods[0]]}, networks.services with "
            f"{NAMES[services[0]]}: pods would prefer one family and services the other; put both "
            "in one order"
        )
        found.append(warning("family-order-pods", text, pods=list(pods), services=list(services)))
    if services and cluster.wanted[0] != services[0] and services[0] in cluster.wanted:
        text = (
            f"the node's first family is {NAMES[cluster.wanted[0]]}, that of the services "
            f"{NAMES[services[0]]}: kube-apiserver refuses such an advertise address; put families "
            "in the order of networks.services"
        )
        data = {"families": list(cluster.wanted), "services": list(services)}
        found.append(warning("family-order-node", text, **data))
    return found


def _needed(family: str, cluster: Cluster, pods: tuple[str, ...]) -> list[Finding]:
    name, found = NAMES[family], []
    if family not in cluster.primary:
        why = (
            f"add {family} to families"
            if family not in cluster.wanted
            else f"`addrtracker explain` says why there is no {name} address"
        )
        text = f"services need {name} (networks.services), and this node has none; {why}"
        found.append(error("family-node-lacks", text, family=family))
    if pods and family not in pods:
        text = (
            f"services need {name} (networks.services), and no pod has it: they would have no "
            f"endpoints; add a range of {name} to networks.pods"
        )
        found.append(error("family-pods-lack", text, family=family))
    return found


def scope_findings(cluster: Cluster, required: str = "") -> list[Finding]:
    """Unique local addresses where global ones are required, and the reverse.

    `required` is "global" (no NAT: what leaves the cluster has a global address; those of services
    never leave), "ula" or "" for neither: then only what does not fit together is worth a note.
    """
    found = [finding for use, n in _ipv6_of(cluster) for finding in _sound_ula(use, n)]
    if required:
        for use, network in _ipv6_of(cluster):
            exempt = required == "global" and use == "services"
            if not exempt and ipv6_kind(network) == _REVERSE[required]:
                found.append(_wrong_scope(use, network, required))
        return found
    primary = cluster.primary.get(IPV6)
    node = ipv6_kind(IPv6Network(primary)) if primary else ""
    kinds = {ipv6_kind(network) for network in cluster.pods} - {""}
    if node == "global" and kinds == {"ula"}:
        text = (
            "pods have unique local addresses and the node a global one: pods reach the IPv6 "
            "Internet only where the node translates (masquerading, NAT66); a global pod range "
            "needs none"
        )
        found.append(note("ula-pods-global-node", text, primary=primary))
    if node == "ula" and kinds == {"global"}:
        text = (
            "pods have global addresses and the node a unique local one: host-network pods and the "
            "node itself have no way to the IPv6 Internet; give nodes global addresses, too"
        )
        found.append(note("global-pods-ula-node", text, primary=primary))
    return found


def _ipv6_of(cluster: Cluster) -> list[tuple[str, IPNetwork]]:
    """IPv6 ranges and the primary address, each with what it is used for."""
    named = [
        *(("nodes", network) for network in cluster.nodes),
        *(("pods", network) for network in cluster.pods),
        *(("services", network) for network in cluster.services),
    ]
    if primary := cluster.primary.get(IPV6):
        named.append(("primary", IPv6Network(primary)))
    return [(use, network) for use, network in named if network.version == 6]


def _wrong_scope(use: str, network: IPNetwork, required: str) -> Finding:
    code = "ula-where-global" if required == "global" else "global-where-ula"
    shown = str(network.network_address if use == "primary" else network)
    text = (
        f"{use} {shown}: {_SPOKEN[_REVERSE[required]]}, where {_SPOKEN[required]} addresses are "
        f"required (check.ipv6 or --ipv6); use a {_SPOKEN[required]} range"
    )
    return error(code, text, use=use, network=shown)


def _sound_ula(use: str, network: IPNetwork) -> list[Finding]:
    """RFC 4193: the L bit is set (section 3.1), and 40 bits are random (section 3.2)."""
    if ipv6_kind(network) != "ula":
        return []
    shown = str(network.network_address if use == "primary" else network)
    if not inside(network, ULA_LOCAL):
        text = f"{use} {shown}: of fc00::/8 nothing is given out (RFC 4193); use fd00::/8"
        return [warning("ula-undefined", text, use=use, network=shown)]
    if use != "primary" and not _looks_random(network):
        text = (
            f"{use} {shown}: does not look like a /48 drawn at random (RFC 4193), so others may "
            "use the same; `addrtracker check --free /48` proposes one"
        )
        return [note("ula-not-random", text, use=use, network=shown)]
    return []


def _looks_random(network: IPNetwork) -> bool:
    """Of fd00:10:244::/48 and the like people think first; chance makes one in 65,536 of them."""
    if network.prefixlen < 48:
        return False
    head = int(network.network_address) >> 80
    first, second, third = head >> 32 & 0xFF, head >> 16 & 0xFFFF, head & 0xFFFF
    return bool(first) or second >= 1 << 12 or third >= 1 << 12
