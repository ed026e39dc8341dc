"""Other forms of the node document: what a provider's list, or the kubelet, makes of the node.

Each is a node document: what it says of addresses is what Node.status would say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.address import family_of
from tracker.cli.show_request import INTERNAL_IPS, KUBELET, NODE_IP, PROVIDER, Request
from tracker.model import FAMILIES, Row
from tracker.node import Scopes, address_lists
from tracker.nodeip.addresses import (
    EXTERNAL_IP,
    INTERNAL_IP,
    NoAddressError,
    NodeAddress,
    one_internal_ip_each,
)
from tracker.nodeip.arguments import UNSPECIFIED, sloppy_ip
from tracker.nodeip.provider import merge

if TYPE_CHECKING:
    from tracker.profiles.host import Host

Document = dict[str, Any]

_IPS = (INTERNAL_IP, EXTERNAL_IP)


class Surroundings(NamedTuple):
    """What the forms are made from, beside the document."""

    scopes: Scopes
    rows: Mapping[str, Row]
    """Where each address of this host is."""
    host: Callable[[], Host]
    """The host as the kubelet sees it; called where it is needed."""


def formed(document: Document, request: Request, around: Surroundings) -> Document:
    """The document in the form that is asked for.

    Raises NoAddressError: there is none, or it is refused.
    """
    if request.form == KUBELET:
        document = _kubelet(document, request, around)
    elif request.listed is not None:
        document = _merged_document(document, request, request.listed, around)
    if request.form == INTERNAL_IPS:
        document = _internal_ips(document, request)
    return document


def _merged_document(
    document: Document, request: Request, listed: tuple[NodeAddress, ...], around: Surroundings
) -> Document:
    """Our answer, or what --node-ip says, at the front of the provider's list."""
    node_ips = request.node_ips
    if node_ips is None:
        node_ips = _requested(document)
        warnings = []
    else:
        _validate(around.host(), node_ips)
        warnings = _overridden(document, node_ips)
    made = _said(_merged(node_ips, listed), request, around, "cloud provider")
    known = {ip["ip"]: ip for ip in document["ips"]}
    return {
        **document,
        **made,
        "families": document["families"] if request.node_ips is None else made["families"],
        "state": {
            family: document["state"][family] if ip == document["primary"][family] else state
            for (family, state), ip in zip(
                made["state"].items(), made["primary"].values(), strict=True
            )
        },
        "ips": [{**known.get(ip["ip"], ip), "primary": ip["primary"]} for ip in made["ips"]],
        "warnings": [*document["warnings"], *warnings],
    }


def _requested(document: Document) -> tuple[str, ...]:
    """Our answer as node IPs: in the order of the families, those that there are."""
    primary = document["primary"]
    return tuple(primary[family] for family in document["families"] if primary[family])


def _merged(node_ips: tuple[str, ...], listed: tuple[NodeAddress, ...]) -> list[NodeAddress]:
    """The kubelet writes no annotation where nothing certain is asked for; then all is taken."""
    if not node_ips or node_ips[0] in UNSPECIFIED:
        return list(listed)
    try:
        return merge(",".join(node_ips), listed)
    except NoAddressError as error:
        raise NoAddressError(f"show: {PROVIDER.name}: {error}") from None


def _overridden(document: Document, node_ips: tuple[str, ...]) -> list[str]:
    chosen = document["primary"]
    return [
        f"{family}: {NODE_IP.name} {ip} is not what the policy chooses: {chosen[family] or 'none'}"
        for family, ip in ((family_of(ip), ip) for ip in node_ips)
        if ip not in UNSPECIFIED and chosen[family] != ip
    ]


def _validate(host: Host, node_ips: tuple[str, ...]) -> None:
    """The kubelet's demands. Raises NoAddressError."""
    from tracker.profiles.choice import ProfileError  # noqa: PLC0415 - imports ipaddress
    from tracker.profiles.kubelet import validate  # noqa: PLC0415

    for ip in node_ips:
        if ip in UNSPECIFIED:
            continue  # alone, as --node-ip has been read: the kubelet is to detect
        try:
            validate(host, ip_address(ip))
        except ProfileError as error:
            raise NoAddressError(f"show: {NODE_IP.name}: {error}") from None


def _said(
    addresses: list[NodeAddress], request: Request, around: Surroundings, reason: str
) -> Document:
    """What a list says, in the keys of the document: the first InternalIP of a family is its
    primary address.
    """
    first = {
        family_of(ip): ip
        for entry in one_internal_ip_each(addresses)
        if (ip := sloppy_ip(entry.address))
    }
    ips: dict[str, Document] = {}
    for kind, address in addresses:
        ip = sloppy_ip(address) if kind in _IPS else None
        if ip is None or ip in ips:
            continue
        family, row = family_of(ip), around.rows.get(ip)
        ips[ip] = {
            "ip": ip,
            "family": family,
            "scope": "External" if kind == EXTERNAL_IP and row is None else around.scopes.scope(ip),
            "primary": first.get(family) == ip,
            "interface": row.interface if row is not None else None,
            "ifindex": row.ifindex if row is not None else None,
            "prefixlen": row.prefixlen if row is not None else None,
            "reason": reason,
        }
    return {
        "families": list(first),
        "primary": {family: first.get(family) for family in FAMILIES},
        "state": {family: "stable" if family in first else "none" for family in FAMILIES},
        "ips": list(ips.values()),
        **address_lists(addresses, request.preferred),
    }


def _internal_ips(document: Document, request: Request) -> Document:
    addresses = [NodeAddress(entry["type"], entry["address"]) for entry in document["addresses"]]
    kept = one_internal_ip_each(addresses)
    values = {sloppy_ip(entry.address) for entry in kept}
    return {
        **document,
        "ips": [ip for ip in document["ips"] if ip["ip"] in values],
        **address_lists(kept, request.preferred),
    }


def _kubelet(document: Document, request: Request, around: Surroundings) -> Document:
    """What the kubelet itself would set: one address, unless it is given a pair."""
    from tracker.profiles import kubelet  # noqa: PLC0415 - imports ipaddress
    from tracker.profiles.bind_address import Found  # noqa: PLC0415
    from tracker.profiles.choice import ProfileError  # noqa: PLC0415

    host = around.host()
    node_ips = request.node_ips or ()
    _validate(host, node_ips)

    def detect() -> Found:
        prefer = family_of(node_ips[0]) if node_ips else FAMILIES[0]
        return kubelet.detect(host, prefer, host.resolved or ())

    if request.listed is not None:
        addresses, reason = _merged(node_ips, request.listed), "external cloud provider"
    else:
        try:
            status = kubelet.node_status(node_ips, "", document["hostname"], detect)
        except ProfileError as error:
            raise NoAddressError(f"show: the kubelet finds no address: {error}") from None
        addresses, reason = status.addresses, status.reason
    return {
        **document,
        **_said(addresses, request, around, reason),
        "stale": False,
        "selections": {},
        "cause": None,
        "warnings": [],
    }
