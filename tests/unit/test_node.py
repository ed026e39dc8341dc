"""The node document, key by key."""

from __future__ import annotations

from typing import Any

from tracker.clock import rfc3339
from tracker.config import Networks
from tracker.model import Cause, Choice, Decision, Reject, Row, State, Tier
from tracker.node import Scopes, node_document


def choice(family: str, address: str | None, **other: Any) -> Choice:
    made = Choice(
        family=family,
        address=address,
        state=State.STABLE if address else State.NONE,
        stale=False,
        prefixlen=24 if address else 0,
        interface="bond0" if address else "",
        ifindex=4 if address else 0,
        reason="default-route metric 100" if address else "no default route in table main",
        warnings=(),
        ambiguous=False,
    )
    return made._replace(**other)


def extra(address: str, rank: int, **other: Any) -> Row:
    made = Row(
        family="ipv6" if ":" in address else "ipv4",
        address=address,
        prefixlen=24,
        peer="",
        ifindex=5,
        interface="eth1",
        flags=0,
        proto=0,
        cstamp=0,
        reject=Reject.NONE,
        own_reject=Reject.NONE,
        tier=Tier.ROUTE,
        carrier=True,
        rank=rank,
        values=(),
    )
    return made._replace(**other)


def decision(*choices: Choice, **other: Any) -> Decision:
    made = Decision(
        generation=7,
        time_ns=1_796_032_800_000_001_999,
        hostname="n1",
        families=("ipv4", "ipv6"),
        choices={c.family: c for c in choices},
        selections={},
        cause=Cause("RTM_NEWADDR 192.0.2.10/24 bond0", "NetworkManager", 812, "process"),
        warnings=(),
    )
    return made._replace(**other)


def test_the_document_is_the_one_of_the_schema() -> None:
    document = node_document(
        decision(choice("ipv4", "192.0.2.10"), choice("ipv6", None)), Networks()
    )
    assert document == {
        "schema": "addrtracker.node/v1",
        "hostname": "n1",
        "generation": 7,
        "time": "2026-11-30T10:00:00.000001Z",
        "stale": False,
        "families": ["ipv4", "ipv6"],
        "primary": {"ipv4": "192.0.2.10", "ipv6": None},
        "state": {"ipv4": "stable", "ipv6": "none"},
        "ips": [
            {
                "ip": "192.0.2.10",
                "family": "ipv4",
                "scope": "Unknown",
                "primary": True,
                "interface": "bond0",
                "ifindex": 4,
                "prefixlen": 24,
                "reason": "default-route metric 100",
            }
        ],
        "addresses": [
            {"type": "InternalIP", "address": "192.0.2.10"},
            {"type": "Hostname", "address": "n1"},
        ],
        "preferredAddresses": [
            {"type": "Hostname", "address": "n1"},
            {"type": "InternalIP", "address": "192.0.2.10"},
        ],
        "hostIPs": ["192.0.2.10"],
        "selections": {},
        "cause": {
            "change": "RTM_NEWADDR 192.0.2.10/24 bond0",
            "process": "NetworkManager",
            "pid": 812,
            "attribution": "process",
        },
        "warnings": [],
    }
    assert list(document)[:5] == ["schema", "hostname", "generation", "time", "stale"]


def test_families_come_in_the_wanted_order() -> None:
    both = decision(
        choice("ipv4", "10.0.0.1"), choice("ipv6", "2001:db8::1"), families=("ipv6", "ipv4")
    )
    document = node_document(both, Networks())
    assert [ip["ip"] for ip in document["ips"]] == ["2001:db8::1", "10.0.0.1"]
    assert document["hostIPs"] == ["2001:db8::1", "10.0.0.1"]
    assert [a["address"] for a in document["addresses"]] == ["2001:db8::1", "10.0.0.1", "n1"]


def test_a_family_that_is_not_wanted_is_null() -> None:
    document = node_document(decision(choice("ipv4", "10.0.0.1"), families=("ipv4",)), Networks())
    assert document["primary"] == {"ipv4": "10.0.0.1", "ipv6": None}
    assert document["state"] == {"ipv4": "stable", "ipv6": "none"}
    assert document["families"] == ["ipv4"]


def test_nothing_at_all_is_a_document_too() -> None:
    document = node_document(
        decision(choice("ipv4", None), choice("ipv6", None), cause=None), Networks()
    )
    assert document["ips"] == []
    assert document["hostIPs"] == []
    assert document["cause"] is None
    assert document["addresses"] == [{"type": "Hostname", "address": "n1"}]


def test_a_lost_family_makes_the_document_stale() -> None:
    lost = choice("ipv4", "10.0.0.1", state=State.LOST, stale=True)
    document = node_document(decision(lost, choice("ipv6", None)), Networks())
    assert document["stale"] is True
    assert document["primary"]["ipv4"] == "10.0.0.1"
    assert document["state"]["ipv4"] == "lost"


def test_private_ranges_are_internal_by_default() -> None:
    scopes = Scopes(Networks())
    internal = ["10.1.2.3", "172.31.0.1", "192.168.255.1", "100.127.0.1", "fd00::1", "fc00::1"]
    unknown = ["172.32.0.1", "100.128.0.1", "192.0.2.1", "2001:db8::1", "fe00::1"]
    assert {scopes.scope(address) for address in internal} == {"Internal"}
    assert {scopes.scope(address) for address in unknown} == {"Unknown"}


def test_configured_internal_networks_take_the_place_of_the_private_ranges() -> None:
    scopes = Scopes(Networks(internal=("192.0.2.0/24", "2001:db8::/32")))
    assert scopes.scope("192.0.2.1") == "Internal"
    assert scopes.scope("2001:db8::1") == "Internal"
    assert scopes.scope("10.0.0.1") == "Unknown"


def test_public_networks_are_what_is_configured() -> None:
    scopes = Scopes(Networks(public=("198.51.100.0/24", "10.9.0.0/16")))
    assert scopes.scope("198.51.100.7") == "Public"
    assert scopes.scope("10.9.0.1") == "Public"
    assert scopes.scope("10.8.0.1") == "Internal"


def test_of_networks_within_each_other_the_inner_one_decides() -> None:
    scopes = Scopes(
        Networks(
            internal=("2001:db8::/32", "10.9.9.0/24"), public=("2001:db8:1::/48", "10.9.0.0/16")
        )
    )
    assert scopes.scope("2001:db8::1") == "Internal"
    assert scopes.scope("2001:db8:1::1") == "Public"
    assert scopes.scope("10.9.1.1") == "Public"
    assert scopes.scope("10.9.9.1") == "Internal"


def test_external_addresses_are_external_ips_on_no_interface() -> None:
    networks = Networks(external=("203.0.113.9", "2001:db8:f::9"))
    document = node_document(decision(choice("ipv4", "10.0.0.1"), choice("ipv6", None)), networks)
    assert document["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "ExternalIP", "address": "203.0.113.9"},
        {"type": "ExternalIP", "address": "2001:db8:f::9"},
        {"type": "Hostname", "address": "n1"},
    ]
    external = document["ips"][1]
    assert (external["ip"], external["scope"], external["interface"]) == (
        "203.0.113.9",
        "External",
        None,
    )
    assert not external["primary"]
    # As Kubernetes has it: an InternalIP first, else an ExternalIP, one of each family.
    assert document["hostIPs"] == ["10.0.0.1", "2001:db8:f::9"]


def test_a_node_of_ipv6_alone_has_one_internal_ip() -> None:
    document = node_document(
        decision(choice("ipv6", "2001:db8::1"), families=("ipv6",)), Networks()
    )
    assert document["families"] == ["ipv6"]
    assert document["addresses"] == [
        {"type": "InternalIP", "address": "2001:db8::1"},
        {"type": "Hostname", "address": "n1"},
    ]
    assert document["hostIPs"] == ["2001:db8::1"]


def test_the_order_of_families_is_the_wanted_one_whichever_came_first() -> None:
    ipv4, ipv6 = choice("ipv4", "10.0.0.1"), choice("ipv6", "2001:db8::1")
    for order in (("ipv4", "ipv6"), ("ipv6", "ipv4")):
        documents = [
            node_document(decision(*arrived, families=order), Networks())
            for arrived in ((ipv4, ipv6), (ipv6, ipv4))
        ]
        assert documents[0] == documents[1]
        assert documents[0]["hostIPs"][0] == documents[0]["primary"][order[0]]


def test_preferred_types_order_what_the_api_server_connects_to() -> None:
    networks = Networks(external=("203.0.113.9",))
    both = decision(choice("ipv4", "10.0.0.1"), choice("ipv6", "2001:db8::1"))

    def preferred(*types: str) -> list[str]:
        document = node_document(both, networks, types)
        return [entry["address"] for entry in document["preferredAddresses"]]

    # As kubeadm and metrics-server have it.
    assert preferred("InternalIP", "ExternalIP", "Hostname") == [
        "10.0.0.1",
        "2001:db8::1",
        "203.0.113.9",
        "n1",
    ]
    assert preferred("ExternalDNS", "ExternalIP", "ExternalIP") == ["203.0.113.9"]
    assert preferred("InternalDNS") == []


def test_extra_addresses_follow_the_primary_ones() -> None:
    ipv4 = choice(
        "ipv4",
        "10.0.0.1",
        extra=(
            extra("10.0.0.1", 1, interface="eth9"),
            extra("10.0.0.2", 2),
            extra("203.0.113.2", 3),
            extra("10.0.0.2", 4, interface="eth2"),
        ),
    )
    document = node_document(decision(ipv4, choice("ipv6", "2001:db8::1")), Networks())
    assert [a["address"] for a in document["addresses"]] == [
        "10.0.0.1",
        "2001:db8::1",
        "10.0.0.2",
        "203.0.113.2",
        "n1",
    ]
    assert [(ip["ip"], ip["primary"], ip["scope"]) for ip in document["ips"]] == [
        ("10.0.0.1", True, "Internal"),
        ("2001:db8::1", True, "Unknown"),
        ("10.0.0.2", False, "Internal"),
        ("203.0.113.2", False, "Unknown"),
    ]
    assert document["ips"][2]["interface"] == "eth1"
    assert document["ips"][2]["reason"] == "extra, rank 2"
    # Pods still have one of each family.
    assert document["hostIPs"] == ["10.0.0.1", "2001:db8::1"]
    assert document["primary"] == {"ipv4": "10.0.0.1", "ipv6": "2001:db8::1"}


def test_named_selections_have_their_own_answers() -> None:
    storage = {"ipv4": choice("ipv4", "10.5.0.1", warnings=("ipv4: ambiguous",))}
    document = node_document(
        decision(choice("ipv4", "192.0.2.1"), selections={"storage": storage}), Networks()
    )
    found = document["selections"]["storage"]
    assert found["primary"] == {"ipv4": "10.5.0.1", "ipv6": None}
    assert found["state"] == {"ipv4": "stable", "ipv6": "none"}
    assert [ip["scope"] for ip in found["ips"]] == ["Internal"]
    assert found["warnings"] == ["ipv4: ambiguous"]
    assert document["warnings"] == []


def test_a_named_selection_may_have_extra_addresses() -> None:
    bgp = {"ipv4": choice("ipv4", "10.5.0.1", extra=(extra("10.5.0.2", 2),))}
    document = node_document(
        decision(choice("ipv4", "192.0.2.1"), selections={"bgp": bgp}), Networks()
    )
    found = document["selections"]["bgp"]
    assert [(ip["ip"], ip["primary"]) for ip in found["ips"]] == [
        ("10.5.0.1", True),
        ("10.5.0.2", False),
    ]
    # The node's own list knows nothing of other purposes.
    assert [a["address"] for a in document["addresses"]] == ["192.0.2.1", "n1"]


def test_a_warning_is_said_once() -> None:
    warned = choice("ipv4", "192.0.2.1", warnings=("a", "b"))
    document = node_document(decision(warned, warnings=("a", "c")), Networks())
    assert document["warnings"] == ["a", "c", "b"]


def test_time_has_microseconds_and_a_z() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00.000000Z"
    assert rfc3339(999_999_999) == "1970-01-01T00:00:00.999999Z"
