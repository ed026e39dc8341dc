"""One peer through one load: what it missed, how late it was, and what it took."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.peers import logs
from benchmarks.peers.process import Reader
from benchmarks.processes import MB
from benchmarks.sights import Delays, delays, together, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.peers.registry import Peer
    from benchmarks.sights import Event
    from benchmarks.storms import Ground

Row = dict[str, Any]
"""What a peer made of a scenario; the keys are those of a table's columns."""

BEGIN_SECONDS = 10.0
"""Within them a reader that is ready has to come to rest."""
CATCH_UP_SECONDS = 20.0
"""So long a reader may take behind a load."""
_MEMORY = "/dev/shm"


class Course(NamedTuple):
    """How one peer fared once."""

    outcome: str
    """"" = there is nothing to be said."""
    delays: Delays
    decided: Delays
    """Until it had decided, for those that say when that was; their callers get it later."""
    measured: Row
    """What it took; None where that could not be read."""


class Ended(NamedTuple):
    """What a reader left behind."""

    outcome: str
    sights: list[Event]
    decided: list[Event]
    lost: int | None
    """Messages, by its own count."""
    renewed: bool
    """It has another socket than it began with."""


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory in memory: no log has to be written to a disk."""
    where = _MEMORY if Path(_MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="peer-", dir=where) as name:
        yield Path(name)


def row(peer: Peer, outcome: str = "") -> Row:
    """With nothing measured; `outcome`: why, or what else is to be said."""
    return {"peer": peer.name, "title": peer.title, "outcome": outcome}


def merged(peer: Peer, courses: Sequence[Course]) -> Row:
    """Several courses of one peer: all delays together, and medians of what it took."""
    outcome = "; ".join(dict.fromkeys(course.outcome for course in courses if course.outcome))
    found = row(peer, outcome) | together(course.delays for course in courses).row()
    decided = together(course.decided for course in courses)
    if decided.seconds:
        found |= {f"decided_{name}": value for name, value in decided.row().items()}
    for name in dict.fromkeys(name for course in courses for name in course.measured):
        values = [course.measured.get(name) for course in courses]
        known: list[float] = [value for value in values if value is not None]
        found[name] = statistics.median(known) if len(known) == len(values) else None
    found["turns"] = [course.measured for course in courses]
    return found


def follow(
    peer: Peer,
    ground: Ground,
    watch: str,
    load: Callable[[Ground], Row],
) -> Course:
    """Have it follow while something changes; raises NotStartedError."""
    with scratch() as directory, peer.start(ground, watch, directory) as reader:
        reader.begin(BEGIN_SECONDS)
        loaded = load(ground)
        rested = reader.wait_until_quiet(CATCH_UP_SECONDS)
        measured = costs(reader, loaded.get("messages"))
        ended = end(peer, reader, directory, loaded["changes"])
    outcome = ended.outcome
    if not rested and not outcome:
        outcome = f"behind: not at rest {CATCH_UP_SECONDS:g} s later"
    measured = with_lost(measured, ended)
    measured["wrong"] = wrong(loaded["changes"], ended.sights)
    measured["writer_s"] = writer_seconds(loaded)
    found, decided = (delays(loaded["changes"], seen) for seen in (ended.sights, ended.decided))
    return Course(outcome, found, decided, measured)


def writer_seconds(loaded: Row) -> float:
    """What the writer took for all of a load."""
    return float(sum(value for name, value in loaded.items() if name.endswith("seconds")))


def costs(reader: Reader, messages: int | None = None) -> Row:
    """What it has used since begin(); `messages` is what the load made."""
    if not reader.is_alive():
        return {"messages": messages}
    used = reader.used()
    return {
        "messages": messages,
        "cpu_s": used.processor,
        "cpu_per_message_us": used.processor / messages * 1e6 if messages else None,
        "rss_mb": reader.usage().rss / MB,
        "peak_rss_mb": used.peak / MB,
        "wake_ups": used.wake_ups,
        "lost": reader.lost(),
    }


def end(peer: Peer, reader: Reader, directory: Path, changes: Sequence[Event]) -> Ended:
    """End it."""
    offset = logs.boot_offset()
    outcome, report = "", Row()
    if not reader.is_alive():
        outcome = f"ended by itself with status {reader.status()}"
    else:
        try:
            out = reader.end()
            report = json.loads(out) if peer.log is None else {}
        except subprocess.TimeoutExpired:
            outcome = "did not end at SIGTERM"
        except ValueError:
            outcome = "what it reported is no JSON"
    if peer.log is None:
        sights = report.get("sights", [])
    else:
        with (directory / "log").open(encoding="utf-8", errors="replace") as lines:
            sights = list(logs.sights(peer.log, lines, offset))
        if peer.by_network:
            sights = list(logs.named(sights, changes))
    if anew := report.get("sockets", 1) - 1:
        outcome = f"new sockets after overruns: {anew}"
    return Ended(outcome, sights, report.get("decided", []), report.get("lost"), bool(anew))


def with_lost(measured: Row, ended: Ended) -> Row:
    """What /proc tells of sockets is not all: a ring is none, and a new one has lost nothing."""
    if ended.renewed or measured.get("lost") is None:
        return {**measured, "lost": None}
    return {**measured, "lost": max(measured["lost"], ended.lost or 0)}
