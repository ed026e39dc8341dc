"""Churn in network namespaces, and who reads it: C programs of benchmarks/ and the tracker."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processes import ENVIRON
from tests.netns.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

ROOT = Path(__file__).resolve().parents[1]
FLIPPING = "192.0.2.10/24"
"""Comes and goes; while it is there it is the best: the one that stays looks like a VIP."""
ADDRESS = FLIPPING.partition("/")[0]
STAYS = "192.0.2.1/32"
PLENTY = 256 << 20
"""Bytes of a socket buffer that a whole storm fits in."""


def build(name: str) -> Path:
    """Compile a C program of this directory, with the engine where it needs it."""
    program = ROOT / ".build" / name
    program.parent.mkdir(exist_ok=True)
    sources = [ROOT / f"benchmarks/{name}.c"]
    sources += [] if name == "load" else sorted((ROOT / "native").glob("*.c"))
    include = [f"-I{ROOT / 'native'}", f"-I{ROOT / 'bpf'}"]
    command = ["gcc", "-std=gnu11", "-O2", *include, "-o", str(program), *map(str, sources)]
    subprocess.run([*command, "-lpthread"], check=True)
    return program


class Ground:
    """A network namespace with one uplink, and another one for links to be moved into."""

    def __init__(self) -> None:
        self.namespace = Namespace()
        self.other = Namespace()
        # Nothing comes by itself, but over links that come later.
        self.namespace.sysctl("ipv6/conf/default/disable_ipv6", 1)
        self.namespace.ip("link add eth0 type veth peer name peer0")
        self.namespace.sysctl("ipv6/conf/default/disable_ipv6", 0)
        self.namespace.batch(
            [
                "link set peer0 up",
                "link set eth0 up",
                f"addr add {STAYS} dev eth0",
                "route add default dev eth0",
            ]
        )

    def load(self, *arguments: object) -> dict[str, Any]:
        """Run benchmarks/load.c to its end; what it printed."""
        printed = self.namespace.run(str(ROOT / ".build/load"), *map(str, arguments))
        done: dict[str, Any] = json.loads(printed)
        return done

    def routes(self, count: int, every_ms: int = 0) -> dict[str, Any]:
        """So many host routes come and go, and meanwhile an address."""
        return self.load("routes", "eth0", count, FLIPPING, every_ms)

    def flips(self, count: int, every_ms: int) -> list[int]:
        """When an address came or went, on an otherwise idle host."""
        flips: list[int] = self.load("flips", "eth0", count, FLIPPING, every_ms)["flips"]
        return flips

    def links(self, count: int) -> float:
        """So many veth pairs, as containers have them; seconds."""
        seconds: float = self.load("links", "veth", count, self.other.path)["seconds"]
        return seconds

    def delete(self) -> None:
        """Remove the namespaces."""
        self.namespace.delete()
        self.other.delete()


class Reader:
    """A process that reads what the kernel announces in a namespace, and reports at its end."""

    def __init__(self, ground: Ground, command: Sequence[str], fds: Sequence[int] = ()) -> None:
        """Start it; it is ready when this returns."""
        with ground.namespace.entered():
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=ENVIRON,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=fds,
            )
        assert self._process.stdout is not None
        self.ready = self._process.stdout.readline()
        assert self.ready, f"{command} ended before it was ready"

    def report(self) -> dict[str, Any]:
        """End it, once it has read everything; what it printed."""
        self._process.send_signal(signal.SIGTERM)
        out, _ = self._process.communicate(timeout=60)
        report: dict[str, Any] = json.loads(out)
        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def recv(ground: Ground) -> Reader:
    """The bare recv loop."""
    return Reader(ground, [str(ROOT / ".build/floor"), "recv", ADDRESS, str(PLENTY)])


def tracker(ground: Ground, tier: str, *more: object) -> Reader:
    """The session of tracker/, on a tier of tests/tiers.py."""
    command = [sys.executable, "-m", "benchmarks.follower", tier, *map(str, more)]
    return Reader(ground, command)


@contextlib.contextmanager
def on_bpf(ground: Ground, what: str, ring: int) -> Iterator[tuple[Reader, int]]:
    """A mode of benchmarks/floor.c that reads the ring, and the program's descriptor."""
    from tracker.capture.bpf import create_maps
    from tracker.capture.loader import load

    maps = create_maps(ring)
    loaded = load(maps._asdict(), "libbpf")
    order = ("ring", "alarm", "counts", "shared", "filters", "filter0", "filter1", "links")
    fds = [loaded.program, *(getattr(maps, name) for name in (*order, "watched", "traced"))]
    words = ",".join(map(str, [*fds, ring]))
    command = [str(ROOT / ".build/floor"), what, ADDRESS, words]
    try:
        with Reader(ground, command, fds) as reader:
            yield reader, loaded.program
    finally:
        maps.close()
        os.close(loaded.program)


def delays(flips: Sequence[int], sights: Sequence[int]) -> list[float]:
    """Seconds from each change to its sight.

    Where the machine stood still so long that the next change came before, two are seen as none;
    AssertionError where half of them are.
    """
    found = []
    for flip, following in itertools.pairwise((*flips, sys.maxsize)):
        at = bisect.bisect_left(sights, flip)
        if at < len(sights) and sights[at] < following:
            found.append((sights[at] - flip) / 1e9)
    assert len(found) > len(flips) / 2, f"{len(flips)} flips, {len(found)} seen in time"
    return found


def missed(flips: Sequence[int], report: Mapping[str, Any]) -> int:
    """How many flips a reader did not see."""
    return len(flips) - len(report["sights"])


def p99(samples: Sequence[float]) -> float:
    """Of at least 100."""
    return statistics.quantiles(samples, n=100)[98]
