"""Curves as SVG: the same bytes for the same points, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.growth import PLOTS, by_plot
from benchmarks.units import number, quantity

if TYPE_CHECKING:
    from benchmarks.growth import Plot

INCHES = (7.2, 4.4)
PAPER, INK, GRID = "#ffffff", "#24292f", "#d0d7de"
COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#bc4c00", "#1b7c83", "#bf3989")
MARKERS = "osD^vPX"
DARK = {
    PAPER: "#0d1117",
    INK: "#e6edf3",
    GRID: "#30363d",
    **dict(
        zip(
            COLOURS,
            ("#58a6ff", "#ff7b72", "#3fb950", "#bc8cff", "#f0883e", "#39c5cf", "#f778ba"),
            strict=True,
        )
    ),
}
"""A picture brings its own paper, so it is readable on any page; where the reader's system is dark,
it is dark as well."""

_STYLE = {
    # Identifiers are random otherwise, and glyphs as paths ten times as large.
    "svg.hashsalt": "addrtracker",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
}


def draw_all(rows: Iterable[Mapping[str, Any]], directory: Path) -> list[Path]:
    """One file for each plot that has curves; those of earlier runs are replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, of_it in by_plot(rows):
        path = directory / f"{name}.svg"
        _draw(PLOTS[name], of_it, path)
        written.append(path)
    return written


def _draw(plot: Plot, rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.add_subplot()
        for row, colour, marker in zip(rows, COLOURS, MARKERS, strict=False):
            across, costs = zip(*row["points"], strict=True)
            up = [cost or math.nan for cost in costs]
            axes.plot(across, up, color=colour, marker=marker, markersize=4, label=_label(row))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(plot.title)
        axes.set_xlabel(plot.over)
        axes.set_ylabel(plot.cost)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _round(y, plot.unit)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True)
        figure.legend(
            title="exponent", loc="outside lower center", ncols=2, frameon=False, fontsize=8
        )
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text(_with_dark(path.read_text("utf-8")), "utf-8")


def _label(row: Mapping[str, Any]) -> str:
    """With the exponent, and where the fit begins if not with the curve."""
    if row["exponent"] is None:
        return f"{row['curve']}: none (0 somewhere)"
    begins = f" (from {number(row['from'])} on)" if row["from"] > row["points"][0][0] else ""
    return f"{row['curve']}: {row['exponent']:.2f}{begins}"


def _round(value: float, unit: str) -> str:
    """A power of ten: "10 µs"."""
    return quantity(value, unit).replace(".00 ", " ").replace(".0 ", " ")


def _with_dark(svg: str) -> str:
    """Add other colours for readers whose system is dark."""
    rules = [
        f'[style*="{kind}: {light}"]{{{kind}:{dark} !important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    ]
    style = f"<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"
    head, defs, rest = svg.partition("<defs>")
    return f"{head}{defs}\n  {style}{rest}"
