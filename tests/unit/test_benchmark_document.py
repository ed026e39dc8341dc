"""What was measured becomes docs/performance.md."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import document, figures
from benchmarks.document import TABLES, DocumentError, Each, Grid, Sides, fill, parts, table_of
from benchmarks.growth import Curves, exponent
from benchmarks.units import quantity


def ran(
    function: str, seconds: float, params: Mapping[str, object] | None = None, memory: int = 0
) -> dict[str, Any]:
    """A benchmark as pytest-benchmark writes it."""
    given = "-".join(map(str, (params or {}).values()))
    return {
        "fullname": f"benchmarks/{function}[{given}]" if params else f"benchmarks/{function}",
        "params": params,
        "param": given or None,
        "stats": {"median": seconds},
        "extra_info": {"peak RSS, bytes": memory} if memory else {},
    }


def benchmarks() -> list[dict[str, Any]]:
    """One run at least of each that the document shows."""
    found = []
    for table in TABLES.values():
        if isinstance(table, Grid):
            names = (*table.lines, table.columns)
            found.append(ran(table.function, 1e-6, dict.fromkeys(names, 10)))
        elif isinstance(table, Sides):
            found += [ran(function, 2e-9, {table.lines: "link"}) for function in table.functions]
        else:
            found += [ran(function, 0.5, memory=3_000_000) for function in table.functions]
    return found


def run() -> dict[str, Any]:
    measured, curves = figures.Measured(), Curves()
    for figure in figures.FIGURES:
        measured.put(figure, 1)
    curves.put("memory", "C engine: addresses", [(10, 1000), (1000, 100_000)])
    cpu = {"count": 2, "brand_raw": "a processor"}
    return {
        "benchmarks": benchmarks(),
        "figures": measured.rows(),
        "growth": curves.rows(),
        "machine_info": {
            "cpu": cpu, "system": "Linux", "release": "6.1", "python_version": "3.11.2",
        },
        "commit_info": {"id": "0123456789abcdef"},
        "seconds": 300,
        "busy": [0.1, 1.2],
    }  # fmt: skip


def peers() -> dict[str, Any]:
    peer = {"title": "ip monitor", "asked": "print what comes", "buffer": None, "missing": None}
    return {
        "peers": [peer, {**peer, "title": "BIRD", "missing": "no such package"}],
        "scenarios": [
            {
                "title": "Route storm",
                "load": "200,000 routes",
                "head": ["", "missed", ""],
                "cells": [
                    ["addrtracker", "0", ""],
                    ["ip monitor", "7", "behind"],
                    ["NDB", "-", "not asked: too slow"],
                    ["IPRoute", "-", "not asked: too slow"],
                ],
                "notes": ["One | note"],
            }
        ],
        "figures": [{"section": "beside others", **figures.judged(figures.SHOW_RATIO, 5.0)}],
        "notes": ["Fair"],
        "machine": {"kernel": "6.1", "cpu": "a processor", "cores": 2},
        "versions": {"BIRD": "2.0"},
        "seconds": 60,
    }


def test_everything_has_its_place_in_the_document() -> None:
    text = document.DOCUMENT.read_text("utf-8")
    filled = fill(text, parts(run(), peers()))
    assert "5 times | 4 times | 1.25 | not met |" in filled
    assert "| ip monitor | 7 | behind |" in filled
    assert "Not in this table: NDB, IPRoute (not asked: too slow)." in filled
    assert "| NDB |" not in filled
    assert "| BIRD | **missing**: no such package |  |" in filled
    assert "![Memory of the engine](performance/memory.svg)" in filled
    assert "commit 0123456789ab" in filled
    assert fill(filled, parts(run(), peers())) == filled


def test_what_stands_outside_of_the_marks_stays() -> None:
    text = (
        "before\n<!-- begin a -->\nold\n<!-- end a -->\nbetween\n<!-- begin b -->\n<!-- end b -->\n"
    )
    assert fill(text, {"a": ["new", "lines"]}) == text.replace("old", "new\nlines")


def test_a_part_without_a_place_is_no_part_that_is_left_out() -> None:
    with pytest.raises(DocumentError, match="no place for b"):
        fill("<!-- begin a -->\n<!-- end a -->\n", {"a": [], "b": []})


def test_a_run_that_left_something_out_makes_no_document() -> None:
    done = run()
    done["figures"][3]["value"] = None
    with pytest.raises(DocumentError, match=r"not measured; run `make bench`"):
        parts(done, peers())
    done = run()
    done["benchmarks"] = [
        b for b in done["benchmarks"] if not b["fullname"].endswith("test_scrape")
    ]
    with pytest.raises(DocumentError, match="::test_scrape: not measured"):
        parts(done, peers())


def test_without_a_run_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(document, "BUILD", tmp_path)
    assert document.main() == 1
    assert capsys.readouterr().err.endswith("benchmarks.json is missing; run `make bench`\n")


def test_a_grid_has_a_column_for_each_size() -> None:
    table = Grid("test_change", ("change", "engine"), "size")
    given = [
        ran("test_change", 1e-7, {"change": "link", "engine": "native", "size": 10}),
        ran("test_change", 2.5e-7, {"change": "link", "engine": "native", "size": 10_000}),
        ran("test_change", 3e-3, {"change": "link", "engine": "reference", "size": 10}),
    ]
    assert list(table_of(table, given)) == [
        "|  | 10 | 10,000 |",
        "| --- | ---: | ---: |",
        "| link, native | 100 ns | 250 ns |",
        "| link, reference | 3.00 ms |  |",
    ]


def test_memory_stands_beside_time() -> None:
    given = [ran("test_start", 0.25, {"host": "no routes"}, memory=34_500_000)]
    assert list(table_of(Each({"test_start": "run"}), given))[2:] == [
        "| run, no routes | 250 ms | 34.5 MB peak RSS |"
    ]


def test_an_exponent_is_the_slope_between_logarithms() -> None:
    assert exponent([(10, 5.0), (100, 5.0), (1000, 5.0)]) == pytest.approx(0)
    assert exponent([(x, 3 * x**1.5) for x in (2, 30, 400, 5000)]) == pytest.approx(1.5)


def test_what_is_not_fitted_does_not_count_and_the_range_says_so() -> None:
    curves = Curves()
    curves.put("routes", "a", [(1, 7.0), (10, 1.0), (100, 10.0)], fitted_from=10)
    curves.put("routes", "nothing", [(1, 0.0), (10, 0.0)])
    row, nothing = curves.rows()
    assert row["exponent"] == pytest.approx(1)
    assert (row["from"], row["to"]) == (10, 100)
    assert nothing["exponent"] is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.234e-6, "s", "1.23 µs"), (0.0999, "s", "99.9 ms"), (12.0, "s", "12.0 s"),
     (0.0, "s", "0 s"), (48.0, "bytes", "48.0 bytes"), (32_000_000, "bytes", "32.0 MB")],
)  # fmt: skip
def test_quantities_have_three_digits_and_a_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def arguments() -> dict[str, set[str]]:
    """Those of every benchmark, by its name."""
    found = {}
    for path in Path(document.__file__).parent.glob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found[f"{path.name}::{node.name}"] = {argument.arg for argument in node.args.args}
    return found


def test_every_table_is_of_benchmarks_that_there_are() -> None:
    there = arguments()
    for table in TABLES.values():
        if isinstance(table, Grid):
            assert {*table.lines, table.columns} <= there[table.function]
        elif isinstance(table, Sides):
            assert all(table.lines in there[function] for function in table.functions)
        else:
            assert set(table.functions) <= set(there)
