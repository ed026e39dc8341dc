"""Probes on a kernel that has them, and what is said on one that has not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tracker.capture import trace
from tracker.capture.bpf import create_maps
from tracker.errors import LoadError, TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.capture.bpf import Maps

pytestmark = pytest.mark.netns
RING = 64 << 10


@pytest.fixture
def maps() -> Iterator[Maps]:
    made = create_maps(RING)
    yield made
    made.close()


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("way", [*trace.WAYS, "auto"])
def test_a_way_works_or_says_in_a_line_why_not(maps: Maps, way: str) -> None:
    before = descriptors()
    found: trace.Trace | None = None
    said = ""
    try:
        found = trace.attach(maps._asdict(), way)
    except TrackerError as error:
        said = str(error)
    if found is not None:
        assert found.way in {way, *(trace.WAYS if way == "auto" else ())}
        assert found.probes
        found.close()
        found.close()
    else:
        assert "\n" not in said
        assert said.startswith("fentry: " if way == "auto" else f"{way}: ")
    assert descriptors() == before


def test_a_package_without_objects_says_so(
    maps: Maps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "FILES", tmp_path)
    with pytest.raises(LoadError, match=r"no prebuilt object: .*/trace\.bpf\.o is missing"):
        trace.attach(maps._asdict())


def test_a_map_that_is_missing_is_named(maps: Maps) -> None:
    given = maps._asdict()
    del given["traced"]
    with pytest.raises(LoadError, match="traced"):
        trace.attach(given, "fentry")


def test_without_capabilities_it_is_said_which_are_needed() -> None:
    text = f"""
from tracker.capture import bpf, privileges, trace
maps = bpf.create_maps({RING})
privileges.drop()
try:
    trace.attach(maps._asdict(), "fentry")
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("NotPermittedError fentry: ")
    assert "CAP_PERFMON" in done.stdout
