"""Detection of an address by default routes, which the kubelet and k3s share.

Follows kubernetes/apimachinery pkg/util/net/interface.go at
eed236ceee2c19c2753a3d93ac0631dc20750454 (ResolveBindAddress, chooseHostInterface).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracker.model import FAMILIES, IPV4
from tracker.profiles.choice import ProfileError
from tracker.profiles.host import IP, Address, Host, Link, global_unicast
from tracker.profiles.procnet import DefaultRow, default_rows

FILES = {"ipv4": "/proc/net/route", "ipv6": "/proc/net/ipv6_route"}


class Found(NamedTuple):
    """An address and how it was found."""

    ip: IP
    reason: str


def order_of(family: str) -> tuple[str, ...]:
    """Both families, this one first."""
    return FAMILIES if family == IPV4 else FAMILIES[::-1]


def choose_host_interface(host: Host, order: Sequence[str]) -> Found:
    """As detection on a host with /proc/net/route does it. Raises ProfileError."""
    return from_routes(host, default_rows(host), order)


def from_routes(host: Host, rows: Sequence[DefaultRow], order: Sequence[str]) -> Found:
    """The first address on the interface of the first default route, or on lo (RFC 5549)."""
    if not rows:
        raise ProfileError(f"no default routes found in {' or '.join(FILES.values())}")
    for family in order:
        for row in (row for row in rows if row.family == family):
            link = host.link_named(row.interface)
            if link is None:
                # One row that cannot be looked up ends the whole detection.
                raise ProfileError(f"no such network interface: {row.interface}")
            via = f"default route over {link.name} in {FILES[family]}"
            if link.up and (address := _first(host, link, family)):
                return Found(address.ip, f"{via}: first global unicast address of {link.name}")
            for loopback in host.links:
                if not (loopback.loopback and loopback.up):
                    continue
                if address := _first(host, loopback, family):
                    return Found(address.ip, f"{via}: {link.name} has none, {loopback.name} has")
    raise ProfileError("unable to select an IP from default routes")


def from_interfaces(host: Host, order: Sequence[str]) -> Found:
    """Without /proc/net/route: the first address of the first ordinary link."""
    for family in order:
        for link in host.links:
            if not link.up or link.loopback or link.point_to_point:
                continue
            if address := _first(host, link, family):
                return Found(address.ip, f"first global unicast address, on {link.name}")
    raise ProfileError("no acceptable interface")


def _first(host: Host, link: Link, family: str) -> Address | None:
    """The first in kernel order, whatever its flags."""
    return next((a for a in host.on(link, family) if global_unicast(a.ip)), None)
