"""Prefixes that stand for IPv4 addresses in IPv6 (RFC 6052), and how they are found out."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import NamedTuple

WELL_KNOWN = IPv6Network("64:ff9b::/96")
"""RFC 6052 section 2.1."""
LOCAL_USE = IPv6Network("64:ff9b:1::/48")
"""RFC 8215: for several translators, and for private IPv4 addresses."""
LENGTHS = (32, 40, 48, 56, 64, 96)
"""Prefix lengths that RFC 6052 section 2.2 allows."""
DNS64_NAME = "ipv4only.arpa"
"""RFC 7050: has no IPv6 address, so one that comes was made by a DNS64."""
_DNS64_ADDRESSES = (IPv4Address("192.0.0.170"), IPv4Address("192.0.0.171"))

OPTION_PREF64 = 38
"""RFC 8781, in router advertisements."""
_PREF64_LENGTHS = (96, 64, 56, 48, 40, 32)
"""By the 3-bit code of its section 4."""


class Prefix(NamedTuple):
    """A prefix through which IPv4 can be reached."""

    network: IPv6Network
    source: str
    """How it was noticed, for people."""


def embed(prefix: IPv6Network, address: IPv4Address) -> IPv6Address:
    """The IPv6 address that stands for an IPv4 one: bits 64 to 71 stay zero (section 2.2)."""
    head = bytearray(prefix.network_address.packed)
    for position, byte in zip(_positions(prefix.prefixlen), address.packed, strict=True):
        head[position] = byte
    return IPv6Address(bytes(head))


def _positions(length: int) -> list[int]:
    """Where the four bytes of the IPv4 address are."""
    start = length // 8
    return [position for position in range(start, start + 5) if position != 8][:4]


def dns64_prefix(answer: IPv6Address) -> IPv6Network | None:
    """The prefix that made an answer for DNS64_NAME (RFC 7050 section 3); None = it made none."""
    for length in reversed(LENGTHS):
        prefix = IPv6Network((int(answer) >> 128 - length << 128 - length, length))
        if any(embed(prefix, known) == answer for known in _DNS64_ADDRESSES):
            return prefix
    return None


def pref64_option(option: bytes) -> IPv6Network | None:
    """The prefix of a PREF64 option (RFC 8781 section 4); None = another or a broken one, or one
    that says that the prefix is gone (lifetime 0).
    """
    if len(option) < 16 or option[0] != OPTION_PREF64 or option[1] != 2:
        return None
    scaled = int.from_bytes(option[2:4], "big")
    lifetime, code = scaled >> 3, scaled & 7
    if not lifetime or code >= len(_PREF64_LENGTHS):
        return None
    length = _PREF64_LENGTHS[code]
    value = int.from_bytes(option[4:16] + bytes(4), "big")
    return IPv6Network((value >> 128 - length << 128 - length, length))


def options(raw: bytes) -> list[bytes]:
    """The neighbour discovery options in `raw`, each with its head (RFC 4861 section 4.6)."""
    found = []
    while len(raw) >= 8 and raw[1] and len(raw) >= raw[1] * 8:
        found.append(raw[: raw[1] * 8])
        raw = raw[raw[1] * 8 :]
    return found


def is_clat(interface: str, address: str | None) -> bool:
    """Whether a link or an address on it is that of a CLAT (RFC 6877): by the usual names, or by
    the range that RFC 7335 sets apart.
    """
    by_name = interface == "clat" or interface.startswith("v4-")
    return by_name or (address is not None and _in_clat_range(address))


def _in_clat_range(address: str) -> bool:
    return ":" not in address and int(IPv4Address(address)) >> 3 == 192 << 21
