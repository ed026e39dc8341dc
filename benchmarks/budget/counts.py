"""What was counted, and what is kept of it in a file for each toolchain."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HERE = Path(__file__).parent
LEAST = 0.01
"""Of a sum: a part that is less is not kept."""


class Amount(NamedTuple):
    """A number and what it is made of, by the name of a function, a call or a module."""

    total: float
    parts: Mapping[str, float]


class Count(NamedTuple):
    """What one path took, by measure, for each of its units."""

    path: str
    amounts: Mapping[str, Amount]
    family: str = ""
    """Paths that differ in nothing but their size."""
    size: int = 0
    """Addresses, entries; 0 = it has none."""
    event: bool = False
    """It happens for every change, and must not allocate."""


Kept = dict[str, dict[str, Amount]]
"""By path and measure."""


def amount(parts: Mapping[str, float], units: int = 1) -> Amount:
    """The sum, for each unit."""
    total = sum(parts.values())
    named = {name: part for name, part in parts.items() if part >= total * LEAST}
    return Amount(
        rounded(total / units),
        {name: rounded(part / units) for name, part in sorted(named.items())},
    )


def rounded(value: float) -> float:
    """To be read: no more than two digits behind the point, and none where there are none."""
    return int(value) if value == int(value) else round(value, 2)


def file_of(toolchain: str) -> Path:
    return HERE / f"{toolchain}.json"


def write(toolchain: str, counts: Iterable[Count]) -> None:
    """One line for each path, by name: a diff shows which changed."""
    lines = [
        f"{json.dumps(count.path)}: "
        + json.dumps({name: _plain(value) for name, value in sorted(count.amounts.items())})
        for count in sorted(counts, key=lambda count: count.path)
    ]
    file_of(toolchain).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _plain(value: Amount) -> object:
    return {"total": value.total, "parts": dict(value.parts)} if value.parts else value.total


def read(path: Path) -> Kept:
    """A file that was written."""
    return {
        name: {measure: _amount(value) for measure, value in measures.items()}
        for name, measures in json.loads(path.read_text()).items()
    }


def _amount(value: float | dict[str, object]) -> Amount:
    # What the file holds was written from an Amount; mypy sees any objects.
    return Amount(**value) if isinstance(value, dict) else Amount(value, {})  # type: ignore[arg-type]


def largest(kept: Iterable[Kept]) -> Kept:
    """Of several toolchains the largest amount of each."""
    found: Kept = defaultdict(dict)
    for one in kept:
        for path, measures in one.items():
            for measure, value in measures.items():
                before = found[path].setdefault(measure, value)
                if value.total > before.total:
                    found[path][measure] = value
    return found
