"""addrtracker replay: what would have been published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.command import ENGINE, HOST, Answer, run, write
from tracker.capture.recording import Head, RecordingWriter
from tracker.model import NANOSECONDS


@pytest.fixture
def replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def replayed(host: dict[str, Any], *arguments: str) -> Answer:
        return run(capsys, "replay", write(tmp_path, host), *ENGINE, *arguments)

    return replayed


def case(*events: dict[str, Any], **config: Any) -> dict[str, Any]:
    return {"id": "x", "input": {**HOST, "events": list(events), "config": config}}


GONE = {"type": "RTM_DELADDR", "data": {"ifindex": 2, "address": "192.0.2.10", "prefixlen": 24}}


def test_changes_begin_with_the_first_value(replay: Any) -> None:
    answer = replay(HOST, "--output", "json")
    assert (answer.status, answer.err) == (0, "")
    assert set(answer.json) == {"changes", "node", "warnings"}
    changes = answer.json["changes"]
    assert [(c["t"], c["family"], c["from"], c["to"]) for c in changes] == [
        (0, "ipv4", None, "192.0.2.10"),
        (0, "ipv6", None, "2001:db8::10"),
    ]
    assert answer.json["node"]["primary"] == {"ipv4": "192.0.2.10", "ipv6": "2001:db8::10"}


def test_an_address_that_goes_is_held_and_then_replaced(replay: Any) -> None:
    answer = replay(case({**GONE, "t": 5}))
    change = answer.json["changes"][-1]
    assert (change["t"], change["from"], change["to"]) == (15, "192.0.2.10", "198.51.100.10")
    assert change["cause"]["change"] == "RTM_DELADDR 192.0.2.10/24 eth0"
    assert answer.json["node"]["cause"] == change["cause"]


def test_times_are_the_configured_ones(replay: Any) -> None:
    answer = replay(case({**GONE, "t": 5}, hold="2s"))
    assert answer.json["changes"][-1]["t"] == 7


def test_what_was_said_meanwhile_is_there_at_the_end(replay: Any) -> None:
    routes: list[dict[str, Any]] = [
        {
            "type": "KERNEL_SILENT",
            "data": {
                "removed_routes": [
                    {"family": "inet", "dst": "default", "oif": oif, "metric": metric, "table": 254}
                    for oif, metric in ((2, 100), (3, 200))
                ]
            },
        },
        {"type": "ENOBUFS"},
    ]
    answer = replay(case(*routes))
    assert answer.json["node"]["primary"]["ipv4"] == "192.0.2.10"
    assert any("default route lost" in text for text in answer.json["warnings"])


def test_a_table_has_a_row_for_each_change(replay: Any) -> None:
    out = replay(case({**GONE, "t": 5}), "--output", "table").out
    assert "15.000" in out
    assert "RTM_DELADDR" in out


@pytest.mark.parametrize(
    ("host", "start"),
    [
        ({"links": [{"name": "eth0"}], "addresses": []}, "host.json: "),
        ({"id": "x", "input": {"links": []}}, "host.json: "),
        ({"nothing": 1}, "host.json: not of a known format"),
    ],
)
def test_a_file_with_something_missing_is_one_line(replay: Any, host: Any, start: str) -> None:
    answer = replay(host)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert start in answer.err
    assert "allowed" in answer.err


def test_a_recording_may_be_quiet_for_years(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recording"
    with open(path, "wb") as file:
        RecordingWriter(file, Head("n1", "boot", NANOSECONDS, 0)).finish(1 << 62)
    answer = run(capsys, "replay", path, "--output", "json", *ENGINE)
    assert (answer.status, answer.json["changes"]) == (0, [])


def test_a_replay_is_the_same_each_time(replay: Any) -> None:
    # Nothing tells of it but an audit, whose time is no fixed one.
    route = {"family": "inet", "dst": "default", "oif": 2, "metric": 100}
    silent = {"type": "KERNEL_SILENT", "data": {"removed_routes": [route]}}
    outputs = {replay(case(silent, failback="1s")).out for _ in range(3)}
    assert len(outputs) == 1
    assert "audit of route4" in outputs.pop()
