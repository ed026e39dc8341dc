"""Runs commands as a user does, and says what they took."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tests.netns.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.netns.namespace import Namespace

ROOT = Path(__file__).resolve().parents[1]
ADDRTRACKER = os.path.join(sysconfig.get_path("scripts"), "addrtracker")
PASS = (sys.executable, "-c", "pass")
SHOW = (ADDRTRACKER, "show", "--output", "json")
MB = 1_000_000

# As on a user's host: above all, modules are compiled once and not at each start.
ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

_QUIET = ((os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),)

# The peak that a process had by its end is to be had from itself alone: what wait4(2) tells
# counts in its parent, from before exec.
_SHOW_AND_TELL = """
import sys
from tracker.cli.main import run
status = run(["show", "--output", "json"])
print(open("/proc/self/status").read(), file=sys.stderr)
sys.exit(status)
"""

_AT_ONCE = """
hostname = "n1"
state = "{directory}/state"
[stability]
settle = "0s"
settle_max = "0s"
hold = "0s"
[publish.files]
directory = "{files}"
"""


class InNamespace(Protocol):
    """Where a command is run."""

    namespace: Namespace


class Took(NamedTuple):
    """What a command took from its start to its end, in seconds."""

    seconds: float
    processor: float
    """User and system time."""


def timed(
    command: tuple[str, ...], host: InNamespace, environ: Mapping[str, str] = ENVIRON
) -> Took:
    """Run a command inside the host."""
    with host.namespace.entered():
        start = time.perf_counter()
        process = os.posix_spawn(command[0], command, environ, file_actions=_QUIET)
        _, status, usage = os.wait4(process, 0)
        taken = time.perf_counter() - start
    assert status == 0, (command, status)
    return Took(taken, usage.ru_utime + usage.ru_stime)


def peak_of_show(host: InNamespace) -> float:
    """The largest RSS that `show` has, in MB."""
    command = [sys.executable, "-c", _SHOW_AND_TELL]
    with host.namespace.entered():
        done = subprocess.run(command, env=ENVIRON, capture_output=True, text=True, check=True)
    return status_number(done.stderr, "VmHWM") * 1024 / MB


class Run:
    """`addrtracker run` inside a host, without any wait before it decides."""

    def __init__(self, host: InNamespace, directory: Path, *options: str) -> None:
        """Start it; the first decision is published when this returns."""
        self._host = host
        # As /run is on a host: in memory, so that no disk is measured.
        self._memory = tempfile.TemporaryDirectory(dir="/dev/shm")
        config = directory / "addrtracker.toml"
        config.write_text(_AT_ONCE.format(directory=directory, files=self._memory.name))
        self._watch = Watch(self._memory.name)
        node = Path(self._memory.name, "node.json")
        command = [ADDRTRACKER, "run", "--config", str(config), *options]
        with host.namespace.entered():
            start = time.perf_counter()
            self._process = subprocess.Popen(command, env=ENVIRON, stderr=subprocess.DEVNULL)
            self._watch.wait(node.exists, 20, "node.json")
            self.seconds = time.perf_counter() - start
        """From the start of the process until whoever waits for node.json has the answer."""
        primary = json.loads(node.read_text())["primary"]
        assert None not in primary.values(), primary

    def scrape(self) -> None:
        """Ask for the metrics, as Prometheus does."""
        with self._host.namespace.entered():
            answer = urllib.request.urlopen("http://127.0.0.1:9797/metrics", timeout=10)
        with answer:
            assert b"addrtracker_candidates" in answer.read()

    def rss(self) -> dict[str, float]:
        """Resident memory in MB: VmRSS now, VmHWM its peak."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return {name: status_number(text, name) * 1024 / MB for name in ("VmRSS", "VmHWM")}

    def wake_ups(self) -> int:
        """How often its threads gave up the processor since they started."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(
            status_number((task / "status").read_text(), "voluntary_ctxt_switches")
            for task in tasks
        )

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._watch.close()
        self._memory.cleanup()


def status_number(status: str, name: str) -> int:
    """A number of /proc/PID/status; sizes are in KiB."""
    found = re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)
    assert found is not None, name
    return int(found[1])
