"""The engines that tests run on: always both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine

if TYPE_CHECKING:
    from tracker.engine.base import Engine

ENGINES = {"reference": ReferenceEngine, "native": NativeEngine}
NAMES = tuple(ENGINES)


def make(name: str) -> Engine:
    """A new engine, by name."""
    engine: Engine = ENGINES[name]()
    return engine


def both() -> tuple[Engine, ...]:
    """One of each."""
    return tuple(map(make, NAMES))
