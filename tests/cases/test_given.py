"""Cases that somebody else wrote: `pytest tests/cases --cases PATH`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cases.playing import agrees, play

NO_CHANGE = re.compile(r"^(zero|no) (published )?changes?\b", re.IGNORECASE)
"""How case files say that nothing may be published after the start."""


def test_the_expected_addresses_come_out(given_case: Path, engine: str) -> None:
    case = json.loads(given_case.read_text())
    played = play(case, engine)
    expected = played.case.expected
    assert expected is not None, f"{given_case}: no expected"
    for decision in (*played.checkpoints, played.decision):
        assert agrees(decision, "ipv4", expected.ipv4), decision.choices
        assert agrees(decision, "ipv6", expected.ipv6), decision.choices
    if expected.changes is not None:
        assert len(played.later) == expected.changes
    elif NO_CHANGE.match(expected.behaviour):
        assert played.later == []
