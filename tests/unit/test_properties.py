"""What holds for every ranking, in every mode and on both engines."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agree import ETH0, ETH1, LO, LOCAL, POLICIES, USUAL_LINKS, Maker
from tests.build import Host, addr, link
from tests.engines import NAMES, make
from tracker.address import host_network, parse
from tracker.capture.record import Addr, Link, Record, Route
from tracker.engine.reference_filters import contains
from tracker.engine.reference_state import addr_key, route_key
from tracker.model import AF_OF, FAMILIES, Network, PolicyTable, Reject, Row, View

if TYPE_CHECKING:
    from collections.abc import Sequence

each_engine = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, (1 << 32) - 1)
policies = st.sampled_from(POLICIES)

NEWCOMERS = ("192.0.2.77", "198.51.100.77", "10.0.0.77", "2001:db8::77", "fd00::77")
"""Addresses that no host here has."""


class World(NamedTuple):
    """What a host has, each thing once."""

    links: Sequence[Record]
    others: Sequence[Record]
    """Addresses and default routes."""
    incumbents: Sequence[str]


def world(seed: int) -> World:
    """A host with some links, up to twelve addresses and up to six default routes."""
    maker = Maker(seed)
    links: dict[object, Record] = {}
    for record in (LO, ETH0, ETH1, link(4, "eth2"), *(maker.one(USUAL_LINKS) for _ in range(3))):
        assert isinstance(record.payload, Link)
        links[record.payload.ifindex] = record
    others: dict[object, Record] = {}
    for record in [maker.address() for _ in range(maker.one((3, 6, 12)))]:
        assert isinstance(record.payload, Addr)
        others[addr_key(record.payload)] = record
    for record in [maker.route() for _ in range(maker.one((0, 2, 4, 6)))]:
        assert isinstance(record.payload, Route)
        if not record.payload.nh_id:
            others[route_key(record.payload)] = record
    incumbents = [maker.one(LOCAL[AF_OF[family]]) for family in FAMILIES]
    return World(list(links.values()), list(others.values()), incumbents)


def host(name: str, policy: PolicyTable, found: World, order: Random | None = None) -> Host:
    """The world on an engine, in the order given or another."""
    host = Host(make(name), policy)
    links, others = list(found.links), list(found.others)
    if order is not None:
        order.shuffle(links)
        order.shuffle(others)
    host.send(*links, *others)
    for family, incumbent in zip(FAMILIES, found.incumbents, strict=True):
        host.engine.set_incumbent(0, family, incumbent)
    return host


def place(row: Row) -> tuple[object, ...]:
    """What orders candidates, as docs/engine.md has it."""
    peer = parse(row.peer) if row.peer else b""
    return (row.tier, row.values, parse(row.address), row.prefixlen, peer, row.ifindex)


def plain(view: View) -> View:
    return view._replace(last_change_ns=0, cause=b"")


def key(row: Row) -> tuple[object, ...]:
    return (row.address, row.prefixlen, row.peer, row.ifindex)


@each_engine
@given(seed=seeds, policy=policies)
def test_the_order_is_total(name: str, seed: int, policy: PolicyTable) -> None:
    found = host(name, policy, world(seed))
    for family in FAMILIES:
        ranked = [row for row in found.rows(family) if row.rank]
        places = [place(row) for row in ranked]
        assert places == sorted(places)
        assert len(set(places)) == len(places)
        assert [row.rank for row in ranked] == list(range(1, len(ranked) + 1))


@each_engine
@given(seed=seeds, policy=policies, order=seeds)
def test_the_order_of_arrival_does_not_matter(
    name: str, seed: int, policy: PolicyTable, order: int
) -> None:
    one = host(name, policy, world(seed))
    other = host(name, policy, world(seed), Random(order))
    for family in FAMILIES:
        assert one.rows(family) == other.rows(family)
        assert plain(one.view(family)) == plain(other.view(family))


@each_engine
@given(seed=seeds, policy=policies)
def test_one_address_of_each_family_comes_out(name: str, seed: int, policy: PolicyTable) -> None:
    found = host(name, policy, world(seed))
    for family in FAMILIES:
        first = [row for row in found.rows(family) if row.rank == 1]
        best = found.view(family).best
        assert first == ([] if best is None else [best])
        assert all(row.family == family and row.reject is Reject.NONE for row in first)
        assert best is None or family in policy.families


@each_engine
@given(seed=seeds, policy=policies, which=st.integers(0, 255))
def test_an_excluded_address_never_comes_out(
    name: str, seed: int, policy: PolicyTable, which: int
) -> None:
    every = [address for family in FAMILIES for address in LOCAL[AF_OF[family]]]
    networks: list[Network] = [
        host_network(address) for bit, address in enumerate(every) if which >> bit & 1
    ]
    # Half of them as networks around the address.
    networks = [
        network._replace(prefixlen=network.prefixlen - 3) if place % 2 else network
        for place, network in enumerate(networks)
    ]
    found = host(name, policy._replace(exclude=tuple(networks)), world(seed))
    for family in FAMILIES:
        number = AF_OF[family]
        for row in found.rows(family):
            if any(contains(network, number, parse(row.address)) for network in networks):
                assert row.rank == 0
                assert row.reject is not Reject.NONE
        best = found.view(family).best
        assert best is None or not any(
            contains(network, number, parse(best.address)) for network in networks
        )


@each_engine
@given(seed=seeds, policy=policies)
def test_what_is_not_in_the_mode_is_second_to_what_is(
    name: str, seed: int, policy: PolicyTable
) -> None:
    """Also by a fallback: it counts only where nothing is in the mode."""
    found = host(name, policy, world(seed))
    for family in FAMILIES:
        rows = found.rows(family)
        tiers = {row.tier for row in rows if row.rank}
        assert len(tiers) <= 1
        narrow = policy.narrows(AF_OF[family])
        without = Reject.NOT_IN_MODE if narrow else Reject.NO_DEFAULT_ROUTE
        assert {row.reject for row in rows if not row.own_reject and not row.rank} <= {without}


@each_engine
@given(
    seed=seeds,
    policy=policies,
    newcomer=st.sampled_from(NEWCOMERS),
    ifindex=st.sampled_from((1, 2, 3, 4)),
)
def test_a_candidate_that_ranks_lower_changes_nothing(
    name: str, seed: int, policy: PolicyTable, newcomer: str, ifindex: int
) -> None:
    """One of host length: a wider one can make others on its link look like VIPs."""
    found = host(name, policy, world(seed))
    before = {family: found.rows(family) for family in FAMILIES}
    best = {family: found.view(family).best for family in FAMILIES}
    length = len(parse(newcomer)) * 8
    found.send(addr(f"{newcomer}/{length}", ifindex))
    row = found.row(newcomer)
    for family in FAMILIES:
        if family != row.family or row.rank > 1 or row.own_reject:
            assert found.view(family).best == best[family]
            after = [other for other in found.rows(family) if key(other) != key(row)]
            assert list(map(key, after)) == list(map(key, before[family]))
