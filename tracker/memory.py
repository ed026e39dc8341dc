"""Keeps the last decision in the state directory, so that a restart goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracker.address import family_of, parse, text
from tracker.atomic import read_file, remove_leftovers, write_atomically
from tracker.decision import Remembered
from tracker.errors import PublishError
from tracker.lastrun import LastRun
from tracker.model import NANOSECONDS
from tracker.printable import quoted

SCHEMA = "addrtracker.state/v1"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WRONG_MOST = 200
"""Characters of what is wrong with a file: an error of a decoder has all of it."""
_GENERATION_END = 1 << 63
_TIME_END_NS = 253_402_300_800 * NANOSECONDS
"""The year 10000, which no RFC 3339 time can name."""


def boot_id() -> str:
    """Of this boot of the host; "" = it cannot be told, and no two boots are the same."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class StateFile:
    """The file decision.json of one state directory; a publisher of what `document` makes."""

    name = "state"

    def __init__(self, directory: str, complain: Callable[[str], None], boot: str) -> None:
        """`complain` gets one line where there is a file and it is not of our making; `boot` is
        boot_id().
        """
        self.path = Path(directory) / "decision.json"
        self._complain = complain
        self._swept = False
        self._boot_id = boot

    def load(self) -> LastRun | None:
        """The last run's decision; None if there is none, or none that can be read."""
        try:
            raw = read_file(self.path)
            return self._last_run(json.loads(raw)) if raw is not None else None
        except OSError as error:
            self._complain(f"{self.path}: {error.strerror}")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            wrong = quoted(repr(error), _WRONG_MOST)
            self._complain(f"{self.path}: not a decision of {SCHEMA}: {wrong}")
        return None

    def _last_run(self, data: dict[str, Any]) -> LastRun:
        """Nothing in a file that was damaged may stop the daemon: every value is looked at."""
        _expect(data["schema"] == SCHEMA)
        same = bool(self._boot_id) and data["boot_id"] == self._boot_id
        remembered = {
            (name, family): _remembered(family, entry, same_boot=same)
            for name, families in data["selections"].items()
            for family, entry in families.items()
        }
        generation, time_ns = data["generation"], data["time_ns"]
        _expect(type(generation) is int and 0 <= generation < _GENERATION_END)
        _expect(type(time_ns) is int and 0 <= time_ns < _TIME_END_NS)
        return LastRun(generation, time_ns, remembered)

    def document(self, last: LastRun) -> dict[str, Any]:
        """What the file holds."""
        selections: dict[str, dict[str, object]] = {}
        for (name, family), kept in last.remembered.items():
            selections.setdefault(name, {})[family] = {
                "address": kept.address,
                "hold_until": kept.hold_until,
                "named": kept.named,
                "lost": kept.lost,
            }
        return {
            "schema": SCHEMA,
            "boot_id": self._boot_id,
            "generation": last.generation,
            "time_ns": last.time_ns,
            "selections": selections,
        }

    def publish(self, document: dict[str, Any]) -> int:
        """Write the file if it says something else; how many files. Raises PublishError where
        the directory cannot be written.
        """
        content = (json.dumps(document, indent=1) + "\n").encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._swept:
                remove_leftovers(self.path.parent)
                self._swept = True
            if read_file(self.path) == content:
                return 0
            write_atomically(self.path, content)
        except OSError as error:
            raise PublishError(f"state: {error.filename or self.path}: {error.strerror}") from None
        return 1


def _remembered(family: str, entry: dict[str, Any], *, same_boot: bool) -> Remembered:
    address = text(parse(entry["address"]))
    _expect(family_of(address) == family)
    hold_until, named, lost = entry["hold_until"], entry["named"], entry["lost"]
    _expect(hold_until is None or type(hold_until) is int)
    _expect(isinstance(named, bool) and isinstance(lost, bool))
    return Remembered(
        address=address,
        hold_until=hold_until if same_boot else None,
        named=named,
        lost=lost and same_boot,
        same_boot=same_boot,
    )


def _expect(is_so: bool) -> None:
    if not is_so:
        raise ValueError("a value that is none of ours")
