"""Cilium: primary and NodePort addresses of its devices, and the fallback that stands for all.

Follows cilium/cilium pkg/datapath/tables/node_address.go (as of sudeephb/cilium
a9c30b5eed63297daa9306782bae4a8c060614bc, tests as of joamaki/cilium 1fa8aa8f) and
pkg/datapath/linux/devices_controller.go at 025b0f07a891a68785296213f3b00cce0c50d487.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from tracker.capture.names import LINK_FLAGS, ROUTE_TYPES, SCOPE_HOST, SCOPE_LINK, TABLE_LOCAL
from tracker.profiles.choice import Choice, Options, Profile, Subnet, chosen, subnet
from tracker.profiles.host import IP, Address, Host, Link, global_unicast

HOST_DEVICE = "cilium_host"
_ALWAYS = (HOST_DEVICE, "lo")
_EXCLUDED_PREFIXES = ("cilium_", "lo", "lxc", "cni", "docker")
_SLAVE = LINK_FLAGS["slave"]
SCOPE_MAX = SCOPE_LINK - 1
"""Default of local-max-addr-scope."""

# 2001:db8::/48 and not /32, as Cilium has it.
_NOT_PUBLIC = tuple(
    subnet(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "::/128", "::1/128", "100::/64"),
        *("2001:2::/48", "2001:db8::/48", "fc00::/7", "fe80::/10", "ff00::/8"),
    )
)


@cache
def public(ip: IP) -> bool:
    """Whether Cilium takes it for a public address."""
    return not any(ip in network for network in _NOT_PUBLIC)


class Device(NamedTuple):
    """A link as Cilium sees it."""

    ifindex: int
    name: str
    addresses: tuple[Address, ...]
    up: bool = True
    kind: str = ""
    selected: bool = False
    local: tuple[IP, ...] = ()
    """Addresses that only a local route makes this host's: some clouds have such."""

    @property
    def usable(self) -> bool:
        """Whether its addresses count."""
        dummy = self.kind == "dummy"
        return (self.up or dummy) and (self.selected or dummy or self.name in _ALWAYS)


class Picked(NamedTuple):
    """The addresses of a device that have a part to play, IPv4 first."""

    primary: list[IP]
    nodeport: list[IP]


def devices(host: Host, patterns: Sequence[str] = ()) -> list[Device]:
    """All links, those selected that face a network; `patterns` as --devices has them."""
    return [
        Device(
            link.ifindex,
            link.name,
            tuple(host.all_on(link)),
            link.up,
            link.kind,
            _is_selected(host, link, patterns),
            _from_local_routes(host, link),
        )
        for link in host.links
    ]


def _is_selected(host: Host, link: Link, patterns: Sequence[str]) -> bool:
    addresses = host.all_on(link)
    if not addresses or not link.up:
        return False
    if patterns:
        return any(_matches(link.name, pattern) for pattern in patterns)
    if link.loopback or link.flags & _SLAVE or link.master:
        return False
    if link.name.startswith(_EXCLUDED_PREFIXES) or link.kind in ("bridge", "openvswitch"):
        return False
    routes = [route for route in host.routes if route.oif == link.ifindex]
    if link.kind == "veth" and not any(route.default for route in routes):
        return False
    # An address of a link that is up has a route of its own in table local.
    has_own = any(global_unicast(address.ip) for address in addresses)
    return has_own or any(global_unicast(route.prefix) for route in routes)


def _matches(name: str, pattern: str) -> bool:
    if pattern.endswith("+"):
        return name.startswith(pattern[:-1])
    return name == pattern


def _from_local_routes(host: Host, link: Link) -> tuple[IP, ...]:
    known = {address.ip for address in host.addresses}
    return tuple(
        route.prefix
        for route in host.routes
        if route.table == TABLE_LOCAL
        and route.type == ROUTE_TYPES["local"]
        and route.scope == SCOPE_HOST
        and route.oif == link.ifindex
        and route.prefsrc is None
        and route.prefix not in known
        and not route.prefix.is_unspecified
        and not route.prefix.is_loopback
    )


def sorted_addresses(addresses: Iterable[Address]) -> list[Address]:
    """Best first: not secondary, scope, public, number."""
    return sorted(addresses, key=lambda a: (a.secondary, a.scope, not public(a.ip), a.ip.packed))


def pick(
    device: Device,
    node_ips: Sequence[IP] = (),
    nodeport_networks: Sequence[Subnet] = (),
    scope_max: int = SCOPE_MAX,
) -> Picked:
    """Primary prefers public addresses, NodePort private ones."""
    picked = Picked([], [])
    if not device.usable:
        return picked
    taken = [a.ip for a in sorted_addresses(device.addresses) if _counts(device, a, scope_max)]
    for version in (4, 6):
        ips = [ip for ip in taken if ip.version == version]
        local = [ip for ip in device.local if ip.version == version]
        classes = (_best(ips, node_ips, is_public=True), _best(ips, node_ips, is_public=False))
        public_first = [ip for ip in classes if ip is not None]
        private_first = [ip for ip in classes[::-1] if ip is not None]
        picked.primary.extend((public_first or local)[:1])
        if device.name == HOST_DEVICE:
            continue
        if nodeport_networks:
            given = (ip for ip in ips + local if any(ip in net for net in nodeport_networks))
            picked.nodeport.extend(given)
        elif device.up:
            picked.nodeport.extend(private_first[:1])
    return picked


def _counts(device: Device, address: Address, scope_max: int) -> bool:
    if device.name == HOST_DEVICE and address.scope == SCOPE_LINK:
        return True
    return address.scope <= scope_max and not address.ip.is_loopback


def _best(ips: Sequence[IP], node_ips: Sequence[IP], *, is_public: bool) -> IP | None:
    """The first of a class; the node's Kubernetes address before others of its class."""
    of_class = [ip for ip in ips if public(ip) == is_public]
    return next((ip for ip in of_class if ip in node_ips), next(iter(of_class), None))


def fallback(found: Iterable[Device]) -> list[IP]:
    """The addresses of device "*": the best of all, IPv4 first."""
    candidates = [
        (not device.selected, not public(a.ip), a.scope, device.ifindex, a.ip.packed, a.ip)
        for device in found
        if not device.name.startswith("lxc") and device.name != HOST_DEVICE
        for a in device.addresses
        if not a.secondary
    ]
    best = (
        min((c for c in candidates if c[-1].version == version), default=None) for version in (4, 6)
    )
    return [candidate[-1] for candidate in best if candidate is not None]


def _choose(host: Host, options: Options, what: str) -> Choice:
    node_ips = options.addresses("node-ip")
    scope_max = options.number("local-max-addr-scope", SCOPE_MAX, 255)
    networks = options.networks("nodeport-addresses")
    found = []
    for device in devices(host, options.items("devices")):
        picked = pick(device, node_ips, networks, scope_max)
        if ips := picked.primary if what == "primary" else picked.nodeport:
            found.append((device, ips))
    # lo and the like stand behind devices that face a network.
    found.sort(key=lambda entry: (not entry[0].selected, entry[0].ifindex))
    listed = "; ".join(f"{device.name}: {' '.join(map(str, ips))}" for device, ips in found)
    ips = [ip for _, ips in found for ip in ips]
    return chosen(*ips, reason=f"{what} by device: {listed}", error="no device is selected")


def choose(host: Host, options: Options) -> Choice:
    """The primary address of the first selected device."""
    return _choose(host, options, "primary")


def choose_nodeport(host: Host, options: Options) -> Choice:
    """The NodePort address of the first selected device."""
    return _choose(host, options, "NodePort")


def choose_fallback(host: Host, options: Options) -> Choice:
    """The addresses of "*", for who knows no device."""
    found = [device for device in devices(host, options.items("devices")) if device.usable]
    reason = "device *: selected, public, lower scope, lower ifindex, lower address"
    return chosen(*fallback(found), reason=reason)


_DEVICES = {"devices": "--devices: names, with + at the end as a wildcard"}
_OPTIONS = {
    **_DEVICES,
    "node-ip": "the node's Kubernetes addresses",
    "nodeport-addresses": "--nodeport-addresses: networks",
    "local-max-addr-scope": f"a number (default {SCOPE_MAX})",
}
PROFILES = {
    "cilium": Profile(choose, _OPTIONS),
    "cilium-nodeport": Profile(choose_nodeport, _OPTIONS),
    "cilium-fallback": Profile(choose_fallback, _DEVICES),
}
