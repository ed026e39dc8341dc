"""The tables of explain: what fits, and how much more there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len

from tracker.cli.output import console, table
from tracker.printable import printable

OVERHEAD = 6
"""Lines of a family beside its rows: title, head, rule, remainder, summary, blank."""
GAP = 3
"""Blanks between two columns."""
LISTS = ("static", "mode")
"""Criteria whose value is a position in a list."""
LEAST = 5
"""Rows of a family that are shown on the smallest screen."""


def print_tables(
    families: dict[str, Any],
    warnings: Iterable[str],
    *,
    everything: bool = False,
    all_columns: bool = False,
) -> None:
    """One table a family; criteria that decide nothing are left out, unless `all_columns`: then
    lines may be longer than the screen is wide, and nothing of them is cut.
    """
    out = console()
    room = max(LEAST, out.height // max(1, len(families)) - OVERHEAD)
    for family, found in families.items():
        candidates = found["candidates"]
        chosen = found["chosen"]
        out.print(f"{family}: {chosen or 'none'}", style="bold", end="")
        out.print(f" ({found['reason']})", soft_wrap=True)
        shown = candidates if everything else candidates[:room]
        columns = _all(shown) if all_columns else _deciding(shown)
        left_out = [] if all_columns else _drop_until_it_fits(columns, shown, out.width)
        if shown:
            out.width = max(out.width, _width(columns, shown)) if all_columns else out.width
            out.print(_table(shown, chosen, columns))
        _print_rest(out.print, candidates[len(shown) :])
        if left_out:
            out.print(f"not shown (--all-columns): {', '.join(left_out)}", soft_wrap=True)
        out.print()
    for text in warnings:
        out.print(f"warning: {text}", style="yellow", soft_wrap=True)


def _drop_until_it_fits(
    columns: list[str], candidates: list[dict[str, Any]], width: int
) -> list[str]:
    """Take out of `columns` what decides between the fewest; those that were taken out."""
    decided = Counter(entry["decided_by"] for entry in candidates)
    order = sorted(columns, key=lambda label: (decided[label], -columns.index(label)))
    dropped = []
    while order and _width(columns, candidates) > width:
        dropped.append(order.pop(0))
        columns.remove(dropped[-1])
    return dropped


def _width(columns: list[str], candidates: list[dict[str, Any]]) -> int:
    """How wide the table is that shows all in full."""
    rows = [_head(columns), *(_row(entry, columns) for entry in candidates)]
    widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
    return sum(widths) + GAP * (len(widths) - 1)


def _print_rest(say: Any, rest: list[dict[str, Any]]) -> None:
    if not rest:
        return
    rejected = Counter(entry["reason"] for entry in rest if not entry["eligible"])
    eligible = len(rest) - sum(rejected.values())
    parts = [f"{eligible} eligible"] if eligible else []
    parts += [f"{count} {reason}" for reason, count in rejected.most_common()]
    say(f"... and {len(rest)} more: {', '.join(parts)}", soft_wrap=True)


def _table(candidates: list[dict[str, Any]], chosen: str | None, columns: list[str]) -> Any:
    made = table(*_head(columns))
    for column in made.columns:
        # One line a row, or the screen would not hold what was counted to fit.
        column.no_wrap, column.overflow = True, "ellipsis"
    for entry in candidates:
        style = "green" if entry["address"] == chosen else None if entry["eligible"] else "dim"
        made.add_row(*_row(entry, columns), style=style)
    return made


def _head(columns: list[str]) -> tuple[str, ...]:
    return ("", "address", "interface", *columns, "why")


def _row(entry: dict[str, Any], columns: list[str]) -> tuple[str, ...]:
    rank = "-" if entry["rank"] is None else str(entry["rank"])
    address = f"{entry['address']}/{entry['prefixlen']}"
    values = [_cell(entry["criteria"], label) if entry["eligible"] else "" for label in columns]
    why = entry["decided_by"] or ("best" if entry["eligible"] else entry["reason"])
    return (rank, address, printable(entry["interface"]), *values, why)


def _all(candidates: list[dict[str, Any]]) -> list[str]:
    return next((list(entry["criteria"]) for entry in candidates if entry["eligible"]), [])


def _deciding(candidates: list[dict[str, Any]]) -> list[str]:
    """The criteria by which some candidate is behind the best, and default-route, in order.

    What comes after them may differ as well, and does not matter.
    """
    found = {entry["decided_by"] for entry in candidates} | {"default-route"}
    return [label for label in _all(candidates) if label in found]


def _cell(criteria: dict[str, Any], label: str) -> str:
    value = criteria[label]
    if label in LISTS and value is not None:
        return f"entry {value + 1}"
    return _shown(value)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        dead = "" if value["live"] else ", no carrier"
        pref = "" if value["pref"] == "medium" else f", {value['pref']}"
        return f"metric {value['metric']}{pref}{dead}"
    return str(value)
