"""keepalived moves a virtual address between two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.netns.namespace import PROGRAMS, Namespace, connect

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.netns.conftest import StartDaemon, StartProgram
    from tests.netns.daemon import Daemon, Reader

CONFIG = """
global_defs {{
  router_id {name}
  vrrp_version 3
  script_user root
}}
vrrp_instance VI {{
  interface eth0
  virtual_router_id 51
  priority {priority}
  advert_int 0.1
  unicast_src_ip {own}
  unicast_peer {{
    {peer}
  }}
  virtual_ipaddress {{
    {vip}
  }}
}}
"""
# Newer versions read a file below /etc that comes with the package, and lock one below /run.
PRIVATE = (
    f"mount -t overlay -o lowerdir={PROGRAMS.parent}/root/etc:/etc etc /etc && "
    "mount -t tmpfs run /run"
)


# Lower than the nodes' own addresses, so that it would win a comparison of addresses.
@pytest.mark.parametrize("length", [24, 32])
def test_a_virtual_address_never_becomes_the_primary_one(
    length: int,
    new_namespace: Callable[[], Namespace],
    program: Callable[[str], str],
    start_program: StartProgram,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
    tmp_path: Path,
) -> None:
    vip = "192.0.2.5"
    nodes = {"192.0.2.11": new_namespace(), "192.0.2.12": new_namespace()}
    first, second = nodes.values()
    connect(first, "eth0", second, "eth0")
    for own, node in nodes.items():
        node.ip(f"addr add {own}/24 dev eth0")
        node.ip("route add default via 192.0.2.1")

    def keepalived(own: str, peer: str, priority: int) -> subprocess.Popen[bytes]:
        config = tmp_path / f"keepalived-{own}.conf"
        config.write_text(
            CONFIG.format(name=own, priority=priority, own=own, peer=peer, vip=f"{vip}/{length}")
        )
        command = (
            f"{PRIVATE} && exec {program('keepalived')} -n -l -D -P -f {config} "
            f"-p {tmp_path}/{own}.pid -r {tmp_path}/{own}-vrrp.pid"
        )
        return start_program(nodes[own], "unshare", "-m", "sh", "-c", command)

    daemons = {own: start_daemon(node) for own, node in nodes.items()}
    for own, daemon in daemons.items():
        daemon.wait_primary("ipv4", own)
    readers = {own: read_files(daemon) for own, daemon in daemons.items()}

    preferred = keepalived("192.0.2.11", "192.0.2.12", 150)
    keepalived("192.0.2.12", "192.0.2.11", 100)
    for _ in range(3):
        first.wait(lambda: vip in first.addresses("eth0"), "the address on the first node")
        preferred.terminate()
        preferred.wait()
        second.wait(lambda: vip in second.addresses("eth0"), "the address on the second node")
        preferred = keepalived("192.0.2.11", "192.0.2.12", 150)
    first.wait(lambda: vip in first.addresses("eth0"), "the address back on the first node")

    # A node that starts while it holds the address knows better, too.
    fresh = start_daemon(first)
    fresh.wait_primary("ipv4", "192.0.2.11")
    for number, (own, daemon) in enumerate(daemons.items()):
        # What comes last through the same socket: all before it was seen.
        nodes[own].ip(f"addr add 2001:db8::{number + 1}/64 dev eth0 nodad")
        nodes[own].ip("route add default via 2001:db8::ff")
        daemon.wait_primary("ipv6", f"2001:db8::{number + 1}")
        readers[own].finish()
        assert readers[own].seen["ipv4"] == [own]
        assert daemon.changes("ipv4") == [(None, own)]
