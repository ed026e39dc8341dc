"""The figures that addrtracker is held to, and the table that says whether they are met."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """One number and what it may be at most; None = it stands beside the others to compare."""

    name: str
    unit: str
    most: float | None = None


# The C engine.

ADDRESS_CHANGES = (
    "address flags",
    "address delete and add",
    "best address flags",
    "best address delete and add",
)
LINK_CHANGES = ("link carrier", "default route", "nexthop object")
"""What touches all addresses of a link."""
ADDRESS_MOST = {1000: 250.0, 100_000: 1000.0}
"""Nanoseconds for a change of one address, by addresses of the host."""
TOLD = Figure("C: best address flags, until it is told for whom, 1000 addresses", "ns")
MODES = ("interface", "cidr", "hint", "route-to", "dns", "static")
COMPARED = 10_000
"""Addresses where a change is compared with a whole ranking."""
TO_REFERENCE = Figure(
    f"one change, {COMPARED} addresses: to a whole ranking by the reference", "times", 0.001
)
TO_WHOLE = Figure(f"one change, {COMPARED} addresses: to a whole ranking in C", "times", 0.05)
BYTES = {
    name: Figure(f"C: memory for each of {count} {name}", "bytes")
    for name, count in (("addresses", 100_000), ("links", 10_000), ("default routes", 1000))
}


def of_address(change: str, size: int) -> Figure:
    """A change of one address of so many."""
    return Figure(f"C: {change}, {size} addresses", "ns", ADDRESS_MOST[size])


def of_link(change: str) -> Figure:
    """A change of the link that has all of 1,000 addresses."""
    return Figure(f"C: {change}, 1000 addresses on the link, for each", "ns", 100.0)


def of_mode(mode: str) -> Figure:
    """What the dearest change costs in a mode, beside mode default-route in the same run."""
    return Figure(f"C: mode {mode} to mode default-route, dearest change", "times", 1.5)


ENGINE = (
    *(of_address(change, size) for size in ADDRESS_MOST for change in ADDRESS_CHANGES),
    TOLD,
    *map(of_link, LINK_CHANGES),
    *map(of_mode, MODES),
    TO_REFERENCE,
    TO_WHOLE,
    *BYTES.values(),
)

# Whole processes.

SAME_RSS = 1.01
"""Peaks of the same program differ by some pages from run to run: 1 % is no difference."""
ROUTES = 100_000
FAMILIES = ("IPv4", "IPv6")
RUN = "run to its first decision"
FULL = "20000 addresses, 100000 routes"
"""A host with half of both of either family."""

SHOW_RATIO = Figure("show, 1000 addresses: times python -c pass", "times", 4.0)
SHOW_RATIO_CPU = Figure("the same by processor time", "times")
SHOW_MANY = Figure("show, 20000 addresses on 20 links: more than at 1000", "ms", 300.0)
COMPARE = Figure("compare, 1000 addresses", "ms", 1000.0)
RUN_RSS = Figure("run, 1000 addresses: peak RSS", "MB", 40.0)
RUN_WAKE_UPS = Figure("run, 1000 addresses: wake-ups in 10 s without a change", "wake-ups", 0.0)
COLD_FLOOR = Figure(f"{FULL}: bare C dump and parse, and python -c pass", "ms")
COLD_SHOW = Figure(f"{FULL}: show to these two", "times", 1.5)
COLD_RUN = Figure(f"{FULL}: {RUN} to these two", "times", 1.5)


def routes_time(what: str, family: str) -> Figure:
    """What routes that do not matter cost `show`, or `run` until its first decision."""
    return Figure(f"{what}, {ROUTES} {family} routes: more than without", "ms", 300.0)


def routes_rss(what: str, family: str) -> Figure:
    """What they cost in memory."""
    return Figure(f"{what}, {ROUTES} {family} routes: peak RSS to that without", "times", SAME_RSS)


COMMANDS = (
    SHOW_RATIO,
    SHOW_RATIO_CPU,
    SHOW_MANY,
    *(of("show", family) for of in (routes_time, routes_rss) for family in FAMILIES),
    *(routes_time(RUN, family) for family in FAMILIES),
    *(routes_rss("run", family) for family in FAMILIES),
    RUN_RSS,
    RUN_WAKE_UPS,
    COLD_FLOOR,
    COLD_SHOW,
    COLD_RUN,
    COMPARE,
)

# The filter in the kernel.

STORM_ROUTES = 200_000
FLIP_MS = 100
_STORM = f"bpf, {STORM_ROUTES} routes come and go, an address flips every {FLIP_MS} ms"
STORM_MISSED = Figure(f"{_STORM}: flips missed", "flips", 0.0)
STORM_RATIO = Figure(f"{_STORM}: processor time to that of a bare recv loop", "times", 0.05)
STORM_PROCESSOR = Figure(f"{_STORM}: processor time", "s", 0.2)
STORM_LOST = Figure(f"{_STORM}: lost with a ring of 1 MiB", "messages", 0.0)
STORM_RSS = Figure(f"{_STORM}: RSS grows by", "MB", 2.0)
STORM_PLAIN_RATIO = Figure("netlink in the same storm: processor time to a bare recv loop", "times")
DROPPED = Figure("bpf, a message that is dropped: time in the kernel", "ns", 200.0)
WRITER = Figure("bpf, a writer's route add: to that beside a plain listener", "times", 1.0)
WRITER_ALONE = Figure("bpf, a writer's route add: to that without any listener", "times")
PAIRS = 2000
LINKS = Figure(
    f"bpf, {PAIRS} veth pairs made, moved, deleted: processor time to netlink's", "times", 0.2
)
_CHANGE = "bpf, idle host, from a change"
CHANGE_RING = Figure(f"{_CHANGE} to a bare reader of the ring in C", "us")
CHANGE_C = Figure(f"{_CHANGE} to the best candidate in C: to the bare reader", "times", 1.3)
CHANGE_PYTHON = Figure(f"{_CHANGE} to the decision in Python: to the bare reader", "times", 1.7)
CHANGE_STEP = Figure(f"{_CHANGE} to the end of the session's step: to the bare reader", "times")
CHANGE_PLAIN = Figure("netlink, idle host, from a change to the decision in Python", "us")
START_LIBBPF = Figure("bpf, load and attach with libbpf", "ms", 60.0)
START_BCC = Figure("bpf, load and attach with bcc", "ms")

BPF = (
    STORM_MISSED, STORM_RATIO, STORM_PROCESSOR, STORM_LOST, STORM_RSS, STORM_PLAIN_RATIO,
    DROPPED, WRITER, WRITER_ALONE, LINKS, CHANGE_RING, CHANGE_C, CHANGE_PYTHON, CHANGE_STEP,
    CHANGE_PLAIN, START_LIBBPF, START_BCC,
)  # fmt: skip

SECTIONS = {"The engine": ENGINE, "The filter in the kernel": BPF, "Commands": COMMANDS}
"""In the order of the table."""
FIGURES = tuple(itertools.chain.from_iterable(SECTIONS.values()))


class Measured:
    """The values of this run."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

    def put(self, figure: Figure, value: float | None, scale: float = 1) -> None:
        """Note a value; times `scale` it is in the figure's unit. None = not measured."""
        assert figure in FIGURES, figure
        if value is not None:
            self._values[figure.name] = value * scale

    def missing(self) -> list[str]:
        """The names of those that have no value."""
        return [figure.name for figure in FIGURES if figure.name not in self._values]

    def rows(self) -> list[dict[str, Any]]:
        """Each figure with its section, value, target, their ratio and whether it is met."""
        return [
            {"section": section, **judged(figure, self._values.get(figure.name))}
            for section, figures in SECTIONS.items()
            for figure in figures
        ]


def judged(figure: Figure, value: float | None) -> dict[str, Any]:
    """A figure with its value, their ratio and whether it is met."""
    most = figure.most
    ratio = None if value is None or not most else value / most
    met = None if value is None or most is None else value <= most
    return {**figure._asdict(), "value": value, "ratio": ratio, "met": met}


HEAD = ("figure", "measured", "target", "ratio", "")


def by_section(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The cells of the table, section by section."""
    for section, of_it in itertools.groupby(rows, lambda row: row["section"]):
        yield section, [_cells(row) for row in of_it]


def lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The table as text."""
    sections = dict(by_section(rows))
    cells = [HEAD, *itertools.chain.from_iterable(sections.values())]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]

    def text(line: Sequence[str]) -> str:
        return "  ".join(
            put(cell, width) for put, cell, width in zip(_ADJUST, line, widths, strict=True)
        )

    found = [text(HEAD)]
    for section, of_it in sections.items():
        found += ["", section, *map(text, of_it)]
    return found


_ADJUST: tuple[Callable[[str, int], str], ...] = (
    str.ljust, str.rjust, str.rjust, str.rjust, str.ljust,
)  # fmt: skip


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    value, most, unit = row["value"], row["most"], row["unit"]
    return (
        row["name"],
        "not measured" if value is None else f"{value:.4g} {unit}",
        "" if most is None else f"{most:g} {unit}",
        "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        {True: "met", False: "not met", None: ""}[row["met"]],
    )


def median_difference(more: Sequence[float], less: Sequence[float]) -> float:
    """The median of what the one took more than the other, pair by pair: noise hits both."""
    return statistics.median(a - b for a, b in zip(more, less, strict=True))


def median_ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The median of the pairs' ratios."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))
