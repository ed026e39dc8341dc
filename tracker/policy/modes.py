"""Modes: which addresses a selection is about, before the criteria rank them.

Every mode but default-route is a list, in order of preference: names of interfaces, or networks. In
the modes route-to and dns the list is found out and followed while we run, by whoever holds the
session; a `Guide` says what to find out.
"""

from __future__ import annotations

from typing import NamedTuple

from tracker.model import IPV4, IPV6

DEFAULT_ROUTE = "default-route"
INTERFACE = "interface"
CIDR = "cidr"
ROUTE_TO = "route-to"
DNS = "dns"
STATIC = "static"
MODES = (DEFAULT_ROUTE, INTERFACE, CIDR, ROUTE_TO, DNS, STATIC)

LIST_OF = {INTERFACE: "interfaces", CIDR: "cidrs", ROUTE_TO: "route_to", STATIC: "static"}
"""The key that holds the list of a mode."""

AUTODETECTED = {"0.0.0.0": IPV4, "::": IPV6}  # noqa: S104 - nobody binds to them here
"""Addresses that stand for a family, as the kubelet's --node-ip has it."""


class Guide(NamedTuple):
    """What a session does for one selection beyond what its table says."""

    mode: str = DEFAULT_ROUTE
    targets: tuple[str, ...] = ()
    """Mode route-to: addresses that must be reached, in order of preference."""
    host: str = ""
    """Mode dns: the name whose addresses count."""
    vrf: str = ""
    """Name of the VRF whose table is the selection's; "" = the table is written down."""
    extra: int = 0
    """Addresses of a family beside the first, in order of their rank."""


def autodetected_family(static: tuple[str, ...]) -> str:
    """The family that mode static leaves to the default routes, "" = it names addresses."""
    return AUTODETECTED.get(static[0], "") if len(static) == 1 else ""


def fallback_of(mode: str, fallback: str, *, hinted: bool) -> str:
    """What `auto` means in a mode: a list that matches nothing yields nothing, but route-to and a
    hint only guess at the network, so the default route is a better guess than none.
    """
    if fallback != "auto":
        return fallback
    if mode == ROUTE_TO or (mode == DEFAULT_ROUTE and hinted):
        return DEFAULT_ROUTE
    return "auto" if mode == DEFAULT_ROUTE else "none"
