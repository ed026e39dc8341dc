"""The node document (addrtracker.node/v1): one shape for files, API and --output json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracker.address import contains, family_of, parse, parse_network
from tracker.clock import rfc3339
from tracker.config import Networks
from tracker.model import FAMILIES, Choice, Decision, Network, Row
from tracker.nodeip.addresses import (
    EXTERNAL_IP,
    HOSTNAME,
    INTERNAL_IP,
    PREFERRED_TYPES,
    NoAddressError,
    NodeAddress,
    host_ips,
    preferred_order,
)

SCHEMA = "addrtracker.node/v1"

# RFC 1918, RFC 6598 and RFC 4193: what is internal unless the configuration says what is.
_INTERNAL = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")


class Scopes:
    """Scope of an address as the draft of KEP-1664 has it: Internal, Public or Unknown.

    External addresses are configured and on no interface, so they are never asked about.
    """

    def __init__(self, networks: Networks) -> None:
        configured = [("Public", network) for network in _parsed(networks.public)]
        configured += [("Internal", network) for network in _parsed(networks.internal)]
        # Of networks within each other the inner one knows better.
        configured.sort(key=lambda entry: -entry[1].prefixlen)
        usual = () if networks.internal else _parsed(_INTERNAL)
        self._networks = (*configured, *(("Internal", network) for network in usual))

    def scope(self, address: str) -> str:
        """The scope of an address of this host. A configured network comes before a default."""
        packed = parse(address)
        within = (scope for scope, network in self._networks if contains(network, packed))
        return next(within, "Unknown")


def _parsed(networks: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(parse_network, networks))


def node_document(
    decision: Decision, networks: Networks, preferred: Sequence[str] = PREFERRED_TYPES
) -> dict[str, Any]:
    """The decision as people and programs read it; keys as in the schema, addresses canonical.

    `preferred`: what the API server's --kubelet-preferred-address-types says.
    """
    scopes = Scopes(networks)
    choices = _ordered(decision, decision.choices)
    cause = decision.cause
    return {
        "schema": SCHEMA,
        "hostname": decision.hostname,
        "generation": decision.generation,
        "time": rfc3339(decision.time_ns),
        "stale": decision.stale,
        "families": list(decision.families),
        "primary": _primary(decision.choices),
        "state": _state(decision.choices),
        "ips": _ips(choices, scopes) + _externals(networks.external),
        **address_lists(_addresses(choices, networks.external, decision.hostname), preferred),
        "selections": {
            name: _selection(_ordered(decision, named), named, scopes)
            for name, named in decision.selections.items()
        },
        "cause": None if cause is None else dict(zip(cause._fields, cause, strict=True)),
        "warnings": _warnings(decision.warnings, choices),
    }


def address_lists(addresses: Sequence[NodeAddress], preferred: Iterable[str]) -> dict[str, Any]:
    """The keys of the document that say what Node.status.addresses is, and what follows from it."""
    try:
        of_pods = host_ips(addresses)
    except NoAddressError:
        of_pods = ()
    return {
        "addresses": _plain(addresses),
        "preferredAddresses": _plain(preferred_order(addresses, preferred)),
        "hostIPs": list(of_pods),
    }


def _plain(addresses: Iterable[NodeAddress]) -> list[dict[str, str]]:
    return [{"type": kind, "address": address} for kind, address in addresses]


def _ordered(decision: Decision, choices: dict[str, Choice]) -> list[Choice]:
    return [choices[family] for family in decision.families if family in choices]


def _primary(choices: dict[str, Choice]) -> dict[str, str | None]:
    """Both families are always there: a reader need not ask which are wanted."""
    return {f: choices[f].address if f in choices else None for f in FAMILIES}


def _state(choices: dict[str, Choice]) -> dict[str, str]:
    return {f: choices[f].state.value if f in choices else "none" for f in FAMILIES}


def _ips(choices: list[Choice], scopes: Scopes) -> list[dict[str, Any]]:
    """The primary addresses in the order of the families, then what else is asked for."""
    first = [
        _ip(c.address, c, c.reason, scopes, primary=True) for c in choices if c.address is not None
    ]
    more = [
        _ip(row.address, row, f"extra, rank {row.rank}", scopes, primary=False)
        for row in _extras(choices)
    ]
    return first + more


def _ip(
    address: str, source: Choice | Row, reason: str, scopes: Scopes, *, primary: bool
) -> dict[str, Any]:
    return {
        "ip": address,
        "family": source.family,
        "scope": scopes.scope(address),
        "primary": primary,
        "interface": source.interface,
        "ifindex": source.ifindex,
        "prefixlen": source.prefixlen,
        "reason": reason,
    }


def _extras(choices: list[Choice]) -> list[Row]:
    """One row for each further address, although one may be on two links."""
    found: dict[str, Row] = {}
    for choice in choices:
        for row in choice.extra:
            if row.address != choice.address:
                found.setdefault(row.address, row)
    return list(found.values())


def _externals(addresses: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_external(address) for address in dict.fromkeys(addresses)]


def _external(address: str) -> dict[str, Any]:
    return {
        "ip": address,
        "family": family_of(address),
        "scope": "External",
        "primary": False,
        "interface": None,
        "ifindex": None,
        "prefixlen": None,
        "reason": "networks.external",
    }


def _addresses(
    choices: list[Choice], external: tuple[str, ...], hostname: str
) -> list[NodeAddress]:
    """As Node.status.addresses: the order is meaningful, and names come last.

    The first InternalIP is the node's, the first one of the other family its second; so what is
    extra comes after both.
    """
    typed = [NodeAddress(INTERNAL_IP, c.address) for c in choices if c.address is not None]
    typed += [NodeAddress(INTERNAL_IP, row.address) for row in _extras(choices)]
    typed += [NodeAddress(EXTERNAL_IP, address) for address in dict.fromkeys(external)]
    if hostname:
        typed.append(NodeAddress(HOSTNAME, hostname))
    return typed


def _selection(choices: list[Choice], named: dict[str, Choice], scopes: Scopes) -> dict[str, Any]:
    return {
        "primary": _primary(named),
        "state": _state(named),
        "ips": _ips(choices, scopes),
        "warnings": _warnings((), choices),
    }


def _warnings(warnings: tuple[str, ...], choices: list[Choice]) -> list[str]:
    found = [*warnings, *(warning for choice in choices for warning in choice.warnings)]
    return list(dict.fromkeys(found))
