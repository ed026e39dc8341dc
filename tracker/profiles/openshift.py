"""OpenShift on bare metal: runtimecfg node-ip, which writes the kubelet's --node-ip at boot.

Follows openshift/baremetal-runtimecfg pkg/utils/addresses_linux.go and cmd/runtimecfg/node-ip.go
at 660073616802e3d1258a036f2e57ca18a7baafa0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv6Address
from typing import NamedTuple

from tracker.capture.names import RTPROT_RA
from tracker.model import FAMILIES, IPV6
from tracker.profiles.choice import Choice, Options, Profile, chosen
from tracker.profiles.host import IP, Address, Host, Link, Route, covers, private, unmapped

OVN_KUBERNETES = "OVNKubernetes"
_OVN_MASQUERADE = IPv6Address("fd69::2")


class Matches(NamedTuple):
    """Addresses in the order in which they are written, and why."""

    ips: list[IP]
    reason: str = ""


def valid(address: Address) -> bool:
    """What is suitable at all; flags are not looked at."""
    if unmapped(address.ip).is_link_local:
        return False
    if address.family == IPV6 and address.preferred == 0:
        return False
    return "eip" not in address.label


def valid_on_ovn(address: Address) -> bool:
    """Without the address that OVN-Kubernetes puts on its bridge."""
    return address.ip != _OVN_MASQUERADE and valid(address)


def on_subnet_of(host: Host, vips: Sequence[IP], *, prefer_ipv6: bool) -> Matches:
    """The address whose subnet holds a VIP or the hint, and one of the other family beside it."""
    texts = {str(vip) for vip in vips}
    matching = []
    for link in host.links:
        usable = [address for address in host.all_on(link) if valid(address)]
        candidates = (a for a in usable if str(a.ip) not in texts and _reaches(host, a, vips))
        if address := next(candidates, None):
            other = next((a for a in usable if a.family != address.family), None)
            matching.append((link, [address] if other is None else [address, other]))
    if not matching:
        return Matches([])
    link, found = matching[0]
    preferred = [a for a in found if (a.family == IPV6) == prefer_ipv6]
    reason = f"the subnet of {found[0]} on {link.name} holds {', '.join(map(str, vips))}"
    if len(matching) > 1:
        others = ", ".join(other.name for other, _ in matching[1:])
        reason += f" (so does one on {others}: which is first is chance)"
    return Matches([a.ip for a in [*preferred, *(a for a in found if a not in preferred)]], reason)


def _reaches(host: Host, address: Address, vips: Sequence[IP]) -> bool:
    lengths = [address.prefixlen]
    if address.family == IPV6 and address.prefixlen == 128:
        # A leased address has no subnet; router advertisements say how large it is.
        lengths = [
            route.prefixlen
            for route in host.routes
            if route.oif == address.ifindex
            and route.main
            and route.family == IPV6
            and not route.default
            and route.protocol == RTPROT_RA
        ]
    return any(covers(address.ip, length, vip) for length in lengths for vip in vips)


def on_default_route(
    host: Host, usable: Callable[[Address], bool], *, prefer_ipv6: bool
) -> Matches:
    """The best address of each family on links with a default route."""
    first: dict[int, Route] = {}
    for family in FAMILIES:
        for route in host.routes:
            # A route with several nexthops has no link of its own, so it belongs to none.
            if route.family == family and route.default and route.main and route.oif:
                first.setdefault(route.oif, route)
    ranked = sorted(
        (
            (_rank(link, address, first[link.ifindex], prefer_ipv6=prefer_ipv6), link, address)
            for link in host.links
            if link.ifindex in first
            for address in host.all_on(link)
            if usable(address)
        ),
        key=lambda entry: entry[0],
    )
    best: dict[str, tuple[Link, Address]] = {}
    for _, link, address in ranked:
        best.setdefault(address.family, (link, address))
    reasons = [
        f"{link.name}: default route of metric {first[link.ifindex].metric}"
        for link, _ in best.values()
    ]
    ips = [address.ip for _, address in best.values()]
    return Matches(ips, "; ".join(dict.fromkeys(reasons)))


def _rank(link: Link, address: Address, route: Route, *, prefer_ipv6: bool) -> tuple[object, ...]:
    return (
        route.metric,
        link.ifindex,
        (address.family == IPV6) != prefer_ipv6,
        not covers(address.ip, address.prefixlen, route.own_gateway),
        private(address.ip),
        unmapped(address.ip) != address.ip,
        address.ip.packed,
    )


def choose(host: Host, options: Options) -> Choice:
    """VIPs and hint first, then the default route."""
    vips = options.addresses("vips") + options.addresses("hint")
    prefer_ipv6 = options.flag("prefer-ipv6")
    network_type = options.text("network-type", OVN_KUBERNETES)
    found = Matches([])
    if vips:
        found = on_subnet_of(host, vips, prefer_ipv6=prefer_ipv6)
    if not found.ips:
        usable = valid_on_ovn if network_type == OVN_KUBERNETES else valid
        found = on_default_route(host, usable, prefer_ipv6=prefer_ipv6)
    return chosen(*found.ips, reason=found.reason, error=_why_none(host))


def _why_none(host: Host) -> str:
    multipath = any(r.default and r.main and not r.oif and host.hops(r) for r in host.routes)
    why = ": a default route with several nexthops matches no interface" if multipath else ""
    return f"Failed to find suitable node ip{why}"


PROFILES = {
    "openshift": Profile(
        choose,
        {
            "vips": "API and ingress addresses",
            "hint": "NODEIP_HINT: an address in the wanted subnet",
            "prefer-ipv6": "true, false",
            "network-type": f"{OVN_KUBERNETES} (the default) or another",
        },
    )
}
