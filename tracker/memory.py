"""Keeps the last decision in the state directory, so that a restart goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracker.atomic import write_atomically
from tracker.decision import Remembered
from tracker.errors import PublishError
from tracker.session import LastRun

SCHEMA = "addrtracker.state/v1"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class StateFile:
    """The file decision.json of one state directory; a publisher of what `document` makes."""

    name = "state"

    def __init__(self, directory: str, boot_id: str | None = None) -> None:
        self.path = Path(directory) / "decision.json"
        self._boot_id = boot_id if boot_id is not None else _BOOT_ID.read_text().strip()

    def load(self) -> LastRun | None:
        """The last run's decision; None if there is none or the file is not of our making."""
        try:
            data = json.loads(self.path.read_bytes())
            if data["schema"] != SCHEMA:
                return None
            same = data["boot_id"] == self._boot_id
            remembered = {
                (name, family): Remembered(
                    address=str(entry["address"]),
                    hold_until=entry["hold_until"] if same else None,
                    named=bool(entry["named"]),
                    lost=bool(entry["lost"]) and same,
                    same_boot=same,
                )
                for name, families in data["selections"].items()
                for family, entry in families.items()
            }
            return LastRun(int(data["generation"]), int(data["time_ns"]), remembered)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

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
        """Write the file; raises PublishError where the directory cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, (json.dumps(document, indent=1) + "\n").encode())
        except OSError as error:
            raise PublishError(f"state: {error.filename or self.path}: {error.strerror}") from None
        return 1
