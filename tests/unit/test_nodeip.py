"""Node IPs as Kubernetes has them: --node-ip, the annotation, providers, lists of addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.nodeip.addresses import (
    PREFERRED_TYPES,
    NoAddressError,
    NodeAddress,
    host_ips,
    one_internal_ip_each,
    preferred_address,
    preferred_order,
)
from tracker.nodeip.arguments import NodeIPError, NodeIPs, parse_annotation, parse_argument
from tracker.nodeip.provider import merge


@pytest.mark.parametrize(
    ("value", "ips", "invalid"),
    [
        ("", (), ()),
        (" ", (), ("",)),
        ("10.0.0.1", ("10.0.0.1",), ()),
        (" 10.0.0.1 , FD00:0::1 ", ("10.0.0.1", "fd00::1"), ()),
        ("010.001.000.009", ("10.1.0.9",), ()),
        ("::ffff:010.0.0.1", ("10.0.0.1",), ()),
        ("0.0.0.0", ("0.0.0.0",), ()),
        ("::", ("::",), ()),
        ("10.0.0.1/24", (), ("10.0.0.1/24",)),
        ("10.0.0.256,1.2.3", (), ("10.0.0.256", "1.2.3")),
        ("fe80::1%eth0", (), ("fe80::1%eth0",)),
        ("10.0.0.1,", ("10.0.0.1",), ("",)),
        ("n1.example,10.0.0.1", ("10.0.0.1",), ("n1.example",)),
    ],
)
def test_the_flag_takes_what_it_can(
    value: str, ips: tuple[str, ...], invalid: tuple[str, ...]
) -> None:
    assert parse_argument(value) == NodeIPs(ips, invalid)


@pytest.mark.parametrize(
    ("value", "provider", "rule", "said"),
    [
        ("10.0.0.1,10.0.0.2", "", "need-single-or-dual", "two ipv4 addresses"),
        # IPv4 in IPv6 clothes.
        ("10.0.0.1,::ffff:10.0.0.2", "", "need-single-or-dual", "two ipv4 addresses"),
        ("1.1.1.1,fd00::1,fd00::2", "external", "need-single-or-dual", "has 3 addresses"),
        ("10.0.0.1,fd00::1", "aws", "dual-stack-not-supported", "provider in the tree"),
        ("0.0.0.0,fd00::1", "", "unspecified-in-pair", "0.0.0.0 in a pair"),
        ("10.0.0.1,::", "external", "unspecified-in-pair", ":: in a pair"),
    ],
)
def test_a_refusal_names_its_rule_in_one_line(
    value: str, provider: str, rule: str, said: str
) -> None:
    with pytest.raises(NodeIPError) as refused:
        parse_argument(value, provider)
    assert refused.value.rule == rule
    assert said in str(refused.value)
    assert "; allowed" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", ["", " 1.2.3.4", "1.2.3.4, fd00::1", "x", "1.2.3.4/24", ","])
def test_the_annotation_is_strict(value: str) -> None:
    with pytest.raises(NodeIPError) as refused:
        parse_annotation(value)
    assert refused.value.rule == "parse"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("1.2.3.4,5.6.7.8", "need-single-or-dual"),
        ("1.2.3.4,::", "unspecified-in-pair"),
    ],
)
def test_the_annotation_knows_the_same_pairs(value: str, rule: str) -> None:
    with pytest.raises(NodeIPError) as refused:
        parse_annotation(value)
    assert refused.value.rule == rule


LISTED = [
    NodeAddress("Hostname", "n1"),
    NodeAddress("ExternalIP", "203.0.113.7"),
    NodeAddress("InternalIP", "10.0.0.1"),
    NodeAddress("InternalIP", "10.0.0.2"),
    NodeAddress("InternalIP", "fd00::2"),
]


def test_a_requested_address_is_first_and_alone_of_its_type() -> None:
    assert merge("10.0.0.2,fd00::2", LISTED) == [LISTED[3], LISTED[4], LISTED[0], LISTED[1]]


def test_a_requested_address_that_the_provider_lacks_is_refused() -> None:
    with pytest.raises(NoAddressError, match=r"node IP 10\.0\.0\.9 is not among .*10\.0\.0\.1"):
        merge("10.0.0.9", LISTED)


def test_host_ips_are_one_of_each_family_internal_ones_first() -> None:
    assert host_ips(LISTED) == ("10.0.0.1", "fd00::2")
    assert host_ips(LISTED[:2]) == ("203.0.113.7",)
    with pytest.raises(NoAddressError):
        host_ips(LISTED[:1])


def test_the_order_of_types_decides_where_the_api_server_connects() -> None:
    assert preferred_address(LISTED) == "n1"
    assert preferred_address(LISTED, ("InternalIP", "ExternalIP")) == "10.0.0.1"
    with pytest.raises(NoAddressError, match="InternalDNS"):
        preferred_address(LISTED, ("InternalDNS",))


def test_the_first_of_the_preferred_order_is_where_the_api_server_connects() -> None:
    for types in (("InternalIP", "ExternalIP", "Hostname"), ("ExternalDNS", "ExternalIP")):
        assert preferred_order(LISTED, types)[0].address == preferred_address(LISTED, types)
    assert preferred_order(LISTED, ("ExternalIP", "InternalIP")) == (LISTED[1], *LISTED[2:])
    assert preferred_order(LISTED, ("InternalDNS",)) == ()


def test_one_internal_ip_each_and_nothing_else() -> None:
    assert one_internal_ip_each(LISTED) == (LISTED[2], LISTED[4])
    assert one_internal_ip_each(LISTED[:2]) == ()
    # The family is that of the value: an IPv4 address in IPv6 clothes is one.
    mapped = [NodeAddress("InternalIP", "::ffff:10.0.0.1"), *LISTED[2:]]
    assert one_internal_ip_each(mapped) == (mapped[0], LISTED[4])


IPV4 = st.integers(1, 4).map("10.0.0.{}".format)
IPV6 = st.integers(1, 4).map("fd00::{}".format)
TYPES = st.sampled_from([*PREFERRED_TYPES, "Other"])
LISTS = st.lists(st.builds(NodeAddress, TYPES, IPV4 | IPV6), max_size=8, unique=True)
REQUESTS = st.one_of(st.tuples(IPV4), st.tuples(IPV6), st.tuples(IPV4, IPV6), st.tuples(IPV6, IPV4))


@given(REQUESTS, LISTS)
def test_of_any_list_the_requested_addresses_come_first_and_nothing_is_made_up(
    wanted: tuple[str, ...], listed: list[NodeAddress]
) -> None:
    provided = ",".join(wanted)
    if not set(wanted) <= {entry.address for entry in listed}:
        with pytest.raises(NoAddressError):
            merge(provided, listed)
        return
    merged = merge(provided, listed)
    assert set(merged) <= set(listed)
    matching = [entry for entry in merged if entry.address in wanted]
    assert list(dict.fromkeys(entry.address for entry in merged))[: len(wanted)] == list(wanted)
    rest = merged[len(matching) :]
    assert not {entry.type for entry in matching} & {entry.type for entry in rest}
    assert rest == [entry for entry in listed if entry in rest]
    # What has been merged is merged.
    assert merge(provided, merged) == merged


@given(LISTS, st.permutations(PREFERRED_TYPES))
def test_of_any_list_what_others_take_is_in_it(listed: list[NodeAddress], types: list[str]) -> None:
    order = preferred_order(listed, types)
    assert len(order) == sum(entry.type in PREFERRED_TYPES for entry in listed)
    if order:
        assert preferred_address(listed, types) == order[0].address
    each = one_internal_ip_each(listed)
    assert len(each) <= 2
    if each:
        assert host_ips(listed)[0] == each[0].address
