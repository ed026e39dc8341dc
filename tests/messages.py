"""Messages made by hand, byte by byte, for what encode() would never say."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.netlink_bytes import attributes, message

if TYPE_CHECKING:
    from tests.netlink_bytes import Attribute

V4 = 2
V6 = 10


def addr(pairs: list[Attribute], family: int = V4, prefixlen: int = 24, flags: int = 0) -> bytes:
    head = struct.pack("=BBBBI", family, prefixlen, flags, 0, 7)
    return message(20, head + attributes(pairs))


def link(pairs: list[Attribute], family: int = 0, kind: int = 16) -> bytes:
    head = struct.pack("=BxHIII", family, 1, 7, 0x1043, 0)
    return message(kind, head + attributes(pairs))


def route(
    pairs: list[Attribute],
    family: int = V4,
    *,
    table: int = 254,
    flags: int = 0,
    kind: int = 24,
    dst_len: int = 0,
    src_len: int = 0,
) -> bytes:
    head = struct.pack("=8BI", family, dst_len, src_len, 0, table, 3, 0, 1, flags)
    return message(kind, head + attributes(pairs))


def nexthop(pairs: list[Attribute], family: int = V4) -> bytes:
    return message(104, struct.pack("=BBBxI", family, 0, 4, 0) + attributes(pairs))


def rule(pairs: list[Attribute], family: int = V4, *, table: int = 0, action: int = 1) -> bytes:
    return message(32, struct.pack("=B3xB2xBI", family, table, action, 0) + attributes(pairs))
