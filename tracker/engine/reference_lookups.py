"""Whether the kernel may have a new answer to the question which way a target is reached, or whose
name a VRF has (docs/engine.md section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracker.capture.record import F_DUMP, Flush, Link, Loss, Nexthop, Op, Record, Route, Rule
from tracker.engine.reference_filters import contains
from tracker.engine.reference_state import (
    IFF_LOWER_UP,
    IFF_UP,
    RTM_F_CLONED,
    AddrKey,
    State,
    is_live,
)
from tracker.model import AF_INET, AF_INET6, GROUNDS_MAX, TARGETS_MAX, Ground, Grounds, Network

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

RT_TABLE_LOCAL = 255
IFF_RUNNING = 0x40
_WAY_FLAGS = IFF_UP | IFF_RUNNING | IFF_LOWER_UP
"""What the kernel looks at of a link: linkwatch tells routes of carrier together with RUNNING."""
_SECONDARY = 0x01
_OPTIMISTIC = 0x04
_DEPRECATED = 0x20
_SOURCE_FLAGS = {AF_INET: _SECONDARY, AF_INET6: 0x01 | _OPTIMISTIC | 0x08 | 0x10 | 0x20 | 0x40}
"""What makes an address a better or worse source; of IPv6: temporary, optimistic, dadfailed, home
address, deprecated, tentative."""
_POOR = {AF_INET: 0, AF_INET6: _OPTIMISTIC | _DEPRECATED}
_HOST_LENGTH = {AF_INET: 32, AF_INET6: 128}


class Facts(NamedTuple):
    """What records change of that which answers depend on."""

    links: dict[int, tuple[int, int, str]]
    """Flags, master and name by ifindex."""
    addresses: dict[AddrKey, tuple[int, int]]
    """Flags and scope."""
    nexthops: dict[int, Nexthop]
    vrfs: frozenset[tuple[int, str, int]]
    """Ifindex, name and table."""


class Lookups:
    """Counts what may have changed the kernel's answers."""

    def __init__(self, state: State) -> None:
        self.generation = 0
        self.vrfs = 0
        self.targets: tuple[Network, ...] = ()
        self._grounds: Grounds | None = None
        self._dark: set[int] = set()
        """Links that were not live when the kernel was asked last."""
        self._open: set[int] = set(_HOST_LENGTH)
        self._state = state
        self._facts = self._look()

    def set_targets(self, targets: tuple[Network, ...]) -> None:
        """Replace the targets; ValueError for too many, or one that is no host address."""
        if len(targets) > TARGETS_MAX or any(
            target.prefixlen != _HOST_LENGTH.get(target.family) for target in targets
        ):
            raise ValueError("Invalid argument")
        if targets != self.targets:
            self.targets = targets
            self.generation += 1
            self.set_grounds(None)

    def set_grounds(self, grounds: Grounds | None) -> None:
        """Say what the answers rest on; None = everything may matter."""
        known = grounds is not None and grounds.size <= GROUNDS_MAX
        self._grounds = grounds if known else None
        links = self._state.links.values()
        self._dark = {link.ifindex for link in links if not is_live(link)}
        self._open = {family for family in _HOST_LENGTH if self._is_open(family)}

    def applied(self, record: Record) -> None:
        """After each record."""
        before, self._facts = self._facts, self._look()
        if before.vrfs != self._facts.vrfs:
            self.vrfs += 1
        self._dark &= self._facts.links.keys()
        if self.targets and (self._moved(before) or self._tells(record)):
            self.generation += 1

    def lost(self) -> None:
        """Messages were lost."""
        if self.targets:
            self.generation += 1

    def expired(self) -> None:
        """Routes ended by themselves, all of IPv6. Who knows the grounds knows the time as well."""
        if self._grounds is None and self._has(AF_INET6):
            self.generation += 1

    def _look(self) -> Facts:
        links = self._state.links.values()
        return Facts(
            {link.ifindex: (link.flags & _WAY_FLAGS, link.master, link.name) for link in links},
            {
                key: (addr.flags & _SOURCE_FLAGS[family], addr.scope)
                for family, addresses in self._state.addresses.items()
                for key, addr in addresses.items()
            },
            {number: hop._replace(flags=0) for number, hop in self._state.nexthops.items()},
            frozenset(
                (link.ifindex, link.name, link.vrf_table) for link in links if link.kind == "vrf"
            ),
        )

    # What is stored.

    def _moved(self, before: Facts) -> bool:
        now = self._facts
        return (
            any(map(self._rests_on_link, changed(before.links, now.links)))
            or any(map(self._has_light, changed(before.links, now.links)))
            or self._moved_lender(before)
            or any(map(self._rests_on_nexthop, changed(before.nexthops, now.nexthops)))
            or any(map(self._may_be_source, changed(before.addresses, now.addresses)))
        )

    def _rests_on_link(self, ifindex: int) -> bool:
        return self._grounds is None or ifindex in self._grounds.links

    def _has_light(self, ifindex: int) -> bool:
        """Whether a link that was not live is so now."""
        return ifindex in self._dark and self._state.live(ifindex)

    def _moved_lender(self, before: Facts) -> bool:
        """Whether addresses of a link can be borrowed by others now, or no longer: those of the
        same VRF do. IPv4 tells nothing of the addresses."""
        masters = (
            {before.links[ifindex][1], link[1]}
            for ifindex, link in self._facts.links.items()
            if ifindex in before.links and before.links[ifindex][1] != link[1]
        )
        return bool(self._open) and any(any(map(self._state.is_vrf, each)) for each in masters)

    def _rests_on_nexthop(self, number: int) -> bool:
        grounds = self._grounds
        return grounds is None or grounds.any_nexthop or number in grounds.nexthops

    def _may_be_source(self, key: AddrKey) -> bool:
        if not self._has(key.family):
            return False
        return (
            key.family in self._open
            or self._rests_on_link(key.ifindex)
            or self._is_source(key)
            or self._holds_target(Network(key.family, key.prefixlen, key.local))
        )

    def _is_source(self, key: AddrKey) -> bool:
        sources = self._grounds.sources if self._grounds is not None else ()
        return any((s.family, s.address) == (key.family, key.local) for s in sources)

    def _is_open(self, family: int) -> bool:
        """Whether an address of any link may be the next source, as long as these are the grounds:
        what makes a source better or worse counts by itself."""
        grounds = self._grounds
        if grounds is None or family in grounds.any_address:
            return True
        return any(
            source.family == family and source.ifindex and not self._is_settled(source)
            for source in grounds.sources
        )

    def _is_settled(self, source: Ground) -> bool:
        """The kernel prefers the addresses of the way's own link; IPv6 does so among those that
        are not deprecated, or not optimistic."""
        return any(
            addr.ifindex == source.ifindex
            and addr.local == source.address
            and not addr.flags & _POOR[source.family]
            for addr in self._state.addresses[source.family].values()
        )

    # What is told.

    def _tells(self, record: Record) -> bool:
        """Whether the record itself says so, whatever is stored."""
        payload, header = record.payload, record.header
        entry = bool(header.flags & F_DUMP) and header.op is Op.NEW
        if isinstance(payload, Loss):
            return True
        if isinstance(payload, Link):
            # On a link that is not live, each may be about what the kernel ends late.
            rests = self._rests_on_link(payload.ifindex)
            return not entry and rests and not self._state.live(payload.ifindex)
        if isinstance(payload, Nexthop):
            return not entry and self._rests_on_nexthop(payload.id)
        if isinstance(payload, Rule):
            return self._has(payload.family)
        if isinstance(payload, Route):
            return not entry and not payload.rtm_flags & RTM_F_CLONED and self._covers(payload)
        return isinstance(payload, Flush) and self._covers(payload)

    def _has(self, family: int) -> bool:
        return any(target.family == family for target in self.targets)

    def _covers(self, route: Route | Flush) -> bool:
        length = _HOST_LENGTH[route.family] // 8
        to = Network(route.family, route.dst_len, route.dst or bytes(length))
        return route.table != RT_TABLE_LOCAL and self._holds_target(to)

    def _holds_target(self, network: Network) -> bool:
        return any(contains(network, target.family, target.address) for target in self.targets)


def changed(before: Mapping[K, V], now: Mapping[K, V]) -> set[K]:
    """Keys whose value came, went or is another one."""
    return {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
