"""A recording, played on a virtual clock."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.engines import addresses, best_in_turn, links, other_in_turn, routes
from benchmarks.samples import MemoryOf, group, rounds
from tests import build
from tracker.capture.record import Record, iter_records
from tracker.capture.recording import Head, RecordingWriter, read_recording
from tracker.cli import replay
from tracker.cli.follow import configuration
from tracker.cli.options import parse
from tracker.cli.play import play
from tracker.model import NANOSECONDS, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

ADDRESSES = 1000
CHANGES = 1000
"""Of the best address: two records each; and as many of another one."""
GAP_NS = NANOSECONDS // 100
HEAD = Head("n1", "b5a1f0de-0000-4000-8000-000000000000", NANOSECONDS, NANOSECONDS)


def dumps() -> Iterator[Record]:
    shown = {
        Scope.LINK: links(ADDRESSES),
        Scope.ADDR4: addresses(ADDRESSES),
        Scope.ROUTE4: routes(ADDRESSES),
    }
    for scope in Scope:
        yield build.begin(scope)
        yield from map(build.entry, shown.get(scope, []))
        yield build.end(scope)


def events() -> Iterator[bytes]:
    pairs = zip(itertools.cycle(best_in_turn()), itertools.cycle(other_in_turn(ADDRESSES)))
    yield from itertools.chain.from_iterable(itertools.islice(pairs, CHANGES))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a daemon on a host of so many addresses kept."""
    path: Path = tmp_path_factory.mktemp("recording") / "file"
    now = HEAD.boot_ns
    with path.open("wb") as file:
        writer = RecordingWriter(file, HEAD)
        for record in dumps():
            writer.write_record(at(record, now))
        for raw in events():
            now += GAP_NS
            for record in iter_records(raw):
                writer.write_record(at(record, now))
        writer.finish(now + 60 * NANOSECONDS)
    return str(path)


def at(record: Record, boot_ns: int) -> Record:
    return record._replace(header=record.header._replace(boot_ns=boot_ns))


@group("replay: a recording of 4000 records")
def test_read(recording: str, benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    """The file alone."""
    found = rounds(benchmark, read_recording, 5, args=(recording,))
    assert len(found.records) >= ADDRESSES + 3 * CHANGES
    memory.allocated(lambda: read_recording(recording))


@group("replay: a recording of 4000 records")
def test_play(recording: str, benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    """The command without its process: the file, every step of the session, the documents."""
    arguments = parse("replay", replay.OPTIONS, replay.WORDS, [recording])
    config = configuration(arguments)

    def run() -> object:
        return play([recording], config, arguments)

    rounds(benchmark, run, 5)
    memory.allocated(run)
