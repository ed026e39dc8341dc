"""A session goes on under another configuration."""

from __future__ import annotations

from tests.unit.test_replay import POLICIES, SECOND, SETTINGS, START, case
from tracker.capture.replay import CaseSource
from tracker.clock import VirtualClock
from tracker.decision import Stability
from tracker.engine.reference import ReferenceEngine
from tracker.guidance import Helpers
from tracker.model import FAMILIES, PolicyTable, Scope
from tracker.policy.compile import policy
from tracker.policy.modes import Guide
from tracker.session import NODE, RELOAD, Session

FIRST, SECOND_ADDRESS = "192.0.2.10", "198.51.100.10"
SECOND_LINK = policy("interface", families=FAMILIES, interfaces=["eth3"])


class Running:
    """A session that has settled, 20 seconds after its start."""

    def __init__(self) -> None:
        engine = ReferenceEngine()
        engine.lose(tuple(Scope))
        self.clock = VirtualClock(START)
        source = CaseSource(engine, self.clock, case(), tail_ns=900 * SECOND)
        self.session = Session(source, POLICIES, SETTINGS, self.clock, hostname="n1")
        self.session.start()
        self.until(20)
        self.session.take_changes()

    def until(self, seconds: float) -> None:
        end = START + int(seconds * SECOND)
        while self.clock.boot_ns() < end:
            self.session.step(end)

    def reload(
        self,
        policies: dict[str, PolicyTable],
        **guides: Guide,
    ) -> None:
        self.session.reload(policies, guides, SETTINGS, Helpers(), "n1")

    def address(self, selection: str = NODE, family: str = "ipv4") -> str | None:
        decision = self.session.decision()
        choices = decision.selections[selection] if selection else decision.choices
        return choices[family].address


def test_the_answer_stays_until_the_new_one_has_settled() -> None:
    running = Running()
    running.reload({NODE: SECOND_LINK})
    assert running.address() == FIRST
    running.until(20.9)
    assert running.address() == FIRST
    running.until(21.1)
    assert running.address() == SECOND_ADDRESS
    [change] = running.session.take_changes()
    assert change.cause is not None
    assert change.cause.change == RELOAD
    # IPv6 has nothing in the mode: its value stays, and is stale.
    choice = running.session.decision().choices["ipv6"]
    assert (choice.address, choice.stale) == ("2001:db8::10", True)


def test_the_same_configuration_changes_nothing() -> None:
    running = Running()
    before = running.session.decision()
    running.reload(POLICIES)
    assert running.session.decision() == before
    running.until(40)
    assert running.session.decision() == before
    assert running.session.take_changes() == []


def test_selections_come_and_go_and_numbers_are_used_again() -> None:
    running = Running()
    running.reload({**POLICIES, "a": SECOND_LINK, "b": SECOND_LINK})
    running.until(30)
    assert (running.address("a"), running.address("b")) == (SECOND_ADDRESS, SECOND_ADDRESS)
    running.reload({**POLICIES, "b": SECOND_LINK})
    assert list(running.session.decision().selections) == ["b"]
    assert running.address("b") == SECOND_ADDRESS
    running.reload({**POLICIES, "c": POLICIES[NODE], "b": SECOND_LINK})
    running.until(40)
    assert list(running.session.decision().selections) == ["c", "b"]
    assert running.address("c") == FIRST
    assert sorted(map(running.session.index, ("", "b", "c"))) == [0, 1, 2]


def test_families_come_and_go() -> None:
    running = Running()
    only = POLICIES[NODE]._replace(families=("ipv6",))
    running.reload({NODE: only})
    decision = running.session.decision()
    assert (decision.families, list(decision.choices)) == (("ipv6",), ["ipv6"])
    running.reload(POLICIES)
    running.until(30)
    assert running.address() == FIRST


def test_a_table_that_is_new_is_read_before_anything_is_decided() -> None:
    running = Running()
    running.reload({NODE: POLICIES[NODE]._replace(table=100)})
    assert running.session.resync.done["route4", "policy"] == 1
    assert running.address() == FIRST


def test_times_and_the_name_are_taken_over() -> None:
    running = Running()
    quick = SETTINGS._replace(stability=Stability(0, 0, 0, 0))
    running.session.reload({NODE: SECOND_LINK}, {}, quick, Helpers(), "n2")
    assert running.session.decision().hostname == "n2"
    running.until(20.01)
    assert running.address() == SECOND_ADDRESS


def test_extra_addresses_follow_the_ranking() -> None:
    running = Running()
    every = policy("interface", families=FAMILIES, interfaces=["eth*"])
    running.reload({NODE: every}, **{NODE: Guide("interface", extra=3)})
    running.until(25)
    choice = running.session.decision().choices["ipv4"]
    assert choice.address == FIRST
    assert [row.address for row in choice.extra] == [SECOND_ADDRESS]
    assert choice.warnings == (), "what is taken as well is not ignored"
