"""Files for whoever can read one: node.json and bare addresses.

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
from tracker.atomic import remove_leftovers, write_atomically
from tracker.errors import PublishError
from tracker.model import FAMILIES

NODE = "node.json"
PRIMARY = "primary-ip"
BOOT = ".boot"
"""Says which boot of the host the others are of."""


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
        self._reorder = reorder
        self._boot_id = boot_id
        self._swept = False

    def publish(self, document: dict[str, Any]) -> int:
        """Write what differs; how many files. Raises PublishError when any could not be."""
        primary = document["primary"]
        files = {family: primary[family] for family in FAMILIES if primary[family]}
        if family := self._primary_family(document):
            files[PRIMARY] = primary[family]
        # Last: whoever waits for it finds the others written.
        files[NODE] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        written = 0
        failed: OSError | None = None
        removed = 0
        try:
            removed = self._prepare(files)
        except OSError as error:
            raise self._error(error) from None
        for name, text in files.items():
            try:
                written += self._write(name, text.encode("utf-8", "backslashreplace"))
            except OSError as error:
                failed = failed or error
        try:
            written += self._remove_unwanted(document["families"])
        except OSError as error:
            failed = failed or error
        if failed is not None:
            raise self._error(failed) from None
        return written + removed

    def _remove_unwanted(self, wanted: list[str]) -> int:
        """Nobody follows them any more, so what they say may be wrong; how many files."""
        removed = 0
        if self._reorder:
            for family in set(FAMILIES) - set(wanted):
                with contextlib.suppress(FileNotFoundError):
                    (self._directory / family).unlink()
                    removed += 1
        return removed

    def _primary_family(self, document: dict[str, Any]) -> str | None:
        """The first wanted family that has an address; it stays with the family it has."""
        order = [family for family in document["families"] if document["primary"][family]]
        present = None if self._reorder else self._present_family()
        return present if present in order else next(iter(order), None)

    def _present_family(self) -> str | None:
        """The family of the address in primary-ip."""
        try:
            text = (self._directory / PRIMARY).read_text("ascii")
            parse(text)
        except (OSError, ValueError):
            return None
        return family_of(text)

    def _write(self, name: str, content: bytes) -> bool:
        """True if the file had to be written."""
        path = self._directory / name
        try:
            if path.read_bytes() == content:
                return False
        except FileNotFoundError:
            pass
        write_atomically(path, content)
        return True

    def _prepare(self, files: Iterable[str]) -> int:
        """How many files of another boot were removed; `files` are those that will be written."""
        self._directory.mkdir(0o755, parents=True, exist_ok=True)
        removed = 0
        if not self._swept:
            remove_leftovers(self._directory)
            removed = self._remove_older({*FAMILIES, PRIMARY} - set(files))
            self._swept = True
        return removed

    def _remove_older(self, names: set[str]) -> int:
        mark = self._directory / BOOT
        try:
            known = mark.read_text("ascii", "replace")
        except FileNotFoundError:
            known = ""
        removed = 0
        for name in names if self._boot_id and known not in {"", self._boot_id} else ():
            with contextlib.suppress(FileNotFoundError):
                (self._directory / name).unlink()
                removed += 1
        if self._boot_id and known != self._boot_id:
            write_atomically(mark, self._boot_id.encode())
        return removed

    def _error(self, error: OSError) -> PublishError:
        return PublishError(f"files: {error.filename or self._directory}: {error.strerror}")
