"""Saved output of `ip -json address`, `link`, `route` and `nexthop`, recognised by content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracker.capture import names
from tracker.capture.fields import Fields
from tracker.capture.record import Addr, Route
from tracker.capture.snapshot import (
    LinkNames,
    Snapshot,
    address_values,
    complete,
    link_values,
    new_address,
    new_link,
    new_route,
    nexthop,
    route_values,
)
from tracker.errors import InputError

ALLOWED = (
    "a snapshot, a case file, a recording, or the output of "
    "`ip -json address`, `ip -json link`, `ip -json route`, `ip -json nexthop`"
)

Entry = tuple[str, Fields]
"""What it describes ("link", "route", "nexthop"), and its fields."""


def entries(value: object, file: str, number: int) -> list[Entry]:
    """The entries of one array that ip printed; InputError for anything else."""
    place = "" if number == 0 else f"array {number + 1}"
    if not isinstance(value, list):
        raise InputError(f"{file}: not of a known format; allowed: {ALLOWED}")
    found = []
    for index, item in enumerate(value):
        fields = Fields(item, file, f"{place}[{index}]")
        # ip prints an empty object for each entry that it filtered out.
        if fields.values:
            found.append((_kind(fields), fields))
    return found


def _kind(fields: Fields) -> str:
    if "ifname" in fields:
        return "link"
    if "dst" in fields:
        return "route"
    if "id" in fields:
        return "nexthop"
    raise InputError(f"{fields.file}: {fields.where}: not of a known format; allowed: {ALLOWED}")


def read_entries(found: list[Entry]) -> Snapshot:
    """The state that entries of any number of files describe together."""
    link_names = LinkNames({})
    described = [fields for kind, fields in found if kind == "link"]
    for fields in described:
        link_names.rename(_ifname(fields), _ifindex(fields))
    links: dict[int, dict[str, Any]] = {}
    addresses: dict[Addr, str] = {}
    for fields in described:
        links.setdefault(_ifindex(fields), {}).update(_link(fields, link_names))
        addresses.update(_addresses(fields))
    return complete(
        Snapshot(
            tuple(new_link(values) for values in links.values()),
            tuple(addresses),
            # Files may overlap: `ip route` and `ip route show table all`.
            tuple(dict.fromkeys(_route(f, link_names) for kind, f in found if kind == "route")),
            tuple(dict.fromkeys(nexthop(f, link_names) for kind, f in found if kind == "nexthop")),
            tuple((address, label) for address, label in addresses.items() if label),
        )
    )


def _ifindex(fields: Fields) -> int:
    return fields.integer("ifindex", 1, 0x7FFFFFFF)


def _ifname(fields: Fields) -> str:
    return fields.name("ifname")


def _link(fields: Fields, link_names: LinkNames) -> dict[str, Any]:
    """`ip link` and `ip address` say the same about a link; -details adds its kind."""
    given = fields.values
    info = fields.nested("linkinfo")
    values: dict[str, Any] = {
        "ifindex": given["ifindex"],
        "name": given["ifname"],
        "flags": given.get("flags", []),
        "operstate": given.get("operstate"),
        "master": given.get("master"),
        "mtu": given.get("mtu"),
    }
    if info.values:
        values["kind"] = info.values.get("info_kind", "device")
        values["table"] = info.nested("info_data").values.get("table") if _is_vrf(info) else None
    link_type = given.get("link_type")
    if isinstance(link_type, str) and link_type in names.LINK_TYPES:
        values["type"] = link_type
    # The other end of a veth, or what a VLAN is on; by number if it is in another namespace.
    lower = given.get("link", given.get("link_index"))
    values["link"] = link_names.index(lower) if isinstance(lower, str) else lower
    return link_values(Fields(values, fields.file, fields.where), link_names)


def _is_vrf(info: Fields) -> bool:
    return info.values.get("info_kind") == "vrf"


def _addresses(fields: Fields) -> dict[Addr, str]:
    """With their labels."""
    found = {}
    for info in fields.objects("addr_info"):
        if not info.values:
            continue
        values = _renamed(
            info, {"valid_life_time": "valid_lft", "preferred_life_time": "preferred_lft"}
        )
        values["ifindex"] = _ifindex(fields)
        # With a peer ip prints `address` for the other end (IFA_ADDRESS).
        values["peer"] = info.values.get("address")
        values["address"] = info.values.get("local", values["peer"])
        if values["peer"] == values["address"]:
            del values["peer"]
        values["flags"] = [n for n in names.ADDRESS_FLAGS if info.values.get(n) is True]
        if not info.boolean("dynamic", default=False):
            values["flags"].append("permanent")
        address = new_address(address_values(Fields(values, info.file, info.where)))
        found[address] = info.string("label", "")
    return found


def _route(fields: Fields, link_names: LinkNames) -> Route:
    values = dict(fields.values)
    for name, known in (("table", names.TABLES), ("protocol", names.ROUTE_PROTOCOLS)):
        value = values.get(name)
        if isinstance(value, str) and value.lower() not in known and not value.isdigit():
            # The host may have given it a name in /etc/iproute2.
            raise fields.error(name, f"{', '.join(known)}, or a number, as `ip -N` prints it")
    if "family" not in fields:
        values["family"] = _family(fields)
    return new_route(*route_values(Fields(values, fields.file, fields.where), link_names))


def _family(fields: Fields) -> str:
    """ip does not say it; only a default without a gateway leaves it open.

    The kernel gives every IPv6 route a preference, and no IPv4 route.
    """
    via = fields.values.get("via")
    if "pref" in fields:
        return "inet6"
    if isinstance(via, dict):
        return "inet"
    hops = fields.values.get("nexthops")
    texts = [fields.values.get(name) for name in ("dst", "gateway", "prefsrc")]
    if isinstance(hops, list):
        texts += [hop.get("gateway") for hop in hops if isinstance(hop, dict)]
    return "inet6" if any(isinstance(text, str) and ":" in text for text in texts) else "inet"


def _renamed(fields: Fields, other: Mapping[str, str]) -> dict[str, Any]:
    return {other.get(name, name): value for name, value in fields.values.items()}
