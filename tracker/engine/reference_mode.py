"""Which addresses the mode of a policy takes (docs/engine.md section 5, rule 3)."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tracker.capture.record import Addr, Link
from tracker.engine.reference_filters import contains
from tracker.model import Mode, Network, PolicyTable


def is_in_mode(addr: Addr, link: Link | None, policy: PolicyTable) -> bool:
    """Whether the list has the address or its link, and its subnet holds a hint."""
    number = len(policy.mode_names) + len(policy.mode_networks)
    if policy.mode is Mode.LIST and mode_position(addr, link, policy) == number:
        return False
    hints = [hint for hint in policy.hints if hint.family == addr.family]
    subnet = Network(addr.family, addr.prefixlen, addr.local)
    return not hints or any(contains(subnet, hint.family, hint.address) for hint in hints)


def mode_position(addr: Addr, link: Link | None, policy: PolicyTable) -> int:
    """Position of what matches first in the list of names and networks, the length of the list if
    nothing does; 0 without a list."""
    if policy.mode is not Mode.LIST:
        return 0
    for place, pattern in enumerate(policy.mode_names):
        if link is not None and fnmatchcase(link.name, pattern):
            return place
    return len(policy.mode_names) + position(addr, policy.mode_networks)


def position(addr: Addr, networks: tuple[Network, ...]) -> int:
    """Position of the first network that holds the address, their number without one."""
    for place, network in enumerate(networks):
        if contains(network, addr.family, addr.local):
            return place
    return len(networks)
