"""The kernel on paper, where no real one is at hand to compare it with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.standin.paper.base import Refused
from tests.standin.paper.kernel import KernelOnPaper
from tests.standin.payloads import address, leg, packed, route
from tracker.capture.names import IFF_LOOPBACK, IFF_LOWER_UP, IFF_UP
from tracker.capture.record import Addr, Link, Op, Payload, Record, Route
from tracker.capture.standin import NLM_F_APPEND, NLM_F_REPLACE, RoutePattern, StandIn
from tracker.model import AF_INET, AF_INET6, Scope

ETH0, ETH1, BLUE = 2, 3, 4


@pytest.fixture
def kernel() -> KernelOnPaper:
    """Two links with an address of each family and defaults over the first; a VRF."""
    made = KernelOnPaper()
    made.links[1] = Link(1, "lo", IFF_LOOPBACK | IFF_UP | IFF_LOWER_UP)
    for ifindex in (ETH0, ETH1):
        made.add_link(Link(ifindex, f"eth{ifindex - 2}"))
        made.set_up(ifindex)
        made.add_address(address(ifindex, f"192.0.{ifindex}.10/24"))
        made.add_address(address(ifindex, f"2001:db8:{ifindex}::10/64"))
    made.add_link(Link(BLUE, "blue", kind="vrf", vrf_table=100))
    made.set_up(BLUE)
    made.add_route(route(AF_INET, leg(ETH0, "192.0.2.1")))
    made.add_route(route(AF_INET6, leg(ETH0, "2001:db8:2::1")))
    return made


def told(records: list[Record]) -> list[tuple[Op, type[Payload]]]:
    return [(record.header.op, type(record.payload)) for record in records]


def test_a_link_that_moves_into_a_vrf_goes_down_and_up(kernel: KernelOnPaper) -> None:
    messages = kernel.set_master(ETH0, BLUE)
    assert told(messages) == [
        (Op.NEW, Link),
        (Op.NEW, Link),
        (Op.DEL, Route),
        (Op.DEL, Route),
        (Op.DEL, Addr),
        (Op.NEW, Link),
        (Op.NEW, Route),
    ]
    [connected] = [r for r in kernel.routes if r.table == 100]
    assert (connected.family, connected.legs[0].oif) == (AF_INET, ETH0)
    # The gateway route of IPv4 went silently, the IPv6 address was announced and stays away.
    assert not [r for r in kernel.routes if not r.dst_len]
    assert [a.ifindex for a in kernel.addresses if a.family == AF_INET6] == [ETH1]


def test_a_link_that_leaves_its_vrf_comes_back_to_main(kernel: KernelOnPaper) -> None:
    kernel.set_master(ETH0, BLUE)
    kernel.delete_link(BLUE)
    assert kernel.links[ETH0].master == 0
    assert {r.table for r in kernel.routes if r.family == AF_INET} == {254}


def test_ipv6_routes_can_go_silently(kernel: KernelOnPaper) -> None:
    kernel.skip_notify_on_dev_down = True
    messages = kernel.set_down(ETH0)
    assert told(messages) == [(Op.NEW, Link), (Op.DEL, Addr)]
    assert {r.legs[0].oif for r in kernel.routes} == {ETH1}


def test_what_the_kernel_refuses_changes_nothing(kernel: KernelOnPaper) -> None:
    before = (dict(kernel.links), list(kernel.addresses), list(kernel.routes))
    refused: list[Callable[[], object]] = [
        lambda: kernel.add_link(Link(ETH0, "other")),
        lambda: kernel.add_link(Link(9, "eth0")),
        lambda: kernel.delete_link(1),
        lambda: kernel.delete_link(99),
        lambda: kernel.set_up(99),
        lambda: kernel.rename(ETH0, "eth1"),
        lambda: kernel.add_address(address(ETH0, "192.0.2.10/24")),
        lambda: kernel.delete_address(address(ETH0, "192.0.2.11/24")),
        lambda: kernel.add_route(route(AF_INET, leg(ETH0, "192.0.2.1"))),
        lambda: kernel.add_route(route(AF_INET, leg(0, "203.0.113.1"), metric=1)),
        lambda: kernel.add_route(route(AF_INET, nh_id=7, metric=1)),
        lambda: kernel.delete_route(route(AF_INET, leg(ETH1))),
        lambda: kernel.delete_nexthop(7),
    ]
    for operation in refused:
        with pytest.raises(Refused):
            operation()
    assert (kernel.links, kernel.addresses, kernel.routes) == before


# State alone, as case files use it.


def test_a_message_alone_changes_nothing() -> None:
    state = StandIn()
    assert state.say(Op.NEW, Link(2, "eth0")).payload == Link(2, "eth0")
    assert state.links == {}


def test_what_is_forgotten_needs_no_message() -> None:
    state = StandIn()
    state.put(address(2, "192.0.2.1/24"))
    state.forget(address(2, "192.0.2.1/24"))
    assert state.dump(Scope.ADDR4) == []


def test_an_update_keeps_the_time_of_creation() -> None:
    state = StandIn()
    state.put(address(2, "192.0.2.1/24", cstamp=7))
    again = state.put(address(2, "192.0.2.1/24", cstamp=99, valid=5)).payload
    assert isinstance(again, Addr)
    assert (again.cstamp, again.valid) == (7, 5)


def test_ipv6_addresses_are_listed_newest_first() -> None:
    state = StandIn()
    for text in ("2001:db8::1/64", "fe80::1/64", "2001:db8::2/64"):
        scope = 253 if text.startswith("fe80") else 0
        state.put(address(2, text, scope=scope))
    listed = [entry.local for entry in state.addresses]
    assert listed == [packed(t) for t in ("2001:db8::2", "2001:db8::1", "fe80::1")]


def test_ipv4_routes_of_one_metric_are_put_in_front_behind_or_in_place() -> None:
    state = StandIn()
    one, two, three, four = (route(AF_INET, leg(2, f"192.0.2.{n}")) for n in range(1, 5))
    state.put(one)
    state.put(two)
    state.put(three, NLM_F_APPEND)
    state.put(four, NLM_F_REPLACE)
    assert state.routes == [four, one, three]


def test_an_ipv6_delete_names_one_leg() -> None:
    state = StandIn()
    both = route(AF_INET6, leg(2, "fe80::1"), leg(3, "fe80::2"), metric=9)
    state.put(both)
    named = state.find_route(RoutePattern({"family": AF_INET6, "metric": 9}, (leg(3),)))
    assert named is not None
    assert named.legs == (leg(3, "fe80::2"),)
    state.remove(named)
    assert state.routes == [both._replace(legs=(leg(2, "fe80::1"),))]


def test_a_route_that_ends_is_announced_late() -> None:
    state = StandIn()
    state.put(route(AF_INET6, leg(2, "fe80::1"), metric=9, expires=10))
    [shown] = [r.payload for r in state.dump(Scope.ROUTE6)]
    assert isinstance(shown, Route)
    assert shown.expires == 10
    assert state.deadline() == 10_000_000_000
    assert state.advance(10_000_000_000) == []
    assert state.dump(Scope.ROUTE6) == []
    assert state.deadline() == 25_000_000_000
    assert told(state.advance(25_000_000_000)) == [(Op.DEL, Route)]
    assert state.deadline() is None


def test_a_dump_can_be_of_one_link_or_one_table() -> None:
    state = StandIn()
    state.put(address(2, "192.0.2.1/24"))
    state.put(address(3, "192.0.2.2/24"))
    state.put(route(AF_INET, leg(2), table=100))
    state.put(route(AF_INET, leg(2), table=255))
    assert len(state.dump(Scope.ADDR4)) == 2
    assert len(state.dump(Scope.ADDR4, ifindex=3)) == 1
    assert len(state.dump(Scope.ADDR6)) == 0
    assert len(state.dump(Scope.ROUTE4)) == 1
    assert len(state.dump(Scope.ROUTE4, table=254)) == 0


def test_a_shuffle_keeps_the_order_of_routes_of_one_key() -> None:
    state = StandIn()
    routes = [route(AF_INET, leg(2, f"192.0.2.{n}"), metric=n % 3) for n in range(1, 20)]
    for each in routes:
        state.put(each, NLM_F_APPEND)
    before = list(state.routes)
    state.shuffle()
    assert sorted(state.routes) == sorted(before)
    assert state.routes != before
    for metric in range(3):
        kept = [r for r in before if r.metric == metric]
        assert [r for r in state.routes if r.metric == metric] == kept
