"""Reads the files that can be replayed: snapshots, cases, recordings, output of ip."""

from __future__ import annotations

from collections.abc import Sequence

from tracker.capture.cases import Case, read_case
from tracker.capture.fields import Fields, as_text, json_values, read_bytes
from tracker.capture.ipjson import ALLOWED, Entry, entries, read_entries
from tracker.capture.recording import Recording, is_recording, parse_recording
from tracker.capture.snapshot import KINDS, Snapshot
from tracker.capture.snapshot import read as read_snapshot
from tracker.errors import InputError


def load(paths: Sequence[str]) -> Case | Recording:
    """Read one input: a recording, a case, a snapshot, or files that ip wrote.

    Raises InputError with one line: file, place, what is wrong, what is allowed.
    """
    found: list[Entry] = []
    for path in paths:
        raw = read_bytes(path)
        if is_recording(raw):
            if len(paths) > 1:
                raise InputError(f"{path}: a recording among other files; allowed: one recording")
            return parse_recording(raw, path)
        values = json_values(as_text(raw), path)
        if isinstance(values[0], dict):
            if len(paths) > 1 or len(values) > 1:
                raise InputError(
                    f"{path}: a case or snapshot with something beside it; allowed: one of them"
                )
            return _read_object(Fields(values[0], path))
        for number, value in enumerate(values):
            found += entries(value, path, number)
    return _plain(paths[0], read_entries(found))


def _read_object(fields: Fields) -> Case:
    if "input" in fields:
        return read_case(fields)
    if not any(kind in fields for kind in KINDS):
        raise InputError(f"{fields.file}: not of a known format; allowed: {ALLOWED}")
    case = _plain(fields.file, read_snapshot(fields))
    return case._replace(hostname=fields.string("hostname", ""))


def _plain(path: str, snapshot: Snapshot) -> Case:
    """A snapshot: a case in which nothing happens."""
    return Case(path, path, "", snapshot, (), {}, (), None)
