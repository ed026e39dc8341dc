"""Holds what was counted to what may be counted, and says what grew."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.budget.counts import LEAST, Amount, Count, Kept, rounded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Measure(NamedTuple):
    """How much more than the budget is no news."""

    share: float
    slack: float
    unknown: float
    """Instead of the share, for a compiler or an interpreter of which nothing is kept."""


MEASURES = {
    # Of C, as callgrind counts it; the same compiler makes the same code.
    "instructions": Measure(0.05, 8, 0.5),
    "allocations": Measure(0, 0, 0),
    "calls": Measure(0, 0, 0),
    # Of Python. Libraries and memory differ a little from one patch of a version to the next.
    "bytecode": Measure(0.03, 8, 0.5),
    "bytecode of libraries": Measure(0.1, 100, 0.5),
    "C functions": Measure(0.02, 0.5, 0.5),
    "modules": Measure(0, 0, 0),
    "modules of libraries": Measure(0, 0, 0.5),
    "blocks kept": Measure(0, 0.1, 0),
    "peak bytes": Measure(0.1, 2048, 0.5),
}

GROWTH = 1.6
"""How often the instructions for one unit at the smallest size a path may take at the largest
one. Between the two lies a factor of 10 or 100, and of less than 1.7 in the depth of a tree."""
SMALLEST = 100
"""Sizes below are all beginning."""
NAMED = 5
"""Functions that a failure names at most."""


class Verdict(NamedTuple):
    """One line of the table."""

    path: str
    measure: str
    counted: float
    budget: float | None
    allowed: float
    said: str
    grown: tuple[str, ...] = ()
    """What it is made of that grew most, from what to what; only of a failure."""

    @property
    def failed(self) -> bool:
        return self.said not in {OK, LESS}


OK = "ok"
LESS = "less: update"
OVER = "OVER"
NEW = "NOT IN THE BUDGET"
GONE = "NOT COUNTED"
ALLOCATES = "AN EVENT ALLOCATES"
GROWS = "GROWS"


def verdicts(counts: Sequence[Count], kept: Kept, *, known: bool) -> Iterator[Verdict]:
    """Of every measure of every path. `known`: the budget is of this very toolchain."""
    for count in counts:
        budget = kept.get(count.path, {})
        for measure, counted in count.amounts.items():
            yield _verdict(count, measure, counted, budget.get(measure), known=known)
    for path in sorted(kept.keys() - {count.path for count in counts}):
        yield Verdict(path, "", 0, 0, 0, GONE)


def _verdict(
    count: Count, measure: str, counted: Amount, budget: Amount | None, *, known: bool
) -> Verdict:
    share, slack, unknown = MEASURES[measure]
    if not known:
        share = unknown
    start = budget or Amount(0, {})
    allowed = start.total * (1 + share) + slack
    if budget is None:
        said = NEW
    elif counted.total > allowed:
        said = OVER
    elif measure == "allocations" and count.event and counted.total:
        said = ALLOCATES
    elif known and counted.total < start.total * (1 - share) - slack:
        said = LESS
    else:
        said = OK
    line = Verdict(count.path, measure, counted.total, budget and budget.total, allowed, said)
    return line._replace(grown=tuple(_grown(start, counted))) if line.failed else line


def _grown(before: Amount, now: Amount) -> Iterator[str]:
    growth = {
        name: now.parts.get(name, 0) - before.parts.get(name, 0)
        for name in {*now.parts, *before.parts}
    }
    for name in sorted(growth, key=lambda name: (-growth[name], name))[:NAMED]:
        if growth[name] > 0:
            yield f"{name}: {_part(before, name)} -> {now.parts[name]:,}"


def _part(of: Amount, name: str) -> str:
    unnamed = of.total * LEAST
    if name in of.parts or unnamed < 1:
        return f"{of.parts.get(name, 0):,}"
    return f"at most {rounded(unnamed):,}"


def growth(counts: Sequence[Count]) -> Iterator[Verdict]:
    """Of instructions with the size: what becomes linear fails, however little each one takes."""
    families: dict[str, list[Count]] = {}
    for count in counts:
        if count.size >= SMALLEST:
            families.setdefault(count.family, []).append(count)
    for family, members in families.items():
        small, large = (pick(members, key=lambda count: count.size) for pick in (min, max))
        if small is large:
            continue
        before, now = (count.amounts["instructions"] for count in (small, large))
        ratio = now.total / before.total
        line = Verdict(
            family,
            f"growth, {small.size} to {large.size}",
            rounded(ratio),
            None,
            GROWTH,
            OK if ratio <= GROWTH else GROWS,
        )
        yield line._replace(grown=tuple(_grown(before, now))) if line.failed else line
