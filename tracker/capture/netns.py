"""Entering a network namespace, also where the extension is not there."""

from __future__ import annotations

import ctypes
import os

from tracker.errors import NotPermittedError, UsageError

_CLONE_NEWNET = 0x40000000
_FOLDER = "/run/netns"


def enter_netns(name: str) -> None:
    """Move the calling thread into a namespace: a name below /run/netns, or a path.

    Raises UsageError, NotPermittedError.
    """
    path = name if "/" in name else f"{_FOLDER}/{name}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(descriptor)
        finally:
            os.close(descriptor)
    except PermissionError as error:
        raise NotPermittedError(f"network namespace {name!r}: {error.strerror}") from None
    except OSError as error:
        raise UsageError(f"network namespace {name!r}: {error.strerror}") from None


def _setns(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
