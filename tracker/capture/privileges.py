"""Capabilities that are needed to open a source, and not to use it."""

from __future__ import annotations

import os

from tracker._engine import ffi, lib

__all__ = ["drop"]

_NAMES = {
    12: "CAP_NET_ADMIN",
    21: "CAP_SYS_ADMIN",
    24: "CAP_SYS_RESOURCE",
    38: "CAP_PERFMON",
    39: "CAP_BPF",
}


def drop() -> tuple[str, ...]:
    """Give these up in the calling thread, for good; the names of those that it had.

    CAP_BPF, or CAP_SYS_ADMIN without it, stays where the kernel wants one for maps (before 5.19,
    where unprivileged BPF is disabled). A thread that is started later has what the one that
    starts it has then.
    """
    given_up = ffi.new("uint64_t *")
    error = -lib.at_caps_drop(given_up)
    if error:
        raise OSError(error, os.strerror(error))
    return tuple(name for number, name in _NAMES.items() if given_up[0] >> number & 1)
