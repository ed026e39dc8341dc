"""Makes a host of records: of a file's state, or of what an engine knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from tracker.capture import record
from tracker.capture.standin import StandIn
from tracker.model import AF_INET, FAMILY_OF
from tracker.profiles.host import IP, Address, Hop, Host, Link, Nexthop, Route

Labels = Mapping[tuple[int, bytes, int], str]
"""By ifindex, address and prefix length."""


def from_kernel(kernel: StandIn, labels: Iterable[tuple[record.Addr, str]], hostname: str) -> Host:
    """The state of a file after its last event; it is in the order of the kernel."""
    known = {(a.ifindex, a.local, a.prefixlen): label for a, label in labels}
    return _host(
        kernel.links.values(), kernel.addresses, kernel.routes, kernel.nexthops.values(),
        labels=known, hostname=hostname,
    )  # fmt: skip


def from_snapshot(raw: bytes, hostname: str) -> Host:
    """What an engine knows: in no order, so addresses are put into it by their age.

    It has default routes alone, and neither labels nor whether a route with one nexthop was shown
    as one with several.
    """
    payloads = [entry.payload for entry in record.iter_records(raw)]
    addresses = [p for p in payloads if isinstance(p, record.Addr)]
    return _host(
        [p for p in payloads if isinstance(p, record.Link)],
        sorted(addresses, key=_by_age),
        [p for p in payloads if isinstance(p, record.Route)],
        [p for p in payloads if isinstance(p, record.Nexthop)],
        labels={},
        hostname=hostname,
    )


def _by_age(address: record.Addr) -> tuple[bool, int]:
    """IPv4: oldest first, secondary ones last. IPv6: newest first."""
    if address.family == AF_INET:
        return bool(address.flags & 1), address.cstamp
    return False, -address.cstamp


def _host(
    links: Iterable[record.Link],
    addresses: Iterable[record.Addr],
    routes: Iterable[record.Route],
    nexthops: Iterable[record.Nexthop],
    *,
    labels: Labels,
    hostname: str,
) -> Host:
    return Host(
        sorted(map(link, links), key=lambda entry: entry.ifindex),
        [address(a, labels.get((a.ifindex, a.local, a.prefixlen), "")) for a in addresses],
        list(map(_route, routes)),
        map(nexthop, nexthops),
        hostname=hostname,
    )


def link(p: record.Link) -> Link:
    """A link."""
    return Link(p.ifindex, p.name, p.flags, p.kind, p.master, p.operstate, p.type)


def address(p: record.Addr, label: str = "") -> Address:
    """An address."""
    peer = ip_address(p.peer) if p.peer else None
    ip = ip_address(p.local)
    return Address(p.ifindex, ip, p.prefixlen, p.flags, p.scope, label, p.preferred, peer)


def nexthop(p: record.Nexthop) -> Nexthop:
    """A nexthop object."""
    hop = Hop(p.oif, _ip(p.gw), p.flags)
    return Nexthop(p.id, hop, tuple(member.id for member in p.members))


def _route(p: record.Route) -> Route:
    shown = route(p)
    if len(p.legs) > 1:
        return shown._replace(hops=hops(p), flags=p.rtm_flags)
    for leg in p.legs:
        return shown._replace(oif=leg.oif, gateway=_ip(leg.gw), flags=p.rtm_flags | leg.flags)
    return shown


def route(p: record.Route) -> Route:
    """A route without its ways."""
    length = 4 if p.family == AF_INET else 16
    return Route(
        FAMILY_OF[p.family],
        ip_address(p.dst or bytes(length)),
        p.dst_len,
        p.table,
        p.metric,
        nhid=p.nh_id,
        protocol=p.proto,
        type=p.type,
        scope=p.scope,
        prefsrc=_ip(p.prefsrc),
        flags=p.rtm_flags,
    )


def hops(p: record.Route) -> tuple[Hop, ...]:
    """The ways of a route."""
    return tuple(Hop(leg.oif, _ip(leg.gw), leg.flags) for leg in p.legs)


def _ip(packed: bytes) -> IP | None:
    return ip_address(packed) if packed else None
