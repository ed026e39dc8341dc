"""What finds no room, or is no message, is counted, told by its scope, and said beside the ring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bpf.program import Filter, filtering, policy
from tests.messages import V4, V6, addr, link, nexthop, route, rule
from tests.netlink_bytes import message, u32
from tracker.capture.loader import PLAIN
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

A4 = bytes([192, 0, 2, 1])
A6 = bytes([0x20, 1, 0xD, 0xB8, *[0] * 11, 1])
MAIN_TABLE = (15, u32(254))
ADDRESS = addr([(1, A4), (2, A4)])
RULES = len(Scope)
ALL = (*Scope, RULES)


@pytest.fixture
def small() -> Iterator[Filter]:
    """With a ring of one page that is full, and nothing lost so far but one address."""
    with filtering(PLAIN, 4096) as program:
        program.obey(policy(targets=[A4]))
        while program.feed(ADDRESS) == "emitted":
            pass
        program.alarm.read()
        program.alarm.woke()
        yield program


def change(program: Filter, raw: bytes) -> list[int]:
    """The scopes whose losses went up by one, as the others did not."""
    before = program.lost
    assert program.feed(raw) == "lost"
    more = [after - b for after, b in zip(program.lost, before, strict=True)]
    assert set(more) <= {0, 1}
    return [scope for scope, lost in enumerate(more) if lost]


@pytest.mark.parametrize(
    ("raw", "scopes"),
    [
        (link([(3, b"eth0\0")]), [Scope.LINK]),
        (addr([(2, A4)]), [Scope.ADDR4]),
        (addr([(1, A6)], V6, 64), [Scope.ADDR6]),
        (addr([(1, A4)], 28), [Scope.ADDR4, Scope.ADDR6]),
        (message(20, b""), [Scope.ADDR4, Scope.ADDR6]),
        (route([MAIN_TABLE], V4), [Scope.ROUTE4]),
        (route([MAIN_TABLE], V6), [Scope.ROUTE6]),
        (message(25, b""), [Scope.ROUTE4, Scope.ROUTE6]),
        (nexthop([(1, u32(9))]), [Scope.NEXTHOP]),
        (rule([]), [RULES]),
        (rule([], V6), [RULES]),
    ],
    ids=[
        "link", "IPv4 address", "IPv6 address", "address of another family", "address of none",
        "IPv4 route", "IPv6 route", "route of no family", "nexthop", "rule", "IPv6 rule",
    ],
)  # fmt: skip
def test_what_finds_no_room_is_counted_by_scope(
    small: Filter, raw: bytes, scopes: list[int]
) -> None:
    assert change(small, raw) == scopes


def test_the_reader_is_told_where_the_ring_cannot_tell(small: Filter) -> None:
    assert small.feed(ADDRESS) == "lost"
    assert small.alarm.woke()
    assert small.alarm.read() == [bytes(8)]


def test_losses_are_counted_where_there_is_no_room_for_alarms_either(small: Filter) -> None:
    messages = small.alarm.size // 8
    before = small.lost[Scope.ADDR4]
    for _ in range(messages):
        assert small.feed(ADDRESS) == "lost"
    assert small.lost[Scope.ADDR4] == before + messages
    assert 0 < len(small.alarm.read()) < messages


def test_what_is_dropped_needs_no_room(small: Filter) -> None:
    assert small.feed(route([(15, u32(77)), (1, A6[:4])], dst_len=32)) == "dropped"
    assert small.feed(message(28, bytes(64))) == "dropped"
    assert not small.alarm.woke()


def test_when_there_is_room_again_nothing_is_lost(small: Filter) -> None:
    assert small.feed(ADDRESS) == "lost"
    small.ring.read()
    assert small.feed(ADDRESS) == "emitted"


def test_a_message_for_which_the_ring_is_too_small_is_lost() -> None:
    with filtering(PLAIN, 4096) as program:
        assert program.feed(addr([(2, A4), (60, bytes(2000))])) == "emitted"
        program.ring.read()
        assert program.feed(addr([(2, A4), (60, bytes(2100))])) == "lost"
        assert program.ring.read() == []


BROKEN = {
    "nothing": b"",
    "half a head": ADDRESS[:8],
    "longer than it is": ADDRESS[:-4],
    "shorter than its head": u32(12) + ADDRESS[4:],
    "two messages": ADDRESS + ADDRESS,
    "a message and half a head": ADDRESS + bytes(8),
    "two messages, the first for nobody": message(28, bytes(12)) + ADDRESS,
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_not_one_message_may_have_been_about_anything(program: Filter, raw: bytes) -> None:
    assert change(program, raw) == list(ALL)
    assert program.alarm.woke()
    assert program.ring.read() == []


def test_padding_behind_a_message_is_no_second_one(program: Filter) -> None:
    raw = message(20, ADDRESS[16:] + b"x")
    made = program.pass_on(raw + bytes(3))
    assert made is not None
    assert made.message == raw
