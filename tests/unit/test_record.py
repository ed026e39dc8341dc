"""Records: what is encoded is decoded, and what is no record is refused."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import (
    BLACKHOLE,
    addr,
    begin,
    entry,
    fail,
    flush,
    gone,
    leg,
    link,
    loss,
    nexthop,
    route,
    rule,
    truncated,
)
from tracker.capture.record import (
    F_KERNEL,
    F_TASK,
    F_UNTRUSTED,
    Header,
    Kind,
    Link,
    MalformedRecord,
    Record,
    Task,
    decode,
    describe,
    encode,
    iter_records,
)
from tracker.model import AF_INET6, Scope

HEADER = (Path(__file__).resolve().parents[2] / "bpf" / "records.h").read_text()

RECORDS = (
    link(2, "eth0", kind="bond", master=3),
    gone(link(2, "eth0")),
    addr("192.0.2.10/24", 2, peer="192.0.2.11", cstamp=7),
    addr("2001:db8::10/64", 2),
    route(via="192.0.2.1", oif=2, metric=100, src="192.0.2.10"),
    route(via="2001:db8::1", oif=2, legs=(leg(2, "fe80::1"), leg(3, "fe80::2", weight=3))),
    entry(route("10.0.0.0/8", oif=2)),
    truncated(nexthop(7, members=((1, 1), (2, 5)))),
    nexthop(1, oif=2, via="192.0.2.1"),
    loss(Scope.LINK),
    begin(Scope.ROUTE4, table=254, audit=True),
    fail(Scope.ADDR6, ifindex=2),
    gone(rule(100, table=7)),
    flush("192.0.2.0/24", oif=2),
)


@pytest.mark.parametrize("order", ["=", "<", ">"])
@pytest.mark.parametrize("task", [None, Task(42, "ip")], ids=["without task", "with task"])
@pytest.mark.parametrize("record", RECORDS, ids=describe)
def test_a_record_comes_back_as_it_was(record: Record, task: Task | None, order: str) -> None:
    flags = record.header.flags | (F_TASK if task else 0)
    whole = record._replace(header=record.header._replace(flags=flags), task=task)
    assert decode(encode(whole, order), order) == whole


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (link(1, "lo"), "link"),
        (addr("::1", 1), "addr"),
        (route(), "route"),
        (nexthop(1), "nexthop"),
        (loss(), "loss"),
        (begin(Scope.LINK), "dump"),
        (rule(100), "rule"),
        (flush(), "flush"),
    ],
)
def test_sizes_are_those_of_the_header_file(record: Record, name: str) -> None:
    def size(struct_name: str) -> int:
        found = re.search(rf"sizeof\(struct at_{struct_name}\) == (\d+)", HEADER)
        assert found
        return int(found[1])

    assert len(encode(record)) == size("header") + size(name)


def test_records_follow_one_another() -> None:
    assert list(iter_records(b"".join(map(encode, RECORDS)))) == list(RECORDS)


def patched(record: Record, offset: int, layout: str, value: int) -> bytes:
    raw = bytearray(encode(record))
    struct.pack_into("=" + layout, raw, offset, value)
    return bytes(raw)


ROUTE = route(via="192.0.2.1", oif=2)
GROUP = nexthop(1, members=((2, 1),))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "too short"),
        (encode(ROUTE)[:-1], "size"),
        (encode(ROUTE) + b"\0", "record of"),
        (patched(ROUTE, 0, "H", 40), "size"),
        (patched(ROUTE, 0, "H", 0), "size"),
        (patched(ROUTE, 2, "B", 2), "version 2"),
        (patched(ROUTE, 3, "B", 9), "kind 9"),
        (patched(ROUTE, 4, "B", 0), "operation 0"),
        (patched(ROUTE, 4, "B", 3), "operation 3"),
        (patched(ROUTE, 12, "I", F_TASK), "legs"),
        (patched(ROUTE, 52, "B", 7), "family 7"),
        (patched(ROUTE, 53, "B", 33), "prefix length 33"),
        (patched(ROUTE, 59, "B", 2), "legs"),
        (patched(addr("192.0.2.1/24", 2), 56, "B", 1), "family 1"),
        (patched(addr("192.0.2.1/24", 2), 57, "B", 33), "prefix length 33"),
        (patched(addr("::1/128", 2), 57, "B", 129), "prefix length 129"),
        (patched(GROUP, 44, "B", 7), "family 7"),
        (patched(GROUP, 32, "I", 0), "without an id"),
        (patched(GROUP, 49, "B", 0), "legs"),
        (patched(link(2, "eth0"), 79, "B", 1), "name"),
        (patched(link(2, "eth0"), 95, "B", 1), "name"),
        (patched(begin(Scope.LINK), 32, "I", 6), "dump"),
        (patched(begin(Scope.LINK), 36, "I", 4), "dump"),
        (patched(rule(1), 40, "B", 128), "family 128"),
        (patched(rule(1), 4, "B", 0), "operation 0"),
        (patched(flush(), 44, "B", 7), "family 7"),
        (patched(flush(), 45, "B", 33), "prefix length 33"),
    ],
)
def test_what_is_no_record_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(MalformedRecord, match=message):
        decode(raw)


def test_too_many_legs_are_refused() -> None:
    with pytest.raises(MalformedRecord, match="65 legs"):
        encode(route(legs=(leg(2),) * 65))


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(MalformedRecord, match="longer than 15"):
        encode(link(2, "a" * 16))


@given(st.binary(max_size=200) | st.sampled_from(RECORDS).map(encode), st.data())
def test_no_bytes_do_worse_than_being_refused(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(0, 3)) if raw else 0):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        records = list(iter_records(bytes(damaged)))
    except MalformedRecord:
        return
    assert all(record.kind in Kind for record in records)


def test_a_name_that_is_no_text_comes_back() -> None:
    record = decode(patched(link(2, "eth0"), 64, "B", 0xFF))
    assert isinstance(record.payload, Link)
    assert decode(encode(record)) == record


NAMES = {2: "eth0", 3: "eth1"}


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (addr("192.0.2.10/24", 2), "RTM_NEWADDR 192.0.2.10/24 eth0"),
        (
            gone(addr("10.0.0.1/32", 2, peer="10.0.0.2")),
            "RTM_DELADDR 10.0.0.1 peer 10.0.0.2/32 eth0",
        ),
        (gone(link(2, "eth0")), "RTM_DELLINK eth0"),
        (
            route(via="192.0.2.1", oif=2, metric=100, src="192.0.2.10", table=7),
            "RTM_NEWROUTE default via 192.0.2.1 dev eth0 src 192.0.2.10 metric 100 table 7",
        ),
        (
            route(family=AF_INET6, kind=BLACKHOLE, nh_id=4),
            "RTM_NEWROUTE blackhole default nhid 4",
        ),
        (route("2001:db8::/32", oif=3), "RTM_NEWROUTE 2001:db8::/32 dev eth1"),
        (nexthop(4, oif=2, via="192.0.2.1"), "RTM_NEWNEXTHOP id 4 via 192.0.2.1 dev eth0"),
        (nexthop(4, blackhole=True), "RTM_NEWNEXTHOP id 4 blackhole"),
        (nexthop(4, members=((1, 1), (2, 1))), "RTM_NEWNEXTHOP id 4 group 1/2"),
        (loss(), "messages lost (overrun)"),
        (begin(Scope.ADDR4, ifindex=2, audit=True), "audit of addr4 eth0 begins"),
        (fail(Scope.ROUTE6, table=7), "dump of route6 table 7 failed"),
        (rule(100, table=7), "RTM_NEWRULE priority 100 table 7"),
        (gone(rule(0, family=AF_INET6, table=0)), "RTM_DELRULE ipv6 priority 0"),
        (flush(oif=2), "silent removal of route default dev eth0"),
        (
            flush("192.0.2.0/24", oif=3, table=7),
            "silent removal of route 192.0.2.0/24 dev eth1 table 7",
        ),
    ],
)
def test_a_record_reads_as_one_line(record: Record, line: str) -> None:
    assert describe(record, lambda ifindex: NAMES[ifindex]) == line


@pytest.mark.parametrize(
    ("flags", "attribution"),
    [
        (0, "process"),
        (F_KERNEL, "kernel"),
        (F_UNTRUSTED, "untrusted"),
        (F_UNTRUSTED | F_KERNEL, "untrusted"),
    ],
)
def test_what_a_task_has_to_do_with_the_change_is_in_the_flags(
    flags: int, attribution: str
) -> None:
    flagged = Record(Header(flags=flags), link(2, "eth0").payload, Task(9, "ip"))
    record = decode(encode(flagged))
    assert record.task == Task(9, "ip", attribution)
    assert record.header.flags & ~F_TASK == flags
    assert decode(encode(record)) == record
