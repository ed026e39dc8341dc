"""Has a program compiled and loaded by IOVisor BCC, in a child process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tracker.capture.loader import reason, refusal
from tracker.errors import LoadError

SYSTEM_PYTHON = "/usr/bin/python3"
"""The one that distributions install BCC for."""

LAST_WORDS_SECONDS = 5
"""How long it may take to end once it has closed its side."""

SECONDS = 60
"""How long the child may take; it usually takes one."""

_CHILD = Path(__file__).with_name("bcc_child.py")
_MESSAGE_BYTES = 1 << 16
_SO_ATTACH_BPF = 50


class _Answer(NamedTuple):
    report: dict[str, Any]
    program: int
    """Its descriptor, or -1."""
    log: str


def compile_and_load(source: Path, program: str, maps: Mapping[str, int]) -> int:
    """Compile a source file and load one program of it; its descriptor.

    The first Python that has BCC does it. Raises LoadError, NotPermittedError.
    """
    if not source.exists():
        raise LoadError(f"no source for BCC: {source} is missing")
    pythons = [python for python in dict.fromkeys((sys.executable, SYSTEM_PYTHON)) if python]
    without: list[str] = []
    impostor = ""
    for python in pythons:
        if not os.path.exists(python):
            without.append(python)
            continue
        answer = _ask(python, source, program, maps)
        failed = answer.report["failed"]
        if not failed:
            return _checked(answer, python)
        if failed == "impostor":
            impostor = impostor or answer.report["detail"]
        elif failed == "import":
            without.append(python)
        else:
            raise _failure(failed, answer, source, program)
    if impostor:
        raise LoadError(
            f"the Python package bcc in {os.path.dirname(impostor)} is not IOVisor's but an "
            "unrelated one of the same name: uninstall it and install BCC (Debian: python3-bpfcc)"
        )
    raise LoadError(
        f"no BCC for {' or '.join(without)}: install it (Debian: python3-bpfcc; never the package "
        "bcc of PyPI)"
    )


def _checked(answer: _Answer, python: str) -> int:
    """The program, if it is one: anything may call itself bcc. Raises LoadError."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as probe:
            probe.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, answer.program)
    except OSError as error:
        if answer.program >= 0:
            os.close(answer.program)
        raise LoadError(
            f"what the Python package bcc of {python} loaded is no filter for a socket: "
            f"{error.strerror}",
            answer.log,
        ) from None
    return answer.program


def _failure(failed: str, answer: _Answer, source: Path, program: str) -> Exception:
    if failed == "load":
        return refusal(program, answer.log, answer.report["errno"])
    if failed == "headers":
        given = os.environ.get("BCC_KERNEL_SOURCE")
        release = os.uname().release
        where = f"in BCC_KERNEL_SOURCE={given}" if given else f"of this kernel, {release}"
        return LoadError(
            f"BCC finds no kernel headers {where}: install them (Debian: linux-headers-{release}), "
            "or name a folder that has some in BCC_KERNEL_SOURCE",
            answer.log,
        )
    if failed == "broken":
        return LoadError(f"BCC fails: {answer.report['detail']}", answer.log)
    told = reason(answer.log, 0) if answer.log.strip() else answer.report["detail"]
    return LoadError(f"BCC cannot compile {source.name}: {told}", answer.log)


def _ask(python: str, source: Path, program: str, maps: Mapping[str, int]) -> _Answer:
    """Run the child to its end. Raises LoadError where it gives no answer."""
    flags = ["-DAT_BCC", f"-I{source.parent}"]
    flags += [f"-DAT_FD_{name.upper()}={descriptor}" for name, descriptor in maps.items()]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    said = os.memfd_create("bcc")
    with ours, open(said, "r+b") as log:
        with theirs:
            child = subprocess.Popen(
                [python, str(_CHILD), str(theirs.fileno()), program, str(source), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(), *maps.values()),
                start_new_session=True,  # a Ctrl-C is for us to handle
            )
        descriptors: list[int] = []
        try:
            ours.settimeout(SECONDS)
            message, descriptors, _, _ = socket.recv_fds(ours, _MESSAGE_BYTES, 1)
        except TimeoutError:
            raise LoadError(f"BCC did not finish within {SECONDS} s") from None
        else:
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            if not message:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(LAST_WORDS_SECONDS)
        finally:
            # It has nothing left to do, and neither has a compiler that it may have started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    if not message:
        ended = f"by signal {-status}" if status < 0 else f"with status {status}"
        raise LoadError(f"BCC ended {ended} and said nothing: {_last(text)}", text)
    return _Answer(json.loads(message), descriptors[0] if descriptors else -1, text)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "nothing on stderr either"
