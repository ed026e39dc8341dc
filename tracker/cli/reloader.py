"""Reads the configuration of a running daemon again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tracker import config as configuration
from tracker import presence
from tracker.cli import follow
from tracker.cli.config_text import effective
from tracker.config import Select
from tracker.errors import ConfigError
from tracker.presence import Note
from tracker.values import shown

if TYPE_CHECKING:
    from tracker.config import Config
    from tracker.guidance import Helpers
    from tracker.session import Session

FIXED = (
    "state",
    "publish.files.directory",
    "capture.source",
    "capture.loader",
    "capture.ring",
    "capture.trace",
)
"""Keys that belong to the process: its locks, and what it has loaded into the kernel."""


class Reloader:
    """One file, read again and again."""

    def __init__(self, path: str | None, helpers: Helpers, lock: int | None) -> None:
        """`path` is None where the daemon goes by the defaults; `lock` is the descriptor of the
        lock that tells commands about this daemon, None = there is none.
        """
        self._path = path
        self._helpers = helpers
        self._lock = lock
        self._note = Note(os.getpid(), path or "")
        self._say()

    def read(self, running: Config) -> tuple[Config, list[tuple[str, object, object]]]:
        """The configuration as it is now, and what differs. Raises ConfigError."""
        config = configuration.load_again(self._path)
        follow.policies(config)
        differences = list(_differences(effective(running), effective(config)))
        differences += _selections(running, config)
        for key, before, after in differences:
            if key in FIXED:
                where = config.path or "the defaults"
                raise ConfigError(
                    f"{where}: {key} = {shown(after)}: it cannot change while the daemon runs; "
                    f"allowed: {shown(before)}, or a restart"
                )
        if running.families_written != config.families_written:
            differences.append(
                ("families written", running.families_written, config.families_written)
            )
        return config, differences

    def apply(self, session: Session, config: Config) -> bool:
        """Have a session go by a configuration; True as from Session.reload(), and raises alike."""
        helpers = follow.helpers(session.source, config, self._helpers)
        told = session.reload(
            follow.policies(config),
            follow.guides(config),
            follow.settings(config),
            helpers,
            config.hostname,
        )
        self._helpers = helpers
        return told

    def report(self, error: str) -> None:
        """Say how it went, for `addrtracker reload`."""
        line = " ".join(error.splitlines())
        self._note = self._note._replace(reloads=self._note.reloads + 1, error=line)
        self._say()

    def _say(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(OSError):  # a full disk: the command will say that we are mute
                presence.say(self._lock, self._note)


def _differences(
    before: dict[str, Any], after: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, object, object]]:
    """Keys whose values differ, tables taken apart, but for those of named selections."""
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if name == "selections" and not prefix:
            continue
        if isinstance(old, dict) or isinstance(new, dict):
            yield from _differences(old or {}, new or {}, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name}", old, new


def _selections(before: Config, after: Config) -> Iterator[tuple[str, object, object]]:
    """Named selections that came, went or differ, each in one line of what it says."""
    for name in dict.fromkeys((*before.selections, *after.selections)):
        old, new = before.selections.get(name), after.selections.get(name)
        if old != new:
            yield f"selections.{name}", _said(old), _said(new)


def _said(select: Select | None) -> dict[str, object] | None:
    """The keys that are not at their defaults; None = there is no such selection."""
    if select is None:
        return None
    default = Select()._asdict()
    said = {key: value for key, value in select._asdict().items() if value != default[key]}
    return {key: list(v) if isinstance(v, tuple) else v for key, v in said.items()}
