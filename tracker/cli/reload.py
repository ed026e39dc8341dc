"""addrtracker reload: have the daemon read its configuration again."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from tracker import presence
from tracker.cli import follow, options
from tracker.config import load_again
from tracker.errors import ConfigError, NotPermittedError, UnreachableError

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.presence import Note

OPTIONS = (options.CONFIG,)
WORDS = (0, 0, "")

PATIENCE = 10.0
"""Seconds that the daemon has for an answer."""
PAUSE = 0.02


def run(arguments: Arguments) -> int:
    """0 when the daemon goes by the file as it is now."""
    config = load_again(arguments.value("--config") or None)
    follow.policies(config)  # raises what the daemon would raise
    before = _note(config.files)
    if os.path.realpath(before.config) != os.path.realpath(config.path or ""):
        mine, its = config.path or "the defaults", before.config or "the defaults"
        raise ConfigError(f"{mine}: the daemon on {config.files} reads another file: {its}")
    try:
        os.kill(before.pid, signal.SIGHUP)
    except PermissionError as error:
        raise NotPermittedError(f"process {before.pid}: {error.strerror}") from None
    give_up = time.monotonic() + PATIENCE
    while (now := _note(config.files)).reloads == before.reloads:
        if time.monotonic() > give_up:
            raise UnreachableError(f"process {before.pid} has not answered in {PATIENCE:.0f} s")
        time.sleep(PAUSE)
    if now.error:
        raise ConfigError(now.error)
    print(f"process {now.pid} has read {now.config or 'the defaults'} again")
    return 0


def _note(directory: str) -> Note:
    try:
        note = presence.read(directory)
    except PermissionError as error:
        raise NotPermittedError(f"{error.filename or directory}: {error.strerror}") from None
    if note is None:
        raise UnreachableError(f"{directory}: no daemon publishes there")
    return note
