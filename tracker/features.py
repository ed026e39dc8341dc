"""What kernels and builds can do: one table, for doctor and for the tests.

A feature is probed by really using it, never by the version of a kernel: distributions carry
patches back, and what a host's security modules refuse has no version. The minimum version and
the keys of the kernel's configuration serve another end: they can prove that a kernel has no such
feature, which is the only excuse that a test has (tests/features.py).
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tracker.capture.process import without_sys
from tracker.errors import TrackerError

# linux/netlink.h, linux/rtnetlink.h, asm-generic/socket.h
_SOL_NETLINK = 270
_NETLINK_ADD_MEMBERSHIP = 1
_NETLINK_GET_STRICT_CHK = 12
_RTNLGRP_NEXTHOP = 32
_SO_ATTACH_BPF = 50

PROC = "/proc"
BTF = "/sys/kernel/btf/vmlinux"
RING_BYTES = 64 << 10
"""Of the rings that probes make, on kernels with large pages as well."""

_BCC_TEXT = "import sys, bcc; sys.exit(not hasattr(bcc, 'BPF'))"


class Feature(NamedTuple):
    """Something that a kernel can do from some version on, or that a build has."""

    name: str
    since: str
    """The first kernel version that has it; "" = not a matter of the kernel's version."""
    probe: Callable[[], str]
    """ "" = it is there, else why not."""
    without: str
    """What follows where it is not there."""
    config: tuple[str, ...] = ()
    """Keys of the kernel's configuration without any of which the kernel has no such feature."""


def absence(feature: Feature, release: str = "", config: dict[str, str] | None = None) -> str:
    """What proves that this kernel cannot have the feature; "" = nothing does.

    `release` and `config` default to those of the kernel that runs.
    """
    release = release or os.uname().release
    if is_too_old(feature, release):
        return f"kernel {release} is older than {feature.since}"
    config = kernel_config() if config is None else config
    for key in feature.config:
        if config and config.get(key) not in {"y", "m"}:
            return f"the kernel was configured without {key}"
    return ""


def is_too_old(feature: Feature, release: str = "") -> bool:
    """Whether a kernel, by default the one that runs, is older than the feature."""
    return bool(feature.since) and version(release or os.uname().release) < version(feature.since)


def version(release: str) -> tuple[int, int]:
    """(6, 1) of "6.1.0-28-cloud-amd64"."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


@functools.cache
def kernel_config() -> dict[str, str]:
    """The configuration of the kernel that runs, {"CONFIG_BPF": "y"}; {} = it is not to be read."""
    for path in (f"{PROC}/config.gz", f"/boot/config-{os.uname().release}"):
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                raw = file.read()
            return parse_config(gzip.decompress(raw) if path.endswith(".gz") else raw)
    return {}


def parse_config(raw: bytes) -> dict[str, str]:
    """The keys that are set; those that are not have no entry."""
    lines = (line.partition("=") for line in raw.decode(errors="replace").splitlines())
    return {key: value for key, _, value in lines if key.startswith("CONFIG_") and value}


def _tried(probe: Callable[[], None]) -> Callable[[], str]:
    """A probe that may raise whatever says why it did not work."""

    def attempt() -> str:
        try:
            probe()
        except OSError as error:
            return error.strerror or str(error)
        except (ImportError, TrackerError) as error:
            return str(error)
        return ""

    return attempt


def _option(option: int, value: int) -> Callable[[], None]:
    def probe() -> None:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.setsockopt(_SOL_NETLINK, option, value)

    return probe


def _ipv6() -> str:
    if os.path.exists(f"{PROC}/net/if_inet6"):
        return ""
    there = os.path.exists(f"{PROC}/self")
    return "not in this kernel or namespace" if there else f"not known: {PROC} is not mounted"


def _module(name: str) -> Callable[[], None]:
    return lambda: _imported(name)


def _imported(name: str) -> None:
    importlib.import_module(name)


@contextlib.contextmanager
def _maps() -> Iterator[Any]:
    from tracker.capture.bpf import create_maps  # noqa: PLC0415 - the import is part of the try

    maps = create_maps(RING_BYTES)
    try:
        yield maps
    finally:
        maps.close()


def _bpf_maps() -> None:
    with _maps():
        pass


@contextlib.contextmanager
def loaded(maps: Any, loader: str = "libbpf") -> Iterator[Any]:
    """Our own filter in the kernel (tracker.capture.loader.Loaded), for a while."""
    from tracker.capture.loader import load  # noqa: PLC0415 - as above

    program = load(maps._asdict(), loader)
    try:
        yield program
    finally:
        os.close(program.program)


def _attach(program: int) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, program)


def _socket_filter() -> None:
    with _maps() as maps, loaded(maps) as program:
        _attach(program.program)


def _variant(name: str) -> Callable[[], None]:
    """One variant of the filter by itself: load() would take the other one instead."""

    def probe() -> None:
        from tracker.capture import loader  # noqa: PLC0415 - as above

        with _maps() as maps:
            os.close(loader.load_object("filter", getattr(loader, name), maps._asdict()))

    return probe


def _task_identity() -> str:
    with _maps() as maps, loaded(maps) as program:
        if program.attribution:
            return ""
        return "; ".join(program.passed_over) or "this variant of the filter does not load"


def _task_identity_tried() -> str:
    found = ""

    def probe() -> None:
        nonlocal found
        found = _task_identity()

    return _tried(probe)() or found


def _trace(way: str) -> Callable[[], None]:
    def probe() -> None:
        from tracker.capture.trace import attach  # noqa: PLC0415 - as above

        with _maps() as maps:
            attach(maps._asdict(), way).close()

    return probe


def _btf() -> str:
    return "" if os.path.exists(BTF) else without_sys() or f"no {BTF}"


def _object() -> str:
    path = os.path.join(os.path.dirname(__file__), "bpf", "filter.bpf.o")
    return "" if os.path.exists(path) else "not built: there was no clang, or no libbpf"


def _bcc() -> str:
    """In a child: it costs 80 MB that would stay."""
    from tracker.capture.bcc_loader import SYSTEM_PYTHON  # noqa: PLC0415 - nobody else needs it

    for python in dict.fromkeys((sys.executable, SYSTEM_PYTHON)):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            command = [python, "-c", _BCC_TEXT]
            if (
                subprocess.run(command, capture_output=True, check=False, timeout=60).returncode
                == 0
            ):
                return ""
    return "no IOVisor BCC: it is python3-bpfcc on Debian, and never the package bcc of PyPI"


def verifier_logs() -> dict[str, str]:
    """All that libbpf and the verifier say of each program that is refused, by the feature that
    needs it; "" = it was not.
    """
    return {name: _log_of(probe) for name, probe in _LOGGED.items()}


def _log_of(probe: Callable[[], None]) -> str:
    try:
        probe()
    except (ImportError, OSError, TrackerError) as error:
        log: str = getattr(error, "log", "")
        return log or str(error)
    return ""


def bcc_compiles() -> str:
    """Compile our filter on this host by BCC, load and attach it; "" or why not. A second or so."""

    def probe() -> None:
        with _maps() as maps, loaded(maps, "bcc") as program:
            _attach(program.program)

    return _tried(probe)()


_LOGGED = {
    "socket-filter": _variant("PLAIN"),
    "task-identity": _variant("WITH_TASKS"),
    "fentry": _trace("fentry"),
    "kprobes": _trace("kprobe"),
}

FEATURES = (
    Feature(
        "extension",
        "",
        _tried(_module("tracker.engine.native")),
        "the reference engine and pyroute2 do its work: for small nodes only",
    ),
    Feature("ipv6", "", _ipv6, "there will be no IPv6 address", ("CONFIG_IPV6",)),
    Feature(
        "strict-dumps",
        "4.20",
        _tried(_option(_NETLINK_GET_STRICT_CHK, 1)),
        "dumps cannot be narrowed to one table or link and cost more",
    ),
    Feature(
        "nexthop-objects",
        "5.3",
        _tried(_option(_NETLINK_ADD_MEMBERSHIP, _RTNLGRP_NEXTHOP)),
        "nothing: a kernel without them has no routes that use them",
    ),
    Feature(
        "bpf-maps",
        "5.8",
        _tried(_bpf_maps),
        "no source bpf: every announcement is read, churn included",
        ("CONFIG_BPF_SYSCALL",),
    ),
    Feature("libbpf", "", _tried(_module("tracker._bpf")), "the source bpf needs BCC"),
    Feature("prebuilt-filter", "", _object, "the source bpf needs BCC"),
    Feature("bcc", "", _bcc, "the source bpf needs libbpf and the prebuilt filter"),
    Feature(
        "socket-filter",
        "5.8",
        _tried(_socket_filter),
        "no source bpf by libbpf",
        ("CONFIG_BPF_SYSCALL",),
    ),
    Feature(
        "btf",
        "5.4",
        _btf,
        "changes do not name the process that made them",
        ("CONFIG_DEBUG_INFO_BTF",),
    ),
    Feature(
        "task-identity",
        "5.8",
        _task_identity_tried,
        "changes do not name the process that made them",
        ("CONFIG_DEBUG_INFO_BTF", "CONFIG_BPF_EVENTS"),
    ),
    Feature(
        "fentry",
        "5.5",
        _tried(_trace("fentry")),
        "silent removals are traced by kprobes, if at all",
        ("CONFIG_DEBUG_INFO_BTF", "CONFIG_BPF_EVENTS", "CONFIG_FUNCTION_TRACER"),
    ),
    Feature(
        "kprobes",
        "4.9",
        _tried(_trace("kprobe")),
        "silent removals are traced by fentry, if at all",
        ("CONFIG_KPROBES", "CONFIG_BPF_EVENTS", "CONFIG_PERF_EVENTS"),
    ),
)


def feature(name: str) -> Feature:
    """The feature of that name; KeyError where there is none."""
    return {each.name: each for each in FEATURES}[name]
