"""Wires a session to publishers, metrics, log and service manager; nothing else does.

The session runs in the main thread. Publishers and metrics have threads of their own and never
touch the engine: documents reach them through a slot that keeps the newest, and a scrape asks the
main thread for a snapshot.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from tracker.capture.base import has_attribution, loader_of
from tracker.engine.base import NEVER
from tracker.errors import TrackerError
from tracker.log import log_change
from tracker.memory import StateFile, boot_id
from tracker.model import NANOSECONDS, State
from tracker.node import node_document
from tracker.notify import Notifier
from tracker.publish.files import FilesPublisher
from tracker.publish.worker import PublisherStats, Worker
from tracker.signals import taken
from tracker.stats import DECISION_BOUNDS, Histogram, Stats, collect

if TYPE_CHECKING:
    from tracker.api.metrics import MetricsServer
    from tracker.capture.base import Source
    from tracker.clock import Clock
    from tracker.config import Config
    from tracker.errors import PublishError
    from tracker.lastrun import LastRun
    from tracker.log import Log
    from tracker.model import Choice, Decision
    from tracker.session import Session

SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCONT, signal.SIGHUP})
SCRAPE_TIMEOUT = 5.0
"""Seconds that a scrape waits for the main thread."""
PATIENCE_NS = NANOSECONDS // 5
"""So long log and metrics may wait for the first decision to be published."""


class Memory:
    """The state file, written in a thread of its own."""

    def __init__(self, file: StateFile, worker: Worker) -> None:
        self._file = file
        self._worker = worker

    def load(self) -> LastRun | None:
        """What the last run kept."""
        return self._file.load()

    def save(self, last: LastRun) -> None:
        """Have it written as soon as the disk can."""
        self._worker.submit(self._file.document(last))


class Reloading(Protocol):
    """Reads the configuration again."""

    def read(self, running: Config) -> tuple[Config, list[tuple[str, object, object]]]:
        """The configuration as it is now, and what differs from the one that runs: key, what it
        was, what it is. Raises ConfigError where it is wrong, or cannot be followed."""

    def apply(self, session: Session, config: Config) -> bool:
        """Have a session go by it; True if there is something to say."""

    def report(self, error: str) -> None:
        """Say to whoever asked for it how it went; "" = well."""


class Daemon:
    """One session and all who live on its decisions."""

    def __init__(
        self,
        make_session: Callable[[Memory | None], Session],
        config: Config,
        log: Log,
        clock: Clock,
        notifier: Notifier | None = None,
        *,
        reloading: Reloading | None = None,
    ) -> None:
        """`make_session` gets the memory, None without a state directory. Without `reloading`
        SIGHUP does nothing.
        """
        self._reloading = reloading
        self._reload_asked = False
        self._reloads = (0, 0)
        self._untold = False
        """A reload has led to something that is to be said."""
        self._trace = ""
        self._config = config
        self._log = log
        self._clock = clock
        self._notifier = notifier if notifier is not None else Notifier()
        self._took = Histogram(DECISION_BOUNDS)
        self._stopping = False
        self._resumed = False
        self._ready = False
        self._warned: dict[tuple[str, str], None] = {}
        """By selection and text, in the order in which they came."""
        self._told: Decision | None = None
        self._states: dict[tuple[str, str], tuple[State, bool]] = {}
        """By selection and family."""
        self._held = 0
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._asking = threading.Lock()
        self._stats: Stats | None = None
        self._workers: list[Worker] = []
        boot = boot_id()
        self._publisher = FilesPublisher(
            config.files, reorder=config.families_written, boot_id=boot
        )
        self._files = self._worker(self._publisher)
        self._server: MetricsServer | None = None
        memory = None
        if config.state:
            state = StateFile(config.state, self._report_memory, boot)
            memory = Memory(state, self._worker(state))
        self.session = make_session(memory)

    def _worker(self, publisher: FilesPublisher | StateFile) -> Worker:
        worker = Worker(publisher, self._report_publisher, attempted=self._wake)
        self._workers.append(worker)
        return worker

    def run(self, complete: Callable[[], str] = lambda: "") -> None:
        """Until SIGTERM or SIGINT. `complete` is called once the host was read, before there is
        any other thread; it returns the way in which silent removals are traced, "" = they are
        not.
        """
        with contextlib.ExitStack() as life:

            def begin() -> None:
                self._trace = complete()
                life.enter_context(taken(SIGNALS, self._take_signal))
                for worker in self._workers:
                    worker.start()

            try:
                self._follow(self.session.start(begin))
            finally:
                self._log.start()
                self._notifier.stopping()
                for worker in self._workers:
                    worker.stop()
                if self._server is not None:
                    self._server.stop()
                self.session.source.close()

    def _follow(self, began: bool) -> None:
        session = self.session
        interval = self._notifier.watchdog_interval_ns
        beat_at = NEVER if interval is None else 0
        self._log.info(
            "following",
            source=session.source.name,
            engine=session.engine.name,
            **_loaded(session.source),
            **_addresses(session.decision()),
        )
        for text in self._config.warnings:
            self._log.warning(text)
        if began:
            self._tell(session.published())
        rest_at = self._clock.boot_ns() + PATIENCE_NS
        while not self._stopping:
            if rest_at != NEVER and (self._files.delivered or self._clock.boot_ns() >= rest_at):
                rest_at = NEVER
                self._log.start()
                self._serve_metrics()
            if session.step(min(beat_at, rest_at)):
                self._tell(session.published())
            self._notify()
            if self._resumed:
                self._resumed = False
                self._log.info("stopped for a while, reading everything again")
                session.resume()
            if self._reload_asked:
                self._reload_asked = False
                self._reload()
            self._log_events()
            if self._asked.is_set():
                self._asked.clear()
                self._stats = collect(session, self._took, self._trace, self._reloads)
                self._answered.set()
            if interval is not None and self._clock.boot_ns() >= beat_at:
                self._notifier.watchdog()
                beat_at = self._clock.boot_ns() + interval

    def _tell(self, decision: Decision) -> None:
        """A decision that people see: log, files, service manager."""
        self._told = decision
        for change in self.session.take_changes():
            self._took.observe(change.took_ns / NANOSECONDS)
            log_change(self._log, change)
        self._files.submit(node_document(decision, self._config.networks))
        self._log_states(decision)
        self._log_warnings(decision)
        if self._ready:
            self._notifier.status(_status(decision))

    def _notify(self) -> None:
        """Ready once the files are there (or cannot be), since other units read them."""
        told = self._told
        if not self._ready and told is not None and self._is_ready(told) and self._files.delivered:
            self._ready = True
            self._notifier.ready(_status(told))

    def _is_ready(self, decision: Decision) -> bool:
        have = {f for f, choice in decision.choices.items() if choice.address is not None}
        required = set(self._config.require)
        return required <= have if required else bool(have)

    def _reload(self) -> None:
        """Go by the configuration as it is now, or by the old one: whatever it runs into changes
        nothing and ends nothing.
        """
        if self._reloading is None:
            return
        if self._ready:
            self._notifier.reloading(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        taken_, refused = self._reloads
        error = ""
        try:
            config, differences = self._reloading.read(self._config)
            self._take(self._reloading, config)
        except Exception as wrong:  # noqa: BLE001 - a daemon outlives what it is given
            error = str(wrong) if isinstance(wrong, TrackerError) else _fault(wrong)
            self._reloads = taken_, refused + 1
            self._log.error("configuration refused, the old one stays", error=error)
        else:
            self._reloads = taken_ + 1, refused
            self._log.info("configuration read again", changed=len(differences))
            for key, before, after in differences:
                self._log.info("configuration changed", key=key, **{"from": before, "to": after})
            for text in config.warnings:
                self._log.warning(text)
        if self._untold:
            self._untold = False
            self._tell(self.session.published())
        if self._ready and self._told is not None:
            self._notifier.ready(_status(self._told))
        self._reloading.report(error)

    def _take(self, reloading: Reloading, config: Config) -> None:
        """Go by a configuration in everything; where that fails, by the old one again."""
        before = self._config
        try:
            self._go_by(reloading, config)
        except Exception:
            self._go_by(reloading, before)
            raise

    def _go_by(self, reloading: Reloading, config: Config) -> None:
        """The session first: it alone can refuse."""
        self._untold = reloading.apply(self.session, config) or self._untold
        self._publisher.reorder = config.families_written
        moved = config.metrics != self._config.metrics
        self._config = config
        if moved:
            self._serve_metrics()

    def _log_states(self, decision: Decision) -> None:
        """A family without an address, or with one that may be out of date, and its end."""
        states = self._states
        self._states = {}
        for (name, family), choice in _by_selection(decision).items():
            before = states.get((name, family))
            now = self._states[name, family] = choice.state, choice.stale
            if before == now:
                continue
            about = {"selection": name} if name else {}
            if choice.state is State.NONE:
                self._log.warning(f"no {family} address", **about, reason=choice.reason)
            elif choice.stale:
                state = choice.state.value
                self._log.warning(
                    f"{family} may be out of date", **about, address=choice.address, state=state
                )
            elif before is not None and before[1]:
                self._log.info(f"{family} is up to date", **about, address=choice.address)

    def _log_warnings(self, decision: Decision) -> None:
        """Each warning once when it comes, and once when it goes."""
        now = dict.fromkeys(("", text) for text in decision.warnings)
        for (name, _), choice in _by_selection(decision).items():
            if name:
                now.update(dict.fromkeys((name, text) for text in choice.warnings))
        for name, text in now:
            if (name, text) not in self._warned:
                self._log.warning(text, **({"selection": name} if name else {}))
        for name, text in self._warned:
            if (name, text) not in now:
                about = {"selection": name} if name else {}
                self._log.info("no longer", **about, warning=text)
        self._warned = now

    def _log_events(self) -> None:
        """What happened without a change that people see."""
        for event in self.session.resync.take_events():
            if event.error:
                self._log.warning("dump failed", scope=event.scope, error=event.error)
            elif event.cause == "loss":
                self._log.warning("changes were lost, read again", scope=event.scope)
            else:
                self._log.debug("read again", scope=event.scope, cause=event.cause)
        if self.session.held != self._held:
            self._held = self.session.held
            self._log.debug("an address went and came back in time", held=self._held)
        for raw in self.session.take_drifts():
            from tracker.capture.record import describe, iter_records  # noqa: PLC0415 - for few

            for record in iter_records(raw):
                self._log.warning(
                    "audit found drift", record=describe(record, self.session.engine.link_name)
                )

    def _wake(self) -> None:
        self.session.source.wake()

    def _report_publisher(self, name: str, error: PublishError | None) -> None:
        if error is not None:
            self._log.warning("cannot publish, trying again", publisher=name, error=str(error))
        else:
            self._log.info("publishing again", publisher=name)

    def _report_memory(self, error: str) -> None:
        self._log.warning("the last decision cannot be read, starting without it", error=error)

    def _serve_metrics(self) -> None:
        """Where the configuration says, and no longer where it said before."""
        if self._server is not None:
            self._server.stop()
        self._server = None
        if self._config.metrics is not None:
            # As the log, it takes longer to import than all that comes before the first decision.
            from tracker.api.metrics import (  # noqa: PLC0415
                MetricsCollector,
                MetricsServer,
                registry,
            )

            collector = MetricsCollector(self._ask, self._publisher_stats)
            self._server = MetricsServer(
                self._config.metrics, registry(collector), self._report_metrics
            )
            self._server.start()

    def _report_metrics(self, address: str, error: str | None) -> None:
        if error is not None:
            line = f"metrics: {address}: {error}"
            self._log.warning("cannot serve metrics, trying again", error=line)
        else:
            self._log.info("serving metrics", address=address)

    def _publisher_stats(self) -> Iterator[PublisherStats]:
        return (worker.stats() for worker in self._workers)

    def _ask(self) -> Stats | None:
        """From the thread of a scrape: a snapshot made by the main thread."""
        with self._asking:
            self._answered.clear()
            self._asked.set()
            self.session.source.wake()
            return self._stats if self._answered.wait(SCRAPE_TIMEOUT) else None

    def _take_signal(self, number: int) -> None:
        if number == signal.SIGCONT:
            self._resumed = True
        elif number == signal.SIGHUP:
            self._reload_asked = True
        else:
            self._stopping = True
        self._wake()


def _fault(error: Exception) -> str:
    """What nobody foresaw, in one line for whoever reports it."""
    return f"{type(error).__name__}: {error}"


def _loaded(source: Source) -> dict[str, object]:
    """What the source has loaded into the kernel."""
    loader = loader_of(source)
    return {"loader": loader, "attribution": has_attribution(source)} if loader else {}


def _by_selection(decision: Decision) -> dict[tuple[str, str], Choice]:
    """All choices by selection and family; the node's own selection has no name."""
    every = {"": decision.choices, **decision.selections}
    return {(name, f): choice for name, choices in every.items() for f, choice in choices.items()}


def _addresses(decision: Decision) -> dict[str, str | None]:
    """What is selected, for a line of the log."""
    return {
        f"{name}.{family}" if name else family: choice.address
        for (name, family), choice in _by_selection(decision).items()
    }


def _status(decision: Decision) -> str:
    """One line for `systemctl status`."""
    known = {name: address for name, address in _addresses(decision).items() if address}
    own = ", ".join(known[family] for family in decision.choices if family in known)
    named = [f"{name} {address}" for name, address in known.items() if "." in name]
    return "; ".join([own or "no address yet", *named])
