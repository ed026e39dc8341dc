"""Where answers go: JSON or a table on standard output."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from tracker.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tracker.cli.options import Arguments


def wants_table(arguments: Arguments) -> bool:
    """What --output says; without it a table on a terminal."""
    return (arguments.value("--output") or ("table" if sys.stdout.isatty() else "json")) == "table"


def print_json(value: dict[str, Any]) -> None:
    """One object on one line, at once: a reader may wait for it."""
    import json  # noqa: PLC0415 - tables need none

    print(json.dumps(value), flush=True)


_WHOLE = {
    *("", "address", "family", "interface", "state", "scope"),
    *("features", "capabilities", "sysctls"),
}
"""Columns that are of use only as a whole."""


def console() -> Console:
    """Standard output for tables."""
    from tracker.cli.screen import Screen  # noqa: PLC0415 - JSON needs none

    return Screen()


def table(*columns: str) -> Table:
    """A table without lines that would eat columns."""
    from rich import box  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in _WHOLE)
    return made


def warn(line: str) -> None:
    """One line on standard error, whatever names are in it; where that is gone, nothing."""
    with contextlib.suppress(OSError):
        print(f"addrtracker: {printable(line)}", file=sys.stderr)
