"""What tests of the netlink source tell it, and what it made of that."""

from __future__ import annotations

from tests.netlink_bytes import encode
from tests.unit.netlink_hooks import MAIN, entry
from tracker.capture.payload import F_DUMP, Addr, Dump, Header, Op, Payload, Phase, Record, Route


def addr(last: int, ifindex: int = 7) -> Addr:
    return Addr(2, ifindex, bytes([192, 0, 2, last]), 24)


def addr6(last: int) -> Addr:
    return Addr(10, 7, bytes([0x20, 1, 0xD, 0xB8, *[0] * 11, last]), 64)


def route(
    dst: bytes = b"", dst_len: int = 0, table: int = MAIN, metric: int = 0, family: int = 2
) -> Route:
    return Route(family, table, metric, dst_len, dst, proto=3)


def told(payload: Payload, op: Op = Op.NEW) -> bytes:
    """A message about it."""
    return encode(Record(Header(op), payload))


def shown(payload: Payload, flags: int = 0) -> bytes:
    """The same as part of a dump."""
    return entry(told(payload), flags)


def phases(records: list[Record]) -> list[Phase]:
    return [record.payload.phase for record in records if isinstance(record.payload, Dump)]


def entries(records: list[Record]) -> list[Payload]:
    return [record.payload for record in records if record.header.flags & F_DUMP]


def events(records: list[Record]) -> list[Payload]:
    return [
        record.payload
        for record in records
        if not record.header.flags & F_DUMP and not isinstance(record.payload, Dump)
    ]
