"""The filter against the parser, over messages of any content, whole, mutated and cut.

What the parser makes something of that a policy wants is never dropped; what is handed over is
what came; and a record of a link is the parser's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.bpf.oracle import POLICY, TABLES, TARGETS, check, is_as_the_kernel_writes, wanted
from tests.bpf.program import Filter
from tests.messages import V4, V6, link, route
from tests.netlink_bytes import attributes, encode, u32
from tests.strategies import CLONED, NAMES, RECORDS, U8, U32

if TYPE_CHECKING:
    from tracker.capture.payload import Record


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
    assume(is_as_the_kernel_writes(cut))
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
    raw = route([*early, *pairs], family, dst_len=dst_len, flags=flags & ~CLONED)
    assume(is_as_the_kernel_writes(raw))
    check(judge, raw)


def test_what_is_wanted_is_told_apart() -> None:
    """The oracle itself."""
    default = route([(15, u32(254))])
    assert wanted(default)
    assert wanted(route([(15, u32(77))]))
    assert wanted(route([(15, u32(77)), (1, bytes([10, 1, 0, 0]))], dst_len=16))
    assert wanted(route([(15, u32(77)), (1, bytes([10, 2, 0, 0]))], dst_len=16)) is False
    assert wanted(route([(5, b"")])) is None
