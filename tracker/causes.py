"""What led to a change, from the record of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.engine.base import Engine
    from tracker.model import Cause


def cause_of(engine: Engine, raw: bytes, now: int) -> tuple[Cause | None, int]:
    """The cause in words, and the time it came at."""
    if not raw:
        return None, now
    # Not for commands that look once: it would cost them a tenth of their time.
    from tracker.capture.plain import cause  # noqa: PLC0415
    from tracker.capture.record import decode  # noqa: PLC0415

    record = decode(raw)
    return cause(record, engine.link_name), record.header.boot_ns


def is_dump_entry(raw: bytes) -> bool:
    """Whether this was found by a dump (AT_F_DUMP of struct at_header): nobody made a change."""
    return bool(int.from_bytes(raw[12:16], sys.byteorder) & 1)
