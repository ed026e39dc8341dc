"""Selections within a VRF, and ways over links that not every kernel has, on real devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tests.netns.selecting import Selecting, selecting
from tracker.model import Reject, State

if TYPE_CHECKING:
    from tests.tiers import Tier

FIRST, SECOND = "192.0.2.11", "198.51.100.11"
FIRST6 = "2001:db8:1::11"
TARGET = "203.0.113.7"

IN_RED = '[select]\nvrf = "red"\nfallback = "none"\n'
TO = f'[select]\nmode = "route-to"\nroute_to = ["{TARGET}"]\n'


@pytest.fixture(autouse=True)
def two(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks."""
    host.sysctl("ipv6/conf/default/accept_dad", 0)
    for link in ("eth1", "eth2"):
        connect(host, link, router, link)
    host.batch([f"addr add {FIRST}/24 dev eth1", f"addr add {SECOND}/24 dev eth2"])
    return host


def vrf(name: str, table: int, port: str, gateway: str) -> list[str]:
    """A VRF with a port and a default route over it."""
    return [
        f"link add {name} type vrf table {table}",
        f"link set {name} up",
        f"link set {port} master {name}",
        f"route add default via {gateway} table {table}",
    ]


def rejects(session: Selecting) -> dict[str, Reject]:
    rows = session.source.engine.rows(0, "ipv4")
    return {row.address: row.reject for row in rows}


def test_a_selection_follows_its_vrf_by_name(two: Namespace, tier: Tier) -> None:
    with selecting(two, tier, IN_RED) as session:
        assert session.choice().state is State.NONE
        assert session.choice().reason.startswith(
            "no default route in table of a VRF that is not there"
        )
        two.batch(vrf("blue", 200, "eth2", "198.51.100.1"))
        two.batch(vrf("red", 100, "eth1", "192.0.2.1"))
        choice = session.expect(FIRST)
        assert choice.reason == "default-route metric 0"
        assert session.session.policies[""].table == 100
        assert rejects(session)[SECOND] is Reject.OTHER_VRF
        # Enslaving takes the global IPv6 addresses of a port away, so one comes now.
        two.ip(f"addr add {FIRST6}/64 dev eth1 nodad")
        two.ip("route add default via 2001:db8:1::1 dev eth1 table 100")
        session.expect(FIRST6, "ipv6")

        two.ip("link del red")
        lost = f"ipv4: default route lost, {FIRST} stays"
        session.wait(lambda choice: lost in choice.warnings)
        assert session.choice().address == FIRST

        two.batch(vrf("red", 300, "eth1", "192.0.2.1"))
        session.wait(lambda choice: choice.reason == "default-route metric 0")
        assert session.choice().address == FIRST
        assert session.session.policies[""].table == 300

        # The name goes to another one.
        two.batch(["link set blue down", "link set red down", "link set red name other"])
        two.batch(["link set blue name red", "link set red up"])
        two.ip("route replace default via 198.51.100.1 table 200")
        session.expect(SECOND)
        assert rejects(session)[FIRST] is Reject.OTHER_VRF


def test_a_way_is_looked_up_within_the_vrf(two: Namespace, tier: Tier) -> None:
    two.ip("route add default via 198.51.100.1")
    with selecting(two, tier, TO + 'vrf = "red"\n') as session:
        assert f"ipv4: route-to {TARGET}: the VRF is not there" in session.choice().warnings
        two.batch(vrf("red", 100, "eth1", "192.0.2.1"))
        session.expect(FIRST)
        session.rest()
        assert session.lookup is not None
        asked = len(session.lookup.asked)
        two.batch(["link add blue type vrf table 200", "link set blue up", "link del blue"])
        # Behind all of that; the source is another one of the same link.
        two.ip("addr add 192.0.2.12/24 dev eth1")
        two.ip(f"route add {TARGET}/32 via 192.0.2.1 src 192.0.2.12 vrf red")
        session.expect("192.0.2.12")
        # The address and the route, each at most once.
        assert len(session.lookup.asked) - asked <= 2

        two.ip("link del red")
        gone = f"ipv4: route-to {TARGET}: the VRF is not there, what was found before stays"
        session.wait(lambda choice: gone in choice.warnings)
        assert session.choice().address == "192.0.2.12"
        two.batch(vrf("red", 300, "eth1", "192.0.2.1"))
        session.expect(FIRST)


def test_a_way_goes_with_its_link_into_a_vrf_without_a_word(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default via 198.51.100.1",
            "route add 203.0.113.0/24 via 192.0.2.1",
            "link add red type vrf table 100",
            "link set red up",
        ]
    )
    with selecting(two, tier, TO) as session:
        session.expect(FIRST)
        session.rest()
        two.ip("link set eth1 master red")
        session.expect(SECOND)


def test_a_way_over_a_vlan_goes_with_the_link_below(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default via 198.51.100.1",
            "link add link eth1 name eth1.5 type vlan id 5",
            "link set eth1.5 up",
            "addr add 192.0.3.11/24 dev eth1.5",
            "route add 203.0.113.0/24 via 192.0.3.1",
        ]
    )
    with selecting(two, tier, TO) as session:
        session.expect("192.0.3.11")
        session.rest()
        two.ip("link set eth1 down")
        session.expect(SECOND)


def test_a_way_over_a_bond_stays_when_a_port_fails(
    two: Namespace, router: Namespace, tier: Tier
) -> None:
    two.ip("link add uplink type bond mode active-backup miimon 10")
    for port in ("eth1", "eth2"):
        two.batch([f"addr flush dev {port}", f"link set {port} down"])
        two.ip(f"link set {port} master uplink")
    two.batch(["link set uplink up", f"addr add {FIRST}/24 dev uplink"])
    two.wait(lambda: two.json("link show uplink")[0]["operstate"] == "UP", "carrier")
    two.ip("route add default via 192.0.2.1")
    with selecting(two, tier, TO) as session:
        assert session.expect(FIRST).reason == f"mode route-to: source towards {TARGET}"
        session.rest()
        assert session.lookup is not None
        asked = len(session.lookup.asked)
        router.ip("link set eth1 down")
        two.wait(lambda: two.json("link show eth1")[0]["operstate"] == "DOWN", "a failed port")
        two.ip(f"route add {TARGET}/32 via 192.0.2.1")
        # There is one: the mode asks.
        session.wait(lambda _: len(session.lookup.asked) > asked)  # type: ignore[union-attr]
        session.rest()
        assert len(session.lookup.asked) == asked + 1
        assert session.choice().address == FIRST
