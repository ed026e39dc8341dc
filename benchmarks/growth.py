"""How costs grow: curves, and the exponent of each.

An exponent is the slope of the least squares line through the logarithms of the points: 0 where a
cost stays, 1 where it doubles with what it grows over. It says nothing beyond the range that it was
fitted on, which is therefore always named with it. Where a cost is 0 somewhere there is none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.units import number, quantity

Point = tuple[float, float]


class Plot(NamedTuple):
    """One picture."""

    title: str
    over: str
    """What x counts."""
    cost: str
    """What y is, of one unit: "s", "bytes"."""
    unit: str


PLOTS = {
    "addresses": Plot("One change, over the addresses of the host", "addresses", "time", "s"),
    "recompute": Plot("The whole ranking anew", "addresses", "time", "s"),
    "link-addresses": Plot(
        "A change of the link with all addresses", "addresses on the link", "time", "s"
    ),
    "memory": Plot("Memory of the engine", "entries", "allocated", "bytes"),
    "links": Plot("A link comes or goes, over the links of the host", "links", "time", "s"),
    "pairs": Plot("veth pairs come, move and go", "pairs", "processor time", "s"),
    "default-routes": Plot(
        "A default route comes or goes, over those of the host", "default routes", "time", "s"
    ),
    "cold-start": Plot("Cold start with 1,000 addresses, over routes", "routes", "time", "s"),
    "routes": Plot("Routes that do not matter come and go", "routes", "processor time", "s"),
    "rates": Plot(
        "Routes that do not matter, over their rate", "messages/s", "processor time a second", "s"
    ),
    "flips": Plot(
        "The best address comes and goes, over its rate",
        "changes/s",
        "processor time a second",
        "s",
    ),
}
"""In the order of the document; the name is that of the file."""


class Curve(NamedTuple):
    """Points of one thing that was measured."""

    plot: str
    name: str
    points: tuple[Point, ...]
    fitted_from: float
    """Smaller x are shown, and not fitted: something else dominates there."""

    def row(self) -> dict[str, Any]:
        """In a form for JSON."""
        fitted = [(x, y) for x, y in self.points if x >= self.fitted_from]
        fits = len({x for x, _ in fitted}) > 1 and all(y > 0 for _, y in fitted)
        return {
            "plot": self.plot,
            "curve": self.name,
            "points": [list(point) for point in self.points],
            "exponent": exponent(fitted) if fits else None,
            "from": fitted[0][0] if fits else None,
            "to": fitted[-1][0] if fits else None,
        }


def exponent(points: Sequence[Point]) -> float:
    """The slope through the logarithms; of two points at least, all above 0."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = math.fsum(x for x, _ in logs) / len(logs)
    mean_y = math.fsum(y for _, y in logs) / len(logs)
    across = math.fsum((x - mean_x) * (y - mean_y) for x, y in logs)
    return across / math.fsum((x - mean_x) ** 2 for x, _ in logs)


class Curves:
    """The curves of this run."""

    def __init__(self) -> None:
        self._found: list[Curve] = []

    def put(self, plot: str, name: str, points: Iterable[Point], fitted_from: float = 0) -> None:
        """Note a curve."""
        assert plot in PLOTS, plot
        self._found.append(Curve(plot, name, tuple(points), fitted_from))

    def rows(self) -> list[dict[str, Any]]:
        """All, by plot."""
        order = list(PLOTS)
        return [c.row() for c in sorted(self._found, key=lambda c: order.index(c.plot))]


HEAD = ("curve", "first", "last", "exponent", "fitted on")


def by_plot(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Rows in the order of Curves.rows(), by the name of their plot."""
    for name, of_it in itertools.groupby(rows, lambda row: row["plot"]):
        yield name, list(of_it)


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    unit, points = PLOTS[row["plot"]].unit, row["points"]
    first, last = (f"{quantity(y, unit)} at {number(x)}" for x, y in (points[0], points[-1]))
    if row["exponent"] is None:
        return row["curve"], first, last, "none", ""
    fitted = f"{number(row['from'])} to {number(row['to'])}"
    return row["curve"], first, last, f"{row['exponent']:.2f}", fitted


def lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The table as text."""
    plots = {name: list(map(cells, of_it)) for name, of_it in by_plot(rows)}
    table = [HEAD, *itertools.chain.from_iterable(plots.values())]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]

    def text(line: Sequence[str]) -> str:
        return "  ".join(map(str.ljust, line, widths)).rstrip()

    found = [text(HEAD)]
    for name, of_it in plots.items():
        found += ["", PLOTS[name].title, *map(text, of_it)]
    return found
