"""Following a namespace in this process, held against fresh dumps and against `ip`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.soak.check import PATIENCE_NS, POLICIES, Follower
from tests.tiers import NETLINK, Tier
from tracker.capture.cases import Case
from tracker.capture.inputs import load
from tracker.capture.replay import CaseSource
from tracker.clock import SystemClock, VirtualClock
from tracker.engine.reference import ReferenceEngine
from tracker.lastrun import INSTANT
from tracker.model import FAMILIES, Scope
from tracker.session import NODE, Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.netns.namespace import Namespace

IP_COMMANDS = (
    "link show",
    "addr show",
    "-4 route show table all",
    "-6 route show table all",
    "nexthop show",
)


class Following:
    """A session on a namespace that the calling thread has entered; its decision is at once."""

    def __init__(self, namespace: Namespace, directory: Path, tier: Tier = NETLINK) -> None:
        self._namespace = namespace
        self._directory = directory
        self._clock = SystemClock()
        self._follower = Follower(tier)
        self.session = self._follower.session

    def primary(self, family: str = "ipv4") -> str | None:
        """The decision now, without reading anything."""
        return self.session.decision().choices[family].address

    def expect(self, address: str | None, family: str = "ipv4") -> None:
        """At this quiet point the state is the kernel's, and this address is the best."""
        self._follower.check()
        row = self.session.engine.view(0, family).best
        assert (row.address if row is not None else None) == address
        assert self._by_ip() == {name: self._best(name) for name in FAMILIES}
        if address is not None:
            assert self.primary(family) == address

    def wait(self, address: str | None, family: str = "ipv4") -> None:
        """The kernel will make this address the best by itself; quiet afterwards."""
        give_up = self._clock.boot_ns() + PATIENCE_NS
        while self._best(family) != address:
            assert self._clock.boot_ns() < give_up, f"{family}: {self._best(family)}"
            self.session.step(give_up)
        self.expect(address, family)

    def inferred(self, rule: int) -> int:
        """How many entries rule n of docs/engine.md has removed."""
        return self.session.engine.counters()[f"inferred.R{rule}"]

    def audit(self) -> None:
        """An audit of every scope finds no difference."""
        for scope in Scope:
            assert self.session.source.dump(scope, audit=True)
        counters = self.session.engine.counters()
        drift = {name: count for name, count in counters.items() if name.startswith("drift.")}
        assert not any(drift.values()), drift

    def close(self) -> None:
        self._follower.close()

    def _best(self, family: str) -> str | None:
        row = self.session.engine.view(0, family).best
        return row.address if row is not None else None

    def _by_ip(self) -> dict[str, str | None]:
        """The best addresses by what `ip` prints: nothing of ours has read the kernel."""
        paths = []
        for number, command in enumerate(IP_COMMANDS):
            path = self._directory / f"ip-{number}.json"
            path.write_text(json.dumps(self._namespace.json(command)))
            paths.append(str(path))
        case = load(paths)
        assert isinstance(case, Case)
        clock = VirtualClock()
        source = CaseSource(ReferenceEngine(), clock, case)
        source.engine.lose(tuple(Scope))
        session = Session(source, {NODE: POLICIES[NODE]}, INSTANT, clock)
        session.start()
        best = {}
        for family in FAMILIES:
            session.engine.set_incumbent(0, family, self.primary(family))
            row = session.engine.view(0, family).best
            best[family] = row.address if row is not None else None
        return best
