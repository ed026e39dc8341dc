"""Looks for NAT64 prefixes that no route tells: DNS64 and router advertisements."""

from __future__ import annotations

import socket
import struct
import threading
import time
from ipaddress import IPv6Address

from tracker.clusternet.nat64 import DNS64_NAME, Prefix, dns64_prefix, options, pref64_option

DNS_WITHIN = 5.0
"""Seconds that a resolver has for its answer."""

_RTNLGRP_ND_USEROPT = 20
_RTM_NEWNDUSEROPT = 68
_NLMSGHDR = struct.Struct("=IHHII")
_NDUSEROPTMSG = struct.Struct("=BxHiBB6x")
"""Family, bytes of options, ifindex, ICMPv6 type and code."""
_MESSAGE_MOST = 1 << 16
_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP = 270, 1


def dns64() -> list[Prefix]:
    """The prefixes that the resolvers of this host make addresses of (RFC 7050)."""
    answers: list[str] = []

    def ask() -> None:
        try:
            found = socket.getaddrinfo(
                DNS64_NAME, None, family=socket.AF_INET6, type=socket.SOCK_DGRAM
            )
        except OSError:
            return
        answers.extend(str(entry[4][0]) for entry in found)

    # A resolver that does not answer must not hold up the rest; there is no way to cancel it.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(DNS_WITHIN)
    prefixes = (dns64_prefix(IPv6Address(answer)) for answer in list(answers))
    named = (Prefix(prefix, "DNS64") for prefix in prefixes if prefix is not None)
    return list(dict.fromkeys(named))


def pref64(seconds: float) -> list[Prefix]:
    """The prefixes of the first router advertisement with PREF64 (RFC 8781) that comes in time.

    The kernel hands such options to whoever listens and keeps none, so there is nothing to ask.
    """
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as listening:
        # A socket without a port of its own would count as the sender, and be passed over.
        listening.bind((0, 0))
        listening.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, _RTNLGRP_ND_USEROPT)
        while (left := deadline - time.monotonic()) > 0:
            listening.settimeout(left)
            try:
                found = pref64_message(listening.recv(_MESSAGE_MOST))
            except OSError:  # out of time, or messages were lost: the next one will do
                continue
            if found:
                return found
    return []


def pref64_message(raw: bytes) -> list[Prefix]:
    """The prefixes in one message of rtnetlink."""
    head = _NLMSGHDR.size + _NDUSEROPTMSG.size
    if len(raw) < head or _NLMSGHDR.unpack_from(raw)[1] != _RTM_NEWNDUSEROPT:
        return []
    _, length, ifindex, _, _ = _NDUSEROPTMSG.unpack_from(raw, _NLMSGHDR.size)
    try:
        source = f"router advertisement on {socket.if_indextoname(ifindex)}"
    except OSError:
        source = "router advertisement"
    found = map(pref64_option, options(raw[head : head + length]))
    return [Prefix(prefix, source) for prefix in found if prefix is not None]
