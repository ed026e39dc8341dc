"""Where it was measured, and with which versions of what."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.peers.registry import BIRD, ZEBRA
from benchmarks.storms import BUILD
from tracker import __version__


def machine() -> dict[str, Any]:
    """The kernel and the processor."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {
        "kernel": platform.release(),
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": int(memory[1]) // 1024 if memory else None,
    }


def versions() -> dict[str, str]:
    """Of all that was started; "none" = it is not there."""
    return {
        "addrtracker": __version__,
        "Python": platform.python_version(),
        "pyroute2": importlib.metadata.version("pyroute2"),
        "iproute2": _said(["ip", "-V"]),
        "libnl": _libnl(),
        "BIRD": _said([str(BIRD), "--version"]),
        "FRR": _said([str(ZEBRA), "--version"]),
    }


def _said(command: list[str]) -> str:
    """The version in the first line that a program prints about itself."""
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
        if found := re.search(r"\d+(\.\d+)+", done.stdout + done.stderr):
            return found[0]
    return "none"


def _libnl() -> str:
    """Of the headers that our client of it was compiled with."""
    for header in (BUILD / "libnl/root/usr/include").rglob("netlink/version.h"):
        if found := re.search(r'LIBNL_VERSION\s+"([^"]+)"', header.read_text()):
            return found[1]
    return "none"
