"""What the netlink source makes of events, losses among them, and of a tap that is too small."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.netlink_hooks import (
    Kernel,
    build,
    done,
)
from tests.unit.netlink_payloads import addr, events, phases, route, shown, told
from tracker.capture.payload import (
    Kind,
    Link,
    Loss,
    LossCause,
    Op,
    Phase,
    Route,
)
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

BUFFER = 64 * 1024
ALL = (1 << len(Scope)) - 1
CHANGED, DIRTY, TIMEOUT, TAP = 1, 2, 4, 16
ETH0 = Link(7, "eth0", flags=0x11043, mtu=1500, type=1, operstate=6)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build(str(tmp_path_factory.mktemp("hooked")))


@pytest.fixture
def kernel(built: Any) -> Iterator[Kernel]:
    kernel = Kernel(built)
    yield kernel
    assert not kernel.answers, "the source asked less often than expected"


def test_an_event_is_applied_and_wakes(kernel: Kernel) -> None:
    kernel.events = [told(ETH0) + told(addr(1))]
    assert kernel.drain() & (CHANGED | TAP) == CHANGED | TAP
    assert events(kernel.applied()) == [ETH0, addr(1)]
    counters = kernel.counters()
    assert (counters.seen[0], counters.seen[4]) == (1, 1)
    assert sum(counters.apply_ns_bucket) == 2


@pytest.mark.parametrize("error", [errno.ENOBUFS, errno.EMSGSIZE], ids=errno.errorcode.get)
def test_an_overrun_is_a_loss_of_everything_and_the_rest_is_read(
    kernel: Kernel, error: int
) -> None:
    """EMSGSIZE: some message was larger than the kernel had thought."""
    kernel.events = [told(addr(1)), error, told(addr(2))]
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
