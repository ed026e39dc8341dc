"""The ring of the BPF tier, with records in it that the real kernel rarely makes so."""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests import netlink_bytes
from tests.build import addr, gone, link, nexthop, route
from tests.netlink_bytes import message
from tests.unit import netlink_hooks
from tests.unit.ring_hooks import DISCARD, BpfKernel
from tracker.capture.payload import F_KERNEL, F_TASK, Dump, Loss, LossCause, Payload, Record, Task
from tracker.capture.record import describe, encode
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW = 64
KIND_RAW = 9
ETH0 = link(2, "eth0")
ADDRESSES = [addr(f"192.0.2.{number}/24", 2) for number in range(1, 200)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return netlink_hooks.build(str(tmp_path_factory.mktemp("hooked")))


@pytest.fixture
def kernel(built: Any) -> BpfKernel:
    made = BpfKernel(built)
    made.drain()
    made.applied()
    return made


def at(record: Record, boot_ns: int) -> Record:
    return record._replace(header=record.header._replace(boot_ns=boot_ns))


def events(records: Iterable[Record]) -> list[Payload]:
    return [record.payload for record in records if not isinstance(record.payload, Dump)]


def losses(kernel: BpfKernel) -> list[Loss]:
    return [payload for payload in events(kernel.applied()) if isinstance(payload, Loss)]


def test_records_are_applied_as_they_come_and_numbered(kernel: BpfKernel) -> None:
    kernel.emit(at(ETH0, 10), at(ADDRESSES[0], 11), at(ADDRESSES[1], 12))
    kernel.drain()
    records = kernel.applied()
    assert events(records) == [ETH0.payload, ADDRESSES[0].payload, ADDRESSES[1].payload]
    first = records[0].header.seq
    assert [record.header.seq for record in records] == [first, first + 1, first + 2]
    assert kernel.ring.consumer == kernel.ring.producer
    assert kernel.counters().reordered == 0


def test_records_out_of_order_are_put_right_and_are_no_loss(kernel: BpfKernel) -> None:
    kernel.emit(at(ADDRESSES[0], 20), at(ADDRESSES[1], 10), at(ADDRESSES[2], 30))
    kernel.drain()
    expected = [ADDRESSES[1].payload, ADDRESSES[0].payload, ADDRESSES[2].payload]
    assert events(kernel.applied()) == expected
    assert kernel.counters().reordered == 1
    assert kernel.counters().malformed == 0


def test_records_of_one_time_keep_their_order(kernel: BpfKernel) -> None:
    kernel.emit(*(at(record, 10) for record in ADDRESSES[:5]))
    kernel.drain()
    assert events(kernel.applied()) == [record.payload for record in ADDRESSES[:5]]
    assert kernel.counters().reordered == 0


def test_a_record_that_is_later_than_a_window_is_applied_late(kernel: BpfKernel) -> None:
    times = [*range(100, 100 + WINDOW), 50]
    pairs = zip(ADDRESSES, times, strict=False)
    kernel.emit(*(at(record, time) for record, time in pairs))
    kernel.drain()
    assert events(kernel.applied()) == [record.payload for record in ADDRESSES[: WINDOW + 1]]
    assert kernel.counters().reordered == 1


def test_nothing_behind_a_record_that_is_being_written_is_read(kernel: BpfKernel) -> None:
    raw = encode(at(ADDRESSES[0], 10))
    busy = kernel.ring.reserve(len(raw))
    kernel.emit(at(ADDRESSES[1], 11))
    kernel.drain()
    assert events(kernel.applied()) == []
    assert kernel.ring.consumer == busy
    kernel.ring.commit(busy, raw)
    kernel.drain()
    assert events(kernel.applied()) == [ADDRESSES[0].payload, ADDRESSES[1].payload]


def test_a_record_that_was_discarded_takes_no_room(kernel: BpfKernel) -> None:
    kernel.ring.write(encode(ADDRESSES[0]), DISCARD)
    kernel.drain()
    assert events(kernel.applied()) == []
    assert kernel.ring.consumer == kernel.ring.producer


def test_records_lie_across_the_end_of_the_ring(built: Any) -> None:
    kernel = BpfKernel(built, 4096)
    for number in range(0, 180, 20):
        some = ADDRESSES[number : number + 20]
        kernel.emit(*some)
        kernel.drain()
        assert events(kernel.applied()) == [record.payload for record in some]
    assert kernel.ring.consumer > 4 * kernel.ring.size


def test_more_room_than_a_record_has_is_no_matter(kernel: BpfKernel) -> None:
    kernel.ring.write(encode(ADDRESSES[0]), room=1000)
    kernel.emit(ADDRESSES[1])
    kernel.drain()
    assert events(kernel.applied()) == [ADDRESSES[0].payload, ADDRESSES[1].payload]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        encode(ETH0)[:31],
        encode(ETH0)[:-8],
        b"\x10\0" + encode(ETH0)[2:],
        encode(ETH0)[:2] + b"\x07" + encode(ETH0)[3:],
    ],
    ids=["empty", "no header", "cut", "a size below the header", "a version"],
)
def test_what_is_no_record_is_a_loss_of_everything(kernel: BpfKernel, raw: bytes) -> None:
    kernel.ring.write(raw)
    kernel.emit(ADDRESSES[0])
    kernel.drain()
    everything = (1 << len(Scope)) - 1
    *_, loss, after = events(kernel.applied())
    assert (loss, after) == (Loss(LossCause.MALFORMED, everything, 1), ADDRESSES[0].payload)
    assert kernel.counters().malformed == 1


# Messages that the program handed over as they are.

TASK = Task(812, "NetworkManager")
RA = 9


def raw(
    message: bytes, boot_ns: int = 7, task: Task | None = None, flags: int = 0, size: int = 0
) -> bytes:
    """A record of kind RAW."""
    trailer = struct.pack("=I4x16s", task.tgid, task.comm.encode()) if task else bytes(24)
    body = trailer + message
    flags |= F_TASK if task else 0
    head = (size or 32 + len(body), 1, KIND_RAW, 0, 0, 0, flags, boot_ns, 0, 0)
    return struct.pack("=HBBBxHIIQII", *head) + body


def only(kernel: BpfKernel) -> Record:
    kernel.drain()
    (record,) = kernel.applied()
    return record


@pytest.mark.parametrize(
    "record",
    [ETH0, ADDRESSES[0], gone(ADDRESSES[0]), nexthop(1, oif=2), route(oif=2, metric=5)],
    ids=describe,
)
def test_a_message_becomes_the_record_that_it_is(kernel: BpfKernel, record: Record) -> None:
    kernel.ring.write(raw(netlink_bytes.encode(record), boot_ns=77), room=2048)
    told = only(kernel)
    assert (told.header.op, told.header.boot_ns) == (record.header.op, 77)
    assert (told.payload, told.task) == (record.payload, None)


@pytest.mark.parametrize(
    ("record", "flags", "attribution"),
    [
        (ADDRESSES[0], 0, "process"),
        (ADDRESSES[0], F_KERNEL, "kernel"),
        (addr("2001:db8::10/64", 2, proto=2), 0, "untrusted"),
        (route(via="fe80::1", oif=2, proto=RA), F_KERNEL, "untrusted"),
    ],
)
def test_it_keeps_who_made_it(
    kernel: BpfKernel, record: Record, flags: int, attribution: str
) -> None:
    kernel.ring.write(raw(netlink_bytes.encode(record), task=TASK, flags=flags))
    assert only(kernel).task == TASK._replace(attribution=attribution)


def test_without_a_task_nobody_is_suspected(kernel: BpfKernel) -> None:
    kernel.ring.write(raw(netlink_bytes.encode(route(via="fe80::1", oif=2, proto=RA))))
    record = only(kernel)
    assert (record.task, record.header.flags) == (None, 0)


@pytest.mark.parametrize("record", [route(oif=2, table=7), route(oif=2, rtm_flags=0x200)])
def test_a_message_that_concerns_nobody_after_all_is_dropped(
    kernel: BpfKernel, record: Record
) -> None:
    kernel.ring.write(raw(netlink_bytes.encode(record)))
    kernel.drain()
    assert events(kernel.applied()) == []
    assert kernel.counters().dropped[netlink_bytes.RTM_NEWROUTE - 16] == 1


def test_a_message_that_is_malformed_is_a_loss_of_its_scope(kernel: BpfKernel) -> None:
    kernel.ring.write(raw(message(netlink_bytes.RTM_NEWADDR, b"\2")))
    kernel.drain()
    assert losses(kernel) == [Loss(LossCause.MALFORMED, 1 << Scope.ADDR4, 1)]
    counters = kernel.counters()
    assert (counters.malformed, counters.lost[netlink_bytes.RTM_NEWADDR - 16]) == (1, 1)


@pytest.mark.parametrize(
    "record",
    [raw(b""), raw(b"\x30\0\0\0" + bytes(12)), raw(b"", size=40), raw(b"", size=33)],
    ids=["nothing", "a length beyond it", "half a task", "a byte"],
)
def test_what_is_no_message_is_a_loss_of_everything(kernel: BpfKernel, record: bytes) -> None:
    kernel.ring.write(record, room=2048)
    kernel.drain()
    assert losses(kernel) == [Loss(LossCause.MALFORMED, (1 << len(Scope)) - 1, 1)]


def test_a_message_behind_another_is_not_read(kernel: BpfKernel) -> None:
    """The program hands over one; what is behind it is room that was not needed."""
    both = netlink_bytes.encode(ADDRESSES[0]) + netlink_bytes.encode(ADDRESSES[1])
    kernel.ring.write(raw(both))
    assert only(kernel).payload == ADDRESSES[0].payload


def test_a_failed_reserve_is_a_loss_of_its_scope_alone_and_once(kernel: BpfKernel) -> None:
    kernel.lose(Scope.ADDR4, 3)
    kernel.lose(Scope.LINK)
    kernel.emit(ADDRESSES[0])
    kernel.drain()
    assert events(kernel.applied()) == [
        ADDRESSES[0].payload,
        Loss(LossCause.RING, 1 << Scope.LINK, 1),
        Loss(LossCause.RING, 1 << Scope.ADDR4, 3),
    ]
    kernel.drain()
    assert losses(kernel) == []
    kernel.lose(Scope.ADDR4)
    kernel.drain()
    assert losses(kernel) == [Loss(LossCause.RING, 1 << Scope.ADDR4, 1)]


def test_the_alarm_is_taken_off(kernel: BpfKernel) -> None:
    kernel.alarm.write(bytes(8))
    kernel.alarm.write(bytes(8))
    kernel.drain()
    assert kernel.alarm.consumer == kernel.alarm.producer


def test_what_gets_past_the_filter_is_a_loss_once_and_is_not_read(kernel: BpfKernel) -> None:
    kernel.events += [message(16, bytes(16)), b"no message at all"]
    kernel.drain()
    everything = (1 << len(Scope)) - 1
    assert losses(kernel) == [Loss(LossCause.UNFILTERED, everything, 2)]
    counters = kernel.counters()
    assert (counters.unfiltered, counters.malformed, sum(counters.seen)) == (2, 0, 0)
    kernel.drain()
    assert losses(kernel) == []


def test_an_overrun_of_the_socket_is_a_loss_of_everything(kernel: BpfKernel) -> None:
    kernel.events += [errno.ENOBUFS]
    kernel.drain()
    assert losses(kernel) == [Loss(LossCause.OVERRUN, (1 << len(Scope)) - 1)]
    assert kernel.counters().overruns == 1


# What the kernel is told.


def set_policy(kernel: BpfKernel, table: int) -> None:
    table_policy = kernel.ffi.new("struct at_policy *", {"families": 3, "table": table})
    assert kernel.lib.at_engine_set_policy(kernel.engine, 0, table_policy) == 0


def test_a_filter_is_filled_and_put_in_the_place_of_the_other(built: Any) -> None:
    kernel = BpfKernel(built)
    kernel.drain()
    # The maps come with the first one in its place.
    assert [name for name, _, _ in kernel.updates] == ["filter0"]
    set_policy(kernel, 7)
    kernel.drain()
    assert kernel.updates[-1] == ("filters", 0, b"filter1")
    set_policy(kernel, 254)
    kernel.dump(Scope.LINK)
    assert kernel.updates[-1] == ("filters", 0, b"filter0")


def test_a_policy_that_says_nothing_new_to_the_filter_is_not_told(kernel: BpfKernel) -> None:
    before = len(kernel.updates)
    set_policy(kernel, 254)
    kernel.drain()
    assert len(kernel.updates) == before


def test_links_that_a_choice_depends_on_are_watched_before_a_wait_and_no_longer(
    kernel: BpfKernel,
) -> None:
    over = route(via="192.0.2.1", oif=5, metric=3)
    kernel.emit(over)
    watch(kernel)
    assert kernel.updates[-1] == ("watched", 5, b"\1\0\0\0")
    kernel.emit(gone(over), route(via="192.0.2.1", oif=6))
    watch(kernel)
    assert kernel.updates[-2:] == [("watched", 5, b""), ("watched", 6, b"\1\0\0\0")]
    before = len(kernel.updates)
    watch(kernel)
    assert len(kernel.updates) == before


def watch(kernel: BpfKernel) -> None:
    """Wait once; a memory file is always readable, so that it only looks."""
    kernel.drain()
    kernel.applied()
    kernel.lib.at_engine_changed(kernel.engine)
    kernel.lib.at_source_wait(kernel.source, kernel.lib.at_boot_ns() + 1_000_000)


def test_the_filter_has_the_tables_of_the_policies(built: Any) -> None:
    kernel = BpfKernel(built)
    kernel.drain()
    raw = kernel.ffi.from_buffer("struct at_filter *", kernel.updates[0][2])
    assert list(raw.tables[0 : raw.n_tables]) == [254]


EVERYTHING = (1 << len(Scope)) - 1
RULES = 1 << len(Scope)


def quiet_names(kernel: BpfKernel) -> int:
    """Of the filter that was filled last."""
    raw = [value for name, _, value in kernel.updates if name[-1].isdigit()][-1]
    return int(kernel.ffi.from_buffer("struct at_filter *", raw).n_quiet_names)


def exclude(kernel: BpfKernel, name: bytes) -> None:
    names = kernel.ffi.new("char[1][128]", [name])
    table = {"families": 3, "table": 254, "n_exclude_names": 1, "exclude_names": names}
    policy = kernel.ffi.new("struct at_policy *", table)
    assert kernel.lib.at_engine_set_policy(kernel.engine, 0, policy) == 0


def test_another_filter_makes_the_program_forget_what_the_old_one_judged(
    kernel: BpfKernel,
) -> None:
    before = kernel.cleared.count("links")
    exclude(kernel, b"wq*")
    kernel.drain()
    assert kernel.cleared.count("links") == before + 1
    kernel.drain()
    assert kernel.cleared.count("links") == before + 1
    assert losses(kernel) == []


@pytest.mark.parametrize("broken", ["filter1", "filters"])
def test_a_filter_without_memory_for_it_is_told_later_and_is_a_loss_until_then(
    kernel: BpfKernel, broken: str
) -> None:
    everything = Loss(LossCause.RING, EVERYTHING | RULES)
    kernel.broken[broken] = errno.ENOMEM
    set_policy(kernel, 7)
    assert kernel.drain() >= 0
    assert losses(kernel) == [everything]
    assert kernel.drain() >= 0
    assert losses(kernel) == []
    del kernel.broken[broken]
    kernel.drain()
    assert kernel.updates[-1] == ("filters", 0, b"filter1")
    assert losses(kernel) == [everything]
    kernel.drain()
    assert losses(kernel) == []


def test_a_filter_that_is_refused_is_an_error(kernel: BpfKernel) -> None:
    kernel.broken["filters"] = errno.EPERM
    set_policy(kernel, 7)
    assert kernel.drain() == -errno.EPERM


@pytest.mark.parametrize("message", [errno.ENOBUFS, b"past the filter"])
def test_what_could_not_be_forgotten_is_forgotten_later_and_is_a_loss(
    kernel: BpfKernel, message: int | bytes
) -> None:
    kernel.broken["links"] = errno.EAGAIN
    kernel.events += [message]
    kernel.drain()
    assert [loss.scopes & EVERYTHING for loss in losses(kernel)] == [EVERYTHING]
    kernel.drain()
    assert losses(kernel) == []
    del kernel.broken["links"]
    before = kernel.cleared.count("links")
    kernel.drain()
    assert kernel.cleared.count("links") == before + 1
    assert losses(kernel) == [Loss(LossCause.RING, 1 << Scope.LINK)]
    kernel.drain()
    assert losses(kernel) == []


def test_where_a_link_cannot_be_watched_none_is_quiet_until_it_can(kernel: BpfKernel) -> None:
    exclude(kernel, b"wq*")
    kernel.emit(route(via="192.0.2.1", oif=5))
    watch(kernel)
    assert quiet_names(kernel) == 1
    kernel.broken["watched"] = errno.ENOMEM
    kernel.emit(route(via="192.0.2.1", oif=6, metric=9))
    watch(kernel)
    assert quiet_names(kernel) == 0
    watch(kernel)
    assert quiet_names(kernel) == 0
    del kernel.broken["watched"]
    before = len(kernel.updates)
    # What is in the map is not known then.
    watch(kernel)
    assert kernel.cleared[-2:] == ["watched", "links"]
    told = [key for name, key, _ in kernel.updates[before:] if name == "watched"]
    assert told == [5, 6]
    assert quiet_names(kernel) == 1
