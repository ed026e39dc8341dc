"""BIRD fills and empties the routing table while the node's address changes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.netns.namespace import Namespace, connect
from tests.netns.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.netns.conftest import StartDaemon, StartProgram
    from tests.netns.daemon import Daemon, Reader

ROUTES = 50_000
CHANGES = 20

AT_ONCE = """
[stability]
settle = "0s"
settle_max = "0s"
hold = "0s"
"""
CONFIG = """
router id 192.0.2.1;
protocol device {{}}
protocol kernel {{ ipv4 {{ import none; export all; }}; scan time 3600; }}
protocol static full {{
  disabled;
  ipv4;
{routes}
}}
"""


def test_answers_stay_right_while_a_full_table_comes_and_goes(
    host: Namespace,
    router: Namespace,
    program: Callable[[str], str],
    start_program: StartProgram,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
    tmp_path: Path,
) -> None:
    connect(host, "eth0", router, "eth0")
    host.sysctl("ipv4/conf/all/promote_secondaries", 1)
    host.ip("addr add 192.0.2.10/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    routes = "\n".join(
        f"  route 10.{number >> 8}.{number & 255}.0/24 via 192.0.2.1;" for number in range(ROUTES)
    )
    config = tmp_path / "bird.conf"
    config.write_text(CONFIG.format(routes=routes))
    control = str(tmp_path / "bird.ctl")
    start_program(host, program("bird"), "-f", "-c", str(config), "-s", control)
    daemon = start_daemon(host, AT_ONCE)
    daemon.wait_primary("ipv4", "192.0.2.10")
    reader = read_files(daemon)

    def are_in_kernel(count: int) -> Callable[[], bool]:
        return lambda: host.ip("route show proto bird").count("\n") == count

    def bird(command: str) -> None:
        host.run(program("birdc"), "-s", control, *command.split())

    started = Watch(str(tmp_path))
    started.wait(lambda: os.path.exists(control), 20, "BIRD")
    started.close()
    last = 10
    for command, expected in [("enable full", ROUTES), ("disable full", 0)]:
        bird(command)
        for _ in range(CHANGES):
            host.ip(f"addr add 192.0.2.{last + 1}/24 dev eth0")
            host.ip(f"addr del 192.0.2.{last}/24 dev eth0")
            last += 1
            daemon.wait_primary("ipv4", f"192.0.2.{last}")
        host.wait(are_in_kernel(expected), "the whole table", 60)

    reader.finish()
    wanted = [f"192.0.2.{number}" for number in range(10, last + 1)]
    assert daemon.changes("ipv4") == list(zip([None, *wanted], wanted, strict=False))
    assert [address for address in wanted if address in reader.seen["ipv4"]] == reader.seen["ipv4"]
    assert daemon.wait_primary("ipv4", wanted[-1])["stale"] is False
