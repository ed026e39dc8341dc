"""What watch prints of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.test_node import choice, decision, extra
from tracker.cli.watch import _Teller
from tracker.config import Networks

if TYPE_CHECKING:
    import pytest

TIME = "2026-11-30T10:00:00.000001Z"


def test_a_line_for_each_family_of_each_selection(capsys: pytest.CaptureFixture[str]) -> None:
    bgp = {
        "ipv4": choice(
            "ipv4", "10.5.0.1", extra=(extra("10.5.0.2", 2),), warnings=("ipv4: ambiguous",)
        )
    }
    told = decision(choice("ipv4", "192.0.2.10"), choice("ipv6", None), selections={"bgp": bgp})
    teller = _Teller(Networks(), as_table=True)
    assert teller.tell(told)
    assert capsys.readouterr().out.splitlines() == [
        f"{TIME}  ipv4  192.0.2.10 on bond0  (stable: default-route metric 100)",
        f"{TIME}  ipv6  none  (none: no default route in table main)",
        f"{TIME}  bgp ipv4  10.5.0.1 on bond0, also 10.5.0.2  (stable: default-route metric 100)",
        "  after RTM_NEWADDR 192.0.2.10/24 bond0 by NetworkManager (812)",
        "  warning: bgp: ipv4: ambiguous",
    ]


def test_a_change_of_a_selection_alone_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    node = choice("ipv4", "192.0.2.10")
    teller = _Teller(Networks(), as_table=False)
    first = decision(node, selections={"bgp": {"ipv4": choice("ipv4", "10.5.0.1")}})
    assert teller.tell(first)
    assert not teller.tell(first)
    assert teller.tell(decision(node, selections={"bgp": {"ipv4": choice("ipv4", "10.5.0.2")}}))
    assert "10.5.0.2" in capsys.readouterr().out
