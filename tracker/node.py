"""The node document (addrtracker.node/v1): one shape for files, API and --output json."""

from __future__ import annotations

import time
from typing import Any

from tracker.address import contains, family_of, parse, parse_network
from tracker.config import Networks
from tracker.model import FAMILIES, NANOSECONDS, Choice, Decision, Network

SCHEMA = "addrtracker.node/v1"

# RFC 1918, RFC 6598 and RFC 4193: what is internal unless the configuration says what is.
_INTERNAL = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")


class Scopes:
    """Scope of an address as the draft of KEP-1664 has it: Internal, Public or Unknown.

    External addresses are configured and on no interface, so they are never asked about.
    """

    def __init__(self, networks: Networks) -> None:
        self._public = _parsed(networks.public)
        self._internal = _parsed(networks.internal or _INTERNAL)

    def scope(self, address: str) -> str:
        """The scope of an address of this host. A configured network comes before a default."""
        packed = parse(address)
        if any(contains(network, packed) for network in self._public):
            return "Public"
        if any(contains(network, packed) for network in self._internal):
            return "Internal"
        return "Unknown"


def _parsed(networks: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(parse_network, networks))


def node_document(decision: Decision, networks: Networks) -> dict[str, Any]:
    """The decision as people and programs read it; keys as in the schema, addresses canonical."""
    scopes = Scopes(networks)
    choices = _ordered(decision, decision.choices)
    internal = [choice.address for choice in choices if choice.address is not None]
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
        "ips": _ips(choices, scopes) + [_external(address) for address in networks.external],
        "addresses": _addresses(internal, networks.external, decision.hostname),
        "hostIPs": _host_ips([*internal, *networks.external]),
        "selections": {
            name: _selection(_ordered(decision, named), named, scopes)
            for name, named in decision.selections.items()
        },
        "cause": None if cause is None else dict(zip(cause._fields, cause, strict=True)),
        "warnings": _warnings(decision.warnings, choices),
    }


def rfc3339(wall_ns: int) -> str:
    """CLOCK_REALTIME in nanoseconds as RFC 3339 in UTC, with microseconds."""
    seconds, rest = divmod(wall_ns, NANOSECONDS)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{stamp}.{rest // 1000:06d}Z"


def _ordered(decision: Decision, choices: dict[str, Choice]) -> list[Choice]:
    return [choices[family] for family in decision.families if family in choices]


def _primary(choices: dict[str, Choice]) -> dict[str, str | None]:
    """Both families are always there: a reader need not ask which are wanted."""
    return {f: choices[f].address if f in choices else None for f in FAMILIES}


def _state(choices: dict[str, Choice]) -> dict[str, str]:
    return {f: choices[f].state.value if f in choices else "none" for f in FAMILIES}


def _ips(choices: list[Choice], scopes: Scopes) -> list[dict[str, Any]]:
    return [
        {
            "ip": choice.address,
            "family": choice.family,
            "scope": scopes.scope(choice.address),
            "primary": True,
            "interface": choice.interface,
            "ifindex": choice.ifindex,
            "prefixlen": choice.prefixlen,
            "reason": choice.reason,
        }
        for choice in choices
        if choice.address is not None
    ]


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
    internal: list[str], external: tuple[str, ...], hostname: str
) -> list[dict[str, str]]:
    """As Node.status.addresses: the order is meaningful, and names come last."""
    typed = [("InternalIP", address) for address in internal]
    typed += [("ExternalIP", address) for address in external]
    if hostname:
        typed.append(("Hostname", hostname))
    return [{"type": kind, "address": address} for kind, address in typed]


def _host_ips(addresses: list[str]) -> list[str]:
    """The host IPs of pods: the first address, then the first one of the other family."""
    first: dict[str, str] = {}
    for address in addresses:
        first.setdefault(family_of(address), address)
    return list(first.values())


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
