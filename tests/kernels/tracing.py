"""The BPF tier opened piece by piece, as tests of its pieces need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tests.netns.following import Following
from tests.tiers import RING, Tier
from tracker.capture import trace
from tracker.capture.bpf import BpfSource, create_maps
from tracker.capture.loader import WITH_TASKS, load_object
from tracker.capture.netlink import RCVBUF, NetlinkSource
from tracker.capture.record import iter_records

if TYPE_CHECKING:
    from pathlib import Path

    from tests.netns.namespace import Namespace
    from tracker.capture.payload import Task
    from tracker.engine.native import NativeEngine

P = TypeVar("P")


class Pieces(Tier):
    """One variant of the filter, and probes."""

    program: str = WITH_TASKS
    way: str = ""
    """"" = no probes."""
    trace: trace.Trace

    def open(
        self, engine: NativeEngine, *, rcvbuf: int = RCVBUF, ring: int = RING
    ) -> NetlinkSource:
        maps = create_maps(ring)
        program = load_object("filter", self.program, maps._asdict())
        if self.way:
            self.trace = trace.attach(maps._asdict(), self.way)
        attribution = self.program == WITH_TASKS
        maps.place_filter()
        source = BpfSource(engine, rcvbuf)
        source.feed(maps, program, self.loader, attribution=attribution)
        return source


class Pieced(Following):
    """Follows by them."""

    def __init__(
        self, namespace: Namespace, directory: Path, program: str = WITH_TASKS, way: str = ""
    ) -> None:
        tier = Pieces("bpf", "libbpf")
        tier.program = program
        tier.way = way
        super().__init__(namespace, directory, tier)
        self.tier = tier

    def check(self) -> None:
        """At this quiet point the state is the kernel's; forget the records up to here."""
        self._follower.check()
        self._follower._recent.clear()

    def best(self, address: str | None) -> None:
        """As expect(), without a look at the output of `ip`, which costs seconds in a guest."""
        self._follower.check()
        row = self.session.engine.view(0, "ipv4").best
        assert (row.address if row is not None else None) == address

    def latest(self, kind: type[P]) -> list[tuple[P, Task | None]]:
        """What came since then with such a payload, and the processes."""
        return [
            (record.payload, record.task)
            for raw in self._follower._recent
            for record in iter_records(raw)
            if isinstance(record.payload, kind)
        ]

    def close(self) -> None:
        if self.tier.way:
            self.tier.trace.close()
        super().close()
