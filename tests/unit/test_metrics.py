"""What Prometheus gets to see."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import tracker
from tracker.api import metrics
from tracker.api.metrics import MetricsCollector, MetricsServer, registry
from tracker.config import Listen
from tracker.model import Choice, Decision, State
from tracker.publish.worker import PublisherStats
from tracker.stats import (
    DECISION_BOUNDS,
    Buckets,
    Histogram,
    NamedStats,
    Stats,
    recompute_buckets,
)

PROMTOOL = Path(__file__).parents[2] / ".build/programs/bin/promtool"

V4 = Choice(
    family="ipv4",
    address="192.0.2.10",
    state=State.STABLE,
    stale=False,
    prefixlen=24,
    interface="bond0",
    ifindex=4,
    reason="default-route metric 100",
    warnings=(),
    ambiguous=True,
)
V6 = V4._replace(
    family="ipv6", address=None, state=State.NONE, prefixlen=0, interface="", ambiguous=False
)


def stats() -> Stats:
    took = Histogram(DECISION_BOUNDS)
    took.observe(0.00002)
    took.observe(10.0)
    took.observe(500.0)
    buckets = {f"apply_ns_bucket.{i}": i for i in range(24)}
    return Stats(
        decision=Decision(
            7,
            0,
            "n1",
            ("ipv4", "ipv6"),
            {"ipv4": V4, "ipv6": V6},
            {"storage": {"ipv4": V4._replace(address="10.0.0.1", stale=True)}},
            None,
            (),
        ),
        engine_name="native",
        source_name="bpf",
        loader="libbpf",
        attribution=True,
        trace="fentry",
        engine={
            "applied.addr.new": 9,
            "malformed": 0,
            "inferred.R1": 2,
            "drift.link": 0,
            "drift.route4": 1,
            "voided.addr4": 1,
            "links": 3,
            "addresses": 5,
            "routes": 2,
            "nexthops": 0,
        },
        source={
            "seen.newaddr": 9,
            "seen.delroute": 100,
            "dropped.delroute": 98,
            "dropped.newlink": 1,
            "emitted.newaddr": 9,
            "emitted.delroute": 1,
            "lost.delroute": 4,
            "residual": 0,
            "ring_bytes": 1_048_576,
            "reordered": 5,
            "traced.flushed": 3,
            "traced.unreported": 1,
            "traced.overruns": 6,
            "overruns": 2,
            "lost": 250,
            "malformed": 1,
            "dumps.link": 4,
            "dump_failures.link": 1,
            "rcvbuf": 8_388_608,
            "apply_ns_sum": 1_000_000,
            **buckets,
        },
        resyncs={("route4", "R1"): 3, ("link", "loss"): 1},
        decision_changes={"ipv4": 2, "ipv6": 0},
        held=1,
        candidates={
            ("ipv4", "eligible"): 2,
            ("ipv4", "loopback"): 1,
            ("ipv6", "eligible"): 0,
        },
        kernel_to_decision=took.buckets(),
        named={"storage": NamedStats({"ipv4": 1}, {("ipv4", "not-in-mode"): 2})},
        reloads=(3, 1),
    )


def publishers() -> list[PublisherStats]:
    return [PublisherStats("files", writes=4, failures=1, failing=True)]


def scrape(given: Stats | None) -> str:
    return generate_latest(registry(MetricsCollector(lambda: given, publishers))).decode()


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("given", [stats(), None], ids=["all", "no-answer"])
def test_promtool_has_no_complaint(given: Stats | None) -> None:
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"],
        input=scrape(given).encode(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_counters_come_from_the_engine_and_the_source() -> None:
    found = samples(scrape(stats()))
    expected = {
        ("addrtracker_changes_seen_total", (("type", "newaddr"),)): 9,
        ("addrtracker_changes_seen_total", (("type", "delroute"),)): 100,
        ("addrtracker_changes_dropped_total", (("type", "delroute"),)): 98,
        ("addrtracker_changes_dropped_total", (("type", "newlink"),)): 1,
        ("addrtracker_changes_emitted_total", (("type", "newaddr"),)): 9,
        ("addrtracker_changes_lost_by_type_total", (("type", "delroute"),)): 4,
        ("addrtracker_changes_lost_total", (("cause", "ring"),)): 3,
        ("addrtracker_changes_residual", ()): 0,
        ("addrtracker_ring_bytes", ()): 1_048_576,
        ("addrtracker_ring_reordered_total", ()): 5,
        ("addrtracker_traced_removals_total", ()): 3,
        ("addrtracker_traced_removals_unreported_total", ()): 1,
        ("addrtracker_traced_overruns_total", ()): 6,
        ("addrtracker_changes_lost_total", (("cause", "overrun"),)): 250,
        ("addrtracker_changes_lost_total", (("cause", "malformed"),)): 1,
        ("addrtracker_resyncs_total", (("cause", "R1"), ("scope", "route4"))): 3,
        ("addrtracker_resyncs_total", (("cause", "loss"), ("scope", "link"))): 1,
        ("addrtracker_audit_drift_total", (("scope", "route4"),)): 1,
        ("addrtracker_inferred_removals_total", (("rule", "R1"),)): 2,
        ("addrtracker_dumps_voided_total", (("scope", "addr4"),)): 1,
        ("addrtracker_dumps_total", (("scope", "link"),)): 4,
        ("addrtracker_dump_failures_total", (("scope", "link"),)): 1,
        ("addrtracker_decision_changes_total", (("family", "ipv4"),)): 2,
        ("addrtracker_held_total", ()): 1,
        ("addrtracker_candidates", (("family", "ipv4"), ("state", "eligible"))): 2,
        ("addrtracker_candidates", (("family", "ipv4"), ("state", "loopback"))): 1,
        ("addrtracker_candidates", (("family", "ipv6"), ("state", "eligible"))): 0,
        ("addrtracker_stale", (("family", "ipv4"),)): 0,
        ("addrtracker_ambiguous", (("family", "ipv4"),)): 1,
        ("addrtracker_ambiguous", (("family", "ipv6"),)): 0,
        ("addrtracker_state_entries", (("kind", "addresses"),)): 5,
        ("addrtracker_receive_buffer_bytes", ()): 8_388_608,
        ("addrtracker_publisher_writes_total", (("publisher", "files"),)): 4,
        ("addrtracker_publisher_failures_total", (("publisher", "files"),)): 1,
        ("addrtracker_publisher_failing", (("publisher", "files"),)): 1,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_a_named_selection_has_the_same_metrics_under_its_name() -> None:
    found = samples(scrape(stats()))
    named = (("family", "ipv4"), ("selection", "storage"))
    expected = {
        ("addrtracker_decision_changes_total", named): 1,
        ("addrtracker_candidates", (*named, ("state", "not-in-mode"))): 2,
        ("addrtracker_stale", named): 1,
        ("addrtracker_ambiguous", named): 1,
        (
            "addrtracker_primary_address_info",
            (("address", "10.0.0.1"), named[0], ("interface", "bond0"), named[1]),
        ): 1,
        ("addrtracker_config_reloads_total", (("result", "taken"),)): 3,
        ("addrtracker_config_reloads_total", (("result", "refused"),)): 1,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_info_metrics_say_what_runs_and_what_the_addresses_are() -> None:
    found = samples(scrape(stats()))
    primary = [dict(labels) for name, labels in found if name == "addrtracker_primary_address_info"]
    assert [labels for labels in primary if "selection" not in labels] == [
        {"family": "ipv4", "address": "192.0.2.10", "interface": "bond0"}
    ]
    [source] = [dict(labels) for name, labels in found if name == "addrtracker_source_info"]
    assert source == {
        "source": "bpf",
        "engine": "native",
        "loader": "libbpf",
        "attribution": "true",
        "trace": "fentry",
    }
    [build] = [dict(labels) for name, labels in found if name == "addrtracker_build_info"]
    assert build["version"] == tracker.__version__
    assert any(name == "process_resident_memory_bytes" for name, _ in found)


def test_histograms_are_cumulative_and_in_seconds() -> None:
    found = samples(scrape(stats()))
    took = "addrtracker_kernel_to_decision_seconds"
    assert found[f"{took}_bucket", (("le", "1e-05"),)] == 0
    assert found[f"{took}_bucket", (("le", "2.5e-05"),)] == 1
    assert found[f"{took}_bucket", (("le", "10.0"),)] == 2
    assert found[f"{took}_bucket", (("le", "+Inf"),)] == 3
    assert found[f"{took}_count", ()] == 3
    assert found[f"{took}_sum", ()] == pytest.approx(510.00002)
    recompute = "addrtracker_recompute_seconds"
    assert found[f"{recompute}_bucket", (("le", "1.28e-07"),)] == 1
    assert found[f"{recompute}_bucket", (("le", "2.56e-07"),)] == 3
    assert found[f"{recompute}_count", ()] == sum(range(24))
    assert found[f"{recompute}_sum", ()] == 0.001


def test_a_source_that_does_not_measure_has_no_histogram() -> None:
    assert recompute_buckets({"overruns": 0}) is None
    without = stats()._replace(source={})
    assert "addrtracker_recompute_seconds" not in scrape(without)


def test_a_session_that_does_not_answer_costs_its_metrics_alone() -> None:
    found = samples(scrape(None))
    assert ("addrtracker_publisher_failing", (("publisher", "files"),)) in found
    assert not any(name == "addrtracker_stale" for name, _ in found)


def test_a_source_that_cannot_count_losses_counts_overruns() -> None:
    found = samples(scrape(stats()._replace(source={"overruns": 3})))
    assert found["addrtracker_changes_lost_total", (("cause", "overrun"),)] == 3


def test_a_source_without_a_filter_has_no_metrics_of_it() -> None:
    text = scrape(stats()._replace(source={"seen.newaddr": 1, "dropped.newaddr": 0}))
    assert "addrtracker_ring" not in text
    assert "addrtracker_traced" not in text
    assert "residual" not in text
    assert 'cause="ring"' not in text


def test_the_last_bucket_has_no_bound() -> None:
    counts = {f"apply_ns_bucket.{i}": i + 1 for i in range(3)}
    assert recompute_buckets({**counts, "apply_ns_sum": 500}) == Buckets(
        (64e-9, 128e-9), (1, 2, 3), 500e-9
    )


def test_a_name_that_is_no_text_costs_no_scrape() -> None:
    decision = stats().decision
    odd = decision._replace(choices={"ipv4": V4._replace(interface="e\udcff\x1b")})
    text = scrape(stats()._replace(decision=odd))
    labels = (("address", "192.0.2.10"), ("family", "ipv4"), ("interface", r"e\xff\x1b"))
    assert samples(text)["addrtracker_primary_address_info", labels] == 1


Reports = list[tuple[str, str | None]]


def server(listen: Listen, reports: Reports) -> MetricsServer:
    def report(address: str, error: str | None) -> None:
        reports.append((address, error))

    return MetricsServer(listen, registry(MetricsCollector(stats, publishers)), report)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_metrics_are_served(host: str) -> None:
    reports: Reports = []
    serving = server(Listen(host, 0), reports)
    serving.start()
    try:
        shown, port = f"[{host}]" if ":" in host else host, serving.port
        with urllib.request.urlopen(f"http://{shown}:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        serving.stop()
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "addrtracker_build_info{" in text
    assert reports == [(f"{shown}:{port}", None)]


def test_no_name_is_resolved() -> None:
    reports: Reports = []
    # The host itself knows this one (RFC 6761), whatever name server it has.
    assert not server(Listen("n1.localhost", 0), reports).attempt()
    assert reports == [("n1.localhost:0", "Name or service not known")]


def test_a_port_that_is_taken_is_one_line_and_tried_again() -> None:
    reports: Reports = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        serving = server(Listen("127.0.0.1", port), reports)
        assert not serving.attempt()
        assert not serving.attempt()
        assert serving.port is None
        assert reports == [(f"127.0.0.1:{port}", "Address already in use")]
    assert serving.attempt()
    try:
        assert serving.port == port
        assert reports[1:] == [(f"127.0.0.1:{port}", None)]
    finally:
        serving.stop()


def test_stopping_does_not_wait_for_the_next_attempt() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        serving = server(Listen("127.0.0.1", taken.getsockname()[1]), [])
        serving.start()
        serving.stop()
        assert serving.port is None


def test_a_client_that_says_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert metrics._Silent.timeout == metrics.CLIENT_TIMEOUT
    monkeypatch.setattr(metrics._Silent, "timeout", 0.05)
    serving = server(Listen("127.0.0.1", 0), [])
    serving.start()
    try:
        with socket.create_connection(("127.0.0.1", serving.port or 0), timeout=10) as idle:
            assert idle.recv(1) == b""
    finally:
        serving.stop()
    assert capsys.readouterr().err == ""
