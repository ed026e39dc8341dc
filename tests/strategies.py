"""Records of any content, for hypothesis; tests.netlink_bytes makes messages of them."""

from __future__ import annotations

from hypothesis import strategies as st

from tracker.capture.payload import (
    LEGS_MAX,
    Addr,
    Header,
    Leg,
    Link,
    Member,
    Nexthop,
    Op,
    Record,
    Route,
    Rule,
)

V4 = 2
V6 = 10
LOCAL_TABLE = 255
CLONED = 0x200
TO_TABLE = 1

FAMILIES = st.sampled_from([V4, V6])
U8 = st.integers(0, 255)
U32 = st.integers(0, 2**32 - 1)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-_", min_size=1, max_size=15)
HEADERS = st.builds(
    Header,
    op=st.sampled_from(Op),
    boot_ns=st.integers(0, 2**64 - 1),
    nl_flags=st.integers(0, 2**16 - 1),
    seq=st.just(0),
    flags=st.just(0),
    portid=U32,
    slot=st.just(0),
)


def address_of(family: int, smallest: int = 0) -> st.SearchStrategy[bytes]:
    length = 4 if family == V4 else 16
    numbers = st.integers(smallest, 2 ** (length * 8) - 1)
    return numbers.map(lambda number: number.to_bytes(length, "big"))


@st.composite
def addrs(draw: st.DrawFn) -> Addr:
    family = draw(FAMILIES)
    local = draw(address_of(family))
    peers = address_of(family, 1).filter(lambda peer: peer != local)
    return Addr(
        family=family,
        ifindex=draw(U32),
        local=local,
        prefixlen=draw(st.integers(0, 32 if family == V4 else 128)),
        peer=draw(st.just(b"") | peers),
        flags=draw(U32),
        valid=draw(U32),
        preferred=draw(U32),
        cstamp=draw(U32),
        priority=draw(U32),
        scope=draw(U8),
        proto=draw(U8),
    )


@st.composite
def links(draw: st.DrawFn) -> Link:
    kind = draw(st.sampled_from(["", "vrf", "bond", "veth", "openvswitch"]) | NAMES)
    return Link(
        ifindex=draw(U32),
        name=draw(NAMES),
        flags=draw(U32),
        master=draw(U32),
        lower=draw(U32),
        vrf_table=draw(U32) if kind == "vrf" else 0,
        mtu=draw(U32),
        type=draw(st.integers(0, 2**16 - 1)),
        operstate=draw(U8),
        kind=kind,
    )


@st.composite
def gateways(draw: st.DrawFn) -> tuple[int, bytes]:
    family = draw(st.sampled_from([0, V4, V6]))
    return (family, draw(address_of(family)) if family else b"")


@st.composite
def legs(draw: st.DrawFn) -> Leg:
    return Leg(draw(U32), draw(st.integers(1, 256)), draw(U8), *draw(gateways()))


@st.composite
def routes(draw: st.DrawFn) -> Route:
    family = draw(FAMILIES)
    return Route(
        family=family,
        table=draw(U32.filter(lambda table: table != LOCAL_TABLE)),
        metric=draw(U32),
        dst_len=draw(st.integers(0, 32 if family == V4 else 128)),
        dst=draw(st.just(b"") | address_of(family, 1)),
        tos=draw(U8),
        proto=draw(U8),
        type=draw(U8),
        scope=draw(U8),
        pref=draw(st.sampled_from([0, 1, 3])),
        prefsrc=draw(st.just(b"") | address_of(family, 1)),
        nh_id=draw(U32),
        expires=draw(st.integers(0, 2**31 // 100)) if family == V6 else 0,
        rtm_flags=draw(U32.map(lambda flags: flags & ~CLONED)),
        legs=tuple(draw(st.lists(legs(), max_size=LEGS_MAX))),
    )


@st.composite
def nexthops(draw: st.DrawFn) -> Nexthop:
    family = draw(st.sampled_from([0, V4, V6]))
    has_gateway = family and draw(st.booleans())
    members = st.builds(Member, id=U32, weight=st.integers(1, 2**16 - 1))
    return Nexthop(
        id=draw(st.integers(1, 2**32 - 1)),
        family=family,
        oif=draw(U32),
        flags=draw(U32),
        proto=draw(U8),
        gw_family=family if has_gateway else 0,
        gw=draw(address_of(family)) if has_gateway else b"",
        blackhole=draw(st.booleans()),
        fdb=draw(st.booleans()),
        members=tuple(draw(st.lists(members, max_size=LEGS_MAX))),
    )


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    action = draw(st.integers(0, 9))
    return Rule(
        family=draw(FAMILIES),
        priority=draw(U32),
        table=draw(U32) if action == TO_TABLE else 0,
        action=action,
    )


PAYLOADS = addrs() | links() | routes() | nexthops() | rules()
RECORDS = st.builds(Record, HEADERS, PAYLOADS, st.none())
