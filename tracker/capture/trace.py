"""Sees what the kernel does without a message: bpf/trace.bpf.c, attached to its functions."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tracker.capture.loader import FILES, reason
from tracker.capture.process import CAP_BPF, CAP_PERFMON, has, without_sys
from tracker.errors import LoadError, NotPermittedError

WAYS = ("fentry", "kprobe", "count")
"""Best first. Only a number, for all namespaces, comes of `count`; it needs no BTF."""


_LOG_BYTES = 1 << 16
_NETNS = "/proc/thread-self/ns/net"
_KPROBES = "/sys/bus/event_source/devices/kprobe"
"""Where the kernel has them (CONFIG_KPROBE_EVENTS)."""


class _Probe(NamedTuple):
    program: str
    function: str
    needed: bool
    """Without it there is no point in the way."""


_PROBES = {
    "fentry": (
        _Probe("fentry_flush", "fib_notify_alias_delete", needed=True),
        _Probe("fentry_overrun", "netlink_overrun", needed=False),
    ),
    "kprobe": (
        _Probe("kprobe_flush", "fib_notify_alias_delete", needed=True),
        _Probe("kprobe_overrun", "netlink_overrun", needed=False),
    ),
    "count": (_Probe("kretprobe_count", "fib_table_flush", needed=True),),
}


class Trace:
    """Probes that are attached, until close()."""

    def __init__(self, way: str, attached: Mapping[str, Any], passed_over: tuple[str, ...]) -> None:
        self.way = way
        """One of WAYS."""
        self.probes = tuple(attached)
        """The functions of the kernel that are looked at."""
        self.passed_over = passed_over
        """Why a better way, or a probe, was not taken, one line each."""
        self._handles = list(attached.values())

    def close(self) -> None:
        """Detach; the maps stay as they are."""
        for handle in self._handles:
            _detach(handle)
        self._handles.clear()


def attach(maps: Mapping[str, int], way: str = "auto") -> Trace:
    """Attach the probes onto maps, given by the names that bpf/filter.h has for them.

    They look at the network namespace of the calling thread. `auto` takes the best way that this
    kernel has; a name takes that one or fails. Raises LoadError, and NotPermittedError where every
    way was refused for want of capabilities.
    """
    try:
        netns = os.stat(_NETNS).st_ino
    except OSError as error:
        raise LoadError(f"{_NETNS}: {error.strerror}") from None
    refused: list[str] = []
    log = ""
    permitted = False
    for name in WAYS if way == "auto" else (way,):
        try:
            return _attach(maps, name, netns, refused)
        except LoadError as error:
            permitted = True
            log += error.log
            refused.append(f"{name}: {error}")
        except NotPermittedError as error:
            refused.append(f"{name}: {error}")
    line = "; ".join(refused)
    raise LoadError(line, log) if permitted else NotPermittedError(line)


def _attach(maps: Mapping[str, int], way: str, netns: int, refused: list[str]) -> Trace:
    attached: dict[str, Any] = {}
    missing = []
    for probe in _PROBES[way]:
        try:
            attached[probe.function] = _load(maps, way, netns, probe)
        except (LoadError, NotPermittedError) as error:
            if probe.needed:
                raise
            missing.append(f"{way}: {error}")
    return Trace(way, attached, (*refused, *missing))


def _load(maps: Mapping[str, int], way: str, netns: int, probe: _Probe) -> Any:
    if way != "fentry" and not os.path.exists(_KPROBES):
        raise LoadError(without_sys() or "this kernel has no kprobes")
    try:
        from tracker._bpf import ffi, lib  # noqa: PLC0415 - links a library that may be missing
    except ImportError as error:
        raise LoadError(f"the extension tracker._bpf cannot be loaded: {error}") from None
    path = FILES / "trace.bpf.o"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        line = f"no prebuilt object: {path} is missing (this package was built without clang)"
        raise LoadError(line) from None
    names = {name: ffi.new("char[]", name.encode()) for name in maps}
    pairs = ffi.new("struct at_map_fd[]", [(names[name], fd) for name, fd in maps.items()])
    out = ffi.new("struct at_probe **")
    log = ffi.new("char[]", _LOG_BYTES)
    code = -lib.at_probe_attach(
        raw, len(raw), probe.program.encode(), pairs, len(pairs), netns, out, log, _LOG_BYTES
    )
    if code == errno.EPERM and not (has(CAP_BPF) and has(CAP_PERFMON)):
        raise NotPermittedError(f"{probe.function}: CAP_BPF and CAP_PERFMON are needed")
    if code:
        said = ffi.string(log).decode(errors="replace")
        raise LoadError(f"{probe.function}: {reason(said, code)}", said)
    return out[0]


def _detach(handle: Any) -> None:
    from tracker._bpf import lib  # noqa: PLC0415 - whoever has a handle has the library

    lib.at_probe_detach(handle)
