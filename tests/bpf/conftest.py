"""The filter in its variants, without any socket: by test runs of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bpf.program import READS_LINKS, VARIANTS, Filter, filtering, policy
from tests.features import require
from tests.tiers import BCC
from tracker.capture.loader import WITH_TASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDS = {WITH_TASKS: "task-identity", BCC.loader: "bcc"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What asks for `reader` runs on the variants that read links, the rest on all."""
    if "loaded" in metafunc.fixturenames:
        variants = READS_LINKS if "reader" in metafunc.fixturenames else VARIANTS
        metafunc.parametrize("loaded", variants, indirect=True, scope="session")


@pytest.fixture(scope="session")
def loaded(request: pytest.FixtureRequest) -> Iterator[Filter]:
    """Each variant is loaded once: BCC takes a second."""
    require("socket-filter")
    if request.param in NEEDS:
        require(NEEDS[request.param])
    with filtering(request.param) as program:
        yield program


@pytest.fixture
def program(loaded: Filter) -> Filter:
    """As if new but for its counts."""
    loaded.obey(policy())
    loaded.forget()
    return loaded


@pytest.fixture
def reader(program: Filter) -> Filter:
    """One that reads links."""
    return program
