"""What a record of bpf/records.h holds, as typed values."""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeAlias

from tracker.errors import InputError
from tracker.model import Scope

VERSION = 1
LEGS_MAX = 64
"""Legs of a route, or members of a group, that one record can carry."""

F_DUMP = 1 << 0
F_TRUNCATED = 1 << 1
F_TASK = 1 << 2
F_UNTRUSTED = 1 << 3
F_KERNEL = 1 << 4

DUMP_AUDIT = 1 << 0
DUMP_UNPROVEN = 1 << 1

FOREVER = 0xFFFFFFFF
"""A lifetime that does not end."""


class Kind(enum.IntEnum):
    """What a record is about (enum at_kind)."""

    ADDR = 1
    LINK = 2
    ROUTE = 3
    NEXTHOP = 4
    LOSS = 5
    DUMP = 6
    RULE = 7
    FLUSH = 8


class Op(enum.IntEnum):
    """What happened to it (enum at_op)."""

    NEW = 1
    DEL = 2


class LossCause(enum.IntEnum):
    """Why messages were lost (enum at_loss_cause)."""

    OVERRUN = 1
    RING = 2
    MALFORMED = 3
    UNFILTERED = 4


class Phase(enum.IntEnum):
    """Where a dump stands (enum at_phase)."""

    BEGIN = 1
    END = 2
    FAIL = 3


class MalformedRecord(InputError):  # noqa: N818 - "malformed" says it, as in docs/engine.md
    """Bytes are not a record: wrong size, version, kind, family, prefix length or count."""


class Header(NamedTuple):
    """struct at_header without what follows from the payload (size, version, kind)."""

    op: Op = Op.NEW
    boot_ns: int = 0
    """CLOCK_BOOTTIME when it was seen."""
    nl_flags: int = 0
    """NLM_F_* of the message."""
    seq: int = 0
    flags: int = 0
    """F_*; F_TASK is set by encode() where there is a task."""
    portid: int = 0
    slot: int = 0


class Addr(NamedTuple):
    """struct at_addr; addresses are packed, 4 or 16 bytes."""

    family: int
    ifindex: int
    local: bytes
    prefixlen: int
    peer: bytes = b""
    """Other end of a point-to-point address, b"" = none."""
    flags: int = 0
    """IFA_F_*."""
    valid: int = FOREVER
    """Seconds."""
    preferred: int = FOREVER
    """Seconds."""
    cstamp: int = 0
    """Creation, 1/100 s since boot."""
    priority: int = 0
    scope: int = 0
    proto: int = 0


class Link(NamedTuple):
    """struct at_link."""

    ifindex: int
    name: str
    flags: int = 0
    """IFF_*."""
    master: int = 0
    lower: int = 0
    vrf_table: int = 0
    mtu: int = 0
    type: int = 0
    """ARPHRD_*."""
    operstate: int = 0
    kind: str = ""
    """IFLA_INFO_KIND, "" = physical or loopback."""


class Leg(NamedTuple):
    """struct at_leg."""

    oif: int
    weight: int = 1
    flags: int = 0
    """RTNH_F_*."""
    gw_family: int = 0
    """0 = no gateway."""
    gw: bytes = b""
    """Packed; b"" = none."""


class Route(NamedTuple):
    """struct at_route with its legs."""

    family: int
    table: int
    metric: int = 0
    dst_len: int = 0
    dst: bytes = b""
    tos: int = 0
    proto: int = 0
    type: int = 1
    """RTN_*."""
    scope: int = 0
    pref: int = 0
    """ICMPV6_ROUTER_PREF_*: 0 medium, 1 high, 3 low."""
    prefsrc: bytes = b""
    """Packed; b"" = none."""
    nh_id: int = 0
    expires: int = 0
    """IPv6: seconds until it ends, 0 = never."""
    rtm_flags: int = 0
    legs: tuple[Leg, ...] = ()


class Member(NamedTuple):
    """struct at_member."""

    id: int
    weight: int = 1


class Nexthop(NamedTuple):
    """struct at_nexthop with the members of a group."""

    id: int
    family: int = 0
    oif: int = 0
    flags: int = 0
    """RTNH_F_*."""
    proto: int = 0
    gw_family: int = 0
    gw: bytes = b""
    blackhole: bool = False
    fdb: bool = False
    members: tuple[Member, ...] = ()


class Loss(NamedTuple):
    """struct at_loss."""

    cause: int
    scopes: int
    """Bit mask of 1 << Scope."""
    messages: int = 0
    """0 = unknown."""


class Dump(NamedTuple):
    """struct at_dump."""

    scope: Scope
    phase: Phase
    ifindex: int = 0
    table: int = 0
    flags: int = 0
    error: int = 0


class Rule(NamedTuple):
    """struct at_rule: a policy rule came or went."""

    family: int
    priority: int = 0
    table: int = 0
    """Where it leads to, 0 = to no table."""
    action: int = 0
    """FR_ACT_*."""


class Flush(NamedTuple):
    """struct at_flush: the kernel removed a route and announced nothing."""

    family: int
    table: int
    metric: int = 0
    dst_len: int = 0
    dst: bytes = b""
    """Packed; b"" = all zero."""
    tos: int = 0
    type: int = 1
    """RTN_*."""
    oif: int = 0
    """Of the first leg, 0 = not known."""


class Task(NamedTuple):
    """struct at_task: the process that was running when the change was announced."""

    tgid: int
    comm: str
    attribution: str = "process"
    """What it has to do with the change: "process" asked for it; "kernel", it is a thread of the
    kernel; "untrusted", it merely was interrupted. The latter two are flags of the header."""


Payload: TypeAlias = Addr | Link | Route | Nexthop | Loss | Dump | Rule | Flush


class Record(NamedTuple):
    """One record."""

    header: Header
    payload: Payload
    task: Task | None = None

    @property
    def kind(self) -> Kind:
        """What the payload is."""
        return KIND_OF[type(self.payload)]


KIND_OF: dict[type, Kind] = {
    Addr: Kind.ADDR,
    Link: Kind.LINK,
    Route: Kind.ROUTE,
    Nexthop: Kind.NEXTHOP,
    Loss: Kind.LOSS,
    Dump: Kind.DUMP,
    Rule: Kind.RULE,
    Flush: Kind.FLUSH,
}
