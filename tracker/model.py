"""Typed values that everyone shares."""

from __future__ import annotations

import enum
from typing import NamedTuple, Protocol

IPV4 = "ipv4"
IPV6 = "ipv6"
FAMILIES = (IPV4, IPV6)
AF_INET = 2
AF_INET6 = 10
AF_OF = {IPV4: AF_INET, IPV6: AF_INET6}
FAMILY_OF = {AF_INET: IPV4, AF_INET6: IPV6}

NANOSECONDS = 1_000_000_000


class Scope(enum.IntEnum):
    """What one dump covers (enum at_scope)."""

    LINK = 0
    ADDR4 = 1
    ADDR6 = 2
    NEXTHOP = 3
    ROUTE4 = 4
    ROUTE6 = 5


class Reject(enum.IntEnum):
    """Why an address is no candidate (enum at_reject), in order of the checks."""

    NONE = 0
    FAMILY_NOT_WANTED = 1
    UNSPECIFIED = 2
    LOOPBACK = 3
    LINK_LOCAL = 4
    MULTICAST = 5
    RESERVED = 6
    DAD_FAILED = 7
    TENTATIVE = 8
    LINK_DOWN = 9
    EXCLUDED_ADDRESS = 10
    EXCLUDED_NETWORK = 11
    OTHER_VRF = 12
    EXCLUDED_INTERFACE = 13
    NOT_IN_MODE = 14
    NO_DEFAULT_ROUTE = 15

    @property
    def label(self) -> str:
        """The name that users see, part of the API."""
        return self.name.lower().replace("_", "-")


class Criterion(enum.IntEnum):
    """What ranks candidates (enum at_criterion); lower values are better."""

    STATIC = 1
    MODE = 2
    INTERNAL = 3
    DEFAULT_ROUTE = 4
    PREFSRC = 5
    NOT_DEPRECATED = 6
    NOT_VIP_LIKE = 7
    NOT_TEMPORARY = 8
    ASSIGNED = 9
    INCUMBENT = 10
    GATEWAY_ON_LINK = 11
    PRIMARY_FLAG = 12
    GLOBAL_BEFORE_ULA = 13
    NEXTHOP_WEIGHT = 14
    IFINDEX = 15
    AGE = 16
    ADDRESS = 17

    @property
    def label(self) -> str:
        """The name that users see, part of the API."""
        return self.name.lower().replace("_", "-")


NO_ROUTE = 1 << 35
"""Value of the criterion default-route of an address without one."""


class Tier(enum.IntEnum):
    """Stages of selection: an address of a later one counts only if no earlier one has any."""

    ROUTE = 0
    LOOPBACK = 1
    FALLBACK = 2
    NONE = 3


class Fallback(enum.IntEnum):
    """What to take when no default route leads to an address, or none is in the mode."""

    NONE = 0
    AUTO = 1
    PHYSICAL = 2
    INTERFACE = 3
    DEFAULT_ROUTE = 4
    """What mode default-route would take, by the criteria of this policy."""


class Mode(enum.IntEnum):
    """What makes an address a candidate (enum at_mode)."""

    DEFAULT_ROUTE = 0
    LIST = 1
    """Names of links and networks of addresses, in order of preference."""


class Network(NamedTuple):
    """An address range; `address` is packed (4 or 16 bytes)."""

    family: int
    prefixlen: int
    address: bytes


PATTERN_MOST = 127
"""Bytes that a glob of interface names may have (AT_PATTERN_LEN without its end)."""


TARGETS_MAX = 16
"""Addresses whose way the kernel is asked for (AT_TARGETS_MAX): as many as its filter knows."""

GROUNDS_MAX = 128
"""Of each kind in Grounds (AT_GROUNDS_MAX)."""


class Ground(NamedTuple):
    """A source address that the kernel answered with."""

    family: int
    address: bytes
    """Packed."""
    ifindex: int
    """Of the way; 0: the route names the address, whatever the link has."""


class Grounds(NamedTuple):
    """What the kernel's answers rest on."""

    links: frozenset[int] = frozenset()
    """That the ways lead over."""
    nexthops: frozenset[int] = frozenset()
    """Ids of the objects in use."""
    sources: frozenset[Ground] = frozenset()
    any_address: frozenset[int] = frozenset()
    """Families for which the kernel took what it found on some link."""
    any_nexthop: bool = False

    @property
    def size(self) -> int:
        """The most of a kind."""
        return max(map(len, self[:3]))


def joined(one: Grounds | None, other: Grounds | None) -> Grounds | None:
    """What two answers rest on, None = nobody knows."""
    if one is None or other is None:
        return None
    return Grounds(
        one.links | other.links,
        one.nexthops | other.nexthops,
        one.sources | other.sources,
        one.any_address | other.any_address,
        one.any_nexthop or other.any_nexthop,
    )


class Vrf(NamedTuple):
    """Where the name of a VRF leads; zeros = nowhere."""

    ifindex: int
    table: int


class PolicyTable(NamedTuple):
    """A policy as the engines run it (struct at_policy)."""

    families: tuple[str, ...]
    table: int
    criteria: tuple[Criterion, ...]
    """In order, without ADDRESS, which is always last and implied."""
    displacing: frozenset[Criterion]
    """Those marked D: they may displace a valid incumbent."""
    fallback: Fallback
    fallback_name: str
    """fnmatch pattern of Fallback.INTERFACE, else ""."""
    exclude_names: tuple[str, ...]
    keep_names: tuple[str, ...]
    exclude_kinds: tuple[str, ...]
    exclude: tuple[Network, ...]
    """Host length: excluded-address, else excluded-network."""
    statics: tuple[Network, ...]
    internal: tuple[Network, ...]
    mode: Mode = Mode.DEFAULT_ROUTE
    mode_names: tuple[str, ...] = ()
    """Mode.LIST: fnmatch patterns of interface names. Without names and networks nothing is in
    the mode."""
    mode_networks: tuple[Network, ...] = ()
    """Mode.LIST: behind the names."""
    hints: tuple[Network, ...] = ()
    """Of host length: of a family that has some, only addresses count whose subnet holds one."""

    def narrows(self, family: int) -> bool:
        """Whether addresses of a family (AF_INET, AF_INET6) must be in the mode, so that a default
        route alone makes no candidate."""
        if self.mode is Mode.LIST:
            return True
        return bool(self.hints) and any(hint.family == family for hint in self.hints)


class Row(NamedTuple):
    """One address on one link, judged by one selection (struct at_row)."""

    family: str
    address: str
    prefixlen: int
    peer: str
    """Other end of a point-to-point address, "" without one."""
    ifindex: int
    interface: str
    """Name of the link, "" if the link is not known."""
    flags: int
    """IFA_F_*."""
    proto: int
    cstamp: int
    """Creation, 1/100 s since boot."""
    reject: Reject
    own_reject: Reject
    tier: Tier
    carrier: bool
    rank: int
    """1 is best; 0 = rejected."""
    values: tuple[int, ...]
    """By position in the policy's criteria."""

    def whole(self) -> Row:
        """It is."""
        return self


class Judged(Protocol):
    """What a decider asks of a row."""

    @property
    def family(self) -> str:
        """Its family."""

    @property
    def address(self) -> str:
        """The address."""

    @property
    def flags(self) -> int:
        """IFA_F_*."""

    @property
    def reject(self) -> Reject:
        """Why it is no candidate."""

    @property
    def own_reject(self) -> Reject:
        """The same without the two that tiers give."""

    @property
    def tier(self) -> Tier:
        """How it came to be selected."""

    @property
    def carrier(self) -> bool:
        """Whether its link has one."""

    def whole(self) -> Row:
        """All of it."""


class Sight(Protocol):
    """What a decider asks of a view: see View."""

    @property
    def best(self) -> Judged | None:
        """The first by rank."""

    @property
    def incumbent(self) -> Judged | None:
        """The best entry of the present answer's address."""

    @property
    def first_diff(self) -> int:
        """As in View."""

    @property
    def last_change_ns(self) -> int:
        """As in View."""

    @property
    def cause(self) -> bytes:
        """As in View."""


class View(NamedTuple):
    """What a decision needs to know of one selection and family (struct at_view)."""

    best: Row | None
    incumbent: Row | None
    default_routes: int
    other_defaults: int
    bad_defaults: int
    default_links: int
    rival: bool
    first_diff: int
    """Position of the criterion on which best and incumbent first differ; -1 same address or
    one is missing; -2 the tier; len(criteria): the address itself."""
    fallback_count: int
    last_change_ns: int
    """CLOCK_BOOTTIME of the last change to any row of this family."""
    cause: bytes
    """The record that last changed best or incumbent, without legs; b"" = none."""


class Dirty(NamedTuple):
    """A scope that must be dumped (struct at_dirty)."""

    scope: Scope
    ifindex: int
    table: int
    lost: bool
    rule: int


class State(enum.StrEnum):
    """State of a decision for one family."""

    SETTLING = "settling"
    STABLE = "stable"
    HOLDING = "holding"
    LOST = "lost"
    NONE = "none"


class Cause(NamedTuple):
    """What made a decision change."""

    change: str
    """For example "RTM_NEWADDR 192.0.2.10/24 bond0"."""
    process: str | None
    """Name of the task that made it; None = not known, as with most sources."""
    pid: int | None
    attribution: str | None = None
    """What the process has to do with it: "process" asked for it; "kernel", it is a thread of the
    kernel (a lifetime ended); "untrusted", it merely was interrupted (a router advertisement)."""

    @property
    def by(self) -> str:
        """The process, for the end of a line: " by ip (812)"; "" = not known."""
        if self.process is None:
            return ""
        about = {"kernel": "kernel", "untrusted": f"{self.pid}, untrusted"}
        return f" by {self.process} ({about.get(self.attribution or '', self.pid)})"


class Choice(NamedTuple):
    """The decision for one family of one selection."""

    family: str
    address: str | None
    state: State
    stale: bool
    prefixlen: int
    interface: str
    ifindex: int
    reason: str
    """Why this address, for example "default-route metric 100"; or why none."""
    warnings: tuple[str, ...]
    ambiguous: bool
    """Another network qualified on equal terms, or default routes lead out over several links."""
    extra: tuple[Row, ...] = ()
    """Further addresses that the selection asks for, in rank order, without `address`."""


class Change(NamedTuple):
    """One published address that became another one."""

    selection: str
    """"" is the node's own."""
    family: str
    old: str | None
    new: str
    reason: str
    cause: Cause | None
    boot_ns: int
    """CLOCK_BOOTTIME of the decision."""
    took_ns: int
    """From the record that caused it to the decision, hold and settle times included."""


class Decision(NamedTuple):
    """All that publishers see."""

    generation: int
    time_ns: int
    """CLOCK_REALTIME of the last change."""
    hostname: str
    families: tuple[str, ...]
    choices: dict[str, Choice]
    """The node's own selection, by family."""
    selections: dict[str, dict[str, Choice]]
    """Named selections, by name and family."""
    cause: Cause | None
    warnings: tuple[str, ...]

    @property
    def stale(self) -> bool:
        """True while any published value may be out of date."""
        return any(choice.stale for choice in self.choices.values())
