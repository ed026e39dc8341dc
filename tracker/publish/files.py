"""Files for whoever can read one: node.json and bare addresses, those of named selections in
directories of their own.

A reader sees the old file or the new one and never a part. A file that already says the right
thing is not touched, and a value is never replaced by an empty one: a family that never had an
address has no file.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracker.address import family_of, parse
from tracker.atomic import read_file, remove_leftovers, write_atomically
from tracker.errors import PublishError
from tracker.model import FAMILIES

NODE = "node.json"
PRIMARY = "primary-ip"
BOOT = ".boot"
"""Says which boot of the host the others are of."""
SELECTIONS = "selections"
"""Directory of the directories of named selections."""


class FilesPublisher:
    """Writes node documents into one directory; it makes the directory where there is none."""

    name = "files"

    def __init__(self, directory: str, *, reorder: bool = False, boot_id: str = "") -> None:
        """`reorder`: which families there are, and in which order, was asked for by configuration.
        So primary-ip may change its family when a more wanted one arrives, and the file of a
        family that is not wanted goes.

        `boot_id`: of the host; what another boot left in a directory that outlives one is nobody's
        value. "" = whatever is there counts.
        """
        self._directory = Path(directory)
        self._selections = self._directory / SELECTIONS
        self.reorder = reorder
        self._boot_id = boot_id
        self._swept = False

    def publish(self, document: dict[str, Any]) -> int:
        """Write what differs; how many files. Raises PublishError when any could not be."""
        families = document["families"]
        named = document.get("selections", {})
        places = {self._selections / name: each["primary"] for name, each in named.items()}
        try:
            self._directory.mkdir(0o755, parents=True, exist_ok=True)
            changed = self._sweep(places, document["primary"])
        except OSError as error:
            raise self._error(error) from None
        failed: OSError | None = None
        # The node's last, and its document at the very end: whoever waits for it finds the others.
        for path, primary in (*places.items(), (self._directory, document["primary"])):
            files: dict[str, str] = {f: primary[f] for f in FAMILIES if primary[f]}
            if family := self._primary_family(path, primary, families):
                files[PRIMARY] = primary[family]
            if path is self._directory:
                files[NODE] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            unwanted = set(FAMILIES) - set(families) if self.reorder else set()
            written, problem = _put(path, files, unwanted)
            changed += written
            failed = failed or problem
        if failed is not None:
            raise self._error(failed) from None
        return changed

    def _primary_family(
        self, path: Path, primary: dict[str, str | None], families: list[str]
    ) -> str | None:
        """The first wanted family that has an address; it stays with the family it has."""
        order = [family for family in families if primary[family]]
        present = None if self.reorder else _present_family(path)
        return present if present in order else next(iter(order), None)

    def _sweep(self, places: dict[Path, dict[str, str | None]], own: dict[str, str | None]) -> int:
        """Remove what is nobody's: of selections that are not configured any more, and, once, of
        writers that were killed and of another boot; how many files.
        """
        removed = 0
        for path in self._selections.iterdir() if self._selections.is_dir() else ():
            if path not in places and path.is_dir():
                remove_leftovers(path)
                removed += _remove(path, {*FAMILIES, PRIMARY})
                with contextlib.suppress(OSError):  # what somebody else put there stays
                    path.rmdir()
        if self._swept:
            return removed
        other_boot = self._is_of_another_boot()
        for path, primary in {**places, self._directory: own}.items():
            if path.is_dir():
                remove_leftovers(path)
                written = {family for family in FAMILIES if primary[family]}
                kept = {*written, PRIMARY} if written else written
                removed += _remove(path, {*FAMILIES, PRIMARY} - kept) if other_boot else 0
        if self._boot_id:
            _write(self._directory / BOOT, self._boot_id.encode())
        self._swept = True
        return removed

    def _is_of_another_boot(self) -> bool:
        known = (read_file(self._directory / BOOT) or b"").decode("ascii", "replace")
        return bool(self._boot_id) and known not in {"", self._boot_id}

    def _error(self, error: OSError) -> PublishError:
        return PublishError(f"files: {error.filename or self._directory}: {error.strerror}")


def _present_family(path: Path) -> str | None:
    """The family of the address in primary-ip."""
    try:
        text = (read_file(path / PRIMARY) or b"").decode("ascii")
        parse(text)
    except (OSError, ValueError):
        return None
    return family_of(text)


def _put(path: Path, files: dict[str, str], unwanted: set[str]) -> tuple[int, OSError | None]:
    """Remove files that nobody follows any more and write the others; how many differed, and the
    first failure. One that fails does not keep the others.
    """
    changed, failed = 0, None
    try:
        path.mkdir(0o755, parents=True, exist_ok=True)
    except OSError as error:
        return 0, error
    try:
        changed += _remove(path, unwanted)
    except OSError as error:
        failed = error
    for name, text in files.items():
        try:
            changed += _write(path / name, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            failed = failed or error
    return changed, failed


def _write(path: Path, content: bytes) -> bool:
    """True if the file had to be written."""
    if read_file(path) == content:
        return False
    write_atomically(path, content)
    return True


def _remove(path: Path, names: Iterable[str]) -> int:
    """How many there were."""
    removed = 0
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            (path / name).unlink()
            removed += 1
    return removed
