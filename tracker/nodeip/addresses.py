"""What others make of a node's list of addresses.

Follows kubernetes/kubernetes pkg/util/node/node.go at 008b3652959ca58af8be3fb5b6ecfe9ae7638282.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tracker.address import family_of
from tracker.errors import TrackerError
from tracker.nodeip.arguments import sloppy_ip

INTERNAL_IP = "InternalIP"
EXTERNAL_IP = "ExternalIP"
HOSTNAME = "Hostname"

INTERNAL_DNS = "InternalDNS"
EXTERNAL_DNS = "ExternalDNS"

PREFERRED_TYPES = (HOSTNAME, INTERNAL_DNS, INTERNAL_IP, EXTERNAL_DNS, EXTERNAL_IP)
"""Default of the API server's --kubelet-preferred-address-types: all types that there are."""


class NoAddressError(TrackerError):
    """The list has no address of the wanted kind."""


class NodeAddress(NamedTuple):
    """An entry of Node.status.addresses."""

    type: str
    address: str


def host_ips(addresses: Sequence[NodeAddress]) -> tuple[str, ...]:
    """Pods' status.hostIPs: the first address, and the first of the other family.

    Internal ones come before external ones. Raises NoAddressError.
    """
    found = [
        ip
        for wanted in (INTERNAL_IP, EXTERNAL_IP)
        for kind, address in addresses
        if kind == wanted and (ip := sloppy_ip(address)) is not None
    ]
    if not found:
        raise NoAddressError(f"no {INTERNAL_IP} or {EXTERNAL_IP} in the list of addresses")
    other = (ip for ip in found if family_of(ip) != family_of(found[0]))
    return (found[0], *list(other)[:1])


def preferred_address(
    addresses: Sequence[NodeAddress], types: Iterable[str] = PREFERRED_TYPES
) -> str:
    """Where the API server connects to the kubelet: types in order, then the list's order.

    Raises NoAddressError.
    """
    types = tuple(types)
    for wanted in types:
        for kind, address in addresses:
            if kind == wanted:
                return address
    raise NoAddressError(f"no address of the types {', '.join(types)}")


def preferred_order(
    addresses: Sequence[NodeAddress], types: Iterable[str] = PREFERRED_TYPES
) -> tuple[NodeAddress, ...]:
    """The addresses that `preferred_address` may take, the one that it takes first.

    Each later one is what would be taken if those before were not there.
    """
    return tuple(entry for kind in dict.fromkeys(types) for entry in addresses if entry[0] == kind)


def one_internal_ip_each(addresses: Iterable[NodeAddress]) -> tuple[NodeAddress, ...]:
    """The first InternalIP of each family and nothing else."""
    first: dict[str, NodeAddress] = {}
    for entry in addresses:
        ip = sloppy_ip(entry.address) if entry.type == INTERNAL_IP else None
        if ip is not None:
            first.setdefault(family_of(ip), entry)
    return tuple(first.values())


def status_patch(addresses: Iterable[NodeAddress]) -> dict[str, Any]:
    """A strategic merge patch of the status subresource that replaces the addresses.

    Without the last entry the list would be merged by type, so that two addresses of one type
    cannot be told apart (kubernetes/component-helpers node/util/status.go at 1961876b).
    """
    listed: list[dict[str, str]] = [{"type": a.type, "address": a.address} for a in addresses]
    return {
        "content_type": "application/strategic-merge-patch+json",
        "subresource": "status",
        "body": {"status": {"addresses": [*listed, {"$patch": "replace"}]}},
    }
