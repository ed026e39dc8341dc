"""Whether the kernel may have a new answer to the question which way a target is reached, or whose
name a VRF has (docs/engine.md section 6)."""

from __future__ import annotations

from typing import NamedTuple

from tracker.capture.record import F_DUMP, Flush, Loss, Nexthop, Op, Record, Route, Rule
from tracker.engine.reference_filters import contains
from tracker.engine.reference_state import IFF_UP, RTM_F_CLONED, AddrKey, State, is_live
from tracker.model import AF_INET, AF_INET6, TARGETS_MAX, Network

RT_TABLE_LOCAL = 255
_HOST_LENGTH = {AF_INET: 32, AF_INET6: 128}


class Facts(NamedTuple):
    """What a record may change of that which lookups depend on."""

    links: frozenset[tuple[int, bool]]
    """Those that are up, and whether they are live."""
    addresses: frozenset[AddrKey]
    """Of the families of targets."""
    vrfs: frozenset[tuple[int, str, int]]
    """Ifindex, name and table."""


class Lookups:
    """Counts what may have changed the kernel's answers."""

    def __init__(self, state: State) -> None:
        self.generation = 0
        self.targets: tuple[Network, ...] = ()
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
            self._facts = self._look()

    def applied(self, record: Record) -> None:
        """After each record."""
        facts = self._look()
        moved = facts != self._facts if self.targets else facts.vrfs != self._facts.vrfs
        self._facts = facts
        if moved or (self.targets and self._tells(record)):
            self.generation += 1

    def lost(self) -> None:
        """Messages were lost."""
        if self.targets:
            self.generation += 1

    def expired(self) -> None:
        """Routes ended by themselves, all of IPv6."""
        if self._has(AF_INET6):
            self.generation += 1

    def _look(self) -> Facts:
        links = self._state.links.values()
        return Facts(
            frozenset((link.ifindex, is_live(link)) for link in links if link.flags & IFF_UP),
            frozenset(
                key
                for family, keys in self._state.addresses.items()
                if self._has(family)
                for key in keys
            ),
            frozenset(
                (link.ifindex, link.name, link.vrf_table) for link in links if link.kind == "vrf"
            ),
        )

    def _tells(self, record: Record) -> bool:
        """Whether the record itself says so, whatever is stored."""
        payload, header = record.payload, record.header
        entry = bool(header.flags & F_DUMP) and header.op is Op.NEW
        if isinstance(payload, Loss):
            return True
        if isinstance(payload, Nexthop):
            return not entry
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
        return route.table != RT_TABLE_LOCAL and any(
            contains(to, target.family, target.address) for target in self.targets
        )
