"""The filter on this kernel: it loads, attaches within its limits, and names the process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kernels.tracing import Pieced
from tests.netns.namespace import Namespace, connect
from tests.tiers import BCC
from tracker.capture.loader import PLAIN, WITH_TASKS
from tracker.capture.payload import Addr, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.netns.following import Following

FIRST = "192.0.2.11"
SECOND = "192.0.2.12"
OPTMEM = 20480
"""Bytes of net.core.optmem_max up to Linux 6.6: what a socket may spend on a filter."""


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    connect(host, "eth0", router, "eth0")
    host.ip(f"addr add {FIRST}/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    return host


def change(node: Namespace) -> int:
    """Another address; the pid of the `ip` that added it."""
    node.ip(f"addr del {FIRST}/24 dev eth0")
    command = ["ip", "-n", node.name, "addr", "add", f"{SECOND}/24", "dev", "eth0"]
    with subprocess.Popen(command) as process:
        assert process.wait() == 0
    node.ip("route add default via 192.0.2.1")
    return process.pid


def limit_filters() -> None:
    """As kernels before 6.7 have it, where this one is newer; of the thread's own namespace."""
    path = Path("/proc/sys/net/core/optmem_max")
    if path.exists():
        path.write_text(str(OPTMEM))
    assert not path.exists() or int(path.read_text()) == OPTMEM


@pytest.mark.parametrize("program", [WITH_TASKS, PLAIN])
def test_a_variant_attaches_within_the_limit_of_a_socket(
    node: Namespace, program: str, tmp_path: Path
) -> None:
    limit_filters()
    with node.entered():
        limit_filters()
        following = Pieced(node, tmp_path, program)
        following.best(FIRST)
        following.check()
        pid = change(node)
        following.best(SECOND)
        tasks = [task for _, task in following.latest(Addr)]
        assert tasks[-1] == (Task(pid, "ip") if program == WITH_TASKS else None)
        following.audit()
        following.close()


@pytest.mark.parametrize("tier", [BCC], ids=str)
def test_the_text_compiles_here(node: Namespace, follow: Callable[[], Following]) -> None:
    following = follow()
    following.expect(FIRST)
    change(node)
    following.expect(SECOND)


def test_doctor_tells_the_truth() -> None:
    command = [str(Path(sys.executable).with_name("addrtracker")), "doctor", "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    source = document["source"]
    assert (source["name"], source["loader"], source["attribution"]) == ("bpf", "libbpf", True)
    assert source["passed_over"] == []
    assert source["trace"] == {
        "way": "fentry",
        "probes": ["fib_notify_alias_delete", "netlink_overrun"],
        "passed_over": [],
    }
    features = {feature["name"]: feature["ok"] for feature in document["features"]}
    assert all(
        features[name] for name in ("socket-filter", "btf", "task-identity", "fentry", "kprobes")
    )
