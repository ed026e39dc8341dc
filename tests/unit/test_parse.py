"""One netlink message becomes one record."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import V4, V6, addr, link, nexthop, route, rule
from tests.netlink_bytes import (
    attribute,
    attributes,
    encode,
    message,
    parts,
    u8,
    u16,
    u32,
)
from tests.strategies import CLONED, LOCAL_TABLE, RECORDS, U8
from tracker.capture.netlink import parse
from tracker.capture.payload import (
    F_DUMP,
    F_TRUNCATED,
    FOREVER,
    LEGS_MAX,
    Addr,
    Leg,
    Link,
    Member,
    Nexthop,
    Payload,
    Record,
    Route,
    Rule,
)
from tracker.capture.record import decode

A4 = bytes([192, 0, 2, 1])
B4 = bytes([192, 0, 2, 2])
A6 = bytes([0x20, 1, 0xD, 0xB8, *[0] * 11, 1])
B6 = bytes([0xFE, 0x80, *[0] * 13, 1])


def payload_of(raw: bytes, flags: int = 0) -> Payload:
    record = parse(raw, flags=flags)
    assert record is not None
    return decode(record).payload


def legs_of(raw: bytes) -> tuple[Leg, ...]:
    payload = payload_of(raw)
    assert isinstance(payload, Route)
    return payload.legs


# Any record survives the way through the kernel's format.


@given(record=RECORDS, data=st.data())
def test_a_record_is_read_back_whatever_the_order_of_its_attributes(
    record: Record, data: st.DataObject
) -> None:
    """Attributes that nobody knows, and flags in the type of an attribute, change nothing."""
    unknown = data.draw(st.lists(st.tuples(st.integers(60, 2**14 - 1), st.binary(max_size=9))))
    count = len(parts(record)[2]) + len(unknown)
    order = data.draw(st.permutations(range(count)))
    raw = parse(encode(record, unknown, order), record.header.boot_ns)
    assert raw is not None
    assert decode(raw) == record


@given(record=RECORDS, data=st.data())
def test_bytes_that_are_cut_or_changed_are_refused_or_give_a_whole_record(
    record: Record, data: st.DataObject
) -> None:
    raw = bytearray(encode(record))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(U8)
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        parsed = parse(cut)
    except ValueError:
        return
    if parsed is not None:
        decode(parsed)


# What a message means.


def test_the_own_address_is_ifa_local_and_the_peer_is_ifa_address() -> None:
    payload = payload_of(addr([(1, B4), (2, A4)]))
    assert isinstance(payload, Addr)
    assert (payload.local, payload.peer) == (A4, B4)


def test_an_address_without_ifa_local_is_ifa_address() -> None:
    payload = payload_of(addr([(1, A6)], V6, 64))
    assert isinstance(payload, Addr)
    assert (payload.local, payload.peer) == (A6, b"")


@pytest.mark.parametrize("family", [V4, V6])
def test_an_address_message_without_an_address_is_malformed(family: int) -> None:
    with pytest.raises(ValueError):
        parse(addr([], family))


def test_ifa_flags_wins_over_the_header_which_has_eight_bits() -> None:
    payload = payload_of(addr([(2, A4), (8, u32(0x380))], flags=0x80))
    assert isinstance(payload, Addr)
    assert payload.flags == 0x380


def test_the_header_gives_the_flags_where_there_is_nothing_else() -> None:
    payload = payload_of(addr([(2, A4)], flags=0x81))
    assert isinstance(payload, Addr)
    assert payload.flags == 0x81


def test_an_address_without_times_lasts_for_ever() -> None:
    payload = payload_of(addr([(2, A4)]))
    assert isinstance(payload, Addr)
    assert (payload.valid, payload.preferred, payload.cstamp) == (FOREVER, FOREVER, 0)


@pytest.mark.parametrize(("family", "prefixlen"), [(V4, 33), (V6, 129)])
def test_a_prefix_longer_than_its_family_is_malformed(family: int, prefixlen: int) -> None:
    with pytest.raises(ValueError):
        parse(addr([(1, A6)], family, prefixlen))


def test_addresses_of_other_families_are_not_for_us() -> None:
    assert parse(addr([(1, A4)], 28)) is None


@pytest.mark.parametrize("kind", [16, 17])
def test_a_bridge_port_that_leaves_is_no_link_that_goes(kind: int) -> None:
    """Only AF_UNSPEC describes a link; AF_BRIDGE speaks of a port of a bridge."""
    assert parse(link([(3, b"eth0\0")], family=7, kind=kind)) is None


def test_a_wireless_event_is_no_link_without_master_and_kind() -> None:
    """wireless_nlevent_flush() sends the name and what the driver said, nothing else."""
    event = [(3, b"wlan0\0"), (11, bytes(24))]
    assert parse(link(event)) is None
    assert parse(link([(3, b"wlan0\0")])) is not None


def test_a_table_in_the_data_of_another_kind_is_no_vrf() -> None:
    data = attribute(1, u32(10))
    for kind, table in ((b"vrf\0", 10), (b"bond\0", 0)):
        payload = payload_of(link([(3, b"x\0"), (18, attributes([(2, data), (1, kind)]))]))
        assert isinstance(payload, Link)
        assert payload.vrf_table == table


def test_of_an_attribute_that_comes_twice_the_last_one_counts() -> None:
    infos = [(18, attributes([(1, kind)])) for kind in (b"bond\0", b"veth\0")]
    payload = payload_of(link([(3, b"a\0"), (18, b"broken"), *infos, (3, b"b\0")]))
    assert isinstance(payload, Link)
    assert (payload.name, payload.kind) == ("b", "veth")


def test_a_name_that_does_not_end_is_cut() -> None:
    payload = payload_of(link([(3, b"0123456789abcdef")]))
    assert isinstance(payload, Link)
    assert payload.name == "0123456789abcde"


def test_the_table_of_a_route_is_rta_table_else_the_header() -> None:
    for pairs, table in (([(15, u32(1000))], 1000), ([], 254)):
        payload = payload_of(route(pairs))
        assert isinstance(payload, Route)
        assert payload.table == table


@pytest.mark.parametrize(
    "raw",
    [
        route([], table=LOCAL_TABLE),
        route([(15, u32(LOCAL_TABLE))], table=252),
        route([], flags=CLONED),
        route([], family=128),
        route([], family=V6, src_len=56),
    ],
    ids=["local", "local by attribute", "cloned", "multicast", "for some sources only"],
)
def test_routes_that_are_none_of_ours(raw: bytes) -> None:
    assert parse(raw) is None


def test_a_missing_metric_is_zero() -> None:
    payload = payload_of(route([]))
    assert isinstance(payload, Route)
    assert payload.metric == 0


def test_a_route_without_any_nexthop_has_no_leg() -> None:
    assert legs_of(route([(30, u32(5))])) == ()


def test_a_single_nexthop_is_a_list_of_one() -> None:
    raw = route([(4, u32(7)), (5, B4)], flags=0x10)
    assert legs_of(raw) == (Leg(7, 1, 0x10, V4, B4),)


def test_a_gateway_of_the_other_family_is_a_gateway() -> None:
    """RFC 5549; RTA_VIA."""
    assert legs_of(route([(4, u32(7)), (18, u16(V6) + B6)])) == (Leg(7, 1, 0, V6, B6),)


def test_a_gateway_of_a_family_that_is_not_ip_is_none() -> None:
    assert legs_of(route([(4, u32(7)), (18, u16(17) + bytes(6))])) == (Leg(7),)


def test_the_weight_of_a_multipath_leg_is_one_more_than_its_hops() -> None:
    hop = struct.pack("=HBBI", 16, 0, 9, 7) + attribute(5, B4)
    assert legs_of(route([(9, hop)])) == (Leg(7, 10, 0, V4, B4),)


def test_more_legs_than_a_record_holds_are_cut_and_said() -> None:
    hops = b"".join(struct.pack("=HBBI", 8, 0, 0, oif) for oif in range(1, LEGS_MAX + 2))
    for count, flags in ((LEGS_MAX, F_DUMP), (LEGS_MAX + 1, F_DUMP | F_TRUNCATED)):
        raw = parse(route([(9, hops[: count * 8])]), flags=F_DUMP)
        assert raw is not None
        record = decode(raw)
        assert isinstance(record.payload, Route)
        assert len(record.payload.legs) == LEGS_MAX
        assert record.header.flags == flags


@pytest.mark.parametrize(("ticks", "seconds"), [(0, 0), (1, 1), (100, 1), (101, 2), (180000, 1800)])
def test_expiry_is_in_seconds_rounded_up(ticks: int, seconds: int) -> None:
    payload = payload_of(route([(12, struct.pack("=8i", 0, 0, ticks, *[0] * 5))], V6))
    assert isinstance(payload, Route)
    assert payload.expires == seconds


def test_a_route_whose_time_is_over_is_not_there() -> None:
    """The kernel collects it up to half a minute later, but does not use it."""
    over = [(12, struct.pack("=8i", 0, 0, -5, *[0] * 5))]
    assert parse(route(over, V6)) is None
    assert parse(route(over, V6, kind=25)) is not None


def test_weights_of_a_group_have_sixteen_bits() -> None:
    group = struct.pack("=IBBxx", 1, 255, 0) + struct.pack("=IBBxx", 2, 0, 1)
    payload = payload_of(nexthop([(1, u32(9)), (2, group)], family=0))
    assert isinstance(payload, Nexthop)
    assert payload.members == (Member(1, 256), Member(2, 257))


def test_a_group_of_more_members_than_a_record_holds_is_cut_and_said() -> None:
    group = b"".join(struct.pack("=IBBxx", number, 0, 0) for number in range(LEGS_MAX + 1))
    raw = parse(nexthop([(1, u32(9)), (2, group)], family=0))
    assert raw is not None
    assert decode(raw).header.flags == F_TRUNCATED


def test_the_table_of_a_rule_is_fra_table_else_the_header() -> None:
    assert payload_of(rule([(6, u32(9)), (15, u32(1000))], table=252)) == Rule(V4, 9, 1000, 1)
    assert payload_of(rule([], V6, table=254)) == Rule(V6, 0, 254, 1)


def test_a_rule_that_leads_to_no_table_has_none() -> None:
    assert payload_of(rule([(15, u32(7))], table=7, action=7)) == Rule(V4, action=7)


def test_rules_of_multicast_routing_are_not_for_us() -> None:
    assert parse(rule([], 128)) is None


def test_types_that_nobody_asked_for_are_not_for_us() -> None:
    assert parse(message(28, bytes(64))) is None
    assert parse(message(3, bytes(4))) is None


MALFORMED = {
    "nothing": b"",
    "half a header": bytes(8),
    "longer than it is": message(20, bytes(40))[:-1],
    "shorter than its header": struct.pack("=IHHII", 15, 20, 0, 0, 0),
    "no room for the address": message(20, bytes([V4])),
    "no room for the link": message(16, bytes(8)),
    "no room for the route": message(24, bytes([V4, 0, 0])),
    "no room for the nexthop": message(104, bytes(4)),
    "attribute longer than the message": message(
        20, struct.pack("=BBBBI", V4, 24, 0, 0, 7) + struct.pack("=HH", 12, 2) + bytes(4)
    ),
    "attribute shorter than its header": message(
        20, struct.pack("=BBBBI", V4, 24, 0, 0, 7) + struct.pack("=HH", 3, 2)
    ),
    "short address": addr([(2, bytes(3))]),
    "short IPv6 address": addr([(1, bytes(15))], V6),
    "short flags": addr([(2, A4), (8, u16(1))]),
    "short times": addr([(2, A4), (6, bytes(15))]),
    "empty protocol": addr([(2, A4), (11, b"")]),
    "short mtu": link([(4, u16(1500))]),
    "empty operstate": link([(16, b"")]),
    "broken linkinfo": link([(18, struct.pack("=HH", 2, 1))]),
    "short vrf table": link([(18, attributes([(1, b"vrf\0"), (2, attribute(1, u16(10)))]))]),
    "short metric": route([(6, u16(1))]),
    "short gateway": route([(5, bytes(3))]),
    "empty via": route([(18, b"")]),
    "short via": route([(18, u16(V6) + bytes(15))]),
    "empty preference": route([(20, b"")], V6),
    "short nexthop id": route([(30, u8(1))]),
    "short expiry": route([(12, bytes(31))], V6),
    "leg longer than the list": route([(9, struct.pack("=HBBI", 9, 0, 0, 7))]),
    "leg shorter than its header": route([(9, struct.pack("=HBBI", 7, 0, 0, 7))]),
    "short gateway of a leg": route(
        [(9, struct.pack("=HBBI", 14, 0, 0, 7) + struct.pack("=HH", 6, 5) + bytes(4))]
    ),
    "nexthop without id": nexthop([(5, u32(7))]),
    "nexthop with id 0": nexthop([(1, u32(0)), (5, u32(7))]),
    "group of odd size": nexthop([(1, u32(9)), (2, bytes(9))], family=0),
    "no room for the rule": message(32, bytes([V4])),
    "short table of a rule": rule([(15, u16(7))]),
    "short priority of a rule": rule([(6, u16(7))]),
    "gateway of no family": nexthop([(1, u32(9)), (6, A4)], family=0),
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_messages_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        parse(raw)
