"""bpf(2) as far as tests need it, by ctypes: maps, test runs, facts about programs."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import struct
from typing import NamedTuple

PAGE = mmap.PAGESIZE

_SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
_MAP_LOOKUP, _MAP_UPDATE, _MAP_DELETE, _MAP_NEXT, _TEST_RUN, _INFO = 1, 2, 3, 4, 10, 15
_ATTR_BYTES = 128

_BUSY, _DISCARDED = 1 << 31, 1 << 30
_RING_HEAD = 8

_libc = ctypes.CDLL(None, use_errno=True)


class Value:
    """Bytes at an address that the kernel can read and write."""

    def __init__(self, data: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(data, len(data))
        self.address = ctypes.addressof(self._buffer)

    @property
    def raw(self) -> bytes:
        return self._buffer.raw


def _bpf(command: int, attr: bytes) -> bytes:
    """The system call; the attributes as they are then. Raises OSError."""
    value = Value(attr.ljust(_ATTR_BYTES, b"\0"))
    result = _libc.syscall(_SYS_BPF, command, ctypes.c_void_p(value.address), _ATTR_BYTES)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value.raw


class Map:
    """A map with keys of 32 bits."""

    def __init__(self, fd: int, value_size: int) -> None:
        self.fd = fd
        self.value_size = value_size

    def _call(self, command: int, key: int, value: Value | None = None) -> None:
        number = Value(struct.pack("=I", key))
        address = value.address if value else 0
        _bpf(command, struct.pack("=IxxxxQQQ", self.fd, number.address, address, 0))

    def get(self, key: int) -> bytes | None:
        value = Value(bytes(self.value_size))
        try:
            self._call(_MAP_LOOKUP, key, value)
        except FileNotFoundError:
            return None
        return value.raw

    def put(self, key: int, value: bytes) -> None:
        assert len(value) == self.value_size
        self._call(_MAP_UPDATE, key, Value(value))

    def remove(self, key: int) -> None:
        self._call(_MAP_DELETE, key)

    def clear(self) -> None:
        first = Value(bytes(4))
        while True:
            try:
                _bpf(_MAP_NEXT, struct.pack("=IxxxxQQQ", self.fd, 0, first.address, 0))
            except FileNotFoundError:
                return
            self.remove(struct.unpack("=I", first.raw)[0])


def possible_cpus() -> int:
    """How many values a map has that keeps one for each CPU."""
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return int(file.read().strip().rsplit("-", 1)[-1].rsplit(",", 1)[-1]) + 1


class Run(NamedTuple):
    """What a test run came to."""

    verdict: int
    nanoseconds: int
    """Of one run, on average."""


ETHERNET = bytes(14)
"""A test run takes a frame; a socket filter sees what is behind its head."""


def try_run(program: int, packet: bytes, repeat: int = 1) -> Run:
    """BPF_PROG_TEST_RUN of a socket filter."""
    data = Value(ETHERNET + packet)
    size = len(ETHERNET) + len(packet)
    attr = struct.pack("=IIIIQQII", program, 0, size, 0, data.address, 0, repeat, 0)
    _, verdict, _, _, _, _, _, duration = struct.unpack_from("=IIIIQQII", _bpf(_TEST_RUN, attr))
    return Run(verdict, duration)


class Facts(NamedTuple):
    """What the kernel knows of a program."""

    instructions: int
    """After verification: what counts against optmem_max."""
    verified: int
    """Those that the verifier looked at, each as often as it did; 0 before Linux 5.16."""


def facts(program: int) -> Facts:
    """BPF_OBJ_GET_INFO_BY_FD, struct bpf_prog_info."""
    info = Value(bytes(232))
    _bpf(_INFO, struct.pack("=IIQ", program, 232, info.address))
    (length,) = struct.unpack_from("=I", info.raw, 20)
    (verified,) = struct.unpack_from("=I", info.raw, 216)
    return Facts(length // 8, verified)


class Ring:
    """Reads a ring buffer, and hears of wake-ups."""

    def __init__(self, fd: int, size: int) -> None:
        self.size = size
        self._consumer = mmap.mmap(fd, PAGE)
        self._rest = mmap.mmap(fd, PAGE + 2 * size, prot=mmap.PROT_READ, offset=PAGE)
        # Edge-triggered: only a wake-up makes an event, not that there is something to read.
        self._epoll = select.epoll()
        self._epoll.register(fd, select.EPOLLIN | select.EPOLLET)

    def close(self) -> None:
        self._epoll.close()
        self._rest.close()
        self._consumer.close()

    @property
    def used(self) -> int:
        """Bytes that were not read yet."""
        (consumer,) = struct.unpack_from("=Q", self._consumer, 0)
        (producer,) = struct.unpack_from("=Q", self._rest, 0)
        return int(producer - consumer)

    def read(self) -> list[bytes]:
        """All that is there, without what was discarded."""
        (at,) = struct.unpack_from("=Q", self._consumer, 0)
        (end,) = struct.unpack_from("=Q", self._rest, 0)
        found = []
        while at < end:
            offset = PAGE + at % self.size
            (length,) = struct.unpack_from("=I", self._rest, offset)
            assert not length & _BUSY
            size = length & ~_DISCARDED
            if not length & _DISCARDED:
                found.append(self._rest[offset + _RING_HEAD : offset + _RING_HEAD + size])
            at += (size + _RING_HEAD + 7) // 8 * 8
        struct.pack_into("=Q", self._consumer, 0, at)
        return found

    def woke(self, seconds: float = 0) -> bool:
        """Whether there was a wake-up since the last call; waits for it so long."""
        return bool(self._epoll.poll(seconds))
