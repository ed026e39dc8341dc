"""Counts the paths in Python: what an interpreter executes, not what executes the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.budget.counts import HERE, Amount, Count, amount, rounded

ROOT = HERE.parents[1]


def toolchain() -> str:
    """Such as cpython-3.11: instructions differ from one minor version to the next."""
    return f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"


def count() -> list[Count]:
    """In an interpreter of its own, where sets have the same order each time."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.budget.python_paths"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return [_count(path, found) for path, found in json.loads(done.stdout).items()]


def _count(path: str, found: dict[str, Any]) -> Count:
    units = found.pop("units")
    amounts = {}
    for measure, value in found.items():
        if isinstance(value, dict):
            amounts[measure] = amount(value, units)
        else:
            amounts[measure] = Amount(rounded(value), {})
    return Count(path, amounts)
