"""Conformance of the profiles: what other software is known, or computed, to choose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.playing import PROFILES
from tests.cases.profile_checks import CHECKS, CROSS


def test_the_answer_is_the_expected_one(profile_case: dict[str, Any]) -> None:
    given, expected = profile_case["input"], profile_case["expected"]
    if profile_case["profile"] == "cross-profile":
        found = {name: CROSS[name](given) for name in expected}
    else:
        found = CHECKS[profile_case["profile"]](given)
    # A case says what it is about, and may leave out the rest.
    assert {name: found[name] for name in expected} == expected


def test_all_cases_are_there() -> None:
    cases = json.loads((PROFILES / "conformance.json").read_text())["cases"]
    assert len(cases) == 104
    assert len({case["id"] for case in cases}) == 104


@pytest.mark.parametrize("profile", CHECKS)
def test_every_kind_of_case_occurs(profile: str) -> None:
    cases = json.loads((PROFILES / "conformance.json").read_text())["cases"]
    assert any(case["profile"] == profile for case in cases)
