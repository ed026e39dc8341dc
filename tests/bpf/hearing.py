"""What the kernel announces, as a socket without a filter hears it."""

from __future__ import annotations

import socket
import struct

_SOL_NETLINK = 270
_ADD_MEMBERSHIP = 1
_SO_ATTACH_BPF = 50
GROUPS = (1, 5, 7, 8, 9, 11, 19, 32)
"""RTNLGRP_LINK, of addresses, routes and rules in both families, RTNLGRP_NEXTHOP."""
RCVBUF = 8 << 20


class Hearing(socket.socket):
    """A socket of all groups that we follow, in the namespace of the calling thread."""

    def __init__(self, program: int = -1) -> None:
        super().__init__(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.setblocking(False)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RCVBUF)
        if program >= 0:
            self.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, struct.pack("=i", program))
        self.bind((0, 0))
        for group in GROUPS:
            self.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, struct.pack("=i", group))

    def messages(self) -> list[bytes]:
        """All that is queued."""
        found = []
        while True:
            try:
                found.append(self.recv(1 << 16))
            except BlockingIOError:
                return found
