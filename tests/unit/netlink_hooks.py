"""A kernel that says what a test wants: the netlink source, linked to hooks instead of it."""

from __future__ import annotations

import errno
import glob
import os
import re
import struct
import subprocess
from typing import Any

import cffi

from tests.netlink_bytes import message
from tracker.capture.payload import Record
from tracker.capture.record import iter_records

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOL_NETLINK = 270
NETLINK_GET_STRICT_CHK = 12
NLMSG_NOOP = 1
NLMSG_ERROR = 2
NLMSG_DONE = 3
NLM_F_DUMP_INTR = 0x10
TAP_BYTES = 1 << 20
MAIN = 254

Answer = list[bytes | int]
"""Datagrams, or the errno that the system call gives."""

_HOOKS = """
extern ssize_t (*hook_send)(const void *, size_t);
extern ssize_t (*hook_receive)(int, void *, size_t, uint32_t *);
extern int (*hook_option)(int, int);
extern int (*hook_apply)(int);
extern int (*hook_map)(int, int, uint32_t, const void *);
extern int (*hook_lookup)(void);
"""


def build(folder: str) -> Any:
    """Compile native/ with the hooks; what cffi makes of it."""
    ffi = cffi.FFI()
    for name in ("records", "filter", "engine", "bpf", "netlink"):
        with open(os.path.join(ROOT, "native", f"{name}.cdef"), encoding="ascii") as file:
            # Constants that only a compiler knows are not needed here.
            ffi.cdef(re.sub(r"^#define \w+ \.\.\.$", "", file.read(), flags=re.MULTILINE))
    ffi.cdef(_HOOKS)
    library = os.path.join(folder, "hooked.so")
    maps = ("at_map_entries", "at_map_update", "at_map_delete", "at_map_clear", "at_map_lookup")
    wrapped = ("sendto", "recv", "recvfrom", "setsockopt", "at_engine_apply", *maps)
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-g", "-fPIC", "-shared"]
        + [f"-I{os.path.join(ROOT, folder)}" for folder in ("native", "bpf")]
        + [f"-Wl,--wrap={name}" for name in wrapped]
        + [os.path.join(ROOT, "tests", "unit", "netlink_hooks.c")]
        + sorted(glob.glob(os.path.join(ROOT, "native", "*.c")))
        + ["-o", library],
        check=True,
    )
    return ffi, ffi.dlopen(library)


def done(error: int = 0, flags: int = 0) -> bytes:
    """The end of a dump, with its error as the kernel puts it."""
    return message(NLMSG_DONE, struct.pack("=i", -error), 2 | flags, 1)


def failed(error: int) -> bytes:
    """The answer to a request that was not even begun."""
    return message(NLMSG_ERROR, struct.pack("=i", -error) + bytes(16), 0, 1)


def entry(raw: bytes, flags: int = 0) -> bytes:
    """A message as part of a dump."""
    length, kind, _, _, portid = struct.unpack_from("=IHHII", raw)
    return struct.pack("=IHHII", length, kind, 2 | flags, 1, portid) + raw[16:]


class Kernel:
    """Answers requests in turn, and holds what the multicast socket will say."""

    def __init__(self, built: Any) -> None:
        self.ffi, self.lib = built
        self.answers: list[Answer] = []
        """One for each request that comes."""
        self.events: Answer = []
        self.requests: list[bytes] = []
        self.options: dict[tuple[int, int], int] = {}
        """errno by level and name of a socket option."""
        self.refused: dict[int, int] = {}
        """What the engine says instead of applying a record, by its kind."""
        self.portid = 0
        """Who sends."""
        self.acknowledgement: bytes | int = failed(0)
        """What comes of the request for nothing, which goes ahead of each other one."""
        self._current: Answer = []
        self._hooks = (
            self.ffi.callback("ssize_t(const void *, size_t)", self._send),
            self.ffi.callback("ssize_t(int, void *, size_t, uint32_t *)", self._receive),
            self.ffi.callback("int(int, int)", self._option),
            self.ffi.callback("int(int)", lambda kind: self.refused.get(kind, 0)),
        )
        names = ("hook_send", "hook_receive", "hook_option", "hook_apply")
        for name, hook in zip(names, self._hooks, strict=True):
            setattr(self.lib, name, hook)
        self.engine = self.ffi.gc(self.lib.at_engine_new(), self.lib.at_engine_free)
        policy = self.ffi.new("struct at_policy *", {"families": 3, "table": MAIN})
        assert self.lib.at_engine_set_policy(self.engine, 0, policy) == 0
        out = self.ffi.new("struct at_source **")
        assert self.lib.at_source_open(self.engine, 1 << 16, out) == 0
        self.source = self.ffi.gc(out[0], self.lib.at_source_close)
        self.multicast = self.lib.at_source_fd(self.source)
        self._feed()
        assert self.lib.at_source_tap(self.source, TAP_BYTES) == 0

    def _feed(self) -> None:
        """Give the source something to read instead of its socket."""

    def dump(self, scope: int, ifindex: int = 0, table: int = 0) -> int:
        return int(self.lib.at_source_dump(self.source, scope, ifindex, table, 0))

    def drain(self) -> int:
        return int(self.lib.at_source_drain(self.source))

    def applied(self) -> list[Record]:
        """Records since the last call."""
        out = self.ffi.new("uint8_t[]", TAP_BYTES)
        size = self.lib.at_source_tap_read(self.source, out, TAP_BYTES)
        return list(iter_records(bytes(self.ffi.buffer(out, size))))

    def counters(self) -> Any:
        counters = self.ffi.new("struct at_source_counters *")
        self.lib.at_source_counters(self.source, counters)
        return counters

    def _send(self, buf: Any, size: int) -> int:
        request = bytes(self.ffi.buffer(buf, size))
        if struct.unpack_from("=H", request, 4)[0] == NLMSG_NOOP:
            self._current = [self.acknowledgement]
            return size
        self.requests.append(request)
        self._current = list(self.answers.pop(0)) if self.answers else []
        return size

    def _receive(self, fd: int, buf: Any, size: int, portid: Any) -> int:
        portid[0] = self.portid
        queue = self.events if fd == self.multicast else self._current
        item = queue.pop(0) if queue else errno.EAGAIN
        if isinstance(item, int):
            return -item
        self.ffi.memmove(buf, item[:size], min(size, len(item)))
        return len(item)

    def _option(self, level: int, name: int) -> int:
        return -self.options.get((level, name), 0)


def table_of(request: bytes) -> int:
    """The routing table that a request names."""
    assert request[16 + 12 :][:4] == struct.pack("=HH", 8, 15)
    return int(struct.unpack_from("=I", request, 16 + 12 + 4)[0])
