"""Arithmetic of address ranges, against what the ipaddress module says of every pair."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations, islice

from hypothesis import given
from hypothesis import strategies as st

from tracker.clusternet.blocks import UNUSABLE, ipv6_kind, public
from tracker.clusternet.proposal import propose, usual
from tracker.clusternet.ranges import (
    IPNetwork,
    Range,
    families,
    free,
    inside,
    left,
    overlaps,
)


def _ipv4(pair: tuple[int, int]) -> IPNetwork:
    return IPv4Network((0x0A000000 | pair[0], pair[1]), strict=False)


def _ipv6(pair: tuple[int, int]) -> IPNetwork:
    return IPv6Network((0xFD << 120 | pair[0] << 64, pair[1]), strict=False)


# Few bits differ, so that networks meet each other often.
IPV4 = st.tuples(st.integers(0, 255), st.integers(20, 32)).map(_ipv4)
IPV6 = st.tuples(st.integers(0, 255), st.integers(52, 68)).map(_ipv6)
NETWORKS = st.lists(IPV4 | IPV6, max_size=12)


@given(NETWORKS)
def test_every_pair_that_overlaps_is_found_once(networks: list[IPNetwork]) -> None:
    ranges = [Range("other", network, str(n)) for n, network in enumerate(networks)]
    found = [(o.first.source, o.second.source, o.shared) for o in overlaps(ranges)]
    expected = {
        (a.source, b.source, max(a.network, b.network, key=lambda n: n.prefixlen))
        for a, b in combinations(ranges, 2)
        if a.network.version == b.network.version and a.network.overlaps(b.network)
    }
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(IPV4 | IPV6, IPV4 | IPV6)
def test_inside_is_a_subnet(network: IPNetwork, outer: IPNetwork) -> None:
    same = network.version == outer.version
    # Both are of one family where this is asked.
    assert inside(network, outer) == (same and network.subnet_of(outer))  # type: ignore[arg-type]


@given(IPV4, st.lists(IPV4, max_size=8))
def test_what_is_left_and_what_is_used_make_the_whole(
    network: IPNetwork, used: list[IPNetwork]
) -> None:
    remaining = {address for piece in left(network, used) for address in piece}
    taken = {address for piece in used for address in piece}
    assert remaining == set(network) - taken


@given(IPV4, st.lists(IPV4 | IPV6, max_size=8), st.integers(18, 32))
def test_a_free_range_is_one_that_nobody_uses(
    within: IPNetwork, used: list[IPNetwork], prefixlen: int
) -> None:
    found = list(free(within, used, prefixlen))
    every: list[IPNetwork] = []
    if prefixlen >= within.prefixlen:
        every += within.subnets(new_prefix=prefixlen)
    taken = [other for other in used if other.version == 4]
    assert found == [one for one in every if not any(one.overlaps(other) for other in taken)]


@given(IPV6, st.lists(IPV6, max_size=8))
def test_free_ranges_of_a_large_network_come_one_by_one(
    within: IPNetwork, used: list[IPNetwork]
) -> None:
    found = list(islice(free(within, used, 120), 5))
    assert len(set(found)) == len(found)
    assert all(inside(one, within) for one in found)
    assert not any(one.overlaps(other) for one in found for other in used)


def test_a_proposal_goes_on_in_the_next_network() -> None:
    within = [ip_network("10.0.0.0/23"), ip_network("10.8.0.0/23")]
    used = [ip_network("10.0.0.0/24"), ip_network("10.8.0.128/32")]
    assert list(map(str, propose(within, used, 24, 5))) == ["10.0.1.0/24", "10.8.1.0/24"]
    assert list(map(str, propose(within, used, 24, 1))) == ["10.0.1.0/24"]


def test_nothing_is_proposed_that_no_host_can_be_reached_at() -> None:
    for outer, prefixlen in (("0.0.0.0/0", 30), ("::/0", 64), ("fe00::/7", 64)):
        for found in propose([ip_network(outer)], [], prefixlen, 3):
            assert not any(
                found.overlaps(block) for block in UNUSABLE if block.version == found.version
            )


def test_a_route_for_everything_says_nothing_of_what_is_free() -> None:
    within = [ip_network("10.0.0.0/23")]
    routes = [ip_network("10.0.0.0/8"), ip_network("10.0.0.0/24")]
    assert list(map(str, propose(within, [], 24, 5, routes))) == ["10.0.1.0/24"]
    assert propose(within, routes[:1], 24, 5) == []


def test_private_networks_are_usual_and_unique_local_ones_are_random() -> None:
    assert [str(n) for n in usual(24, 0)] == ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
    assert [str(n) for n in usual(64, 0x123456789A)] == ["fd12:3456:789a::/48"]


def test_public_space_is_what_no_registry_sets_apart() -> None:
    assert public(ip_network("10.0.0.0/8")) == []
    assert public(ip_network("2001:db8::/32")) == []
    assert public(ip_network("fd00::/8")) == []
    assert public(ip_network("11.0.0.0/8")) == [ip_network("11.0.0.0/8")]
    assert public(ip_network("2600:1f00::/40")) == [ip_network("2600:1f00::/40")]
    assert [str(n) for n in public(ip_network("172.0.0.0/11"))] == ["172.0.0.0/12"]


def test_kinds_and_families() -> None:
    assert [ipv6_kind(ip_network(n)) for n in ("fd12::/48", "2001:db8::/48", "fe80::/10")] == [
        "ula",
        "global",
        "",
    ]
    mixed = [ip_network(n) for n in ("fd00::/8", "10.0.0.0/8", "fd01::/16")]
    assert families(mixed) == ("ipv6", "ipv4")
