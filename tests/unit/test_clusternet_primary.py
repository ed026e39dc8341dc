"""What is said about primary addresses: reach, sources, filters, exclusions, settings."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from tracker.clusternet.finding import Finding, Severity, note, ordered, warning
from tracker.clusternet.primary import (
    Lookup,
    Primary,
    excluder,
    exclusion_finding,
    internet_findings,
    node_findings,
    rp_filter_findings,
    source_findings,
)
from tracker.clusternet.settings import setting_findings

ETH0 = Primary("ipv4", "192.0.2.10", "eth0", on_uplink=True)
PRIMARIES = {"ipv4": ETH0}


def told(findings: list[Finding]) -> list[str]:
    return [f"{finding.severity.value} {finding.code}" for finding in findings]


def lookup(source: str = "192.0.2.10", *ways: str, **values: Any) -> Lookup:
    ways = ways or ("eth0",)
    given = {"answers": ways, **values}
    return Lookup("203.0.113.1", "ipv4", source, ways, **given)


@pytest.mark.parametrize(
    ("address", "uplink", "own", "internal", "expected"),
    [
        ("8.8.8.8", True, [], [], ["warning primary-public"]),
        ("8.8.8.8", True, ["8.8.8.0/24"], [], ["note primary-public"]),
        ("8.8.8.8", True, [], ["8.0.0.0/8"], []),
        ("8.8.8.8", False, [], [], []),
        ("10.0.0.8", True, [], [], []),
        ("100.64.0.8", True, [], [], []),
        ("2600::8", True, [], [], ["warning primary-public"]),
        ("fd12::8", True, [], [], []),
    ],
)
def test_a_public_address_on_an_uplink_is_open_to_all(
    address: str, uplink: bool, own: list[str], internal: list[str], expected: list[str]
) -> None:
    family = "ipv6" if ":" in address else "ipv4"
    found = internet_findings(
        [Primary(family, address, "eth0", uplink)],
        [ip_network(text) for text in own],
        [ip_network(text) for text in internal],
    )
    assert told(found) == expected


def test_a_host_that_speaks_from_its_primary_is_fine() -> None:
    assert source_findings(PRIMARIES, [lookup()], [lookup()]) == []


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (lookup("198.51.100.10", "eth1"), ["warning source-peer"]),
        (lookup("", error="no route"), ["error peer-unreachable"]),
        (lookup(local=True), ["note peer-local"]),
    ],
)
def test_what_a_peer_sees_is_said(peer: Lookup, expected: list[str]) -> None:
    assert told(source_findings(PRIMARIES, [], [peer])) == expected


def test_a_peer_of_a_family_without_primary_is_said() -> None:
    assert told(source_findings({}, [], [lookup()])) == ["warning peer-without-primary"]


def test_another_source_by_default_is_said_with_the_link() -> None:
    [found] = source_findings(PRIMARIES, [lookup("198.51.100.10", "eth1")], [])
    assert found.code == "source-default"
    assert "speaks from 198.51.100.10 over eth1, not from its ipv4 primary 192.0.2.10" in found.text
    assert found.data["lookup"]["interfaces"] == ["eth1"]


def test_a_source_that_the_destination_decides_is_said() -> None:
    given = [lookup("192.0.2.10", "eth0", "eth1", varies=True)]
    assert told(source_findings(PRIMARIES, given, [])) == ["warning source-varies"]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], []),
        (["192.0.2.0/24", "2001:db8::/64"], []),
        (["198.51.100.0/24"], ["warning primary-outside-nodes"]),
        (["2001:db8::/64"], []),
    ],
)
def test_a_primary_is_where_the_nodes_are(nodes: list[str], expected: list[str]) -> None:
    assert told(node_findings([ETH0], [ip_network(text) for text in nodes])) == expected


@pytest.mark.parametrize(
    ("answers", "value", "expected"),
    [
        (("eth1",), 1, ["error rp-filter-drops"]),
        (("eth1",), 2, []),
        (("eth1",), 0, []),
        (("eth1", "eth0"), 1, []),
        (("eth0",), 1, []),
        ((), 1, []),
    ],
)
def test_strict_rp_filter_drops_what_is_answered_elsewhere(
    answers: tuple[str, ...], value: int, expected: list[str]
) -> None:
    given = [lookup(answers=answers)]
    assert told(rp_filter_findings(PRIMARIES, given, {"eth0": value})) == expected


def test_the_same_way_is_said_once() -> None:
    given = [lookup(answers=("eth1",)), lookup(answers=("eth1",))]
    assert len(rp_filter_findings(PRIMARIES, given, {"eth0": 1})) == 1


LISTS = {
    "exclude.addresses": ("192.0.2.10",),
    "exclude.cidrs": ("198.51.100.0/24",),
    "networks.pods": ("10.0.0.0/8", "fd12::/56"),
}


@pytest.mark.parametrize(
    ("address", "interface", "expected"),
    [
        ("192.0.2.10", "eth0", ("exclude.addresses", "192.0.2.10")),
        ("198.51.100.7", "eth0", ("exclude.cidrs", "198.51.100.0/24")),
        ("fd12::1", "eth0", ("networks.pods", "fd12::/56")),
        ("203.0.113.1", "stor0", ("exclude.interfaces", "stor*")),
        ("203.0.113.1", "eth0", ("", "")),
    ],
)
def test_the_key_that_excludes_an_address_is_named(
    address: str, interface: str, expected: tuple[str, str]
) -> None:
    assert excluder(address, interface, LISTS, ["!eth0", "stor*"]) == expected


@pytest.mark.parametrize(
    ("instead", "published", "expected"),
    [
        (None, False, "error exclusion-hits-primary"),
        ("198.51.100.1", False, "note exclusion-hits-primary"),
        ("198.51.100.1", True, "warning exclusion-hits-published"),
        (None, True, "error exclusion-hits-published"),
    ],
)
def test_an_exclusion_that_hits_is_as_bad_as_what_is_left(
    instead: str | None, published: bool, expected: str
) -> None:
    found = exclusion_finding(ETH0, ("exclude.cidrs", "192.0.2.0/24"), instead, published=published)
    assert told([found]) == [expected]


def test_settings_that_contradict_each_other_are_said() -> None:
    found = setting_findings(
        refused_name="node_1",
        static=["198.51.100.7", "203.0.113.7"],
        external=["192.0.2.10", "203.0.113.1"],
        public_networks=[ip_network("10.0.0.0/8"), ip_network("8.8.8.0/24")],
        lists=LISTS,
        on_host={"192.0.2.10"},
    )
    assert told(found) == [
        "warning hostname-refused",
        "warning static-excluded",
        "warning external-on-host",
        "warning public-not-global",
    ]


def test_the_worst_comes_first_and_nothing_twice() -> None:
    said = note("a", "one")
    worse = warning("b", "two")
    assert ordered([said, worse, said]) == [worse, said]
    assert [severity.value for severity in Severity] == ["error", "warning", "note"]
