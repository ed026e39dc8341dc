"""Findings about settings that are right by themselves and odd together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import ip_network

from tracker.clusternet.blocks import public
from tracker.clusternet.finding import Finding, warning
from tracker.clusternet.primary import excluder
from tracker.clusternet.ranges import IPNetwork
from tracker.printable import quoted


def setting_findings(
    *,
    refused_name: str,
    static: Iterable[str],
    external: Iterable[str],
    public_networks: Iterable[IPNetwork],
    lists: Mapping[str, Sequence[str]],
    on_host: Collection[str],
) -> list[Finding]:
    """What cannot have been meant.

    `refused_name`: that of this host if Kubernetes would not take it, else ""; `lists`: what is
    excluded, by key of the configuration; `on_host`: addresses of this host.
    """
    found = []
    if refused_name:
        text = (
            f'this host is called "{quoted(refused_name)}", and Kubernetes takes no such name for '
            "a Node (RFC 1123 subdomain); set hostname"
        )
        found.append(warning("hostname-refused", text, hostname=refused_name))
    for address in static:
        key, value = excluder(address, "", lists, ())
        if key:
            text = f"select.static {address} is excluded by {key} {value}: take it out of one"
            found.append(warning("static-excluded", text, address=address, key=key, value=value))
    for address in external:
        if address in on_host:
            text = (
                f"networks.external {address} is on an interface of this host: it belongs there "
                "only if another box has it; take it out"
            )
            found.append(warning("external-on-host", text, address=address))
    for network in public_networks:
        if not public(ip_network(network)):
            text = f"networks.public {network} is not public address space: take it out"
            found.append(warning("public-not-global", text, network=str(network)))
    return found
