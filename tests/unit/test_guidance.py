"""What a selection depends on is found out, kept where it fails, and followed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.unit.test_replay import SECOND, SETTINGS, START, case, default
from tracker.address import host_network
from tracker.capture.lookup import Way, Ways
from tracker.capture.replay import LEAD_NS, CaseSource
from tracker.clock import VirtualClock
from tracker.decision import Remembered
from tracker.engine.reference import ReferenceEngine
from tracker.guidance import Guidance, Helpers, Lookup, equal_paths
from tracker.lastrun import INSTANT, LastRun, Settings
from tracker.model import AF_INET, FAMILIES, Choice, Ground, Grounds, Scope, State
from tracker.policy import modes
from tracker.policy.compile import TABLE_NOWHERE, policy
from tracker.policy.modes import Guide
from tracker.resolve import Answer, Resolver
from tracker.session import NODE, Session

TARGET = "203.0.113.7"
ONE, OTHER = "192.0.2.10", "198.51.100.10"


class Kernel:
    """Answers as it is told."""

    def __init__(self) -> None:
        self.answer = Ways((Way(OTHER, 3),))
        self.asked: list[tuple[str, str]] = []

    def ways(self, target: str, vrf: str = "") -> Ways:
        self.asked.append((target, vrf))
        return self.answer


class Names(Resolver):
    """Answers at the times it is told."""

    def __init__(self, *answers: tuple[int, Answer]) -> None:
        super().__init__("n1", lambda: None)
        self._planned = list(answers)
        self.deadline = answers[0][0]
        self._first = True

    @property
    def pending(self) -> bool:
        return self._first

    def step(self, now: int) -> Answer | None:
        if not self._planned or now < self._planned[0][0]:
            return None
        self._first = False
        _, answer = self._planned.pop(0)
        self.deadline = self._planned[0][0] if self._planned else 1 << 63
        return answer


class Kept:
    """Remembers one answer."""

    def __init__(self, address: str) -> None:
        self._kept = Remembered(address, None, named=False, lost=False, same_boot=True)

    def load(self) -> LastRun:
        return LastRun(1, 1, {(NODE, "ipv4"): self._kept})

    def save(self, last: LastRun) -> None:
        """Nobody reads it."""


class Playing:
    """A session on a virtual clock."""

    def __init__(
        self,
        *events: dict[str, Any],
        guide: Guide,
        helpers: Helpers,
        settings: Settings = SETTINGS,
        last: str | None = None,
        **more: Any,
    ) -> None:
        """`last` is what the last run answered, in this boot."""
        self.clock = VirtualClock(START)
        engine = ReferenceEngine()
        engine.lose(tuple(Scope))
        kinds = more.pop("kinds", {})
        given = case(*events, **kinds)
        self.source = CaseSource(engine, self.clock, given, tail_ns=200 * SECOND)
        table = policy(guide.mode, families=FAMILIES, **more)
        self.session = Session(
            self.source,
            {NODE: table},
            settings,
            self.clock,
            guides={NODE: guide},
            helpers=helpers,
            memory=None if last is None else Kept(last),
        )
        self.session.start()

    def until(self, seconds: float) -> Choice:
        """The choice at a time since the start."""
        end = START + int(seconds * SECOND)
        while self.clock.boot_ns() < end and not self.source.finished:
            self.session.step(end)
        return self.choice()

    def choice(self, family: str = "ipv4") -> Choice:
        return self.session.decision().choices[family]


def route_to(*targets: str) -> Guide:
    return Guide(mode=modes.ROUTE_TO, targets=targets or (TARGET,))


def test_the_kernel_is_asked_once_while_nothing_happens() -> None:
    kernel = Kernel()
    playing = Playing(guide=route_to(), helpers=Helpers(kernel))
    choice = playing.until(90)
    assert choice.address == OTHER
    assert choice.reason == f"mode route-to: source towards {TARGET}"
    # At the start, and once more for what the first dumps had to say.
    assert len(kernel.asked) <= 2


def test_a_default_route_that_changes_makes_it_ask_again() -> None:
    route = {"type": "RTM_DELROUTE", "t": 20, "data": default("198.51.100.1", 3, 200)}
    kernel = Kernel()
    playing = Playing(route, guide=route_to(), helpers=Helpers(kernel))
    playing.until(15)
    asked = len(kernel.asked)
    kernel.answer = Ways((Way(ONE, 2),))
    # What left the mode is held, like any address that was removed.
    assert playing.until(35).address == OTHER
    assert len(kernel.asked) == asked + 1
    assert playing.until(45).address == ONE


class Timed(Kernel):
    """Notes when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: VirtualClock | None = None
        self.times: list[int] = []
        self.late = False

    def ways(self, target: str, vrf: str = "") -> Ways:
        if self.clock is not None:
            self.times.append(self.clock.boot_ns())
        if self.late:
            raise TimeoutError("timed out")
        return super().ways(target, vrf)


def flapping(since: float, count: int, apart: float) -> list[dict[str, Any]]:
    """A default route that goes and comes."""
    return [
        {
            "type": "RTM_DELROUTE" if n % 2 == 0 else "RTM_NEWROUTE",
            "t": since + n * apart,
            "data": default("198.51.100.1", 3, 200),
        }
        for n in range(count)
    ]


def test_while_routes_flap_the_kernel_is_asked_at_a_pace() -> None:
    kernel = Timed()
    storm = flapping(20, 1000, 0.01)
    playing = Playing(*storm, *flapping(60, 1, 0), guide=route_to(), helpers=Helpers(kernel))
    playing.until(15)
    kernel.clock, zero = playing.clock, START + LEAD_NS
    playing.until(50)
    pauses = [after - before for before, after in pairwise(kernel.times)]
    assert kernel.times[0] == zero + 20 * SECOND, "at once"
    assert pauses[:4] == [SECOND // 10, SECOND // 5, SECOND // 5 * 2, SECOND // 5 * 4]
    assert set(pauses[4:]) == {SECOND}
    # What the storm left behind is seen, and then it is quiet.
    assert zero + 29.99 * SECOND < kernel.times[-1] <= zero + 31 * SECOND
    playing.until(80)
    assert kernel.times[-1] == zero + 60 * SECOND, "at once again"


def test_a_kernel_that_is_late_is_waited_for_once_and_asked_again() -> None:
    kernel = Timed()
    targets = tuple(f"203.0.113.{n}" for n in range(1, 9))
    playing = Playing(*flapping(20, 1, 0), guide=route_to(*targets), helpers=Helpers(kernel))
    playing.until(15)
    kernel.clock, zero = playing.clock, START + LEAD_NS
    kernel.late = True
    kernel.answer = Ways((Way(ONE, 2),))
    playing.until((zero - START) / SECOND + 25)
    # One question of eight in each round, and the rounds at a pace.
    assert len(kernel.times) == len(set(kernel.times))
    assert max(after - before for before, after in pairwise(kernel.times)) == SECOND
    choice = playing.choice()
    assert choice.address == OTHER
    kept = "the kernel cannot be asked: timed out, what was found before stays"
    assert f"ipv4: route-to {targets[0]}: {kept}" in choice.warnings
    kernel.late = False
    assert playing.until((zero - START) / SECOND + 50).address == ONE
    asked = len(kernel.times)
    playing.until((zero - START) / SECOND + 80)
    assert len(kernel.times) == asked, "it has answered"


def test_a_path_that_is_lost_changes_nothing() -> None:
    route = {"type": "RTM_DELROUTE", "t": 20, "data": default("198.51.100.1", 3, 200)}
    kernel = Kernel()
    playing = Playing(route, guide=route_to(), helpers=Helpers(kernel))
    playing.until(15)
    kernel.answer = Ways((), "no route")
    choice = playing.until(90)
    assert (choice.address, choice.state) == (OTHER, State.STABLE)
    assert choice.warnings == (f"ipv4: route-to {TARGET}: no route, what was found before stays",)


def test_a_kernel_that_cannot_be_asked_is_a_warning() -> None:
    class Broken:
        def ways(self, target: str, vrf: str = "") -> Ways:
            raise OSError(1, "Operation not permitted")

    playing = Playing(guide=route_to(), helpers=Helpers(Broken()))
    choice = playing.until(15)
    assert choice.address == ONE, "by the default route"
    assert f"ipv4: route-to {TARGET}: the kernel cannot be asked: Operation not permitted" in (
        choice.warnings
    )


def test_in_a_replay_the_default_route_answers() -> None:
    playing = Playing(guide=route_to(), helpers=Helpers())
    choice = playing.until(15)
    assert choice.address == ONE
    assert f"ipv4: route-to {TARGET}: no kernel to ask" in choice.warnings


def test_destinations_that_disagree_are_told() -> None:
    class Two:
        def ways(self, target: str, vrf: str = "") -> Ways:
            return Ways((Way(ONE, 2) if target == TARGET else Way(OTHER, 3),))

    other = "203.0.113.8"
    playing = Playing(guide=route_to(other, TARGET), helpers=Helpers(Two()))
    choice = playing.until(15)
    assert choice.address == OTHER
    assert choice.warnings == (
        f"ipv4: route-to: {TARGET} is reached from {ONE}, {other} counts before it",
    )


def test_the_lookup_is_within_the_vrf() -> None:
    kernel = Kernel()
    guide = route_to()._replace(vrf="red")
    Playing(guide=guide, helpers=Helpers(kernel), table=TABLE_NOWHERE)
    assert set(kernel.asked) == {(TARGET, "red")}


def test_a_restart_takes_the_last_answer_for_what_was_found() -> None:
    kernel = Kernel()
    kernel.answer = Ways((), failure="unreachable")
    playing = Playing(guide=route_to(), helpers=Helpers(kernel), last=OTHER)
    choice = playing.until(60)
    assert (choice.address, choice.state) == (OTHER, State.STABLE)
    assert choice.warnings == (
        f"ipv4: route-to {TARGET}: unreachable, what was found before stays",
    )


def test_among_equal_paths_a_restart_changes_nothing() -> None:
    for answer in (ONE, OTHER):
        kernel = Kernel()
        kernel.answer = Ways((Way(ONE, 2), Way(OTHER, 3)))
        playing = Playing(guide=route_to(), helpers=Helpers(kernel), last=answer)
        assert playing.until(60).address == answer


def test_a_route_that_ends_by_itself_is_asked_for_then() -> None:
    kernel = Timed()
    kernel.answer = Ways((Way(OTHER, 3),), seconds=30.0)
    playing = Playing(guide=route_to(), helpers=Helpers(kernel))
    playing.until(5)
    kernel.clock = playing.clock
    kernel.answer = Ways((Way(OTHER, 3),))
    playing.until(90)
    (asked,) = kernel.times
    assert 30 * SECOND < asked - START < 36 * SECOND


class Told(ReferenceEngine):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.grounds: list[Grounds | None] = []

    def set_grounds(self, grounds: Grounds | None) -> None:
        self.grounds.append(grounds)


def told(lookup: Lookup, *targets: str) -> list[Grounds | None]:
    """What the engine is told of one round of questions."""
    engine = Told()
    guidance = Guidance({NODE: route_to(*targets)}, Helpers(lookup), engine)
    guidance.step(START, {NODE: policy(modes.ROUTE_TO, families=FAMILIES)}, lambda _: {})
    return engine.grounds


def test_what_the_answers_rest_on_is_told_the_engine() -> None:
    def ground(source: str) -> Ground:
        return Ground(AF_INET, host_network(source).address, 2)

    class Two:
        def ways(self, target: str, vrf: str = "") -> Ways:
            source = frozenset({ground(ONE if target == TARGET else OTHER)})
            return Ways((Way(ONE, 2),), grounds=Grounds(frozenset({2}), sources=source))

    both = Grounds(frozenset({2}), sources=frozenset({ground(ONE), ground(OTHER)}))
    assert told(Two(), TARGET, "203.0.113.8") == [both]


def test_nobody_knows_the_grounds_where_a_question_failed() -> None:
    kernel = Timed()
    kernel.late = True
    assert told(kernel) == [None]


@pytest.mark.parametrize(
    ("ways", "text"),
    [
        (Ways((Way(ONE, 2),)), ""),
        (Ways((Way(ONE, 2), Way(OTHER, 3)), links=2), f"with sources {ONE}, {OTHER}"),
        (Ways((Way(ONE, 2), Way(ONE, 3)), links=2), f"source {ONE} over each"),
        (Ways((Way(ONE, 2), Way(ONE, 3)), links=2, named=True), ""),
    ],
    ids=["one", "two sources", "one source", "named"],
)
def test_what_equal_paths_leave_open(ways: Ways, text: str) -> None:
    assert equal_paths(ways) == (f"2 equal paths, {text}" if text else "")


DNS = Guide(mode=modes.DNS, host="n1")


def test_the_order_of_a_names_addresses_moves_nobody() -> None:
    names = Names((START, Answer((OTHER, ONE))), (START + 60 * SECOND, Answer((ONE, OTHER))))
    assert Playing(guide=DNS, helpers=Helpers(None, names)).until(100).address == OTHER


def test_a_restart_without_a_name_server_takes_the_last_answer() -> None:
    failing = Names((START + 4 * SECOND, Answer((), "no answer within 5 s")))
    choice = Playing(guide=DNS, helpers=Helpers(None, failing), last=OTHER).until(60)
    assert (choice.address, choice.state) == (OTHER, State.STABLE)


def test_a_name_counts_as_far_as_it_is_here() -> None:
    names = Names((START, Answer(("192.0.2.99", OTHER, "127.0.0.1"))))
    playing = Playing(guide=DNS, helpers=Helpers(None, names))
    choice = playing.until(15)
    assert (choice.address, choice.reason) == (OTHER, "mode dns: address of n1")
    assert playing.choice("ipv6").reason == "mode dns names no ipv6 address or network"


def test_a_first_decision_waits_for_the_name_and_no_longer() -> None:
    answers = ((START + 4 * SECOND, Answer((OTHER,))),)
    playing = Playing(guide=DNS, helpers=Helpers(None, Names(*answers)))
    assert playing.until(3.9).state is State.SETTLING
    assert playing.until(5).address == OTHER

    failing = Names((START + 4 * SECOND, Answer((), "no answer within 5 s")))
    playing = Playing(guide=DNS, helpers=Helpers(None, failing))
    choice = playing.until(6)
    assert choice.state is State.NONE
    assert choice.reason == "dns: n1: no answer within 5 s"


def test_a_name_that_fails_later_changes_nothing() -> None:
    names = Names((START, Answer((OTHER,))), (START + 60 * SECOND, Answer((), "try again")))
    playing = Playing(guide=DNS, helpers=Helpers(None, names))
    choice = playing.until(100)
    assert choice.address == OTHER
    assert choice.warnings == ("ipv4: dns: n1: try again, what was found before stays",)


def test_a_name_that_moves_is_followed_after_the_hold() -> None:
    names = Names((START, Answer((OTHER,))), (START + 60 * SECOND, Answer((ONE,))))
    playing = Playing(guide=DNS, helpers=Helpers(None, names))
    assert playing.until(69).address == OTHER
    assert playing.until(71).address == ONE


def test_nobody_resolves_in_a_replay() -> None:
    playing = Playing(guide=DNS, helpers=Helpers())
    assert playing.until(15).reason == "dns: nobody resolves n1 here"


def vrf(kind: str, t: float, table: int = 100) -> dict[str, Any]:
    data = {"ifindex": 9, "name": "red", "kind": "vrf", "table": table, "flags": ["UP", "LOWER_UP"]}
    return {"type": f"RTM_{kind}LINK", "t": t, "data": data}


def test_the_table_of_a_vrf_is_followed() -> None:
    inside = [
        {"type": "RTM_NEWLINK", "t": 31, "data": {"ifindex": 3, "name": "eth3", "master": "red"}},
        {
            "type": "RTM_NEWROUTE",
            "t": 32,
            "data": default("198.51.100.1", 3, 0, table=100),
        },
    ]
    playing = Playing(
        vrf("NEW", 30),
        *inside,
        guide=Guide(vrf="red"),
        helpers=Helpers(),
        settings=INSTANT,
        table=TABLE_NOWHERE,
    )
    choice = playing.until(20)
    assert choice.address is None
    assert choice.reason.startswith("no default route in table of a VRF that is not there")
    assert playing.until(60).address == OTHER
    assert playing.session.policies[NODE].table == 100
