"""Makes room for large entries in the answer to the first request of a netlink socket."""

from __future__ import annotations

import contextlib
import socket
import struct

READ_BYTES = 1 << 17
"""More than the kernel ever puts into one datagram."""

_NOOP = struct.pack("=IHHII", 16, 1, 0x5, 0, 0)
"""NLMSG_NOOP with NLM_F_REQUEST and NLM_F_ACK."""


def prime(sock: socket.socket) -> None:
    """Read something small with a large buffer before the socket is asked for a dump.

    The kernel makes each part of an answer as large as the largest buffer that a socket was read
    with, and the first one before any read: in 4 KiB then, where a route over 240 gateways does
    not fit, and what does not fit ends a dump as if it were complete.
    """
    sock.sendto(_NOOP, (0, 0))
    with contextlib.suppress(BlockingIOError):  # it may be no Linux kernel that answers
        sock.recv(READ_BYTES, socket.MSG_DONTWAIT)
