"""What every engine can do; the rules are in docs/engine.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tracker.model import Dirty, Grounds, Network, PolicyTable, Row, Scope, Sight, View, Vrf

if TYPE_CHECKING:
    from tracker.capture.record import Nexthop

NEVER = (1 << 64) - 1
"""A deadline that does not come."""


class Glance(Sight, Protocol):
    """A view that changed, as far as a decider needs it at once.

    Good until the next change of the engine; of a row that is wanted longer, keep whole().
    """

    @property
    def selection(self) -> int:
        """Whose view it is."""

    @property
    def family(self) -> str:
        """Of which family."""


class Engine(Protocol):
    """State and ranking of one network namespace."""

    name: str
    """"native" or "reference"."""

    def set_policy(self, selection: int, policy: PolicyTable) -> None:
        """Set or replace a selection and rank it anew."""

    def set_mode_networks(self, selection: int, networks: tuple[Network, ...]) -> None:
        """Replace PolicyTable.mode_networks of a selection; what does not depend on them, and
        the cause, stay. The next set_policy() sets them anew."""

    def drop_policy(self, selection: int) -> None:
        """Forget a selection."""

    def set_incumbent(self, selection: int, family: str, address: str | None) -> None:
        """Name the present answer, which stays among equals."""

    def set_v6_silent_down(self, on: bool) -> None:
        """Follow net.ipv6.route.skip_notify_on_dev_down."""

    def apply(self, records: bytes) -> int:
        """Apply records one after the other; how many. Malformed ones end it and are counted."""

    def tick(self, now_ns: int) -> None:
        """Run what is due by `now_ns` (CLOCK_BOOTTIME)."""

    def deadline(self) -> int:
        """CLOCK_BOOTTIME in ns of the next tick that is due, NEVER without one."""

    def changed(self) -> set[tuple[int, str]]:
        """(selection, family) of each view that changed since the last call."""

    def glance(self) -> Glance | None:
        """The first view that changed, which stays so; behind a wait only. None = there is none,
        or a scope is dirty, or the engine has no faster way than view()."""

    def view(self, selection: int, family: str) -> View:
        """What a decision needs."""

    def rows(self, selection: int, family: str) -> list[Row]:
        """Every address, ranked ones first in order, then rejected ones by address."""

    def dirty(self) -> list[Dirty]:
        """Scopes to be dumped, lost ones first."""

    def lose(self, scopes: tuple[Scope, ...]) -> None:
        """Mark scopes as lost."""

    def tables(self) -> list[int]:
        """Routing tables that some selection names."""

    def vrf(self, name: str) -> Vrf:
        """The VRF of that name, zeros = there is none."""

    def vrfs(self) -> int:
        """Grows when a VRF's name leads to another link or table."""

    def nexthop(self, number: int) -> Nexthop | None:
        """The nexthop object of this id, None = it is not known."""

    @property
    def targets(self) -> tuple[Network, ...]:
        """Those that were set last."""

    def set_targets(self, targets: tuple[Network, ...]) -> None:
        """Name the addresses whose way the kernel is asked for, TARGETS_MAX of host length at
        most. A source tells the kernel's filter at its next drain() or wait(), so ask no sooner.
        """

    def set_grounds(self, grounds: Grounds | None) -> None:
        """Say what the kernel's answers rest on; None = nobody knows, as for new targets, or there
        are more than GROUNDS_MAX of a kind."""

    def lookups(self) -> int:
        """Grows when the kernel may answer otherwise for a target, also when other targets were
        set."""

    def link_name(self, ifindex: int) -> str:
        """Name of a link, "ifN" for one that is not known (any more)."""

    def drifts(self) -> bytes:
        """Records of the keys on which audits differed since the last call, the newest 16 at
        most; an entry that was missing from the dump has op DEL."""

    def snapshot(self) -> bytes:
        """The state as dump entries: links, addresses, nexthops, routes, each by key."""

    def counters(self) -> dict[str, int]:
        """Flat counters: applied.KIND.OP, ignored, malformed, inferred.RN, drift.SCOPE,
        voided.SCOPE, flushed, links, addresses, routes, nexthops."""
