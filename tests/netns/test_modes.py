"""Each mode on a real kernel: what `ip` sets up, the session selects by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tests.netns.selecting import selecting
from tracker.model import State

if TYPE_CHECKING:
    from tests.tiers import Tier

FIRST, SECOND = "192.0.2.11", "198.51.100.11"
FIRST6, SECOND6 = "2001:db8:1::11", "2001:db8:2::11"
TARGET, TARGET6 = "203.0.113.7", "2001:db8:f::7"

ROUTE_TO = f'[select]\nmode = "route-to"\nroute_to = ["{TARGET}", "{TARGET6}"]\n'


@pytest.fixture
def two(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks, each with an address of both families."""
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
    return host


def interface_mode(*globs: str, more: str = "") -> str:
    listed = ", ".join(f'"{glob}"' for glob in globs)
    return f'[select]\nmode = "interface"\ninterfaces = [{listed}]\n{more}'


def test_an_interface_by_name_and_by_preference(two: Namespace, tier: Tier) -> None:
    two.ip("route add default via 192.0.2.1")
    with selecting(two, tier, interface_mode("bond*", "eth2", "eth*")) as session:
        choice = session.expect(SECOND)
        assert choice.reason == "mode interface: eth2"
        session.expect(SECOND6, "ipv6")
        two.ip(f"addr del {SECOND}/24 dev eth2")
        assert session.expect(FIRST).reason == "mode interface: eth1 (eth*)"
        two.ip(f"addr add {SECOND}/24 dev eth2")
        session.expect(SECOND)


def test_a_link_that_is_renamed_enters_and_leaves_the_mode(two: Namespace, tier: Tier) -> None:
    with selecting(two, tier, interface_mode("storage")) as session:
        assert session.choice().state is State.NONE
        assert session.choice().reason == "no eligible address in mode interface (storage)"
        two.batch(["link set eth2 down", "link set eth2 name storage", "link set storage up"])
        session.expect(SECOND)
        two.batch(["link set storage down", "link set storage name eth2", "link set eth2 up"])
        choice = session.wait(lambda choice: choice.state is State.LOST)
        assert (choice.address, choice.stale) == (SECOND, True)


def test_a_named_interface_is_no_longer_excluded(two: Namespace, tier: Tier) -> None:
    two.batch(["link set eth2 down", "link set eth2 name vnet7", "link set vnet7 up"])
    with selecting(two, tier, interface_mode("vnet7")) as session:
        session.expect(SECOND)
    with selecting(two, tier, interface_mode("vnet*")) as session:
        assert session.choice().address is None


def test_a_network_by_containment(two: Namespace, tier: Tier) -> None:
    two.batch(["route add default via 192.0.2.1", "addr add 198.51.100.77/32 dev eth1"])
    config = '[select]\nmode = "cidr"\ncidrs = ["198.51.100.0/24", "2001:db8:2::/48"]'
    with selecting(two, tier, config) as session:
        choice = session.expect("198.51.100.77")
        assert choice.reason == "mode cidr: inside 198.51.100.0/24"
        assert choice.warnings == (f"ipv4: mode cidr also matches {SECOND}",)
        session.expect(SECOND6, "ipv6")
        two.ip("addr del 198.51.100.77/32 dev eth1")
        assert session.expect(SECOND).warnings == ()


def test_static_addresses_wherever_they_live(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default via 192.0.2.1",
            "addr add 192.0.2.200/32 dev lo",
            "link set eth2 down",
            "link set eth2 name docker0",
            "link set docker0 up",
        ]
    )
    config = '[select]\nmode = "static"\nstatic = "{}"'
    with selecting(two, tier, config.format("192.0.2.200")) as session:
        assert session.expect("192.0.2.200").reason == "mode static: listed"
        assert list(session.session.decision().choices) == ["ipv4"]
    with selecting(two, tier, config.format(SECOND)) as session:
        session.expect(SECOND)
    with selecting(two, tier, config.format("192.0.2.99")) as session:
        assert session.choice().reason == "no eligible address in mode static (192.0.2.99)"


def test_an_unspecified_address_stands_for_its_family(two: Namespace, tier: Tier) -> None:
    two.ip("-6 route add default via 2001:db8:2::1")
    with selecting(two, tier, '[select]\nmode = "static"\nstatic = "::"') as session:
        session.expect(SECOND6, "ipv6")
        assert list(session.session.decision().choices) == ["ipv6"]


def test_a_hint_narrows_and_falls_back_to_the_default_route(two: Namespace, tier: Tier) -> None:
    two.ip("route add default via 192.0.2.1")
    with selecting(two, tier, '[select]\nhint = ["198.51.100.1"]') as session:
        assert session.expect(SECOND).reason == "in the subnet of hint 198.51.100.1"
        two.ip(f"addr del {SECOND}/24 dev eth2")
        choice = session.expect(FIRST)
        assert choice.reason.startswith("fallback default-route: ")
        assert choice.warnings == (
            "ipv4: nothing is in the subnet of a hint (198.51.100.1), fallback default-route",
        )
        two.ip(f"addr add {SECOND}/24 dev eth2")
        session.expect(SECOND)


# route-to


def test_route_to_follows_the_kernels_lookup(two: Namespace, tier: Tier) -> None:
    two.batch(["route add default via 192.0.2.1", "route add default via 2001:db8:1::1"])
    with selecting(two, tier, ROUTE_TO) as session:
        assert session.expect(FIRST).reason == f"mode route-to: source towards {TARGET}"
        session.expect(FIRST6, "ipv6")
        two.ip("route add 203.0.113.0/24 via 198.51.100.1")
        session.expect(SECOND)
        two.ip("route add 203.0.113.0/25 via 192.0.2.1 src 192.0.2.11")
        session.expect(FIRST)
        two.ip("route del 203.0.113.0/25")
        session.expect(SECOND)


def test_route_to_is_asked_again_only_when_it_may_matter(two: Namespace, tier: Tier) -> None:
    two.ip("route add default via 192.0.2.1")
    with selecting(two, tier, ROUTE_TO) as session:
        session.expect(FIRST)
        assert session.lookup is not None
        asked = len(session.lookup.asked)
        two.batch([f"route add 10.0.{number}.0/24 via 192.0.2.1" for number in range(50)])
        two.ip("addr change 192.0.2.11/24 dev eth1 valid_lft 500 preferred_lft 500")
        # What comes next is behind all of these.
        two.ip("route add 203.0.113.7/32 via 198.51.100.1")
        session.expect(SECOND)
        # One question for each of two targets, and a few that are not to be told apart.
        assert len(session.lookup.asked) - asked <= 8


def test_route_to_goes_by_policy_rules(two: Namespace, tier: Tier) -> None:
    two.batch(
        [
            "route add default via 192.0.2.1",
            "route add default via 198.51.100.1 table 100",
        ]
    )
    with selecting(two, tier, ROUTE_TO) as session:
        session.expect(FIRST)
        two.ip(f"rule add to {TARGET} lookup 100")
        session.expect(SECOND)
        two.ip(f"rule del to {TARGET} lookup 100")
        session.expect(FIRST)
        two.ip(f"rule add to {TARGET} prohibit")
        choice = session.wait(lambda choice: any("prohibits" in text for text in choice.warnings))
        assert choice.address == FIRST
        assert choice.warnings == (
            f"ipv4: route-to {TARGET}: a route or rule prohibits it, what was found before stays",
        )


def test_equal_metrics_go_by_the_kernels_order(two: Namespace, tier: Tier) -> None:
    two.batch(["route add default via 198.51.100.1", "route append default via 192.0.2.1"])
    with selecting(two, tier, ROUTE_TO) as session:
        choice = session.expect(SECOND)
        assert not choice.ambiguous
        two.ip("route del default via 198.51.100.1")
        session.expect(FIRST)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("unreachable", "a route says that it is unreachable"),
        ("blackhole", "a blackhole swallows it"),
        ("prohibit", "a route or rule prohibits it"),
    ],
)
def test_a_default_that_leads_nowhere(two: Namespace, tier: Tier, kind: str, why: str) -> None:
    two.ip(f"route add {kind} default")
    with selecting(two, tier, ROUTE_TO) as session:
        choice = session.wait(lambda choice: choice.state is State.NONE)
        assert choice.reason == (
            f"route-to {TARGET}: {why}; fallback default-route: no default route in table main, "
            "only one of type unreachable, blackhole or prohibit"
        )
        two.ip("route replace default via 192.0.2.1")
        # The kernel is asked at a pace; until then the default route answers.
        session.wait(lambda choice: choice.reason.startswith("mode route-to"))
        assert session.choice().address == FIRST
        two.ip(f"route replace {kind} default")
        choice = session.wait(lambda choice: choice.warnings)
        assert choice.address == FIRST
        assert choice.warnings == (f"ipv4: route-to {TARGET}: {why}, what was found before stays",)


def test_without_a_path_the_default_route_answers(two: Namespace, tier: Tier) -> None:
    two.batch(["route add default via 192.0.2.1", "route add unreachable 203.0.113.0/24"])
    with selecting(two, tier, ROUTE_TO) as session:
        choice = session.expect(FIRST)
        assert choice.reason == "fallback default-route: default-route metric 0"
        assert "ipv4: nothing is in mode route-to, fallback default-route" in choice.warnings
        two.ip("route replace 203.0.113.0/24 via 198.51.100.1")
        session.expect(SECOND)


def test_a_destination_that_is_here(two: Namespace, tier: Tier) -> None:
    config = f'[select]\nmode = "route-to"\nroute_to = ["{SECOND}"]'
    with selecting(two, tier, config) as session:
        choice = session.expect(SECOND)
        assert choice.warnings == (f"ipv4: route-to {SECOND}: it is an address of this host",)


def test_the_source_goes_and_another_one_is_found(two: Namespace, tier: Tier) -> None:
    two.batch(["addr add 192.0.2.12/24 dev eth1", "route add default via 192.0.2.1"])
    with selecting(two, tier, ROUTE_TO) as session:
        session.expect(FIRST)
        two.sysctl("ipv4/conf/eth1/promote_secondaries", 1)
        two.ip(f"addr del {FIRST}/24 dev eth1")
        session.expect("192.0.2.12")


# Tables


def test_a_default_in_another_table(two: Namespace, tier: Tier) -> None:
    two.batch(["route add default via 192.0.2.1", "route add default via 198.51.100.1 table 100"])
    with selecting(two, tier, "[select]\ntable = 100") as session:
        session.expect(SECOND)
        two.ip("route del default table 100")
        session.wait(lambda choice: choice.warnings)
        assert session.choice().address == SECOND


def test_named_selections_decide_for_themselves(two: Namespace, tier: Tier) -> None:
    two.batch(["route add default via 192.0.2.1", "addr add 198.51.100.12/24 dev eth2"])
    config = """
        [selections.storage]
        mode = "interface"
        interfaces = ["eth2"]
        extra = 1
        [selections.bgp]
        mode = "cidr"
        cidrs = ["192.0.2.0/24"]
    """
    with selecting(two, tier, config) as session:
        session.expect(FIRST)
        storage = session.choice("ipv4", "storage")
        assert (storage.address, [row.address for row in storage.extra]) == (
            SECOND,
            ["198.51.100.12"],
        )
        assert session.choice("ipv4", "bgp").address == FIRST
        assert session.choice("ipv6", "bgp").reason == "mode cidr names no ipv6 address or network"
        generation = session.session.generation
        two.ip(f"addr del {FIRST}/24 dev eth1")
        session.wait(lambda choice: choice.stale or choice.address != FIRST)
        assert session.choice("ipv4", "storage").address == SECOND
        assert session.choice("ipv4", "bgp").state is State.LOST
        assert session.session.generation >= generation
