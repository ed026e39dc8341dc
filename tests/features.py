"""Tests that need a feature of the kernel say so here.

Such a test is skipped only where it is proven that the kernel has no such feature: it is older,
or was configured without it. Anywhere else a feature that does not work fails the test: a skip
would hide what broke.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from tracker import features

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _missing(name: str) -> tuple[str, str]:
    """Why a feature is not there, and what proves that it cannot be."""
    feature = features.feature(name)
    why = feature.probe()
    return why, features.absence(feature) if why else ""


def require(name: str) -> None:
    """Go on where the feature is there; else skip or fail, by the rule above."""
    why, proof = _missing(name)
    if proof:
        # The one place that skips: what is missing is proven to be no fault of ours.
        pytest.skip(f"{name}: {proof}")
    if why:
        pytest.fail(f"{name}: {why}; nothing proves that this kernel has none", pytrace=False)


def needs(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of tests: `@needs("fentry")`."""
    for name in names:
        features.feature(name)

    def decorate(test: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(test)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in names:
                require(name)
            return test(*args, **kwargs)

        return checked

    return decorate
