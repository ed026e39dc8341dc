"""The default that was proposed with KEP-1664: detection by default route, as the kubelet should.

Follows kubernetes/enhancements pull 1665 (53735797, provisional, never merged) and the rule in its
discussion: the first IP that is neither secondary nor deprecated on the NIC of the lowest ifindex
that has a default route which no other default route outranks. What it leaves open is decided
here: families apart, table main, every nexthop counts, links that are up, no tentative addresses,
then the next link, metric, and at last lo.
"""

from __future__ import annotations

from typing import NamedTuple

from tracker.capture.names import SCOPE_GLOBAL
from tracker.model import FAMILIES
from tracker.profiles.choice import Choice, Options, Profile, chosen
from tracker.profiles.host import IP, Address, Host, Link, Route, global_unicast


class _Found(NamedTuple):
    ip: IP
    reason: str


def choose(host: Host, options: Options) -> Choice:
    """Each family by itself."""
    vips = frozenset(options.addresses("vips"))
    found = [answer for family in FAMILIES if (answer := detect(host, family, vips))]
    reason = "; ".join(dict.fromkeys(answer.reason for answer in found))
    return chosen(*(answer.ip for answer in found), reason=reason, error="no default route has one")


def detect(host: Host, family: str, vips: frozenset[IP] = frozenset()) -> _Found | None:
    """The answer for one family."""
    routes = [r for r in host.routes if r.family == family and r.default and r.main and r.unicast]
    for metric in sorted({route.metric for route in routes}):
        for link in _links(host, [route for route in routes if route.metric == metric]):
            if address := _first(host, link, family, vips):
                which = f"lowest ifindex with a default route of metric {metric}"
                return _Found(address.ip, f"{link.name} ({link.ifindex}): {which}")
    for link in host.links if routes else ():
        if link.loopback and link.up and (address := _first(host, link, family, vips)):
            return _Found(address.ip, f"{link.name}: no link with a default route has an address")
    return None


def _links(host: Host, routes: list[Route]) -> list[Link]:
    """Links of all nexthops that can be used, by ifindex."""
    hops = {hop.oif for route in routes for hop in host.hops(route) if hop.usable}
    links = (host.link(ifindex) for ifindex in sorted(hops))
    return [link for link in links if link is not None and link.up]


def _first(host: Host, link: Link, family: str, vips: frozenset[IP]) -> Address | None:
    for address in host.on(link, family):
        if address.scope != SCOPE_GLOBAL or not global_unicast(address.ip):
            continue
        if address.secondary or address.deprecated or address.tentative or address.ip in vips:
            continue
        return address
    return None


PROFILES = {"kep1664": Profile(choose, {"vips": "addresses that are never the node's"})}
