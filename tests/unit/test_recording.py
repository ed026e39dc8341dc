"""Recordings: what was written comes back, on any host, also after a crash."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

from tracker.capture.record import Addr, Dump, Header, Loss, Op, Phase, Record, Task, encode
from tracker.capture.recording import Head, RecordingWriter, read_recording
from tracker.errors import InputError
from tracker.model import AF_INET, Scope

HEAD = Head("node-1", "b5a1f0de-0000-4000-8000-000000000000", 5_000, 1_700_000_000_000_000_000)
RECORDS = [
    Record(Header(boot_ns=6_000), Dump(Scope.ADDR4, Phase.BEGIN)),
    Record(Header(boot_ns=6_001, flags=1), Addr(AF_INET, 2, b"\xc0\x00\x02\x01", 24)),
    Record(Header(boot_ns=6_002), Dump(Scope.ADDR4, Phase.END)),
    Record(Header(boot_ns=7_000), Loss(1, 63)),
    Record(
        Header(Op.DEL, 8_000, 0x600, 9, 4, 812),
        Addr(AF_INET, 2, b"\xc0\x00\x02\x01", 24),
        Task(812, "NetworkManager"),
    ),
]


def written(path: Path) -> bytes:
    with path.open("wb") as file:
        writer = RecordingWriter(file, HEAD)
        assert writer.write(b"".join(map(encode, RECORDS[:4]))) == 4
        writer.write_record(RECORDS[4])
    return path.read_bytes()


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "r"
    written(path)
    recording = read_recording(str(path))
    assert recording.head == HEAD
    assert list(recording.records) == RECORDS
    assert recording.warnings == ()


def test_the_file_is_little_endian_on_every_host(tmp_path: Path) -> None:
    raw = written(tmp_path / "r")
    magic, version, size, boot_ns, wall_ns = struct.unpack_from("<8sIIQQ", raw)
    assert (magic, version, boot_ns, wall_ns) == (b"ADDRTRK1", 1, HEAD.boot_ns, HEAD.wall_ns)
    length, _, kind = struct.unpack_from("<HBB", raw, size)
    assert (length, kind) == (56, 6)
    assert raw[size:] == b"".join(encode(record, "<") for record in RECORDS)


@pytest.mark.parametrize("missing", [1, 30, 79])
def test_a_file_that_ends_in_a_record_is_read_up_to_there(tmp_path: Path, missing: int) -> None:
    path = tmp_path / "r"
    raw = written(path)
    path.write_bytes(raw[:-missing])
    recording = read_recording(str(path))
    assert list(recording.records) == RECORDS[:4]
    assert len(recording.warnings) == 1
    assert "the file ends inside a record" in recording.warnings[0]


def test_a_record_of_no_size_does_not_loop(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(written(path) + bytes(64))
    with pytest.raises(InputError, match="allowed: a record"):
        read_recording(str(path))


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (0, b"ADDRTRK2", "another format; allowed: a recording of format ADDRTRK1"),
        (0, b"PNG\0PNG\0", "not a recording; allowed: a file that begins with ADDRTRK1"),
        (8, b"\x02\0\0\0", "version 2; allowed: 1"),
        (12, b"\x10\0\0\0", "a header of 16 bytes; allowed: 328"),
    ],
)
def test_another_format_or_version_is_refused(
    tmp_path: Path, at: int, value: bytes, said: str
) -> None:
    path = tmp_path / "r"
    raw = bytearray(written(path))
    raw[at : at + len(value)] = value
    path.write_bytes(raw)
    with pytest.raises(InputError, match=said):
        read_recording(str(path))


def test_a_header_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(written(path)[:100])
    with pytest.raises(InputError, match="the header is not whole"):
        read_recording(str(path))


def test_a_long_host_name_is_cut(tmp_path: Path) -> None:
    file = io.BytesIO()
    RecordingWriter(file, HEAD._replace(hostname="n" * 300))
    path = tmp_path / "r"
    path.write_bytes(file.getvalue())
    assert read_recording(str(path)).head.hostname == "n" * 255


def test_no_byte_makes_more_than_an_error_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "r"
    raw = written(path)
    for at in range(len(raw)):
        for value in (0, 1, 0x7F, 0xFF):
            path.write_bytes(raw[:at] + bytes([value]) + raw[at + 1 :])
            said = ""
            try:
                read_recording(str(path))
            except InputError as error:
                said = str(error)
            assert "\n" not in said
            assert not said or "allowed: " in said
