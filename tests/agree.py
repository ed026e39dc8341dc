"""A small world for the comparison of engines: so few keys that everything collides.

Records come from a seed and not from strategies: a step then costs one draw, so that a run goes
deep, and it still shrinks to few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from tests.build import (
    APPEND,
    BLACKHOLE,
    DADFAILED,
    DEPRECATED,
    MAIN,
    MANAGETEMPADDR,
    MS,
    OPTIMISTIC,
    PERMANENT,
    REPLACE,
    RTPROT_RA,
    RTPROT_STATIC,
    SECONDARY,
    TENTATIVE,
    UNICAST,
    UNREACHABLE,
    addr,
    by,
    flush,
    gone,
    leg,
    link,
    listed,
    nexthop,
    policy,
    route,
    rule,
    truncated,
)
from tracker.address import host_network, parse_network
from tracker.capture.record import (
    LEGS_MAX,
    Addr,
    Leg,
    Link,
    Nexthop,
    Op,
    Payload,
    Record,
    Route,
    Task,
)
from tracker.model import (
    AF_INET,
    AF_INET6,
    GROUNDS_MAX,
    Criterion,
    Fallback,
    Ground,
    Grounds,
    Network,
    PolicyTable,
)
from tracker.policy.compile import default_route_policy

T = TypeVar("T")

LO = link(1, "lo", loopback=True)
ETH0, ETH1 = link(2, "eth0"), link(3, "eth1")
DEFAULTS = (
    route(via="192.0.2.1", oif=2, metric=5),
    route(via="198.51.100.1", oif=3, metric=5),
    route(via="fe80::1", oif=2, metric=5),
    route(via="fe80::2", oif=3, metric=5, proto=RTPROT_RA, expires=30),
)

USUAL_LINKS = (
    LO,
    *(ETH0, ETH1, link(4, "eth2")) * 3,
    *(link(index, f"eth{index - 2}", carrier=False) for index in (2, 3)),
    *(link(index, f"eth{index - 2}", up=False) for index in (2, 3)),
    link(2, "eth0", master=5),
    link(3, "eth1", master=5, kind="veth"),
    link(5, "red", kind="vrf", vrf_table=7),
    link(5, "br0", kind="bridge"),
    link(4, "dummy0", kind="dummy"),
    link(3, "eth0"),
)
NAMES = ("red", "eth0", "eth1", "eth2", "docker0", "veth1", "br-0123456789ab", "")
KINDS = ("", "", "veth", "bridge", "vrf", "dummy", "openvswitch")

LOCAL = {
    AF_INET: ("192.0.2.10", "192.0.2.11", "198.51.100.10", "10.0.0.1"),
    AF_INET6: ("2001:db8::10", "2001:db8::11", "2001:db8:1::10", "fd00::10"),
}
ODD = {
    AF_INET: ("0.0.0.0", "127.0.0.1", "169.254.0.1", "192.0.0.3", "224.0.0.1"),
    AF_INET6: ("::", "::1", "fe80::10", "ff02::1"),
}
LENGTHS = {AF_INET: (24, 24, 24, 32, 32, 16, 0), AF_INET6: (64, 64, 64, 128, 128, 48, 0)}
GATEWAYS = {
    AF_INET: ("192.0.2.1", "192.0.2.1", "198.51.100.1", "", "fe80::1"),
    AF_INET6: ("fe80::1", "fe80::2", "2001:db8::1", ""),
}
FLAGS = (
    *(PERMANENT,) * 6,
    0,
    PERMANENT | SECONDARY,
    PERMANENT | DEPRECATED,
    DEPRECATED | SECONDARY,
    MANAGETEMPADDR,
    TENTATIVE | PERMANENT,
    TENTATIVE | OPTIMISTIC,
    DADFAILED | TENTATIVE,
)

TEN_PREFIX = "192.0.2.10/24"
TEN, ELEVEN = addr(TEN_PREFIX, 2), addr("192.0.2.11/24", 2, flags=PERMANENT | SECONDARY)
TWENTY = addr("198.51.100.10/24", 3)
SIX = addr("2001:db8::10/64", 2)
RED = link(5, "red", kind="vrf", vrf_table=7)
OVER4 = route(via="192.0.2.1", oif=2, metric=5)
OVER6 = route(via="fe80::1", oif=2, metric=5)
SIBLINGS_LEGS = (leg(2, "fe80::1"), leg(3, "fe80::2"))
SIBLINGS = route(family=AF_INET6, legs=SIBLINGS_LEGS, metric=5)
BOTH = route(legs=(leg(2, "192.0.2.1"), leg(3, "198.51.100.1")), metric=5)
NAMING = route(via="192.0.2.1", oif=2, src="192.0.2.10")
NAMING6 = route(via="fe80::1", oif=2, src="2001:db8::10")
HOP, GROUP = nexthop(1, oif=2), nexthop(4, members=((1, 5), (2, 1)))

STORIES: tuple[tuple[Record, ...], ...] = (
    (RED, link(2, "eth0", master=5), gone(SIX), SIX, route(oif=2, table=7)),
    (link(2, "eth0", master=5), RED, link(2, "eth0"), OVER4, OVER6),
    (link(2, "eth0", up=False), gone(SIX), ETH0, TEN, OVER4, OVER6),
    (BOTH, SIBLINGS, link(2, "eth0", carrier=False), ETH0),
    (BOTH, SIBLINGS, link(2, "eth0", up=False), link(3, "eth1", up=False), ETH0, ETH1),
    (ETH0, TEN, SIX, gone(ETH0), ETH0, TEN, OVER4),
    (TEN, ELEVEN, gone(TEN), addr("192.0.2.11/24", 2), gone(ELEVEN)),
    (TEN, OVER4, TWENTY, gone(TEN)),
    (TEN, NAMING, addr("192.0.2.10/32", 3), gone(TEN), gone(addr("192.0.2.10/32", 3))),
    (SIX, NAMING6, gone(SIX), SIX),
    (HOP, nexthop(2, oif=3), GROUP, route(nh_id=4, metric=5), gone(HOP), gone(nexthop(2))),
    (HOP, GROUP, route(nh_id=1, oif=2), route(family=AF_INET6, nh_id=4), gone(HOP)),
    (HOP, route(nh_id=1), link(2, "eth0", carrier=False), ETH0, HOP, route(nh_id=1)),
    (OVER6, route(family=AF_INET6, legs=SIBLINGS_LEGS, metric=5, nl_flags=APPEND), gone(OVER6)),
    (OVER4, route(via="198.51.100.1", oif=3, metric=5, nl_flags=REPLACE), gone(OVER4)),
    (OVER4, route(via="198.51.100.1", oif=3, metric=5, nl_flags=APPEND), gone(OVER4)),
    (link(5, "ovs", kind="openvswitch"), link(3, "eth1", kind="veth", master=5), TWENTY),
    (link(2, "eth1"), link(3, "eth0"), link(2, "eth0"), link(3, "eth1")),
    (link(5, "br0", kind="bridge"), link(2, "eth0", master=5), gone(TEN), addr(TEN_PREFIX, 5)),
)

Change = dict[str, Any]

LINK_CHANGES: tuple[Change, ...] = (
    *({"flags": flags} for flags in (0, 1, 0x10001, 0x10009)),
    *({"master": master} for master in (0, 4, 5)),
    {"name": "eth2"},
    {"kind": "veth"},
    {"kind": "vrf"},
    {"vrf_table": MAIN},
    {"mtu": 9000},
)
ADDR_CHANGES: tuple[Change, ...] = (
    *({"flags": flags} for flags in FLAGS),
    {"prefixlen": 32},
    {"proto": 2},
    {"scope": 253},
    {"priority": 7},
    {"cstamp": 9},
    {"preferred": 9},
)
NEXTHOP_CHANGES: tuple[Change, ...] = (
    {"oif": 3},
    {"blackhole": True},
    {"fdb": True},
    {"members": ()},
    {"proto": 4},
    {"flags": 1},
)
ROUTE_CHANGES: tuple[Change, ...] = (
    {"type": UNREACHABLE},
    {"scope": 253},
    {"proto": RTPROT_RA},
    {"prefsrc": b""},
    {"pref": 3},
    {"nh_id": 1},
    {"expires": 30},
    {"metric": 5},
    {"tos": 8},
    {"table": 7},
)

TASKS = (Task(812, "NetworkManager"), Task(9, "kworker/0:1", "kernel"), Task(7, "", "untrusted"))

PAUSES = (0, MS, 5 * MS, 19 * MS, 20 * MS, 21 * MS, 1000 * MS, 30_000 * MS, -5 * MS)
"""Between two steps, in ns; the kernel's records can come out of order."""


OTHER_ROUTES = (
    route("10.0.0.0/8", oif=2),
    route("::/96", oif=2),
    route("10.1.0.0/16", oif=3, table=7),
    route("10.1.2.0/24", oif=3, table=255),
    route("10.1.2.3/32", oif=3, table=12),
    route("2001:db8::/63", oif=3),
    route(oif=2, rtm_flags=0x200),
    route(oif=2, table=255),
)
"""Which no selection keeps."""

TARGETS: tuple[tuple[Network, ...], ...] = tuple(
    tuple(map(host_network, targets))
    for targets in ((), ("10.1.2.3",), ("2001:db8::99",), ("192.0.2.99", "10.2.0.0", "::7"))
)
"""Whose way the kernel is asked for."""


def _ground(address: str, ifindex: int) -> Ground:
    source = host_network(address)
    return Ground(source.family, source.address, ifindex)


class Maker:
    """Makes records from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def one(self, items: Sequence[T]) -> T:
        """One of these."""
        return self.random.choice(items)

    def chance(self, percent: int) -> bool:
        """True so often."""
        return self.random.randrange(100) < percent

    def family(self) -> int:
        """IPv4 a little more often: it has more rules."""
        return AF_INET if self.chance(55) else AF_INET6

    def link(self) -> Record:
        """Mostly what a host has; now and then anything becomes anything."""
        if self.chance(85):
            return self.one(USUAL_LINKS)
        return link(
            self.one((1, 2, 3, 4, 5)),
            self.one(NAMES),
            up=self.chance(80),
            carrier=self.chance(80),
            loopback=self.chance(20),
            master=self.one((0, 0, 4, 5, 9)),
            kind=self.one(KINDS),
            vrf_table=self.one((0, 7, MAIN)),
            mtu=self.one((1500, 9000)),
        )

    def local(self, family: int) -> str:
        """An own address."""
        return self.one(LOCAL[family] if self.chance(90) else ODD[family])

    def address(self) -> Record:
        """An address, rarely a special one or on a link that is not known."""
        family = self.family()
        local, length = self.local(family), self.one(LENGTHS[family])
        return addr(
            f"{local}/{length}",
            self.one((1, 2, 2, 2, 3, 3, 3, 4, 5, 9)),
            peer=self.one(LOCAL[family]) if self.chance(5) else "",
            flags=self.one(FLAGS),
            proto=2 if self.chance(10) else 0,
            cstamp=self.one((0, 0, 1, 2)),
            valid=self.one((60, 120)),
        )

    def leg(self, family: int) -> Leg:
        """One nexthop."""
        oif = self.one((2, 2, 2, 3, 3, 3, 1, 4, 9, 0))
        return leg(oif, self.one(GATEWAYS[family]), weight=self.one((1, 1, 2, 3)))

    def route(self) -> Record:
        """A default route, mostly a unicast one in the main table; rarely no default at all."""
        if self.chance(25):
            return self.one(DEFAULTS)
        if self.chance(5):
            return self.one(OTHER_ROUTES)
        family = self.family()
        return route(
            family=family,
            legs=tuple(self.leg(family) for _ in range(self.one(_LEGS))),
            metric=self.one((0, 5, 5, 5, 1024)),
            table=self.one((MAIN,) * 6 + (7, 9)),
            src=self.one(LOCAL[family]) if self.chance(30) else "",
            kind=self.one((UNICAST,) * 6 + (UNREACHABLE, BLACKHOLE, 0)),
            scope=self.one((0, 0, 0, 253, 255)),
            proto=self.one((RTPROT_STATIC, RTPROT_STATIC, RTPROT_RA, 0)),
            tos=8 if self.chance(10) else 0,
            pref=self.one((0, 0, 1, 3)),
            nh_id=self.one((1, 2, 3, 4)) if self.chance(25) else 0,
            expires=self.one((0, 0, 1, 30)),
            nl_flags=self.one((0, 0, 0, APPEND, REPLACE, APPEND | REPLACE)),
        )

    def nexthop(self) -> Record:
        """A nexthop object or a group of them."""
        if self.chance(40):
            members = [(self.one((1, 2, 3, 4, 8)), self.one((1, 5))) for _ in range(self.one(_FEW))]
            return nexthop(self.one((2, 3, 4)), members=tuple(members))
        return nexthop(
            self.one((1, 2, 3)),
            oif=self.one((2, 2, 3, 4)),
            via=self.one(("", "192.0.2.1", "fe80::1")),
            blackhole=self.chance(10),
        )

    def new(self) -> Record:
        """Something that is announced."""
        makers: tuple[Callable[[], Record], ...] = (
            self.link,
            self.address,
            self.address,
            self.route,
            self.route,
            self.nexthop,
        )
        return self.one(makers)()

    def event(self) -> Record:
        """Something that is announced or deleted."""
        record = self.new()
        if self.chance(25):
            record = gone(record)
        if self.chance(20):
            record = by(record, self.one(TASKS))
        return truncated(record) if self.chance(3) else record

    def aside(self) -> Record:
        """What changes nothing by itself: a rule, or a removal that only a trace shows."""
        family, table = self.family(), self.one((MAIN, MAIN, 7, 9))
        if self.chance(30):
            return rule(self.one((0, 100)), family=family, table=table)
        destination = self.one(("default", "default", "10.0.0.0/8"))
        return flush(destination, family=AF_INET if "." in destination else family, table=table)

    def story(self) -> list[Record]:
        """Messages that belong together, sometimes with something in between."""
        records = self.one(STORIES)
        return [
            record
            for told in records
            for record in ((self.event(), told) if self.chance(15) else (told,))
        ]

    def again(self, known: Sequence[Record]) -> Record:
        """A message about something known, or nearly; without any, about anything."""
        if not known:
            return self.event()
        record = self.one(known)
        record = self.vary(record) if self.chance(50) else record
        op = self.one((Op.NEW, Op.NEW, Op.DEL))
        return record._replace(header=record.header._replace(op=op, flags=0))

    def vary(self, record: Record) -> Record:
        """The same but for one field."""
        other: Payload = record.payload
        if isinstance(other, Link):
            other = other._replace(**self.one(LINK_CHANGES))
        elif isinstance(other, Addr):
            other = other._replace(**self.one(ADDR_CHANGES))
        elif isinstance(other, Nexthop):
            other = other._replace(**self.one(NEXTHOP_CHANGES))
        elif isinstance(other, Route):
            legs = other.legs
            changes = (*ROUTE_CHANGES, {"legs": legs[::-1]}, {"legs": legs[:1]})
            other = other._replace(**self.one(changes))
        return record._replace(payload=other)

    def pause(self) -> int:
        """Nanoseconds until the next step."""
        return self.one(PAUSES) if self.chance(30) else MS


_FEW = (1, 1, 2, 3)
_LEGS = (1, 1, 1, 2, 2, 3, 0) * 5 + (LEGS_MAX - 1, LEGS_MAX)

_BACKWARDS = tuple(
    criterion for criterion in reversed(Criterion) if criterion is not Criterion.ADDRESS
)

POLICIES: tuple[PolicyTable, ...] = (
    policy(),
    policy(),
    policy(table=7),
    default_route_policy(
        families=["ipv6"],
        fallback="physical",
        exclude_addresses=["2001:db8::11"],
        exclude_cidrs=["192.0.2.0/25"],
    ),
    default_route_policy(
        families=["ipv4", "ipv6"],
        fallback="interface:d*",
        static=["192.0.2.11", "fd00::10"],
        internal=["10.0.0.0/8", "2001:db8::/32"],
        exclude_interfaces=["eth1", "!docker0"],
    ),
    default_route_policy(families=["ipv4", "ipv6"], fallback="physical"),
    default_route_policy(families=["ipv4"], table=9, fallback="none"),
    policy(criteria=_BACKWARDS),
    policy(criteria=()),
    listed(names=("eth1", "eth*", "br-*")),
    listed(networks=("198.51.100.0/24", "192.0.2.0/24", "2001:db8::/48")),
    listed(names=("eth0",), networks=("10.0.0.1", "fd00::10"), fallback=Fallback.DEFAULT_ROUTE),
    listed(
        networks=("192.0.2.11", "2001:db8::11"), hints=("198.51.100.7",), fallback=Fallback.AUTO
    ),
    listed(fallback=Fallback.PHYSICAL),
    policy(hints=(host_network("192.0.2.99"),), fallback=Fallback.DEFAULT_ROUTE),
    policy(hints=(host_network("2001:db8::99"), host_network("2001:db8:1::1"))),
    listed(names=("*",), hints=("10.9.9.9",), table=7, criteria=_BACKWARDS),
)
"""What selections may be, in every mode."""

GROUNDS: tuple[Grounds | None, ...] = (
    None,
    Grounds(),
    Grounds(frozenset({2}), frozenset({1}), frozenset({_ground("192.0.2.10", 2)})),
    Grounds(
        frozenset({3, 5}),
        frozenset({2, 4}),
        frozenset({_ground("10.0.0.1", 0), _ground("2001:db8::10", 2), _ground("fd00::10", 3)}),
    ),
    Grounds(any_address=frozenset({AF_INET}), any_nexthop=True),
    Grounds(frozenset({4, 9}), any_address=frozenset({AF_INET6})),
    Grounds(frozenset(range(GROUNDS_MAX + 1))),
)
"""What the kernel's answers rest on."""

MODE_NETWORKS: tuple[tuple[Network, ...], ...] = tuple(
    tuple(map(parse_network, networks))
    for networks in ((), ("192.0.2.11/32",), ("198.51.100.0/24", "fd00::/8"), ("0.0.0.0/0", "::/0"))
)
"""What may be put into the list of a mode."""
