"""The bpf tier runs with the three capabilities that it needs, gives up all of them, and says so
where it has too few.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND, Daemon
from tests.netns.namespace import Namespace, connect
from tests.tiers import BPF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534
ALL_THREE = ("bpf", "perfmon", "net_admin")
WITHOUT_PERFMON = ("bpf", "net_admin")
CAP_BPF = 39

CONFIG = """
[stability]
settle = "0s"
settle_max = "0s"
hold = "0s"
[capture]
audit = "1s"
ring = "4KiB"
"""


def with_capabilities(*names: str) -> list[str]:
    """The beginning of a command line: as nobody, with exactly these."""
    words = ",".join(["-all", *(f"+{name}" for name in names)])
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [
        "setpriv", *user, f"--inh-caps={words}", f"--ambient-caps={words}",
        f"--bounding-set={words}",
    ]  # fmt: skip


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    connect(host, "eth0", router, "eth0")
    host.sysctl("ipv4/conf/all/promote_secondaries", 1)
    host.ip("addr add 192.0.2.10/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    return host


@pytest.fixture
def directory() -> Iterator[Path]:
    """One that nobody may write to; those of pytest are for root alone."""
    with tempfile.TemporaryDirectory() as name:
        files = Path(name) / "run"
        files.mkdir()
        for path in (name, files):
            os.chown(path, NOBODY, NOBODY)
        yield Path(name)


@pytest.fixture
def start(node: Namespace, directory: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts the daemon as nobody with exactly these capabilities; it ends with the test."""
    started: list[Daemon] = []

    def start(*names: str, source: tuple[str, ...] = BPF.options) -> Daemon:
        by = with_capabilities(*names)
        started.append(Daemon(node, directory, CONFIG, *source, by=by))
        return started[-1]

    yield start
    for daemon in started:
        daemon.close()


def following(daemon: Daemon) -> dict[str, Any]:
    """The line that it logs when it has decided."""
    return daemon.wait_log(lambda line: line["event"] == "following", "the start")


def capabilities(daemon: Daemon) -> set[int]:
    """What any of its threads may do, or may do again."""
    left = 0
    for status in Path(f"/proc/{daemon.process.pid}/task").glob("*/status"):
        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            found = re.search(rf"^{kind}:\s+([0-9a-f]+)$", status.read_text(), re.MULTILINE)
            assert found is not None
            left |= int(found[1], 16)
    return {number for number in range(64) if left >> number & 1}


def ip(node: Namespace, command: str) -> int:
    """Run `ip`; its pid."""
    process = subprocess.Popen(["ip", "-n", node.name, *command.split()])
    assert process.wait() == 0
    return process.pid


def move(node: Namespace, last: int) -> int:
    """Give the node the next address; the pid of what took the old one."""
    node.ip(f"addr add 192.0.2.{last + 1}/24 dev eth0")
    return ip(node, f"addr del 192.0.2.{last}/24 dev eth0")


def kernel() -> tuple[int, int]:
    major, minor = map(int, re.findall(r"\d+", os.uname().release)[:2])
    return major, minor


def test_three_capabilities_are_enough(node: Namespace, start: Callable[..., Daemon]) -> None:
    daemon = start(*ALL_THREE)
    line = following(daemon)
    assert (line["source"], line["loader"], line["attribution"]) == ("bpf", "libbpf", True)
    pid = move(node, 10)
    cause = daemon.wait_primary("ipv4", "192.0.2.11")["cause"]
    assert (cause["process"], cause["pid"]) == ("ip", pid)


def test_without_perfmon_nobody_is_named(node: Namespace, start: Callable[..., Daemon]) -> None:
    daemon = start(*WITHOUT_PERFMON)
    line = following(daemon)
    assert (line["source"], line["loader"], line["attribution"]) == ("bpf", "libbpf", False)
    move(node, 10)
    cause = daemon.wait_primary("ipv4", "192.0.2.11")["cause"]
    # One goes, the other is promoted: they may be read together.
    assert cause["change"] in {"RTM_DELADDR 192.0.2.10/24 eth0", "RTM_NEWADDR 192.0.2.11/24 eth0"}
    assert (cause["process"], cause["pid"], cause["attribution"]) == (None, None, None)


def test_what_is_not_needed_any_more_is_given_up_and_not_missed(
    node: Namespace, start: Callable[..., Daemon]
) -> None:
    daemon = start(*ALL_THREE)
    following(daemon)
    kept = {CAP_BPF} if kernel() < (5, 19) else set()
    assert capabilities(daemon) == kept

    # An audit writes once more what somebody removed.
    daemon.wait_primary("ipv4", "192.0.2.10")
    (daemon.files / "node.json").unlink()
    daemon.wait_primary("ipv4", "192.0.2.10")
    # A loss is read again.
    daemon.process.send_signal(signal.SIGSTOP)
    node.batch([f"addr add 192.0.3.{number}/24 dev eth0" for number in range(1, 200)])
    move(node, 10)
    daemon.process.send_signal(signal.SIGCONT)
    daemon.wait_log(lambda line: line["event"] == "changes were lost, read again", "the resync")
    daemon.wait(
        lambda document: document["primary"]["ipv4"] == "192.0.2.11" and not document["stale"],
        "192.0.2.11, read again",
    )
    assert [line for line in daemon.log() if line["level"] == "error"] == []
    assert capabilities(daemon) == kept


def test_without_any_the_next_tier_is_taken_and_the_log_says_why(
    node: Namespace, start: Callable[..., Daemon]
) -> None:
    daemon = start(source=("--source", "auto"))
    assert following(daemon)["source"] == "netlink"
    (line,) = [line for line in daemon.log() if line["event"] == "passed over"]
    assert line["reason"].startswith("source bpf: ")
    assert "CAP_BPF" in line["reason"]
    move(node, 10)
    assert daemon.wait_primary("ipv4", "192.0.2.11")["cause"]["process"] is None


def test_without_any_the_tier_by_name_is_refused_in_one_line(node: Namespace) -> None:
    command = [*with_capabilities(), COMMAND, "watch", *BPF.options]
    done = subprocess.run(node.command(command), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("addrtracker: ")
    assert done.stderr.count("\n") == 1
    assert "CAP_BPF" in done.stderr


def test_watching_takes_the_same(node: Namespace, directory: Path) -> None:
    config = directory / "addrtracker.toml"
    config.write_text(CONFIG)
    command = [
        *with_capabilities(*ALL_THREE), COMMAND, "watch", "--output", "json", "--count", "2",
        "--config", str(config), *BPF.options,
    ]  # fmt: skip
    watching = subprocess.Popen(
        node.command(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["primary"]["ipv4"] == "192.0.2.10"
    pid = move(node, 10)
    out, err = watching.communicate(timeout=20)
    assert (watching.returncode, err) == (0, "")
    assert json.loads(out)["cause"]["pid"] == pid
