"""The tables of explain: what fits, and how much more there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tracker.cli.output import console, table

OVERHEAD = 6
"""Lines of a family beside its rows: title, head, rule, remainder, summary, blank."""
LEAST = 5
"""Rows of a family that are shown on the smallest screen."""


def print_tables(
    families: dict[str, Any], warnings: Iterable[str], *, everything: bool = False
) -> None:
    """One table a family; criteria that decide nothing are left out."""
    out = console()
    room = max(LEAST, out.height // max(1, len(families)) - OVERHEAD)
    for family, found in families.items():
        candidates = found["candidates"]
        chosen = found["chosen"]
        out.print(f"{family}: {chosen or 'none'}", style="bold", end="")
        out.print(f" ({found['reason']})", soft_wrap=True)
        shown = candidates if everything else candidates[:room]
        if shown:
            out.print(_table(shown, chosen))
        _print_rest(out.print, candidates[len(shown) :])
        out.print()
    for text in warnings:
        out.print(f"warning: {text}", style="yellow", soft_wrap=True)


def _print_rest(say: Any, rest: list[dict[str, Any]]) -> None:
    if not rest:
        return
    rejected = Counter(entry["reason"] for entry in rest if not entry["eligible"])
    eligible = len(rest) - sum(rejected.values())
    parts = [f"{eligible} eligible"] if eligible else []
    parts += [f"{count} {reason}" for reason, count in rejected.most_common()]
    say(f"... and {len(rest)} more: {', '.join(parts)}", soft_wrap=True)


def _table(candidates: list[dict[str, Any]], chosen: str | None) -> Any:
    deciding = _deciding(candidates)
    made = table("", "address", "interface", *deciding, "why")
    for column in made.columns:
        # One line a row, or the screen would not hold what was counted to fit.
        column.no_wrap, column.overflow = True, "ellipsis"
    for entry in candidates:
        rank = "-" if entry["rank"] is None else str(entry["rank"])
        address = f"{entry['address']}/{entry['prefixlen']}"
        values = [_shown(entry["criteria"].get(label)) for label in deciding]
        values = values if entry["eligible"] else ["" for _ in deciding]
        style = "green" if entry["address"] == chosen else None if entry["eligible"] else "dim"
        why = entry["reason"] if entry["rank"] != 1 else "best"
        row = (rank, address, entry["interface"], *values, why.removeprefix("behind by "))
        made.add_row(*row, style=style)
    return made


def _deciding(candidates: list[dict[str, Any]]) -> list[str]:
    """The criteria by which some candidate is behind the best, and default-route, in order."""
    eligible = [entry["criteria"] for entry in candidates if entry["eligible"]]
    if not eligible:
        return []
    best = eligible[0]
    found = {"default-route"}
    for criteria in eligible[1:]:
        found.update(next(([label] for label in best if criteria[label] != best[label]), []))
    return [label for label in best if label in found]


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
