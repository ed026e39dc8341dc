"""What compare shows: one row a profile, or a paragraph each where rows would not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.padding import Padding

from tracker.cli.output import console, table
from tracker.model import FAMILIES

if TYPE_CHECKING:
    from rich.console import Console

    from tracker.cli.compare import Comparison
    from tracker.profiles.choice import Choice

MARK = "!"
"""In front of an address, or of what stands for none, where it is not ours."""

REASON_LEAST = 28
"""Cells that a reason needs to be read; with less it would be a column of syllables."""
_GAP = 3
"""Blanks between two columns."""
_HEAD = ("profile", *FAMILIES)


class _Row(NamedTuple):
    cells: tuple[str, ...]
    """As in _HEAD."""
    why: str
    style: str | None


def print_table(comparison: Comparison) -> None:
    """Our own row first; the last lines say who differs."""
    out = console()
    rows = [_row(comparison, name, choice) for name, choice in comparison.choices.items()]
    columns = zip(_HEAD, *(row.cells for row in rows), strict=True)
    width = sum(max(map(cell_len, column)) + _GAP for column in columns)
    if out.width - width >= REASON_LEAST:
        _print_rows(out, rows)
    else:
        _print_paragraphs(out, rows)
    differing = {family: comparison.differing(family) for family in FAMILIES}
    if not any(differing.values()):
        out.print("all agree", style="green")
    for family, names in differing.items():
        if names:
            out.print(f"{family} differs: {', '.join(names)}", style="yellow", soft_wrap=True)


def _print_rows(out: Console, rows: list[_Row]) -> None:
    shown = table(*_HEAD, "reason or error")
    for column in shown.columns[: len(_HEAD)]:
        column.no_wrap = True
    for row in rows:
        shown.add_row(*row.cells, row.why, style=row.style)
    out.print(shown)


def _print_paragraphs(out: Console, rows: list[_Row]) -> None:
    for row in rows:
        name, *addresses = row.cells
        out.print(name, style=f"{row.style or ''} bold".strip())
        for family, address in zip(FAMILIES, addresses, strict=True):
            out.print(f"  {family}  {address}", style=row.style, soft_wrap=True)
        out.print(Padding(row.why, (0, 0, 0, 2)), style=row.style)


def _row(comparison: Comparison, name: str, choice: Choice) -> _Row:
    differs = any(comparison.differs(name, family) for family in FAMILIES)
    addresses = (_address(comparison, name, choice, family) for family in FAMILIES)
    return _Row((name, *addresses), choice.error or choice.reason, _style(choice, differs))


def _address(comparison: Comparison, name: str, choice: Choice, family: str) -> str:
    if family not in choice.families:
        return "-"
    mark = MARK if comparison.differs(name, family) else ""
    return mark + (choice.get(family) or ("error" if choice.error else "none"))


def _style(choice: Choice, differs: bool) -> str | None:
    if choice.error:
        return "red" if differs else "dim"
    return "yellow" if differs else None
