"""A session goes on under another configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_guidance import DNS, Kernel, Names, route_to, vrf
from tests.unit.test_replay import POLICIES, SECOND, SETTINGS, START, case, default
from tests.unit.test_resolve import Server
from tracker.capture.replay import CaseSource
from tracker.clock import VirtualClock
from tracker.decision import Stability
from tracker.engine.base import Engine
from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine
from tracker.guidance import Helpers
from tracker.model import FAMILIES, PolicyTable, Scope, State
from tracker.policy.compile import TABLE_NOWHERE, policy
from tracker.policy.modes import Guide
from tracker.resolve import Answer
from tracker.session import NODE, RELOAD, Session

FIRST, SECOND_ADDRESS = "192.0.2.10", "198.51.100.10"
SECOND_LINK = policy("interface", families=FAMILIES, interfaces=["eth3"])


class Running:
    """A session that has settled, 20 seconds after its start."""

    def __init__(
        self,
        *events: dict[str, Any],
        policies: dict[str, PolicyTable] = POLICIES,
        guides: dict[str, Guide] | None = None,
        helpers: Helpers | None = None,
        engine: Engine | None = None,
    ) -> None:
        engine = engine or ReferenceEngine()
        engine.lose(tuple(Scope))
        self.clock = VirtualClock(START)
        self.source = CaseSource(engine, self.clock, case(*events), tail_ns=900 * SECOND)
        self.helpers = helpers or Helpers()
        self.session = Session(
            self.source,
            policies,
            SETTINGS,
            self.clock,
            hostname="n1",
            guides=guides,
            helpers=self.helpers,
        )
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
        self.session.reload(policies, guides, SETTINGS, self.helpers, "n1")

    def reason(self, family: str = "ipv4") -> str:
        return self.session.decision().choices[family].reason

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
    running.reload({NODE: every}, **{NODE: Guide("interface")})
    running.until(30)
    assert running.session.decision().choices["ipv4"].extra == ()


def listed(*cidrs: str) -> PolicyTable:
    return policy("cidr", families=FAMILIES, cidrs=cidrs)


def in_list(*cidrs: str) -> tuple[dict[str, PolicyTable], dict[str, Guide]]:
    return {NODE: listed(*cidrs)}, {NODE: Guide("cidr")}


ENGINES = pytest.mark.parametrize("engine", [ReferenceEngine, NativeEngine])
NET, OTHER_NET = "192.0.2.0/24", "10.0.0.0/8"


@ENGINES
@pytest.mark.parametrize(
    "after",
    [[OTHER_NET], [OTHER_NET, "172.16.0.0/12"]],
    ids=["shorter", "as-long"],
)
def test_what_is_kept_is_told_by_the_list_that_it_was_in(
    engine: type[Engine], after: list[str]
) -> None:
    policies, guides = in_list(OTHER_NET, NET)
    running = Running(policies=policies, guides=guides, engine=engine())
    assert running.reason() == f"mode cidr: inside {NET}"
    policies, guides = in_list(*after)
    running.reload(policies, **guides)
    for seconds in (20, 20.5, 60):
        running.until(seconds)
        assert (running.address(), running.reason()) == (FIRST, f"mode cidr: inside {NET}")
    assert running.session.decision().choices["ipv4"].state is State.LOST


@ENGINES
def test_a_list_in_another_order_is_told_as_it_is(engine: type[Engine]) -> None:
    policies, guides = in_list(OTHER_NET, NET)
    running = Running(policies=policies, guides=guides, engine=engine())
    policies, guides = in_list(NET, OTHER_NET)
    running.reload(policies, **guides)
    assert (running.address(), running.reason()) == (FIRST, f"mode cidr: inside {NET}")
    assert running.session.decision().choices["ipv4"].state is State.STABLE


@ENGINES
def test_another_mode_tells_what_is_kept_by_the_mode_that_took_it(engine: type[Engine]) -> None:
    taken = policy("interface", families=FAMILIES, interfaces=["eth9", "eth2"])
    running = Running(policies={NODE: taken}, guides={NODE: Guide("interface")}, engine=engine())
    assert running.reason() == "mode interface: eth2"
    policies, guides = in_list(OTHER_NET)
    running.reload(policies, **guides)
    running.until(40)
    assert (running.address(), running.reason()) == (FIRST, "mode interface: eth2")


def named() -> PolicyTable:
    return policy("dns", families=FAMILIES)


@ENGINES
@pytest.mark.parametrize(
    "later",
    [(), ("192.0.2.99",), ("192.0.2.98", "192.0.2.99"), (FIRST, "192.0.2.99")],
    ids=["empty", "shorter", "as-long", "reordered"],
)
def test_a_name_that_loses_records_is_told_by_those_it_had(
    engine: type[Engine], later: tuple[str, ...]
) -> None:
    names = Names(
        (START, Answer(("192.0.2.99", FIRST))), (START + 30 * SECOND, Answer(tuple(later)))
    )
    running = Running(
        policies={NODE: named()},
        guides={NODE: DNS},
        helpers=Helpers(None, names),
        engine=engine(),
    )
    for seconds in (25, 30, 31, 80):
        running.until(seconds)
        assert (running.address(), running.reason()) == (FIRST, "mode dns: address of n1")


BETTER_PATH = [
    {
        "type": "RTM_NEWADDR",
        "t": 1,
        "data": {"ifindex": 3, "address": "2001:db8:3::10", "prefixlen": 64},
    },
    {"type": "RTM_NEWROUTE", "t": 2, "data": default("fe80::3", 3, 10)},
]
"""Of IPv6 over eth3; with failback "never" no reason to change an address."""


def in_table(gateway: str, oif: int, metric: int, t: float) -> dict[str, Any]:
    return {"type": "RTM_NEWROUTE", "t": t, "data": default(gateway, oif, metric, table=100)}


@pytest.mark.parametrize("mode", ["route-to", "dns", "vrf"])
def test_what_was_found_out_is_no_other_configuration(mode: str) -> None:
    events, guide, helpers = BETTER_PATH, route_to(), Helpers(Kernel())
    more: dict[str, Any] = {}
    family, kept = "ipv6", "2001:db8::10"
    if mode == "dns":
        guide, helpers = DNS, Helpers(None, Names((START, Answer((FIRST,)))))
        more = {"fallback": "default-route"}
    elif mode == "vrf":
        family, kept = "ipv4", FIRST
        guide, helpers, more = Guide(vrf="red"), Helpers(), {"table": TABLE_NOWHERE}
        slaves: list[dict[str, Any]] = [
            {"type": "RTM_NEWLINK", "t": 1, "data": {"ifindex": n, "name": f"eth{n}", "master": 9}}
            for n in (2, 3)
        ]
        events = [vrf("NEW", 0.5), *slaves, in_table("192.0.2.1", 2, 100, 2)]
        events.append(in_table("198.51.100.1", 3, 10, 30))
    policies = {NODE: policy(guide.mode, families=FAMILIES, **more)}
    running = Running(*events, policies=policies, guides={NODE: guide}, helpers=helpers)
    running.until(60)
    running.session.take_changes()
    before = running.session.decision()
    assert before.choices[family].address == kept
    running.reload(policies, **{NODE: guide})
    running.until(100)
    assert running.session.take_changes() == []
    assert running.session.decision() == before


def test_an_answer_stays_until_the_name_is_resolved_for_the_first_time() -> None:
    names = Names((START + 24 * SECOND, Answer((FIRST,))))
    running = Running(helpers=Helpers(None, names))
    # Without the name the default route would lead elsewhere.
    table = policy("dns", families=FAMILIES, fallback="interface:eth3")
    before = running.session.decision()
    running.reload({NODE: table}, **{NODE: DNS})
    running.until(23.9)
    assert running.session.decision() == before
    running.until(90)
    assert running.session.take_changes() == []
    assert running.reason() == "mode dns: address of n1"


def test_an_answer_stays_no_longer_than_the_name_server_is_silent() -> None:
    names = Names((START + 24 * SECOND, Answer((), "no answer within 5 s")))
    running = Running(helpers=Helpers(None, names))
    table = policy("dns", families=FAMILIES, fallback="interface:eth3")
    running.reload({NODE: table}, **{NODE: DNS})
    running.until(24)
    assert running.address() == FIRST
    running.until(25.1)
    assert running.address() == SECOND_ADDRESS


def test_nobody_is_asked_for_a_time_that_is_over_while_a_name_is_awaited() -> None:
    server = Server()
    resolver = server.resolver()
    running = Running(helpers=Helpers(None, resolver))
    running.reload({NODE: SECOND_LINK})
    running.reload({NODE: named()}, **{NODE: DNS})
    assert running.session.pending
    assert running.session.deadline() > running.clock.boot_ns()
    running.until(24)
    assert (running.address(), running.session.pending) == (FIRST, True)
    server.answer([FIRST])
    running.until(40)
    assert running.address() == FIRST
    assert running.session.take_changes() == []


class Refusing(ReferenceEngine):
    """Has no room for a table."""

    refused: PolicyTable | None = None

    def set_policy(self, selection: int, policy: PolicyTable) -> None:
        if policy == self.refused:
            raise ValueError("Cannot allocate memory")
        super().set_policy(selection, policy)


def test_a_table_that_the_engine_refuses_leaves_everything_as_it_was() -> None:
    engine = Refusing()
    running = Running(policies={**POLICIES, "a": POLICIES[NODE], "b": SECOND_LINK}, engine=engine)
    before = running.session.decision()
    engine.refused = listed(NET)
    with pytest.raises(ValueError, match="memory"):
        running.reload({NODE: SECOND_LINK, "b": SECOND_LINK, "c": engine.refused})
    assert running.session.decision() == before
    running.until(60)
    assert running.session.decision() == before
    assert running.session.take_changes() == []
    running.reload({NODE: SECOND_LINK, "b": SECOND_LINK})
    running.until(80)
    assert (running.address(), running.address("b")) == (SECOND_ADDRESS, SECOND_ADDRESS)
