"""Asks the kernel which way it would send, and from which address: rules, tables and metrics are
its business. Needs no privileges.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import weakref
from typing import TYPE_CHECKING, NamedTuple

from tracker.address import parse, text
from tracker.model import AF_INET, AF_INET6, Ground, Grounds

if TYPE_CHECKING:
    from tracker.engine.base import Engine

RTM_GETROUTE = 26
RTM_F_FIB_MATCH = 0x2000
"""Answer with the whole route, all of its nexthops included, instead of the way of one packet."""
NLM_F_REQUEST = 1
NLMSG_ERROR = 2

RTN_UNICAST = 1
RTN_LOCAL = 2
RTNH_F_DEAD = 1

_RTA_DST = 1
_RTA_OIF = 4
_RTA_PREFSRC = 7
_RTA_MULTIPATH = 9
_RTA_CACHEINFO = 12
_RTA_NH_ID = 30
_TYPE_MASK = 0x3FFF
"""Without NLA_F_NESTED and NLA_F_NET_BYTEORDER."""

_HEADER = struct.Struct("=IHHII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_NEXTHOP_HEAD = struct.Struct("=HBBi")
_CACHE_INFO = struct.Struct("=IIi")
_MOST_BYTES = 1 << 16
_TIMEOUT = 0.2
"""Seconds; the kernel answers before a request returns, and a decision waits for it."""

FAILURES = {
    errno.ENETUNREACH: "no route",
    errno.EHOSTUNREACH: "a route says that it is unreachable",
    errno.EACCES: "a route or rule prohibits it",
    errno.EINVAL: "a blackhole swallows it",
    errno.ENODEV: "the VRF is not there",
}
"""Why there is no way, by the kernel's answer."""


class Way(NamedTuple):
    """One of the equal ways to a destination."""

    source: str
    """The address that the kernel would send from."""
    ifindex: int


class Ways(NamedTuple):
    """What the kernel says about a destination."""

    ways: tuple[Way, ...]
    """By ifindex, then source, so the order does not depend on the flow."""
    failure: str = ""
    """Why there is none, in a few words."""
    local: bool = False
    """It is an address of this host."""
    named: bool = False
    """The route names the source."""
    links: int = 1
    """How many links the equal ways lead over."""
    grounds: Grounds | None = None
    """What this rests on; None = nobody knows."""
    seconds: float = 0.0
    """After which the route ends by itself, 0 = never."""


class _Leg(NamedTuple):
    """One nexthop of a route."""

    ifindex: int
    dead: bool = False


class _Whole(NamedTuple):
    """A route with all that it has."""

    legs: tuple[_Leg, ...]
    nexthops: frozenset[int]
    """Ids of the objects that it uses."""
    named: bool
    seconds: float


class _RefusedError(Exception):
    """The kernel's answer, as an errno."""

    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.number = number


class KernelLookup:
    """Lookups in the network namespace of the thread that asks first.

    Of the kernel nothing but single routes is asked for, which takes no lock (docs/decisions.md):
    the names of VRFs and the members of nexthop groups are the engine's.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asking: _Asking | None = None

    def ways(self, target: str, vrf: str = "") -> Ways:
        """All equal ways to an address, in the VRF of that name if one is given. Raises OSError
        where the kernel cannot be asked.
        """
        scope = self._engine.vrf(vrf).ifindex if vrf else 0
        if vrf and not scope:
            return Ways((), FAILURES[errno.ENODEV], grounds=Grounds())
        if self._asking is None:
            self._asking = _Asking(self._engine)
        return self._asking.ways(target, scope)


class _Asking:
    """One socket and its requests; opening one takes as long as all of its answers."""

    def __init__(self, engine: Engine) -> None:
        flags = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        self._socket = socket.socket(socket.AF_NETLINK, flags, socket.NETLINK_ROUTE)
        weakref.finalize(self, self._socket.close)
        self._socket.bind((0, 0))
        self._socket.settimeout(_TIMEOUT)
        self._engine = engine
        self._sequence = 0

    def ways(self, target: str, scope: int) -> Ways:
        packed = parse(target)
        near = frozenset({scope} if scope else ())
        try:
            kind, first = self._way(packed, scope)
            if kind == RTN_LOCAL:
                itself = Ground(_family(packed), packed, 0)
                grounds = Grounds(near, sources=frozenset({itself}))
                return Ways((Way(target, first.ifindex),), local=True, grounds=grounds)
            whole = self._whole(packed, scope)
        except _RefusedError as error:
            # An object that swallows packets can become one that does not, below its routes.
            grounds = Grounds(near, any_nexthop=True)
            return Ways((), FAILURES.get(error.number, str(error)), grounds=grounds)
        links = {leg.ifindex for leg in whole.legs if not leg.dead}
        found = {first}
        if len(links) > 1:
            found = {way for link in links if (way := self._over(packed, link)) is not None}
        ways = sorted((way for way in found if way.source), key=lambda way: (way.ifindex, way))
        return Ways(
            tuple(ways),
            "" if ways else "no address to send from",
            named=whole.named,
            links=max(1, len(links)),
            grounds=_grounds(packed, near | {first.ifindex}, found, whole),
            seconds=whole.seconds,
        )

    def _way(self, packed: bytes, oif: int) -> tuple[int, Way]:
        """Type of the route, and the way of one packet."""
        kind, attributes = self._route(packed, oif, 0)
        source = attributes.get(_RTA_PREFSRC, b"")
        ifindex = _number(attributes.get(_RTA_OIF, b""))
        return kind, Way(text(source) if source else "", ifindex)

    def _over(self, packed: bytes, link: int) -> Way | None:
        """The way over one link; None = it went meanwhile, which is announced."""
        try:
            return self._way(packed, link)[1]
        except _RefusedError:
            return None

    def _whole(self, packed: bytes, oif: int) -> _Whole:
        """The route to a destination, with all of its nexthops."""
        _, attributes = self._route(packed, oif, RTM_F_FIB_MATCH)
        legs = _legs(attributes.get(_RTA_MULTIPATH, b""))
        number = _number(attributes.get(_RTA_NH_ID, b""))
        nexthops, members = self._objects(number) if number else (frozenset(), ())
        if _RTA_OIF in attributes:
            legs = (_Leg(_number(attributes[_RTA_OIF])),)
        return _Whole(
            # With net.ipv4.nexthop_compat_mode=0 the route names its nexthop object and no more.
            legs or members,
            nexthops,
            _RTA_PREFSRC in attributes,
            _seconds(attributes.get(_RTA_CACHEINFO, b"")) if len(packed) == 16 else 0.0,
        )

    def _objects(self, number: int) -> tuple[frozenset[int], tuple[_Leg, ...]]:
        """Ids of a nexthop object and its members, as far as the engine knows them, and their
        legs. What it does not know yet is about to be announced.
        """
        hop = self._engine.nexthop(number)
        members = [member.id for member in hop.members] if hop is not None else []
        hops = [self._engine.nexthop(member) for member in members] or [hop]
        legs = tuple(_Leg(hop.oif) for hop in hops if hop is not None and hop.oif)
        return frozenset({number, *members}), legs

    def _route(self, packed: bytes, oif: int, flags: int) -> tuple[int, dict[int, bytes]]:
        head = _ROUTE.pack(_family(packed), len(packed) * 8, 0, 0, 0, 0, 0, 0, flags)
        wanted = _attribute(_RTA_DST, packed)
        if oif:
            wanted += _attribute(_RTA_OIF, struct.pack("=i", oif))
        body = self._ask(RTM_GETROUTE, head + wanted)
        kind = _ROUTE.unpack_from(body)[7]
        return kind, _attributes(body[_ROUTE.size :])

    def _ask(self, kind: int, body: bytes) -> bytes:
        """Body of the one message that answers. Raises _RefusedError."""
        self._sequence += 1
        size = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(size, kind, NLM_F_REQUEST, self._sequence, 0) + body)
        while True:
            answer = self._socket.recv(_MOST_BYTES)
            size, kind, _, sequence, _ = _HEADER.unpack_from(answer)
            if sequence != self._sequence:
                continue  # late, for a question that was given up
            if kind == NLMSG_ERROR:
                raise _RefusedError(-struct.unpack_from("=i", answer, _HEADER.size)[0])
            return answer[_HEADER.size : size]


def _grounds(packed: bytes, near: frozenset[int], found: set[Way], whole: _Whole) -> Grounds:
    family = _family(packed)
    sources = [(parse(way.source), way.ifindex) for way in found if way.source]
    # An address of another link wins where it reaches as far as the destination and this does not.
    foreign = any(_reach(source) != _reach(packed) for source, _ in sources)
    is_open = len(sources) < len(found) or (foreign and not whole.named)
    return Grounds(
        near | {way.ifindex for way in found} | {leg.ifindex for leg in whole.legs},
        whole.nexthops,
        frozenset(
            Ground(family, source, 0 if whole.named else ifindex) for source, ifindex in sources
        ),
        frozenset({family} if is_open else ()),
    )


def _family(packed: bytes) -> int:
    return AF_INET if len(packed) == 4 else AF_INET6


def _reach(packed: bytes) -> str:
    """How far an address counts, of IPv6 (RFC 4007)."""
    if len(packed) == 4 or packed[0] != 0xFE:
        return "global"
    return {0x80: "link", 0xC0: "site"}.get(packed[1] & 0xC0, "global")


_LITTLE = struct.pack("=H", 1) == b"\1\0"


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little" if _LITTLE else "big")


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(data)
        if size < _ATTRIBUTE.size:
            break
        found[kind & _TYPE_MASK] = data[_ATTRIBUTE.size : size]
        data = data[size + -size % 4 :]
    return found


def _legs(data: bytes) -> tuple[_Leg, ...]:
    """A list of nexthops."""
    legs = []
    while len(data) >= _NEXTHOP_HEAD.size:
        size, flags, _, ifindex = _NEXTHOP_HEAD.unpack_from(data)
        if size < _NEXTHOP_HEAD.size:
            break
        legs.append(_Leg(ifindex, bool(flags & RTNH_F_DEAD)))
        data = data[size + -size % 4 :]
    return tuple(legs)


def _seconds(cache_info: bytes) -> float:
    """Until a route ends, of struct rta_cacheinfo; USER_HZ is 100 everywhere but on Alpha."""
    if len(cache_info) < _CACHE_INFO.size:
        return 0.0
    ticks: int = _CACHE_INFO.unpack_from(cache_info)[2]
    return max(ticks, 0) / 100
