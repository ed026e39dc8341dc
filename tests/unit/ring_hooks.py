"""A ring on paper: memory laid out as the kernel's, for the source that reads it."""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any

from tests.unit.netlink_hooks import Kernel
from tracker.capture.record import Record, encode

PAGE = mmap.PAGESIZE
BUSY, DISCARD = 1 << 31, 1 << 30
HEAD = 8

Update = tuple[str, int, bytes]
"""Of a map, by its name: key and value; an empty value deletes."""


class Ring:
    """kernel/bpf/ringbuf.c: a page of the reader, a page of the writer, the data twice."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fd = os.memfd_create("ring")
        os.ftruncate(self.fd, 2 * PAGE + 2 * size)
        self._memory = mmap.mmap(self.fd, 0)

    @property
    def consumer(self) -> int:
        return int(struct.unpack_from("=Q", self._memory, 0)[0])

    @property
    def producer(self) -> int:
        return int(struct.unpack_from("=Q", self._memory, PAGE)[0])

    def reserve(self, size: int) -> int:
        """Room for so many bytes, busy; where it is. It must be free."""
        at = self.producer
        end = at + HEAD + (size + 7) // 8 * 8
        assert end - self.consumer <= self.size
        self._put(at, struct.pack("=II", size | BUSY, 0))
        struct.pack_into("=Q", self._memory, PAGE, end)
        return at

    def commit(self, at: int, data: bytes, flags: int = 0) -> None:
        """Fill what was reserved; the rest of it stays as it is."""
        self._put(at + HEAD, data)
        (size,) = struct.unpack("=I", self._get(at, 4))
        self._put(at, struct.pack("=I", size & ~BUSY | flags))

    def write(self, data: bytes, flags: int = 0, room: int = 0) -> None:
        """Reserve and commit; `room` bytes where that is more than the data."""
        self.commit(self.reserve(max(len(data), room)), data, flags)

    def _put(self, at: int, data: bytes) -> None:
        for offset, byte in enumerate(data):
            place = 2 * PAGE + (at + offset) % self.size
            self._memory[place] = self._memory[place + self.size] = byte

    def _get(self, at: int, size: int) -> bytes:
        place = 2 * PAGE + at % self.size
        return bytes(self._memory[place : place + size])


class BpfKernel(Kernel):
    """Writes records where a program would, and holds what it was told."""

    def __init__(self, built: Any, ring_bytes: int = 1 << 16) -> None:
        self.ring, self.alarm = Ring(ring_bytes), Ring(PAGE)
        self.updates: list[Update] = []
        self.cleared: list[str] = []
        """Maps, by name."""
        self.broken: dict[str, int] = {}
        """errno of what is done to a map, by name."""
        self._shared_fd = os.memfd_create("shared")
        os.ftruncate(self._shared_fd, PAGE)
        self._shared = mmap.mmap(self._shared_fd, PAGE)
        self._maps = {
            os.memfd_create(name): name
            for name in ("filters", "filter0", "filter1", "watched", "links")
        }
        ffi, lib = built
        self._map_hook = ffi.callback("int(int, int, uint32_t, const void *)", self._on_map)
        lib.hook_map = self._map_hook
        super().__init__(built)

    def _feed(self) -> None:
        fds = {name: fd for fd, name in self._maps.items()}
        bpf = self.ffi.new(
            "struct at_bpf *",
            {
                "prog": -1,
                "ring": self.ring.fd,
                "alarm": self.alarm.fd,
                "shared": self._shared_fd,
                "counts": -1,
                "filters": fds["filters"],
                "filter": [fds["filter0"], fds["filter1"]],
                "links": fds["links"],
                "watched": fds["watched"],
                "traced": -1,
            },
        )
        assert self.lib.at_source_feed(self.source, bpf) == 0

    def emit(self, *records: Record) -> None:
        """A record for each, as it is."""
        for record in records:
            self.ring.write(encode(record))

    def lose(self, scope: int, count: int = 1) -> None:
        """Reserves failed."""
        (before,) = struct.unpack_from("=Q", self._shared, 8 * scope)
        struct.pack_into("=Q", self._shared, 8 * scope, before + count)

    def _on_map(self, command: int, fd: int, key: int, value: Any) -> int:
        if chr(command) == "r":
            return self.ring.size
        name = self._maps[fd]
        if name in self.broken:
            return -self.broken[name]
        if chr(command) == "c":
            self.cleared.append(name)
            return 0
        size = 0
        if chr(command) == "u":
            size = self.ffi.sizeof("struct at_filter") if name[-1].isdigit() else 4
        raw = bytes(self.ffi.buffer(value, size)) if size else b""
        if name == "filters":
            raw = self._maps[struct.unpack("=i", raw)[0]].encode()
        self.updates.append((name, key, raw))
        return 0
