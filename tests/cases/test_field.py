"""The field cases: expected addresses, at the end and at checkpoints, and their behaviour."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.behaviour import BEHAVIOURS
from tests.cases.playing import FIELD, answer, configured, play, raw


def test_the_expected_addresses_come_out(field_case: Path, engine: str) -> None:
    case = json.loads(field_case.read_text())
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
    """A text beside an answer is part of the case."""
    described = set()
    for path in FIELD.glob("*.json"):
        case = json.loads(path.read_text())
        if case["expected"]["behaviour"]:
            described.add(path.stem)
    assert described <= set(BEHAVIOURS)
    assert len(list(FIELD.glob("*.json"))) == 63


@pytest.mark.parametrize(
    ("name", "without_it", "ambiguous"),
    [
        ("installer-2232-two-defaults-wanted-second", "192.168.111.20", True),
        # Only one link has a default route: nothing here looks like a choice.
        ("k8s-44702-nat-nic-first", "10.0.2.15", False),
    ],
)
def test_without_its_mode_a_case_has_the_honest_answer(
    name: str, without_it: str, ambiguous: bool, engine: str
) -> None:
    case = configured(raw(name), policy=None, interface=None, cidrs=None)
    decision = play(case, engine).decision
    assert answer(decision, "ipv4") == without_it
    assert decision.choices["ipv4"].ambiguous == ambiguous
