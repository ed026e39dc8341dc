"""kube-vip: the interface that it puts virtual addresses on.

Follows kube-vip/kube-vip pkg/vip/util.go at bee5cfe4.
"""

from __future__ import annotations

from tracker.model import FAMILIES
from tracker.profiles.choice import Choice, Options, Profile, ProfileError, chosen
from tracker.profiles.host import Host, Link


def default_interface(host: Host) -> Link:
    """The first default route, IPv4 before IPv6; of several nexthops the first with a link."""
    for family in FAMILIES:
        for route in host.routes:
            if route.family != family or not route.default or not route.main:
                continue
            indexes = [route.oif, *(hop.oif for hop in route.hops)]
            link = host.link(next((index for index in indexes if index), 0))
            if link is None:
                raise ProfileError("Found default route but could not determine interface")
            return link
    raise ProfileError("Unable to find default route")


def choose(host: Host, options: Options) -> Choice:
    """Its own addresses on that interface: the first of each family that is not link-local."""
    name = options.text("interface")
    link = host.link_named(name) if name else default_interface(host)
    if link is None:
        raise ProfileError(f"{name}: no such network interface")
    usable = (a.ip for a in host.all_on(link) if not a.ip.is_link_local)
    return chosen(
        *usable,
        reason=f"{link.name}: {'vip_interface' if name else 'first default route'}",
        error=f"{link.name} has no address",
        only_given=True,
    )


PROFILES = {"kube-vip": Profile(choose, {"interface": "vip_interface"})}
