"""Who made a change: the process and its pid, the kernel itself, or nobody who can be named."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import Namespace, connect
from tests.tiers import BPF

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.netns.conftest import StartDaemon, StartProgram
    from tests.netns.following import Following
    from tracker.model import Cause

RADVD = """
interface eth0 {
  AdvSendAdvert on;
  MinRtrAdvInterval 3;
  MaxRtrAdvInterval 4;
  AdvDefaultLifetime 600;
  prefix 2001:db8:a::/64 {
    AdvOnLink on;
    AdvAutonomous on;
  };
};
"""

pytestmark = pytest.mark.only_tiers(BPF)
"""The one that can tell."""


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    connect(host, "eth0", router, "eth0")
    host.ip("addr add 192.0.2.11/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    return host


def ip(host: Namespace, command: str) -> int:
    """Run `ip`; its pid."""
    process = subprocess.Popen(["ip", "-n", host.name, *command.split()])
    assert process.wait() == 0
    return process.pid


def cause_of(following: Following) -> Cause:
    found = following.session.decision().cause
    assert found is not None
    return found


def test_a_process_and_its_pid_are_named(node: Namespace, follow: Callable[[], Following]) -> None:
    following = follow()
    following.expect("192.0.2.11")
    ip(node, "addr del 192.0.2.11/24 dev eth0")
    pid = ip(node, "addr add 192.0.2.12/24 dev eth0")
    ip(node, "route add 10.0.0.0/8 via 192.0.2.1")
    following.expect("192.0.2.12")
    found = cause_of(following)
    assert found.change == "RTM_NEWADDR 192.0.2.12/24 eth0"
    assert (found.process, found.pid, found.attribution) == ("ip", pid, "process")


def test_it_is_in_the_document_that_the_daemon_publishes(
    node: Namespace, start_daemon: StartDaemon
) -> None:
    node.sysctl("ipv4/conf/all/promote_secondaries", 1)
    node.ip("addr add 192.0.2.12/24 dev eth0")
    daemon = start_daemon(node)
    daemon.wait_primary("ipv4", "192.0.2.11")
    pid = ip(node, "addr del 192.0.2.11/24 dev eth0")
    cause = daemon.wait_primary("ipv4", "192.0.2.12")["cause"]
    assert cause["change"] == "RTM_NEWADDR 192.0.2.12/24 eth0"
    assert (cause["process"], cause["pid"], cause["attribution"]) == ("ip", pid, "process")
    line = daemon.wait_log(lambda line: line.get("to") == "192.0.2.12", "the change")
    assert (line["process"], line["pid"]) == ("ip", pid)


def test_a_lifetime_that_ends_is_the_kernels_doing(
    node: Namespace, follow: Callable[[], Following]
) -> None:
    ip(node, "addr del 192.0.2.11/24 dev eth0")
    ip(node, "addr add 192.0.2.5/24 dev eth0 valid_lft 30 preferred_lft 1")
    ip(node, "addr add 192.0.2.11/24 dev eth0")
    ip(node, "route add default via 192.0.2.1")
    following = follow()
    following.wait("192.0.2.11")
    found = cause_of(following)
    assert found.change == "RTM_NEWADDR 192.0.2.5/24 eth0"
    assert found.attribution == "kernel"
    assert found.process is not None
    assert found.process.startswith("kworker/")


def test_a_carrier_that_is_lost_is_the_kernels_doing(
    node: Namespace, router: Namespace, follow: Callable[[], Following]
) -> None:
    connect(node, "eth1", router, "eth1")
    ip(node, "addr add 198.51.100.11/24 dev eth1")
    ip(node, "route add default via 198.51.100.1 metric 200")
    following = follow()
    following.expect("192.0.2.11")
    router.ip("link set eth0 down")
    following.wait("198.51.100.11")
    assert cause_of(following).attribution == "kernel"


def test_what_a_router_advertises_is_nobodys_doing(
    host: Namespace,
    router: Namespace,
    follow: Callable[[], Following],
    program: Callable[[str], str],
    start_program: StartProgram,
    tmp_path: Path,
) -> None:
    router.sysctl("ipv6/conf/all/forwarding", 1)
    connect(host, "eth0", router, "eth0")
    router.wait(lambda: router.json("-6 addr show dev eth0 scope link -tentative"), "link-local")
    config = tmp_path / "radvd.conf"
    config.write_text(RADVD)
    following = follow()
    start_program(
        router, program("radvd"), "-n", "-m", "stderr", "-C", str(config),
        "-p", str(tmp_path / "radvd.pid"),
    )  # fmt: skip
    host.wait(lambda: host.addresses("eth0", 6), "an address")
    (address,) = host.addresses("eth0", 6)
    following.expect(address, "ipv6")
    found = cause_of(following)
    assert (found.attribution, found.process is None) == ("untrusted", False)
