"""The table of compare: one row a profile, with marks where it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.cli.output import console, table
from tracker.model import FAMILIES

if TYPE_CHECKING:
    from tracker.cli.compare import Comparison
    from tracker.profiles.choice import Choice

MARK = "!"
"""In front of an address, or of what stands for none, where it is not ours."""


def print_table(comparison: Comparison) -> None:
    """Our own row first; the last lines say who differs."""
    out = console()
    shown = table("profile", *FAMILIES, "reason or error")
    for column in shown.columns[: len(FAMILIES) + 1]:
        column.no_wrap = True
    for name, choice in comparison.choices.items():
        differs = any(comparison.differs(name, family) for family in FAMILIES)
        addresses = [_address(comparison, name, choice, family) for family in FAMILIES]
        shown.add_row(
            name, *addresses, choice.error or choice.reason, style=_style(choice, differs)
        )
    out.print(shown)
    differing = {family: comparison.differing(family) for family in FAMILIES}
    if not any(differing.values()):
        out.print("all agree", style="green")
    for family, names in differing.items():
        if names:
            out.print(f"{family} differs: {', '.join(names)}", style="yellow", soft_wrap=True)


def _address(comparison: Comparison, name: str, choice: Choice, family: str) -> str:
    if family not in choice.families:
        return "-"
    mark = MARK if comparison.differs(name, family) else ""
    return mark + (choice.get(family) or ("error" if choice.error else "none"))


def _style(choice: Choice, differs: bool) -> str | None:
    if choice.error:
        return "red" if differs else "dim"
    return "yellow" if differs else None
