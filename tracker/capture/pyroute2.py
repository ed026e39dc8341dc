"""The source for hosts without the compiled extension: small nodes, and a second opinion.

pyroute2 opens the sockets and decodes the messages. Its own reader does not survive a burst, so
the sockets are read here; and it decodes some thousand messages a second, so a classic BPF
program keeps routes that are no default routes from being delivered at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from pyroute2 import IPRoute

from tracker.capture import pyroute2_messages as messages
from tracker.capture.base import Wake
from tracker.capture.priming import READ_BYTES, prime
from tracker.capture.record import (
    DUMP_AUDIT,
    DUMP_UNPROVEN,
    F_DUMP,
    Dump,
    Header,
    Loss,
    LossCause,
    Phase,
    Record,
    encode,
)
from tracker.capture.sysctl import v6_silent_down
from tracker.engine.base import NEVER, Engine
from tracker.errors import NotPermittedError, UnsupportedError
from tracker.model import AF_INET, Network, Scope

RCVBUF = 8 << 20
"""Bytes asked for; memory is used only while we are late."""

_GROUPS = 1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x40000
"""RTMGRP_LINK, IPV4_IFADDR, IPV4_ROUTE, IPV4_RULE, IPV6_IFADDR, IPV6_ROUTE, IPV6_RULE."""
_RTNLGRP_NEXTHOP = 32
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_SO_RCVBUFFORCE = 33
_NLM_F_REQUEST, _NLM_F_DUMP, _NLM_F_DUMP_INTR = 0x1, 0x300, 0x10
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_ATTEMPTS = 6
_ANSWER_WITHIN = 5.0
"""Seconds; the kernel answers while we ask."""
_ALL = (1 << len(Scope)) - 1


class _DumpFailed(Exception):  # noqa: N818 - it names an outcome
    def __init__(self, error: int) -> None:
        super().__init__(os.strerror(error))
        self.errno = error


class Pyroute2Source:
    """Feeds any engine, in the network namespace in which it was made.

    One thread uses it; wake() may be called from any, and from a signal handler. Raises
    NotPermittedError or UnsupportedError where there is no rtnetlink.
    """

    name = "pyroute2"

    def __init__(self, engine: Engine, rcvbuf: int = RCVBUF) -> None:
        self.engine = engine
        self.dump_error = ""
        """What the last dump that failed ran into."""
        self._counts: dict[str, int] = {"malformed": 0, "overruns": 0, "tap_lost": 0}
        self._seq = 0
        self._unproven = 0
        """DUMP_UNPROVEN where nothing told that the last dump of routes was whole."""
        self._tap = bytearray()
        self._tap_size = 0
        self._targets: tuple[Network, ...] = ()
        """Those that the filter of the socket goes by."""
        self._lookups = engine.lookups() + engine.vrfs()
        """What was told."""
        try:
            self._ipr = IPRoute(rcvbuf=rcvbuf)
            self._socket = _plain_socket(self._ipr)
            _attach_filter(self._socket)
            self._ipr.bind(groups=_GROUPS)
        except PermissionError as error:
            raise NotPermittedError(f"cannot open a netlink socket: {error.strerror}") from None
        except (OSError, KeyError) as error:
            raise UnsupportedError(f"cannot open a netlink socket: {error}") from None
        with contextlib.suppress(OSError):  # before Linux 5.3 there are no nexthop objects
            self._ipr.asyncore.add_membership(_RTNLGRP_NEXTHOP)
        with contextlib.suppress(OSError):  # needs CAP_NET_ADMIN
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, rcvbuf)
        self._counts["rcvbuf"] = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)

    # Source.

    def wait(self, deadline_ns: int) -> Wake:
        """Block until something was applied, somebody woke us, or the deadline passed.

        Dirt that is there already has its pace and ends no wait.
        """
        known = self.engine.dirty()
        while True:
            bits = self._read()
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wake)
                bits |= Wake.USER
            due = min(deadline_ns, self.engine.deadline())
            now = boot_ns()
            if bits or due <= now:
                self.engine.tick(now)
                bits |= Wake.TIMEOUT if deadline_ns <= now else Wake(0)
                is_new = any(dirty not in known for dirty in self.engine.dirty())
                return bits | (Wake.DIRTY if is_new else Wake(0))
            self._poll.poll(None if due == NEVER else -(-(due - now) // 1_000_000))

    def drain(self) -> Wake:
        """Apply what is queued, without blocking."""
        return self._read() | (Wake.DIRTY if self.engine.dirty() else Wake(0))

    def _read(self) -> Wake:
        applied = False
        if self._targets != self.engine.targets:
            self._follow_targets(self.engine.targets)
        while True:
            try:
                data, sender = self._socket.recvfrom(READ_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return self._bits(applied=applied)
            except InterruptedError:
                continue
            except OSError as error:
                # EMSGSIZE: the kernel could not make a message, see native/events.c.
                if error.errno not in {errno.ENOBUFS, errno.EMSGSIZE}:
                    raise UnsupportedError(f"the netlink socket is gone: {error}") from None
                self._counts["overruns"] += 1
                self._lose(LossCause.OVERRUN)
            else:
                if sender[0]:
                    continue  # not from the kernel
                self._apply_events(data)
            applied = True

    def _bits(self, *, applied: bool) -> Wake:
        lookups, told = self.engine.lookups() + self.engine.vrfs(), self._lookups
        self._lookups = lookups
        bits = Wake.CHANGED if applied else Wake(0)
        return bits | Wake.LOOKUPS if lookups != told else bits

    def _follow_targets(self, targets: tuple[Network, ...]) -> None:
        """Routes that cover a target come from any prefix: the kernel cannot tell them."""
        if targets and not self._targets:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        elif self._targets and not targets:
            _attach_filter(self._socket)
        self._targets = targets

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        """Dump one scope into the engine: begin, entries, end. False when it failed."""
        ifindex = ifindex if scope in (Scope.ADDR4, Scope.ADDR6) else 0
        table = table if scope in (Scope.ROUTE4, Scope.ROUTE6) else 0
        self._count(f"dumps.{scope.name.lower()}")
        mark = Dump(scope, Phase.BEGIN, ifindex, table, DUMP_AUDIT if audit else 0)
        error = 0
        for attempt in range(_ATTEMPTS):
            self.drain()
            self._apply(Record(Header(boot_ns=boot_ns()), mark))
            try:
                interrupted = self._read_dump(mark)
            except _DumpFailed as failed:
                error = failed.errno
                break
            except OSError as failed:
                error = failed.errno or errno.EIO
                break
            self.drain()
            # An interrupted dump may have missed what was there all the time.
            error = errno.EAGAIN if interrupted else 0
            if not interrupted or attempt == _ATTEMPTS - 1:
                break
        phase = Phase.FAIL if error else Phase.END
        flags = mark.flags if error else mark.flags | self._unproven
        done = mark._replace(phase=phase, error=error, flags=flags)
        self._apply(Record(Header(boot_ns=boot_ns()), done))
        if error:
            self.dump_error = os.strerror(error)
            self._count(f"dump_failures.{scope.name.lower()}")
        return not error

    def refresh(self) -> None:
        """Read again what the kernel does not announce (sysctls) and tell the engine."""
        self.engine.set_v6_silent_down(v6_silent_down())

    def wake(self) -> None:
        """End a wait, from any thread or a signal handler."""
        with contextlib.suppress(OSError):
            os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Free sockets; the engine stays."""
        self._ipr.close()
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def tap(self, size: int) -> None:
        """Keep a copy of every applied record, `size` bytes at most; 0 = no longer.

        What does not fit is counted as tap_lost.
        """
        self._tap.clear()
        self._tap_size = size

    def read_tap(self) -> bytes:
        """The records in the order they were applied; b"" = no more."""
        records = bytes(self._tap)
        self._tap.clear()
        return records

    def counters(self) -> dict[str, int]:
        """Flat counters: seen.TYPE, dropped.TYPE, malformed, overruns, rcvbuf, dumps.SCOPE,
        dump_failures.SCOPE. What the filter keeps away is counted nowhere."""
        return dict(self._counts)

    # Events.

    def _count(self, name: str) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1

    def _lose(self, cause: LossCause) -> None:
        self._apply(Record(Header(boot_ns=boot_ns()), Loss(cause, _ALL)))

    def _apply(self, *records: Record) -> None:
        """At one go: an engine may work once for all of them."""
        raws = []
        for record in records:
            self._seq = (self._seq + 1) & 0xFFFFFFFF
            raws.append(encode(record._replace(header=record.header._replace(seq=self._seq))))
        self.engine.apply(b"".join(raws))
        for raw in raws if self._tap_size else ():
            if len(self._tap) + len(raw) <= self._tap_size:
                self._tap += raw
            else:
                self._counts["tap_lost"] += 1

    def _apply_events(self, data: bytes) -> None:
        now = boot_ns()
        try:
            records = [self._event(data, head, now) for head in messages.heads(data)]
        except ValueError:
            self._counts["malformed"] += 1
            self._lose(LossCause.MALFORMED)
        else:
            self._apply(*filter(None, records))

    def _event(self, data: bytes, head: messages.MessageHead, now: int) -> Record | None:
        name = messages.NAMES.get(head.type, "other")
        self._count(f"seen.{name}")
        record = None
        if not self._is_irrelevant(data, head):
            record = messages.decode(data, head, now)
        if record is None:
            self._count(f"dropped.{name}")
        return record

    def _is_irrelevant(self, data: bytes, head: messages.MessageHead) -> bool:
        if messages.is_rule(head):
            return not self._targets
        is_route = head.type in (messages.RTM_NEWROUTE, messages.RTM_DELROUTE)
        return is_route and messages.is_other_route(data, head, self._targets)

    # Dumps.

    def _read_dump(self, mark: Dump) -> bool:
        """Apply the entries; True if the kernel's lists changed meanwhile. Raises _DumpFailed."""
        tables = [mark.table]
        if mark.scope in (Scope.ROUTE4, Scope.ROUTE6) and not mark.table:
            tables = self.engine.tables()
        interrupted = False
        self._unproven = 0
        entries: list[Record] = []
        for table in tables:
            interrupted |= self._read_table(mark, table, entries)
        self._apply(*entries)
        return interrupted

    def _read_table(self, mark: Dump, table: int, entries: list[Record]) -> bool:
        """One request, on a socket of its own: an answer may be left before its end."""
        interrupted = proven = False
        with contextlib.closing(IPRoute(strict_check=True)) as ipr:
            asked = _plain_socket(ipr)
            asked.bind((0, 0))
            prime(asked)
            asked.sendto(_request(mark, table), (0, 0))
            for data, head in _answer(asked):
                interrupted |= bool(head.flags & _NLM_F_DUMP_INTR)
                if head.type in (_NLMSG_DONE, _NLMSG_ERROR):
                    proven = _says_nothing_there(mark, data, head)
                    break
                if self._is_other(mark, data, head):
                    proven = _is_behind_defaults(mark, data, head)
                    if proven:
                        break
                    continue
                entry = self._entry(mark, table, data, head)
                if entry is not None:
                    entries.append(entry)
        if mark.scope in (Scope.ROUTE4, Scope.ROUTE6) and not proven:
            self._unproven = DUMP_UNPROVEN
        return interrupted

    def _is_other(self, mark: Dump, data: bytes, head: messages.MessageHead) -> bool:
        is_route = mark.scope in (Scope.ROUTE4, Scope.ROUTE6)
        return is_route and messages.is_other_route(data, head)

    def _entry(
        self, mark: Dump, table: int, data: bytes, head: messages.MessageHead
    ) -> Record | None:
        """What was asked for; what older kernels send beside it is skipped."""
        try:
            record = messages.decode(data, head, boot_ns(), F_DUMP)
        except ValueError:
            self._counts["malformed"] += 1
            raise _DumpFailed(errno.EBADMSG) from None
        if record is None:
            return None
        payload: Any = record.payload
        family = messages.REQUESTS[mark.scope][2]
        if family and payload.family != family:
            return None
        if table and payload.table != table:
            return None
        if mark.ifindex and payload.ifindex != mark.ifindex:
            return None
        return record


def boot_ns() -> int:
    """CLOCK_BOOTTIME in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _plain_socket(ipr: IPRoute) -> socket.socket:
    """The socket below pyroute2's event loop, which is never run again."""
    return ipr.asyncore.socket  # type: ignore[no-any-return]


def _request(mark: Dump, table: int) -> bytes:
    """A strict dump request (Linux 4.20); older kernels show more than was asked for."""
    kind, message_class, family = messages.REQUESTS[mark.scope]
    message = message_class()
    message["header"]["type"] = kind
    message["header"]["flags"] = _NLM_F_REQUEST | _NLM_F_DUMP
    message["header"]["sequence_number"] = 1
    message["family"] = family
    if mark.ifindex:
        message["index"] = mark.ifindex
    if table:
        message["attrs"].append(("RTA_TABLE", table))
    message.encode()
    return bytes(message.data)


def _answer(asked: socket.socket) -> Iterator[tuple[bytes, messages.MessageHead]]:
    """The messages of an answer. Raises _DumpFailed when none comes or one is broken."""
    poll = select.poll()
    poll.register(asked, select.POLLIN)
    while True:
        if not poll.poll(_ANSWER_WITHIN * 1000):
            raise _DumpFailed(errno.ETIMEDOUT)
        data = asked.recv(READ_BYTES)
        try:
            for head in messages.heads(data):
                yield data, head
        except ValueError:
            raise _DumpFailed(errno.EBADMSG) from None


def _says_nothing_there(mark: Dump, data: bytes, head: messages.MessageHead) -> bool:
    """Whether an end has an error that just says: there is nothing of this kind.

    Raises _DumpFailed for any other error.
    """
    number = 0
    if head.length >= 20:
        (number,) = struct.unpack_from("=i", data, head.offset + 16)
    error = -number
    if error <= 0:
        return False
    scope = mark.scope
    no_family = error in (errno.EAFNOSUPPORT, errno.EOPNOTSUPP)
    empty = (
        (no_family and scope in (Scope.NEXTHOP, Scope.ADDR6, Scope.ROUTE6))
        or (error == errno.ENOENT and scope in (Scope.ROUTE4, Scope.ROUTE6))
        or (error == errno.ENODEV and mark.ifindex)
        or (error == errno.EINVAL and scope is Scope.NEXTHOP)
    )
    if not empty:
        raise _DumpFailed(error)
    return True


def _is_behind_defaults(mark: Dump, data: bytes, head: messages.MessageHead) -> bool:
    """IPv4 walks by destination: nothing behind the first one that is not zero is a default."""
    if mark.scope is not Scope.ROUTE4:
        return False
    record = messages.decode(data, head, 0)
    payload: Any = record.payload if record is not None else None
    return payload is not None and payload.family == AF_INET and any(payload.dst)


def _attach_filter(sock: socket.socket) -> None:
    """Classic BPF: of routes only those with a destination of length 0 are delivered.

    A message that is dropped so is not queued and cannot overrun. ENOBUFS still comes.
    """
    load_half, load_byte, jump_equal, give = 0x28, 0x30, 0x15, 0x06
    kinds = [
        # The kernel loads big-endian; messages are in host order.
        int.from_bytes(struct.pack("=H", kind), "big")
        for kind in (messages.RTM_NEWROUTE, messages.RTM_DELROUTE)
    ]
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (load_half, 0, 0, 4),
            (jump_equal, 1, 0, kinds[0]),
            (jump_equal, 0, 2, kinds[1]),
            (load_byte, 0, 0, 17),
            (jump_equal, 0, 1, 0),
            (give, 0, 0, 0xFFFFFFFF),
            (give, 0, 0, 0),
        )
    )
    buffer = ctypes.create_string_buffer(program)
    sock.setsockopt(
        socket.SOL_SOCKET,
        _SO_ATTACH_FILTER,
        struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)),
    )
