"""The engines that tests run on: always both."""

from __future__ import annotations

from collections.abc import Callable

from tracker.engine.base import Engine
from tracker.engine.native import NativeEngine
from tracker.engine.reference import ReferenceEngine

ENGINES: dict[str, Callable[[], Engine]] = {"reference": ReferenceEngine, "native": NativeEngine}
NAMES = tuple(ENGINES)


def make(name: str) -> Engine:
    """A new engine, by name."""
    return ENGINES[name]()


def both() -> tuple[Engine, ...]:
    """One of each."""
    return tuple(map(make, NAMES))
