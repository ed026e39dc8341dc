"""radvd announces a prefix, deprecates it and announces another one."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.netns.namespace import Namespace, connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.netns.conftest import StartDaemon, StartProgram
    from tests.netns.daemon import Daemon, Reader

PREFIX = """
  prefix {prefix} {{
    AdvOnLink on;
    AdvAutonomous on;
    AdvValidLifetime 3600;
    AdvPreferredLifetime {preferred};
  }};
"""
CONFIG = """
interface eth0 {{
  AdvSendAdvert on;
  MinRtrAdvInterval 3;
  MaxRtrAdvInterval 4;
  AdvDefaultLifetime 600;
{prefixes}
}};
"""


def advertise(path: Path, **preferred: int) -> None:
    """Write the configuration: preferred lifetime in seconds by prefix."""
    prefixes = "".join(
        PREFIX.format(prefix=f"2001:db8:{name}::/64", preferred=seconds)
        for name, seconds in preferred.items()
    )
    path.write_text(CONFIG.format(prefixes=prefixes))


def test_a_deprecated_prefix_stays_until_there_is_a_better_one(
    host: Namespace,
    router: Namespace,
    program: Callable[[str], str],
    start_program: StartProgram,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
    tmp_path: Path,
) -> None:
    router.sysctl("ipv6/conf/all/forwarding", 1)
    connect(host, "eth0", router, "eth0")
    config = tmp_path / "radvd.conf"
    advertise(config, a=1800)
    router.wait(lambda: router.json("-6 addr show dev eth0 scope link -tentative"), "link-local")
    daemon = start_daemon(host)
    radvd = start_program(
        router, program("radvd"), "-n", "-m", "stderr", "-C", str(config),
        "-p", str(tmp_path / "radvd.pid"),
    )  # fmt: skip

    def flags(prefix: str) -> dict[str, object]:
        """What `ip` says of the address of a prefix."""
        for link in host.json("-6 addr show dev eth0"):
            for address in link.get("addr_info", []):
                if address["local"].startswith(f"2001:db8:{prefix}:"):
                    return dict(address)
        return {}

    def longer_than(prefix: str, seconds: int) -> Callable[[], bool]:
        """Whether the address of a prefix is preferred for longer than that."""
        return lambda: int(str(flags(prefix)["preferred_life_time"])) > seconds

    host.wait(lambda: flags("a") and not flags("a").get("tentative"), "an address")
    old = str(flags("a")["local"])
    daemon.wait_primary("ipv6", old)
    reader = read_files(daemon)

    advertise(config, a=0)
    radvd.send_signal(signal.SIGHUP)
    host.wait(lambda: flags("a").get("deprecated"), "deprecation")
    # Deprecated is better than nothing: the address stays until there is another one.
    advertise(config, a=0, b=1800)
    radvd.send_signal(signal.SIGHUP)
    host.wait(lambda: flags("b") and not flags("b").get("tentative"), "another address")
    new = str(flags("b")["local"])
    daemon.wait_primary("ipv6", new)

    # Each advertisement makes the old address preferred for some microseconds.
    for seconds in range(2000, 2500, 100):
        advertise(config, a=0, b=seconds)
        radvd.send_signal(signal.SIGHUP)
        host.wait(longer_than("b", seconds - 50), "an advertisement")
    host.ip("addr add 192.0.2.11/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    daemon.wait_primary("ipv4", "192.0.2.11")
    reader.finish()
    assert daemon.changes("ipv6") == [(None, old), (old, new)]
    assert reader.seen["ipv6"] == [old, new]
