"""What addrtracker is held to beside others, each a ratio within one run."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figure, judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.peers.following import Row

FAMILIES = ("IPv4", "IPv6")
SECTION = "beside others"

TO_RECV = {
    family: Figure(f"{family} route storm: processor time to a bare recv loop", "times", 0.05)
    for family in FAMILIES
}
TO_PYROUTE2 = {
    family: Figure(f"{family} route storm: processor time to pyroute2's IPRoute", "times", 0.01)
    for family in FAMILIES
}
MISSED = {
    family: Figure(f"{family} route storm: changes missed", "changes", 0.0) for family in FAMILIES
}
_LATE = "storm, an address flips every 10 ms"
LATE = {
    "decided_p99_s": Figure(f"{_LATE}: p99 of the decision to a bare ring reader", "times", 2.0),
    "p99_s": Figure(f"{_LATE}: p99 until the caller has it, to the same", "times", 2.0),
    "decided_median_s": Figure(f"{_LATE}: median of the decision, to the same", "times"),
    "median_s": Figure(f"{_LATE}: median until the caller has it, to the same", "times"),
}
"""By columns of a row."""
START = Figure("cold start, full table: to a bare C dump and python -c pass", "times", 1.5)
START_SHOW = Figure("the same for the command show", "times")


def rows(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each figure with its value, its target and whether it is met."""
    found = {
        scenario["name"]: {row["peer"]: row for row in scenario["rows"]} for scenario in scenarios
    }
    return [{"section": SECTION, **judged(figure, value)} for figure, value in _values(found)]


def _values(found: Mapping[str, Mapping[str, Row]]) -> Iterator[tuple[Figure, float | None]]:
    for family in FAMILIES:
        full = found.get(f"routes-{family.lower()}", {})
        small = found.get(f"routes-{family.lower()}-small", {})
        yield TO_RECV[family], by_turns(full, "bpf", "recv", "cpu_s")
        yield TO_PYROUTE2[family], by_turns(small, "bpf", "iproute-large", "cpu_s")
        yield MISSED[family], full.get("bpf", {}).get("missed")
    flips = found.get("flips", {})
    for column, figure in LATE.items():
        yield figure, ratio(flips, column)
    starts = found.get("cold-start", {})
    yield START, of_start(starts, "run-bpf")
    yield START_SHOW, of_start(starts, "show")


def ratio(rows: Mapping[str, Row], column: str) -> float | None:
    """What addrtracker has in a column to what the bare ring reader has there."""
    above = rows.get("bpf", {}).get(column)
    below = rows.get("ring", {}).get(column.removeprefix("decided_"))
    return above / below if above is not None and below else None


def by_turns(rows: Mapping[str, Row], one: str, other: str, column: str) -> float | None:
    """The median of the ratios of all turns."""
    turns = [rows.get(name, {}).get("turns", []) for name in (one, other)]
    pairs = [(a.get(column), b.get(column)) for a, b in zip(*turns, strict=False)]
    ratios = [a / b for a, b in pairs if a is not None and b]
    return statistics.median(ratios) if ratios else None


def of_start(rows: Mapping[str, Row], name: str) -> float | None:
    """The median over all turns of a start to the least that it could take."""
    turns = [rows.get(of, {}).get("turns", []) for of in (name, "dump", "python")]
    ratios = [
        start["ready_s"] / (dump["ready_s"] + python["ready_s"])
        for start, dump, python in zip(*turns, strict=False)
    ]
    return statistics.median(ratios) if ratios else None
