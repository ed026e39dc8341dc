"""Tests of what only other kernels can do: they run in a guest (tools/guest/test) alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace
from tests.tiers import BPF, NETLINK, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netns.following import Following

# Helpers that assert: a failure shows the values.
pytest.register_assert_rewrite("tests.netns.following", "tests.kernels.tracing")

if "ADDRTRACKER_GUEST" not in os.environ:
    collect_ignore_glob = ["*"]


@pytest.fixture
def new_namespace() -> Iterator[Callable[[], Namespace]]:
    """Makes namespaces; they go at the end of the test."""
    made: list[Namespace] = []

    def make() -> Namespace:
        made.append(Namespace())
        return made[-1]

    yield make
    for namespace in made:
        namespace.delete()


@pytest.fixture
def host(new_namespace: Callable[[], Namespace]) -> Namespace:
    """The namespace that plays the node."""
    return new_namespace()


@pytest.fixture
def router(new_namespace: Callable[[], Namespace]) -> Namespace:
    """The namespace that plays the network around the node."""
    return new_namespace()


@pytest.fixture(params=[NETLINK, BPF], ids=str)
def tier(request: pytest.FixtureRequest) -> Tier:
    """Each tier that the C engine is fed by."""
    tier: Tier = request.param
    return tier


@pytest.fixture
def follow(host: Namespace, tmp_path: Path, tier: Tier) -> Iterator[Callable[[], Following]]:
    """Follows `host` in this thread, which stays inside until the end of the test."""
    from tests.netns.following import Following

    made: list[Following] = []

    def start() -> Following:
        made.append(Following(host, tmp_path, tier))
        return made[-1]

    with host.entered():
        yield start
        for following in made:
            following.audit()
            following.close()
