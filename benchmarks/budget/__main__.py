"""Counts the hot paths and holds them to what is kept; status 1 where something takes more.

python -m benchmarks.budget [--update] [--path NAME]

--update keeps what was counted, for this compiler and this interpreter.
--path NAME tells of paths with NAME in theirs only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.budget import compare, counts, interpreted, native
from benchmarks.budget.compare import Verdict
from benchmarks.budget.counts import Count, Kept, rounded


class Part(NamedTuple):
    """What is counted in one way."""

    what: str
    others: str
    """Files of other toolchains, as a pattern."""
    toolchain: Callable[[], str]
    counted: Callable[[], list[Count]]


PARTS = (
    Part("C", "*-*-*.json", native.toolchain, native.count),
    Part("Python", "cpython-*.json", interpreted.toolchain, interpreted.count),
)


def kept(part: Part, toolchain: str) -> tuple[Kept, str]:
    """The budget, and what is not as usual about it."""
    path = counts.file_of(toolchain)
    if path.exists():
        return counts.read(path), ""
    others = sorted(counts.HERE.glob(part.others))
    names = ", ".join(other.stem for other in others) or "nothing"
    note = (
        f"{part.what}: nothing is kept of {toolchain}. Compared with the most of {names}, "
        f"and {compare.MEASURES['instructions'].unknown:.0%} on top; --update would keep it."
    )
    return counts.largest(map(counts.read, others)), note


def judged(part: Part, *, update: bool) -> Iterator[Verdict | str]:
    """Verdicts, behind a line that says what they are held to."""
    toolchain = part.toolchain()
    found = part.counted()
    if update:
        counts.write(toolchain, found)
    budget, note = kept(part, toolchain)
    yield note or f"{part.what}: {toolchain}"
    yield from compare.verdicts(found, budget, known=not note)
    yield from compare.growth(found)


def line(verdict: Verdict) -> str:
    budget = "" if verdict.budget is None else f"{verdict.budget:,}"
    return (
        f"{verdict.path:<52} {verdict.measure:<22} {verdict.counted:>10,} {budget:>10} "
        f"{rounded(verdict.allowed):>12,}  {verdict.said}"
    )


HEADING = f"{'path':<52} {'measure':<22} {'counted':>10} {'budget':>10} {'allowed':>12}"


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budget", description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--path", default="", metavar="NAME")
    arguments = parser.parse_args()
    failed: list[Verdict] = []
    print(HEADING)
    for part in PARTS:
        for verdict in judged(part, update=arguments.update):
            if isinstance(verdict, str):
                print(verdict)
            elif arguments.path in verdict.path and (verdict.counted or verdict.failed):
                print(line(verdict))
                failed += [verdict] if verdict.failed else []
    for verdict in failed:
        print(f"\n{line(verdict)}")
        for grown in verdict.grown:
            print(f"    {grown}")
    print(f"\n{len(failed)} over the budget" if failed else "\nall within the budget")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
