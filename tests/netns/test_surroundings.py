"""What is around the daemon goes away, and comes back."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.netns.daemon import COMMAND, QUICK, Daemon
from tests.netns.namespace import Namespace, connect

if TYPE_CHECKING:
    from tests.netns.conftest import StartDaemon

AUDITS = QUICK + '[capture]\naudit = "1s"\n'


def test_a_disk_that_is_full_ends_a_recording(host: Namespace) -> None:
    command = host.command([COMMAND, "record", "/dev/full", "--seconds", "5"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == "addrtracker: /dev/full: No space left on device\n"


def test_a_daemon_that_was_stopped_reads_everything_again(
    host: Namespace, router: Namespace, start_daemon: StartDaemon
) -> None:
    connect(host, "eth0", router, "host0")
    host.ip("addr add 192.0.2.10/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    daemon: Daemon = start_daemon(host, QUICK)
    daemon.wait_primary("ipv4", "192.0.2.10")
    before = len(daemon.log())
    daemon.process.send_signal(signal.SIGSTOP)
    daemon.process.send_signal(signal.SIGCONT)
    daemon.wait_log(lambda line: "stopped for a while" in line["event"], "that it noticed")
    read = {"link", "addr4", "addr6", "nexthop", "route4", "route6"}
    daemon.wait_log(lambda line: line.get("scope") == "route6", "the last scope")
    assert {line.get("scope") for line in daemon.log()[before:]} >= read
    assert daemon.changes("ipv4") == [(None, "192.0.2.10")]
    assert daemon.stop() == 0


def test_files_that_someone_removed_come_back(
    host: Namespace, router: Namespace, start_daemon: StartDaemon
) -> None:
    connect(host, "eth0", router, "host0")
    host.ip("addr add 192.0.2.10/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    daemon: Daemon = start_daemon(host, AUDITS)
    document = daemon.wait_primary("ipv4", "192.0.2.10")
    (daemon.files / "node.json").unlink()
    (daemon.files / "ipv4").unlink()
    shutil.rmtree(daemon.directory / "state")
    assert daemon.wait(lambda found: found["primary"]["ipv4"], "node.json once more") == document
    assert (daemon.files / "ipv4").read_text() == "192.0.2.10"
    assert daemon.stop() == 0
    assert (daemon.directory / "state/decision.json").exists()
