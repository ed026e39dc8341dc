"""Modes, hints and their fallbacks, on both engines."""

from __future__ import annotations

import pytest

from tests.build import Host, addr, gone, link, listed, policy, route
from tracker.address import host_network, parse_network
from tracker.engine.base import Engine
from tracker.model import Criterion, Fallback, PolicyTable, Reject, Tier

LO, DUMMY = link(1, "lo", loopback=True), link(5, "dummy0", kind="dummy")
ETH0, ETH1, BOND = link(2, "eth0"), link(3, "eth1"), link(4, "bond0")
TEN, TWENTY, THIRTY = (
    addr("192.0.2.10/24", 2),
    addr("198.51.100.20/24", 3),
    addr("203.0.113.30/24", 4),
)
ON_LO = addr("10.0.0.1/32", 1)
SIX = addr("2001:db8::10/64", 2)
DEFAULT = route(via="192.0.2.1", oif=2)
BY_DEFAULT = Fallback.DEFAULT_ROUTE


def host(engine: Engine, table: PolicyTable) -> Host:
    """A host with a default route over eth0."""
    host = Host(engine, table)
    host.send(LO, ETH0, ETH1, BOND, TEN, TWENTY, THIRTY, ON_LO, SIX, DEFAULT)
    return host


def ranked(host: Host, family: str = "ipv4") -> list[str]:
    return [row.address for row in host.rows(family) if row.rank]


def mode(host: Host, address: str) -> int:
    """The value of the criterion."""
    return host.row(address).values[policy().criteria.index(Criterion.MODE)]


def test_names_come_in_their_order_and_before_networks(engine: Engine) -> None:
    table = listed(names=("bond*", "eth1"), networks=("192.0.2.0/25", "10.0.0.1"))
    found = host(engine, table)
    assert ranked(found) == ["203.0.113.30", "198.51.100.20", "192.0.2.10", "10.0.0.1"]
    values = [row.values[table.criteria.index(Criterion.MODE)] for row in found.rows()]
    assert values == [0, 1, 2, 3]
    assert {row.tier for row in found.rows()} == {Tier.ROUTE}


def test_what_the_list_lacks_is_not_in_the_mode(engine: Engine) -> None:
    found = host(engine, listed(names=("eth1",)))
    assert ranked(found) == ["198.51.100.20"]
    row = found.row("192.0.2.10")
    assert (row.reject, row.own_reject, row.tier) == (Reject.NOT_IN_MODE, Reject.NONE, Tier.NONE)
    assert mode(found, "192.0.2.10") == 1


def test_a_list_of_nothing_takes_nothing(engine: Engine) -> None:
    found = host(engine, listed())
    assert (ranked(found), ranked(found, "ipv6")) == ([], [])
    assert found.row("192.0.2.10").reject is Reject.NOT_IN_MODE


def test_a_network_is_of_one_family(engine: Engine) -> None:
    found = host(engine, listed(networks=("0.0.0.0/0",)))
    assert len(ranked(found)) == 4
    assert ranked(found, "ipv6") == []


def test_a_rejected_address_is_not_in_the_mode_by_its_own_reason(engine: Engine) -> None:
    found = host(engine, listed(names=("*",)))
    found.send(link(3, "eth1", up=False))
    assert found.row("198.51.100.20").reject is Reject.LINK_DOWN
    found.send(DUMMY, addr("192.0.2.50/24", 5))
    assert found.row("192.0.2.50").reject is Reject.EXCLUDED_INTERFACE


def test_a_renamed_link_comes_and_goes(engine: Engine) -> None:
    found = host(engine, listed(names=("uplink",)))
    assert found.best() is None
    found.send(link(3, "uplink"))
    assert found.best() == "198.51.100.20"
    found.send(link(3, "eth1"))
    assert found.best() is None


def test_no_name_is_matched_before_it_is_known(engine: Engine) -> None:
    found = Host(engine, listed(names=("*",)))
    found.send(TEN)
    assert found.row("192.0.2.10").tier is Tier.NONE
    found.send(link(2, ""))
    assert found.row("192.0.2.10").tier is Tier.ROUTE


def test_a_default_route_ranks_within_the_list(engine: Engine) -> None:
    found = host(engine, listed(networks=("0.0.0.0/0",)))
    assert found.best() == "192.0.2.10"
    found.send(gone(DEFAULT), route(via="203.0.113.1", oif=4))
    assert found.best() == "203.0.113.30"


@pytest.mark.parametrize(
    ("fallback", "expected", "tier"),
    [
        (Fallback.NONE, [], None),
        (Fallback.DEFAULT_ROUTE, ["192.0.2.10", "10.0.0.1"], Tier.LOOPBACK),
        (Fallback.PHYSICAL, ["192.0.2.10", "198.51.100.20", "203.0.113.30"], Tier.FALLBACK),
        (Fallback.INTERFACE, ["198.51.100.20"], Tier.FALLBACK),
        (Fallback.AUTO, [], None),
    ],
)
def test_the_fallback_takes_what_it_says(
    engine: Engine, fallback: Fallback, expected: list[str], tier: Tier | None
) -> None:
    table = listed(names=("none",), fallback=fallback, fallback_name="eth1")
    found = host(engine, table)
    assert ranked(found) == expected
    assert {row.tier for row in found.rows() if row.rank} == ({tier} if tier is not None else set())
    assert {row.reject for row in found.rows() if not row.rank} <= {Reject.NOT_IN_MODE}


def test_the_fallback_gives_way_to_what_is_in_the_mode(engine: Engine) -> None:
    found = host(engine, listed(networks=("198.51.100.21",), fallback=BY_DEFAULT))
    assert found.best() == "192.0.2.10"
    found.send(addr("198.51.100.21/24", 3))
    assert ranked(found) == ["198.51.100.21"]
    assert found.row("192.0.2.10").reject is Reject.NOT_IN_MODE


def test_the_fallback_needs_a_default_route(engine: Engine) -> None:
    found = host(engine, listed(names=("none",), fallback=BY_DEFAULT))
    found.send(gone(DEFAULT))
    assert found.best() is None
    found.send(route(via="192.0.2.1", oif=2, src="203.0.113.30"))
    assert ranked(found) == ["203.0.113.30", "192.0.2.10", "10.0.0.1"]
    assert found.row("203.0.113.30").tier is Tier.LOOPBACK


# Hints


def test_a_hint_takes_its_subnet_whatever_the_routes(engine: Engine) -> None:
    found = host(engine, policy(hints=(host_network("198.51.100.99"),), fallback=Fallback.NONE))
    assert ranked(found) == ["198.51.100.20"]
    assert found.row("192.0.2.10").reject is Reject.NOT_IN_MODE
    assert mode(found, "192.0.2.10") == 0


def test_a_hint_leaves_the_other_family_alone(engine: Engine) -> None:
    found = host(engine, policy(hints=(host_network("198.51.100.99"),), fallback=Fallback.NONE))
    assert ranked(found, "ipv6") == []
    assert found.row("2001:db8::10").reject is Reject.NO_DEFAULT_ROUTE
    found.send(route(via="fe80::1", oif=2))
    assert ranked(found, "ipv6") == ["2001:db8::10"]


def test_a_host_address_is_its_own_subnet(engine: Engine) -> None:
    found = host(engine, policy(hints=(host_network("10.0.0.1"),)))
    assert ranked(found) == ["10.0.0.1"]


def test_any_of_several_hints_will_do(engine: Engine) -> None:
    hints = tuple(map(host_network, ("10.9.9.9", "203.0.113.1", "198.51.100.1")))
    assert ranked(host(engine, policy(hints=hints))) == ["198.51.100.20", "203.0.113.30"]


def test_a_hint_without_a_subnet_falls_back(engine: Engine) -> None:
    found = host(engine, policy(hints=(host_network("10.9.9.9"),), fallback=BY_DEFAULT))
    assert ranked(found) == ["192.0.2.10", "10.0.0.1"]


def test_a_list_and_a_hint_must_both_hold(engine: Engine) -> None:
    found = host(engine, listed(names=("eth*",), hints=("198.51.100.1",)))
    assert ranked(found) == ["198.51.100.20"]


# Networks that change


def test_networks_are_replaced(engine: Engine) -> None:
    found = host(engine, listed(networks=("192.0.2.10",)))
    assert found.best() == "192.0.2.10"
    engine.set_mode_networks(0, (host_network("203.0.113.30"), host_network("192.0.2.10")))
    assert ranked(found) == ["203.0.113.30", "192.0.2.10"]
    engine.set_mode_networks(0, ())
    assert found.best() is None


def test_networks_are_replaced_without_a_cause(engine: Engine) -> None:
    found = host(engine, listed(networks=("192.0.2.0/24",)))
    cause, changed = found.view().cause, found.view().last_change_ns
    assert cause
    found.engine.changed()
    engine.tick(found.now + 1)
    engine.set_mode_networks(0, (parse_network("192.0.2.0/24"),))
    assert found.view() == found.view()._replace(cause=cause, last_change_ns=changed)
    assert engine.changed() == set()
    engine.set_mode_networks(0, (parse_network("203.0.113.0/24"),))
    assert found.view().cause == cause
    assert found.view().last_change_ns == found.now + 1
    assert engine.changed() == {(0, "ipv4")}


def test_other_selections_keep_their_networks(engine: Engine) -> None:
    found = host(engine, listed(networks=("192.0.2.10",)))
    engine.set_policy(1, listed(networks=("192.0.2.10",)))
    engine.set_mode_networks(1, (host_network("203.0.113.30"),))
    assert found.best() == "192.0.2.10"
    best = engine.view(1, "ipv4").best
    assert best is not None
    assert best.address == "203.0.113.30"


def test_a_new_policy_has_its_own_networks(engine: Engine) -> None:
    found = host(engine, listed(networks=("192.0.2.10",)))
    engine.set_mode_networks(0, (host_network("203.0.113.30"),))
    engine.set_policy(0, listed(networks=("192.0.2.10",)))
    assert found.best() == "192.0.2.10"


def test_networks_of_no_selection_are_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="Invalid argument"):
        engine.set_mode_networks(3, ())
