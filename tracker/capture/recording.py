"""Recordings: the records that a source applied, in a file that any host can read.

Layout, little-endian: the magic, a fixed header (see _HEAD), then records one after the other
(bpf/records.h). The file is only ever appended to, so a writer that was killed leaves a good
beginning and at most one broken record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from tracker.capture.fields import read_bytes
from tracker.capture.record import (
    Header,
    Loss,
    LossCause,
    MalformedRecord,
    Record,
    decode,
    encode,
    iter_records,
)
from tracker.errors import InputError

MAGIC = b"ADDRTRK1"
VERSION = 1

_HEAD = struct.Struct("<8sIIQQ36s4x256s")
"""Magic, version, bytes of this header, CLOCK_BOOTTIME and CLOCK_REALTIME of the start in
nanoseconds, boot id, host name (both padded with zeros)."""
_SIZE = struct.Struct("<H")


class Head(NamedTuple):
    """What a recording says about its origin."""

    hostname: str
    boot_id: str
    boot_ns: int
    """CLOCK_BOOTTIME of the start."""
    wall_ns: int
    """CLOCK_REALTIME of the start."""


class RecordingWriter:
    """Writes a recording; the caller opens and closes the file."""

    def __init__(self, file: BinaryIO, head: Head) -> None:
        """Write the header. Raises OSError."""
        self._file = file
        self._write(
            _HEAD.pack(
                MAGIC,
                VERSION,
                _HEAD.size,
                head.boot_ns,
                head.wall_ns,
                head.boot_id.encode(),
                head.hostname.encode("utf-8", "surrogateescape")[:255],
            )
        )

    def write(self, records: bytes) -> int:
        """Append records in native byte order, as a tap gives them; how many. Raises OSError."""
        raws = [encode(record, "<") for record in iter_records(records)]
        self._write(b"".join(raws))
        return len(raws)

    def write_record(self, record: Record) -> None:
        """Append one record. Raises OSError."""
        self._write(encode(record, "<"))

    def _write(self, raw: bytes) -> None:
        """All of it: a file without a buffer may take less at a time."""
        left = memoryview(raw)
        while left:
            left = left[self._file.write(left) :]

    def finish(self, boot_ns: int) -> None:
        """Say until when (CLOCK_BOOTTIME) nothing more came: a loss of nothing. Raises OSError.

        Without it, as after a crash, a replay ends with the last record.
        """
        self.write_record(Record(Header(boot_ns=boot_ns), Loss(LossCause.OVERRUN, 0)))


class Recording(NamedTuple):
    """A whole recording."""

    file: str
    head: Head
    records: tuple[Record, ...]
    warnings: tuple[str, ...]
    """What is wrong with the file without making it useless."""


def is_recording(start: bytes) -> bool:
    """Whether a file that begins so is a recording, perhaps of another version."""
    return start[: len(MAGIC) - 1] == MAGIC[:-1]


def read_recording(path: str) -> Recording:
    """The recording in a file. Raises InputError for another format or version.

    A file that ends in the middle of a record is read up to there, with a warning.
    """
    return parse_recording(read_bytes(path), path)


def parse_recording(raw: bytes, path: str) -> Recording:
    """The recording in `raw`; `path` is what messages call it. Raises as read_recording()."""
    head, start = _read_head(raw, path)
    records: list[Record] = []
    warnings: list[str] = []
    for offset, chunk in _chunks(raw, start):
        if chunk is None:
            warnings.append(
                f"{path}: byte {offset}: the file ends inside a record; read up to there"
            )
            break
        try:
            records.append(decode(chunk, "<"))
        except MalformedRecord as error:
            raise InputError(f"{path}: byte {offset}: {error}; allowed: a record") from None
    return Recording(path, head, tuple(records), tuple(warnings))


def _read_head(raw: bytes, path: str) -> tuple[Head, int]:
    magic = MAGIC.decode()
    if not is_recording(raw):
        raise InputError(f"{path}: not a recording; allowed: a file that begins with {magic}")
    if raw[: len(MAGIC)] != MAGIC or len(raw) < _HEAD.size:
        what = "the header is not whole" if raw.startswith(MAGIC) else "another format"
        raise InputError(f"{path}: {what}; allowed: a recording of format {magic}")
    _, version, size, boot_ns, wall_ns, boot_id, hostname = _HEAD.unpack_from(raw)
    if version != VERSION:
        raise InputError(f"{path}: version {version}; allowed: {VERSION}")
    if size != _HEAD.size:
        raise InputError(f"{path}: a header of {size} bytes; allowed: {_HEAD.size}")
    boot_text = boot_id.rstrip(b"\0").decode("ascii", "replace")
    host_text = hostname.rstrip(b"\0").decode("utf-8", "surrogateescape")
    return Head(host_text, boot_text, boot_ns, wall_ns), size


def _chunks(raw: bytes, start: int) -> Iterator[tuple[int, bytes | None]]:
    """(offset, bytes) of each record; None for one that is not whole."""
    offset = start
    while offset < len(raw):
        size = _SIZE.unpack_from(raw, offset)[0] if offset + _SIZE.size <= len(raw) else 0
        whole = offset + size <= len(raw) and offset + _SIZE.size <= len(raw)
        yield offset, raw[offset : offset + size] if whole else None
        if not whole or not size:
            return
        offset += size
