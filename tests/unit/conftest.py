"""Fixtures of the unit tests."""

from __future__ import annotations

import pytest

from tests import engines
from tests.build import Host
from tracker.engine.base import Engine


@pytest.fixture(params=engines.NAMES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine, empty."""
    return engines.make(request.param)


@pytest.fixture
def host(engine: Engine) -> Host:
    """A host that each engine follows with the default policy."""
    return Host(engine)
