"""What the parser says that the filter has to make of a message."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.bpf.program import KIND_RAW, policy, without_task
from tests.messages import V4
from tests.netlink_bytes import u32
from tracker.capture.netlink import parse
from tracker.capture.payload import Route
from tracker.capture.record import decode

if TYPE_CHECKING:
    from tests.bpf.program import Filter

TABLES = (254, 10, 1000)
TARGETS = (bytes([10, 1, 2, 3]), bytes([0x20, 1, 0xD, 0xB8, *[0] * 12]))
POLICY = policy(tables=TABLES, targets=TARGETS)
RTM_ROUTES = {24, 25}
RTA_DST, RTA_TABLE = 1, 15


def covers(p: Route, target: bytes) -> bool:
    if len(target) != (4 if p.family == V4 else 16):
        return False
    shift = len(target) * 8 - p.dst_len
    dst = p.dst.ljust(len(target), b"\0")
    return int.from_bytes(dst, "big") >> shift == int.from_bytes(target, "big") >> shift


def wanted(raw: bytes) -> bool | None:
    """Whether a policy wants what the parser makes of it; None = it is malformed."""
    try:
        parsed = parse(raw)
    except ValueError:
        return None
    if parsed is None:
        return False
    payload = decode(parsed).payload
    if not isinstance(payload, Route):
        return True
    if payload.dst_len == 0 and payload.table in TABLES:
        return True
    return any(covers(payload, target) for target in TARGETS)


def walk(raw: bytes, at: int) -> list[tuple[int, bytes]]:
    """Attributes as far as they can be read: type and all bytes of each."""
    found = []
    while at + 4 <= len(raw):
        length, kind = struct.unpack_from("=HH", raw, at)
        if length < 4 or at + length > len(raw):
            break
        found.append((kind & 0x3FFF, raw[at : at + length]))
        at += (length + 3) & ~3
    return found


def is_as_the_kernel_writes(raw: bytes) -> bool:
    """A route says its table and its destination once, early. Where it does not, the filter goes
    by what comes first, and the parser by what comes last."""
    if struct.unpack_from("=H", raw, 4)[0] not in RTM_ROUTES:
        return True
    found = [kind for kind, _ in walk(raw, 28)]
    return found.count(RTA_TABLE) <= 1 and found.count(RTA_DST) <= 1


def with_the_last_of_each(raw: bytes) -> bytes:
    """A link without those attributes that a later one replaces: the filter does not look at them,
    while the parser refuses them where they are too short."""
    found = walk(raw, 32)
    last = dict(found)
    body = b"".join(data + bytes(-len(data) % 4) for data in last.values())
    whole = sum((len(data) + 3) & ~3 for _, data in found)
    if len(last) == len(found) or 32 + whole < len(raw) - 3:
        return raw
    return u32(32 + len(body)) + raw[4:32] + body


def check(program: Filter, raw: bytes) -> None:
    """Feed it, and compare."""
    length, kind = struct.unpack_from("=IH", raw)
    if not 16 <= length <= len(raw) <= (length + 3) & ~3:
        assert program.feed(raw) == "lost"
        return
    program.forget()
    made = program.pass_on(raw)
    want = wanted(raw)
    if made is None:
        # Of a route that is none of ours by its header the rest is not looked at.
        assert want is False or (want is None and kind in RTM_ROUTES)
        return
    if made.kind == KIND_RAW:
        assert made.message == raw[:length]
        return
    assert without_task(made) == parse(with_the_last_of_each(raw), made.boot_ns)
