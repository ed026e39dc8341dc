"""What the kernel announces, and what it keeps silent about: one test for each kind of change.

At every quiet point the state equals a fresh dump, the ranking equals that of the reference
engine, and the best address equals the one by the output of `ip`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.netns.following import Following

FIRST = "192.0.2.11"
SECOND = "198.51.100.11"
FIRST6 = "2001:db8:1::11"
SECOND6 = "2001:db8:2::11"


@pytest.fixture(autouse=True)
def _two_uplinks(host: Namespace, router: Namespace) -> None:
    """Addresses of both families on two links; no route."""
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")
    host.batch(
        [
            f"addr add {FIRST}/24 dev eth0",
            f"addr add {SECOND}/24 dev eth1",
            f"addr add {FIRST6}/64 dev eth0 nodad",
            f"addr add {SECOND6}/64 dev eth1 nodad",
        ]
    )


def add_routes(host: Namespace) -> None:
    """Default routes of both families over both links, the first one better."""
    host.batch(
        [
            "route add default via 192.0.2.1 metric 100",
            "route add default via 198.51.100.1 metric 200",
            "route add default via 2001:db8:1::1 metric 100",
            "route add default via 2001:db8:2::1 metric 200",
        ]
    )


@pytest.mark.both_loaders
def test_link_down_takes_the_routes_and_link_up_gives_some_back(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    add_routes(host)
    following = follow()
    following.expect(FIRST)
    following.expect(FIRST6, "ipv6")
    host.ip("link set eth0 down")
    following.expect(SECOND)
    following.expect(SECOND6, "ipv6")
    assert following.inferred(1) == 1
    host.ip("link set eth0 up")
    following.expect(SECOND)
    host.ip("route add default via 192.0.2.1 metric 100")
    following.expect(FIRST)


def test_ipv6_addresses_that_outlive_link_down(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.sysctl("ipv6/conf/eth0/keep_addr_on_down", 1)
    add_routes(host)
    following = follow()
    following.expect(FIRST6, "ipv6")
    host.ip("link set eth0 down")
    following.expect(SECOND6, "ipv6")
    host.ip("link set eth0 up")
    host.ip("route replace default via 2001:db8:1::1 metric 100")
    following.wait(FIRST6, "ipv6")


def test_link_down_without_a_word_about_ipv6_routes(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.sysctl("ipv6/route/skip_notify_on_dev_down", 1)
    add_routes(host)
    following = follow()
    following.expect(FIRST6, "ipv6")
    host.ip("link set eth0 down")
    following.expect(SECOND6, "ipv6")
    assert following.inferred(8) > 0


@pytest.mark.both_loaders
def test_carrier_loss_makes_a_route_worse_until_it_comes_back(
    host: Namespace, router: Namespace, follow: Callable[[], Following]
) -> None:
    add_routes(host)
    following = follow()
    following.expect(FIRST)
    router.ip("link set eth0 down")
    following.wait(SECOND)
    following.wait(SECOND6, "ipv6")
    router.ip("link set eth0 up")
    following.wait(FIRST)
    following.wait(FIRST6, "ipv6")


def test_carrier_loss_silently_deletes_nexthops_and_their_routes(
    host: Namespace, router: Namespace, follow: Callable[[], Following]
) -> None:
    host.batch(
        [
            "nexthop add id 1 via 192.0.2.1 dev eth0",
            "nexthop add id 2 via 2001:db8:1::1 dev eth0",
            "route add default nhid 1 metric 50",
            "route add ::/0 nhid 2 metric 50",
            "route add default via 198.51.100.1 metric 200",
            "route add default via 2001:db8:2::1 metric 200",
        ]
    )
    following = follow()
    following.expect(FIRST)
    following.expect(FIRST6, "ipv6")
    router.ip("link set eth0 down")
    following.wait(SECOND)
    following.wait(SECOND6, "ipv6")
    # They do not come back with the carrier.
    router.ip("link set eth0 up")
    host.wait(lambda: host.json("link show dev eth0")[0]["operstate"] == "UP", "carrier")
    following.expect(SECOND)
    following.expect(SECOND6, "ipv6")


def test_link_down_silently_deletes_nexthops_and_their_routes(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.batch(
        [
            "nexthop add id 1 via 192.0.2.1 dev eth0",
            "nexthop add id 2 via 198.51.100.1 dev eth1",
            "nexthop add id 3 group 1/2",
            "route add default nhid 3 metric 50",
            "route add default via 198.51.100.1 metric 200",
        ]
    )
    following = follow()
    following.expect(FIRST)
    host.ip("link set eth0 down")
    following.expect(SECOND)
    assert host.json("nexthop show") == [
        entry for entry in host.json("nexthop show") if entry.get("dev") != "eth0"
    ]


@pytest.mark.both_loaders
def test_deleting_a_nexthop_silently_deletes_ipv4_routes(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.batch(
        [
            "nexthop add id 1 via 192.0.2.1 dev eth0",
            "nexthop add id 2 via 2001:db8:1::1 dev eth0",
            "route add default nhid 1 metric 50",
            "route add ::/0 nhid 2 metric 50",
            "route add default via 198.51.100.1 metric 200",
            "route add default via 2001:db8:2::1 metric 200",
        ]
    )
    following = follow()
    following.expect(FIRST)
    host.ip("nexthop del id 1")
    following.expect(SECOND)
    assert following.inferred(3) > 0
    host.ip("nexthop del id 2")
    following.expect(SECOND6, "ipv6")


def test_deleting_the_preferred_source_deletes_its_routes(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.batch(
        [
            "addr add 203.0.113.7/32 dev lo",
            "route add default via 192.0.2.1 src 203.0.113.7 metric 50",
            "route add default via 198.51.100.1 metric 200",
        ]
    )
    following = follow()
    following.expect("203.0.113.7")
    host.ip("addr del 203.0.113.7/32 dev lo")
    following.expect(SECOND)


def test_deleting_the_preferred_source_silently_leaves_ipv6_routes_without_one(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.batch(
        [
            "addr add 2001:db8:7::7/128 dev lo nodad",
            "route add default via 2001:db8:1::1 src 2001:db8:7::7 metric 50",
            "route add default via 2001:db8:2::1 metric 200",
        ]
    )
    following = follow()
    following.expect("2001:db8:7::7", "ipv6")
    host.ip("addr del 2001:db8:7::7/128 dev lo")
    following.expect(FIRST6, "ipv6")
    # It is not named any more, even if it comes back.
    host.ip("addr add 2001:db8:7::7/128 dev lo nodad")
    following.expect(FIRST6, "ipv6")


@pytest.mark.both_loaders
def test_deleting_the_last_ipv4_address_silently_deletes_gateway_routes(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    add_routes(host)
    following = follow()
    following.expect(FIRST)
    host.ip(f"addr del {FIRST}/24 dev eth0")
    following.expect(SECOND)
    assert following.inferred(2) == 1
    # The routes are gone: the address alone does not bring the answer back.
    host.ip(f"addr add {FIRST}/24 dev eth0")
    following.expect(SECOND)


def test_a_secondary_address_is_promoted(host: Namespace, follow: Callable[[], Following]) -> None:
    host.sysctl("ipv4/conf/all/promote_secondaries", 1)
    host.ip("addr add 192.0.2.12/24 dev eth0")
    host.ip("addr add 192.0.2.13/24 dev eth0")
    add_routes(host)
    following = follow()
    following.expect(FIRST)
    host.ip(f"addr del {FIRST}/24 dev eth0")
    following.expect("192.0.2.12")
    host.ip("addr del 192.0.2.12/24 dev eth0")
    following.expect("192.0.2.13")


def test_secondary_addresses_go_with_their_primary_one(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.ip("addr add 192.0.2.12/24 dev eth0")
    add_routes(host)
    following = follow()
    following.expect(FIRST)
    host.ip(f"addr del {FIRST}/24 dev eth0")
    following.expect(SECOND)


@pytest.mark.parametrize(
    ("family", "leased", "own"),
    [("ipv4", "192.0.2.5/24", f"{FIRST}/24"), ("ipv6", "2001:db8:1::5/64", f"{FIRST6}/64")],
)
def test_an_address_is_deprecated_and_goes_when_its_lifetimes_end(
    family: str, leased: str, own: str, host: Namespace, follow: Callable[[], Following]
) -> None:
    host.sysctl("ipv4/conf/all/promote_secondaries", 1)
    host.ip(f"addr del {own} dev eth0")
    host.ip(f"addr add {leased} dev eth0 valid_lft 4 preferred_lft 2 nodad")
    host.ip(f"addr add {own} dev eth0 nodad")
    add_routes(host)
    following = follow()
    address = leased.partition("/")[0]
    following.expect(address, family)
    following.wait(own.partition("/")[0], family)
    assert address in host.addresses("eth0", 6 if family == "ipv6" else 4)
    host.wait(
        lambda: address not in host.addresses("eth0", 6 if family == "ipv6" else 4), "its end"
    )
    following.expect(own.partition("/")[0], family)


def test_a_tentative_address_counts_once_its_detection_has_ended(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.ip("addr flush dev eth0 scope global")
    host.ip("route add default via 2001:db8:2::1 metric 200")
    following = follow()
    following.expect(SECOND6, "ipv6")
    host.ip("addr add 2001:db8:1::99/64 dev eth0")
    host.ip("route add default via 2001:db8:1::1 metric 100")
    assert following.primary("ipv6") == SECOND6
    following.wait("2001:db8:1::99", "ipv6")


def test_an_address_that_somebody_else_has_never_counts(
    host: Namespace, router: Namespace, follow: Callable[[], Following]
) -> None:
    add_routes(host)
    router.ip("addr add 2001:db8:1::99/64 dev eth0 nodad")
    following = follow()
    host.ip("addr add 2001:db8:1::99/64 dev eth0")
    host.wait(lambda: host.json("-6 addr show dev eth0 dadfailed"), "the end of detection")
    following.expect(FIRST6, "ipv6")


@pytest.mark.both_loaders
def test_a_link_is_renamed(host: Namespace, follow: Callable[[], Following]) -> None:
    add_routes(host)
    following = follow()
    host.ip("link set eth0 down")
    host.ip("link set eth0 name lan0")
    host.ip("link set lan0 up")
    host.ip("route add default via 192.0.2.1 metric 100")
    following.expect(FIRST)
    assert following.session.decision().choices["ipv4"].interface == "lan0"
    # Its old name goes to the other link.
    host.ip("link set eth1 down")
    host.ip("link set eth1 name eth0")
    following.expect(FIRST)


@pytest.mark.both_loaders
def test_a_link_is_deleted(host: Namespace, follow: Callable[[], Following]) -> None:
    add_routes(host)
    following = follow()
    following.expect(FIRST)
    host.ip("link del eth0")
    following.expect(SECOND)
    following.expect(SECOND6, "ipv6")
    host.ip("link del eth1")
    following.expect(None)
    following.expect(None, "ipv6")
