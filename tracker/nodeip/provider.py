"""What is published of the addresses that a cloud provider lists, given the requested node IPs.

Follows kubernetes/cloud-provider node/helpers/address.go at
46666112f47d004d76fb91406104f94e6a504b2f (GetNodeAddressesFromNodeIP).
"""

from __future__ import annotations

from collections.abc import Sequence

from tracker.nodeip.addresses import NoAddressError, NodeAddress
from tracker.nodeip.arguments import parse_annotation, sloppy_ip


def merge(provided_node_ip: str, listed: Sequence[NodeAddress]) -> list[NodeAddress]:
    """The provider's list, requested addresses first and alone of their type.

    `provided_node_ip` is the annotation's value. Addresses are compared by value and keep their
    spelling. Raises NodeIPError for the annotation, NoAddressError for an address that the
    provider does not list.
    """
    enforced: list[NodeAddress] = []
    for ip in parse_annotation(provided_node_ip):
        matching = [entry for entry in listed if sloppy_ip(entry.address) == ip]
        if not matching:
            known = ", ".join(entry.address for entry in listed) or "none"
            raise NoAddressError(f"node IP {ip} is not among the provider's addresses: {known}")
        enforced += matching
    types = {entry.type for entry in enforced}
    return enforced + [entry for entry in listed if entry.type not in types]
