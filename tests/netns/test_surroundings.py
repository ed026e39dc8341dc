"""What is around the daemon goes away, and comes back."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.netns.daemon import COMMAND, QUICK, Daemon
from tests.netns.namespace import Namespace, connect
from tests.tiers import Tier

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


def test_a_second_daemon_on_the_same_directories_is_one_line(
    host: Namespace, start_daemon: StartDaemon, tier: Tier
) -> None:
    daemon: Daemon = start_daemon(host, QUICK)
    daemon.wait_log(lambda line: line["event"] == "following", "the start")
    config = daemon.directory / "addrtracker.toml"
    command = host.command([COMMAND, "run", "--config", str(config), *tier.options])
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert second.stderr == (
        f"addrtracker: {config}: another addrtracker that runs here uses the directory "
        f"{daemon.directory}/state; allowed: one that no other uses\n"
    )
    daemon.kill()
    daemon.start()
    daemon.wait_log(lambda line: line["event"] == "following", "another start")


def test_privileges_that_only_the_start_needs_are_given_up(
    host: Namespace, start_daemon: StartDaemon
) -> None:
    daemon: Daemon = start_daemon(host, QUICK)
    line = daemon.wait_log(lambda line: line["event"] == "privileges given up", "that it did")
    assert {"CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN", "CAP_SYS_ADMIN"} <= set(line["capabilities"])
    daemon.wait_log(lambda line: line["event"] == "serving metrics", "that all threads run")
    threads = list(Path(f"/proc/{daemon.process.pid}/task").iterdir())
    assert len(threads) > 3
    for thread in threads:
        status = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines())
        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            left = int(status[kind], 16)
            assert not left & (1 << 39 | 1 << 38 | 1 << 21 | 1 << 12), (status["Name"], kind)


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
