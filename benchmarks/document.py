"""Writes what the last runs printed into docs/performance.md, and copies the plots beside it.

    python -m benchmarks.document

Reads .build/benchmarks.json, .build/growth and .build/peers.json. What stands in the document
between `<!-- begin NAME -->` and `<!-- end NAME -->` is replaced, all else is prose and stays.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import figures, growth
from benchmarks.units import number, quantity

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / ".build"
DOCUMENT = ROOT / "docs/performance.md"
PLOTS = ROOT / "docs/performance"
NOTHING = "-"
"""A cell of .build/peers.json without a value."""

_MARKED = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)

Benchmark = Mapping[str, Any]


class DocumentError(Exception):
    """Something is not there that the document is to show; str() is one line for people."""


class Grid(NamedTuple):
    """Medians of one benchmark: a line for each value of some parameters, a column for each of
    another one."""

    function: str
    lines: tuple[str, ...]
    columns: str


class Sides(NamedTuple):
    """Medians of benchmarks that have one parameter: a line for each value, a column for each."""

    functions: Mapping[str, str]
    """The heads of their columns."""
    lines: str


class Each(NamedTuple):
    """A line for each benchmark: its median, and the memory that it took."""

    functions: Mapping[str, str]
    """What they are called; their parameters follow."""


Table = Grid | Sides | Each


def _of(file: str, titles: Mapping[str, str]) -> dict[str, str]:
    return {f"{file}::{function}": title for function, title in titles.items()}


TABLES: dict[str, Table] = {
    "parsing": Sides(
        {
            "test_parse.py::test_c": "in C",
            "test_parse.py::test_c_from_python": "in C, called by Python",
            "test_parse.py::test_pyroute2": "pyroute2",
        },
        "kind",
    ),
    "addresses": Grid("test_c_engine.py::test_addresses", ("change",), "size"),
    "link-addresses": Grid("test_c_engine.py::test_addresses_of_a_link", ("change",), "size"),
    "modes": Grid("test_c_engine.py::test_modes", ("change",), "mode"),
    "engines": Grid("test_engines.py::test_change", ("change", "engine"), "size"),
    "rankings": Grid("test_engines.py::test_whole_ranking", ("engine",), "size"),
    "session": Each(
        {
            **_of(
                "test_session.py",
                {
                    "test_session_start": "start: all dumps as records, and the first decision",
                    "test_resync": "from a loss of everything to the verified answer",
                    "test_step_without_a_change_of_the_decision": "step, nothing changes",
                    "test_step_with_another_primary_address": "step, another primary address",
                    "test_step_from_the_socket": "the same, messages wait on the socket",
                    "test_decision_that_stays": "decision alone, it stays",
                    "test_decision_for_another_address": "decision alone, another address",
                    "test_node_document": "node document",
                    "test_publish_what_is_there": "files, nothing to write",
                    "test_publish_another_address": "files, three written, fsynced, renamed",
                    "test_collect": "scrape, in the session's own thread",
                    "test_scrape": "scrape, all of it",
                },
            ),
            **_of(
                "test_replay.py",
                {
                    "test_read": "recording of 4,000 records, read",
                    "test_play": "recording of 4,000 records, played",
                },
            ),
        }
    ),
    "commands": Each(
        {
            "test_show.py::test_process": "",
            "test_show.py::test_without_bytecode": "show, 1000 addresses, without bytecode",
            "test_run.py::test_start": "run to its first decision",
            "test_commands.py::test_command": "1000 addresses",
            "test_cold_start.py::test_cold_start": figures.FULL,
        }
    ),
}
"""By the name of their markers."""


# Tables.


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table; all columns but the first are numbers."""
    yield _line(head)
    yield _line(["---", *["---:"] * (len(head) - 1)])
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _named(benchmarks: Iterable[Benchmark], function: str) -> list[Benchmark]:
    """All runs of a test, in the order of the run."""
    path = f"benchmarks/{function}"
    found = [b for b in benchmarks if b["fullname"].partition("[")[0] == path]
    if not found:
        raise DocumentError(f"{function}: not measured; run `make bench` as a whole")
    return found


def _median(benchmark: Benchmark) -> str:
    return quantity(benchmark["stats"]["median"], "s")


def _text(parameter: Any) -> str:
    return number(parameter) if isinstance(parameter, int) else str(parameter)


def grid(table: Grid, benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """A table of one benchmark."""
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for benchmark in _named(benchmarks, table.function):
        given = benchmark["params"]
        line = ", ".join(_text(given[name]) for name in table.lines)
        column = _text(given[table.columns])
        columns[column] = None
        cells.setdefault(line, {})[column] = _median(benchmark)
    rows = ([line, *(found.get(c, "") for c in columns)] for line, found in cells.items())
    yield from markdown(["", *columns], rows)


def sides(table: Sides, benchmarks: Sequence[Benchmark]) -> Iterator[str]:
    """A table of benchmarks side by side."""
    cells: dict[str, list[str]] = {}
    for function in table.functions:
        for benchmark in _named(benchmarks, function):
            line = _text(benchmark["params"][table.lines])
            cells.setdefault(line, []).append(_median(benchmark))
    yield from markdown(["", *table.functions.values()], ([n, *row] for n, row in cells.items()))


def each(table: Each, benchmarks: Sequence[Benchmark]) -> Iterator[str]:
    """A table with a line for each benchmark."""
    rows = []
    for function, title in table.functions.items():
        for benchmark in _named(benchmarks, function):
            name = ", ".join(filter(None, [title, benchmark["param"]]))
            rows.append([name, _median(benchmark), ", ".join(_memory(benchmark))])
    yield from markdown(["", "median", "memory"], rows)


def _memory(benchmark: Benchmark) -> Iterator[str]:
    for name, value in benchmark["extra_info"].items():
        kind, is_memory, _ = name.partition(", bytes")
        if is_memory:
            yield f"{quantity(value, 'bytes')} {kind}"


def table_of(table: Table, benchmarks: Sequence[Benchmark]) -> Iterator[str]:
    """Any of them."""
    if isinstance(table, Grid):
        return grid(table, benchmarks)
    return sides(table, benchmarks) if isinstance(table, Sides) else each(table, benchmarks)


def of_figures(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Figures beside their targets."""
    for section, cells in figures.by_section(rows):
        yield from ("", f"**{section}**", "")
        yield from markdown(["", *figures.HEAD[1:]], cells)
    yield ""


def of_growth(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Every plot, and the table of its curves."""
    for name, curves in growth.by_plot(rows):
        title = growth.PLOTS[name].title
        yield from ("", f"### {title}", "", f"![{title}](performance/{name}.svg)", "")
        yield from markdown(["", *growth.HEAD[1:]], map(growth.cells, curves))
    yield ""


def of_machine(run: Mapping[str, Any]) -> Iterator[str]:
    """Where, and with what."""
    machine = run["machine_info"]
    cpu = machine["cpu"]
    before, after = run["busy"]
    yield (
        f"`make bench` ran for {run['seconds'] / 60:.1f} minutes on {cpu['count']} cores of "
        f"{cpu['brand_raw']}, {machine['system']} {machine['release']}, Python "
        f"{machine['python_version']}, commit {run['commit_info']['id'][:12]}; "
        f"{before:.2f} processes were running before and {after:.2f} at its end (load average)."
    )


# The same work by others.


def of_scenarios(peers: Mapping[str, Any]) -> Iterator[str]:
    """A table for each scenario."""
    for scenario in peers["scenarios"]:
        yield from ("", f"### {scenario['title']}", "", f"{scenario['load']}.", "")
        there = [row for row in scenario["cells"] if not _is_empty(row)]
        yield from markdown(scenario["head"], there)
        for note in (*_absent(scenario["cells"]), *scenario["notes"]):
            yield from ("", note)
    yield ""


def _is_empty(row: Sequence[str]) -> bool:
    """Whether nothing was measured: all that there is to say is why."""
    return set(row[1:-1]) == {NOTHING}


def _absent(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Who is in no line of a table, by the reason."""
    reasons: dict[str, list[str]] = {}
    for row in filter(_is_empty, rows):
        reasons.setdefault(row[-1], []).append(row[0])
    for reason, names in reasons.items():
        yield f"Not in this table: {', '.join(names)} ({reason})."


def of_peers(peers: Mapping[str, Any]) -> Iterator[str]:
    """Who took part, how to read the tables, and where it was measured."""
    yield _line(["", "asked to", "buffer"])
    yield _line(["---"] * 3)
    for peer in peers["peers"]:
        asked = f"**missing**: {peer['missing']}" if peer["missing"] else peer["asked"]
        yield _line([peer["title"], asked, str(peer["buffer"] or "")])
    yield ""
    yield from (f"- {note}" for note in peers["notes"])
    machine = peers["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in peers["versions"].items())
    yield ""
    yield (
        f"`make bench-peers` ran for {peers['seconds'] / 60:.1f} minutes on {machine['cores']} "
        f"cores of {machine['cpu']}, Linux {machine['kernel']}, with {versions}."
    )


# The document.


def parts(run: Mapping[str, Any], peers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Lines by the name of their markers. Raises DocumentError where a run was not whole."""
    missing = [row["name"] for row in run["figures"] if row["value"] is None]
    if missing:
        raise DocumentError(f"{missing[0]}: not measured; run `make bench` as a whole")
    found: dict[str, Iterable[str]] = {
        "machine": of_machine(run),
        "figures": of_figures(run["figures"]),
        "growth": of_growth(run["growth"]),
        **{name: table_of(table, run["benchmarks"]) for name, table in TABLES.items()},
        "peers-figures": of_figures(peers["figures"]),
        "scenarios": of_scenarios(peers),
        "peers": of_peers(peers),
    }
    return {name: list(lines) for name, lines in found.items()}


def fill(text: str, given: Mapping[str, Sequence[str]]) -> str:
    """The document with these parts in it. Raises DocumentError for one that has no place."""
    places = {found["name"] for found in _MARKED.finditer(text)}
    if lost := sorted(set(given) - places):
        raise DocumentError(f"no place for {', '.join(lost)}: <!-- begin {lost[0]} --> is missing")

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in given:
            return found[0]
        lines = itertools.chain.from_iterable(line.splitlines() or [""] for line in given[name])
        return "\n".join([found[1].rstrip("\n"), *lines, found[3]])

    return _MARKED.sub(part, text)


def _read(path: Path, command: str) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DocumentError(f"{path} is missing; run `{command}`") from None


def main() -> int:
    """0; 1 with one line where there is nothing to show."""
    try:
        run = _read(BUILD / "benchmarks.json", "make bench")
        peers = _read(BUILD / "peers.json", "make bench-peers")
        DOCUMENT.write_text(fill(DOCUMENT.read_text("utf-8"), parts(run, peers)), "utf-8")
    except DocumentError as error:
        print(f"performance: {error}", file=sys.stderr)
        return 1
    PLOTS.mkdir(exist_ok=True)
    for name, _ in growth.by_plot(run["growth"]):
        shutil.copyfile(BUILD / "growth" / f"{name}.svg", PLOTS / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
