"""What the engine has been given of each selection, under the number that it knows it by."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracker.engine.base import Engine
    from tracker.model import PolicyTable


class Tables:
    """The tables of all selections."""

    def __init__(self, engine: Engine, policies: Mapping[str, PolicyTable]) -> None:
        """The engine has none of them before enter()."""
        self.policies: Mapping[str, PolicyTable] = dict(policies)
        self._engine = engine
        self._indexes: dict[str, int] = {}

    def index(self, name: str) -> int:
        """The engine's number of a selection."""
        return self._indexes[name]

    def enter(self) -> None:
        """Give the engine all tables that there are."""
        for name, policy in self.policies.items():
            self._enter(name, policy)

    def exchange(self, wanted: Mapping[str, PolicyTable]) -> None:
        """Others in their place. Where the engine refuses one it raises, and has those of before;
        numbers may be others then, and incumbents are to be named again.
        """
        before = self.policies
        try:
            for name in set(before) - set(wanted):
                self._engine.drop_policy(self._indexes.pop(name))
            for name, policy in wanted.items():
                if policy != before.get(name):
                    self._enter(name, policy)
        except Exception:
            for name in set(self._indexes) - set(before):
                with contextlib.suppress(ValueError):  # it is the one that was refused
                    self._engine.drop_policy(self._indexes[name])
                del self._indexes[name]
            self.enter()
            raise
        self.policies = dict(wanted)

    def follow(self, changed: Mapping[str, PolicyTable]) -> None:
        """Take what some of them depend on as it is now."""
        for name, policy in changed.items():
            if policy.table == self.policies[name].table:
                self._engine.set_mode_networks(self._indexes[name], policy.mode_networks)
            else:
                self._engine.set_policy(self._indexes[name], policy)
        self.policies = {**self.policies, **changed}

    def _enter(self, name: str, policy: PolicyTable) -> None:
        taken = set(self._indexes.values())
        free = next(index for index in range(len(taken) + 1) if index not in taken)
        self._engine.set_policy(self._indexes.setdefault(name, free), policy)
