"""Reads this host once, in the order of the kernel's dumps.

The records of our own sources lack what profiles need (labels, all routes, how a route was
shown), and pyroute2 takes half a second for a thousand addresses.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import cache
from ipaddress import ip_address

from tracker.capture.priming import READ_BYTES, prime
from tracker.errors import DumpError, NotPermittedError
from tracker.model import AF_INET, AF_INET6
from tracker.profiles import messages, procnet
from tracker.profiles.host import IP, Host
from tracker.profiles.messages import T

RESOLVE_WITHIN = 0.4
"""Seconds for the name service to answer; the kubelet waits longer, a person does not."""

_GETLINK, _GETADDR, _GETROUTE, _GETNEXTHOP = 18, 22, 26, 106
_FLAGS = 0x301
"""NLM_F_REQUEST, NLM_F_DUMP."""
_DUMP_INTR = 0x10
_ERROR, _DONE = 2, 3
_ATTEMPTS = 5
_WITHIN = 5.0
"""Seconds; the kernel answers while we ask."""
_HEAD = struct.Struct("=IHHII")
_ANY_PORT = 80


class Resolver:
    """Asks the name service for the host's own name, while other things are read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._until = time.monotonic() + RESOLVE_WITHIN
        self._found: tuple[IP, ...] | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            infos = socket.getaddrinfo(self._name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            self._found = ()
        else:
            texts = (str(info[4][0]) for info in infos)
            self._found = tuple(dict.fromkeys(ip_address(t) for t in texts if "%" not in t))

    def answer(self) -> tuple[IP, ...] | None:
        """Its addresses; None if there is no answer in time."""
        self._thread.join(max(0, self._until - time.monotonic()))
        return self._found


def read(hostname: str, resolver: Resolver) -> Host:
    """The network namespace of the calling thread. Raises NotPermittedError, DumpError."""
    links = _dump("links", _GETLINK, 0, 16, messages.link)
    ipv4 = _dump("IPv4 addresses", _GETADDR, AF_INET, 8, messages.address)
    ipv6 = _dump("IPv6 addresses", _GETADDR, AF_INET6, 8, messages.address, optional=True)
    nexthops = _dump("nexthops", _GETNEXTHOP, 0, 8, messages.nexthop, optional=True)
    routes4 = _dump("IPv4 routes", _GETROUTE, AF_INET, 12, messages.route)
    routes6 = _dump("IPv6 routes", _GETROUTE, AF_INET6, 12, messages.route, optional=True)
    return Host(
        links,
        ipv4 + ipv6,
        routes4 + routes6,
        nexthops,
        hostname=hostname,
        resolved=resolver.answer(),
        source_for=source_for,
        default_rows=cache(procnet.read_files),
    )


def source_for(target: IP) -> IP | None:
    """The source that the kernel would use, as connecting a UDP socket tells; nothing is sent."""
    family = socket.AF_INET if target.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((str(target), _ANY_PORT))
        except OSError:
            return None
        return ip_address(sock.getsockname()[0])


def _dump(
    what: str,
    kind: int,
    family: int,
    size: int,
    decode: Callable[[bytes], T | None],
    *,
    optional: bool = False,
) -> list[T]:
    """All entries of a kind; `size` is that of the structure that a request begins with.

    `optional`: a kernel may be built without it, and then there are none.
    """
    request = _HEAD.pack(_HEAD.size + size, kind, _FLAGS, 1, 0) + bytes([family]) + bytes(size - 1)
    for _ in range(_ATTEMPTS):
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
                sock.settimeout(_WITHIN)
                prime(sock)
                sock.send(request)
                entries, interrupted, error = _answer(sock, decode)
        except PermissionError as failed:
            raise NotPermittedError(f"cannot open a netlink socket: {failed.strerror}") from None
        except OSError as failed:
            reason = failed.strerror or "no answer"
            raise DumpError(f"{what} cannot be read from the kernel: {reason}") from None
        if error and not optional:
            raise DumpError(f"{what} cannot be read from the kernel: {os.strerror(error)}")
        if not interrupted:
            return entries
    raise DumpError(f"{what} cannot be read from the kernel: they changed each time")


def _answer(sock: socket.socket, decode: Callable[[bytes], T | None]) -> tuple[list[T], bool, int]:
    """The entries, whether they changed meanwhile, and an error number."""
    entries: list[T] = []
    interrupted = False
    while True:
        data = sock.recv(READ_BYTES)
        offset = 0
        while len(data) - offset >= _HEAD.size:
            length, kind, flags, _, _ = _HEAD.unpack_from(data, offset)
            interrupted |= bool(flags & _DUMP_INTR)
            body = data[offset + _HEAD.size : offset + length]
            if kind in (_ERROR, _DONE):
                number = struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
                return entries, interrupted, max(0, -number)
            entry = decode(body)
            if entry is not None:
                entries.append(entry)
            offset += (length + 3) & ~3
