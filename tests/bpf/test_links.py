"""Links: what says nothing new is dropped, and what no selection can choose wakes nobody."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING

import pytest

from tests.bpf.program import KIND_RAW, LINK, PAD, Filter, filtering, policy
from tests.messages import addr
from tests.netlink_bytes import attributes, message, u32
from tracker.capture.loader import PLAIN
from tracker.capture.payload import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.netlink_bytes import Attribute

LINKS_MAX = 65536
NEW, DEL = 16, 17
AF_BRIDGE = 7
ADDRESS = addr([(1, bytes([192, 0, 2, 1])), (2, bytes([192, 0, 2, 1]))])


def link(
    name: str = "eth0",
    *more: Attribute,
    what: int = NEW,
    ifindex: int = 7,
    flags: int = 0x1043,
    family: int = 0,
    hardware: int = 1,
    kind: str = "",
) -> bytes:
    pairs: list[Attribute] = [(3, name.encode() + b"\0"), *more]
    if kind:
        pairs.append((18, attributes([(1, kind.encode() + b"\0")])))
    pairs.append((26, bytes(64)))  # so that something follows, as in what the kernel sends
    head = struct.pack("=BxHIII", family, hardware, ifindex, flags, 0)
    return message(what, head + attributes(pairs))


def kind_of(program: Filter, raw: bytes) -> int:
    """0 = dropped."""
    made = program.pass_on(raw)
    return made.kind if made else 0


@pytest.fixture
def small() -> Iterator[Filter]:
    with filtering(PLAIN, 4096) as program:
        program.obey(policy(quiet=["veth*"]))
        yield program


# What is new.


def test_a_link_is_told_once(reader: Filter) -> None:
    assert kind_of(reader, link()) == Kind.LINK
    assert kind_of(reader, link()) == 0
    assert kind_of(reader, link(ifindex=8)) == Kind.LINK


@pytest.mark.parametrize(
    "other",
    [
        link("eth1"),
        link(flags=0x1042),
        link(hardware=772),
        link(kind="bond"),
        link("eth0", (10, u32(3))),
        link("eth0", (16, b"\x02")),
    ],
    ids=["name", "flags", "type", "kind", "master", "operational state"],
)
def test_what_changed_is_told_and_so_is_the_way_back(reader: Filter, other: bytes) -> None:
    reader.pass_on(link())
    assert kind_of(reader, other) == Kind.LINK
    assert kind_of(reader, other) == 0
    assert kind_of(reader, link()) == Kind.LINK


@pytest.mark.parametrize(
    "other",
    [link("eth0", (4, u32(9000))), link("eth0", (5, u32(3))), link("eth0", (7, bytes(96)))],
    ids=["MTU", "lower link", "counters"],
)
def test_what_decides_nothing_is_not_told(reader: Filter, other: bytes) -> None:
    reader.pass_on(link())
    assert kind_of(reader, other) == 0


def test_a_link_that_goes_is_told_and_forgotten(reader: Filter) -> None:
    reader.pass_on(link())
    assert kind_of(reader, link(what=DEL)) == Kind.LINK
    assert reader.links.get(7) is None
    assert kind_of(reader, link(what=DEL)) == Kind.LINK
    assert kind_of(reader, link()) == Kind.LINK


@pytest.mark.parametrize("what", [NEW, DEL])
def test_what_a_bridge_says_of_its_port_changes_nothing(reader: Filter, what: int) -> None:
    reader.pass_on(link())
    known = reader.links.get(7)
    assert kind_of(reader, link(what=what, family=AF_BRIDGE, flags=0)) == 0
    assert reader.links.get(7) == known
    assert kind_of(reader, link()) == 0


def test_what_user_space_has_to_judge_is_not_known_then(reader: Filter) -> None:
    """What it comes to may differ from what was known: the next message must pass."""
    reader.pass_on(link())
    assert kind_of(reader, link("eth0", (4, b"\x01"))) == KIND_RAW
    assert reader.links.get(7) is None
    assert kind_of(reader, link()) == Kind.LINK


def test_known_is_what_was_written(reader: Filter) -> None:
    made = reader.pass_on(link("eth0", (4, u32(1500)), kind="bond"))
    assert made is not None
    known = reader.links.get(7)
    assert known is not None
    assert known[:PAD] + bytes(4) + known[PAD + 4 :] == made.payload[: LINK.size]


def fill(reader: Filter) -> None:
    """Leaves no room for another link."""
    for flags in itertools.count():
        if reader.feed(link(ifindex=1, flags=flags)) == "lost":
            return


def test_what_found_no_room_is_not_known(small: Filter) -> None:
    """The reader asks the kernel then, and what was known before is news when it comes back."""
    assert kind_of(small, link()) == Kind.LINK
    fill(small)
    assert small.feed(link("eth1")) == "lost"
    assert small.links.get(7) is None
    small.ring.read()
    assert kind_of(small, link()) == Kind.LINK
    assert kind_of(small, link()) == 0


def test_where_there_is_no_room_for_more_links_nothing_is_dropped() -> None:
    with filtering(PLAIN) as program:
        nothing = bytes(LINK.size)
        for ifindex in range(1, LINKS_MAX + 1):
            program.links.put(1000 + ifindex, nothing)
        for _ in range(2):
            assert kind_of(program, link()) == Kind.LINK
        program.links.remove(1001)
        assert kind_of(program, link()) == Kind.LINK
        assert kind_of(program, link()) == 0


# Whom it wakes.


@pytest.fixture
def quiet(reader: Filter) -> Filter:
    """With a policy that excludes some links."""
    reader.obey(policy(quiet=["veth*", "docker0"], loud=["veth-up*"], kinds=["vxlan", "a" * 15]))
    return reader


def wakes(program: Filter, raw: bytes) -> bool:
    """Whether it wakes the reader, which reads then."""
    assert program.feed(raw) == "emitted"
    woken = program.ring.woke()
    program.ring.read()
    return woken


@pytest.mark.parametrize(
    ("raw", "woken"),
    [
        (link("eth0"), True),
        (link("veth1"), False),
        (link("veth"), False),
        (link("vet"), True),
        (link("xveth1"), True),
        (link("docker0"), False),
        (link("docker01"), True),
        (link("veth-up"), True),
        (link("veth-up7"), True),
        (link("eth0", kind="vxlan"), False),
        (link("eth0", kind="vxlan0"), True),
        (link("eth0", kind="vxla"), True),
        (link("eth0", kind="a" * 15), False),
        (link("veth-up0", kind="vxlan"), True),
        (link("veth1", what=DEL), False),
        (link("eth0", what=DEL), True),
        (ADDRESS, True),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else str(value),
)
def test_a_link_that_nobody_can_choose_wakes_nobody(quiet: Filter, raw: bytes, woken: bool) -> None:
    assert wakes(quiet, raw) == woken


def test_a_link_that_a_choice_depends_on_wakes(quiet: Filter) -> None:
    quiet.watched.put(7, u32(1))
    assert wakes(quiet, link("veth1"))
    assert wakes(quiet, link("veth1", what=DEL))
    quiet.watched.remove(7)
    assert not wakes(quiet, link("veth1", flags=1))


def test_a_link_that_gets_a_quiet_name_wakes_once_more(quiet: Filter) -> None:
    assert wakes(quiet, link("eth0"))
    assert wakes(quiet, link("veth1"))
    assert not wakes(quiet, link("veth1", flags=1))
    assert wakes(quiet, link("eth0"))
    assert wakes(quiet, link("veth1", what=DEL))


def test_an_address_wakes_nobody_where_its_link_does_not(quiet: Filter) -> None:
    """Each container link has one of its own."""
    address = message(20, struct.pack("=BBBBI", 2, 24, 0, 0, 7) + attributes([(2, bytes(4))]))
    assert wakes(quiet, address)
    assert not wakes(quiet, link("veth1"))
    assert not wakes(quiet, address)
    quiet.watched.put(7, u32(1))
    assert wakes(quiet, address)
    quiet.watched.remove(7)
    assert wakes(quiet, link("eth0"))
    assert wakes(quiet, address)


def test_entries_count_by_their_number(reader: Filter) -> None:
    """An empty mask is one that takes every name."""
    reader.obey(policy(quiet=["veth*"], n_quiet=0))
    assert wakes(reader, link("veth1"))
    reader.obey(policy(quiet=["eth0"], n_quiet=64))
    assert not wakes(reader, link("anything", ifindex=8))


def test_all_entries_count(reader: Filter) -> None:
    reader.obey(
        policy(
            quiet=[f"quiet{number}" for number in range(64)],
            loud=[*(f"loud{number}" for number in range(63)), "quiet62"],
            kinds=[f"kind{number}" for number in range(16)],
        )
    )
    assert not wakes(reader, link("quiet0"))
    assert not wakes(reader, link("quiet63"))
    assert wakes(reader, link("quiet62", ifindex=8))
    assert not wakes(reader, link("eth0", kind="kind15", ifindex=9))
    assert wakes(reader, link("eth0", kind="kind16", ifindex=10))


def test_news_wake_a_reader_that_sleeps_over_quiet_records(quiet: Filter) -> None:
    """An adaptive wake-up would be for a record that the reader has come to, and it has not."""
    assert quiet.feed(link("veth1")) == "emitted"
    assert not quiet.ring.woke()
    assert quiet.feed(link("eth1", ifindex=8)) == "emitted"
    assert quiet.ring.woke()
    assert len(quiet.ring.read()) == 2


def test_quiet_records_wake_before_they_fill_the_ring(small: Filter) -> None:
    for flags in itertools.count():
        assert small.feed(link("veth1", flags=flags)) == "emitted"
        woken = small.ring.woke()
        assert woken == (small.ring.used > small.ring.size // 4)
        if woken:
            break
    small.ring.read()
    assert not wakes(small, link("veth1", flags=1 << 20))
