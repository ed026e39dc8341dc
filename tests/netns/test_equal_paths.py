"""Several equal paths in mode route-to: the answer stays, and what it leaves open is told.

What the sources are is compared with what sockets of the host get.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tests.netns.selecting import Selecting, selecting

if TYPE_CHECKING:
    from tests.tiers import Tier

FIRST, SECOND, NODE = "192.0.2.11", "198.51.100.11", "10.9.9.9"
FIRST6, SECOND6, NODE6 = "2001:db8:1::11", "2001:db8:2::11", "2001:db8:9::9"
ADDRESSES = {"ipv4": (FIRST, SECOND, NODE), "ipv6": (FIRST6, SECOND6, NODE6)}
TARGETS = {"ipv4": "203.0.113.7", "ipv6": "2001:db8:f::7"}
GATEWAYS = {
    "ipv4": ("192.0.2.1", "198.51.100.1"),
    "ipv6": ("2001:db8:1::1", "2001:db8:2::1"),
    "link-local": ("fe80::1", "fe80::2"),
}
NETWORKS = {"ipv4": "203.0.113.0/24", "ipv6": "2001:db8:f::/48"}
FLOWS = 64

CONFIG = """
    [select]
    mode = "route-to"
    route_to = ["{}"]
"""


@pytest.fixture
def two(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks, and addresses of its own."""
    for link in ("eth1", "eth2"):
        connect(host, link, router, link)
    for family, (first, second, node) in ADDRESSES.items():
        length, most = (24, 32) if family == "ipv4" else (64, 128)
        host.batch(
            [
                f"addr add {first}/{length} dev eth1 nodad",
                f"addr add {second}/{length} dev eth2 nodad",
                f"addr add {node}/{most} dev lo nodad",
            ]
        )
    return host


def multipath(how: str, gateways: tuple[str, str], to: str, more: str = "") -> list[str]:
    first, second = gateways
    if how == "list":
        return [f"route add {to} {more} nexthop via {first} dev eth1 nexthop via {second} dev eth2"]
    return [
        f"nexthop add id 1 via {first} dev eth1",
        f"nexthop add id 2 via {second} dev eth2",
        "nexthop add id 3 group 1/2",
        f"route add {to} nhid 3 {more}",
    ]


def used(host: Namespace, family: str) -> set[str]:
    """Addresses that sockets get towards the network of the target, whatever the kernel picks."""
    number = socket.AF_INET if family == "ipv4" else socket.AF_INET6
    prefix = TARGETS[family].removesuffix("7")
    found = set()
    with host.entered():
        for flow in range(1, FLOWS):
            with socket.socket(number, socket.SOCK_DGRAM) as sender:
                sender.connect((f"{prefix}{flow}", 53))
                found.add(sender.getsockname()[0])
    return found


def warning(session: Selecting, family: str) -> str:
    (text,) = session.choice(family).warnings
    return text.removeprefix(f"{family}: route-to {TARGETS[family]}: ")


@pytest.mark.parametrize("compat", [1, 0], ids=["compat", "no-compat"])
@pytest.mark.parametrize("how", ["list", "group"])
def test_equal_paths_are_reported_and_the_answer_is_stable(
    two: Namespace, tier: Tier, how: str, compat: int
) -> None:
    two.sysctl("ipv4/nexthop_compat_mode", compat)
    two.sysctl("ipv4/fib_multipath_hash_policy", 1)
    two.batch(multipath(how, GATEWAYS["ipv4"], "default"))
    assert used(two, "ipv4") == {FIRST, SECOND}
    with selecting(two, tier, CONFIG.format(TARGETS["ipv4"])) as session:
        choice = session.wait(lambda choice: choice.ambiguous)
        assert choice.address == FIRST
        assert choice.reason == (
            f"mode route-to: source towards {TARGETS['ipv4']}, one of 2 equal paths"
        )
        assert warning(session, "ipv4") == f"2 equal paths, with sources {FIRST}, {SECOND}"
        # The other one is the answer now, and stays it when both are equal again.
        two.ip(f"route add {TARGETS['ipv4']}/32 via {GATEWAYS['ipv4'][1]}")
        session.expect(SECOND)
        two.ip(f"route del {TARGETS['ipv4']}/32")
        choice = session.wait(lambda choice: choice.ambiguous)
        assert choice.address == SECOND


@pytest.mark.parametrize("gateways", ["ipv6", "link-local"])
def test_equal_paths_of_an_ipv6_list(two: Namespace, tier: Tier, gateways: str) -> None:
    two.batch(multipath("list", GATEWAYS[gateways], NETWORKS["ipv6"]))
    assert used(two, "ipv6") == {FIRST6, SECOND6}
    with selecting(two, tier, CONFIG.format(TARGETS["ipv6"])) as session:
        choice = session.wait(lambda choice: choice.ambiguous, "ipv6")
        assert choice.address == FIRST6
        assert warning(session, "ipv6") == f"2 equal paths, with sources {FIRST6}, {SECOND6}"
        two.batch(
            [
                f"route del {NETWORKS['ipv6']}",
                f"route add {NETWORKS['ipv6']} via {GATEWAYS[gateways][1]} dev eth2",
            ]
        )
        assert not session.expect(SECOND6, "ipv6").ambiguous
        two.batch(
            [
                f"route del {NETWORKS['ipv6']}",
                *multipath("list", GATEWAYS[gateways], NETWORKS["ipv6"]),
            ]
        )
        assert session.wait(lambda choice: choice.ambiguous, "ipv6").address == SECOND6


@pytest.mark.parametrize("compat", [1, 0], ids=["compat", "no-compat"])
@pytest.mark.parametrize("gateways", ["ipv6", "link-local"])
def test_an_ipv6_group_has_one_source_for_all_of_its_paths(
    two: Namespace, tier: Tier, gateways: str, compat: int
) -> None:
    """The kernel takes the source by the first member, whichever one it sends over."""
    two.sysctl("ipv4/nexthop_compat_mode", compat)
    two.batch(multipath("group", GATEWAYS[gateways], NETWORKS["ipv6"]))
    assert used(two, "ipv6") == {FIRST6}
    with selecting(two, tier, CONFIG.format(TARGETS["ipv6"])) as session:
        choice = session.wait(lambda choice: choice.ambiguous, "ipv6")
        assert choice.address == FIRST6
        assert warning(session, "ipv6") == f"2 equal paths, source {FIRST6} over each"
        two.ip("nexthop replace id 3 group 2/1")
        assert used(two, "ipv6") == {SECOND6}
        assert session.expect(SECOND6, "ipv6").ambiguous
        two.ip("nexthop replace id 3 group 2")
        session.wait(lambda choice: not choice.ambiguous, "ipv6")
        assert session.choice("ipv6").address == SECOND6


@pytest.mark.parametrize("how", ["list", "group"])
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_route_that_names_the_source_leaves_nothing_open(
    two: Namespace, tier: Tier, family: str, how: str
) -> None:
    node = ADDRESSES[family][2]
    two.batch(multipath(how, GATEWAYS[family], NETWORKS[family], f"src {node}"))
    assert used(two, family) == {node}
    with selecting(two, tier, CONFIG.format(TARGETS[family])) as session:
        choice = session.expect(node, family)
        assert (choice.ambiguous, choice.warnings) == (False, ())


def test_links_without_an_address_of_their_own_share_one(two: Namespace, tier: Tier) -> None:
    """Unnumbered links: both borrow what is on `lo`."""
    two.batch(
        [
            f"addr del {FIRST}/24 dev eth1",
            f"addr del {SECOND}/24 dev eth2",
            f"route add {NETWORKS['ipv4']} nexthop dev eth1 nexthop dev eth2",
        ]
    )
    assert used(two, "ipv4") == {NODE}
    with selecting(two, tier, CONFIG.format(TARGETS["ipv4"])) as session:
        choice = session.wait(lambda choice: choice.ambiguous)
        assert choice.address == NODE
        assert warning(session, "ipv4") == f"2 equal paths, source {NODE} over each"
