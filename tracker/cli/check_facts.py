"""What `check` takes from a session: primaries, connected networks, links of a CLAT."""

from __future__ import annotations

from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

from tracker.capture.record import Link, iter_records
from tracker.clusternet.blocks import CLAT, UNUSABLE
from tracker.clusternet.nat64 import is_clat
from tracker.clusternet.primary import Primary, excluder, exclusion_finding
from tracker.clusternet.ranges import IPNetwork, Range, inside
from tracker.model import FAMILIES, Reject, Tier
from tracker.policy.defaults import EXCLUDED_KINDS, EXCLUDED_NAMES
from tracker.session import NODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracker.clusternet.finding import Finding
    from tracker.config import Config
    from tracker.model import Row
    from tracker.session import Session

_IFF_UP, _IFF_LOOPBACK = 0x1, 0x8

_BESIDE = (
    "docker*",
    "br-*",
    "podman*",
    "nerdctl*",
    "virbr*",
    "vnet*",
    "lxdbr*",
    "lxcbr*",
    "tailscale*",
    "zt*",
    "wg[0-9]*",
)
"""Links of containers, machines and VPNs beside the cluster; all others that are excluded by name
belong to network plugins, which have addresses of pods and services on purpose."""
_PLUGINS = (*EXCLUDED_NAMES, "wireguard.cali", "wg-v6.cali")

_EXCLUDED = {Reject.EXCLUDED_ADDRESS, Reject.EXCLUDED_NETWORK, Reject.EXCLUDED_INTERFACE}
LINKS_SHOWN = 3


class Facts(NamedTuple):
    """A host as `check` sees it."""

    primaries: dict[str, Primary]
    """By family; families without one are not there."""
    present: tuple[str, ...]
    """Families in which some address would do, wanted or not."""
    connected: list[Range]
    """The networks of its links, without loopback, link-local and what network plugins have."""
    addresses: frozenset[str]
    clat: tuple[str, ...]
    """Links of a CLAT."""
    rows: dict[str, list[Row]]
    """As the node's selection judges them."""
    unexcluded: dict[str, Row]
    """The best ones if the configuration excluded nothing."""


def read(session: Session) -> Facts:
    """The facts; the session is of no use for selections afterwards."""
    engine = session.engine
    index = list(session.policies).index(NODE)
    choices = session.decision().choices
    rows = {family: engine.rows(index, family) for family in FAMILIES}
    links = _links(engine.snapshot())
    primaries = {}
    for family, choice in choices.items():
        own = (
            r for r in rows[family] if (r.address, r.ifindex) == (choice.address, choice.ifindex)
        )
        if (row := next(own, None)) is not None:
            primaries[family] = _primary(row)
    policy = session.policies[NODE]
    everybody = policy._replace(
        families=FAMILIES, exclude=(), exclude_names=EXCLUDED_NAMES, keep_names=()
    )
    engine.set_policy(index, policy._replace(families=FAMILIES))
    present = tuple(family for family in FAMILIES if _best(engine.rows(index, family)))
    engine.set_policy(index, everybody)
    best = {family: _best(engine.rows(index, family)) for family in FAMILIES}
    every = [row for family in FAMILIES for row in rows[family]]
    return Facts(
        primaries=primaries,
        present=present,
        connected=_connected(every, links),
        addresses=frozenset(row.address for row in every),
        clat=_clat(every, links),
        rows=rows,
        unexcluded={family: row for family, row in best.items() if row is not None},
    )


def exclusions(facts: Facts, config: Config, published: Mapping[str, str]) -> list[Finding]:
    """Exclusions of the configuration that hit a primary; `published`: what a daemon has published,
    by family.
    """
    found = []
    for family in config.families:
        now = facts.primaries.get(family)
        instead = now.address if now is not None else None
        by_address = {row.address: row for row in facts.rows[family]}
        hit = set()
        if row := by_address.get(published.get(family, "")):
            hit.add(row.address)
            found += _exclusion(row, config, instead, published=True)
        best = facts.unexcluded.get(family)
        if best is not None and best.address not in {instead, *hit}:
            row = by_address[best.address]
            found += _exclusion(row, config, instead, published=False)
    return found


def _exclusion(row: Row, config: Config, instead: str | None, *, published: bool) -> list[Finding]:
    if row.reject not in _EXCLUDED:
        return []
    by = excluder(row.address, row.interface, excluding(config), config.exclude.interfaces)
    return [exclusion_finding(_primary(row), by, instead, published=published)] if by[0] else []


def excluding(config: Config) -> dict[str, Sequence[str]]:
    """What excludes addresses, by key of the configuration."""
    return {
        "exclude.addresses": config.exclude.addresses,
        "exclude.cidrs": config.exclude.cidrs,
        "networks.pods": config.networks.pods,
        "networks.services": config.networks.services,
    }


def _links(snapshot: bytes) -> dict[int, Link]:
    payloads = (record.payload for record in iter_records(snapshot))
    return {payload.ifindex: payload for payload in payloads if isinstance(payload, Link)}


def _best(rows: list[Row]) -> Row | None:
    return rows[0] if rows and rows[0].rank else None


def _primary(row: Row) -> Primary:
    uplink = row.tier in {Tier.ROUTE, Tier.LOOPBACK} and row.reject is Reject.NONE
    return Primary(row.family, row.address, row.interface, uplink)


def _connected(rows: list[Row], links: Mapping[int, Link]) -> list[Range]:
    own: dict[IPNetwork, list[str]] = {}
    beside: dict[IPNetwork, list[str]] = {}
    for row in rows:
        link = links.get(row.ifindex)
        if link is None or link.flags & _IFF_LOOPBACK or not link.flags & _IFF_UP:
            continue
        network = ip_network(f"{row.peer or row.address}/{row.prefixlen}", strict=False)
        if any(inside(network, block) for block in (*UNUSABLE, CLAT)):
            continue
        if any(fnmatchcase(link.name, name) for name in _BESIDE):
            beside.setdefault(network, []).append(link.name)
        elif not any(fnmatchcase(link.name, name) for name in _PLUGINS):
            names = beside if link.kind in EXCLUDED_KINDS else own
            names.setdefault(network, []).append(link.name)
    return [
        *(Range("host", network, _shown(names)) for network, names in own.items()),
        *(
            Range("host", network, _shown(names), foreign=True)
            for network, names in beside.items()
            if network not in own
        ),
    ]


def _shown(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = len(unique) - LINKS_SHOWN
    shown = ", ".join(unique[:LINKS_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _clat(rows: list[Row], links: Mapping[int, Link]) -> tuple[str, ...]:
    by_address = [row.interface for row in rows if is_clat(row.interface, row.address)]
    by_name = [link.name for link in links.values() if is_clat(link.name, None)]
    return tuple(dict.fromkeys([*by_name, *by_address]))
