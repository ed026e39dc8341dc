"""Playing cases and recordings on a virtual clock."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tracker.capture.base import Wake
from tracker.capture.cases import Case, read_case
from tracker.capture.fields import Fields
from tracker.capture.record import (
    Dump,
    Header,
    Loss,
    LossCause,
    Op,
    Phase,
    Record,
    encode,
    iter_records,
)
from tracker.capture.recording import Head, Recording, RecordingWriter, read_recording
from tracker.capture.replay import LEAD_NS, TAIL_NS, CaseSource, RecordingSource, ReplaySource
from tracker.clock import VirtualClock
from tracker.decision import Stability
from tracker.engine.base import NEVER
from tracker.engine.reference import ReferenceEngine
from tracker.lastrun import Settings
from tracker.model import FAMILIES, NANOSECONDS, Change, Decision, Scope
from tracker.policy.compile import default_route_policy
from tracker.session import NODE, Session

START = 1_000 * NANOSECONDS
SECOND = NANOSECONDS
POLICIES = {NODE: default_route_policy(families=FAMILIES)}
SETTINGS = Settings(Stability(SECOND, 10 * SECOND, 10 * SECOND, None), 60 * SECOND)


def case(*events: dict[str, Any], **kinds: Any) -> Case:
    links = [
        {"ifindex": n, "name": f"eth{n}", "flags": ["UP", "LOWER_UP"], "operstate": "UP"}
        for n in (2, 3)
    ]
    given = {
        "links": links,
        "addresses": [
            {"ifindex": 2, "address": "192.0.2.10", "prefixlen": 24},
            {"ifindex": 3, "address": "198.51.100.10", "prefixlen": 24},
            {"ifindex": 2, "address": "2001:db8::10", "prefixlen": 64},
        ],
        "routes": [
            default("192.0.2.1", 2, 100),
            default("198.51.100.1", 3, 200),
            default("fe80::1", 2, 1024, protocol="ra", expires=1800),
        ],
        "events": list(events),
        **kinds,
    }
    return read_case(Fields({"id": "x", "input": given}, "x"))


def default(gateway: str, oif: int, metric: int, **more: Any) -> dict[str, Any]:
    family = "inet6" if ":" in gateway else "inet"
    route = {"family": family, "dst": "default", "gateway": gateway, "oif": oif}
    return {**route, "metric": metric, **more}


def gone(text: str, ifindex: int = 2, **more: Any) -> dict[str, Any]:
    length = 64 if ":" in text else 24
    data = {"ifindex": ifindex, "address": text, "prefixlen": length}
    return {"type": "RTM_DELADDR", "data": data, **more}


class Spy(CaseSource):
    """Keeps what it applies, as a tap does."""

    applied = b""

    def _apply(self, records: Any) -> None:
        records = list(records)
        self.applied += b"".join(map(encode, records))
        super()._apply(records)


def run(source: ReplaySource, clock: VirtualClock) -> tuple[list[Change], list[Decision], int]:
    """To the end: changes, every decision, and how many steps it took."""
    session = Session(source, POLICIES, SETTINGS, clock, hostname="n1")
    session.start()
    changes, decisions, steps = [], [session.decision()], 0
    while not source.finished:
        if session.step():
            decisions.append(session.decision())
        changes += session.take_changes()
        steps += 1
        assert steps < 500
    decisions.append(session.decision())
    return changes, decisions, steps


def play(given: Case) -> tuple[Spy, list[Change], list[Decision]]:
    engine = ReferenceEngine()
    engine.lose(tuple(Scope))
    clock = VirtualClock(START)
    source = Spy(engine, clock, given)
    changes, decisions, _ = run(source, clock)
    return source, changes, decisions


def quiet(given: Case) -> tuple[CaseSource, VirtualClock]:
    """A source whose state is known, without a session."""
    engine = ReferenceEngine()
    engine.set_policy(0, POLICIES[NODE])
    clock = VirtualClock(START)
    source = CaseSource(engine, clock, given)
    for scope in Scope:
        assert source.dump(scope)
    assert engine.dirty() == []
    return source, clock


# Time.


def test_events_come_after_the_start_has_settled_a_millisecond_apart() -> None:
    source, clock = quiet(case(gone("192.0.2.10"), gone("198.51.100.10", 3), gone("::1", t=7)))
    times = []
    for _ in range(3):
        assert not source.wait(NEVER) & Wake.TIMEOUT
        times.append(clock.boot_ns() - START - LEAD_NS)
    assert times == [SECOND // 1000, 2 * SECOND // 1000, 7 * SECOND]
    assert source.seconds(clock.boot_ns()) == 7
    assert source.seconds(START) == 0


def test_a_deadline_before_the_next_event_comes_first() -> None:
    source, clock = quiet(case(gone("192.0.2.10", t=5)))
    assert source.wait(START + SECOND) & Wake.TIMEOUT
    assert clock.boot_ns() == START + SECOND
    at_the_event = START + LEAD_NS + 5 * SECOND
    assert source.wait(at_the_event) & Wake.TIMEOUT
    assert len(source.engine.rows(0, "ipv4")) == 2
    source.wait(at_the_event + 1)
    assert len(source.engine.rows(0, "ipv4")) == 1


def test_the_clock_runs_on_after_the_last_event() -> None:
    source, clock = quiet(case(gone("192.0.2.10", t=5)))
    source.wait(NEVER)
    assert not source.finished
    assert source.wait(NEVER) & Wake.TIMEOUT
    assert source.finished
    assert clock.boot_ns() == START + LEAD_NS + 5 * SECOND + TAIL_NS


def test_a_wait_can_be_woken() -> None:
    source, clock = quiet(case())
    source.wake()
    assert source.wait(NEVER) & Wake.USER
    assert clock.boot_ns() == START


def test_a_checkpoint_comes_after_the_timers_that_have_run_out() -> None:
    source, clock = quiet(case({"type": "CHECKPOINT", "t": 30}))
    at = START + LEAD_NS + 30 * SECOND
    source.wait(at)
    assert source.checkpoints == 0
    source.wait(at + 1)
    assert (source.checkpoints, clock.boot_ns()) == (1, at)


def test_a_route_of_a_router_ends_without_an_event() -> None:
    short = default("fe80::9", 2, 512, protocol="ra", expires=20)
    source, _ = quiet(case(routes=[short, default("fe80::1", 2, 1024)]))
    assert source.engine.view(0, "ipv6").default_routes == 2
    while not source.finished:
        for dirty in source.engine.dirty():
            assert source.dump(dirty.scope, dirty.ifindex, dirty.table)
        source.wait(NEVER)
    assert source.engine.view(0, "ipv6").default_routes == 1
    assert source.engine.counters()["inferred.R10"] == 1


# Messages, silence, dumps.


def test_a_message_is_whole_though_the_event_names_only_what_changed() -> None:
    source, _ = quiet(case({"type": "RTM_NEWLINK", "data": {"ifindex": 2, "name": "uplink"}}))
    before = source.kernel.links[2]
    source.wait(NEVER)
    assert source.kernel.links[2] == before._replace(name="uplink")
    assert {row.interface for row in source.engine.rows(0, "ipv4")} == {"uplink", "eth3"}


def test_a_stale_message_does_not_change_the_truth() -> None:
    renames = [(2, "old"), (3, "eth2"), (2, "eth2")]
    events = [
        {"type": "RTM_NEWLINK", "data": {"ifindex": ifindex, "name": name}}
        for ifindex, name in renames
    ]
    source, _ = quiet(case(*events))
    for _event in events:
        source.wait(NEVER)
    assert [link.name for link in source.kernel.links.values()] == ["old", "eth2"]
    assert [dirty.scope for dirty in source.engine.dirty()] == [Scope.LINK]
    assert source.dump(Scope.LINK)
    assert {row.interface for row in source.engine.rows(0, "ipv4")} == {"old", "eth2"}


def test_what_goes_silently_is_gone_when_the_message_before_it_comes() -> None:
    removed = {"removed_routes": [default("192.0.2.1", 2, 100)]}
    route = {"family": "inet", "dst": "192.0.2.0/24", "oif": 2}
    source, _ = quiet(
        case(
            gone("192.0.2.10"),
            {"type": "RTM_DELROUTE", "data": route},
            {"type": "KERNEL_SILENT", "data": removed},
        )
    )
    source.wait(NEVER)
    assert [r.metric for r in source.kernel.routes if r.family == 2] == [200]
    # The rule inferred it, and its confirming dump agrees.
    assert [dirty.rule for dirty in source.engine.dirty()] == [2]
    assert source.dump(Scope.ROUTE4)
    assert source.engine.view(0, "ipv4").default_routes == 1


def test_an_overrun_is_a_loss_and_the_dump_shows_what_was_missed() -> None:
    new = {"ifindex": 2, "address": "192.0.2.99", "prefixlen": 24}
    resync = {"type": "RESYNC", "data": {"addresses": [new]}}
    _, changes, decisions = play(case({"type": "ENOBUFS"}, resync))
    assert decisions[-1].choices["ipv4"].address == "192.0.2.99"
    assert [(c.old, c.new) for c in changes if c.old] == [("192.0.2.10", "192.0.2.99")]


def test_a_resync_alone_is_seen_as_well() -> None:
    source, _ = quiet(case({"type": "RESYNC", "data": {"addresses": []}}))
    source.wait(NEVER)
    assert source.kernel.addresses == []
    assert {dirty.scope for dirty in source.engine.dirty()} == {Scope.ADDR4, Scope.ADDR6}


def test_a_shuffled_resync_shows_the_same_entries() -> None:
    source, _ = quiet(case({"type": "RESYNC", "data": {"order": "shuffled"}}))
    before = set(source.kernel.addresses), set(source.kernel.routes)
    known = source.engine.snapshot()
    source.wait(NEVER)
    assert (set(source.kernel.addresses), set(source.kernel.routes)) == before
    assert _payloads(source.engine.snapshot()) == _payloads(known)


def _payloads(raw: bytes) -> list[Any]:
    """Without how long a route still has."""
    payloads: list[Any] = [record.payload for record in iter_records(raw)]
    return [p._replace(expires=0) if hasattr(p, "expires") else p for p in payloads]


@pytest.mark.parametrize("empty", [False, True])
def test_a_dump_that_fails_is_read_again(empty: bool) -> None:
    failure = {"scopes": ["addr4"], "times": 2, "empty": empty}
    source, changes, decisions = play(case({"type": "DUMP_FAILED", "data": failure}))
    assert all(change.old is None for change in changes)
    assert decisions[-1].choices["ipv4"].address == "192.0.2.10"
    assert not decisions[-1].stale
    assert any(decision.stale for decision in decisions) != empty or empty
    assert source.counters().get("dump_failures.addr4", 0) == (0 if empty else 2)


def test_unknown_events_are_passed_over() -> None:
    source, changes, _ = play(case({"type": "RTM_NEWNEIGH", "data": {}}, {"type": "EXTERNAL"}))
    assert source.finished
    assert all(change.old is None for change in changes)


# Recordings.


def recorded(tmp_path: Path, applied: bytes) -> Recording:
    path = tmp_path / "recording"
    with path.open("wb") as file:
        RecordingWriter(file, Head("n1", "boot", START, 10**18)).write(applied)
    return read_recording(str(path))


def _microseconds(change: Change) -> tuple[Any, ...]:
    return change.family, change.old, change.new, change.cause, round(change.boot_ns / 1000)


def test_a_recording_leads_to_the_same_changes(tmp_path: Path) -> None:
    events = [
        gone("192.0.2.10"),
        {"type": "KERNEL_SILENT", "data": {"removed_routes": [default("192.0.2.1", 2, 100)]}},
        {"type": "ENOBUFS", "t": 30},
        {"type": "DUMP_FAILED", "t": 40},
        {"type": "RTM_NEWADDR", "data": {"ifindex": 2, "address": "192.0.2.11", "prefixlen": 24}},
    ]
    source, changes, decisions = play(case(*events))
    clock = VirtualClock(START)
    player = RecordingSource(ReferenceEngine(), clock, recorded(tmp_path, source.applied))
    again, last, _ = run(player, clock)
    assert changes
    assert list(map(_microseconds, again)) == list(map(_microseconds, changes))
    assert last[-1].choices == decisions[-1].choices


def test_timers_of_a_recording_run_until_it_was_finished(tmp_path: Path) -> None:
    source, _ = quiet(case())
    entries = [
        record
        for scope in Scope
        for record in (
            Record(Header(boot_ns=START), Dump(scope, Phase.BEGIN)),
            *source.kernel.dump(scope),
            Record(Header(boot_ns=START), Dump(scope, Phase.END)),
        )
    ]
    source.kernel.now_ns = START + 30 * SECOND
    lost = source.kernel.remove(source.kernel.addresses[0])
    applied = b"".join(map(encode, [*entries, lost]))
    for seconds, answer in ((35, "192.0.2.10"), (60, "198.51.100.10")):
        path = tmp_path / "recording"
        with path.open("wb") as file:
            writer = RecordingWriter(file, Head("n1", "boot", START, 10**18))
            writer.write(applied)
            writer.finish(START + seconds * SECOND)
        clock = VirtualClock(START)
        player = RecordingSource(ReferenceEngine(), clock, read_recording(str(path)))
        _, decisions, _ = run(player, clock)
        assert clock.boot_ns() == START + seconds * SECOND
        assert decisions[-1].choices["ipv4"].address == answer
        assert player.counters().get("overruns", 0) == 0


def test_a_recording_without_the_dump_that_is_wanted_ends(tmp_path: Path) -> None:
    source, _, _ = play(case())
    lost = Loss(LossCause.OVERRUN, 1 << Scope.ADDR4)
    day_later = START + 86_400 * SECOND
    extra = [
        Record(Header(Op.NEW, START + 100 * SECOND), lost),
        Record(Header(Op.NEW, day_later), Dump(Scope.LINK, Phase.BEGIN)),
    ]
    recording = recorded(tmp_path, source.applied + b"".join(map(encode, extra)))
    clock = VirtualClock(START)
    player = RecordingSource(ReferenceEngine(), clock, recording)
    session = Session(player, POLICIES, SETTINGS._replace(audit=0), clock, hostname="n1")
    session.start()
    steps = 0
    while not player.finished:
        session.step()
        steps += 1
    assert steps < 100
    assert clock.boot_ns() == day_later
    assert session.decision().choices["ipv4"].address == "192.0.2.10"


def test_a_dump_of_a_recording_says_whether_it_follows(tmp_path: Path) -> None:
    begin = Record(Header(Op.NEW, START + SECOND), Dump(Scope.LINK, Phase.BEGIN))
    recording = recorded(tmp_path, encode(begin))
    player = RecordingSource(ReferenceEngine(), VirtualClock(START), recording)
    assert player.dump(Scope.LINK)
    assert not player.dump(Scope.ADDR4)
    assert player.dump(Scope.ADDR4, audit=True)
    player.wait(NEVER)
    assert not player.dump(Scope.LINK)


def test_an_empty_recording_is_finished_at_once() -> None:
    file = io.BytesIO()
    RecordingWriter(file, Head("n1", "boot", START, 0))
    recording = Recording("x", Head("n1", "boot", START, 0), (), ())
    clock = VirtualClock(START)
    player = RecordingSource(ReferenceEngine(), clock, recording)
    assert player.wait(NEVER) & Wake.TIMEOUT
    assert player.finished
    assert clock.boot_ns() == START
