"""The table of figures itself: what it calls met has to be met."""

from __future__ import annotations

import pytest

from benchmarks.figures import (
    RUN_WAKE_UPS,
    SHOW_RATIO,
    Measured,
    lines,
    median_difference,
    median_ratio,
    reference,
)


def line_of(name: str, measured: Measured) -> str:
    [line] = [line for line in lines(measured.rows()) if line.startswith(name)]
    return line.removeprefix(name).strip()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, "3 times     4 times   0.75  met"),
        (4.0, "4 times     4 times   1.00  met"),
        (4.5, "4.5 times     4 times   1.12  not met"),
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
    assert line_of(RUN_WAKE_UPS.name, measured).endswith("0 wake-ups         met")


def test_what_was_not_measured_is_not_called_met() -> None:
    assert line_of(SHOW_RATIO.name, Measured()) == "not measured     4 times"


def test_a_figure_without_a_target_has_no_verdict() -> None:
    measured = Measured()
    measured.put(reference(1000), 0.03, 1e3)
    assert line_of(reference(1000).name, measured) == "30 ms"


def test_a_disturbance_that_hits_a_pair_does_not_count() -> None:
    assert median_difference([3.0, 30.0, 3.2], [1.0, 28.0, 1.0]) == 2.0
    assert median_ratio([3.0, 30.0, 90.0], [1.0, 10.0, 3.0]) == 3.0
