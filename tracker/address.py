"""Addresses and networks that people write, without the import cost of ipaddress."""

from __future__ import annotations

# The C part of socket alone: `socket` doubles the time in which Python starts.
from _socket import inet_ntop, inet_pton

from tracker.model import AF_INET, AF_INET6, FAMILY_OF, Network
from tracker.printable import quoted

_MAPPED = bytes(10) + b"\xff\xff"
"""::ffff:0:0/96, an IPv4 address in IPv6 clothes (RFC 4291 section 2.5.5.2)."""


def parse(text: str) -> bytes:
    """The packed address (4 or 16 bytes); an IPv4-mapped one is the IPv4 address it maps.

    Raises ValueError for anything else: host names, zones ("%eth0"), prefix lengths.
    """
    try:
        packed = inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    except (OSError, UnicodeError, ValueError):
        raise ValueError(f'"{quoted(text)}" is not an IP address') from None
    return packed[12:] if packed.startswith(_MAPPED) and len(packed) == 16 else packed


def text(packed: bytes) -> str:
    """The address as people write it (RFC 5952 for IPv6)."""
    return inet_ntop(_family(packed), packed)


def family_of(address: str) -> str:
    """The family ("ipv4", "ipv6") of an address in canonical text."""
    return FAMILY_OF[AF_INET6 if ":" in address else AF_INET]


def parse_network(text_: str) -> Network:
    """A network such as "10.0.0.0/8"; raises ValueError, also where host bits are set."""
    head, slash, tail = text_.partition("/")
    if not slash or not tail.isascii() or not tail.isdigit():
        raise ValueError(f'"{quoted(text_)}" is not a network')
    packed = parse(head)
    length = int(tail)
    if ":" in head and len(packed) == 4:
        length -= 96
    if not 0 <= length <= len(packed) * 8:
        raise ValueError(f'"{quoted(text_)}" has no such prefix length')
    network = Network(_family(packed), length, _masked(packed, length))
    if network.address != packed:
        raise ValueError(f'"{text_}" has host bits set; the network is {network_text(network)}')
    return network


def host_network(text_: str) -> Network:
    """One address as a network of host length; raises ValueError."""
    packed = parse(text_)
    return Network(_family(packed), len(packed) * 8, packed)


def network_text(network: Network) -> str:
    """For example "10.0.0.0/8"."""
    return f"{text(network.address)}/{network.prefixlen}"


def contains(network: Network, packed: bytes) -> bool:
    """Whether `packed` lies in `network`; an address of the other family does not."""
    if len(packed) != len(network.address):
        return False
    return _masked(packed, network.prefixlen) == network.address


def same_subnet(subnet: Network, packed: bytes) -> bool:
    """Whether `packed` lies in the subnet of an address, whose host bits are set."""
    length = subnet.prefixlen
    return len(packed) == len(subnet.address) and (
        _masked(packed, length) == _masked(subnet.address, length)
    )


def _family(packed: bytes) -> int:
    return AF_INET if len(packed) == 4 else AF_INET6


def _masked(packed: bytes, length: int) -> bytes:
    bits = len(packed) * 8
    mask = ((1 << length) - 1) << (bits - length)
    return (int.from_bytes(packed, "big") & mask).to_bytes(len(packed), "big")
