"""The filter on what this kernel says when people use `ip`."""

from __future__ import annotations

import collections
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from tests.bpf.hearing import Hearing
from tests.bpf.oracle import POLICY, check, is_as_the_kernel_writes, wanted
from tests.bpf.program import (
    KIND_RAW,
    RTM_BASE,
    Filter,
    Shown,
    filtering,
    policy,
    shown,
    without_task,
)
from tests.features import require
from tests.netlink_bytes import attributes, message, u32
from tests.netns.namespace import Namespace
from tracker.capture.loader import WITH_TASKS
from tracker.capture.payload import F_KERNEL, F_TASK, Kind
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.netns

TARGET = bytes([203, 0, 113, 7])
COMMANDS = """
link add br0 type bridge
link add veth0 type veth peer name veth1
link add mv0 link veth1 type macvlan mode bridge
link set veth0 master br0
link set br0 up
link set veth0 up
link set veth1 up
link set veth0 nomaster
link set veth0 name uplink
link set uplink mtu 1400
link set uplink mtu 1500
link set uplink promisc off
link set uplink alias something
link set uplink txqueuelen 100
addr add 192.0.2.10/24 dev uplink
addr add 192.0.2.11/24 dev uplink valid_lft 600 preferred_lft 300
addr add 10.0.0.1 peer 10.0.0.2 dev uplink
addr add 2001:db8::10/64 dev uplink nodad
addr add 2001:db8::11/64 dev uplink nodad noprefixroute mngtmpaddr
route add default via 192.0.2.1 metric 100
route add default via 192.0.2.2 metric 200 table 1000
route add default via inet6 2001:db8::2 dev uplink metric 300
route add default proto static metric 50 nexthop via 192.0.2.1 weight 3 nexthop via 192.0.2.3
route add 203.0.113.0/25 via 192.0.2.1
route add 203.0.113.128/25 via 192.0.2.1
route add 203.0.113.7/32 via 192.0.2.1 table 77
route add blackhole 203.0.112.0/20
route add unreachable 198.51.100.0/24
-6 route add default via 2001:db8::1 dev uplink metric 1024
-6 route append default via 2001:db8::2 dev uplink metric 1024
-6 route add 2001:db8:1::/48 via 2001:db8::1 dev uplink
route replace default via 192.0.2.4 metric 100
nexthop add id 1 via 192.0.2.1 dev uplink
nexthop add id 2 via 2001:db8::1 dev uplink
nexthop add id 3 blackhole
nexthop add id 10 group 1
route add default nhid 10 metric 400
rule add to 203.0.113.7 table 77 priority 100
rule add fwmark 5 table 1000
rule del fwmark 5 table 1000
route del default metric 50
nexthop del id 1
addr del 192.0.2.10/24 dev uplink
link set uplink down
link set uplink up
link del uplink
""".strip().splitlines()
MARKER = "203.0.113.99"


@pytest.fixture
def host() -> Iterator[Namespace]:
    namespace = Namespace()
    yield namespace
    namespace.delete()


def heard_to_the_marker(host: Namespace, hearing: Hearing) -> list[bytes]:
    """What the commands made the kernel say: later work of its own may say more."""
    for command in COMMANDS:
        host.ip(command)
    host.ip(f"addr add {MARKER}/32 dev lo")
    return to_the_marker(hearing.messages())


def to_the_marker(messages: Sequence[bytes]) -> list[bytes]:
    marker = bytes(map(int, MARKER.split(".")))
    ends = [n for n, raw in enumerate(messages) if raw[4] == 20 and marker in raw]
    return list(messages[: ends[0] + 1])


def test_messages_of_this_kernel_are_read_as_the_parser_reads_them(
    host: Namespace, program: Filter
) -> None:
    with host.entered(), Hearing() as hearing:
        messages = heard_to_the_marker(host, hearing)
    program.obey(POLICY)
    for raw in messages:
        assert is_as_the_kernel_writes(raw)
        check(program, raw)
        program.forget()
        assert bool(program.pass_on(raw)) == wanted(raw), "nothing is left for user space to drop"
    kinds = collections.Counter(struct.unpack_from("=H", raw, 4)[0] for raw in messages)
    assert set(kinds) >= {16, 17, 20, 21, 24, 25, 32, 33, 104, 105}


def test_links_of_this_kernel_are_records(host: Namespace, reader: Filter) -> None:
    """None is so odd that user space would have to judge it."""
    with host.entered(), Hearing() as hearing:
        messages = heard_to_the_marker(host, hearing)
    links = [raw for raw in messages if raw[4] in {16, 17} and raw[16] == 0]
    made = [reader.pass_on(raw) for raw in links]
    assert {one.kind for one in made if one} == {Kind.LINK}
    assert None in made, "some of it says nothing new"


def as_told(made: Shown) -> bytes:
    """Without the time and without who did it."""
    if made.kind == KIND_RAW:
        return made.message
    plain = without_task(made)
    return plain[:16] + bytes(8) + plain[24:]


def test_on_a_socket_it_does_what_it_does_in_a_test_run(host: Namespace) -> None:
    require("task-identity")
    rules = policy(tables=[254, 1000], targets=[TARGET], quiet=["veth*"])
    with filtering(WITH_TASKS, 1 << 20) as live, filtering(WITH_TASKS) as alone:
        live.obey(rules)
        alone.obey(rules)
        with host.entered(), Hearing(live.program) as filtered, Hearing() as hearing:
            messages = heard_to_the_marker(host, hearing)
            assert filtered.messages() == []
        records = [shown(sample) for sample in live.ring.read()]
        told = [made for raw in messages if (made := alone.pass_on(raw))]
    ended = len(to_the_marker([as_told(made) for made in records]))
    assert [as_told(made) for made in records[:ended]] == [as_told(made) for made in told]
    times = [made.boot_ns for made in records]
    assert times == sorted(times)
    tasks = {struct.unpack_from("=I4x16s", made.payload, task_at(made)) for made in records}
    assert all(made.flags & F_TASK for made in records)
    assert {name.rstrip(b"\0") for _, name in tasks} >= {b"ip"}
    kernel = [made for made in records if made.flags & F_KERNEL]
    names = [made.payload[task_at(made) + 8 :][:7] for made in kernel]
    assert all(name == b"kworker" for name in names)


def task_at(made: Shown) -> int:
    return 0 if made.kind == KIND_RAW else len(made.payload) - 24


FIRST, MEMBERS = 10, 2100
GROUP = 5000
REQUEST_CREATE_ACK = 0x405


def test_what_is_longer_than_any_room_is_lost_and_counted(host: Namespace) -> None:
    """A group of more nexthops than `ip` can say."""
    members = range(FIRST, FIRST + MEMBERS)
    group = b"".join(struct.pack("=IBBxx", number, 0, 0) for number in members)
    head = struct.pack("=BBBxI", 0, 0, 4, 0)
    request = message(104, head + attributes([(1, u32(GROUP)), (2, group)]), REQUEST_CREATE_ACK)
    host.batch([f"nexthop add id {number} dev lo" for number in members])
    with filtering() as live, host.entered(), Hearing(live.program):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
            asking.send(request)
            assert struct.unpack_from("=i", asking.recv(1 << 16), 16) == (0,)
        assert live.count(104 - RTM_BASE) == (1, 0, 0, 1)
        assert live.lost[Scope.NEXTHOP] == 1
        assert live.ring.read() == []
        assert live.alarm.read() == [bytes(8)]
