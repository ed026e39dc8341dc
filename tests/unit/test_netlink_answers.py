"""What the netlink source makes of what a kernel says, the rare things included."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests.netlink_bytes import encode
from tests.unit.netlink_hooks import (
    MAIN,
    NETLINK_GET_STRICT_CHK,
    NLM_F_DUMP_INTR,
    SOL_NETLINK,
    Kernel,
    build,
    done,
    entry,
    failed,
    table_of,
)
from tracker.capture.payload import (
    DUMP_UNPROVEN,
    F_DUMP,
    Addr,
    Dump,
    Header,
    Kind,
    Link,
    Loss,
    LossCause,
    Op,
    Payload,
    Phase,
    Record,
    Route,
)
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTEMPTS = 6
BUFFER = 64 * 1024
ALL = (1 << len(Scope)) - 1
CHANGED, DIRTY, TIMEOUT, TAP = 1, 2, 4, 16
ETH0 = Link(7, "eth0", flags=0x11043, mtu=1500, type=1, operstate=6)


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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build(str(tmp_path_factory.mktemp("hooked")))


@pytest.fixture
def kernel(built: Any) -> Iterator[Kernel]:
    kernel = Kernel(built)
    yield kernel
    assert not kernel.answers, "the source asked less often than expected"


# Dumps.


def test_a_dump_is_begin_entries_end_in_the_order_of_the_kernel(kernel: Kernel) -> None:
    kernel.answers = [[shown(addr(1)) + shown(addr(2)), shown(addr(3)) + done()]]
    assert kernel.dump(Scope.ADDR4) == 0
    records = kernel.applied()
    assert phases(records) == [Phase.BEGIN, Phase.END]
    assert isinstance(records[0].payload, Dump)
    assert isinstance(records[-1].payload, Dump)
    assert entries(records) == [addr(1), addr(2), addr(3)]
    numbers = [record.header.seq for record in records]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert kernel.counters().dumps[Scope.ADDR4] == 1


def test_an_interrupted_dump_is_begun_again_at_once(kernel: Kernel) -> None:
    kernel.answers = [
        [shown(addr(1)), shown(addr(2), NLM_F_DUMP_INTR), shown(addr(3)) + done()],
        [shown(addr(4)) + done()],
    ]
    assert kernel.dump(Scope.ADDR4) == 0
    records = kernel.applied()
    assert phases(records) == [Phase.BEGIN, Phase.BEGIN, Phase.END]
    assert entries(records) == [addr(1), addr(2), addr(4)]


def test_an_interruption_told_by_the_end_alone_counts(kernel: Kernel) -> None:
    kernel.answers = [[shown(addr(1)) + done(flags=NLM_F_DUMP_INTR)], [shown(addr(1)) + done()]]
    assert kernel.dump(Scope.ADDR4) == 0
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.BEGIN, Phase.END]


def test_a_dump_that_is_interrupted_each_time_fails_but_keeps_what_it_showed(
    kernel: Kernel,
) -> None:
    answer: list[bytes | int] = [shown(addr(1), NLM_F_DUMP_INTR), shown(addr(2)) + done()]
    kernel.answers = [list(answer) for _ in range(ATTEMPTS)]
    assert kernel.dump(Scope.ADDR4) == -errno.EAGAIN
    records = kernel.applied()
    assert phases(records) == [Phase.BEGIN] * ATTEMPTS + [Phase.FAIL]
    assert entries(records)[-2:] == [addr(1), addr(2)]
    assert kernel.counters().dump_failures[Scope.ADDR4] == 1


@pytest.mark.parametrize("say", [done, failed])
def test_a_dump_that_the_kernel_ends_with_an_error_fails(kernel: Kernel, say: Any) -> None:
    kernel.answers = [[shown(addr(1)) + say(errno.ENOMEM)]]
    assert kernel.dump(Scope.ADDR4) == -errno.ENOMEM
    last = kernel.applied()[-1].payload
    assert isinstance(last, Dump)
    assert (last.phase, last.error) == (Phase.FAIL, errno.ENOMEM)


@pytest.mark.parametrize(
    ("scope", "ifindex", "error"),
    [
        (Scope.ROUTE4, 0, errno.ENOENT),
        (Scope.ROUTE6, 0, errno.ENOENT),
        (Scope.ROUTE6, 0, errno.EAFNOSUPPORT),
        (Scope.ADDR6, 0, errno.EAFNOSUPPORT),
        (Scope.NEXTHOP, 0, errno.EOPNOTSUPP),
        (Scope.NEXTHOP, 0, errno.EINVAL),
        (Scope.ADDR4, 7, errno.ENODEV),
    ],
)
@pytest.mark.parametrize("say", [done, failed])
def test_errors_that_say_there_is_nothing(
    kernel: Kernel, scope: Scope, ifindex: int, error: int, say: Any
) -> None:
    kernel.answers = [[say(error)]]
    assert kernel.dump(scope, ifindex, 100 if scope >= Scope.ROUTE4 else 0) == 0
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.END]


@pytest.mark.parametrize(
    ("scope", "error"),
    [
        (Scope.ROUTE4, errno.EINVAL),
        (Scope.ROUTE4, errno.EOPNOTSUPP),
        (Scope.ADDR4, errno.ENODEV),
        (Scope.ADDR4, errno.ENOENT),
        (Scope.LINK, errno.EOPNOTSUPP),
        (Scope.NEXTHOP, errno.EPERM),
    ],
)
def test_errors_that_are_failures(kernel: Kernel, scope: Scope, error: int) -> None:
    kernel.answers = [[failed(error)]]
    assert kernel.dump(scope) == -error
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.FAIL]


def test_a_kernel_that_does_not_answer_is_a_failure(kernel: Kernel) -> None:
    kernel.answers = [[shown(addr(1))]]
    assert kernel.dump(Scope.ADDR4) == -errno.ETIMEDOUT
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.FAIL]


def test_a_datagram_larger_than_the_buffer_is_a_failure(kernel: Kernel) -> None:
    kernel.answers = [[bytes(BUFFER + 1)]]
    assert kernel.dump(Scope.ADDR4) == -errno.EMSGSIZE


@pytest.mark.parametrize(
    "broken", [shown(addr(2))[:-4] + b"\xff\xff", b"\x20\0\0\0"], ids=["entry", "header"]
)
def test_a_malformed_entry_fails_the_dump(kernel: Kernel, broken: bytes) -> None:
    kernel.answers = [[shown(addr(1)), broken, done()]]
    assert kernel.dump(Scope.ADDR4) == -errno.EBADMSG
    assert kernel.counters().malformed == 1
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.FAIL]


@pytest.mark.parametrize("answer", [errno.EAGAIN, failed(errno.EOPNOTSUPP), bytes(7)])
def test_a_kernel_that_answers_nothing_to_a_request_for_nothing_is_read_as_any(
    kernel: Kernel, answer: bytes | int
) -> None:
    """The request is there to be read with a large buffer; some that emulate Linux ignore it."""
    kernel.acknowledgement = answer
    kernel.answers = [[shown(addr(1)) + done()]]
    assert kernel.dump(Scope.ADDR4) == 0
    assert entries(kernel.applied()) == [addr(1)]


def test_answers_to_other_requests_are_passed_over(kernel: Kernel) -> None:
    stranger = bytearray(shown(addr(9)))
    struct.pack_into("=I", stranger, 8, 77)
    kernel.answers = [[bytes(stranger), shown(addr(1)) + done()]]
    assert kernel.dump(Scope.ADDR4) == 0
    assert entries(kernel.applied()) == [addr(1)]


def test_nothing_from_other_processes_is_believed(kernel: Kernel) -> None:
    kernel.portid = 4711
    kernel.events = [told(addr(8))]
    kernel.answers = [[shown(addr(9)) + done()]]
    assert kernel.dump(Scope.ADDR4) == -errno.ETIMEDOUT
    assert entries(kernel.applied()) == []


def test_entries_of_the_other_family_are_passed_over(kernel: Kernel) -> None:
    """A kernel without IPv6 answers a request for it with all families that it has."""
    kernel.answers = [[shown(addr(1)) + shown(addr6(1)) + done()]]
    assert kernel.dump(Scope.ADDR6) == 0
    assert entries(kernel.applied()) == [addr6(1)]


def test_a_dump_of_one_link_asks_for_it_and_takes_nothing_else(kernel: Kernel) -> None:
    kernel.answers = [[shown(addr(1, ifindex=7)) + shown(addr(2, ifindex=8)) + done()]]
    assert kernel.dump(Scope.ADDR4, ifindex=7) == 0
    records = kernel.applied()
    assert entries(records) == [addr(1, ifindex=7)]
    assert isinstance(records[0].payload, Dump)
    assert records[0].payload.ifindex == 7
    assert struct.unpack_from("=I", kernel.requests[0], 16 + 4) == (7,)


def test_ipv4_default_routes_are_read_from_the_first_entries_alone(kernel: Kernel) -> None:
    """The first leaf of the trie holds 0.0.0.0/1 as well, before the default routes."""
    first = shown(route(bytes(4), 1)) + shown(route()) + shown(route(metric=100))
    other = shown(route(bytes([10, 0, 0, 0]), 8))
    kernel.answers = [[first + other, shown(route(metric=200)), done()]]
    assert kernel.dump(Scope.ROUTE4, table=MAIN) == 0
    records = kernel.applied()
    assert entries(records) == [route(), route(metric=100)]
    assert phases(records) == [Phase.BEGIN, Phase.END]
    assert table_of(kernel.requests[0]) == MAIN


@pytest.mark.parametrize(
    ("scope", "answer", "unproven"),
    [
        (Scope.ROUTE4, [shown(route()) + shown(route(bytes([10, 0, 0, 0]), 8)), done()], False),
        (Scope.ROUTE4, [shown(route()) + shown(route(b"", 1)), done()], True),
        (Scope.ROUTE4, [shown(route()), done()], True),
        (Scope.ROUTE4, [done()], True),
        (Scope.ROUTE4, [done(errno.ENOENT)], False),
        (Scope.ROUTE6, [shown(route(family=10)) + done()], True),
        (Scope.ADDR4, [shown(addr(1)) + done()], False),
    ],
    ids=["other", "behind 0.0.0.0/1", "defaults alone", "empty", "no table", "IPv6", "addresses"],
)
def test_a_dump_of_routes_tells_whether_it_saw_what_comes_behind_them(
    kernel: Kernel, scope: Scope, answer: list[bytes | int], unproven: bool
) -> None:
    """A route too large for an answer ends one without an error."""
    kernel.answers = [answer]
    assert kernel.dump(scope) == 0
    last = kernel.applied()[-1].payload
    assert isinstance(last, Dump)
    assert (last.phase, last.flags) == (Phase.END, DUMP_UNPROVEN if unproven else 0)


def test_one_table_of_which_no_end_was_seen_makes_the_dump_unproven(kernel: Kernel) -> None:
    policy = kernel.ffi.new("struct at_policy *", {"families": 3, "table": 100})
    assert kernel.lib.at_engine_set_policy(kernel.engine, 1, policy) == 0
    kernel.answers = [[done()], [shown(route()) + shown(route(bytes([10, 0, 0, 0]), 8))]]
    assert kernel.dump(Scope.ROUTE4) == 0
    last = kernel.applied()[-1].payload
    assert isinstance(last, Dump)
    assert last.flags == DUMP_UNPROVEN


def test_a_kernel_that_does_not_filter_is_read_to_the_end(kernel: Kernel) -> None:
    """Before Linux 4.20 a dump shows all tables, each with its default routes first."""
    kernel.options[SOL_NETLINK, NETLINK_GET_STRICT_CHK] = errno.ENOPROTOOPT
    other = shown(route(bytes([10, 0, 0, 0]), 8, table=100))
    kernel.answers = [[shown(route(table=100)) + other, shown(route()) + done()]]
    assert kernel.dump(Scope.ROUTE4, table=MAIN) == 0
    assert entries(kernel.applied()) == [route()]


def test_ipv6_default_routes_are_found_behind_all_others(kernel: Kernel) -> None:
    prefix = bytes([0x20, 1, 0xD, 0xB8, *[0] * 12])
    others = [shown(route(prefix, length, family=10)) for length in (32, 48, 64)]
    kernel.answers = [[b"".join(others), shown(route(metric=1024, family=10)) + done()]]
    assert kernel.dump(Scope.ROUTE6, table=MAIN) == 0
    assert entries(kernel.applied()) == [route(metric=1024, family=10)]


def test_routes_are_asked_for_by_each_table_that_a_policy_names(kernel: Kernel) -> None:
    policy = kernel.ffi.new("struct at_policy *", {"families": 3, "table": 100})
    assert kernel.lib.at_engine_set_policy(kernel.engine, 1, policy) == 0
    kernel.answers = [[done(errno.ENOENT)], [shown(route()) + done()]]
    assert kernel.dump(Scope.ROUTE4) == 0
    assert sorted(table_of(request) for request in kernel.requests) == [100, MAIN]
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.END]


def test_events_are_applied_between_the_parts_of_a_dump(kernel: Kernel) -> None:
    """An event that comes while a dump runs must be known before the end sweeps."""

    class Late(list[bytes | int]):
        def pop(self, index: Any = 0) -> bytes | int:
            item = super().pop(index)
            kernel.events.append(told(addr(5)))
            return item

    kernel.answers = [[shown(addr(1)), shown(addr(2)) + done()]]
    kernel.events = [told(addr(4))]
    original = kernel._send

    def send(buf: Any, size: int) -> int:
        result = original(buf, size)
        if kernel.requests:
            kernel._current = Late(kernel._current)
        return result

    hook = kernel.ffi.callback("ssize_t(const void *, size_t)", send)
    kernel.lib.hook_send = hook
    assert kernel.dump(Scope.ADDR4) == 0
    kinds = [
        "event" if record.payload in {addr(4), addr(5)} else type(record.payload).__name__
        for record in kernel.applied()
    ]
    assert kinds == ["event", "Dump", "Addr", "event", "Addr", "event", "Dump"]


def test_a_scope_that_does_not_exist_is_refused_without_a_mark(kernel: Kernel) -> None:
    assert kernel.dump(len(Scope)) == -errno.EINVAL
    assert kernel.applied() == []


# Events.


def test_an_event_is_applied_and_wakes(kernel: Kernel) -> None:
    kernel.events = [told(ETH0) + told(addr(1))]
    assert kernel.drain() & (CHANGED | TAP) == CHANGED | TAP
    assert events(kernel.applied()) == [ETH0, addr(1)]
    counters = kernel.counters()
    assert (counters.seen[0], counters.seen[4]) == (1, 1)
    assert sum(counters.apply_ns_bucket) == 2


def test_an_overrun_is_a_loss_of_everything_and_the_rest_is_read(kernel: Kernel) -> None:
    kernel.events = [told(addr(1)), errno.ENOBUFS, told(addr(2))]
    assert kernel.drain() & DIRTY
    seen = events(kernel.applied())
    assert seen == [addr(1), Loss(LossCause.OVERRUN, ALL), addr(2)]
    assert kernel.counters().overruns == 1


def test_after_an_overrun_the_queue_is_read_to_its_end(kernel: Kernel) -> None:
    """Until it was empty once the kernel drops what comes and says nothing more."""
    limit = 256
    kernel.events = [errno.ENOBUFS, *(told(route(bytes([10, 0, 0, 0]), 8)) for _ in range(limit))]
    kernel.lib.at_source_wait(kernel.source, 0)
    assert kernel.events == []


def test_a_flood_does_not_keep_a_wait_from_its_deadline(kernel: Kernel) -> None:
    flood = [told(route(bytes([10, 0, 0, 0]), 8))] * 1000
    kernel.events = list(flood)
    assert kernel.lib.at_source_wait(kernel.source, 0) & TIMEOUT
    assert 0 < len(kernel.events) < len(flood)


def test_a_message_that_cannot_be_read_is_a_loss_of_its_scope_alone(kernel: Kernel) -> None:
    cut = told(addr(1))[:20]
    cut = struct.pack("=I", 20) + cut[4:]
    kernel.events = [cut + told(addr(2))]
    kernel.drain()
    assert events(kernel.applied()) == [
        Loss(LossCause.MALFORMED, 1 << Scope.ADDR4, 1),
        addr(2),
    ]
    assert kernel.counters().malformed == 1


@pytest.mark.parametrize(
    "raw", [bytes(BUFFER + 1), told(addr(1))[:-8], bytes(7)], ids=["large", "cut", "header"]
)
def test_a_datagram_that_cannot_be_read_is_a_loss_of_everything(kernel: Kernel, raw: bytes) -> None:
    kernel.events = [raw]
    kernel.drain()
    (loss,) = events(kernel.applied())
    assert loss == Loss(LossCause.MALFORMED, ALL)


@pytest.mark.parametrize(
    "payload",
    [route(bytes([10, 0, 0, 0]), 8), route(table=100), route(table=1000)],
    ids=["no default", "other table", "other table by attribute"],
)
@pytest.mark.parametrize("op", Op)
def test_routes_that_matter_to_no_policy_never_reach_the_engine(
    kernel: Kernel, payload: Route, op: Op
) -> None:
    kernel.events = [told(payload, op)]
    kernel.drain()
    assert events(kernel.applied()) == []
    index = 24 + (op is Op.DEL) - 16
    counters = kernel.counters()
    assert (counters.seen[index], counters.dropped[index]) == (1, 1)
    assert sum(counters.apply_ns_bucket) == 0


def test_a_socket_that_is_gone_ends_the_wait(kernel: Kernel) -> None:
    kernel.events = [errno.ENOTCONN]
    assert kernel.lib.at_source_wait(kernel.source, 0) == -errno.ENOTCONN


# An engine that refuses, or has no memory.


@pytest.mark.parametrize(
    ("engine_says", "dump_says", "malformed"),
    [(-errno.EINVAL, -errno.EBADMSG, 1), (-errno.ENOMEM, -errno.ENOMEM, 0)],
)
def test_an_entry_that_the_engine_does_not_take_fails_the_dump(
    kernel: Kernel, engine_says: int, dump_says: int, malformed: int
) -> None:
    kernel.refused = {Kind.ADDR: engine_says}
    kernel.answers = [[shown(addr(1)) + done()]]
    assert kernel.dump(Scope.ADDR4) == dump_says
    assert phases(kernel.applied()) == [Phase.BEGIN, Phase.FAIL]
    assert kernel.counters().malformed == malformed


def test_an_event_that_the_engine_refuses_is_a_loss(kernel: Kernel) -> None:
    kernel.refused = {Kind.ADDR: -errno.EINVAL}
    kernel.events = [told(addr(1))]
    kernel.drain()
    assert events(kernel.applied()) == [Loss(LossCause.MALFORMED, 1 << Scope.ADDR4, 1)]


def test_an_engine_without_memory_says_itself_what_is_lost(kernel: Kernel) -> None:
    kernel.refused = {Kind.ADDR: -errno.ENOMEM}
    kernel.events = [told(addr(1)), told(ETH0)]
    kernel.drain()
    assert events(kernel.applied()) == [addr(1), ETH0]
    assert kernel.counters().malformed == 0


# The tap.


def test_the_tap_holds_whole_records_in_order_and_counts_what_did_not_fit(kernel: Kernel) -> None:
    room = 96 * 3 + 10
    assert kernel.lib.at_source_tap(kernel.source, room) == 0
    for first in range(1, 40, 4):
        numbers = range(first, first + 4)
        kernel.events = [told(addr(number)) for number in numbers]
        kernel.drain()
        assert events(kernel.applied()) == [addr(number) for number in numbers[:3]]
    assert kernel.counters().tap_lost == 10


def test_a_reader_with_little_room_gets_whole_records(kernel: Kernel) -> None:
    kernel.events = [told(addr(1)), told(addr(2))]
    kernel.drain()
    out = kernel.ffi.new("uint8_t[]", 191)
    assert kernel.lib.at_source_tap_read(kernel.source, out, 191) == 96
    assert events(kernel.applied()) == [addr(2)]


def test_a_tap_that_is_closed_holds_nothing(kernel: Kernel) -> None:
    assert kernel.lib.at_source_tap(kernel.source, 0) == 0
    kernel.events = [told(addr(1))]
    assert not kernel.drain() & TAP
    assert kernel.counters().tap_lost == 0
