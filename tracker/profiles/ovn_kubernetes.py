"""OVN-Kubernetes: the gateway interface of a node.

Follows ovn-org/ovn-kubernetes go-controller/pkg/node/helper_linux.go at 6c366bb4
(getDefaultGatewayInterfaceDetails).
"""

from __future__ import annotations

from tracker.profiles.choice import STACK, Choice, Options, Profile, ProfileError, chosen, stack
from tracker.profiles.host import Host, Link, Route, same_family


def gateway_interface(host: Host, family: str, wanted: Link | None = None) -> Link | None:
    """The link of the first default route that has a gateway, None without one.

    `wanted`: the interface that was named; routes with several nexthops count if all are on it.
    """
    for route in host.routes:
        if route.family != family or not route.default or not route.main:
            continue
        if wanted is not None and not _is_over(route, wanted):
            continue
        ways = [(hop.oif, hop.gateway) for hop in route.hops] or [(route.oif, route.gateway)]
        for oif, gateway in ways:
            link = host.link(oif)
            if link is not None and same_family(gateway, family) is not None:
                return link
    return None


def _is_over(route: Route, link: Link) -> bool:
    if route.oif:
        return route.oif == link.ifindex
    return bool(route.hops) and all(hop.oif == link.ifindex for hop in route.hops)


def choose(host: Host, options: Options) -> Choice:
    """The first address of each family on the gateway interface that is not link-local."""
    wanted = None
    if name := options.text("gateway-interface"):
        wanted = host.link_named(name)
        if wanted is None:
            raise ProfileError(f'error looking up gw interface: "{name}"')
    families = stack(host, options)
    found = [link for f in families if (link := gateway_interface(host, f, wanted)) is not None]
    if not found:
        raise ProfileError("no default gateway interface found")
    if len(set(found)) > 1:
        names = " ".join(f"'{link.name}'" for link in found)
        raise ProfileError(f"multiple gateway interfaces detected: {names}")
    link = found[0]
    usable = (a.ip for f in families for a in host.on(link, f) if not a.ip.is_link_local)
    return chosen(
        *usable,
        reason=f"{link.name}: gateway interface, first default route with a gateway",
        error=f"gateway interface {link.name} has no address",
        only_given=True,
    )


PROFILES = {
    "ovn-kubernetes": Profile(
        choose, {**STACK, "gateway-interface": "gateway.interface: the interface to use"}
    )
}
