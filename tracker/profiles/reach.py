"""Which source address the kernel would use towards a destination, where no kernel can be asked."""

from __future__ import annotations

from tracker.profiles.choice import ProfileError
from tracker.profiles.host import IP, Address, Host, Link, Route, covers, family_of


def source_towards(host: Host, target: IP) -> IP:
    """The kernel's answer if there is one to ask, else by table main. Raises ProfileError."""
    if host.source_for is not None:
        ip = host.source_for(target)
        if ip is None:
            raise ProfileError(f"{target}: network is unreachable")
        return ip
    route = _lookup(host, target)
    if route is None or not route.unicast:
        raise ProfileError(f"{target}: network is unreachable")
    if route.prefsrc is not None:
        return route.prefsrc
    hops = [hop for hop in host.hops(route) if hop.usable]
    if len({hop.oif for hop in hops}) > 1:
        names = ", ".join(host.name(hop.oif) for hop in hops)
        raise ProfileError(f"{target}: which of {names} is used depends on the kernel's flow hash")
    link = host.link(hops[0].oif) if hops else None
    if link is None:
        raise ProfileError(f"{target}: network is unreachable")
    return _source(host, link, target, hops[0].gateway or target)


def _lookup(host: Host, target: IP) -> Route | None:
    matching = [
        route
        for route in host.routes
        if route.main and covers(route.prefix, route.prefixlen, target) and _leads_on(host, route)
    ]
    return min(matching, key=lambda route: (-route.prefixlen, route.metric), default=None)


def _leads_on(host: Host, route: Route) -> bool:
    return not route.unicast or any(hop.usable for hop in host.hops(route))


def _source(host: Host, link: Link, target: IP, gateway: IP) -> IP:
    """A global address, one that shares the subnet of the gateway before others."""
    usable = [a for a in host.on(link, family_of(target)) if not a.tentative and a.scope < 253]

    def rank(address: Address) -> tuple[bool, bool]:
        apart = not covers(address.ip, address.prefixlen, gateway)
        return address.deprecated, apart

    if not usable:
        raise ProfileError(f"{target}: {link.name} has no address to send from")
    return min(usable, key=rank).ip
