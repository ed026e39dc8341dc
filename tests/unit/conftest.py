"""Fixtures of the unit tests."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.build import Host
from tracker.engine.base import Engine
from tracker.engine.reference import ReferenceEngine

ENGINES = ["reference", "native"] if find_spec("tracker._engine") else ["reference"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine, empty."""
    if request.param == "reference":
        return ReferenceEngine()
    from tracker.engine.native import NativeEngine

    return NativeEngine()


@pytest.fixture
def host(engine: Engine) -> Host:
    """A host that each engine follows with the default policy."""
    return Host(engine)
