"""flannel: the interface and addresses of its tunnels.

Follows flannel-io/flannel pkg/ip/iface.go and pkg/ipmatch/match.go at cdf76059.
"""

from __future__ import annotations

from ipaddress import ip_address

from tracker.model import FAMILIES, IPV4
from tracker.profiles.choice import STACK, Choice, Options, Profile, ProfileError, chosen, stack
from tracker.profiles.go_regexp import GoRegexpError, compiled
from tracker.profiles.host import IP, Address, Host, Link, family_of, global_unicast
from tracker.profiles.reach import source_towards

_VERSION = {IPV4: "", "ipv6": "v6 "}


def default_interface(host: Host, family: str) -> Link:
    """The link of the first default route of table main. Raises ProfileError."""
    version = _VERSION[family]
    for route in host.routes:
        if route.family != family or not route.default or not route.main:
            continue
        link = host.link(route.oif)
        if link is None:
            raise ProfileError(f"Found default {version}route but could not determine interface")
        return link
    raise ProfileError(f"Unable to find default {version}route")


def addresses(host: Host, link: Link, family: str) -> list[Address]:
    """What it may use of a link, best first; kernel order among equals."""
    usable = [
        address
        for address in host.on(link, family)
        if not address.deprecated and (global_unicast(address.ip) or address.ip.is_link_local)
    ]
    return sorted(usable, key=lambda a: (a.ip.is_link_local, not a.permanent, a.secondary))


def _first(host: Host, link: Link, family: str) -> IP:
    found = addresses(host, link, family)
    if not found:
        version = "IPv4" if family == IPV4 else "IPv6"
        raise ProfileError(f"failed to find {version} address for interface {link.name}")
    return found[0].ip


def choose(host: Host, options: Options) -> Choice:
    """One interface for all families."""
    families = stack(host, options)
    ips: list[IP] = []
    if "iface" in options:
        link, reason, ips = _named(host, options.text("iface"))
    elif "iface-regex" in options:
        link, reason, ips = _matching(host, options, families)
    elif "iface-can-reach" in options:
        target = options.address("iface-can-reach")
        ips = [source_towards(host, target)]
        link, reason = _holding(host, ips[0]), f"--iface-can-reach {target}"
    else:
        link = default_interface(host, families[0])
        if families == FAMILIES and (other := default_interface(host, families[1])) != link:
            raise ProfileError(
                f"v6 default route interface {other.name} must be the same with v4 default "
                f"route interface {link.name}"
            )
        reason = "interface of the first default route"
    known = {family_of(ip) for ip in ips}
    ips += [_first(host, link, family) for family in families if family not in known]
    return chosen(*ips, reason=f"{link.name}: {reason}", only_given=True)


def _named(host: Host, name: str) -> tuple[Link, str, list[IP]]:
    try:
        ip = ip_address(name)
    except ValueError:
        link = host.link_named(name)
        if link is None:
            raise ProfileError(f"error looking up interface {name}: no such interface") from None
        return link, "--iface", []
    return _holding(host, ip), "--iface", [ip]


def _holding(host: Host, ip: IP) -> Link:
    address = host.holds(ip)
    link = host.link(address.ifindex) if address else None
    if link is None:
        raise ProfileError("No interface with given IP found")
    return link


def _matching(
    host: Host, options: Options, families: tuple[str, ...]
) -> tuple[Link, str, list[IP]]:
    """The first link whose addresses match, else the first whose name does."""
    text = options.text("iface-regex")
    try:
        pattern = compiled(text)
    except GoRegexpError as error:
        raise ProfileError(f"could not compile the IP address regex: {error}") from None
    for link in host.links:
        found = [
            next((a.ip for a in addresses(host, link, f) if pattern.search(str(a.ip))), None)
            for f in families
        ]
        ips = [ip for ip in found if ip is not None]
        if len(ips) == len(families):
            return link, "--iface-regex matches its addresses", ips
    for link in host.links:
        if pattern.search(link.name):
            return link, "--iface-regex matches its name", []
    raise ProfileError(f"Could not match pattern {text} to any of the available interfaces")


PROFILES = {
    "flannel": Profile(
        choose,
        {
            **STACK,
            "iface": "--iface: an interface or an address",
            "iface-regex": "--iface-regex",
            "iface-can-reach": "--iface-can-reach: an address",
        },
    )
}
