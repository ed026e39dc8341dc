"""Compiles and loads one program by IOVisor BCC, and hands its descriptor over.

`python bcc_child.py CHANNEL PROGRAM SOURCE CFLAG...`: CHANNEL is a descriptor of a socket, which
gets one message: a JSON object, and the descriptor where all went well. A process of its own,
because BCC holds a compiler of 140 MB; it imports nothing of tracker, because the Python that has
BCC may be another one.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from typing import Any


def kernel_headers() -> list[str]:
    """Where BCC looks for headers of this kernel, as far as there is something."""
    built = f"/lib/modules/{os.uname().release}"
    places = (f"{built}/build", f"{built}/source", "/sys/kernel/kheaders.tar.xz")
    given = os.environ.get("BCC_KERNEL_SOURCE")
    return [place for place in ((given,) if given else places) if os.path.exists(place)]


def work(program: str, source: str, cflags: list[str]) -> tuple[dict[str, Any], int]:
    """What to report, and the program's descriptor or -1."""
    try:
        import bcc  # noqa: PLC0415 - whether there is one is the question
    except (ImportError, OSError) as error:
        return {"failed": "import", "detail": str(error)}, -1
    if not hasattr(bcc, "BPF"):
        return {"failed": "impostor", "detail": getattr(bcc, "__file__", None) or "?"}, -1
    with open(source, encoding="utf-8") as file:
        text = file.read()
    # BCC raises plain exceptions; what is wrong is on stderr.
    try:
        module = bcc.BPF(text=text, cflags=cflags)
    except Exception as error:  # noqa: BLE001
        if not str(error).startswith("Failed to compile"):
            return broken(bcc, error), -1
        failed = "compile" if kernel_headers() else "headers"
        return {"failed": failed, "detail": str(error)}, -1
    try:
        return {"failed": ""}, int(module.load_func(program, bcc.BPF.SOCKET_FILTER).fd)
    except Exception as error:  # noqa: BLE001
        if not str(error).startswith("Failed to load"):
            return broken(bcc, error), -1
        number = ctypes.get_errno()
        return {"failed": "load", "detail": str(error), "errno": number}, -1


def broken(bcc: Any, error: Exception) -> dict[str, Any]:
    """What to report where something fails that is neither the compiler nor the kernel."""
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return {"failed": "broken", "detail": f"{bcc.__file__}: {said}"}


def main(arguments: list[str]) -> None:
    """Entry point."""
    # The folder of this file: what lies beside it shall not be taken for a module of another name.
    del sys.path[0]
    channel, program, source, *cflags = arguments
    report, descriptor = work(program, source, cflags)
    # Not closed before the end: that tells the parent that nothing more will be said.
    parent = socket.socket(fileno=int(channel))
    message = [json.dumps(report).encode()]
    socket.send_fds(parent, message, [descriptor] if descriptor >= 0 else [])
    parent.detach()


if __name__ == "__main__":
    main(sys.argv[1:])
