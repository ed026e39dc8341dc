"""The filter at work on one message at a time, and all that it leaves behind."""

from __future__ import annotations

import contextlib
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from tests.bpf.kernel import PAGE, Map, Ring, possible_cpus, try_run
from tests.tiers import BCC
from tracker.capture.bpf import create_maps
from tracker.capture.loader import PLAIN, WITH_TASKS, load, load_object
from tracker.capture.payload import F_KERNEL, F_TASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST = "at_filter_least"
"""Reads no link: it loads with CAP_BPF alone, on kernels before 6.16 as well."""
READS_LINKS = (WITH_TASKS, PLAIN, BCC.loader)
VARIANTS = (*READS_LINKS, LEAST)

RTM_BASE = 16
TYPES = 96
OTHER = TYPES - 1
"""The row of any other type."""

KIND_RAW = 9
HEADER = 32
TASK = 24
LINK = struct.Struct("=IIIIIIHB5x16s16s")
PAD = 28
"""Offset in struct at_link of what is zero in a record."""

NAMES_MAX, KINDS_MAX, TABLES_MAX, TARGETS_MAX = 64, 16, 16, 16
FILTER_BYTES = 24 + 4 * TABLES_MAX + 24 * TARGETS_MAX + 2 * 32 * NAMES_MAX + 16 * KINDS_MAX
MAIN = 254


class Count(NamedTuple):
    """struct at_count."""

    seen: int
    dropped: int
    emitted: int
    lost: int


class Shown(NamedTuple):
    """One entry of the ring, taken apart as bpf/records.h says."""

    size: int
    version: int
    kind: int
    op: int
    nl_flags: int
    seq: int
    flags: int
    boot_ns: int
    portid: int
    slot: int
    record: bytes
    """All of it, header included."""

    @property
    def payload(self) -> bytes:
        return self.record[HEADER:]

    @property
    def message(self) -> bytes:
        """Of a raw one: behind the task."""
        assert self.kind == KIND_RAW
        return self.payload[TASK:]


def shown(sample: bytes) -> Shown:
    fields = struct.unpack_from("=HBBBxHIIQII", sample)
    assert HEADER <= fields[0] <= len(sample)
    return Shown._make((*fields, sample[: fields[0]]))


def without_task(made: Shown) -> bytes:
    """The record as the parser makes it: no task, its flags, the time of the parser's choice."""
    if not made.flags & F_TASK:
        return made.record
    cut = bytearray(made.record[:-TASK])
    struct.pack_into("=H", cut, 0, len(cut))
    struct.pack_into("=I", cut, 12, made.flags & ~(F_TASK | F_KERNEL))
    return bytes(cut)


def mask(pattern: str) -> bytes:
    """struct at_name_mask of a name, or of what one begins with where it ends with `*`."""
    begin = pattern.removesuffix("*").encode()
    end = len(begin) + (begin == pattern.encode())  # the zero that ends a name
    return begin.ljust(16, b"\0") + (b"\xff" * end).ljust(16, b"\0")


def policy(
    tables: Sequence[int] = (MAIN,),
    targets: Sequence[bytes] = (),
    quiet: Sequence[str] = (),
    loud: Sequence[str] = (),
    kinds: Sequence[str] = (),
    *,
    n_quiet: int | None = None,
) -> bytes:
    """struct at_filter."""
    counts = (
        len(tables), len(targets), len(quiet) if n_quiet is None else n_quiet, len(loud),
        len(kinds), 0,
    )  # fmt: skip
    families = {4: 2, 16: 10}
    parts = (
        struct.pack("=6I", *counts),
        struct.pack(f"={len(tables)}I", *tables).ljust(4 * TABLES_MAX, b"\0"),
        b"".join(
            struct.pack("=B7x16s", families[len(address)], address) for address in targets
        ).ljust(24 * TARGETS_MAX, b"\0"),
        b"".join(map(mask, quiet)).ljust(32 * NAMES_MAX, b"\0"),
        b"".join(map(mask, loud)).ljust(32 * NAMES_MAX, b"\0"),
        b"".join(kind.encode().ljust(16, b"\0") for kind in kinds).ljust(16 * KINDS_MAX, b"\0"),
    )
    whole = b"".join(parts)
    assert len(whole) == FILTER_BYTES
    return whole


class Filter:
    """One variant of the program on maps of its own."""

    def __init__(self, variant: str, ring_bytes: int) -> None:
        self.variant = variant
        self.maps = create_maps(ring_bytes)
        if variant == BCC.loader:
            self.program = load(self.maps._asdict(), variant).program
        else:
            self.program = load_object("filter", variant, self.maps._asdict())
        self.ring = Ring(self.maps.ring, ring_bytes)
        self.alarm = Ring(self.maps.alarm, PAGE)
        self.links = Map(self.maps.links, LINK.size)
        self.watched = Map(self.maps.watched, 4)
        self._filters = Map(self.maps.filters, 4)
        self._filter = [Map(fd, FILTER_BYTES) for fd in (self.maps.filter0, self.maps.filter1)]
        self._counts = Map(self.maps.counts, 32 * possible_cpus())
        self._shared = Map(self.maps.shared, 64)
        self._current = 0

    def close(self) -> None:
        self.ring.close()
        self.alarm.close()
        os.close(self.program)
        self.maps.close()

    def obey(self, raw: bytes) -> None:
        """Fill the filter that is not in use, and put it in the place of the other."""
        self._current ^= 1
        target = self._filter[self._current]
        target.put(0, raw)
        self._filters.put(0, struct.pack("=I", target.fd))

    def count(self, row: int) -> Count:
        """Of one row, over all CPUs."""
        raw = self._counts.get(row)
        assert raw is not None
        return Count(*map(sum, zip(*struct.iter_unpack("=4Q", raw), strict=True)))

    @property
    def lost(self) -> tuple[int, ...]:
        """By scope; rules come last."""
        raw = self._shared.get(0)
        assert raw is not None
        return struct.unpack("=8Q", raw)[:7]

    def forget(self) -> None:
        """Read all that is there, wake-ups included; know no link."""
        self.links.clear()
        self.watched.clear()
        for ring in (self.ring, self.alarm):
            ring.read()
            ring.woke()

    def feed(self, packet: bytes) -> str:
        """Run it on a message: "dropped", "emitted" or "lost". It never passes to the socket, and
        its row of the accounting adds up."""
        kind = struct.unpack_from("=H", packet, 4)[0] if len(packet) >= 16 else 0
        row = min((kind - RTM_BASE) % (1 << 32), OTHER)
        before = self.count(row)
        assert try_run(self.program, packet).verdict == 0
        after = self.count(row)
        change = Count(*(b - a for a, b in zip(before, after, strict=True)))
        assert change.seen == 1
        [what] = [name for name in Count._fields[1:] if getattr(change, name) == 1]
        assert sum(change) == 2
        return what

    def pass_on(self, packet: bytes) -> Shown | None:
        """Run it on a message and read what comes of it; None = dropped. Nothing may be lost."""
        what = self.feed(packet)
        found = self.ring.read()
        assert what == ("emitted" if found else "dropped")
        if not found:
            return None
        [sample] = found
        return shown(sample)


@contextlib.contextmanager
def filtering(variant: str = WITH_TASKS, ring_bytes: int = 1 << 16) -> Iterator[Filter]:
    """A program for a while, with the policy of a node that has nothing configured."""
    program = Filter(variant, ring_bytes)
    try:
        program.obey(policy())
        yield program
    finally:
        program.close()
