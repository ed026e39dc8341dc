"""The kubelet: the addresses that it sets in Node.status.

Follows openshift/kubernetes pkg/kubelet/nodestatus/setters.go at 1c80dc48 (as Kubernetes 1.31),
and kubernetes/apimachinery pkg/util/net/interface.go at eed236ceee2c19c2753a3d93ac0631dc20750454.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from tracker.model import IPV4, IPV6
from tracker.nodeip.addresses import (
    HOSTNAME,
    INTERNAL_IP,
    NoAddressError,
    NodeAddress,
    host_ips,
)
from tracker.nodeip.arguments import UNSPECIFIED, NodeIPError, parse_argument, sloppy_ip
from tracker.nodeip.provider import merge
from tracker.profiles.bind_address import Found, choose_host_interface, order_of
from tracker.profiles.choice import Choice, Options, Profile, ProfileError, chosen
from tracker.profiles.host import IP, Host, family_of, unmapped

ANNOTATION = "alpha.kubernetes.io/provided-node-ip"
EXTERNAL = "external"


class Status(NamedTuple):
    """What the kubelet makes of a Node."""

    addresses: list[NodeAddress]
    annotations: dict[str, str]
    reason: str


def node_status(
    node_ips: Sequence[str],
    cloud_provider: str,
    hostname: str,
    detect: Callable[[], Found],
    *,
    existing: Sequence[NodeAddress] = (),
    annotations: Mapping[str, str] | None = None,
) -> Status:
    """The addresses and the annotation; `node_ips` have been checked.

    `cloud_provider`: "" or "external". `detect` finds an address where none is given.
    """
    specified = bool(node_ips) and node_ips[0] not in UNSPECIFIED
    kept = {name: v for name, v in (annotations or {}).items() if name != ANNOTATION}
    if cloud_provider and specified:
        kept[ANNOTATION] = ",".join(node_ips)
    name = NodeAddress(HOSTNAME, hostname)
    if cloud_provider == EXTERNAL:
        if existing:
            reason = "external cloud provider: the node's addresses are its business"
            return Status(list(existing), kept, reason)
        if not node_ips:
            reason = "external cloud provider: Hostname alone until it has filled in addresses"
            return Status([name], kept, reason)
    if specified:
        found = [NodeAddress(INTERNAL_IP, ip) for ip in node_ips]
        return Status([*found, name], kept, "--node-ip")
    detected = detect()
    address = NodeAddress(INTERNAL_IP, str(detected.ip))
    return Status([address, name], kept, detected.reason)


def validate(host: Host, ip: IP) -> None:
    """What the kubelet demands of a given address. Raises ProfileError."""
    for wrong, what in (
        (ip.is_loopback, "a loopback address"),
        (ip.is_multicast, "a multicast address"),
        (ip.is_link_local, "a link-local address"),
        (ip.is_unspecified, "all zeros"),
    ):
        if wrong:
            raise ProfileError(f"nodeIP {ip} can't be {what}")
    if not any(unmapped(address.ip) == ip for address in host.addresses):
        raise ProfileError(f"node IP {ip} not found in the host's network interfaces")


def detect(host: Host, prefer: str, resolved: Sequence[IP]) -> Found:
    """Host name, name service, default routes, in this order. Raises ProfileError."""
    literal = sloppy_ip(host.hostname)
    if literal is not None:
        return Found(ip_address(literal), "the host name is an address")
    order = order_of(prefer)
    usable = [ip for ip in resolved if _is_valid(host, ip)]
    for family in order:
        for ip in usable:
            if family_of(ip) == family:
                return Found(ip, f"the host name {host.hostname} resolves to it")
    return choose_host_interface(host, order)


def _is_valid(host: Host, ip: IP) -> bool:
    try:
        validate(host, ip)
    except ProfileError:
        return False
    return True


def _choose(host: Host, options: Options, cloud_provider: str) -> Choice:
    try:
        given = parse_argument(options.text("node-ip"), cloud_provider).ips
    except NodeIPError as error:
        return Choice(error=f"failed to parse --node-ip: {error}")
    if given and given[0] not in UNSPECIFIED:
        for ip in given:
            validate(host, ip_address(ip))
    prefer = IPV6 if given and ":" in given[0] else IPV4
    status = node_status(
        given,
        cloud_provider,
        host.hostname,
        lambda: detect(host, prefer, _resolved(host, options)),
    )
    addresses, reason = status.addresses, status.reason
    if cloud_provider and options.items("provider"):
        addresses = _provider(options)
        reason = "addresses of the external cloud provider"
        if annotation := status.annotations.get(ANNOTATION):
            addresses = merge(annotation, addresses)
            reason = f"addresses of the external cloud provider that match --node-ip {annotation}"
    try:
        ips = [ip_address(ip) for ip in host_ips(addresses)]
    except NoAddressError:
        # Only the host name: nothing is said about addresses, and that is no failure.
        return Choice(reason=reason, families=())
    return chosen(*ips, reason=reason, only_given=True)


def _resolved(host: Host, options: Options) -> Sequence[IP]:
    if options.text("lookup") == "none":
        return ()
    return options.addresses("lookup") if "lookup" in options else host.resolved or ()


def _provider(options: Options) -> list[NodeAddress]:
    found = []
    for item in options.items("provider"):
        kind, equals, address = item.partition(":")
        if not equals or not kind or not address:
            raise options.error("provider", "InternalIP:ADDRESS and the like, with commas")
        found.append(NodeAddress(kind, address))
    return found


def choose(host: Host, options: Options) -> Choice:
    """Without a cloud provider."""
    return _choose(host, options, "")


def choose_external(host: Host, options: Options) -> Choice:
    """With --cloud-provider=external."""
    try:
        return _choose(host, options, EXTERNAL)
    except NoAddressError as error:
        return Choice(error=f"failed to get node address from cloud provider: {error}")


_OPTIONS = {
    "node-ip": "its flag: an address, a pair, 0.0.0.0 or ::",
    "lookup": "what the host name resolves to, none = nothing (default: asks the name service)",
}
PROFILES = {
    "kubelet": Profile(choose, _OPTIONS),
    "kubelet-external": Profile(
        choose_external,
        {**_OPTIONS, "provider": "what the cloud provider lists: InternalIP:10.0.0.1,..."},
    ),
}
