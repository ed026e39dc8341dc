"""Files for whoever can read one: node.json and bare addresses.

Every file is written beside its place, fsynced and renamed, so a reader sees the old or the new
one and never a part. A file that already says the right thing is not touched, and a value is
never replaced by an empty one: a family that never had an address has no file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from typing import Any

from tracker.address import family_of, parse
from tracker.errors import PublishError
from tracker.model import FAMILIES

NODE = "node.json"
PRIMARY = "primary-ip"
MODE = 0o644

_TEMPORARY = ".tmp-"


class FilesPublisher:
    """Writes node documents into one directory; it makes the directory where there is none."""

    name = "files"

    def __init__(self, directory: str, *, reorder: bool = False) -> None:
        """`reorder`: primary-ip may change its family when a more wanted one arrives, because
        the order of families was asked for by configuration.
        """
        self._directory = directory
        self._reorder = reorder
        self._swept = False

    def publish(self, document: dict[str, Any]) -> int:
        """Write what differs; how many files. Raises PublishError when any could not be."""
        files: dict[str, str] = {}
        for family in FAMILIES:
            if document["primary"][family]:
                files[family] = document["primary"][family]
        primary = self._primary(document)
        if primary:
            files[PRIMARY] = primary
        # Last: whoever waits for it finds the others written.
        files[NODE] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        written = 0
        failed: OSError | None = None
        try:
            self._prepare()
        except OSError as error:
            raise _publish_error(self._directory, error) from None
        for name, text in files.items():
            try:
                written += self._write(name, text.encode("utf-8", "surrogateescape"))
            except OSError as error:
                failed = failed or error
        if written:
            try:
                _sync_directory(self._directory)
            except OSError as error:
                failed = failed or error
        if failed is not None:
            raise _publish_error(self._directory, failed) from None
        return written

    def _primary(self, document: dict[str, Any]) -> str | None:
        """The first wanted family that has an address; it stays with the family it has."""
        order = [family for family in document["families"] if document["primary"][family]]
        if not self._reorder:
            present = self._read(PRIMARY)
            try:
                text = present.decode("ascii")
                parse(text)
            except (ValueError, AttributeError):
                pass
            else:
                order.sort(key=lambda family: family != family_of(text))
        return document["primary"][order[0]] if order else None

    def _read(self, name: str) -> bytes:
        try:
            with open(os.path.join(self._directory, name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def _write(self, name: str, content: bytes) -> bool:
        """True if the file had to be written."""
        if self._read(name) == content:
            return False
        target = os.path.join(self._directory, name)
        temporary = os.path.join(self._directory, f"{_TEMPORARY}{secrets.token_hex(8)}-{name}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600)
        try:
            # Held while this process lives: tells a leftover from a file being written.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            os.fchmod(descriptor, MODE)
            os.fsync(descriptor)
            os.rename(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        return True

    def _prepare(self) -> None:
        os.makedirs(self._directory, 0o755, exist_ok=True)
        if not self._swept:
            self._sweep()
            self._swept = True

    def _sweep(self) -> None:
        """Remove what writers that were killed left behind."""
        for name in os.listdir(self._directory):
            if not name.startswith(_TEMPORARY):
                continue
            path = os.path.join(self._directory, name)
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
                finally:
                    os.close(descriptor)


def _sync_directory(path: str) -> None:
    """Make the renames last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish_error(directory: str, error: OSError) -> PublishError:
    return PublishError(f"files: {error.filename or directory}: {error.strerror}")
