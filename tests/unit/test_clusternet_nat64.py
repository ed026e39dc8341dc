"""Prefixes of NAT64, and where a cluster stands between the families."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.clusternet.families import Cluster
from tracker.clusternet.nat64 import (
    LENGTHS,
    WELL_KNOWN,
    Prefix,
    dns64_prefix,
    embed,
    is_clat,
    options,
    pref64_option,
)
from tracker.clusternet.transition import stage

LENGTH = st.sampled_from(LENGTHS)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [  # the examples of RFC 6052 section 2.4
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
    ],
)
def test_an_ipv4_address_lies_where_the_rfc_puts_it(prefix: str, expected: str) -> None:
    found = embed(IPv6Network(prefix), IPv4Address("192.0.2.33"))
    assert found == IPv6Address(expected)


@given(st.integers(0, (1 << 96) - 1), LENGTH, st.sampled_from(["192.0.0.170", "192.0.0.171"]))
def test_an_answer_of_a_dns64_tells_its_prefix(head: int, length: int, known: str) -> None:
    # Bits 64 to 71 are zero in every prefix that is longer (RFC 6052 section 2.2).
    value = (head << 32) & ~(0xFF << 56)
    prefix = IPv6Network((value >> 128 - length << 128 - length, length))
    found = dns64_prefix(embed(prefix, IPv4Address(known)))
    assert found is not None
    assert embed(found, IPv4Address(known)) == embed(prefix, IPv4Address(known))


def test_an_answer_that_no_dns64_made_tells_nothing() -> None:
    assert dns64_prefix(IPv6Address("2001:db8::1")) is None
    assert dns64_prefix(IPv6Address("64:ff9b::192.0.0.170")) == WELL_KNOWN


def pref64(lifetime: int, code: int, prefix: str) -> bytes:
    scaled = (lifetime << 3 | code).to_bytes(2, "big")
    return bytes([38, 2]) + scaled + IPv6Address(prefix).packed[:12]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (pref64(225, 0, "64:ff9b::"), "64:ff9b::/96"),
        (pref64(225, 3, "2001:db8:122::"), "2001:db8:122::/48"),
        (pref64(225, 5, "2001:db8::"), "2001:db8::/32"),
        (pref64(0, 0, "64:ff9b::"), None),
        (pref64(225, 6, "64:ff9b::"), None),
        (pref64(225, 0, "64:ff9b::")[:8], None),
        (bytes([25, 2]) + bytes(14), None),
    ],
)
def test_a_router_tells_its_prefix(option: bytes, expected: str | None) -> None:
    assert pref64_option(option) == (IPv6Network(expected) if expected else None)


@given(st.binary(max_size=64))
def test_options_end_where_they_make_no_sense(raw: bytes) -> None:
    found = options(raw)
    assert raw.startswith(b"".join(found))
    assert all(len(option) == option[1] * 8 > 0 for option in found)


@pytest.mark.parametrize(
    ("interface", "address", "expected"),
    [
        ("clat", None, True),
        ("v4-wlan0", "192.0.0.4", True),
        ("tun0", "192.0.0.1", True),
        ("tun0", "192.0.0.8", False),
        ("eth0", "2001:db8::1", False),
        ("clatter0", None, False),
    ],
)
def test_a_clat_is_known_by_name_or_address(
    interface: str, address: str | None, expected: bool
) -> None:
    assert is_clat(interface, address) is expected


BOTH = {"ipv4": "192.0.2.10", "ipv6": "2001:db8::10"}


def cluster(primary: list[str], pods: str = "", services: str = "", **values: Any) -> Cluster:
    return Cluster(
        pods=tuple(map(ip_network, pods.split())),
        services=tuple(map(ip_network, services.split())),
        primary={family: BOTH[family] for family in primary},
        **values,
    )


@pytest.mark.parametrize(
    ("given_", "now", "following"),
    [
        (cluster(["ipv4"], "10.0.0.0/16", "10.96.0.0/12"), "ipv4-only", "dual-stack"),
        (cluster(["ipv4", "ipv6"], "10.0.0.0/16", "10.96.0.0/12"), "between", "dual-stack"),
        (cluster(["ipv6"], "fd12::/56", "10.96.0.0/12"), "between", "dual-stack"),
        (
            cluster(["ipv4", "ipv6"], "10.0.0.0/16 fd12::/56", "10.96.0.0/12 fd13::/108"),
            "dual-stack",
            "ipv6-only",
        ),
        (cluster(["ipv6"], "fd12::/56", "fd13::/108"), "ipv6-only", None),
        (cluster([]), "unknown", None),
    ],
)
def test_a_cluster_stands_where_all_of_its_parts_stand(
    given_: Cluster, now: str, following: str | None
) -> None:
    found = stage(given_, list(given_.primary))
    assert (found.now, found.next) == (now, following)


def test_the_way_to_dual_stack_lists_each_part() -> None:
    given_ = cluster(["ipv4"], "10.0.0.0/16", "10.96.0.0/12", wanted=("ipv4",))
    assert stage(given_, ["ipv4", "ipv6"]).missing == (
        "nodes: this one has IPv6, and families does not want it",
        "pods: no range of IPv6 in networks.pods",
        "services: no range of IPv6 in networks.services",
    )
    assert stage(given_, ["ipv4"]).missing[0] == (
        "nodes: IPv6 is neither wanted (families) nor here"
    )


def test_the_way_to_ipv6_only_needs_nat64_and_a_clat() -> None:
    given_ = cluster(
        ["ipv6", "ipv4"],
        "fd12::/56 10.0.0.0/16",
        "fd13::/108 10.96.0.0/12",
        wanted=("ipv6", "ipv4"),
    )
    found = stage(given_, ["ipv4", "ipv6"])
    assert [line.partition(" noticed")[0] for line in found.missing] == ["no NAT64", "no CLAT"]
    whole = stage(given_, ["ipv4", "ipv6"], [Prefix(WELL_KNOWN, "route over eth0")], ["clat"])
    assert whole.missing == ()
    assert whole.nat64 == [{"prefix": "64:ff9b::/96", "source": "route over eth0"}]
    assert whole.clat == ["clat"]


def test_ipv6_only_wants_a_nat64() -> None:
    given_ = cluster(["ipv6"], "fd12::/56", "fd13::/108", wanted=("ipv6",))
    [line] = stage(given_, ["ipv6"]).missing
    assert line.startswith("no NAT64 noticed")
