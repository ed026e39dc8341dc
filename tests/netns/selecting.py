"""A session as a configuration asks for it, in this process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tracker.cli import follow
from tracker.clock import SystemClock
from tracker.configfile import parse
from tracker.engine.native import NativeEngine
from tracker.guidance import Helpers
from tracker.lastrun import INSTANT
from tracker.model import NANOSECONDS
from tracker.session import NODE, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netns.namespace import Namespace
    from tests.tiers import Tier
    from tracker.capture.lookup import Ways
    from tracker.lastrun import Settings
    from tracker.model import Choice

REST_NS = 10 * NANOSECONDS
PATIENCE = 20.0
"""Seconds."""


class Counting:
    """A lookup that counts how often it is asked."""

    def __init__(self, lookup: object) -> None:
        # A lookup of the kernel, not of a replay.
        self._ways: Callable[[str, str], Ways] = lookup.ways  # type: ignore[attr-defined]
        self.asked: list[str] = []

    def ways(self, target: str, vrf: str = "") -> Ways:
        self.asked.append(target)
        return self._ways(target, vrf)


class Selecting:
    """Follows the namespace that the calling thread has entered."""

    def __init__(self, tier: Tier, config: str, settings: Settings = INSTANT) -> None:
        self.config = parse(config.encode(), "test.toml")
        self._clock = SystemClock()
        self.source = tier.open(NativeEngine())
        helpers = follow.helpers(self.source, self.config)
        self.lookup = Counting(helpers.lookup) if helpers.lookup is not None else None
        self.helpers = Helpers(self.lookup, helpers.resolver)
        self.session: Session = follow.session(
            self.source, self.config, self._clock, wanted=settings, helpers=self.helpers
        )
        self.session.start()

    def choice(self, family: str = "ipv4", selection: str = NODE) -> Choice:
        decision = self.session.decision()
        choices = decision.selections[selection] if selection else decision.choices
        return choices[family]

    def rest(self) -> None:
        """Until nothing is due by itself."""
        self.session.step(self._clock.boot_ns())
        while (deadline := self.session.deadline()) < self._clock.boot_ns() + REST_NS:
            self.session.step(deadline)

    def wait(
        self,
        wanted: Callable[[Choice], object],
        family: str = "ipv4",
        seconds: float = PATIENCE,
    ) -> Choice:
        """Until the node's choice of a family is as wanted."""
        give_up = self._clock.boot_ns() + int(seconds * NANOSECONDS)
        while not wanted(self.choice(family)):
            assert self._clock.boot_ns() < give_up, self.choice(family)
            self.session.step(give_up)
        return self.choice(family)

    def expect(
        self, address: str | None, family: str = "ipv4", seconds: float = PATIENCE
    ) -> Choice:
        """Until this is the address of a family."""
        return self.wait(lambda choice: choice.address == address, family, seconds)

    def close(self) -> None:
        self.source.close()


@contextlib.contextmanager
def selecting(host: Namespace, tier: Tier, config: str) -> Iterator[Selecting]:
    """Within, a session follows `host`."""
    with host.entered():
        following = Selecting(tier, config)
        try:
            yield following
        finally:
            following.close()
