"""Both kernels; each test leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.standin.both")

# Behind the registration: an import that comes first escapes the rewriting.
from tests.standin.both import Both  # noqa: E402
from tests.standin.real import RealKernel  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("netns")


@pytest.fixture
def real() -> Iterator[RealKernel]:
    kernel = RealKernel()
    yield kernel
    kernel.close()


@pytest.fixture
def both(real: RealKernel) -> Both:
    return Both(real)


@pytest.fixture
def promoting(real: RealKernel) -> Both:
    return Both(real, promote_secondaries=True)
