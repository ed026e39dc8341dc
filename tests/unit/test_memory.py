"""The last decision over a restart: what was kept, and what damage to the file may do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tracker.decision import Remembered
from tracker.errors import PublishError
from tracker.lastrun import LastRun
from tracker.memory import StateFile

HELD = Remembered("192.0.2.1", 7_000_000_000, named=True, lost=False, same_boot=True)
GONE = Remembered("2001:db8::1", None, named=False, lost=True, same_boot=True)
LAST = LastRun(41, 1_790_000_000_000_000_000, {("", "ipv4"): HELD, ("", "ipv6"): GONE})


class Kept:
    """A state file and what it complained of."""

    def __init__(self, directory: Path) -> None:
        self.complaints: list[str] = []
        self.path = directory / "decision.json"
        self._directory = directory

    def file(self, boot_id: str = "this-boot") -> StateFile:
        return StateFile(str(self._directory), self.complaints.append, boot_id)

    def write(self, document: Any) -> None:
        self.path.write_text(json.dumps(document))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    kept = Kept(tmp_path)
    kept.file().publish(kept.file().document(LAST))
    return kept


def test_what_is_kept_is_read(kept: Kept) -> None:
    assert kept.file().load() == LAST
    assert kept.complaints == []


def test_after_a_boot_only_the_address_counts(kept: Kept) -> None:
    last = kept.file("next-boot").load()
    assert last is not None
    assert last.generation == LAST.generation
    assert last.remembered["", "ipv4"] == HELD._replace(hold_until=None, same_boot=False)
    assert last.remembered["", "ipv6"] == GONE._replace(lost=False, same_boot=False)


def test_without_a_file_there_is_nothing_to_say(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "none")
    assert kept.file().load() is None
    assert kept.complaints == []


def test_a_file_that_cannot_be_read_is_said_so(kept: Kept) -> None:
    kept.path.unlink()
    kept.path.mkdir()
    assert kept.file().load() is None
    assert kept.complaints == [f"{kept.path}: Is a directory"]


ODD: list[Any] = [None, True, -1, 1 << 70, 1.5, 1e300, "", "x", "::1%lo", "\ud800", [], [7], {}]


def _places(value: Any, place: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return []
    found = [(*place, key) for key in value]
    for key, inner in value.items():
        found += _places(inner, (*place, key))
    return found


DOCUMENT = StateFile("/", print, "this-boot").document(LAST)


@pytest.mark.parametrize("place", _places(DOCUMENT), ids=".".join)
def test_a_damaged_value_is_one_complaint_at_most(kept: Kept, place: tuple[str, ...]) -> None:
    whole = kept.path.read_text()
    for odd in ODD:
        kept.complaints.clear()
        document = json.loads(whole)
        inner = document
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = odd
        kept.write(document)
        last = kept.file().load()
        assert (last is None) == (len(kept.complaints) == 1)
        assert all("\n" not in line for line in kept.complaints)
        if last is not None:
            # Whatever was believed can be kept again.
            kept.file().publish(kept.file().document(last))
            assert kept.file().load() is not None


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[]", b"[" * 100_000, b"9" * 5000])
def test_a_file_of_another_making_is_one_complaint(kept: Kept, raw: bytes) -> None:
    kept.path.write_bytes(raw)
    assert kept.file().load() is None
    assert len(kept.complaints) == 1


def test_what_is_wrong_is_said_in_a_line(kept: Kept) -> None:
    kept.path.write_bytes(b"\xff" * 100_000)
    assert kept.file().load() is None
    assert len(kept.complaints[0]) < 200 + len(str(kept.path)) + 60


def test_nobody_waits_for_a_pipe(kept: Kept) -> None:
    kept.path.unlink()
    os.mkfifo(kept.path)
    assert kept.file().load() is None
    assert kept.file().publish(kept.file().document(LAST)) == 1
    assert kept.file().load() == LAST


def test_a_file_cut_anywhere_is_one_complaint(kept: Kept) -> None:
    whole = kept.path.read_bytes().rstrip()
    for end in range(len(whole)):
        kept.complaints.clear()
        kept.path.write_bytes(whole[:end])
        assert kept.file().load() is None
        assert len(kept.complaints) == 1


def test_an_address_of_the_other_family_is_not_believed(kept: Kept) -> None:
    document = json.loads(kept.path.read_text())
    document["selections"][""]["ipv4"]["address"] = "2001:db8::2"
    kept.write(document)
    assert kept.file().load() is None


def test_what_killed_writers_left_goes(kept: Kept) -> None:
    left = kept.path.with_name(".tmp-0011223344556677-decision.json")
    left.write_bytes(b"{")
    kept.file().publish(kept.file().document(LAST))
    assert list(kept.path.parent.iterdir()) == [kept.path]


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    file = StateFile(str(tmp_path / "file"), print, "this-boot")
    with pytest.raises(PublishError, match=r"state: .*: Not a directory|File exists"):
        file.publish(file.document(LAST))
