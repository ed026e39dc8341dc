"""Ranges that overlap, and space that is not theirs."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from tracker.clusternet.finding import Finding, Severity
from tracker.clusternet.overlap import overlap_findings, space_findings
from tracker.clusternet.ranges import Range


def at(use: str, network: str, *, foreign: bool = False) -> Range:
    return Range(use, ip_network(network), f"from {use}", foreign)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.severity.value, finding.code) for finding in findings]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (at("pods", "10.0.0.0/8"), at("services", "10.96.0.0/12"), "error overlap-pods-services"),
        (at("services", "10.96.0.0/12"), at("pods", "10.0.0.0/8"), "error overlap-pods-services"),
        (at("nodes", "10.0.1.0/24"), at("pods", "10.0.0.0/16"), "error overlap-nodes-pods"),
        (at("nodes", "fd00::/48"), at("services", "fd00::/108"), "error overlap-nodes-services"),
        (at("pods", "10.0.0.0/16"), at("pods", "10.0.8.0/24"), "warning overlap-pods-pods"),
        (at("pods", "10.0.0.0/16"), at("host", "10.0.8.0/24"), "error overlap-host-pods"),
        (at("services", "10.0.0.0/16"), at("host", "10.0.0.0/8"), "error overlap-host-services"),
        (
            at("pods", "172.16.0.0/12"),
            at("host", "172.17.0.0/16", foreign=True),
            "warning overlap-host-pods",
        ),
        (at("pods", "10.0.0.0/16"), at("other", "10.0.0.0/16"), "error overlap-other-pods"),
        (at("services", "fd00::/64"), at("other", "fd00::/48"), "error overlap-other-services"),
        (at("nodes", "10.0.0.0/16"), at("other", "10.0.0.0/16"), "warning overlap-other-nodes"),
        (at("nodes", "10.0.0.0/16"), at("host", "10.0.0.0/24"), ""),
        (at("other", "10.0.0.0/16"), at("host", "10.0.0.0/24"), ""),
        (at("pods", "10.0.0.0/16"), at("services", "10.1.0.0/16"), ""),
        (at("pods", "10.0.0.0/8"), at("services", "fd00::/108"), ""),
    ],
)
def test_what_an_overlap_means_follows_from_the_uses(
    first: Range, second: Range, expected: str
) -> None:
    found = [" ".join(pair) for pair in told(overlap_findings([first, second]))]
    assert found == ([expected] if expected else [])


def test_a_line_says_what_overlaps_where_and_what_to_do() -> None:
    [found] = overlap_findings([at("pods", "10.0.0.0/8"), at("services", "10.96.0.0/12")])
    assert found.text == (
        "pods 10.0.0.0/8 (from pods) overlap services 10.96.0.0/12 (from services): an address may "
        "belong to a pod and to a service; give the services another range"
    )
    assert found.data["shared"] == "10.96.0.0/12"
    assert [entry["use"] for entry in found.data["ranges"]] == ["pods", "services"]


@pytest.mark.parametrize(
    ("network", "own", "expected"),
    [
        ("10.0.0.0/8", [], []),
        ("100.64.0.0/10", [], []),
        ("240.0.0.0/8", [], []),
        ("11.0.0.0/8", [], [("error", "range-public")]),
        ("172.0.0.0/8", [], [("error", "range-public")]),
        ("11.0.0.0/8", ["11.0.0.0/8"], []),
        ("2600:1f00::/40", [], [("warning", "range-public")]),
        ("2600:1f00::/40", ["2600::/12"], []),
        ("fd12:3456:789a::/48", [], []),
        ("169.254.0.0/16", [], [("error", "range-unusable")]),
        ("127.1.0.0/16", [], [("error", "range-unusable")]),
        ("fe80::/64", [], [("error", "range-unusable")]),
    ],
)
def test_space_of_others_is_not_for_pods(
    network: str, own: list[str], expected: list[tuple[str, str]]
) -> None:
    ours = [ip_network(text) for text in own]
    assert told(space_findings([at("pods", network)], ours)) == expected


def test_the_public_part_of_a_range_is_named_shortly() -> None:
    [found] = space_findings([at("services", "172.0.0.0/8")], [])
    assert found.severity is Severity.ERROR
    assert "(172.0.0.0/12, 172.32.0.0/11, 172.64.0.0/10, 172.128.0.0/9)" in found.text
    assert found.data["parts"] == [
        "172.0.0.0/12",
        "172.32.0.0/11",
        "172.64.0.0/10",
        "172.128.0.0/9",
    ]


def test_networks_of_hosts_may_be_anywhere() -> None:
    assert space_findings([at("host", "11.0.0.0/8"), at("nodes", "11.0.0.0/8")], []) == []
