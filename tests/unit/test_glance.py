"""What is decided at a glance is what would be decided with everything at hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests import build
from tests.build import DEPRECATED, PERMANENT, Host, addr, gone, leg, link, route
from tracker.capture.base import Wake
from tracker.capture.record import Record, encode
from tracker.clock import VirtualClock
from tracker.engine.base import Glance
from tracker.engine.native import NativeEngine
from tracker.lastrun import INSTANT
from tracker.model import AF_INET6, FAMILIES, IPV6, Dirty, Judged, Row, Scope, View
from tracker.session import NODE, Session

ETH0 = link(2, "eth0")
A, B = addr("192.0.2.1/24", 2), addr("192.0.2.2/24", 2)
ROUTES = (
    route(via="192.0.2.254", oif=2),
    route(family=AF_INET6, legs=(leg(2, "fe80::1"),), metric=1024),
)
HISTORY = (
    (ETH0,),
    ROUTES,
    (A,),
    (B,),
    (addr("192.0.2.1/24", 2, flags=PERMANENT | DEPRECATED),),
    (addr("2001:db8::1/64", 2),),
    (link(2, "eth0", carrier=False),),
    (ETH0,),
    (gone(B),),
    (gone(A), gone(addr("2001:db8::1/64", 2))),
)


def check(glanced: Judged | None, row: Row | None) -> None:
    assert (glanced is None) == (row is None)
    if glanced is not None and row is not None:
        assert glanced.whole() == row
        for name in ("family", "address", "flags", "reject", "own_reject", "tier", "carrier"):
            assert getattr(glanced, name) == getattr(row, name), name


def compare(glance: Glance, view: View) -> None:
    check(glance.best, view.best)
    check(glance.incumbent, view.incumbent)
    assert glance.first_diff == view.first_diff
    assert glance.last_change_ns == view.last_change_ns
    assert glance.cause == view.cause


@pytest.mark.parametrize("selection", [0, 3])
def test_a_glance_shows_what_the_view_has(selection: int) -> None:
    host = Host(NativeEngine())
    engine = host.engine
    if selection:
        engine.set_policy(selection, build.policy())
        engine.drop_policy(0)
        host.clean()
    engine.set_incumbent(selection, "ipv4", "192.0.2.1")
    engine.set_incumbent(selection, IPV6, "2001:DB8:0::1")
    engine.changed()
    seen = set()
    for records in HISTORY:
        host.send(*records)
        if host.dirt():
            assert engine.glance() is None
            host.clean()
        while (glance := engine.glance()) is not None:
            assert glance.selection == selection
            compare(glance, engine.view(selection, glance.family))
            seen.add(glance.family)
            assert (selection, glance.family) in engine.changed()
    assert seen == set(FAMILIES)
    assert engine.glance() is None, "nothing changed since"


class Spied(NativeEngine):
    """Notes in which order it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def glance(self) -> Any:
        found = super().glance()
        self.asked.append("glance" if found else "no glance")
        return found

    def dirty(self) -> list[Dirty]:
        self.asked.append("dirty")
        return super().dirty()

    def view(self, selection: int, family: str) -> View:
        self.asked.append("view")
        return super().view(selection, family)

    def set_incumbent(self, selection: int, family: str, address: str | None) -> None:
        self.asked.append("set_incumbent")
        super().set_incumbent(selection, family, address)


class Fed:
    """A source that has one change for each wait."""

    name = "fed"
    dump_error = ""

    def __init__(self, engine: Spied, wakes: Wake = Wake.CHANGED) -> None:
        self.engine = engine
        self.wakes = wakes
        self.changes: list[tuple[Record, ...]] = []

    def wait(self, deadline_ns: int) -> Wake:
        self.engine.asked.clear()
        self.engine.apply(b"".join(map(encode, self.changes.pop(0))))
        return self.wakes

    def drain(self) -> Wake:
        return Wake(0)

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        shown: tuple[Record, ...] = ()
        if scope is Scope.LINK:
            shown = (ETH0,)
        elif scope is Scope.ROUTE4:
            shown = ROUTES[:1]
        elif scope is Scope.ADDR4:
            shown = (A,)
        entries = map(build.entry, shown)
        records = [build.begin(scope, ifindex=ifindex, table=table), *entries, build.end(scope)]
        self.engine.apply(b"".join(map(encode, records)))
        return True

    def refresh(self) -> None:
        pass

    def wake(self) -> None:
        pass

    def close(self) -> None:
        pass

    def counters(self) -> dict[str, int]:
        return {}


def follow(wakes: Wake = Wake.CHANGED) -> tuple[Session, Fed]:
    engine = Spied()
    engine.lose(tuple(Scope))
    source = Fed(engine, wakes)
    session = Session(source, {NODE: build.policy()}, INSTANT, VirtualClock())
    session.start()
    assert session.decision().choices["ipv4"].address == "192.0.2.1"
    session.take_changes()
    return session, source


def test_a_decision_comes_before_anything_else() -> None:
    session, source = follow()
    source.changes = [(B, gone(A))]
    assert session.step()
    assert [change.new for change in session.take_changes()] == ["192.0.2.2"]
    asked = source.engine.asked
    assert asked[0] == "glance"
    assert asked.index("set_incumbent") < asked.index("view")
    assert asked.count("view") == 1


@pytest.mark.parametrize("wakes", [Wake.CHANGED | Wake.DIRTY, Wake.CHANGED | Wake.USER])
def test_where_a_wait_says_more_all_of_it_comes_first(wakes: Wake) -> None:
    session, source = follow(wakes)
    source.changes = [(B, gone(A))]
    assert session.step()
    assert [change.new for change in session.take_changes()] == ["192.0.2.2"]
    assert "glance" not in source.engine.asked
    assert source.engine.asked.index("view") < source.engine.asked.index("set_incumbent")


def test_where_a_scope_is_dirty_it_is_read_again_first() -> None:
    session, source = follow()
    source.changes = [(gone(A), build.loss(Scope.ADDR4))]
    session.step()
    assert source.engine.asked[0] == "no glance"
    # The dump still has it.
    assert session.decision().choices["ipv4"].address == "192.0.2.1"
    assert session.take_changes() == []
