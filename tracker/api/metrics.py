"""Prometheus metrics, gathered when they are scraped.

`MetricsCollector` asks two callables: one for a `tracker.stats.Stats` (the daemon lets its
session's thread make one; None = it did not answer in time, and the scrape shows only what the
publishers say), one for what the publishers have done.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import TCPServer
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

import tracker
from tracker.config import Listen
from tracker.printable import printable
from tracker.publish.worker import BACKOFF_FIRST, BACKOFF_MOST, PublisherStats
from tracker.stats import Buckets, NamedStats, Stats, recompute_buckets

CLIENT_TIMEOUT = 5.0
"""Seconds that a client may be silent; each has a thread of its own."""


class MetricsCollector(Collector):
    """Everything that addrtracker counts."""

    def __init__(
        self,
        stats: Callable[[], Stats | None],
        publishers: Callable[[], Iterable[PublisherStats]] = tuple,
    ) -> None:
        self._stats = stats
        self._publishers = publishers

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask a session that has not started."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics of now."""
        build = InfoMetricFamily("addrtracker_build", "Version of addrtracker and of Python.")
        build.add_metric(
            [], {"version": tracker.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
        )
        yield build
        yield from _publisher_metrics(self._publishers())
        stats = self._stats()
        if stats is not None:
            yield from _decision_metrics(stats)
            yield from _capture_metrics(stats)
            yield from _state_metrics(stats)


def _publisher_metrics(publishers: Iterable[PublisherStats]) -> Iterator[Metric]:
    writes = CounterMetricFamily(
        "addrtracker_publisher_writes", "Things that a publisher wrote.", labels=["publisher"]
    )
    failures = CounterMetricFamily(
        "addrtracker_publisher_failures",
        "Attempts to publish that failed.",
        labels=["publisher"],
    )
    failing = GaugeMetricFamily(
        "addrtracker_publisher_failing",
        "1 while the newest decision could not be published.",
        labels=["publisher"],
    )
    for publisher in publishers:
        writes.add_metric([publisher.name], publisher.writes)
        failures.add_metric([publisher.name], publisher.failures)
        failing.add_metric([publisher.name], publisher.failing)
    yield from (writes, failures, failing)


def _decision_metrics(stats: Stats) -> Iterator[Metric]:
    source = InfoMetricFamily("addrtracker_source", "Where changes come from, and what ranks them.")
    about = {
        "source": stats.source_name,
        "engine": stats.engine_name,
        "loader": stats.loader,
        "attribution": str(stats.attribution).lower(),
        "trace": stats.trace,
    }
    source.add_metric([], about)
    yield source
    yield CounterMetricFamily(
        "addrtracker_held",
        "Primary addresses that went and came back in time, so that nothing changed.",
        value=stats.held,
    )
    yield from _selection_metrics(stats)
    reloads = CounterMetricFamily(
        "addrtracker_config_reloads",
        "Configurations that were read while running: taken, or refused as wrong.",
        labels=["result"],
    )
    for result, count in zip(("taken", "refused"), stats.reloads, strict=True):
        reloads.add_metric([result], count)
    yield reloads
    yield _histogram(
        "addrtracker_kernel_to_decision_seconds",
        "From the change that the kernel announced to the decision, hold and settle included.",
        stats.kernel_to_decision,
    )


def _selection_metrics(stats: Stats) -> Iterator[Metric]:
    """What each selection has; the node's own has no label `selection`, named ones have."""
    changes = CounterMetricFamily(
        "addrtracker_decision_changes", "Addresses of a selection that became another one."
    )
    candidates = GaugeMetricFamily(
        "addrtracker_candidates", "Addresses of this host, eligible or rejected for one reason."
    )
    primary = InfoMetricFamily(
        "addrtracker_primary_address", "The addresses that are selected, one of a family."
    )
    stale = GaugeMetricFamily(
        "addrtracker_stale", "1 while the selected address may be out of date."
    )
    ambiguous = GaugeMetricFamily(
        "addrtracker_ambiguous",
        "1 while another network qualifies on equal terms; a mode would settle it.",
    )
    own = NamedStats(stats.decision_changes, stats.candidates)
    every = {"": (own, stats.decision.choices)}
    every.update(
        (name, (named, stats.decision.selections.get(name, {})))
        for name, named in stats.named.items()
    )
    for name, (counts, choices) in every.items():
        label = {"selection": name} if name else {}
        for family, count in counts.decision_changes.items():
            changes.add_sample(f"{changes.name}_total", {**label, "family": family}, count)
        for (family, state), count in counts.candidates.items():
            labels = {**label, "family": family, "state": state}
            candidates.add_sample(candidates.name, labels, count)
        for family, choice in choices.items():
            labels = {**label, "family": family}
            stale.add_sample(stale.name, labels, choice.stale)
            ambiguous.add_sample(ambiguous.name, labels, choice.ambiguous)
            if choice.address is not None:
                # The text format is UTF-8, which a name need not be.
                where = {"address": choice.address, "interface": printable(choice.interface)}
                primary.add_sample(f"{primary.name}_info", {**labels, **where}, 1)
    yield from (changes, candidates, primary, stale, ambiguous)


def _capture_metrics(stats: Stats) -> Iterator[Metric]:
    counters = stats.source
    for name, text in _ACCOUNTS.items():
        yield _by_label(f"addrtracker_changes_{name}", text, "type", counters, f"{name}.")
    yield from _loss_metrics(counters)
    resyncs = CounterMetricFamily(
        "addrtracker_resyncs",
        "Dumps of one scope: at the start, because of a loss, or to confirm what was inferred.",
        labels=["scope", "cause"],
    )
    for (scope, cause), count in stats.resyncs.items():
        resyncs.add_metric([scope, cause], count)
    yield resyncs
    yield _by_label("addrtracker_dumps", "Dumps of one scope.", "scope", counters, "dumps.")
    yield _by_label(
        "addrtracker_dump_failures",
        "Dumps that failed; what was known stays.",
        "scope",
        counters,
        "dump_failures.",
    )
    recompute = recompute_buckets(counters)
    if recompute is not None:
        yield _histogram(
            "addrtracker_recompute_seconds", "From a record to the best candidate.", recompute
        )
    yield from _ring_metrics(counters)
    if "rcvbuf" in counters:
        yield GaugeMetricFamily(
            "addrtracker_receive_buffer_bytes",
            "Receive buffer of the socket, as the kernel counts it: twice what was asked for.",
            value=counters["rcvbuf"],
        )


_ACCOUNTS = {
    "seen": "Changes that the kernel announced.",
    "dropped": "Announced changes that concern no policy, or say nothing new.",
    "emitted": "Announced changes that were handed on to the state.",
}


def _loss_metrics(counters: dict[str, int]) -> Iterator[Metric]:
    by_type = _group(counters, "lost.")
    malformed = counters.get("malformed", 0)
    lost = CounterMetricFamily(
        "addrtracker_changes_lost",
        "Changes that were lost: the socket overran, the ring had no room, a message could not be "
        "read, or came past the filter.",
        labels=["cause"],
    )
    # A source that cannot tell how many messages an overrun cost counts the overruns.
    lost.add_metric(["overrun"], counters.get("lost", counters.get("overruns", 0)))
    lost.add_metric(["malformed"], malformed)
    if "ring_bytes" in counters:
        lost.add_metric(["ring"], max(0, sum(by_type.values()) - malformed))
        lost.add_metric(["unfiltered"], counters.get("unfiltered", 0))
    yield lost
    if "residual" not in counters:
        return
    yield _by_label(
        "addrtracker_changes_lost_by_type",
        "Announced changes that no record could be made of.",
        "type",
        counters,
        "lost.",
    )
    yield GaugeMetricFamily(
        "addrtracker_changes_residual",
        "Changes seen that are neither dropped, emitted nor lost: those under way, else a fault.",
        value=counters["residual"],
    )


def _ring_metrics(counters: dict[str, int]) -> Iterator[Metric]:
    if "ring_bytes" not in counters:
        return
    yield GaugeMetricFamily(
        "addrtracker_ring_bytes",
        "Size of the ring buffer that the filter in the kernel writes to.",
        value=counters["ring_bytes"],
    )
    yield CounterMetricFamily(
        "addrtracker_ring_reordered",
        "Records that came out of the ring behind a later one, and were put in order.",
        value=counters.get("reordered", 0),
    )
    for name, text in _TRACED.items():
        if f"traced.{name}" in counters:
            yield CounterMetricFamily(
                f"addrtracker_traced_{_TRACED_NAMES.get(name, name)}",
                text,
                value=counters[f"traced.{name}"],
            )


_TRACED = {
    "flushed": "IPv4 routes that the kernel removed without a word, as probes in it saw them; "
    "to be compared with addrtracker_inferred_removals_total.",
    "unreported": "Traced removals of which only the number is known: the ring was half full.",
    "overruns": "Overruns of any netlink socket of this host, as probes in the kernel saw them.",
}
_TRACED_NAMES = {"flushed": "removals", "unreported": "removals_unreported"}


def _state_metrics(stats: Stats) -> Iterator[Metric]:
    counters = stats.engine
    yield _by_label(
        "addrtracker_audit_drift",
        "Differences between the state and a fresh dump that audits found and repaired.",
        "scope",
        counters,
        "drift.",
    )
    yield _by_label(
        "addrtracker_inferred_removals",
        "Entries that the kernel removes without a word, by the rule that found out.",
        "rule",
        counters,
        "inferred.",
    )
    yield _by_label(
        "addrtracker_dumps_voided",
        "Dumps during which changes were lost or inferred.",
        "scope",
        counters,
        "voided.",
    )
    entries = GaugeMetricFamily(
        "addrtracker_state_entries", "Entries of the state.", labels=["kind"]
    )
    for kind in ("links", "addresses", "routes", "nexthops"):
        entries.add_metric([kind], counters.get(kind, 0))
    yield entries


def _by_label(name: str, text: str, label: str, counters: dict[str, int], prefix: str) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, count in _group(counters, prefix).items():
        family.add_metric([key], count)
    return family


def _group(counters: dict[str, int], prefix: str) -> dict[str, int]:
    return {k.removeprefix(prefix): v for k, v in counters.items() if k.startswith(prefix)}


def _histogram(name: str, text: str, buckets: Buckets) -> Metric:
    cumulative = []
    count = 0
    for bound, own in zip((*buckets.bounds, float("inf")), buckets.counts, strict=True):
        count += own
        cumulative.append(("+Inf" if bound == float("inf") else repr(bound), float(count)))
    return HistogramMetricFamily(name, text, buckets=cumulative, sum_value=buckets.total)


def registry(collector: MetricsCollector) -> CollectorRegistry:
    """A registry of its own with the metrics of this process beside."""
    own = CollectorRegistry(auto_describe=False)
    own.register(collector)
    ProcessCollector(registry=own)
    return own


_LOCALHOST = "127.0.0.1"


class _Silent(WSGIRequestHandler):
    """Scrapes are no news."""

    timeout = CLIENT_TIMEOUT

    def handle(self) -> None:
        """Answer; a client that is silent or goes away is no news either."""
        with contextlib.suppress(TimeoutError, ConnectionError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _listening(listen: Listen, own: CollectorRegistry) -> ThreadingWSGIServer:
    # The thread that decides asks no name server, not even for the one name that is allowed.
    numeric = _LOCALHOST if listen.host == "localhost" else listen.host
    flags = socket.AI_PASSIVE | socket.AI_NUMERICHOST
    found, *_ = socket.getaddrinfo(numeric, listen.port, type=socket.SOCK_STREAM, flags=flags)

    class Server(ThreadingWSGIServer):
        address_family = found[0]

        def server_bind(self) -> None:
            """As HTTPServer's, but for the name of this host, which that asks a name server for."""
            TCPServer.server_bind(self)
            self.server_name, self.server_port = str(found[4][0]), self.server_address[1]
            self.setup_environ()

    host = str(found[4][0])
    return make_server(host, listen.port, make_wsgi_app(own), Server, _Silent)


class MetricsServer:
    """Serves /metrics. A port that is taken costs the metrics and nothing else: it is tried
    again, after a second and then at most every minute.

    `report` is called with address and port, and the first error of a row, or None when it
    listens: port 0 is another one by then.
    """

    def __init__(
        self,
        listen: Listen,
        own: CollectorRegistry,
        report: Callable[[str, str | None], None],
    ) -> None:
        self._listen = listen
        self._registry = own
        self._report = report
        self._server: ThreadingWSGIServer | None = None
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._failed = False

    @property
    def port(self) -> int | None:
        """The port that it listens on; None while it does not."""
        return None if self._server is None else int(self._server.server_port)

    def start(self) -> None:
        """Listen now, or as soon as the port is free."""
        if not self.attempt():
            self._begin(self._retry)

    def attempt(self) -> bool:
        """Try to listen once."""
        try:
            self._server = _listening(self._listen, self._registry)
        except OSError as error:
            if not self._failed:
                self._report(self._shown(self._listen.port), error.strerror)
            self._failed = True
            return False
        self._report(self._shown(int(self._server.server_port)), None)
        self._begin(self._serve)
        return True

    def stop(self) -> None:
        """Close the port."""
        self._stopping.set()
        if self._server is not None:
            self._server.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        if self._server is not None:
            self._server.server_close()

    def _shown(self, port: int) -> str:
        host = f"[{self._listen.host}]" if ":" in self._listen.host else self._listen.host
        return f"{host}:{port}"

    def _begin(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="metrics", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        """Not by serve_forever, which wakes up twice a second to see whether it has to stop."""
        assert self._server is not None
        while not self._stopping.is_set():
            self._server.handle_request()

    def _retry(self) -> None:
        pause = BACKOFF_FIRST
        while not self._stopping.wait(pause) and not self.attempt():
            pause = min(BACKOFF_MOST, 2 * pause)
