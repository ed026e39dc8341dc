"""A terminal, or what is in its place, for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console

from tracker.printable import printable

if TYPE_CHECKING:
    from rich.text import Text


class Screen(Console):
    """Standard output.

    A name of an interface may hold any byte but a slash and a blank, and whoever may move a link
    into this namespace chooses it: no such name may move the cursor or break a line.
    """

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Every string of a table or a line comes by here."""
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command: a reader that has had enough is no error."""
        raise BrokenPipeError
