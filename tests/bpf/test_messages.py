"""What becomes of one message: it is dropped, handed over as it is, or a record of a link."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bpf.program import KIND_RAW, LEAST, OTHER, TASK, Filter, policy, without_task
from tests.messages import V4, V6, addr, link, nexthop, route, rule
from tests.netlink_bytes import attribute, attributes, message, u16, u32
from tracker.capture.loader import WITH_TASKS
from tracker.capture.netlink import boot_ns, parse
from tracker.capture.payload import F_TASK, VERSION, Kind
from tracker.capture.record import decode

if TYPE_CHECKING:
    from tests.bpf.program import Shown

A4 = bytes([192, 0, 2, 1])
A6 = bytes([0x20, 1, 0xD, 0xB8, *[0] * 11, 1])
MAIN_TABLE = (15, u32(254))
ETH0 = (3, b"eth0\0")
KIND = 18
VRF_TABLE = attribute(1, u32(9))
AFTER = (26, bytes(64))
"""Names and kinds are read as a whole, so something must follow; the kernel sends this one."""
LOCAL_TABLE = 255
CLONED = 0x200

ADDRESS4 = addr([(1, A4), (2, A4), ETH0, (8, u32(0x80))])
ADDRESS6 = addr([(1, A6), (6, bytes(16)), (8, u32(0x80))], V6, 64)
DEFAULT4 = route([MAIN_TABLE, (6, u32(100)), (5, A4), (4, u32(2))])
DEFAULT6 = route([MAIN_TABLE, (6, u32(1024)), (5, A6), (4, u32(2))], V6)
LEGS = b"".join(struct.pack("=HBBI", 8, 0, 0, oif) for oif in range(1, 40))
MULTIPATH = route([MAIN_TABLE, (9, LEGS)])
GROUP = b"".join(struct.pack("=IBBxx", number, 0, 0) for number in range(1, 300))
ODD = bytes(3000)
"""Makes a message longer than most; what a test run takes ends below 3.5 KB."""

RAW = {
    "IPv4 address": ADDRESS4,
    "IPv6 address": ADDRESS6,
    "address that goes": ADDRESS4[:4] + u16(21) + ADDRESS4[6:],
    "address of another family": addr([(1, A4)], 28),
    "address that is malformed": addr([(1, A4[:3])]),
    "message without a body": message(20, b""),
    "nexthop": nexthop([(1, u32(9)), (5, u32(2)), (6, A4)]),
    "nexthop that goes": message(105, struct.pack("=BBBxI", 0, 0, 0, 0) + attribute(1, u32(9))),
    "group of nexthops": nexthop([(1, u32(9)), (2, GROUP)], family=0),
    "IPv4 default route": DEFAULT4,
    "IPv6 default route": DEFAULT6,
    "default route that goes": DEFAULT4[:4] + u16(25) + DEFAULT4[6:],
    "multipath default route": MULTIPATH,
    "default route without a first attribute that says its table": route([(4, u32(2))]),
    "default route that says its table later": route([(4, u32(2)), MAIN_TABLE]),
    "default route with half a table": route([(15, u16(254))]),
    "half a route": message(24, bytes([V4, 0, 0])),
    "link without a name": link([(4, u32(1500))]),
    "link with a name that does not end": link([(3, b"0123456789abcdef")]),
    "link of kind vrf": link([ETH0, (KIND, attributes([(1, b"vrf\0"), (2, VRF_TABLE)])), AFTER]),
    "event of a wireless driver": link([ETH0, (11, bytes(24))]),
    "link with a short MTU": link([ETH0, (4, u16(1500))]),
    "link with a broken list": link([ETH0]) [:-1] + b"\xff",
    "link with too many attributes": link([ETH0, *((60, b"") for _ in range(64))]),
    "half a link": message(16, bytes(8)),
    "long message": addr([(1, A4), (60, ODD)]),
}  # fmt: skip

DROPPED = {
    "host route": route([MAIN_TABLE, (1, A4), (4, u32(2))], dst_len=32),
    "IPv6 prefix": route([MAIN_TABLE, (1, A6), (4, u32(2))], V6, dst_len=64),
    "default route of another table": route([(15, u32(1000)), (4, u32(2))], table=252),
    "default route of the local table": route([(15, u32(LOCAL_TABLE))], table=LOCAL_TABLE),
    "entry of the route cache": route([MAIN_TABLE], flags=CLONED),
    "route of multicast routing": route([MAIN_TABLE], 128),
    "route for some sources only": route([MAIN_TABLE], V6, src_len=56),
    "rule, without a target": rule([(6, u32(9)), (15, u32(7))]),
    "port of a bridge": link([ETH0], family=7),
    "port that leaves its bridge": link([ETH0], family=7, kind=17),
    "neighbour": message(28, bytes(64)),
    "traffic control": message(36, bytes(64)),
    "message of the transport": message(3, bytes(4)),
    "type beyond all": message(500, bytes(64)),
}


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
def test_what_may_matter_is_handed_over_as_it_is(program: Filter, raw: bytes) -> None:
    raw = with_head(raw, flags=0x605, portid=4711)
    earliest = boot_ns()
    made = program.pass_on(raw)
    assert made is not None
    assert made.kind == KIND_RAW
    assert made.message == raw
    assert (made.version, made.nl_flags, made.portid) == (VERSION, 0x605, 4711)
    assert made.op == (2 if raw[4] & 1 else 1)
    assert (made.seq, made.slot) == (0, 0)
    assert earliest <= made.boot_ns <= boot_ns()


@pytest.mark.parametrize("raw", DROPPED.values(), ids=DROPPED.keys())
def test_what_concerns_nobody_is_dropped_and_wakes_nobody(program: Filter, raw: bytes) -> None:
    assert program.pass_on(raw) is None
    assert not program.ring.woke()


def with_head(raw: bytes, flags: int = 0, portid: int = 0) -> bytes:
    return raw[:6] + u16(flags) + raw[8:12] + u32(portid) + raw[16:]


def info(kind: bytes, *more: tuple[int, bytes]) -> tuple[int, bytes]:
    """IFLA_LINKINFO."""
    return (KIND, attributes([(1, kind), *more]))


LINKS = {
    "physical": link([ETH0, (4, u32(1500)), (16, b"\x06")]),
    "of a kind": link([ETH0, info(b"bridge\0", (2, bytes(40))), AFTER]),
    "with a lower link and a master": link([ETH0, (5, u32(4)), (10, u32(9)), AFTER]),
    "with the longest name": link([(3, b"0123456789abcde\0"), AFTER]),
    "with a name of 8 bytes": link([(3, b"01234567\0"), AFTER]),
    "with bytes behind the end of its name": link([(3, b"eth0\0xyz0\0"), AFTER]),
    "with a name that ends with its attribute": link([(3, b"eth"), (26, b"z" * 64)]),
    "with an empty name": link([(3, b""), (26, b"z" * 64)]),
    "with attributes twice": link(
        [(3, b"a\0"), (3, b"bc\0"), (4, u32(1)), (4, u32(2)), info(b"x"), info(b"y"), AFTER]
    ),
    "of a kind that begins like vrf": link([ETH0, info(b"vrfx\0", (2, VRF_TABLE)), AFTER]),
    "with flags in the types of attributes": link(
        [(0x8003, b"eth0\0"), (0x8000 | KIND, attribute(0x4001, b"veth\0")), AFTER]
    ),
    "with bytes behind its attributes": message(16, link([ETH0, AFTER])[16:] + b"xyz"),
    "that goes": link([ETH0, AFTER], kind=17),
}


@pytest.mark.parametrize("raw", LINKS.values(), ids=LINKS.keys())
def test_the_record_of_a_link_is_that_of_the_parser(reader: Filter, raw: bytes) -> None:
    made = reader.pass_on(with_head(raw, 0x605, 4711))
    assert made is not None
    assert made.kind == Kind.LINK
    assert without_task(made) == parse(with_head(raw, 0x605, 4711), made.boot_ns)


def test_the_least_variant_leaves_links_to_the_parser(program: Filter) -> None:
    made = program.pass_on(LINKS["physical"])
    assert made is not None
    assert (made.kind == KIND_RAW) == (program.variant == LEAST)


def test_who_made_a_change_is_told_by_the_variant_that_can(reader: Filter) -> None:
    for raw in (ADDRESS4, LINKS["physical"]):
        made = reader.pass_on(raw)
        assert made is not None
        task = made.payload[:TASK] if made.kind == KIND_RAW else made.payload[-TASK:]
        if reader.variant == WITH_TASKS:
            assert made.flags == F_TASK
            assert struct.unpack("=I4x16s", task) == (os.getpid(), own_name())
        else:
            assert made.flags == 0
            assert made.kind == Kind.LINK or task == bytes(TASK)


def own_name() -> bytes:
    return Path("/proc/thread-self/comm").read_bytes().rstrip(b"\n").ljust(16, b"\0")


def test_a_thread_is_told_by_its_process(program: Filter) -> None:
    made: list[Shown | None] = []
    thread = threading.Thread(target=lambda: made.append(program.pass_on(ADDRESS4)))
    thread.start()
    thread.join()
    [one] = made
    assert one is not None
    pid = struct.unpack_from("=I", one.payload)[0]
    assert pid == (os.getpid() if program.variant == WITH_TASKS else 0)


def test_rules_matter_where_there_is_a_target(program: Filter) -> None:
    program.obey(policy(targets=[A4]))
    for kind in (32, 33):
        raw = DROPPED["rule, without a target"]
        raw = raw[:4] + u16(kind) + raw[6:]
        made = program.pass_on(raw)
        assert made is not None
        assert made.message == raw


def test_each_type_is_counted_in_its_row(program: Filter) -> None:
    rows = {
        16: 0,
        28: 12,
        104: 88,
        110: 94,
        111: OTHER,
        500: OTHER,
        15: OTHER,
        3: OTHER,
        65535: OTHER,
    }
    for kind, row in rows.items():
        before = program.count(row)
        program.feed(message(kind, bytes(64)))
        assert program.count(row).seen == before.seen + 1
    program.forget()


def test_before_there_is_a_filter_nothing_is_dropped() -> None:
    program = Filter(WITH_TASKS, 1 << 16)
    try:
        for raw in (DROPPED["host route"], ADDRESS4, LINKS["physical"]):
            made = program.pass_on(raw)
            assert made is not None
            assert made.kind == KIND_RAW
    finally:
        program.close()


def test_records_can_be_decoded(reader: Filter) -> None:
    made = reader.pass_on(LINKS["of a kind"])
    assert made is not None
    record = decode(made.record)
    # A link has a kind; mypy sees any payload.
    assert record.payload.kind == "bridge"  # type: ignore[union-attr]
    assert (record.task is not None) == (reader.variant == WITH_TASKS)
