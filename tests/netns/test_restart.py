"""The daemon killed and started again: nobody who reads its files can tell."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.netns.daemon import QUICK
from tests.netns.namespace import Namespace, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netns.conftest import StartDaemon
    from tests.netns.daemon import Daemon, Reader

FIRST = "192.0.2.11"
SECOND = "198.51.100.11"

HOLD = 8
LONG_HOLD = f"""
[stability]
settle = "200ms"
settle_max = "2s"
hold = "{HOLD}s"
"""


def two_uplinks(host: Namespace, router: Namespace) -> None:
    """The first to come is the incumbent; one that starts afresh would take the second."""
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")
    host.ip(f"addr add {FIRST}/24 dev eth1")
    host.ip("route add default via 192.0.2.1 metric 200")


def add_a_better_path(host: Namespace) -> None:
    host.ip(f"addr add {SECOND}/24 dev eth0")
    host.ip("route add default via 198.51.100.1 metric 100")


def started(daemon: Daemon) -> int:
    """How many runs have read everything."""
    return sum(line["event"] == "following" for line in daemon.log())


def restart(daemon: Daemon) -> None:
    """SIGKILL, start, and wait until the new run has decided."""
    daemon.kill()
    runs = started(daemon)
    daemon.start()
    daemon.wait_log(lambda _: started(daemon) > runs, "another start")


def test_a_killed_daemon_keeps_its_decision_and_its_generation(
    host: Namespace,
    router: Namespace,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
) -> None:
    two_uplinks(host, router)
    daemon = start_daemon(host)
    before = daemon.wait_primary("ipv4", FIRST)
    reader = read_files(daemon)
    add_a_better_path(host)

    for _ in range(5):
        restart(daemon)
    # An IPv6 address comes last: by then everything else was decided.
    host.ip("addr add 2001:db8::1/64 dev eth0 nodad")
    host.ip("route add default via 2001:db8::ff")
    after = daemon.wait_primary("ipv6", "2001:db8::1")

    reader.finish()
    assert after["primary"]["ipv4"] == FIRST
    assert after["generation"] == before["generation"] + 1
    assert reader.seen["ipv4"] == [FIRST]
    assert daemon.changes("ipv4") == [(None, FIRST)]


MODES = {
    "interface": 'interfaces = ["eth*"]',
    "cidr": 'cidrs = ["0.0.0.0/0"]',
    "route-to": 'route_to = ["203.0.113.7"]',
    "dns": "",
    "static": f'static = "{FIRST}"',
}


@pytest.fixture
def names(host: Namespace) -> Iterator[Path]:
    """The hosts file of the namespace, which `ip netns exec` puts in the place of the host's."""
    folder = Path("/etc/netns") / host.name
    folder.mkdir(parents=True)
    yield folder / "hosts"
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_daemon_keeps_its_answer_among_equals_in_each_mode(
    host: Namespace,
    router: Namespace,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
    names: Path,
    mode: str,
) -> None:
    """One that starts afresh would take the second, but of mode static, which has one."""
    names.write_text(f"{FIRST} n1\n")
    two_uplinks(host, router)
    daemon = start_daemon(host, f'{QUICK}\n[select]\nmode = "{mode}"\n{MODES[mode]}\n')
    before = daemon.wait_primary("ipv4", FIRST)
    reader = read_files(daemon)
    names.write_text(f"{SECOND} n1\n{FIRST} n1\n")
    host.batch(
        [
            f"addr add {SECOND}/24 dev eth0",
            "route del default",
            "route add default nexthop via 198.51.100.1 nexthop via 192.0.2.1",
        ]
    )
    for _ in range(3):
        restart(daemon)
    after = daemon.document()
    reader.finish()
    assert after is not None
    assert after["primary"]["ipv4"] == FIRST
    assert after["generation"] == before["generation"]
    assert reader.seen["ipv4"] == [FIRST]
    assert daemon.changes("ipv4") == [(None, FIRST)]

    # It is no memory alone: what is asked for is followed.
    if mode != "static":
        host.ip(f"addr del {FIRST}/24 dev eth1")
        daemon.wait_primary("ipv4", SECOND)


def test_a_hold_goes_on_across_a_kill(
    host: Namespace,
    router: Namespace,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
) -> None:
    two_uplinks(host, router)
    daemon = start_daemon(host, LONG_HOLD)
    daemon.wait_primary("ipv4", FIRST)
    reader = read_files(daemon)
    add_a_better_path(host)

    host.ip(f"addr del {FIRST}/24 dev eth1")
    gone = time.monotonic()
    daemon.wait_hold("ipv4")
    # The deadline is kept: a daemon that dies over and over does not hold for ever.
    while time.monotonic() < gone + HOLD / 2:
        restart(daemon)
    daemon.wait_primary("ipv4", SECOND)
    took = time.monotonic() - gone

    assert HOLD - 1 < took < HOLD + HOLD / 3
    reader.finish()
    assert daemon.changes("ipv4") == [(None, FIRST), (FIRST, SECOND)]
    assert reader.seen["ipv4"] == [FIRST, SECOND]


def test_readers_see_whole_documents_while_the_daemon_dies_again_and_again(
    host: Namespace,
    router: Namespace,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
) -> None:
    connect(host, "eth0", router, "eth0")
    host.sysctl("ipv4/conf/all/promote_secondaries", 1)
    host.ip("addr add 192.0.2.10/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    at_once = '[stability]\nsettle = "0s"\nsettle_max = "0s"\nhold = "0s"\n'
    daemon = start_daemon(host, at_once)
    daemon.wait_primary("ipv4", "192.0.2.10")
    reader = read_files(daemon)

    for last in range(10, 30):
        host.batch(
            [
                f"addr add 192.0.2.{last + 1}/24 dev eth0",
                f"addr del 192.0.2.{last}/24 dev eth0",
            ]
        )
        if last % 2:
            # At whatever moment of the change this is.
            daemon.kill()
            daemon.start()
        daemon.wait_primary("ipv4", f"192.0.2.{last + 1}")
    reader.finish()
    # A reader may miss one that is soon replaced; it never sees one twice or out of order.
    wanted = [f"192.0.2.{number}" for number in range(10, 31)]
    seen = reader.seen["ipv4"]
    assert [address for address in wanted if address in seen] == seen
    assert (seen[0], seen[-1]) == (wanted[0], wanted[-1])
