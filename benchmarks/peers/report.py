"""What was measured, as tables on the terminal and as one JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.figures import lines
from benchmarks.sights import FOR_P99
from benchmarks.units import number, quantity, three_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.peers.following import Row
    from benchmarks.peers.registry import Peer
    from benchmarks.peers.scenarios import Scenario


class Column(NamedTuple):
    """How a value of a row is written."""

    head: str
    text: Callable[[Any], str]


def _seconds(value: float) -> str:
    return quantity(value, "s")


def _mb(value: float) -> str:
    return f"{three_digits(value)} MB"


def _us(value: float) -> str:
    return quantity(value / 1e6, "s")


COLUMNS = {
    "changes": Column("changes", number),
    "missed": Column("missed", number),
    "wrong": Column("wrong at the end", number),
    "median_s": Column("median", _seconds),
    "p99_s": Column("p99", _seconds),
    "max_s": Column("maximum", _seconds),
    "cpu_s": Column("processor", _seconds),
    "cpu_per_message_us": Column("per message", _us),
    "wake_ups": Column("wake-ups", number),
    "rss_mb": Column("RSS", _mb),
    "peak_rss_mb": Column("peak RSS", _mb),
    "lost": Column("dropped", number),
    "writer_s": Column("the writer took", _seconds),
    "ready_s": Column("ready after", _seconds),
    "right_s": Column("right after", _seconds),
}
NOTHING = "-"

NOTES = [
    " ".join(note.split())
    for note in f"""
Each reader was alone with the load, in a network namespace of its own; but for cold starts, one by
one on the same table, and for idle cost. The load is benchmarks/load.c, which sends requests in
batches.

From change to known: from right before the request until the reader knows. A p99 is one of
{FOR_P99} samples or more; where there are fewer, the maximum says so by itself.

Missed: changes that the reader never saw, or saw only once the same had happened again. Wrong at
the end: addresses of which its last word is not how things are.

Processor time, wake-ups (voluntary context switches) and the peak of the RSS are those of all
threads and children, read from /proc for all alike, from before the load until nothing is left to
read. What the kernel does in a writer's own call, addrtracker's program there included, is in what
the writer took. What sockets hold is in no RSS.

Dropped: messages that the kernel had no room for, as /proc/net/netlink counts them, at sockets that
were still open at the end; pyroute2 has opened a new one by then.

Buffers are those that each has by default, or that Debian configures (zebra); the bare recv loop
and one more IPRoute have 256 MiB, so that they see everything.

BIRD, zebra, libnl and NDB keep a full table: they do more than it takes to know an address. They
are here because a host has them already, or because a user would reach for them.

BIRD and zebra say what they know in their logs, in microseconds of the wall clock. BIRD takes the
time once in a turn of its loop: what it tells may be some messages early. It names networks, so
each change is one of another network.

`ip monitor` and the bare loops keep no state: what they miss stays missed.

addrtracker decides without a wait here (settle and hold are 0), as all others act at once. What it
sees is its decision, when its caller has it: of changes that come before it has woken up it makes
one decision, and those in between count as missed.
""".strip().split("\n\n")
]
"""What one has to know to be fair."""


def cells(columns: Sequence[str], row: Row) -> list[str]:
    """One row as text."""
    found = [row["title"]]
    for name in columns:
        value = row.get(name)
        found.append(NOTHING if value is None else COLUMNS[name].text(value))
    return [*found, row["outcome"]]


def document(scenario: Scenario, rows: Sequence[Row]) -> dict[str, Any]:
    """A scenario for JSON: its table as values and as text."""
    return {
        "name": scenario.name,
        "title": scenario.title,
        "load": scenario.load,
        "notes": [*scenario.notes],
        "columns": [*scenario.columns],
        "rows": [*rows],
        "head": ["", *(COLUMNS[name].head for name in scenario.columns), ""],
        "cells": [cells(scenario.columns, row) for row in rows],
    }


def table(done: Mapping[str, Any]) -> Iterator[str]:
    """A scenario's document as lines for a terminal."""
    yield ""
    yield f"{done['name']}: {done['title']}"
    yield f"  {done['load']}."
    rows = [done["head"], *done["cells"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        title, *values, outcome = row
        adjusted = [value.rjust(width) for value, width in zip(values, widths[1:], strict=False)]
        yield "  ".join([title.ljust(widths[0]), *adjusted, outcome]).rstrip()
    for note in done["notes"]:
        yield f"  {note}"


def peers(found: Sequence[Peer]) -> list[dict[str, Any]]:
    """Who took part, or could not."""
    return [
        {
            "name": peer.name,
            "title": peer.title,
            "asked": peer.asked,
            "buffer": peer.buffer,
            "missing": peer.missing() or None,
        }
        for peer in found
    ]


def ending(whole: Mapping[str, Any]) -> Iterator[str]:
    """What stands below all tables."""
    yield ""
    yield "Who was asked to do what"
    for peer in whole["peers"]:
        yield f"  {peer['title']}: {peer['asked']} (buffer: {peer['buffer']})"
    yield ""
    yield "How to read it"
    yield from (f"  {note}" for note in whole["notes"])
    yield ""
    machine, versions = whole["machine"], whole["versions"]
    yield (
        f"Linux {machine['kernel']}, {machine['cores']} cores of {machine['cpu']}, "
        f"load {machine['busy'][0]:.2f} before; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"; {whole['seconds']:.0f} s in all"
    )
    missing = [peer for peer in whole["peers"] if peer["missing"]]
    yield from (f"NOT MEASURED: {peer['title']}: {peer['missing']}" for peer in missing)
    yield ""
    yield from (line.rstrip() for line in lines(whole["figures"]))
