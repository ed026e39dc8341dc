"""Findings about primary addresses: who reaches them, and whether this host speaks from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple

from tracker.clusternet.blocks import public
from tracker.clusternet.finding import Finding, error, note, warning
from tracker.clusternet.ranges import IPNetwork, inside

STRICT = 1
"""rp_filter: the answer has to leave by the link that the packet came in by (RFC 3704)."""


class Primary(NamedTuple):
    """A primary address and where it is, or that of a named selection."""

    family: str
    address: str
    interface: str
    on_uplink: bool
    """A default route leads out over its link, or names it."""
    selection: str = ""
    """"" = the node's own."""

    @property
    def role(self) -> str:
        """What it is, for people."""
        return _role(self.family, self.selection)


def _role(family: str, selection: str) -> str:
    return f"{family} address of selection {selection}" if selection else f"{family} primary"


class Lookup(NamedTuple):
    """What the kernel answers when asked for a route (RTM_GETROUTE)."""

    destination: str
    family: str
    source: str
    """The address that it would send from; "" = there is no way."""
    interfaces: tuple[str, ...]
    """Links that such a packet may leave by, several for equal paths."""
    answers: tuple[str, ...]
    """The same for a packet from the primary address: policy rules may tell them apart."""
    error: str = ""
    """Why there is no way."""
    local: bool = False
    """The destination is this host."""
    varies: bool = False
    """Each of several equal paths has its own source, and the destination decides."""


def internet_findings(
    primaries: Iterable[Primary], own: Sequence[IPNetwork], internal: Sequence[IPNetwork]
) -> list[Finding]:
    """Primaries that anybody may send packets to.

    `own`: networks.public, where this is wanted; `internal`: networks.internal, where somebody
    answers for it that the Internet does not come in.
    """
    found = []
    for primary in primaries:
        network = ip_network(primary.address)
        if not primary.on_uplink or not public(network):
            continue
        if any(inside(network, outer) for outer in internal):
            continue
        known = any(inside(network, outer) for outer in own)
        text = (
            f"{primary.role} {primary.address} on {primary.interface} is a public "
            "address, not behind NAT: unless something filters on the way, the Internet reaches "
            "all that listens on it (kubelet, node ports, SSH)"
        )
        todo = "" if known else "; filter, or name its network in networks.public if it is meant so"
        make = note if known else warning
        found.append(make("primary-public", text + todo, **_data(primary)))
    return found


def source_findings(
    primaries: Mapping[str, Primary],
    default: Iterable[Lookup],
    peers: Iterable[Lookup],
    selection: str = "",
) -> list[Finding]:
    """Where this host would not speak from its primary address, or from that of a selection."""
    found = []
    for lookup in default:
        primary = primaries.get(lookup.family)
        if primary is None or not lookup.source:
            continue
        if lookup.varies:
            text = (
                f"by default this host speaks over {', '.join(lookup.interfaces)}, from the "
                f"address of the link that the destination happens to take, not always from its "
                f"{lookup.family} primary {primary.address}; a default route with "
                f"`src {primary.address}` would"
            )
            found.append(warning("source-varies", text, **_data(primary), **_lookup(lookup)))
        elif lookup.source != primary.address:
            text = (
                f"by default this host speaks from {lookup.source} over "
                f"{', '.join(lookup.interfaces)}, not from its {lookup.family} primary "
                f"{primary.address}: peers that know it by that see a stranger; a default route "
                f"with `src {primary.address}`, or another primary, would agree"
            )
            found.append(warning("source-default", text, **_data(primary), **_lookup(lookup)))
    for lookup in peers:
        found += _peer(primaries.get(lookup.family), lookup, selection)
    return found


def _peer(primary: Primary | None, lookup: Lookup, selection: str) -> list[Finding]:
    peer = lookup.destination
    data = {"selection": selection or None}
    if lookup.error:
        text = f"peer {peer}: no way there: {lookup.error}; see `ip route get {peer}`"
        return [error("peer-unreachable", text, **data, **_lookup(lookup))]
    if lookup.local:
        text = f"peer {peer} is an address of this host"
        return [note("peer-local", text, **data, **_lookup(lookup))]
    if primary is None:
        text = (
            f"peer {peer}: this host has no {_role(lookup.family, selection)}, and speaks to it "
            f"from {lookup.source}"
        )
        return [warning("peer-without-primary", text, **data, **_lookup(lookup))]
    if lookup.source == primary.address:
        return []
    text = (
        f"peer {peer}: this host speaks to it from {lookup.source} over "
        f"{', '.join(lookup.interfaces)}, not from its {primary.role} {primary.address}; a route "
        f"to it with `src {primary.address}` would"
    )
    return [warning("source-peer", text, **_data(primary), **_lookup(lookup))]


def node_findings(primaries: Iterable[Primary], nodes: Sequence[IPNetwork]) -> list[Finding]:
    """Primaries that are in none of the networks of the nodes, where those of their family are
    known.
    """
    found = []
    for primary in primaries:
        address = ip_network(primary.address)
        known = [network for network in nodes if network.version == address.version]
        if known and not any(inside(address, network) for network in known):
            text = (
                f"{primary.family} primary {primary.address} on {primary.interface} is in no "
                f"network of the nodes ({', '.join(map(str, known))}): other nodes may not reach "
                "it; `addrtracker explain` says why it was chosen"
            )
            found.append(warning("primary-outside-nodes", text, **_data(primary)))
    return found


def rp_filter_findings(
    primaries: Mapping[str, Primary],
    lookups: Iterable[Lookup],
    rp_filter: Mapping[str, int],
) -> list[Finding]:
    """Where a packet to the primary would be dropped because the answer leaves by another link.

    `rp_filter`: the value in effect by link, that is the larger of conf/all and conf/LINK
    (IN_DEV_RPFILTER). IPv4 alone has it. An address on `lo` or a dummy is reached over any link.
    """
    found: dict[str, Finding] = {}
    for lookup in lookups:
        primary = primaries.get(lookup.family)
        if primary is None or lookup.local or not lookup.answers:
            continue
        link = primary.interface
        if rp_filter.get(link, 0) != STRICT or link in lookup.answers:
            continue
        ways = ", ".join(lookup.answers)
        text = (
            f"packets from {lookup.destination} to the {primary.role} {primary.address} are "
            f"dropped on {link}: rp_filter is strict there, and the answer would leave by {ways}; "
            f"set net.ipv4.conf.{link}.rp_filter = 2 (loose), or a rule and table for packets from "
            f"{primary.address} that leave by {link}"
        )
        data = {**_data(primary), **_lookup(lookup), "rp_filter": STRICT}
        found.setdefault(ways, error("rp-filter-drops", text, **data))
    return list(found.values())


def excluder(
    address: str,
    interface: str,
    lists: Mapping[str, Sequence[str]],
    interfaces: Sequence[str],
) -> tuple[str, str]:
    """The key and the value of the configuration that exclude an address; ("", "") = none does.

    `lists`: addresses and networks by key ("exclude.cidrs"); `interfaces`: exclude.interfaces.
    """
    packed = ip_address(address)
    for key, values in lists.items():
        for value in values:
            network = ip_network(value)
            if network.version == packed.version and packed in network:
                return key, value
    for pattern in interfaces:
        if not pattern.startswith("!") and fnmatchcase(interface, pattern):
            return "exclude.interfaces", pattern
    return "", ""


def exclusion_finding(
    was: Primary, by: tuple[str, str], now: str | None, *, published: bool
) -> Finding:
    """An exclusion that hits the address that is, or would be, the primary one.

    `now`: what is the primary instead. `published`: it is what a daemon has published.
    """
    key, value = by
    is_what = "is the published" if published else "would be the"
    text = f"{key} {value} excludes {was.address} on {was.interface}, which {is_what} {was.role}; "
    data = {**_data(was), "key": key, "value": value, "instead": now}
    code = "exclusion-hits-published" if published else "exclusion-hits-primary"
    if now is None:
        return error(code, f"{text}nothing is left: take it out of {key}", **data)
    text += f"{now} is taken instead"
    if published:
        return warning(code, f"{text}, and whoever knows the old one loses it", **data)
    return note(code, text, **data)


def _data(primary: Primary) -> dict[str, Any]:
    return {
        "selection": primary.selection or None,
        "family": primary.family,
        "primary": primary.address,
        "interface": primary.interface,
    }


def _lookup(lookup: Lookup) -> dict[str, Any]:
    lists = {"interfaces": list(lookup.interfaces), "answers": list(lookup.answers)}
    return {"lookup": {**lookup._asdict(), **lists}}
