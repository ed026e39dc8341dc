"""Plays a case on either engine, with everything that a test may ask about."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

from tracker.address import family_of
from tracker.capture.cases import Case, read_case
from tracker.capture.fields import Fields
from tracker.capture.paper import PaperLookup
from tracker.capture.replay import CaseSource
from tracker.cli import follow
from tracker.clock import VirtualClock
from tracker.configfile import from_data
from tracker.decision import Remembered
from tracker.engine.base import Engine
from tracker.guidance import Helpers
from tracker.lastrun import LastRun
from tracker.model import Change, Decision, Row, Scope, State, View
from tracker.session import NODE, Session

FIELD = Path(__file__).parent / "field"
PROFILES = Path(__file__).parent / "profiles"
ENGINES = ("reference", "native")

SECOND_NS = 1_000_000_000

Raw = dict[str, Any]
"""A case file as JSON."""


def raw(name: str) -> Raw:
    """A field case, to be played as it is or changed."""
    found: Raw = json.loads((FIELD / f"{name}.json").read_text())
    return found


def changed(case: Raw, **parts: Any) -> Raw:
    """A copy of a case with other parts of its input (links, addresses, routes, events ...)."""
    other = copy.deepcopy(case)
    other["input"].update(parts)
    return other


def configured(case: Raw, **config: Any) -> Raw:
    """A copy of a case with other entries of its `config`; None takes one out."""
    merged = case["input"]["config"] | config
    return changed(case, config={name: v for name, v in merged.items() if v is not None})


def make_engine(name: str) -> Engine:
    if name == "reference":
        from tracker.engine.reference import ReferenceEngine

        return ReferenceEngine()
    from tracker.engine.native import NativeEngine

    return NativeEngine()


class _Published:
    """The decision of a run before the last boot."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses

    def load(self) -> LastRun:
        remembered = {
            (NODE, family_of(address)): Remembered(
                address, hold_until=None, named=False, lost=False, same_boot=False
            )
            for address in self._addresses
        }
        return LastRun(0, 0, remembered)

    def save(self, last: LastRun) -> None:
        pass


class Seen(NamedTuple):
    """What people saw, from when on."""

    boot_ns: int
    decision: Decision


class Played:
    """A case that was played to its end."""

    def __init__(self, case: Case, engine: str) -> None:
        self.case = case
        self.engine = make_engine(engine)
        self.engine.lose(tuple(Scope))
        self.clock = VirtualClock()
        self.start_ns = self.clock.boot_ns()
        config = from_data(case.config, case.file)
        lead_ns = config.stability.settle_max + SECOND_NS
        self.source = CaseSource(self.engine, self.clock, case, lead_ns=lead_ns)
        memory = _Published(case.previously_published) if case.previously_published else None
        self.session: Session = follow.session(
            self.source,
            config,
            self.clock,
            hostname="node",
            memory=memory,
            helpers=Helpers(PaperLookup(self.source.kernel)),
        )
        self.changes: list[Change] = []
        self.seen: list[Seen] = []
        self.checkpoints: list[Decision] = []
        self._play()

    def _play(self) -> None:
        self.session.start()
        self._note()
        while not self.source.finished:
            self.session.step()
            self._note()
            if self.source.checkpoints > len(self.checkpoints):
                self.checkpoints.append(self.session.decision())

    def _note(self) -> None:
        self.changes += self.session.take_changes()
        decision = self.session.decision()
        if not self.seen or self.seen[-1].decision != decision:
            self.seen.append(Seen(self.clock.boot_ns(), decision))

    # What came of it.

    @property
    def decision(self) -> Decision:
        return self.session.decision()

    @property
    def later(self) -> list[Change]:
        """Changes after the start had settled."""
        return [change for change in self.changes if change.boot_ns > self.source.zero_ns]

    def seconds(self, change: Change) -> float:
        """Time of a change, in seconds since the start had settled."""
        return self.source.seconds(change.boot_ns)

    def interface(self, family: str) -> str:
        return self.decision.choices[family].interface

    def reason(self, family: str) -> str:
        return self.decision.choices[family].reason

    @property
    def warnings(self) -> set[str]:
        """Every warning that was ever there."""
        return {text for seen in self.seen for text in seen.decision.warnings}

    def view(self, family: str) -> View:
        return self.engine.view(0, family)

    def rows(self, family: str, address: str) -> list[Row]:
        """All entries of one address."""
        return [row for row in self.engine.rows(0, family) if row.address == address]

    def row(self, family: str, address: str) -> Row:
        """The only entry of an address."""
        [row] = self.rows(family, address)
        return row

    def explanation(self, family: str) -> list[Row]:
        """Every candidate and its values, without what differs between two hosts."""
        return [row._replace(cstamp=0) for row in self.engine.rows(0, family)]


def play(case: Raw, engine: str) -> Played:
    """Play a case given as JSON."""
    return Played(read_case(Fields(case, str(case.get("id", "case")))), engine)


def answer(decision: Decision, family: str) -> str | None:
    """The address that the node has; a lost one that stays published is no answer any more.

    Case files say "none" where nothing is left. But an empty answer is never published
    over a value (docs/decisions.md): the last one stays, marked stale, in state `lost`.
    """
    choice = decision.choices.get(family)
    if choice is None or choice.state is State.LOST:
        return None
    return choice.address


def agrees(decision: Decision, family: str, expected: str | None) -> bool:
    """Whether a case that somebody gives is answered: of a family that is lost it may say "none",
    or the last value, which stays published."""
    choice = decision.choices.get(family)
    if choice is not None and choice.state is State.LOST:
        return expected in (None, choice.address)
    return answer(decision, family) == expected
