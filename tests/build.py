"""Readable records, and a host that feeds them to an engine with a clock of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.address import host_network, parse, parse_network
from tracker.capture.record import (
    DUMP_AUDIT,
    DUMP_UNPROVEN,
    F_DUMP,
    F_TRUNCATED,
    FOREVER,
    Addr,
    Dump,
    Flush,
    Header,
    Leg,
    Link,
    Loss,
    LossCause,
    Member,
    Nexthop,
    Op,
    Phase,
    Record,
    Route,
    Rule,
    Task,
    encode,
)
from tracker.model import (
    AF_INET,
    AF_INET6,
    FAMILIES,
    Dirty,
    Fallback,
    Mode,
    Network,
    PolicyTable,
    Row,
    Scope,
    View,
)
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from tracker.engine.base import Engine

MS = 1_000_000
"""Nanoseconds."""

IFF_UP = 0x1
IFF_LOOPBACK = 0x8
IFF_LOWER_UP = 0x10000

SECONDARY = TEMPORARY = 0x01
OPTIMISTIC = 0x04
DADFAILED = 0x08
DEPRECATED = 0x20
TENTATIVE = 0x40
PERMANENT = 0x80
MANAGETEMPADDR = 0x100

REPLACE = 0x100
APPEND = 0x800

UNICAST = 1
LOCAL = 2
BLACKHOLE = 6
UNREACHABLE = 7

RTPROT_STATIC = 4
RTPROT_RA = 9

MAIN = 254


def link(
    ifindex: int,
    name: str,
    *,
    up: bool = True,
    carrier: bool = True,
    loopback: bool = False,
    master: int = 0,
    kind: str = "",
    vrf_table: int = 0,
    mtu: int = 1500,
    lower: int = 0,
) -> Record:
    """RTM_NEWLINK."""
    flags = IFF_UP * up | IFF_LOWER_UP * (up and carrier) | IFF_LOOPBACK * loopback
    numbers = {"flags": flags, "master": master, "vrf_table": vrf_table, "mtu": mtu}
    return Record(Header(), Link(ifindex, name, kind=kind, lower=lower, **numbers))


def addr(
    prefix: str,
    ifindex: int,
    *,
    peer: str = "",
    flags: int = PERMANENT,
    proto: int = 0,
    cstamp: int = 0,
    valid: int = FOREVER,
) -> Record:
    """RTM_NEWADDR of "192.0.2.10/24"."""
    head, _, length = prefix.partition("/")
    local = parse(head)
    return Record(
        Header(),
        Addr(
            _family(local),
            ifindex,
            local,
            int(length or len(local) * 8),
            peer=parse(peer) if peer else b"",
            flags=flags,
            proto=proto,
            cstamp=cstamp,
            valid=valid,
        ),
    )


def leg(oif: int, via: str = "", *, weight: int = 1) -> Leg:
    """One nexthop of a route."""
    gateway = parse(via) if via else b""
    return Leg(oif, weight, 0, _family(gateway) if gateway else 0, gateway)


def route(
    destination: str = "default",
    *,
    family: int = AF_INET,
    via: str = "",
    oif: int = 0,
    legs: tuple[Leg, ...] = (),
    metric: int = 0,
    table: int = MAIN,
    src: str = "",
    kind: int = UNICAST,
    scope: int = 0,
    proto: int = RTPROT_STATIC,
    tos: int = 0,
    pref: int = 0,
    nh_id: int = 0,
    expires: int = 0,
    rtm_flags: int = 0,
    nl_flags: int = 0,
) -> Record:
    """RTM_NEWROUTE: of family IPv6 where a gateway, the source or the destination says so."""
    if ":" in via + src + destination:
        family = AF_INET6
    dst = None if destination == "default" else parse_network(destination)
    return Record(
        Header(nl_flags=nl_flags),
        Route(
            family,
            table,
            metric,
            dst_len=dst.prefixlen if dst else 0,
            dst=dst.address if dst else b"",
            tos=tos,
            proto=proto,
            type=kind,
            scope=scope,
            pref=pref,
            prefsrc=parse(src) if src else b"",
            nh_id=nh_id,
            expires=expires,
            rtm_flags=rtm_flags,
            legs=legs or ((leg(oif, via),) if oif else ()),
        ),
    )


def nexthop(
    number: int,
    *,
    oif: int = 0,
    via: str = "",
    family: int = AF_INET,
    members: tuple[tuple[int, int], ...] = (),
    blackhole: bool = False,
) -> Record:
    """RTM_NEWNEXTHOP; members are (id, weight)."""
    gateway = parse(via) if via else b""
    hop = (_family(gateway), gateway) if gateway else (0, b"")
    group = tuple(Member(*member) for member in members)
    payload = Nexthop(number, family, oif, 0, 0, *hop, blackhole=blackhole, members=group)
    return Record(Header(), payload)


def loss(*scopes: Scope) -> Record:
    """Messages about these scopes were lost; all without any."""
    mask = sum(1 << scope for scope in scopes or Scope)
    return Record(Header(), Loss(LossCause.OVERRUN, mask))


def rule(priority: int, *, family: int = AF_INET, table: int = MAIN) -> Record:
    """RTM_NEWRULE."""
    return Record(Header(), Rule(family, priority, table, action=1))


def flush(
    destination: str = "default", *, family: int = AF_INET, table: int = MAIN, oif: int = 0
) -> Record:
    """A route that the trace tier saw removed without a message."""
    dst = None if destination == "default" else parse_network(destination)
    length, packed = (dst.prefixlen, dst.address) if dst else (0, b"")
    return Record(Header(op=Op.DEL), Flush(family, table, 0, length, packed, oif=oif))


def by(record: Record, task: Task) -> Record:
    """The record as one that names who made the change."""
    return record._replace(task=task)


def begin(scope: Scope, *, ifindex: int = 0, table: int = 0, audit: bool = False) -> Record:
    """A dump begins."""
    flags = DUMP_AUDIT if audit else 0
    return Record(Header(), Dump(scope, Phase.BEGIN, ifindex, table, flags))


def end(scope: Scope, *, unproven: bool = False) -> Record:
    """A dump is complete, as far as that is known."""
    flags = DUMP_UNPROVEN if unproven else 0
    return Record(Header(), Dump(scope, Phase.END, flags=flags))


def fail(scope: Scope, *, ifindex: int = 0, table: int = 0) -> Record:
    """A dump failed."""
    return Record(Header(), Dump(scope, Phase.FAIL, ifindex, table, error=16))


def gone(record: Record) -> Record:
    """The deletion of what the record announces."""
    return record._replace(header=record.header._replace(op=Op.DEL))


def entry(record: Record) -> Record:
    """The record as an entry of a dump."""
    return _flagged(record, F_DUMP)


def truncated(record: Record) -> Record:
    """The record as one that could not hold all legs."""
    return _flagged(record, F_TRUNCATED)


def _flagged(record: Record, flag: int) -> Record:
    header = record.header
    return record._replace(header=header._replace(flags=header.flags | flag))


def _family(packed: bytes) -> int:
    return AF_INET if len(packed) == 4 else AF_INET6


def policy(**changes: object) -> PolicyTable:
    """The default policy of both families, with fields of the table replaced."""
    # Changes are given by name, with values of their own types.
    return default_route_policy(families=FAMILIES)._replace(**changes)  # type: ignore[arg-type]


def listed(
    names: tuple[str, ...] = (),
    networks: tuple[str, ...] = (),
    hints: tuple[str, ...] = (),
    fallback: Fallback = Fallback.NONE,
    **changes: object,
) -> PolicyTable:
    """A policy that takes what a list of names and networks has; an address is a network."""
    return policy(
        mode=Mode.LIST,
        mode_names=names,
        mode_networks=tuple(_network(network) for network in networks),
        hints=tuple(host_network(hint) for hint in hints),
        fallback=fallback,
        **changes,
    )


def _network(text: str) -> Network:
    return parse_network(text) if "/" in text else host_network(text)


class Host:
    """An engine with one selection and a clock; every step is a second after the last one."""

    def __init__(self, engine: Engine, table: PolicyTable | None = None) -> None:
        self.engine = engine
        self.now = 1000 * MS
        engine.set_policy(0, table or policy())
        self.clean()

    def clean(self) -> None:
        """Take off the dirt that a fresh policy leaves on its table."""
        for scope in (Scope.ROUTE4, Scope.ROUTE6):
            self.send(begin(scope), end(scope))
        assert self.dirt() == []

    def send(self, *records: Record, after: int = 1000 * MS) -> None:
        """Feed records, all at one time: `after` ns from the last one."""
        self.now += after
        raw = b"".join(
            encode(record._replace(header=record.header._replace(boot_ns=self.now)))
            for record in records
        )
        assert self.engine.apply(raw) == len(records)

    def dump(self, scope: Scope, *shown: Record, ifindex: int = 0, audit: bool = False) -> None:
        """One whole dump that shows these records."""
        entries = [entry(record) for record in shown]
        self.send(begin(scope, ifindex=ifindex, audit=audit), *entries, end(scope))

    def view(self, family: str = "ipv4") -> View:
        """The view of the selection."""
        return self.engine.view(0, family)

    def best(self, family: str = "ipv4") -> str | None:
        """The best address."""
        best = self.view(family).best
        return best.address if best else None

    def rows(self, family: str = "ipv4") -> list[Row]:
        """All rows."""
        return self.engine.rows(0, family)

    def row(self, address: str) -> Row:
        """The row of an address that is there once."""
        rows = [*self.rows("ipv4"), *self.rows("ipv6")]
        (row,) = [row for row in rows if row.address == address]
        return row

    def dirt(self) -> list[Dirty]:
        """What is to be dumped."""
        return self.engine.dirty()

    def scopes(self) -> list[Scope]:
        """Scopes that are to be dumped."""
        return [dirty.scope for dirty in self.engine.dirty()]

    def count(self, name: str) -> int:
        """A counter."""
        return self.engine.counters()[name]
