"""Everything that `check` finds, from the configuration, the host and the kernel."""

from __future__ import annotations

import secrets
from ipaddress import IPv4Address, IPv6Network
from typing import TYPE_CHECKING, NamedTuple

from tracker.address import family_of
from tracker.cli import check_facts
from tracker.cli.check_input import networks
from tracker.clusternet import families, kubernetes, nat64, overlap, primary
from tracker.clusternet.finding import Finding, error
from tracker.clusternet.proposal import propose, usual
from tracker.clusternet.ranges import IPNetwork, Range
from tracker.clusternet.settings import setting_findings
from tracker.model import IPV4
from tracker.session import NODE
from tracker.values import is_host_name

if TYPE_CHECKING:
    from tracker.cli.check_facts import Facts, Selected
    from tracker.cli.check_host import Kernel
    from tracker.cli.check_input import Request
    from tracker.config import Config


class Asked(NamedTuple):
    """What the kernel and the network said."""

    findings: list[Finding]
    prefixes: list[nat64.Prefix]
    routes: list[IPNetwork]
    skipped: tuple[str, ...] = ()
    """What could not be looked at."""


def cluster_of(config: Config, request: Request, facts: Facts) -> families.Cluster:
    """The networks of the cluster and what this node has."""
    return families.Cluster(
        nodes=request.nodes.networks,
        pods=networks(config.networks.pods),
        services=networks(config.networks.services),
        primary={family: found.address for family, found in facts.primaries.items()},
        wanted=config.families,
    )


def ranges_of(request: Request, facts: Facts, cluster: families.Cluster) -> list[Range]:
    """All ranges that are known."""
    return [
        *(Range("nodes", network, request.nodes.source) for network in cluster.nodes),
        *(Range("pods", network, "networks.pods") for network in cluster.pods),
        *(Range("services", network, "networks.services") for network in cluster.services),
        *facts.connected,
        *request.others,
    ]


def findings(
    config: Config, request: Request, facts: Facts, cluster: families.Cluster
) -> list[Finding]:
    """What follows from the configuration and the addresses of this host."""
    own, internal = networks(config.networks.public), networks(config.networks.internal)
    ranges = ranges_of(request, facts, cluster)
    every = [
        each for selected in (facts.node, *facts.named) for each in selected.primaries.values()
    ]
    return [
        *overlap.overlap_findings(ranges),
        *overlap.space_findings(ranges, (*own, *internal)),
        *families.family_findings(cluster),
        *families.scope_findings(cluster, request.ipv6),
        *kubernetes.service_findings(cluster.services),
        *kubernetes.pod_findings(cluster.pods, request.masks),
        *kubernetes.count_findings("pods", cluster.pods),
        *kubernetes.count_findings("services", cluster.services),
        *primary.node_findings(facts.primaries.values(), cluster.nodes),
        *primary.internet_findings(every, own, internal),
        *setting_findings(
            refused_name="" if is_host_name(facts.hostname) else facts.hostname,
            static=config.select.static,
            external=config.networks.external,
            public_networks=own,
            lists=check_facts.excluding(config),
            on_host=facts.addresses,
        ),
    ]


def ask_nobody(request: Request) -> Asked:
    """What is known without the host itself."""
    return Asked(
        [], _known(request), [], ("source addresses", "rp_filter", "routes of NAT64", "routes")
    )


def _known(request: Request) -> list[nat64.Prefix]:
    return [nat64.Prefix(prefix, request.nat64.source) for prefix in _nat64(request)]


def _nat64(request: Request) -> list[IPv6Network]:
    return [prefix for prefix in request.nat64.networks if isinstance(prefix, IPv6Network)]


def ask(request: Request, facts: Facts, config: Config) -> Asked:
    """What only this host, now, can tell. Nothing is sent but the question of --dns64."""
    from tracker.cli import check_host  # noqa: PLC0415 - not for files

    kernel = check_host.Kernel()
    try:
        found = [*_lookups(kernel, request, facts, config), *_to_nat64(kernel, request)]
    finally:
        kernel.close()
    prefixes = _known(request) + check_host.nat64_routes()
    if request.dns64 or request.pref64:
        from tracker.cli import check_nat64  # noqa: PLC0415 - only where asked for

        prefixes += check_nat64.dns64() if request.dns64 else []
        prefixes += check_nat64.pref64(request.pref64) if request.pref64 else []
    routes = list(check_host.routed()) if request.free else []
    return Asked(found, list(dict.fromkeys(prefixes)), routes)


def _lookups(kernel: Kernel, request: Request, facts: Facts, config: Config) -> list[Finding]:
    found = _sources(kernel, facts.node, request.peers[NODE], config.select.vrf)
    for selected in facts.named:
        vrf = config.selections[selected.name].vrf
        found += _sources(kernel, selected, request.peers[selected.name], vrf)
    return found


def _sources(kernel: Kernel, selected: Selected, to: tuple[str, ...], vrf: str) -> list[Finding]:
    """Where a selection's address is not the source, or what comes to it is dropped. By default
    the node speaks from its primary; what an address for a purpose is for, only its peers tell.
    """
    from tracker.cli.check_host import rp_filter  # noqa: PLC0415 - not for files

    primaries = selected.primaries

    def address(family: str) -> str | None:
        return primaries[family].address if family in primaries else None

    defaults = [
        found
        for family in primaries
        if selected.name == NODE
        and (found := kernel.default(family, address(family), vrf)) is not None
    ]
    peers = [kernel.lookup(peer, address(family_of(peer)), vrf) for peer in to]
    strict = {}
    if (ipv4 := primaries.get(IPV4)) is not None:
        strict[ipv4.interface] = rp_filter(ipv4.interface)
    return [
        *primary.source_findings(primaries, defaults, peers, selected.name),
        *primary.rp_filter_findings(
            primaries, [each for each in (*defaults, *peers) if each.family == IPV4], strict
        ),
    ]


def _to_nat64(kernel: Kernel, request: Request) -> list[Finding]:
    """Prefixes of NAT64 that no route leads to."""
    found = []
    for prefix in _nat64(request):
        probe = nat64.embed(prefix, IPv4Address("192.0.0.170"))
        if why := kernel.lookup(str(probe), None).error:
            text = f"NAT64 {prefix}: no way there: {why}; see `ip -6 route get {probe}`"
            found.append(error("nat64-unreachable", text, prefix=str(prefix)))
    return found


def free_ranges(
    request: Request, known: list[Range], config: Config, routes: list[IPNetwork]
) -> tuple[list[IPNetwork], list[Finding]]:
    """Free ranges as asked for, and what to say where there are none."""
    within = request.within or tuple(usual(request.free, secrets.randbits(40)))
    used = [
        *(entry.network for entry in known),
        *networks(config.networks.public),
        *networks(config.exclude.cidrs),
    ]
    found = propose(within, used, request.free, request.most, routes)
    if found:
        return found, []
    where = ", ".join(map(str, within))
    text = f"no free /{request.free} in {where}; look for a smaller one, or --within others"
    return [], [error("free-none", text, prefixlen=request.free, within=list(map(str, within)))]
