"""Hosts and answers of the conformance cases: see `conventions` in the file of cases."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from tracker.capture import names
from tracker.profiles.choice import ProfileError, subnet
from tracker.profiles.host import FOREVER, Address, Hop, Host, Link, Nexthop, Route
from tracker.profiles.procnet import DefaultRow
from tracker.profiles.talos import Prefix

Raw = dict[str, Any]

_LINK_FLAGS = {
    **names.LINK_FLAGS,
    # As other tools spell it.
    "pointtopoint": names.LINK_FLAGS["pointopoint"],
}
_FAMILIES = {4: "ipv4", 6: "ipv6"}


def host(given: Raw) -> Host:
    """The host that a case describes."""
    return Host(
        [_link(values) for values in given.get("links", ())],
        [_address(values) for values in given.get("addresses", ())],
        [_route(values) for values in given.get("routes", ())],
        [Nexthop(values["id"]) for values in given.get("nexthops", ())],
        hostname=given.get("hostname", ""),
    )


def _link(values: Raw) -> Link:
    flags = _bits(values["flags"], _LINK_FLAGS)
    if values.get("carrier"):
        flags |= names.IFF_LOWER_UP
    kind = "" if values.get("physical", True) else "virtual"
    return Link(values["ifindex"], values["name"], flags, kind)


def _bits(listed: list[str], known: dict[str, int]) -> int:
    flags = 0
    for name in listed:
        flags |= known[name]
    return flags


def _address(values: Raw) -> Address:
    plain, _, length = values["addr"].partition("/")
    ip = ip_address(plain)
    return Address(
        values["ifindex"],
        ip,
        int(length),
        _bits(values["flags"], names.ADDRESS_FLAGS),
        names.SCOPE_LINK if ip.is_link_local and ip.version == 6 else 0,
        values.get("label", ""),
        values.get("preferred_lft", FOREVER),
    )


def _route(values: Raw) -> Route:
    family = _FAMILIES[_version(values)]
    zero = "0.0.0.0" if family == "ipv4" else "::"
    text = values["dst"]
    plain, _, length = (f"{zero}/0" if text == "default" else text).partition("/")
    gateway = values.get("gw")
    return Route(
        family,
        ip_address(plain),
        int(length),
        names.TABLES[values["table"]],
        values["metric"],
        values["oif"] or 0,
        ip_address(gateway) if gateway else None,
        tuple(Hop(way["oif"], ip_address(way["gw"])) for way in values.get("nexthops", ())),
        protocol=names.ROUTE_PROTOCOLS[values.get("proto", "boot")],
    )


def _version(values: Raw) -> int:
    """Some cases do not say it where it does not matter."""
    texts = [values["dst"], values.get("gw") or ""]
    return int(values.get("family", 6 if any(":" in text for text in texts) else 4))


def default_rows(given: Raw) -> list[DefaultRow]:
    """`default_routes_in_order`."""
    return [
        DefaultRow(_FAMILIES[row["family"]], row["interface"], ip_address(row["gw"]))
        for row in given["default_routes_in_order"]
    ]


def prefixes(texts: list[str]) -> list[Prefix]:
    found = []
    for text in texts:
        plain, _, length = text.partition("/")
        found.append(Prefix(ip_address(plain), int(length)))
    return found


def subnets(texts: list[str]) -> list[Any]:
    return [subnet(text) for text in texts]


def cilium_addresses(listed: list[Raw], ifindex: int = 1) -> list[Address]:
    """Addresses with a scope, whose prefix length does not matter."""
    return [
        Address(
            ifindex,
            ip := ip_address(values["addr"]),
            ip.max_prefixlen,
            names.IFA_F_SECONDARY if values["secondary"] else 0,
            values["scope"],
        )
        for values in listed
    ]


def outcome(attempt: Callable[[], Any]) -> dict[str, Any]:
    """ "ip" and "error" as cases have them."""
    try:
        return {"ip": str(attempt()), "error": False}
    except ProfileError:
        return {"ip": None, "error": True}
