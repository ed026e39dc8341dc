"""Kinds of links that not every kernel has: VRF, bond, VLAN, dummy.

At every quiet point the state equals a fresh dump, the ranking equals that of the reference
engine, and the best address equals the one by the output of `ip`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tracker.model import Reject

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.netns.following import Following

FIRST = "192.0.2.11"
SECOND = "198.51.100.11"
FIRST6 = "2001:db8:1::11"
OTHER_TABLE = 1
"""The selection of tests/soak/check.py that looks at table 100."""


@pytest.fixture(autouse=True)
def _two_uplinks(host: Namespace, router: Namespace) -> None:
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")


def add_first(host: Namespace, link: str) -> None:
    host.batch(
        [
            f"addr add {FIRST}/24 dev {link}",
            f"addr add {FIRST6}/64 dev {link} nodad",
            "route add default via 192.0.2.1 metric 100",
            "route add default via 2001:db8:1::1 metric 100",
        ]
    )


def add_second(host: Namespace) -> None:
    host.batch(
        [
            f"addr add {SECOND}/24 dev eth1",
            "route add default via 198.51.100.1 metric 200",
        ]
    )


def rejects(following: Following) -> dict[str, Reject]:
    rows = following.session.engine.rows(0, "ipv4")
    return {row.address: row.reject for row in rows}


def test_enslaving_to_a_vrf_takes_the_routes_silently(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    add_first(host, "eth0")
    add_second(host)
    host.ip("link add red type vrf table 100")
    host.ip("link set red up")
    following = follow()
    following.expect(FIRST)

    host.ip("link set eth0 master red")
    following.expect(SECOND)
    assert following.inferred(5) > 0
    assert rejects(following)[FIRST] is Reject.OTHER_VRF

    host.ip("route add default via 192.0.2.1 dev eth0 table 100")
    following.expect(SECOND)
    other = following.session.engine.view(OTHER_TABLE, "ipv4").best
    assert other is not None
    assert other.address == FIRST

    host.ip("link set eth0 nomaster")
    following.expect(SECOND)
    host.ip("route add default via 192.0.2.1 metric 100")
    following.expect(FIRST)


def test_a_vrf_that_goes_sets_its_ports_free(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.ip("link add red type vrf table 100")
    host.ip("link set red up")
    host.ip("link set eth0 master red")
    host.ip(f"addr add {FIRST}/24 dev eth0")
    add_second(host)
    following = follow()
    following.expect(SECOND)
    assert rejects(following)[FIRST] is Reject.OTHER_VRF

    host.ip("link del red")
    host.ip("route add default via 192.0.2.1 metric 100")
    following.expect(FIRST)


def test_a_bond_keeps_its_address_when_a_port_fails(
    host: Namespace, router: Namespace, follow: Callable[[], Following]
) -> None:
    host.ip("link add uplink type bond mode active-backup miimon 10")
    for port in ("eth0", "eth1"):
        host.ip(f"link set {port} down")
        host.ip(f"link set {port} master uplink")
    host.ip("link set uplink up")
    host.wait(lambda: active_port(host), "an active port")
    add_first(host, "uplink")
    following = follow()
    following.wait(FIRST)
    following.expect(FIRST6, "ipv6")

    failed = active_port(host)
    router.ip(f"link set {failed} down")
    host.wait(lambda: active_port(host) not in {None, failed}, "the other port")
    following.expect(FIRST)
    following.expect(FIRST6, "ipv6")
    changes = following.session.decision().generation
    router.ip(f"link set {failed} up")
    host.ip(f"link set {failed} nomaster")
    following.expect(FIRST)
    assert following.session.decision().generation == changes


def active_port(host: Namespace) -> str | None:
    (bond,) = host.json("link show dev uplink")
    port: str | None = bond["linkinfo"]["info_data"].get("active_slave")
    return port


def test_an_address_moves_from_a_port_to_its_bond(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    add_first(host, "eth0")
    following = follow()
    following.expect(FIRST)

    host.ip("link add uplink type bond mode active-backup miimon 10")
    host.ip("link set eth0 down")
    host.ip("link set eth0 master uplink")
    host.ip(f"addr del {FIRST}/24 dev eth0")
    host.ip("link set uplink up")
    add_first(host, "uplink")
    following.wait(FIRST)


def test_a_vlan_goes_down_with_the_link_below(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    host.ip("link add link eth0 name eth0.5 type vlan id 5")
    host.ip("link set eth0.5 up")
    add_first(host, "eth0.5")
    add_second(host)
    following = follow()
    following.expect(FIRST)

    host.ip("link set eth0 down")
    following.expect(SECOND)
    host.ip("link set eth0 up")
    following.wait(SECOND)
    host.ip("route add default via 192.0.2.1 metric 100")
    following.wait(FIRST)

    host.ip("link del eth0.5")
    following.expect(SECOND)


def test_a_dummy_counts_where_a_default_route_names_its_address(
    host: Namespace, follow: Callable[[], Following]
) -> None:
    add_second(host)
    host.ip("link add node type dummy")
    host.ip("link set node up")
    host.ip("addr add 203.0.113.11/32 dev node")
    following = follow()
    following.expect(SECOND)
    assert rejects(following)["203.0.113.11"] is Reject.EXCLUDED_INTERFACE

    host.ip("route add default via 198.51.100.1 metric 50 src 203.0.113.11")
    following.expect("203.0.113.11")
    host.ip("addr del 203.0.113.11/32 dev node")
    following.expect(SECOND)
