"""What field cases say about single messages, for which a case file has no words."""

from __future__ import annotations

import pytest

from tests.cases.playing import make_engine
from tests.netlink_bytes import RTM_NEWADDR, RTM_NEWROUTE, attributes, message, u32
from tracker.capture.netlink import parse
from tracker.capture.record import (
    Addr,
    Dump,
    Header,
    Loss,
    LossCause,
    Op,
    Payload,
    Phase,
    Record,
    Route,
    decode,
    encode,
)
from tracker.model import AF_INET, AF_INET6, Scope
from tracker.policy.compile import default_route_policy

IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_OIF, RTA_GATEWAY, RTA_TABLE = 4, 5, 15
FOUR = b"\xc0\xa8\x00"
SIX = b"\x20\x01\x0d\xb8" + bytes(11)


def record_of(raw: bytes) -> Payload:
    parsed = parse(raw)
    assert parsed is not None
    return decode(parsed).payload


@pytest.mark.parametrize(
    ("family", "attributes_", "local", "peer"),
    [
        (AF_INET, {IFA_ADDRESS: FOUR + b"\xfe", IFA_LOCAL: FOUR + b"\x02"}, b"\x02", b"\xfe"),
        (AF_INET, {IFA_ADDRESS: FOUR + b"\x02", IFA_LOCAL: FOUR + b"\x02"}, b"\x02", b""),
        (AF_INET6, {IFA_LOCAL: SIX + b"\x0e", IFA_ADDRESS: SIX + b"\x01"}, b"\x0e", b"\x01"),
        (AF_INET6, {IFA_ADDRESS: SIX + b"\x0e"}, b"\x0e", b""),
    ],
    ids=["IPv4 with a peer", "IPv4", "IPv6 with a peer", "IPv6"],
)
def test_the_own_address_is_the_local_one_or_else_the_only_one(
    family: int, attributes_: dict[int, bytes], local: bytes, peer: bytes
) -> None:
    head = bytes([family, 32, 0x80, 0]) + u32(2)
    address = record_of(message(RTM_NEWADDR, head + attributes(list(attributes_.items()))))
    assert isinstance(address, Addr)
    prefix = FOUR if family == AF_INET else SIX
    assert address.local == prefix + local
    assert address.peer == (prefix + peer if peer else b"")


@pytest.mark.parametrize(
    ("header", "attribute"),
    [(254, None), (254, 254), (252, 254), (0, 254)],
    ids=["in the header", "in both", "compat", "in the attribute"],
)
def test_the_table_is_the_attribute_or_else_the_header(header: int, attribute: int | None) -> None:
    head = bytes([AF_INET, 0, 0, 0, header, 4, 0, 1]) + u32(0)
    pairs = [(RTA_GATEWAY, b"\xc0\x00\x02\x01"), (RTA_OIF, u32(2))]
    pairs += [(RTA_TABLE, u32(attribute))] if attribute is not None else []
    route = record_of(message(RTM_NEWROUTE, head + attributes(pairs)))
    assert isinstance(route, Route)
    assert route.table == 254


def test_messages_that_arrive_during_a_dump_win_over_it(engine: str) -> None:
    tracked = make_engine(engine)
    policy = default_route_policy(families=("ipv4",))
    tracked.set_policy(0, policy)
    clock = iter(range(10**12, 2 * 10**12, 10**9))

    def apply(payload: Payload, flags: int = 0, op: Op = Op.NEW) -> None:
        tracked.apply(encode(Record(Header(op, next(clock), flags=flags), payload)))

    def address(last: int) -> Addr:
        return Addr(AF_INET, 2, b"\xc0\x00\x02" + bytes([last]), 24, flags=0x80)

    in_dump = 1
    apply(address(10))
    apply(address(11))
    apply(Loss(LossCause.OVERRUN, 1 << Scope.ADDR4))
    apply(Dump(Scope.ADDR4, Phase.BEGIN))
    apply(address(77))
    apply(address(11), op=Op.DEL)
    apply(address(11), in_dump)
    apply(address(99), in_dump)
    apply(Dump(Scope.ADDR4, Phase.END))
    known = {row.address for row in tracked.rows(0, "ipv4")}
    assert known == {"192.0.2.77", "192.0.2.99"}
    assert not [dirty for dirty in tracked.dirty() if dirty.scope is Scope.ADDR4]
