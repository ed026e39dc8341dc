"""Why an address is no candidate, judged by itself (docs/engine.md section 5, rule 1)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from tracker.capture.record import Addr, Link
from tracker.engine.reference_state import IFF_LOOPBACK, IFF_UP
from tracker.model import AF_INET, AF_INET6, FAMILY_OF, Fallback, Network, PolicyTable, Reject

IFA_F_OPTIMISTIC = 0x04
IFA_F_DADFAILED = 0x08
IFA_F_TENTATIVE = 0x40

SWITCHES = ("bridge", "openvswitch")
"""Kinds of links whose ports have no addresses of their own."""


def _network(family: int, prefixlen: int, *head: int) -> Network:
    length = 4 if family == AF_INET else 16
    return Network(family, prefixlen, bytes(head).ljust(length, b"\0"))


RANGES = (
    (Reject.UNSPECIFIED, _network(AF_INET, 32)),  # RFC 1122
    (Reject.UNSPECIFIED, _network(AF_INET6, 128)),  # RFC 4291
    (Reject.LOOPBACK, _network(AF_INET, 8, 127)),  # RFC 1122
    (Reject.LOOPBACK, Network(AF_INET6, 128, bytes(15) + b"\1")),  # RFC 4291
    (Reject.LINK_LOCAL, _network(AF_INET, 16, 169, 254)),  # RFC 3927
    (Reject.LINK_LOCAL, _network(AF_INET6, 10, 0xFE, 0x80)),  # RFC 4291
    (Reject.MULTICAST, _network(AF_INET, 4, 224)),  # RFC 1112
    (Reject.MULTICAST, _network(AF_INET6, 8, 0xFF)),  # RFC 4291
    (Reject.RESERVED, _network(AF_INET, 29, 192)),  # RFC 7335: the CLAT of 464XLAT
)


class Site(NamedTuple):
    """The link of an address as the filters see it."""

    link: Link | None
    """None: not known."""
    master: Link | None


def contains(network: Network, family: int, address: bytes) -> bool:
    """Whether a packed address lies in a network."""
    if network.family != family:
        return False
    shift = len(address) * 8 - network.prefixlen
    inside = int.from_bytes(address, "big") >> shift
    return inside == int.from_bytes(network.address, "big") >> shift


def own_reject(addr: Addr, site: Site, policy: PolicyTable, *, named: bool) -> Reject:
    """The first filter that rejects an address, in the order of Reject.

    `named`: a default route has it as prefsrc.
    """
    if FAMILY_OF[addr.family] not in policy.families:
        return Reject.FAMILY_NOT_WANTED
    for reject, network in RANGES:
        if contains(network, addr.family, addr.local):
            return reject
    if addr.flags & IFA_F_DADFAILED:
        return Reject.DAD_FAILED
    if addr.flags & IFA_F_TENTATIVE and not addr.flags & IFA_F_OPTIMISTIC:
        return Reject.TENTATIVE
    if site.link is None or not site.link.flags & IFF_UP:
        return Reject.LINK_DOWN
    excluded = _excluded_by_address(addr, policy)
    if excluded is not Reject.NONE:
        return excluded
    if _vrf_table(site.link, site.master) not in (0, policy.table):
        return Reject.OTHER_VRF
    if not named and is_excluded(site.link, site.master, policy):
        return Reject.EXCLUDED_INTERFACE
    return Reject.NONE


def _excluded_by_address(addr: Addr, policy: PolicyTable) -> Reject:
    """Host length is an address (a VIP), anything shorter a network."""
    host = len(addr.local) * 8
    matches = [net for net in policy.exclude if contains(net, addr.family, addr.local)]
    if any(network.prefixlen == host for network in matches):
        return Reject.EXCLUDED_ADDRESS
    return Reject.EXCLUDED_NETWORK if matches else Reject.NONE


def _vrf_table(link: Link, master: Link | None) -> int:
    """Table of the VRF that a link is or belongs to, 0 = none."""
    if link.kind == "vrf":
        return link.vrf_table
    return master.vrf_table if master is not None and master.kind == "vrf" else 0


def is_excluded(link: Link, master: Link | None, policy: PolicyTable) -> bool:
    """Whether the policy excludes an interface by its name, its kind or its master."""
    if link.flags & IFF_LOOPBACK or is_fallback_interface(link, policy):
        return False
    if _matches(link.name, policy.keep_names):
        return False
    port = link.kind == "veth" and master is not None and master.kind in SWITCHES
    return port or link.kind in policy.exclude_kinds or _matches(link.name, policy.exclude_names)


def is_fallback_interface(link: Link, policy: PolicyTable) -> bool:
    """Whether the fallback names this interface."""
    by_name = policy.fallback is Fallback.INTERFACE
    return by_name and fnmatchcase(link.name, policy.fallback_name)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
