"""The engine in C and the one in Python: one answer to every input, after every step."""

from __future__ import annotations

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.agree import (
    DEFAULTS,
    ETH0,
    ETH1,
    GROUNDS,
    LO,
    LOCAL,
    MODE_NETWORKS,
    NAMES,
    POLICIES,
    TARGETS,
    Maker,
)
from tests.build import MS, begin, end, entry, fail, loss
from tests.engines import both
from tracker.capture.record import (
    Addr,
    Link,
    MalformedRecord,
    Nexthop,
    Op,
    Record,
    decode,
    describe,
    encode,
    iter_records,
)
from tracker.engine.base import NEVER, Engine
from tracker.model import AF_INET, AF_OF, FAMILIES, Scope

SELECTIONS = (0, 1, 3)
RARE = (
    "lose",
    "aside",
    "damage",
    "fail",
    "policy",
    "networks",
    "targets",
    "grounds",
    "drop",
    "sysctl",
)

seeds = st.integers(0, (1 << 20) - 1)


class Engines(RuleBasedStateMachine):
    """Feeds both and compares all they say."""

    def __init__(self) -> None:
        super().__init__()
        self.engines: tuple[Engine, ...] = both()
        self.now = 1000 * MS
        self.selections: set[int] = set()

    @initialize(policy=st.integers(0, len(POLICIES) - 1), seed=seeds)
    def start(self, policy: int, seed: int) -> None:
        """A host with two uplinks."""
        self.set_policy(0, policy)
        make = Maker(seed)
        self.seldom_targets(make)
        self.seldom_grounds(make)
        self.send(LO, ETH0, ETH1, *(make.address() for _ in range(4)), *DEFAULTS)

    def send(self, *records: Record, pause: int = MS) -> None:
        """Feed records at one time."""
        self.now += pause
        for record in records:
            note(f"  {self.now / MS:g} ms: {describe(record)} {record}")
        stamped = (
            record._replace(header=record.header._replace(boot_ns=self.now)) for record in records
        )
        raw = b"".join(map(encode, stamped))
        assert {engine.apply(raw) for engine in self.engines} == {len(records)}

    def known(self) -> list[Record]:
        return list(iter_records(self.engines[0].snapshot()))

    # Messages.

    @rule(seed=seeds)
    def event(self, seed: int) -> None:
        make = Maker(seed)
        self.send(make.event(), pause=make.pause())

    @rule(seed=seeds)
    def burst(self, seed: int) -> None:
        make = Maker(seed)
        self.send(*(make.event() for _ in range(make.one((2, 4, 8)))), pause=make.pause())

    @rule(seed=seeds)
    def story(self, seed: int) -> None:
        make = Maker(seed)
        self.send(*make.story(), pause=make.pause())

    @rule(seed=seeds)
    def repeat(self, seed: int) -> None:
        """The same message twice, with something that concerns it in between."""
        make = Maker(seed)
        record, other = make.new(), make.new()
        nearly = make.vary(record)
        deletion = record._replace(header=record.header._replace(op=Op.DEL))
        self.send(record, make.one((record, deletion, nearly, other)), record, pause=make.pause())

    @rule(seed=seeds)
    def touch_what_is_there(self, seed: int) -> None:
        make = Maker(seed)
        self.send(make.again(self.known()), pause=make.pause())

    @rule(
        seed=seeds,
        what=st.sampled_from(RARE),
    )
    def seldom(self, seed: int, what: str) -> None:
        """One rule for all that is rare, so that the others are drawn more often."""
        getattr(self, f"seldom_{what}")(Maker(seed))

    def seldom_lose(self, make: Maker) -> None:
        scopes = tuple(make.one(list(Scope)) for _ in range(make.one((1, 2))))
        if make.chance(50):
            self.send(loss(*scopes))
            return
        for engine in self.engines:
            engine.lose(scopes)

    def seldom_aside(self, make: Maker) -> None:
        self.send(make.aside(), pause=make.pause())

    def seldom_damage(self, make: Maker) -> None:
        """One byte before the addresses is wrong, but not the time."""
        damaged = bytearray(encode(make.one((make.new, make.aside))()))
        damaged[make.one([*range(16), *range(32, min(60, len(damaged)))])] = make.one(
            (0, 1, 9, 200, 255)
        )
        raw = without_padding(bytes(damaged))
        note(f"  {raw!r}")
        assert len({engine.apply(raw) for engine in self.engines}) == 1

    def seldom_fail(self, make: Maker) -> None:
        scope, ifindex, table = self.place(make)
        self.send(fail(scope, ifindex=ifindex, table=table))

    def seldom_policy(self, make: Maker) -> None:
        self.set_policy(make.one(SELECTIONS), make.one(range(len(POLICIES))))

    def seldom_networks(self, make: Maker) -> None:
        selection, networks = make.one(sorted(self.selections)), make.one(MODE_NETWORKS)
        for engine in self.engines:
            engine.set_mode_networks(selection, networks)

    def seldom_targets(self, make: Maker) -> None:
        targets = make.one(TARGETS)
        for engine in self.engines:
            engine.set_targets(targets)

    def seldom_grounds(self, make: Maker) -> None:
        grounds = make.one(GROUNDS)
        for engine in self.engines:
            engine.set_grounds(grounds)

    def seldom_drop(self, make: Maker) -> None:
        selection = make.one(SELECTIONS[1:])
        if selection in self.selections:
            for engine in self.engines:
                engine.drop_policy(selection)
            self.selections.remove(selection)

    def seldom_sysctl(self, make: Maker) -> None:
        on = make.chance(50)
        for engine in self.engines:
            engine.set_v6_silent_down(on)

    def set_policy(self, selection: int, policy: int) -> None:
        for engine in self.engines:
            engine.set_policy(selection, POLICIES[policy])
        self.selections.add(selection)

    # Dumps.

    @rule(seed=seeds)
    def begin(self, seed: int) -> None:
        make = Maker(seed)
        scope, ifindex, table = self.place(make)
        mark = begin(scope, ifindex=ifindex, table=table, audit=make.chance(50))
        self.send(mark, pause=make.pause())

    @staticmethod
    def place(make: Maker) -> tuple[Scope, int, int]:
        return make.one(list(Scope)), make.one((0, 0, 2, 3)), make.one((0, 0, 254, 7))

    @rule(seed=seeds)
    def entries(self, seed: int) -> None:
        """Of an open dump, or of none."""
        make = Maker(seed)
        records = [make.new() for _ in range(make.one((1, 3)))]
        known = self.known()
        records += [make.one(known) for _ in range(make.one((0, 3))) if known]
        self.send(*map(entry, records), pause=make.pause())

    @rule(seed=seeds)
    def end(self, seed: int) -> None:
        make = Maker(seed)
        scope = make.one(list(Scope))
        self.send(end(scope, unproven=make.chance(50)), pause=make.pause())

    @rule(seed=seeds, scope=st.sampled_from(Scope))
    def dump(self, seed: int, scope: Scope) -> None:
        """What is known but for an entry, something else or nothing, and events in between."""
        make = Maker(seed)
        shown = [
            make.vary(record) if make.chance(10) else record
            for record in self.known()
            if scope_of(record) is scope and not make.chance(10)
        ]
        shown += [entry(make.new()) for _ in range(make.one((0, 0, 1)))]
        shown = [] if make.chance(15) else shown
        half = len(shown) // 2
        between = make.one(([], [], [], [make.event()], [make.again(self.known())], make.story()))
        mark = begin(scope, audit=make.chance(50))
        self.send(mark, *shown[:half], pause=make.pause())
        self.send(*between, *shown[half:])
        self.send(end(scope, unproven=make.chance(50)))

    # Time and answers.

    @rule(pause=st.sampled_from((0, MS, 999 * MS, 1000 * MS, 30_000 * MS)))
    def tick(self, pause: int) -> None:
        self.now += pause
        for engine in self.engines:
            engine.tick(self.now)

    @rule()
    def tick_when_it_is_due(self) -> None:
        due = self.engines[0].deadline()
        if due != NEVER:
            self.now = max(self.now, due)
            for engine in self.engines:
                engine.tick(due)

    @rule(seed=seeds, selection=st.sampled_from(SELECTIONS), family=st.sampled_from(FAMILIES))
    def set_incumbent(self, seed: int, selection: int, family: str) -> None:
        """Mostly what is best, or something that is there."""
        if selection not in self.selections:
            return
        make = Maker(seed)
        rows = [row.address for row in self.engines[0].rows(selection, family)]
        some = make.one(LOCAL[AF_OF[family]])
        address = make.one((*rows[:1] * 3, *rows, some, None))
        for engine in self.engines:
            engine.set_incumbent(selection, family, address)

    # What they say.

    @invariant()
    def same(self) -> None:
        one, other = self.engines
        if one.snapshot() != other.snapshot():
            assert lines(one.snapshot()) == lines(other.snapshot())
            assert one.snapshot() == other.snapshot()
        assert one.dirty() == other.dirty()
        assert counters(one) == counters(other)
        assert one.deadline() == other.deadline()
        assert one.tables() == other.tables()
        assert sorted(lines(one.drifts())) == sorted(lines(other.drifts()))
        for selection in self.selections:
            for family in FAMILIES:
                assert one.rows(selection, family) == other.rows(selection, family)
                assert one.view(selection, family) == other.view(selection, family)
        assert one.changed() == other.changed()
        assert (one.lookups(), one.vrfs()) == (other.lookups(), other.vrfs())
        assert [one.nexthop(number) for number in range(6)] == [
            other.nexthop(number) for number in range(6)
        ]
        assert [one.vrf(name) for name in NAMES] == [other.vrf(name) for name in NAMES]
        assert [one.link_name(index) for index in range(10)] == [
            other.link_name(index) for index in range(10)
        ]


def scope_of(record: Record) -> Scope:
    """The scope of a message."""
    payload = record.payload
    if isinstance(payload, Link):
        return Scope.LINK
    if isinstance(payload, Nexthop):
        return Scope.NEXTHOP
    is_ipv4 = getattr(payload, "family", 0) == AF_INET
    if isinstance(payload, Addr):
        return Scope.ADDR4 if is_ipv4 else Scope.ADDR6
    return Scope.ROUTE4 if is_ipv4 else Scope.ROUTE6


def lines(raw: bytes) -> list[str]:
    """Records as text, so that a difference can be read."""
    return [f"{describe(record)} {record}" for record in iter_records(raw)]


def without_padding(raw: bytes) -> bytes:
    """Padding means nothing, so that engines may keep it or not."""
    try:
        return encode(decode(raw))
    except MalformedRecord:
        return raw


def counters(engine: Engine) -> dict[str, int]:
    """All but how often an engine ranked, which is its own affair."""
    return {name: count for name, count in engine.counters().items() if name != "rebuilds"}


TestEngines = Engines.TestCase
profile = settings.default
assert profile is not None
TestEngines.settings = settings(stateful_step_count=60, max_examples=5 * profile.max_examples)
