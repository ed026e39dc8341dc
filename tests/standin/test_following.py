"""Both engines follow the kernel on paper: messages, and dumps of what they call dirty.

After each operation what they know is what is true, though the kernel says nothing of half of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.standin.both import Both, check_equal, shown
from tests.standin.paper.base import Refused
from tests.standin.paper.kernel import KernelOnPaper
from tests.standin.test_random import LINKS, Walk
from tracker.capture.names import IFF_LOOPBACK, IFF_LOWER_UP, IFF_UP
from tracker.capture.record import (
    Addr,
    Dump,
    Header,
    Link,
    Nexthop,
    Payload,
    Phase,
    Record,
    Route,
    encode,
    iter_records,
)
from tracker.engine.base import Engine
from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine
from tracker.model import AF_INET, AF_INET6, FAMILIES, Scope
from tracker.policy.compile import default_route_policy

OPERATIONS = 400
STEP_NS = 100_000_000
START_NS = 1_000_000_000_000
TABLES = (254, 100)
ANY = 0
KINDS: dict[Scope, tuple[type[Any], int]] = {
    Scope.LINK: (Link, ANY),
    Scope.ADDR4: (Addr, AF_INET),
    Scope.ADDR6: (Addr, AF_INET6),
    Scope.NEXTHOP: (Nexthop, ANY),
    Scope.ROUTE4: (Route, AF_INET),
    Scope.ROUTE6: (Route, AF_INET6),
}


class Followed(Both):
    """The operations of a walk on paper alone, followed by an engine."""

    def __init__(self, engine: Engine, *, promote_secondaries: bool) -> None:
        self.paper = KernelOnPaper(START_NS)
        self.paper.promote_secondaries = promote_secondaries
        self.engine = engine
        for selection, table in enumerate(TABLES):
            engine.set_policy(selection, default_route_policy(families=FAMILIES, table=table))
        engine.lose(tuple(Scope))
        up = IFF_UP | IFF_LOWER_UP
        self.paper.links[1] = Link(1, "lo", IFF_LOOPBACK | up)
        for number, name in enumerate(LINKS, 2):
            self.paper.add_link(Link(number, name, kind="veth"))
        self.compare("start", [])

    def far_end(self, number: int, *, up: bool) -> None:
        pass

    def _do(self, words: str, operation: Callable[[], list[Record]]) -> bool:
        self.paper.now_ns += STEP_NS
        try:
            messages = operation()
        except Refused:
            return False
        self.compare(words, messages)
        return True

    def compare(self, what: str, expected: list[Record]) -> None:
        self.engine.apply(b"".join(map(encode, expected)))
        while dirt := self.engine.dirty():
            for dirty in dirt:
                self._dump(Dump(dirty.scope, Phase.BEGIN, dirty.ifindex, dirty.table))
        known = [record.payload for record in iter_records(self.engine.snapshot())]
        for scope in Scope:
            true = [record.payload for record in self.paper.dump(scope)]
            check_equal(state(scope, true), state(scope, known), f"{scope.name} after: {what}")

    def _dump(self, begin: Dump) -> None:
        # A dump that a rule asks for comes later than what the rule looks back on.
        self.paper.now_ns += STEP_NS
        entries = self.paper.dump(begin.scope, begin.ifindex, begin.table)
        marks = [begin, begin._replace(phase=Phase.END)]
        first, last = (Record(Header(boot_ns=self.paper.now_ns), mark) for mark in marks)
        self.engine.apply(b"".join(map(encode, [first, *entries, last])))


def state(scope: Scope, payloads: list[Payload]) -> list[str]:
    """What an engine keeps of a scope: routes in order, the others by key."""
    kind, family = KINDS[scope]
    found = [
        p for p in payloads if isinstance(p, kind) and family in (ANY, getattr(p, "family", ANY))
    ]
    if not issubclass(kind, Route):
        return sorted(map(shown, found))
    routes = [p for p in found if isinstance(p, Route) and not p.dst_len and p.table in TABLES]
    routes.sort(key=lambda route: (route.table, route.metric))
    return list(map(shown, map(_plain, routes)))


def _plain(route: Route) -> Route:
    """Without flags of legs; those of nexthop objects are the objects' business."""
    legs = () if route.nh_id else route.legs
    return route._replace(legs=tuple(leg._replace(flags=0) for leg in legs))


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("make", [ReferenceEngine, NativeEngine], ids=["reference", "native"])
def test_an_engine_knows_what_is_true(make: Callable[[], Engine], seed: int) -> None:
    followed = Followed(make(), promote_secondaries=seed % 2 == 1)
    walk = Walk(followed, seed)
    for name in LINKS:
        followed.up(name)
    for _ in range(OPERATIONS):
        walk.step()
    assert walk.done["add_route"] > 20
