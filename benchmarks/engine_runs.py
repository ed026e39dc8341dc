"""Runs benchmarks/engine_bench.c several times, and finds in what it printed."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
from typing import Any

from benchmarks.processes import ROOT
from benchmarks.storms import build

RUNS = 7
SAMPLES = 4000
"""Of each run; a hundredth of that for a change of a whole link."""
DEFAULT = "default-route"

Printed = dict[str, Any]


class EngineRuns:
    """What the runs printed, run by run."""

    @functools.cached_property
    def _runs(self) -> list[list[Printed]]:
        build("engine_bench")
        command = [str(ROOT / ".build/engine_bench"), str(SAMPLES)]
        runs = []
        for _ in range(RUNS):
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs.append(list(map(json.loads, done.stdout.splitlines())))
        return runs

    def times(
        self, name: str, size: int, over: str = "addresses", mode: str = DEFAULT
    ) -> list[Printed]:
        """A change at a size, in each run."""
        wanted = {"name": name, "n": size, "over": over, "mode": mode}
        found = [p for run in self._runs for p in run if wanted.items() <= p.items()]
        assert len(found) == RUNS, wanted
        return found

    def seconds(self, name: str, size: int, over: str = "addresses", mode: str = DEFAULT) -> float:
        """The median of the runs' medians."""
        medians: list[float] = [p["median_ns"] for p in self.times(name, size, over, mode)]
        return statistics.median(medians) / 1e9

    def curve(self, name: str, over: str = "addresses") -> list[tuple[int, float]]:
        """Seconds by size."""
        sizes = [p["n"] for p in self._runs[0] if (p["name"], p.get("over")) == (name, over)]
        return [(size, self.seconds(name, size, over)) for size in dict.fromkeys(sizes)]

    def memory(self, name: str) -> list[tuple[int, int]]:
        """Bytes that so many entries take; the same in each run."""
        return [(p["n"], p["bytes"]) for p in self._runs[0] if "bytes" in p and p["name"] == name]
