"""What the netlink source makes of what a kernel says, the rare things included."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.netlink_hooks import (
    MAIN,
    NETLINK_GET_STRICT_CHK,
    NLM_F_DUMP_INTR,
    SOL_NETLINK,
    Kernel,
    build,
    done,
    failed,
    table_of,
)
from tests.unit.netlink_payloads import addr, addr6, entries, phases, route, shown, told
from tracker.capture.payload import (
    DUMP_UNPROVEN,
    Dump,
    Phase,
)
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTEMPTS = 6
BUFFER = 64 * 1024


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
