"""The comparison with others: what counts as seen, what logs say, and who is named."""

from __future__ import annotations

import pytest

from benchmarks.peers import figures, logs, report
from benchmarks.peers.__main__ import run
from benchmarks.peers.following import row
from benchmarks.peers.registry import PEERS, Peer
from benchmarks.peers.scenarios import SCENARIOS, Scenario
from benchmarks.sights import FOR_P99, delays, wrong

MS = 1_000_000
A, B = "192.0.2.10", "192.0.2.11"

LINES = {
    logs.IP_MONITOR: """\
[2026-11-30T17:23:53.528885] 3: eth0    inet 192.0.2.10/24 scope global eth0\\       valid_lft
[2026-11-30T17:23:53.528997] local 192.0.2.10 dev eth0 table local proto kernel scope host
[2026-11-30T17:23:53.530981] 3: eth0    inet6 2001:db8:1::10/64 scope global nodad \\
[2026-11-30T17:23:53.532360] Deleted 3: eth0    inet 192.0.2.10/24 scope global eth0\\
[2026-11-30T17:23:53.532373] Deleted 192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.10
[2026-11-30T17:23:53.533746] Deleted 3: eth0    inet6 2001:db8:1::10/64 scope global nodad \\
""",
    logs.BIRD: """\
2026-11-30 17:24:20.146036 <TRACE> direct1 < interface eth0 goes up
2026-11-30 17:24:20.456893 <TRACE> direct1 < address 192.0.2.0/24 on interface eth0 added
2026-11-30 17:24:20.458728 <TRACE> direct1 < address 2001:db8:1::/64 on interface eth0 added
2026-11-30 17:24:20.460049 <TRACE> direct1 < address 192.0.2.0/24 on interface eth0 removed
2026-11-30 17:24:20.461443 <TRACE> direct1 < address 2001:db8:1::/64 on interface eth0 removed
2026-11-30 17:24:20.769872 <INFO> Shutting down
""",
    logs.ZEBRA: """\
2026/11/30 17:24:21.130016 ZEBRA: [NBGDS-5ZDQ9] MESSAGE: ZEBRA_INTERFACE_ADDRESS_ADD 192.0.2.10/24 on eth0 vrf default(0)
2026/11/30 17:24:21.131643 ZEBRA: [NBGDS-5ZDQ9] MESSAGE: ZEBRA_INTERFACE_ADDRESS_ADD 2001:db8:1::10/64 on eth0 vrf default(0)
2026/11/30 17:24:21.132956 ZEBRA: [XN0NB-2NSYE] MESSAGE: ZEBRA_INTERFACE_ADDRESS_DELETE 192.0.2.10/24 on eth0 vrf default(0)
2026/11/30 17:24:21.132963 ZEBRA: [QQWTF-ZKJDD] rib_update: Scheduled VRF (ALL), event RIB_UPDATE_KERNEL
2026/11/30 17:24:21.134394 ZEBRA: [XN0NB-2NSYE] MESSAGE: ZEBRA_INTERFACE_ADDRESS_DELETE 2001:db8:1::10/64 on eth0 vrf default(0)
""",  # noqa: E501 - as it is written
}
"""What each has logged as an address of each family came and went."""


def peer(name: str, missing: str = "") -> Peer:
    def start(*arguments: object) -> None:
        raise AssertionError("nobody is to be started")

    return Peer(name, name, "to do nothing", "none", start, missing=lambda: missing)  # type: ignore[arg-type]


def test_a_late_sight_belongs_to_its_change() -> None:
    changes = [(0, f"+{A}"), (10 * MS, f"-{A}"), (20 * MS, f"+{B}")]
    sights = [(55 * MS, f"+{A}"), (65 * MS, f"-{A}"), (75 * MS, f"+{B}")]
    found = delays(changes, sights)
    assert found.seconds == pytest.approx([0.055, 0.055, 0.055])
    assert found.missed == 0


def test_what_was_not_seen_is_missed_and_shifts_nothing() -> None:
    changes = [(0, f"+{A}"), (10 * MS, f"-{A}"), (20 * MS, f"+{B}"), (30 * MS, f"-{B}")]
    found = delays(changes, [(1 * MS, f"+{A}"), (21 * MS, f"+{B}"), (33 * MS, f"-{B}")])
    assert (found.changes, found.missed) == (4, 1)
    assert found.seconds == pytest.approx([0.001, 0.001, 0.003])


def test_a_sight_before_its_change_or_behind_the_next_same_one_is_none() -> None:
    changes = [(10 * MS, f"+{A}"), (20 * MS, f"-{A}"), (30 * MS, f"+{A}")]
    found = delays(changes, [(9 * MS, f"+{A}"), (31 * MS, f"+{A}")])
    assert found.missed == 2
    assert found.seconds == pytest.approx([0.001])


def test_who_has_lost_the_last_word_is_wrong() -> None:
    changes = [(0, f"+{A}"), (1, f"-{A}"), (2, f"+{B}")]
    assert wrong(changes, [(5, f"+{A}"), (6, f"-{A}"), (7, f"+{B}")]) == 0
    assert wrong(changes, [(5, f"+{A}"), (7, f"+{B}")]) == 1
    assert wrong(changes, [(5, f"+{A}")]) == 2
    assert wrong(changes, [(7, f"+{B}")]) == 0  # has never heard of A, which is gone


def test_a_p99_has_enough_samples() -> None:
    changes = [(n * MS, f"+10.0.0.{n}") for n in range(FOR_P99)]
    sights = [(at + MS, what) for at, what in changes]
    assert delays(changes, sights).row()["p99_s"] == pytest.approx(0.001)
    few = delays(changes, sights[1:]).row()
    assert few["p99_s"] is None
    assert few["max_s"] == pytest.approx(0.001)


@pytest.mark.parametrize("log", LINES, ids=("ip monitor", "BIRD", "zebra"))
def test_logs_tell_of_addresses_alone(log: logs.Log) -> None:
    found = list(logs.sights(log, LINES[log].splitlines(), 0))
    hosts = ("192.0.2.0/24", "2001:db8:1::/64") if log is logs.BIRD else (A, "2001:db8:1::10")
    assert [what for _, what in found] == [f"{sign}{of}" for sign in "+-" for of in hosts]


def test_the_time_of_a_log_becomes_that_of_the_kernel() -> None:
    first, *_ = logs.sights(logs.BIRD, LINES[logs.BIRD].splitlines(), 5)
    assert first[0] == 1796059460_456893_000 + 5


def test_a_network_is_that_of_one_change() -> None:
    changes = [(0, "+10.1.0.10"), (1, "+10.1.1.10"), (2, "+2001:db8:1::10")]
    seen = [(7, "+10.1.1.0/24"), (8, "-2001:db8:1::/64"), (9, "+192.0.2.0/24")]
    assert list(logs.named(seen, changes)) == [(7, "+10.1.1.10"), (8, "-2001:db8:1::10")]


def test_who_is_missing_or_not_asked_is_named() -> None:
    scenario = Scenario(
        "none", "none", "nothing", ("missed",), lambda peers: [row(p) for p in peers], {"b": "slow"}
    )
    peers = [peer("a"), peer("b"), peer("c", "no such program")]
    done = run(scenario, peers)
    assert {row["peer"]: row["outcome"] for row in done["rows"]} == {
        "a": "",
        "b": "not asked: slow",
        "c": "missing: no such program",
    }
    whole = {
        "peers": report.peers(peers),
        "machine": {"kernel": "6.1", "cores": 2, "cpu": "any", "busy": [0.0, 0.0]},
        "versions": {},
        "seconds": 1.0,
        "notes": [],
        "figures": figures.rows([done]),
    }
    assert "NOT MEASURED: c: no such program" in list(report.ending(whole))


def test_a_program_that_is_not_there_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    by_name = {peer.name: peer for peer in PEERS}
    assert by_name["ip-monitor"].missing() == "no ip in PATH"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_names_columns_and_peers_that_there_are(scenario: Scenario) -> None:
    assert set(scenario.columns) <= set(report.COLUMNS)
    assert set(scenario.leaves_out) < {peer.name for peer in PEERS}


def test_a_figure_is_a_ratio_of_one_turn() -> None:
    def turns(*seconds: float) -> dict[str, object]:
        return {"missed": 0, "turns": [{"cpu_s": each} for each in seconds]}

    rows = [
        {"peer": "recv", **turns(1.0, 2.0, 4.0)},
        {"peer": "bpf", **turns(0.1, 0.08, 0.2)},
    ]
    found = {
        figure["name"]: figure for figure in figures.rows([{"name": "routes-ipv4", "rows": rows}])
    }
    assert found[figures.TO_RECV["IPv4"].name]["value"] == pytest.approx(0.05)
    assert found[figures.MISSED["IPv4"].name]["met"] is True
    assert found[figures.START.name]["value"] is None
