"""Routes: defaults of the tables that somebody wants, and what covers a target."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bpf.program import TABLES_MAX, TARGETS_MAX, policy
from tests.messages import V4, V6, route
from tests.netlink_bytes import u32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bpf.program import Filter

LOCAL_TABLE = 255
CLONED = 0x200

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def to(network: str | Network, table: int = 254, flags: int = 0, what: int = 24) -> bytes:
    """A route as the kernel announces it: table first, the destination unless it is all."""
    net = ipaddress.ip_network(network)
    pairs = [(15, u32(table))]
    if net.prefixlen:
        pairs.append((1, net.network_address.packed))
    pairs.append((4, u32(2)))
    return route(
        pairs,
        V4 if net.version == 4 else V6,
        table=min(table, 252) if table > 255 else table,
        dst_len=net.prefixlen,
        flags=flags,
        kind=what,
    )


def packed(addresses: Sequence[str]) -> list[bytes]:
    return [ipaddress.ip_address(address).packed for address in addresses]


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0"])
def test_default_routes_matter_in_the_tables_that_are_wanted(program: Filter, network: str) -> None:
    program.obey(policy(tables=[254, 1000, 77]))
    for table, wanted in ((254, 1), (1000, 1), (77, 1), (255, 0), (1001, 0), (252, 0), (0, 0)):
        for what in (24, 25):
            assert bool(program.pass_on(to(network, table, what=what))) == wanted


def test_there_may_be_as_many_tables_as_fit(program: Filter) -> None:
    tables = range(1, TABLES_MAX + 1)
    program.obey(policy(tables=tables))
    assert all(program.pass_on(to("0.0.0.0/0", table)) for table in tables)
    assert program.pass_on(to("0.0.0.0/0", TABLES_MAX + 1)) is None
    assert program.pass_on(to("0.0.0.0/0", 0)) is None


def test_no_route_matters_where_no_table_is_wanted(program: Filter) -> None:
    program.obey(policy(tables=[]))
    assert program.pass_on(to("0.0.0.0/0", 0)) is None
    assert program.pass_on(to("0.0.0.0/0")) is None


def test_another_filter_counts_at_once(program: Filter) -> None:
    for table in (10, 20, 30):
        program.obey(policy(tables=[table]))
        told = [other for other in (10, 20, 30) if program.pass_on(to("0.0.0.0/0", other))]
        assert told == [table]


@pytest.mark.parametrize(
    ("network", "matters"),
    [
        ("10.1.2.3/32", True),
        ("10.1.2.2/31", True),
        ("10.1.2.0/24", True),
        ("10.1.0.0/17", True),
        ("12.0.0.0/7", False),
        ("8.0.0.0/5", True),
        ("0.0.0.0/1", True),
        ("0.0.0.0/0", True),
        ("10.1.2.4/32", False),
        ("10.1.2.2/32", False),
        ("10.1.128.0/17", False),
        ("128.0.0.0/1", False),
        ("2001:db8::1/128", True),
        ("2001:db8::/127", True),
        ("2001:db8::/65", True),
        ("2001:db8::/64", True),
        ("2001:db8::/63", True),
        ("2001:db8::/29", True),
        ("2000::/3", True),
        ("::/0", True),
        ("2001:db8::2/128", False),
        ("2001:db8:0:0:8000::/65", False),
        ("2001:db8:0:1::/64", False),
        ("8000::/1", False),
        ("a01:203::/32", False),
    ],
)
def test_what_covers_a_target_matters_in_any_table(
    program: Filter, network: str, matters: bool
) -> None:
    program.obey(policy(targets=packed(["10.1.2.3", "2001:db8::1"])))
    for table in (254, 1000):
        assert bool(program.pass_on(to(network, table))) == matters
    assert program.pass_on(to(network, LOCAL_TABLE)) is None
    assert program.pass_on(to(network, flags=CLONED)) is None


def test_a_target_of_one_family_makes_nothing_of_the_other_matter(program: Filter) -> None:
    program.obey(policy(tables=[], targets=packed(["32.1.13.184"])))
    assert program.pass_on(to("2001:db8::/32")) is None
    assert program.pass_on(to("::/0")) is None
    assert program.pass_on(to("0.0.0.0/0"))


def test_there_may_be_as_many_targets_as_fit(program: Filter) -> None:
    targets = [f"192.0.2.{number}" for number in range(TARGETS_MAX)]
    program.obey(policy(targets=packed(targets)))
    assert all(program.pass_on(to(f"{target}/32")) for target in targets)
    assert program.pass_on(to(f"192.0.2.{TARGETS_MAX}/32")) is None


def test_a_destination_that_is_not_where_it_should_be_is_for_user_space(program: Filter) -> None:
    program.obey(policy(targets=packed(["10.1.2.3"])))
    other = [(15, u32(254)), *((number, u32(0)) for number in (4, 6, 16, 22))]
    late = route([*other, (1, bytes([192, 0, 2, 0]))], dst_len=24)
    assert program.pass_on(late)
    assert program.pass_on(route([(15, u32(254))], dst_len=24))
    assert program.pass_on(route([(15, u32(254)), (1, bytes(3))], dst_len=24))


ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6)


@st.composite
def networks(draw: st.DrawFn, near: Sequence[bytes]) -> Network:
    """Any, or one that covers an address nearly."""
    address = draw(ADDRESSES | st.sampled_from(near).map(ipaddress.ip_address))
    flip = draw(st.integers(0, address.max_prefixlen))
    value = int(address) ^ (1 << flip >> 1)
    length = draw(st.integers(0, address.max_prefixlen))
    packed_ = value.to_bytes(address.max_prefixlen // 8, "big")
    return ipaddress.ip_network((packed_, length), strict=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    targets=st.lists(ADDRESSES.map(lambda a: a.packed), min_size=1, max_size=TARGETS_MAX),
    data=st.data(),
)
def test_covering_is_what_it_is_everywhere(
    program: Filter, targets: list[bytes], data: st.DataObject
) -> None:
    program.obey(policy(tables=[], targets=targets))
    network = data.draw(networks(targets))
    covers = any(
        ipaddress.ip_address(target) in network
        for target in targets
        if len(target) * 8 == network.max_prefixlen
    )
    assert bool(program.pass_on(to(network))) == covers
