"""A router: sends advertisements (RFC 4861 section 4.2) from a namespace."""

from __future__ import annotations

import socket
import struct

from tests.netns.namespace import Namespace

_ROUTER_ADVERTISEMENT = 134


class Router:
    """Has a link-local address on a link and speaks to all nodes there."""

    def __init__(self, namespace: Namespace, link: str, address: str) -> None:
        namespace.ip(f"address add {address}/64 dev {link} nodad")
        with namespace.entered():
            self._ifindex = socket.if_nametoindex(link)
            self._socket = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, self._ifindex)
        self._socket.bind((address, 0, 0, self._ifindex))

    def advertise(self, lifetime: int, preference: int = 0) -> None:
        """Lifetime of the default route in seconds; preference as in RFC 4191 section 2.1."""
        head = (_ROUTER_ADVERTISEMENT, 0, 0, 64, preference << 3, lifetime, 0, 0)
        message = struct.pack("!BBHBBHII", *head)
        self._socket.sendto(message, ("ff02::1", 0, 0, self._ifindex))

    def close(self) -> None:
        self._socket.close()
