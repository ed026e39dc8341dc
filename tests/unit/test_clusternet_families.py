"""Families and scopes that fit together, and sizes that Kubernetes takes."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from tracker.clusternet.families import Cluster, family_findings, scope_findings
from tracker.clusternet.finding import Finding
from tracker.clusternet.kubernetes import count_findings, pod_findings, service_findings
from tracker.clusternet.ranges import IPNetwork

PODS4, PODS6 = "10.244.0.0/16", "fd12:3456:789a::/56"
SERVICES4, SERVICES6 = "10.96.0.0/12", "fd12:3456:789b::/108"
NODE = {"ipv4": "192.0.2.10", "ipv6": "2001:db8::10"}


def cluster(pods: str = "", services: str = "", **values: Any) -> Cluster:
    return Cluster(
        pods=tuple(map(ip_network, pods.split())),
        services=tuple(map(ip_network, services.split())),
        **{"primary": NODE, **values},
    )


def told(findings: list[Finding]) -> list[str]:
    return [f"{finding.severity.value} {finding.code}" for finding in findings]


def networks(*texts: str) -> list[IPNetwork]:
    return [ip_network(text) for text in texts]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (cluster(f"{PODS4} {PODS6}", f"{SERVICES4} {SERVICES6}"), []),
        (cluster(PODS4, SERVICES4), []),
        (cluster(), []),
        (
            cluster(f"{PODS4} {PODS6}", SERVICES6, primary={"ipv4": "192.0.2.10"}),
            ["error family-node-lacks", "note family-pods-only", "warning family-order-node"],
        ),
        (cluster(PODS4, f"{SERVICES4} {SERVICES6}"), ["error family-pods-lack"]),
        (cluster(f"{PODS4} {PODS6}", SERVICES4), ["note family-pods-only"]),
        (cluster(f"{PODS6} {PODS4}", f"{SERVICES4} {SERVICES6}"), ["warning family-order-pods"]),
        (
            cluster(f"{PODS4} {PODS6}", f"{SERVICES4} {SERVICES6}", wanted=("ipv6", "ipv4")),
            ["warning family-order-node"],
        ),
        (
            cluster(
                f"{PODS4} {PODS6}",
                f"{SERVICES4} {SERVICES6}",
                primary={"ipv6": "2001:db8::10"},
                wanted=("ipv6",),
            ),
            ["error family-node-lacks"],
        ),
    ],
)
def test_services_decide_which_families_are_needed(given: Cluster, expected: list[str]) -> None:
    assert told(family_findings(given)) == expected


def test_a_family_that_is_not_wanted_is_to_be_added() -> None:
    [found] = family_findings(cluster("", SERVICES6, primary={}, wanted=("ipv4",)))
    assert found.text.endswith("this node has none; add ipv6 to families")


@pytest.mark.parametrize(
    ("given", "required", "expected"),
    [
        (cluster("2001:db8:1::/56", SERVICES6), "global", []),
        (cluster(PODS6, SERVICES6), "global", ["error ula-where-global"]),
        (cluster("2001:db8:1::/56", SERVICES6), "ula", ["error global-where-ula"] * 2),
        (cluster(PODS6, SERVICES6), "", ["note ula-pods-global-node"]),
        (
            cluster("2001:db8:1::/56", primary={"ipv6": "fd12:3456:789c::10"}),
            "",
            ["note global-pods-ula-node"],
        ),
        (cluster(PODS4, SERVICES4), "global", []),
        (cluster("fc12:3456:789a::/48", primary={}), "", ["warning ula-undefined"]),
        (cluster("fd00:10:244::/56", primary={}), "", ["note ula-not-random"]),
        (cluster("fd12:3456::/32", primary={}), "", ["note ula-not-random"]),
        (cluster("", "", primary={"ipv6": "fd00::2"}), "", []),
    ],
)
def test_unique_local_and_global_addresses_have_their_places(
    given: Cluster, required: str, expected: list[str]
) -> None:
    assert told(scope_findings(given, required)) == expected


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("10.96.0.0/12", []),
        ("10.0.0.0/11", ["error service-range-too-large"]),
        ("fd12:3456:789a::/108", []),
        ("fd12:3456:789a::/64", ["error service-range-too-large"]),
        ("10.96.0.0/28", []),
        ("10.96.0.0/29", ["error service-range-too-small"]),
        ("fd12::/125", ["error service-range-too-small"]),
    ],
)
def test_a_service_range_has_limits(network: str, expected: list[str]) -> None:
    assert told(service_findings(networks(network))) == expected


@pytest.mark.parametrize(
    ("network", "masks", "expected"),
    [
        ("10.244.0.0/16", {}, []),
        ("10.244.0.0/16", {"ipv4": 24}, ["note pod-range-nodes"]),
        ("10.244.0.0/25", {}, ["warning pod-range-too-small"]),
        ("10.244.0.0/25", {"ipv4": 24}, ["error pod-range-too-small"]),
        ("10.244.0.0/25", {"ipv4": 26}, ["note pod-range-nodes"]),
        ("10.0.0.0/7", {}, ["warning pod-range-too-large"]),
        ("fd12:3456:789a::/48", {}, []),
        ("fd12:3456::/47", {"ipv6": 64}, ["error pod-range-too-large"]),
        ("fd12:3456:789a::/64", {"ipv6": 80}, ["note pod-range-nodes"]),
    ],
)
def test_a_pod_range_is_shared_out_to_nodes(
    network: str, masks: dict[str, int], expected: list[str]
) -> None:
    assert told(pod_findings(networks(network), masks)) == expected


def test_room_for_nodes_is_counted() -> None:
    [found] = pod_findings(networks("10.244.0.0/16"), {"ipv4": 24})
    assert found.data["nodes"] == 256


def test_options_of_the_control_plane_take_one_range_of_a_family() -> None:
    [found] = count_findings("services", networks("10.0.0.0/24", "10.1.0.0/24", "fd12::/108"))
    assert (found.code, found.data["family"]) == ("services-several", "ipv4")
