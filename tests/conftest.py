"""Settings that all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# BCC compiles for the tests with the headers that tools/unpack-headers makes, where the running
# kernel's own are missing.
if not os.path.exists(f"/lib/modules/{os.uname().release}/build"):
    os.environ.setdefault("BCC_KERNEL_SOURCE", os.path.abspath(f"{__file__}/../../.build/headers"))

# Helpers that assert: a failure shows the values.
pytest.register_assert_rewrite("tests.netns.daemon", "tests.netns.following")

# `default` while writing code, `ci` in the pipeline, `long` for a campaign by hand.
settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=200, derandomize=True, print_blob=True)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=20_000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
