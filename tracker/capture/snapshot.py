"""A snapshot: links, addresses, routes and nexthops of a host as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tracker.capture import names
from tracker.capture.fields import U8, U16, U32, Fields, pack
from tracker.capture.record import Addr, Leg, Link, Member, Nexthop, Route
from tracker.capture.standin import RoutePattern, StandIn
from tracker.model import AF_INET, AF_INET6

KINDS = ("links", "addresses", "routes", "nexthops")

MOST_IFINDEX = 0x7FFFFFFF
PSEUDO_IFINDEX = 0x7F000000
"""Where numbers of masters begin that an input names without describing them."""

_NO_KIND = ("", "device", "physical", "loopback")


class Snapshot(NamedTuple):
    """Everything of one kind in kernel order, or what was given of it."""

    links: tuple[Link, ...] = ()
    addresses: tuple[Addr, ...] = ()
    routes: tuple[Route, ...] = ()
    nexthops: tuple[Nexthop, ...] = ()
    labels: tuple[tuple[Addr, str], ...] = ()
    """IFA_LABEL, which no record has, of the addresses that are given one."""

    def stand_in(self, now_ns: int) -> StandIn:
        """A kernel in this state."""
        kernel = StandIn(now_ns)
        for kind in KINDS:
            kernel.replace_all(kind, list(getattr(self, kind)))
        return kernel


class LinkNames:
    """Who is called what; a master that is only named gets a number of its own."""

    def __init__(self, links: Mapping[int, str]) -> None:
        self._index = {name: ifindex for ifindex, name in links.items()}
        self._pseudo: dict[str, int] = {}

    def master(self, name: str) -> int:
        """The ifindex of a master."""
        if name in self._index:
            return self._index[name]
        return self._pseudo.setdefault(name, PSEUDO_IFINDEX + len(self._pseudo))

    def index(self, name: str) -> int | None:
        """The ifindex of a link, None if there is none of this name."""
        return self._index.get(name)

    def device(self, fields: Fields, name: str) -> int:
        """The ifindex of the link that a field names."""
        ifindex = self._index.get(fields.string(name))
        if ifindex is None:
            known = ", ".join(self._index) or "there is none"
            raise fields.error(name, f"a link of this input: {known}")
        return ifindex

    def rename(self, name: str, ifindex: int) -> bool:
        """The link is called `name` now; False, and no change, if another one is."""
        if self._index.get(name, ifindex) != ifindex:
            return False
        self.forget(ifindex)
        self._index[name] = ifindex
        return True

    def forget(self, ifindex: int) -> None:
        """The link is gone."""
        self._index = {name: index for name, index in self._index.items() if index != ifindex}


def read(fields: Fields, *, required: bool = True, link_names: LinkNames | None = None) -> Snapshot:
    """A snapshot; InputError if a list or a field is missing or wrong.

    `link_names` are those of the links that are known without being listed.
    """
    link_fields = list(fields.objects("links", required=required))
    if link_names is None or link_fields:
        known = {f.integer("ifindex", 1, MOST_IFINDEX): f.name("name") for f in link_fields}
        link_names = LinkNames(known)
    links = [new_link(link_values(f, link_names)) for f in link_fields]
    given = list(fields.objects("addresses", required=required))
    addresses = [new_address(address_values(f)) for f in given]
    labels = ((a, f.string("label")) for a, f in zip(addresses, given, strict=True) if "label" in f)
    routes = [
        new_route(*route_values(f, link_names)) for f in fields.objects("routes", required=required)
    ]
    nexthops = [nexthop(f, link_names) for f in fields.objects("nexthops")]
    listed = (tuple(links), tuple(addresses), tuple(routes), tuple(nexthops))
    return complete(Snapshot(*listed, labels=tuple(labels)))


def complete(snapshot: Snapshot) -> Snapshot:
    """With the nexthop objects that routes name, where they are not listed but can be told."""
    known = {hop.id: hop for hop in snapshot.nexthops}
    for route in snapshot.routes:
        if not route.nh_id or route.nh_id in known or not route.legs:
            continue
        legs = route.legs
        if len(legs) == 1:
            known[route.nh_id] = _hop(route.nh_id, route, legs[0])
            continue
        ids = [0x70000000 + len(known) + n for n in range(len(legs))]
        for number, leg in zip(ids, legs, strict=True):
            known[number] = _hop(number, route, leg)
        members = tuple(Member(i, leg.weight) for i, leg in zip(ids, legs, strict=True))
        known[route.nh_id] = Nexthop(route.nh_id, proto=route.proto, members=members)
    return snapshot._replace(nexthops=tuple(known.values()))


def _hop(number: int, route: Route, leg: Leg) -> Nexthop:
    flags = leg.flags & names.RTNH_FLAGS
    return Nexthop(number, route.family, leg.oif, flags, route.proto, leg.gw_family, leg.gw)


# Links.


def link_values(fields: Fields, link_names: LinkNames) -> dict[str, Any]:
    """The values that are given, by field of Link."""
    values: dict[str, Any] = {"ifindex": fields.integer("ifindex", 1, MOST_IFINDEX)}
    if "name" in fields:
        values["name"] = fields.name("name")
    if "flags" in fields:
        values["flags"] = _link_flags(fields)
    elif "up" in fields:
        up = fields.boolean("up", default=True)
        values["flags"] = names.IFF_UP | names.IFF_RUNNING | names.IFF_LOWER_UP if up else 0
    if "kind" in fields:
        kind = fields.string("kind")
        values["kind"] = "" if kind in _NO_KIND else fields.name("kind")
        if kind == "loopback":
            values["type"] = names.LINK_TYPES["loopback"]
    if "type" in fields:
        values["type"] = fields.code("type", names.LINK_TYPES, U16, None)
    if "operstate" in fields:
        values["operstate"] = fields.code("operstate", names.OPERSTATES, 6, None)
    if "master" in fields.values:
        values["master"] = _master(fields, link_names)
    for name, field in (("link", "lower"), ("table", "vrf_table"), ("mtu", "mtu")):
        if name in fields:
            values[field] = fields.integer(name)
    return values


def _link_flags(fields: Fields) -> int:
    flags = fields.bits("flags", names.LINK_FLAGS)
    carrier = "no-carrier" not in (flag.lower() for flag in fields.strings("flags"))
    return flags | names.IFF_RUNNING if flags & names.IFF_UP and carrier else flags


def _master(fields: Fields, link_names: LinkNames) -> int:
    value = fields.values["master"]
    if value is None:
        return 0
    if isinstance(value, str) and value:
        return link_names.master(fields.name("master"))
    if isinstance(value, int) and not isinstance(value, bool):
        return fields.integer("master")
    raise fields.error("master", "the name or ifindex of a link, null")


def new_link(values: Mapping[str, Any]) -> Link:
    """A link with the kernel's values where none are given: an Ethernet device that is down."""
    ifindex = values["ifindex"]
    default: dict[str, Any] = {"name": f"if{ifindex}", "type": names.LINK_TYPES["ether"]}
    default |= {"flags": names.LINK_FLAGS["broadcast"] | names.LINK_FLAGS["multicast"]}
    link = Link(**{**default, **values})
    loopback = link.type == names.LINK_TYPES["loopback"]
    return link._replace(flags=link.flags | names.IFF_LOOPBACK) if loopback else link


# Addresses.


def address_values(fields: Fields) -> dict[str, Any]:
    """The values that are given, by field of Addr; those of the key are required."""
    local = fields.address("address")
    family = AF_INET if len(local) == 4 else AF_INET6
    values: dict[str, Any] = {
        "family": family,
        "ifindex": fields.integer("ifindex", 1, MOST_IFINDEX),
        "local": local,
        "prefixlen": fields.integer("prefixlen", 0, len(local) * 8),
    }
    if "peer" in fields:
        values["peer"] = fields.address("peer", family)
    if "scope" in fields:
        values["scope"] = fields.code("scope", names.SCOPES, U8, None)
    for name, field in (("valid_lft", "valid"), ("preferred_lft", "preferred")):
        if name in fields:
            values[field] = fields.integer(name)
    if "flags" in fields:
        values["flags"] = fields.bits("flags", names.ADDRESS_FLAGS)
    elif "valid" in values:
        values["flags"] = names.IFA_F_PERMANENT if values["valid"] == U32 else 0
    if "protocol" in fields:
        values["proto"] = fields.code("protocol", names.ADDRESS_PROTOCOLS, U8, None)
    if "cstamp" in fields:
        values["cstamp"] = fields.integer("cstamp")
    if "metric" in fields:
        values["priority"] = fields.integer("metric")
    return values


def new_address(values: Mapping[str, Any], cstamp: int = 0) -> Addr:
    """An address with the kernel's values where none are given: permanent, created at `cstamp`."""
    default = {
        "flags": names.IFA_F_PERMANENT,
        "scope": default_scope(values["local"]),
        "cstamp": cstamp,
    }
    return Addr(**{**default, **values})


def default_scope(packed: bytes) -> int:
    """RT_SCOPE_* that `ip address add` gives an address."""
    if packed[0] == 127 if len(packed) == 4 else packed == bytes(15) + b"\1":
        return names.SCOPE_HOST
    if len(packed) == 16 and packed[0] == 0xFE and packed[1] & 0xC0 == 0x80:
        return names.SCOPE_LINK
    return names.SCOPE_GLOBAL


# Routes.


def route_values(fields: Fields, link_names: LinkNames) -> tuple[dict[str, Any], tuple[Leg, ...]]:
    """The values that are given, by field of Route, and the legs; the family is always told."""
    family = _route_family(fields)
    values: dict[str, Any] = {"family": family}
    _read_destination(fields, family, values)
    codes: tuple[tuple[str, str, Mapping[str, int], int], ...] = (
        ("table", "table", names.TABLES, U32),
        ("type", "type", names.ROUTE_TYPES, 10),
        ("protocol", "proto", names.ROUTE_PROTOCOLS, U8),
        ("scope", "scope", names.SCOPES, U8),
        ("pref", "pref", names.PREFERENCES, 3),
    )
    for name, field, known, most in codes:
        if name in fields:
            values[field] = fields.code(name, known, most, None)
    for name, field, most in (
        ("metric", "metric", U32),
        ("nhid", "nh_id", U32),
        ("expires", "expires", U32),
        ("tos", "tos", U8),
    ):
        if name in fields:
            values[field] = fields.integer(name, 0, most)
    if "prefsrc" in fields:
        values["prefsrc"] = fields.address("prefsrc", family)
    flags = _leg_flags(fields)
    if flags:
        values["rtm_flags"] = flags
    return values, _legs(fields, family, link_names)


def _route_family(fields: Fields) -> int:
    if "family" in fields:
        return fields.code("family", names.FAMILIES, AF_INET6, None)
    for name in ("dst", "prefsrc", "gateway"):
        value = fields.values.get(name)
        packed = pack(value.partition("/")[0]) if isinstance(value, str) else None
        if packed is not None:
            return AF_INET if len(packed) == 4 else AF_INET6
    raise fields.error("family", "inet, inet6")


def _read_destination(fields: Fields, family: int, values: dict[str, Any]) -> None:
    length = 4 if family == AF_INET else 16
    allowed = "default or an IPv4 network" if family == AF_INET else "default or an IPv6 network"
    text = fields.string("dst")
    head, slash, tail = text.partition("/")
    packed = bytes(length) if text in ("default", "any") else pack(head)
    if packed is None or len(packed) != length:
        raise fields.error("dst", allowed)
    bits = length * 8
    if text in ("default", "any"):
        bits = 0
    elif slash:
        if not tail.isascii() or not tail.isdigit() or int(tail) > bits:
            raise fields.error("dst", allowed)
        bits = int(tail)
    values["dst_len"] = bits
    values["dst"] = packed if any(packed) else b""


def _legs(fields: Fields, family: int, link_names: LinkNames) -> tuple[Leg, ...]:
    if "nexthops" in fields:
        return tuple(_leg(f, family, link_names) for f in fields.objects("nexthops"))
    leg = _leg(fields, family, link_names)
    return (leg,) if leg.oif or leg.gw_family else ()


def _leg(fields: Fields, family: int, link_names: LinkNames) -> Leg:
    oif = 0
    if "oif" in fields:
        oif = fields.integer("oif", 1, MOST_IFINDEX)
    elif "dev" in fields:
        oif = link_names.device(fields, "dev")
    gw_family, gateway = _gateway(fields, family)
    weight = fields.integer("weight", 1, 0x10000, 1)
    return Leg(oif, min(weight, U16), _leg_flags(fields) & names.RTNH_FLAGS, gw_family, gateway)


def _leg_flags(fields: Fields) -> int:
    flags = fields.bits("flags", names.ROUTE_FLAGS) if "flags" in fields else 0
    return flags | names.RTNH_F_ONLINK if fields.boolean("onlink", default=False) else flags


def _gateway(fields: Fields, family: int) -> tuple[int, bytes]:
    """Also of the other family: `via_family`, or `via` as iproute2 writes RTA_VIA."""
    if "via" in fields:
        via = fields.nested("via")
        gateway = via.address("host", via.code("family", names.FAMILIES, AF_INET6, None))
    elif "gateway" in fields:
        if "via_family" in fields:
            family = fields.code("via_family", names.FAMILIES, AF_INET6, None)
        gateway = fields.address("gateway", family)
    else:
        return 0, b""
    return (AF_INET if len(gateway) == 4 else AF_INET6), gateway


def new_route(values: Mapping[str, Any], legs: tuple[Leg, ...]) -> Route:
    """A route with the kernel's values where none are given: in main, by protocol boot."""
    default: dict[str, Any] = {"table": names.TABLE_MAIN, "proto": names.RTPROT_BOOT}
    if values["family"] == AF_INET:
        default["scope"] = _default_route_scope(values, legs)
    return Route(**{**default, **values}, legs=legs)


def _default_route_scope(values: Mapping[str, Any], legs: tuple[Leg, ...]) -> int:
    """RT_SCOPE_* that `ip route add` gives an IPv4 route."""
    kind = values.get("type", names.RTN_UNICAST)
    if kind == names.RTN_LOCAL:
        return names.SCOPE_HOST
    on_link = any(leg.oif and not leg.gw_family for leg in legs)
    return names.SCOPE_LINK if on_link and kind == names.RTN_UNICAST else names.SCOPE_GLOBAL


_ATTRIBUTES = ("rtm_flags", "expires", "pref")


def route_pattern(values: Mapping[str, Any], legs: tuple[Leg, ...]) -> RoutePattern:
    """What names a route: the values given, without those that only describe it."""
    default = {"table": names.TABLE_MAIN}
    named = {name: v for name, v in values.items() if name not in _ATTRIBUTES}
    return RoutePattern({**default, **named}, legs)


# Nexthops.


def nexthop(fields: Fields, link_names: LinkNames) -> Nexthop:
    """A nexthop object or a group of them."""
    number = fields.integer("id", 1, U32)
    proto = fields.code("protocol", names.ROUTE_PROTOCOLS, U8, 0)
    if "group" in fields:
        members = tuple(
            Member(f.integer("id", 1, U32), f.integer("weight", 1, U16, 1))
            for f in fields.objects("group")
        )
        return Nexthop(number, proto=proto, members=members)
    leg = _leg(fields, 0, link_names)
    family = leg.gw_family or fields.code("family", names.FAMILIES, AF_INET6, AF_INET)
    # ip prints null for "it is one".
    blackhole, fdb = (
        name in fields.values and fields.boolean(name, default=True)
        for name in ("blackhole", "fdb")
    )
    hop = Nexthop(number, family, leg.oif, leg.flags, proto, leg.gw_family, leg.gw)
    return hop._replace(blackhole=blackhole, fdb=fdb)
