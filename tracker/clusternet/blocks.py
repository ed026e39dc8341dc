"""Blocks with a meaning of their own: private, unique local, unusable, public."""

from __future__ import annotations

from ipaddress import IPv6Network, ip_network

from tracker.clusternet.ranges import IPNetwork, inside, left


def _blocks(*texts: str) -> tuple[IPNetwork, ...]:
    return tuple(ip_network(text) for text in texts)


PRIVATE = _blocks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
"""RFC 1918."""
ULA = IPv6Network("fc00::/7")
"""RFC 4193."""
ULA_LOCAL = IPv6Network("fd00::/8")
"""The half of it that may be used: the L bit is set (RFC 4193 section 3.1)."""
GLOBAL_UNICAST = IPv6Network("2000::/3")
"""What IANA gives out (RFC 4291 section 2.4, IANA's IPv6 address space registry)."""
CLAT = _blocks("192.0.0.0/29")[0]
"""RFC 7335: the IPv4 addresses of a CLAT."""

UNUSABLE = _blocks(
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "::/127",
    "::ffff:0.0.0.0/96",
    "fe80::/10",
    "ff00::/8",
)
"""Addresses that no host can be reached at, or on its own link alone."""

# IANA's special-purpose address registries (RFC 6890), what is not globally reachable.
_NOT_PUBLIC = _blocks(
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
    "::/3",
    "4000::/2",
    "8000::/1",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
)


def public(network: IPNetwork) -> list[IPNetwork]:
    """The parts of a network that are public address space."""
    return left(network, _NOT_PUBLIC)


def ipv6_kind(network: IPNetwork) -> str:
    """ "ula", "global" or "" for what is neither, IPv4 included."""
    if inside(network, ULA):
        return "ula"
    return "global" if inside(network, GLOBAL_UNICAST) else ""
