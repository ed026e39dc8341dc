"""Mode route-to asks the kernel whenever the answer may be another one, and only then.

What the kernel does without a word about the route is done here to a real one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tests.netns.selecting import Selecting, selecting

if TYPE_CHECKING:
    from tests.tiers import Tier

FIRST, SECOND = "192.0.2.11", "198.51.100.11"
FIRST6, SECOND6 = "2001:db8:1::11", "2001:db8:2::11"
TARGET, TARGET6 = "203.0.113.7", "2001:db8:f::7"

IPV4 = f'[select]\nmode = "route-to"\nroute_to = ["{TARGET}"]\n'
IPV6 = f'[select]\nmode = "route-to"\nroute_to = ["{TARGET6}"]\n'
BOTH = f'[select]\nmode = "route-to"\nroute_to = ["{TARGET}", "{TARGET6}"]\n'


@pytest.fixture
def two(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks, each with an address of both families."""
    host.sysctl("ipv6/conf/default/accept_dad", 0)
    for link in ("eth1", "eth2"):
        connect(host, link, router, link)
    host.batch(
        [
            f"addr add {FIRST}/24 dev eth1",
            f"addr add {SECOND}/24 dev eth2",
            f"addr add {FIRST6}/64 dev eth1 nodad",
            f"addr add {SECOND6}/64 dev eth2 nodad",
        ]
    )
    host.wait(lambda: is_ready(host), "carrier")
    return host


def is_ready(host: Namespace) -> bool:
    states = {link["operstate"] for link in host.json("link show") if link["ifname"] != "lo"}
    tentative = [link for link in host.json("-6 addr show tentative") if link.get("addr_info")]
    return states == {"UP"} and not tentative


def asked(session: Selecting) -> int:
    assert session.lookup is not None
    return len(session.lookup.asked)


UNRELATED = {
    "addresses of another link": [
        "addr add 198.51.100.12/24 dev eth2",
        "addr add 2001:db8:2::12/64 dev eth2 nodad",
        f"addr del {SECOND}/24 dev eth2",
        f"addr del {SECOND6}/64 dev eth2",
    ],
    "another link": [
        "link set eth2 down",
        "link set eth2 up",
        "link set eth2 down",
        "link set eth2 name uplink2",
    ],
    "links that come and go": [
        "link add veth7 type veth peer name veth8",
        "link set veth7 up",
        "link set veth8 up",
        "addr add 10.7.0.1/24 dev veth7",
        "link add br7 type bridge",
        "link set veth8 master br7",
        "link del veth7",
    ],
    "nexthop objects that no route uses": [
        "nexthop add id 1 via 192.0.2.1 dev eth1",
        "nexthop add id 2 via 198.51.100.1 dev eth2",
        "nexthop add id 3 group 1/2",
        "nexthop replace id 2 via 198.51.100.2 dev eth2",
        "nexthop del id 2",
        "nexthop del id 1",
    ],
    "routes to elsewhere": [
        *(f"route add 10.0.{number}.0/24 via 192.0.2.1" for number in range(50)),
        "route add 2001:db8:e::/48 via 2001:db8:1::1",
    ],
    "the link of the way, but for its way": [
        "link set eth1 mtu 1400",
        "link set eth1 txqueuelen 500",
        f"addr change {FIRST}/24 dev eth1 valid_lft 500 preferred_lft 500",
    ],
}


@pytest.mark.parametrize("commands", UNRELATED.values(), ids=UNRELATED)
def test_nobody_is_asked_about_what_is_not_on_the_way(
    two: Namespace, tier: Tier, commands: list[str]
) -> None:
    two.batch(["route add default via 192.0.2.1", "route add default via 2001:db8:1::1"])
    with selecting(two, tier, BOTH) as session:
        session.expect(FIRST)
        session.rest()
        before = asked(session)
        two.batch(commands)
        # What comes next is behind all of these.
        two.ip(f"route add {TARGET}/32 via 192.0.2.1 metric 7")
        session.wait(lambda _: asked(session) > before)
        session.rest()
        assert asked(session) == before + len(("one target", "and the other"))


def test_a_source_of_another_link_is_whatever_the_kernel_finds(two: Namespace, tier: Tier) -> None:
    """A link without an address borrows the first one of the host."""
    two.batch([f"addr del {FIRST}/24 dev eth1", "route add 203.0.113.0/24 dev eth1"])
    with selecting(two, tier, IPV4) as session:
        session.expect(SECOND)
        two.ip("addr add 192.0.2.200/32 dev lo")
        session.expect("192.0.2.200")
        two.ip("addr del 192.0.2.200/32 dev lo")
        session.expect(SECOND)


def test_an_old_source_gives_way_to_one_of_another_link(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            f"addr del {SECOND6}/64 dev eth2",
            f"addr change {FIRST6}/64 dev eth1 preferred_lft 0 valid_lft forever",
            "route add default via 2001:db8:1::1",
        ]
    )
    with selecting(two, tier, IPV6) as session:
        session.expect(FIRST6, "ipv6")
        session.rest()
        two.ip(f"addr add {SECOND6}/64 dev eth2 nodad")
        session.expect(SECOND6, "ipv6")
        two.ip(f"addr change {FIRST6}/64 dev eth1 preferred_lft forever valid_lft forever")
        session.expect(FIRST6, "ipv6")


def test_an_address_counts_when_dad_is_over(two: Namespace, tier: Tier) -> None:
    two.sysctl("ipv6/conf/eth1/accept_dad", 1)
    two.batch(
        [
            f"addr del {SECOND6}/64 dev eth2",
            f"addr del {FIRST6}/64 dev eth1",
            "addr add 2001:db8:1::12/64 dev eth1",
            "route add default via 2001:db8:1::1 dev eth1",
        ]
    )
    with selecting(two, tier, IPV6) as session:
        session.expect("2001:db8:1::12", "ipv6")
        assert session.choice("ipv6").reason == f"mode route-to: source towards {TARGET6}"


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_route_without_carrier_comes_back_without_a_word(
    two: Namespace, router: Namespace, tier: Tier, family: str
) -> None:
    """With ignore_routes_with_linkdown; nobody saw the way over the link before."""
    for link in ("eth1", "eth2"):
        two.sysctl(f"{family}/conf/{link}/ignore_routes_with_linkdown", 1)
    two.batch(
        [
            "route add default via 192.0.2.1",
            "route add default via 2001:db8:1::1",
            "route add 203.0.113.0/24 via 198.51.100.1",
            "route add 2001:db8:f::/48 via 2001:db8:2::1",
        ]
    )
    router.ip("link set eth2 down")
    two.wait(lambda: two.json("link show eth2")[0]["operstate"] == "DOWN", "carrier to go")
    first, second = (FIRST, SECOND) if family == "ipv4" else (FIRST6, SECOND6)
    with selecting(two, tier, IPV4 if family == "ipv4" else IPV6) as session:
        session.expect(first, family)
        session.rest()
        router.ip("link set eth2 up")
        session.expect(second, family)


def test_a_path_that_is_dead_comes_back_without_a_word(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default nexthop via 192.0.2.1 nexthop via 198.51.100.1",
            "link set eth2 down",
        ]
    )
    with selecting(two, tier, IPV4) as session:
        assert not session.expect(FIRST).ambiguous
        session.rest()
        two.ip("link set eth2 up")
        session.wait(lambda choice: choice.ambiguous)


def test_a_route_that_goes_with_the_last_address_of_its_link(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default via 192.0.2.1",
            "addr add 203.0.112.11/24 dev lo",
            "route add 203.0.113.0/24 via 198.51.100.1 src 203.0.112.11",
        ]
    )
    with selecting(two, tier, IPV4) as session:
        session.expect("203.0.112.11")
        session.rest()
        two.ip(f"addr del {SECOND}/24 dev eth2")
        session.expect(FIRST)


@pytest.mark.parametrize("what", ["carrier", "object"])
def test_a_route_that_goes_with_its_nexthop_object(
    two: Namespace, router: Namespace, tier: Tier, what: str
) -> None:
    two.batch(
        [
            "route add default via 192.0.2.1",
            "nexthop add id 7 via 198.51.100.1 dev eth2",
            "route add 203.0.113.0/24 nhid 7",
        ]
    )
    with selecting(two, tier, IPV4) as session:
        session.expect(SECOND)
        session.rest()
        (router.ip("link set eth2 down") if what == "carrier" else two.ip("nexthop del id 7"))
        session.expect(FIRST)


@pytest.mark.parametrize("compat", [1, 0], ids=["compat", "no-compat"])
def test_a_nexthop_object_moves_below_its_route(two: Namespace, tier: Tier, compat: int) -> None:
    two.sysctl("ipv4/nexthop_compat_mode", compat)
    two.batch(
        [
            "nexthop add id 1 via 192.0.2.1 dev eth1",
            "nexthop add id 2 group 1",
            "route add 203.0.113.0/24 nhid 2",
        ]
    )
    with selecting(two, tier, IPV4) as session:
        session.expect(FIRST)
        session.rest()
        two.ip("nexthop replace id 1 via 198.51.100.1 dev eth2")
        session.expect(SECOND)
        two.ip("nexthop add id 3 via 192.0.2.1 dev eth1")
        two.ip("nexthop replace id 2 group 3")
        session.expect(FIRST)


def test_an_object_that_swallows_packets_may_become_a_path(two: Namespace, tier: Tier) -> None:
    two.sysctl("ipv4/nexthop_compat_mode", 0)  # else the kernel tells of the routes as well
    two.batch(
        [
            "route add default via 192.0.2.1",
            "nexthop add id 7 blackhole",
            "route add 203.0.113.0/24 nhid 7",
        ]
    )
    with selecting(two, tier, IPV4) as session:
        assert any("blackhole" in text for text in session.choice().warnings)
        session.rest()
        two.ip("nexthop replace id 7 via 198.51.100.1 dev eth2")
        session.wait(lambda choice: choice.reason.startswith("mode route-to"))
        assert session.choice().address == SECOND


def test_a_route_of_ipv6_that_ends_is_told_much_later(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default via 2001:db8:1::1",
            "route add 2001:db8:f::/48 via 2001:db8:2::1 expires 3",
        ]
    )
    with selecting(two, tier, IPV6) as session:
        session.expect(SECOND6, "ipv6")
        session.expect(FIRST6, "ipv6", seconds=10)


@pytest.mark.parametrize("address", [f"{TARGET}/32", f"{TARGET}/24 noprefixroute"])
def test_the_target_becomes_an_address_of_this_host(
    two: Namespace, tier: Tier, address: str
) -> None:
    two.ip("route add default via 192.0.2.1")
    with selecting(two, tier, IPV4) as session:
        session.expect(FIRST)
        session.rest()
        two.ip(f"addr add {address} dev eth2")
        session.expect(TARGET)
        two.ip(f"addr del {address.split(maxsplit=1)[0]} dev eth2")
        session.expect(FIRST)
