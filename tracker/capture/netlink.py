"""The kernel's own announcements and strict dumps, read in C (native/netlink.h)."""

from __future__ import annotations

import errno
import os
import time
from typing import Any

from tracker._engine import ffi, lib
from tracker.capture.base import Wake
from tracker.capture.sysctl import v6_silent_down
from tracker.engine.native import NativeEngine
from tracker.errors import NotPermittedError, UnsupportedError, UsageError
from tracker.model import Scope

__all__ = ["RCVBUF", "NetlinkSource", "boot_ns", "enter_netns", "parse", "refused"]

RCVBUF = 8 << 20
"""Bytes asked for: a second of churn on a busy router. Memory is used only while we are late."""

_READ_BYTES = 1 << 16
_CHANGED = Wake.CHANGED
_CHANGED_BIT = int(_CHANGED)
"""That alone, as most waits end: to look for a member takes as long as to decide."""
_TYPES = {
    16: "RTM_NEWLINK",
    17: "RTM_DELLINK",
    20: "RTM_NEWADDR",
    21: "RTM_DELADDR",
    24: "RTM_NEWROUTE",
    25: "RTM_DELROUTE",
    32: "RTM_NEWRULE",
    33: "RTM_DELRULE",
    104: "RTM_NEWNEXTHOP",
    105: "RTM_DELNEXTHOP",
}
_RTM_BASE = 16


class NetlinkSource:
    """Feeds a NativeEngine from rtnetlink, in the network namespace of the calling thread.

    The engine starts with every scope lost. One thread uses a source, and stays in that
    namespace; wake() and counters() may be called from any.
    """

    name = "netlink"

    def __init__(self, engine: NativeEngine, rcvbuf: int = RCVBUF) -> None:
        self.engine = engine
        self.dump_error = ""
        """What the last dump that failed ran into."""
        out = ffi.new("struct at_source **")
        refused("cannot open a netlink socket", lib.at_source_open(engine.handle, rcvbuf, out))
        # The handle dies with its last user, so that wake() and close() cannot race.
        self._handle = ffi.gc(out[0], lib.at_source_close)

    def wait(self, deadline_ns: int) -> Wake:
        """Block until something is due or CLOCK_BOOTTIME reaches `deadline_ns`.

        A signal ends it as well (Wake.USER). Raises UnsupportedError when the socket is gone.
        """
        handle = self._handle or self._open()
        bits = lib.at_source_wait_glance(handle, deadline_ns, self.engine.glanced)
        return _CHANGED if bits == _CHANGED_BIT else _wake(bits)

    def drain(self) -> Wake:
        """Apply what is queued, without blocking; raises as wait() does."""
        return _wake(lib.at_source_drain(self._open()))

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        """Dump one scope into the engine: begin, entries, end. False when it failed."""
        flags = lib.AT_DUMP_AUDIT if audit else 0
        result = lib.at_source_dump(self._open(), scope, ifindex, table, flags)
        if result < 0:
            changing = result == -errno.EAGAIN
            self.dump_error = "what it lists changed each time" if changing else _text(result)
        return bool(result == 0)

    def refresh(self) -> None:
        """Read again what the kernel does not announce (sysctls) and tell the engine."""
        self.engine.set_v6_silent_down(v6_silent_down())

    def wake(self) -> None:
        """End a wait, from any thread or a signal handler."""
        handle = self._handle
        if handle is not None:
            lib.at_source_wake(handle)

    def close(self) -> None:
        """Free sockets; the engine stays."""
        self._handle = None

    def tap(self, size: int) -> None:
        """Keep a copy of every applied record in a ring of `size` bytes; 0 = no longer.

        What does not fit is counted as tap_lost.
        """
        if lib.at_source_tap(self._open(), size) < 0:
            raise MemoryError

    def read_tap(self) -> bytes:
        """Whole records in the order they were applied, some 64 KiB at most; b"" = no more."""
        out = ffi.new("uint8_t[]", _READ_BYTES)
        return bytes(ffi.buffer(out, lib.at_source_tap_read(self._open(), out, _READ_BYTES)))

    def counters(self) -> dict[str, int]:
        """Flat counters: seen.TYPE, dropped.TYPE, emitted.TYPE, lost.TYPE, residual (seen less
        the other three: 0 but for what is under way), malformed, overruns, lost (dropped by the
        kernel for want of room), tap_lost, dumps.SCOPE, dump_failures.SCOPE, rcvbuf,
        apply_ns_sum, apply_ns_bucket.N."""
        return self._counters(self._raw_counters())

    def _raw_counters(self) -> Any:
        raw = ffi.new("struct at_source_counters *")
        lib.at_source_counters(self._open(), raw)
        return raw

    @staticmethod
    def _counters(raw: Any) -> dict[str, int]:
        counters: dict[str, int] = {}
        total = {}
        for group in ("seen", "dropped", "emitted", "lost"):
            by_type = list(getattr(raw, group))
            total[group] = sum(by_type)
            known = {name: by_type[number - _RTM_BASE] for number, name in _TYPES.items()}
            known["other"] = total[group] - sum(known.values())
            counters |= {f"{group}.{name}": count for name, count in known.items()}
        counters["residual"] = 2 * total["seen"] - sum(total.values())
        for group in ("dumps", "dump_failures"):
            by_scope = getattr(raw, group)
            counters |= {f"{group}.{scope.name.lower()}": by_scope[scope] for scope in Scope}
        buckets = enumerate(raw.apply_ns_bucket)
        counters |= {f"apply_ns_bucket.{number}": count for number, count in buckets}
        counters["lost"] = raw.overrun
        plain = ("malformed", "overruns", "tap_lost", "rcvbuf", "apply_ns_sum")
        return counters | {name: getattr(raw, name) for name in plain}

    def fileno(self) -> int:
        """The multicast socket, for tests."""
        return int(lib.at_source_fd(self._open()))

    def _open(self) -> object:
        if self._handle is None:
            raise ValueError("the source is closed")
        return self._handle


def refused(what: str, result: int) -> None:
    """Raise NotPermittedError or UnsupportedError where a result is -errno."""
    if result in {-errno.EPERM, -errno.EACCES}:
        raise NotPermittedError(f"{what}: {_text(result)}")
    if result < 0:
        raise UnsupportedError(f"{what}: {_text(result)}")


def parse(message: bytes, boot_ns: int = 0, flags: int = 0) -> bytes | None:
    """One netlink message (struct nlmsghdr first) as a record; None where it is not for us.

    Raises ValueError for a malformed one.
    """
    out = ffi.new("uint64_t[]", lib.AT_RECORD_MAX // 8)
    size = lib.at_parse(ffi.from_buffer(message), len(message), boot_ns, flags, out)
    if size < 0:
        raise ValueError(os.strerror(-size))
    return bytes(ffi.buffer(out, size)) if size else None


def boot_ns() -> int:
    """CLOCK_BOOTTIME in nanoseconds: it goes on while the host sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def enter_netns(name: str) -> None:
    """Move the calling thread into a network namespace: a name under /run/netns, or a path.

    Before any other thread starts. Raises UsageError, NotPermittedError.
    """
    error = -lib.at_netns_enter(os.fsencode(name))
    if error in {errno.EPERM, errno.EACCES}:
        raise NotPermittedError(f"network namespace {name!r}: {os.strerror(error)}")
    if error:
        raise UsageError(f"network namespace {name!r}: {os.strerror(error)}")


def _text(result: int) -> str:
    return os.strerror(-result)


def _wake(result: int) -> Wake:
    if result < 0:
        raise UnsupportedError(f"the netlink socket is gone: {_text(result)}")
    return Wake(result)
