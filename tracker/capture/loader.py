"""Gets the filter into the kernel: the prebuilt object by libbpf, else the source by BCC."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tracker.capture.process import CAP_PERFMON, OUT_OF_FILES, has, without_sys
from tracker.errors import FilesError, LoadError, NotPermittedError

FILES = Path(__file__).resolve().parents[1] / "bpf"
"""Objects and sources of the programs (bpf/ in a checkout)."""

PLAIN = "at_filter"
WITH_TASKS = "at_filter_tasks"
"""Names the process behind a change; needs BTF and CAP_PERFMON."""
LEAST = "at_filter_least"
"""Without loops, which take CAP_PERFMON up to Linux 6.15: links reach user space unread."""

_KERNEL_BTF = "/sys/kernel/btf/vmlinux"
_LOG_BYTES = 1 << 20

# What the verifier prints besides what is wrong: instructions, source lines, states, statistics.
_NO_REASON = re.compile(
    r"\s*$|;|\d+: |R\d+[_=]|from \d+ to |processed \d|verification time|stack depth|--|libbpf: |"
    r"HINT: |bpf: Failed to load|arg#|reg type unsupported"
)


class Loaded(NamedTuple):
    """A program in the kernel."""

    program: int
    """Its descriptor; the caller closes it."""
    loader: str
    """"libbpf" or "bcc"."""
    attribution: bool
    """Whether records name the process."""
    passed_over: tuple[str, ...]
    """Why a better loader or variant was not taken, one line each."""


def load(maps: Mapping[str, int], loader: str = "auto") -> Loaded:
    """Load the filter onto maps, given by the names that bpf/filter.h has for them.

    `auto` takes libbpf, else BCC; a name takes that one or fails. Raises LoadError, and
    NotPermittedError or FilesError where any other loader would fail so, too.
    """
    if loader != "auto":
        return _BY_NAME[loader](maps)
    passed_over: list[str] = []
    log = ""
    for name, way in _BY_NAME.items():
        try:
            loaded = way(maps)
        except LoadError as error:
            passed_over.append(f"loader {name}: {error}")
            log += error.log
        else:
            return loaded._replace(passed_over=(*passed_over, *loaded.passed_over))
    raise LoadError("; ".join(passed_over), log)


def reason(log: str, error: int) -> str:
    """What a log comes down to, in one line."""
    lines = [line.strip() for line in log.splitlines()]
    for line in lines:
        if re.search(r"\berror: ", line):
            return line
        if "BPF program is too large" in line:  # behind the instruction that was too many
            return line[line.index("BPF program") :]
    begin = [number for number, line in enumerate(lines) if "BEGIN PROG LOAD LOG" in line]
    told = [line for line in lines[begin[-1] if begin else 0 :] if not _NO_REASON.match(line)]
    if told:
        return told[-1]
    own = [line.removeprefix("libbpf: ") for line in lines if line.startswith("libbpf: ")]
    return own[0] if own and not begin else os.strerror(error)


def refusal(program: str, log: str, error: int) -> LoadError | NotPermittedError | FilesError:
    """What to raise where the kernel refuses a program with this error number."""
    if error in OUT_OF_FILES:  # nor would another loader get one
        return FilesError(f"{program} cannot be loaded: {os.strerror(error)}")
    if error == errno.EPERM:
        return NotPermittedError(
            f"the kernel loads no BPF program for this process: {os.strerror(error)} "
            "(CAP_BPF is needed)"
        )
    return LoadError(f"{program} is refused: {reason(log, error)}", log)


def _by_libbpf(maps: Mapping[str, int]) -> Loaded:
    try:
        program = load_object("filter", WITH_TASKS, maps)
    except LoadError as error:
        without = f"names of processes: {_no_tasks() or error}"
    else:
        return Loaded(program, "libbpf", attribution=True, passed_over=())
    try:
        return Loaded(load_object("filter", PLAIN, maps), "libbpf", False, (without,))
    except LoadError as refused:
        try:
            program = load_object("filter", LEAST, maps)
        except LoadError:
            raise refused from None
        unread = f"links that did not change reach user space: {refused}"
        return Loaded(program, "libbpf", False, (without, unread))


def _no_tasks() -> str:
    """Why a program cannot read tasks here, where that has a common reason."""
    if not os.path.exists(_KERNEL_BTF):
        return without_sys() or f"this kernel has no BTF ({_KERNEL_BTF})"
    if not has(CAP_PERFMON):
        return "this process has no CAP_PERFMON"
    return ""


def load_object(name: str, program: str, maps: Mapping[str, int]) -> int:
    """Load one program of a prebuilt object (bpf/NAME.bpf.c) by libbpf; its descriptor.

    Raises LoadError, NotPermittedError.
    """
    try:
        from tracker._bpf import ffi, lib  # noqa: PLC0415 - links a library that may be missing
    except ImportError as error:
        line = f"the extension tracker._bpf cannot be loaded: {error}"
        raise LoadError(line) from None
    path = FILES / f"{name}.bpf.o"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        line = f"no prebuilt object: {path} is missing (this package was built without clang)"
        raise LoadError(line) from None
    names = {name: ffi.new("char[]", name.encode()) for name in maps}
    pairs = ffi.new("struct at_map_fd[]", [(names[name], fd) for name, fd in maps.items()])
    log = ffi.new("char[]", _LOG_BYTES)
    wanted = program.encode()
    result: int = lib.at_bpf_load(raw, len(raw), wanted, pairs, len(pairs), log, _LOG_BYTES)
    if result < 0:
        raise refusal(program, ffi.string(log).decode(errors="replace"), -result)
    return result


def _by_bcc(maps: Mapping[str, int]) -> Loaded:
    from tracker.capture.bcc_loader import compile_and_load  # noqa: PLC0415 - for few

    try:
        program = compile_and_load(FILES / "filter.bpf.c", PLAIN, maps)
    except OSError as error:
        raise LoadError(f"BCC cannot be started: {error.strerror}") from None
    passed_over = ("names of processes: the loader bcc has none",)
    return Loaded(program, "bcc", attribution=False, passed_over=passed_over)


_BY_NAME: dict[str, Callable[[Mapping[str, int]], Loaded]] = {
    "libbpf": _by_libbpf,
    "bcc": _by_bcc,
}
