"""Talos Linux: the addresses of a node, and those that its kubelet is given.

Follows siderolabs/talos internal/app/machined/pkg/controllers/{network/{address_status,
node_address}.go, network/internal/addressutil/{compare,addressutil}.go, k8s/{nodeip_config,
nodeip}.go} at ad882317, and siderolabs/net net.go at 19eb1c4a.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from ipaddress import IPv6Address
from typing import NamedTuple

from tracker.capture.names import OPERSTATES, SCOPE_LINK
from tracker.profiles.choice import Choice, Options, Profile, Subnet, chosen, subnet
from tracker.profiles.host import IP, Address, Host, Link, covers

HOST_DNS = IPv6Address("fd54:616c:6f73::204f:5320:444e:531")
SIDEROLINK = subnet("fdae:41e4:649b:9303::/64")
EXTERNAL = "external"
"""Link name of addresses that only the platform knows."""

PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/12"


class Prefix(NamedTuple):
    """An address with its prefix length."""

    ip: IP
    bits: int

    def __str__(self) -> str:
        return f"{self.ip}/{self.bits}"


def _key_v1(prefix: Prefix) -> tuple[int, ...]:
    """By address, then the shorter prefix."""
    return prefix.ip.version, int(prefix.ip), prefix.bits


def compare_v2(a: Prefix, b: Prefix) -> int:
    """The more specific first. No order: overlapping networks can form a cycle."""
    if a.ip.version != b.ip.version:
        return _compare((a.ip.version,), (b.ip.version,))
    if a.ip == b.ip:
        return _compare((b.bits,), (a.bits,))
    a_holds, b_holds = covers(a.ip, a.bits, b.ip), covers(b.ip, b.bits, a.ip)
    if a_holds != b_holds:
        return 1 if a_holds else -1
    return _compare((int(a.ip),), (int(b.ip),))


def _compare(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return (a > b) - (a < b)


def sort(prefixes: Iterable[Prefix], algorithm: str) -> list[Prefix]:
    """Sorted and without doubles."""
    # The order of version 2 depends on the order before: version 1's is at least a fixed one.
    known = sorted(set(prefixes), key=_key_v1)
    return known if algorithm == "v1" else sorted(known, key=cmp_to_key(compare_v2))


class NodeAddresses(NamedTuple):
    """The NodeAddress resources."""

    default: Prefix | None
    current: list[Prefix]
    routed: list[Prefix]
    accumulative: list[Prefix]


def node_addresses(
    host: Host,
    algorithm: str,
    external: Sequence[Prefix] = (),
    previous: NodeAddresses | None = None,
    *,
    siderolink: Subnet = SIDEROLINK,
    host_dns: IP = HOST_DNS,
) -> NodeAddresses:
    """`previous`: what was there before; `default` stays while its address is there."""
    everything = [
        (host.link(address.ifindex), prefix)
        for address in host.addresses
        if (prefix := _usable(address, host_dns)) is not None
    ]
    local = [(link.name, prefix) for link, prefix in everything if link and _is_up(link)]
    current = local + [(EXTERNAL, prefix) for prefix in external]
    routed = [prefix for _, prefix in local if prefix.ip not in siderolink]
    seen = [prefix for _, prefix in everything] + list(external)
    default = previous.default if previous else None
    if default not in {prefix for _, prefix in current}:
        default = _first(current, algorithm)
    return NodeAddresses(
        default,
        sort((prefix for _, prefix in current), algorithm),
        sort(routed, algorithm),
        sort([*seen, *(previous.accumulative if previous else ())], algorithm),
    )


def _usable(address: Address, host_dns: IP) -> Prefix | None:
    # IFA_ADDRESS, so the other end of a point-to-point address.
    ip = address.peer or address.ip
    if address.scope >= SCOPE_LINK or ip == host_dns:
        return None
    if ip.is_loopback or ip.is_multicast or ip.is_link_local:
        return None
    return Prefix(ip, address.prefixlen)


def _is_up(link: Link) -> bool:
    operational = link.up and link.operstate in (OPERSTATES["unknown"], OPERSTATES["up"])
    return operational and (link.carrier or not link.physical)


def _first(named: Sequence[tuple[str, Prefix]], algorithm: str) -> Prefix | None:
    """By the name of the link, then as sorted."""
    if not named:
        return None
    lowest = min(name for name, _ in named)
    return sort((prefix for name, prefix in named if name == lowest), algorithm)[0]


def filter_ips(ips: Sequence[IP], rules: Sequence[Subnet]) -> list[IP]:
    """Rules in order: one adds what matches, one with ! takes it out again."""
    kept: dict[IP, None] = {}
    for rule in rules:
        if rule.negative:
            kept = {ip: None for ip in kept if ip not in rule}
        else:
            kept.update((ip, None) for ip in ips if ip in rule)
    return list(kept)


def without(prefixes: Iterable[Prefix], networks: Sequence[Subnet]) -> list[Prefix]:
    """A filter that excludes, such as no-k8s."""
    return [p for p in prefixes if not any(p.ip in network for network in networks)]


def within(prefixes: Iterable[Prefix], networks: Sequence[Subnet]) -> list[Prefix]:
    """A filter that includes, such as only-k8s."""
    return [p for p in prefixes if any(p.ip in network for network in networks)]


def node_ips(
    routed: Sequence[Prefix],
    valid: Sequence[Subnet],
    excluded: Sequence[Subnet],
    previous: Sequence[IP] = (),
) -> list[IP]:
    """The kubelet's --node-ip: one of each family; what was there stays where nothing matches."""
    rules = [*valid, *(network._replace(negative=True) for network in excluded)]
    matching = filter_ips([prefix.ip for prefix in routed], rules)
    first: dict[int, IP] = {}
    for ip in matching:
        first.setdefault(ip.version, ip)
    return [first[version] for version in (4, 6) if version in first] or list(previous)


def _choose(host: Host, options: Options, algorithm: str) -> Choice:
    cluster = options.networks("pod-subnets", PODS) + options.networks("service-subnets", SERVICES)
    excluded = [*cluster, *options.networks("exclude-subnets")]
    valid = options.networks("valid-subnets", "0.0.0.0/0,::/0")
    routed = without(node_addresses(host, algorithm).routed, cluster)
    ips = node_ips(routed, valid, excluded)
    what = "lowest address" if algorithm == "v1" else "lowest address, the most specific first,"
    reason = f"{what} on links that are up ({algorithm} sort), in validSubnets"
    return chosen(*ips, reason=reason, error="no suitable node IP found")


def choose_v1(host: Host, options: Options) -> Choice:
    """With the sort that machines have unless they were installed with the newer one."""
    return _choose(host, options, "v1")


def choose_v2(host: Host, options: Options) -> Choice:
    """With addressSortAlgorithm v2."""
    return _choose(host, options, "v2")


_OPTIONS = {
    "valid-subnets": "machine.kubelet.nodeIP.validSubnets (default 0.0.0.0/0,::/0)",
    "exclude-subnets": "what is never taken: the configured VIPs",
    "pod-subnets": f"cluster.network.podSubnets (default {PODS})",
    "service-subnets": f"cluster.network.serviceSubnets (default {SERVICES})",
}
PROFILES = {"talos-v1": Profile(choose_v1, _OPTIONS), "talos-v2": Profile(choose_v2, _OPTIONS)}
