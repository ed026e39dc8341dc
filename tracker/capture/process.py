"""What this process may do and sees: capabilities, how many files it may open, /sys."""

from __future__ import annotations

import errno
import os

from tracker.errors import FilesError

CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})

_STATUS = "/proc/thread-self/status"


def capabilities() -> int:
    """The effective ones of this thread, a bit each; all where that cannot be known."""
    try:
        with open(_STATUS, encoding="ascii", errors="replace") as file:
            values = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return -1
    return int(values["CapEff"], 16) if "CapEff" in values else -1


def has(capability: int, instead: int = CAP_SYS_ADMIN) -> bool:
    """Whether this thread has a capability, or the one that stands for it."""
    mask = capabilities()
    return bool(mask >> capability & 1 or mask >> instead & 1)


def without_sys() -> str:
    """ "/sys is not mounted" where that is why something is not there; "" = it is mounted."""
    return "" if os.path.isdir("/sys/kernel") else "/sys is not mounted"


def require_files(number: int) -> None:
    """Raise FilesError where not so many more files can be open at a time.

    Whoever runs out of them half-way fails wherever that happens to be, in an import as well.
    """
    opened: list[int] = []
    refused = 0
    try:
        for _ in range(number):
            opened.append(os.eventfd(0))  # noqa: PERF401 - they are closed where one is refused
    except OSError as error:
        if error.errno not in OUT_OF_FILES:
            raise
        refused = error.errno
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if refused:
        raise FilesError(f"{os.strerror(refused)}: {_limit(refused)}, and {number} more are needed")


def _limit(refused: int) -> str:
    if refused == errno.ENFILE:
        return "this host may open no more (fs.file-max)"
    import resource  # noqa: PLC0415 - show has to start fast

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"this process may have {soft} (RLIMIT_NOFILE)"
