"""The table of figures: what it calls met has to be met, and somebody has to measure each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.figures import (
    FIGURES,
    RUN_WAKE_UPS,
    SHOW_RATIO,
    TOLD,
    Figure,
    Measured,
    lines,
    median_difference,
    median_ratio,
)

BENCHMARKS = Path(figures.__file__).parent


def line_of(name: str, measured: Measured) -> str:
    [line] = [line for line in lines(measured.rows()) if line.startswith(name)]
    return " ".join(line.removeprefix(name).split())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, "3 times 4 times 0.75 met"),
        (4.0, "4 times 4 times 1.00 met"),
        (4.5, "4.5 times 4 times 1.12 not met"),
    ],
)
def test_a_figure_stands_beside_its_target(value: float, expected: str) -> None:
    measured = Measured()
    measured.put(SHOW_RATIO, value)
    assert line_of(SHOW_RATIO.name, measured) == expected


def test_one_wake_up_is_more_than_none() -> None:
    measured = Measured()
    measured.put(RUN_WAKE_UPS, 1)
    assert line_of(RUN_WAKE_UPS.name, measured).endswith("not met")
    measured.put(RUN_WAKE_UPS, 0)
    assert line_of(RUN_WAKE_UPS.name, measured).endswith("0 wake-ups met")


def test_what_was_not_measured_is_not_called_met() -> None:
    assert line_of(SHOW_RATIO.name, Measured()) == "not measured 4 times"
    assert SHOW_RATIO.name in Measured().missing()


def test_a_figure_without_a_target_has_no_verdict() -> None:
    measured = Measured()
    measured.put(TOLD, 1.5e-6, 1e9)
    assert line_of(TOLD.name, measured) == "1500 ns"
    assert TOLD.name not in measured.missing()


def test_a_disturbance_that_hits_a_pair_does_not_count() -> None:
    assert median_difference([3.0, 30.0, 3.2], [1.0, 28.0, 1.0]) == 2.0
    assert median_ratio([3.0, 30.0, 90.0], [1.0, 10.0, 3.0]) == 3.0


def test_no_two_figures_have_one_name() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


def put_somewhere() -> set[str]:
    """All names that stand in a call of figures.put(), or in a loop over figures around one."""
    found = set()
    for path in BENCHMARKS.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            puts = isinstance(node, ast.Call) and ast.unparse(node.func) == "figures.put"
            loops = isinstance(node, ast.For) and "figures.put" in ast.unparse(node)
            if puts or loops:
                found |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return found


def makers() -> set[str]:
    """What figures.py has that is a figure, makes one, or holds some by name."""
    return {
        name
        for name, value in vars(figures).items()
        if isinstance(value, Figure)
        or (isinstance(value, dict) and all(isinstance(v, Figure) for v in value.values()))
        or (callable(value) and getattr(value, "__annotations__", {}).get("return") == "Figure")
    }


def test_every_figure_is_measured_by_a_benchmark() -> None:
    """A whole run fails as well where a value is missing; this is known sooner."""
    assert {"SHOW_RATIO", "BYTES", "of_mode"} <= makers()
    assert makers() <= put_somewhere()
