"""What the kernel does not announce and sources read again."""

from __future__ import annotations

_SILENT_DOWN = "/proc/sys/net/ipv6/route/skip_notify_on_dev_down"


def v6_silent_down() -> bool:
    """Whether IPv6 routes vanish silently on link down; False where there is no such sysctl."""
    try:
        with open(_SILENT_DOWN, "rb") as file:
            return file.read().strip() == b"1"
    except OSError:
        return False
