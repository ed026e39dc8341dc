"""addrtracker explain: a reason for every address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.command import ENGINE, HOST, Answer, address, default, link, run, write


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def explained(host: dict[str, Any], *arguments: str) -> Answer:
        path = write(tmp_path, host)
        return run(capsys, "explain", *arguments, "--from", path, *ENGINE)

    return explained


CROWDED: dict[str, Any] = {
    **HOST,
    "addresses": [
        *HOST["addresses"],
        address(2, "192.0.2.11/24", flags=["secondary"]),
        address(2, "192.0.2.12/32"),
    ],
}
"""A second address of the first network, and one like a virtual one."""


def by_address(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {candidate["address"]: candidate for candidate in found["candidates"]}


def test_every_address_has_a_reason(explain: Any) -> None:
    answer = explain(HOST, "--output", "json")
    assert (answer.status, answer.err) == (0, "")
    found = answer.json["families"]
    assert found["ipv4"]["chosen"] == "192.0.2.10"
    rows = by_address(found["ipv4"])
    assert {text: row["reason"] for text, row in rows.items()} == {
        "192.0.2.10": "default-route metric 100",
        "198.51.100.10": "behind by default-route",
        "127.0.0.1": "loopback",
        "172.17.0.1": "excluded-interface",
    }
    assert by_address(found["ipv6"])["fe80::10"]["reason"] == "link-local"


def test_a_candidate_has_the_value_of_each_criterion(explain: Any) -> None:
    rows = by_address(explain(HOST).json["families"]["ipv4"])
    best, second = rows["192.0.2.10"], rows["198.51.100.10"]
    assert (best["rank"], second["rank"]) == (1, 2)
    assert best["eligible"]
    assert best["criteria"]["default-route"] == {"metric": 100, "live": True, "pref": "medium"}
    assert second["criteria"]["default-route"]["metric"] == 200
    assert best["criteria"]["gateway-on-link"] is True
    assert list(best["criteria"])[:4] == ["static", "mode", "internal", "default-route"]
    assert (best["interface"], best["ifindex"], best["prefixlen"]) == ("eth0", 2, 24)


def test_a_rejected_address_has_no_rank(explain: Any) -> None:
    row = by_address(explain(HOST).json["families"]["ipv4"])["172.17.0.1"]
    assert row["rank"] is None
    assert not row["eligible"]
    assert row["criteria"] == {}


def test_what_decided_is_the_first_criterion_on_which_they_differ(explain: Any) -> None:
    rows = by_address(explain(CROWDED).json["families"]["ipv4"])
    best = next(row for row in rows.values() if row["rank"] == 1)
    assert best["decided_by"] is None
    assert {text: row["decided_by"] for text, row in rows.items() if row["eligible"]} == {
        "192.0.2.10": None,
        "192.0.2.11": "primary-flag",
        "192.0.2.12": "not-vip-like",
        "198.51.100.10": "default-route",
    }
    for row in rows.values():
        if row["decided_by"] is None:
            continue
        labels = list(row["criteria"])
        before = labels[: labels.index(row["decided_by"])]
        assert all(row["criteria"][label] == best["criteria"][label] for label in before)
        assert row["criteria"][row["decided_by"]] != best["criteria"][row["decided_by"]]


def test_a_rejected_address_was_in_no_contest(explain: Any) -> None:
    rows = by_address(explain(HOST).json["families"]["ipv4"])
    assert rows["172.17.0.1"]["decided_by"] is None
    assert rows["172.17.0.1"]["reason"] == "excluded-interface"


def test_an_address_that_is_kept_though_another_ranks_first_is_said(explain: Any) -> None:
    # The last run's answer: its path alone got worse.
    case = {
        "id": "x",
        "input": {**HOST, "config": {"previously_published": ["198.51.100.10"]}},
    }
    found = explain(case).json["families"]["ipv4"]
    assert found["chosen"] == "198.51.100.10"
    rows = by_address(found)
    assert rows["192.0.2.10"]["reason"] == (
        "default-route metric 100; ahead by default-route, but 198.51.100.10 stays"
    )
    assert rows["198.51.100.10"]["decided_by"] == "default-route"


def test_a_selection_that_is_not_there_is_one_line(explain: Any) -> None:
    answer = explain(HOST, "--selection", "storage")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        "addrtracker: explain: --selection storage: no such selection; "
        "allowed: none is configured\n"
    )


def test_a_named_selection_is_explained_by_its_own_policy(explain: Any, tmp_path: Path) -> None:
    config = tmp_path / "addrtracker.toml"
    config.write_text('[selections.storage]\nmode = "interface"\ninterfaces = ["eth1", "eth*"]\n')
    options = ("--config", str(config), "--selection")
    answer = explain(HOST, *options, "storage")
    assert answer.json["selection"] == "storage"
    found = answer.json["families"]["ipv4"]
    assert (found["chosen"], found["reason"]) == ("198.51.100.10", "mode interface: eth1")
    rows = by_address(found)
    assert rows["192.0.2.10"]["decided_by"] == "mode"
    assert rows["192.0.2.10"]["reason"] == "behind by mode interface: eth0 (eth*)"
    assert [rows[text]["criteria"]["mode"] for text in ("198.51.100.10", "192.0.2.10")] == [0, 1]
    table = explain(HOST, *options, "storage", "--output", "table").out
    assert table.startswith("ipv4: 198.51.100.10 (mode interface: eth1)\n")
    assert "entry 2" in table
    node = explain(HOST, "--config", str(config)).json
    assert "selection" not in node
    assert node["families"]["ipv4"]["chosen"] == "192.0.2.10"
    assert explain(HOST, *options, "bgp").err.endswith("allowed: storage\n")


def test_what_a_mode_leaves_out_says_so(explain: Any, tmp_path: Path) -> None:
    config = tmp_path / "addrtracker.toml"
    config.write_text('[select]\nmode = "cidr"\ncidrs = ["198.51.100.0/24"]\n')
    found = explain(HOST, "--config", str(config)).json["families"]
    assert found["ipv4"]["chosen"] == "198.51.100.10"
    assert by_address(found["ipv4"])["192.0.2.10"]["reason"] == "not-in-mode"
    assert found["ipv6"]["chosen"] is None


def test_one_address_alone(explain: Any) -> None:
    answer = explain(HOST, "2001:DB8:0::10", "--output", "json")
    assert list(answer.json["families"]) == ["ipv6"]
    [row] = answer.json["families"]["ipv6"]["candidates"]
    assert row["address"] == "2001:db8::10"


def test_an_address_that_is_not_there_is_one_line(explain: Any) -> None:
    answer = explain(HOST, "203.0.113.1")
    assert answer.status == 2
    assert answer.err.startswith("addrtracker: explain: 203.0.113.1 is on no interface; allowed: ")
    assert answer.out == ""


def test_none_says_why(explain: Any) -> None:
    host = {
        "links": [link(1, "lo"), link(2, "eth0")],
        "addresses": [address(2, "192.0.2.10/24"), address(2, "198.51.100.10/24")],
        "routes": [
            {"family": "inet", "dst": "default", "type": "unreachable", "oif": 1, "table": 254}
        ],
    }
    answer = explain(host, "--output", "json")
    assert answer.status == 0
    found = answer.json["families"]["ipv4"]
    assert found["chosen"] is None
    assert found["reason"] == (
        "no default route in table main, only one of type unreachable, blackhole or prohibit; "
        "fallback auto: 2 addresses are left, not one"
    )
    assert {row["reason"] for row in found["candidates"]} == {"no-default-route"}


def test_a_table_shows_the_criteria_that_decide(explain: Any) -> None:
    out = explain(HOST, "--output", "table").out
    head = next(line for line in out.splitlines() if "interface" in line)
    assert head.split() == ["address", "interface", "default-route", "why"]
    assert "metric 200" in out
    assert "excluded-interface" in out


def many(count: int) -> dict[str, Any]:
    addresses = [address(2, f"10.0.{n // 200}.{n % 200 + 1}/16") for n in range(count)]
    return {
        "links": [link(1, "lo"), link(2, "eth0")],
        "addresses": [address(1, "127.0.0.1/8"), *addresses],
        "routes": [default(2, "10.0.255.1")],
    }


def test_a_table_shows_what_fits_and_how_many_more(
    explain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "40")
    answer = explain(many(300), "--output", "table")
    lines = answer.out.splitlines()
    assert len(lines) < 40
    shown = sum("10.0." in line and "/16" in line for line in lines)
    assert f"... and {301 - shown} more: {300 - shown} eligible, 1 loopback" in lines


def test_all_shows_all(explain: Any) -> None:
    out = explain(many(300), "--output", "table", "--all").out
    assert "10.0.1.100/16" in out
    assert "more:" not in out


def head_of(out: str, family: str) -> list[str]:
    lines = out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{family}:"))
    return lines[start + 1].split()


def test_what_does_not_fit_is_named_and_no_address_is_cut(
    explain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    out = explain(CROWDED, "--output", "table").out
    assert head_of(out, "ipv4") == ["address", "interface", "default-route", "why"]
    assert "not shown (--all-columns): primary-flag, not-vip-like" in out.splitlines()
    assert "\u2026" not in out
    monkeypatch.setenv("COLUMNS", "120")
    out = explain(CROWDED, "--output", "table").out
    assert head_of(out, "ipv4") == [
        "address",
        "interface",
        "default-route",
        "not-vip-like",
        "primary-flag",
        "why",
    ]
    assert "not shown" not in out


def test_all_columns_are_all_criteria_however_wide(explain: Any) -> None:
    out = explain(CROWDED, "--output", "table", "--all-columns").out
    [criteria] = [
        row["criteria"]
        for row in explain(CROWDED).json["families"]["ipv4"]["candidates"]
        if row["rank"] == 1
    ]
    assert head_of(out, "ipv4") == ["address", "interface", *criteria, "why"]
    assert "\u2026" not in out
    rows = [line for line in out.splitlines() if line.startswith("2   192.0.2.11/24")]
    assert [line.split()[-1] for line in rows] == ["primary-flag"]


def test_a_candidate_is_explained_in_the_words_of_the_decision(
    explain: Any, tmp_path: Path
) -> None:
    config = tmp_path / "route-to.toml"
    config.write_text('[select]\nmode = "route-to"\nroute_to = ["203.0.113.7"]\n')
    found = explain(HOST, "--config", str(config)).json["families"]["ipv4"]
    assert found["reason"] == "mode route-to: source towards 203.0.113.7"
    assert by_address(found)[found["chosen"]]["reason"] == found["reason"]
