"""The field cases: expected addresses, at the end and at checkpoints, and their behaviour."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.behaviour import AWAITED_MODES, BEHAVIOURS
from tests.cases.playing import FIELD, answer, play
from tracker.errors import ConfigError


def test_the_expected_addresses_come_out(
    field_case: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    case = json.loads(field_case.read_text())
    mode = case["input"]["config"]["policy"]
    if mode in AWAITED_MODES:
        awaits = pytest.mark.xfail(raises=ConfigError, strict=True, reason=f"awaits mode {mode}")
        request.applymarker(awaits)
    played = play(case, engine)
    expected = played.case.expected
    assert expected is not None
    for decision in (*played.checkpoints, played.decision):
        assert answer(decision, "ipv4") == expected.ipv4
        assert answer(decision, "ipv6") == expected.ipv6


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_behaviour_is_as_described(name: str, engine: str) -> None:
    BEHAVIOURS[name](engine)


def test_every_described_behaviour_is_tested() -> None:
    """A text beside an answer is part of the case, but where the mode is not there yet."""
    described = set()
    for path in FIELD.glob("*.json"):
        case = json.loads(path.read_text())
        awaited = case["input"]["config"]["policy"] in AWAITED_MODES
        if case["expected"]["behaviour"] and not awaited:
            described.add(path.stem)
    assert described <= set(BEHAVIOURS)
    assert len(list(FIELD.glob("*.json"))) == 63
