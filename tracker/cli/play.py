"""Plays files on a virtual clock, for replay and for --from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracker.address import family_of
from tracker.capture.cases import Case
from tracker.capture.choose import make_engine
from tracker.capture.inputs import load
from tracker.capture.paper import PaperLookup
from tracker.capture.recording import Recording
from tracker.capture.replay import CaseSource, RecordingSource
from tracker.cli import follow
from tracker.clock import VirtualClock
from tracker.config import Config
from tracker.configfile import from_data
from tracker.decision import Remembered
from tracker.engine.base import NEVER
from tracker.guidance import Helpers
from tracker.lastrun import INSTANT, LastRun
from tracker.model import Change, Scope
from tracker.session import NODE, Session

if TYPE_CHECKING:
    from tracker.cli.options import Arguments


class Played(NamedTuple):
    """What came of it."""

    given: Case | Recording
    session: Session
    config: Config
    changes: tuple[tuple[float, Change], ...]
    """With seconds since the start had settled, or since a recording began."""
    warnings: tuple[str, ...]
    """About the file, and all that decisions said meanwhile."""


class _Published:
    """The decision of a run before the last boot."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self._addresses = addresses

    def load(self) -> LastRun:
        remembered = {
            (NODE, family): Remembered(
                address, hold_until=None, named=False, lost=False, same_boot=False
            )
            for family, address in self._addresses.items()
        }
        return LastRun(0, 0, remembered)

    def save(self, last: LastRun) -> None:
        """A replay leaves nothing behind."""


def play(files: list[str], config: Config, arguments: Arguments, *, look: bool = False) -> Played:
    """Play files to their end. Raises InputError, ConfigError.

    `look`: what counts is that end. A recording ends when somebody ended it, perhaps before an
    answer had settled, so there the answer follows the ranking at once, as for a look at a host.
    """
    given = load(files)
    engine = make_engine(arguments.value("--engine", "auto"))
    source: CaseSource | RecordingSource
    memory, helpers, wanted = None, Helpers(), None
    if isinstance(given, Case):
        clock = VirtualClock()
        source = CaseSource(engine, clock, given)
        helpers = Helpers(PaperLookup(source.kernel))
        engine.lose(tuple(Scope))
        hostname, said = given.hostname, []
        if not arguments.flag("--config"):
            config = from_data(given.config, given.file)
        if given.previously_published:
            memory = _Published(
                {family_of(address): address for address in given.previously_published}
            )
    else:
        clock = VirtualClock(given.head.boot_ns, given.head.wall_ns)
        source = RecordingSource(engine, clock, given)
        hostname, said = given.head.hostname, list(given.warnings)
        # Its audits are in it, and a time in it may be years away.
        config = config._replace(capture=config.capture._replace(audit=0))
        wanted = INSTANT if look else None
    session = follow.session(
        source,
        config,
        clock,
        wanted=wanted,
        hostname=hostname,
        memory=memory,
        helpers=helpers,
    )
    changes: list[tuple[float, Change]] = []

    def note() -> None:
        changes.extend((source.seconds(c.boot_ns), c) for c in session.take_changes())
        said.extend(session.decision().warnings)

    session.start()
    while not source.finished:
        if session.step(NEVER):
            note()
    note()
    return Played(given, session, config, tuple(changes), tuple(dict.fromkeys(said)))
