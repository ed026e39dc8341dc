"""The filter against the parser, over messages of any content, whole, mutated and cut.

What the parser makes something of that a policy wants is never dropped; what is handed over is
what came; and a record of a link is the parser's.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.bpf.program import KIND_RAW, Filter, policy, without_task
from tests.messages import V4, V6, link, route
from tests.netlink_bytes import attributes, encode, u32
from tests.strategies import NAMES, RECORDS, U8, U32
from tracker.capture.netlink import parse
from tracker.capture.payload import Route
from tracker.capture.record import decode

if TYPE_CHECKING:
    from tracker.capture.payload import Record

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
    (kind,) = struct.unpack_from("=H", raw, 4)
    (length,) = struct.unpack_from("=I", raw)
    if not 16 <= length <= len(raw) <= (length + 3) & ~3:
        assert program.feed(raw) == "lost"
        return
    if kind in RTM_ROUTES:
        assume(is_as_the_kernel_writes(raw))
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


@pytest.fixture
def judge(program: Filter) -> Filter:
    program.obey(POLICY)
    return program


same = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@same
@given(record=RECORDS)
def test_whole_messages(judge: Filter, record: Record) -> None:
    raw = encode(record)
    assume(len(raw) < 3400)
    check(judge, raw)


@same
@given(record=RECORDS, data=st.data())
def test_messages_that_are_cut_or_changed(
    judge: Filter, record: Record, data: st.DataObject
) -> None:
    raw = bytearray(encode(record))
    assume(len(raw) < 3400)
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(U8)
    cut = bytes(raw[: data.draw(st.integers(16, len(raw)))])
    if data.draw(st.booleans()):
        cut = u32(len(cut)) + cut[4:]
    check(judge, cut)


VALUES = st.binary(max_size=40)
LINK_ATTRIBUTES = st.tuples(st.sampled_from([3, 4, 5, 10, 16, 18, 26, 0x8012, 99]), VALUES)
INFO = st.lists(st.tuples(st.sampled_from([1, 2, 3]), VALUES), max_size=10).map(attributes)


@same
@given(
    pairs=st.lists(LINK_ATTRIBUTES | st.tuples(st.just(18), INFO), max_size=70),
    name=NAMES.map(str.encode),
    family=st.sampled_from([0, 0, 0, 7]),
    kind=st.sampled_from([16, 17]),
)
def test_links_of_any_attributes(
    judge: Filter, pairs: list[tuple[int, bytes]], name: bytes, family: int, kind: int
) -> None:
    raw = link([(3, name + b"\0"), *pairs], family, kind)
    assume(len(raw) < 3400)
    check(judge, raw)


ROUTE_ATTRIBUTES = st.tuples(st.sampled_from([1, 4, 5, 6, 7, 9, 12, 15, 18, 20, 30]), VALUES)


@same
@given(
    pairs=st.lists(ROUTE_ATTRIBUTES, max_size=8),
    table=st.sampled_from([*TABLES, 255, 77]),
    family=st.sampled_from([V4, V6, V4, V6, 128]),
    dst_len=st.integers(0, 33) | st.integers(0, 255),
    dst=st.sampled_from(TARGETS) | st.binary(max_size=17),
    flags=U32,
)
def test_routes_of_any_attributes(
    judge: Filter,
    pairs: list[tuple[int, bytes]],
    table: int,
    family: int,
    dst_len: int,
    dst: bytes,
    flags: int,
) -> None:
    early = [(15, u32(table)), (1, dst)]
    check(judge, route([*early, *pairs], family, dst_len=dst_len, flags=flags & ~0x200))


def test_what_is_wanted_is_told_apart() -> None:
    """The oracle itself."""
    default = route([(15, u32(254))])
    assert wanted(default)
    assert wanted(route([(15, u32(77))]))
    assert wanted(route([(15, u32(77)), (1, bytes([10, 1, 0, 0]))], dst_len=16))
    assert wanted(route([(15, u32(77)), (1, bytes([10, 2, 0, 0]))], dst_len=16)) is False
    assert wanted(route([(5, b"")])) is None
