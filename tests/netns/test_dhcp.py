"""A DHCP client that renews its lease, and one that gets another address."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.netns.namespace import Namespace, connect
from tests.netns.watching import Watch

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.netns.conftest import StartDaemon, StartProgram
    from tests.netns.daemon import Daemon, Reader

RENEWALS = 5

SERVER = """
port=0
interface=eth0
bind-interfaces
user=root
keep-in-foreground
log-facility=-
dhcp-authoritative
dhcp-leasefile={leases}
dhcp-range={first},{last},255.255.255.0,2m
pid-file=
"""
CLIENT = """
allowinterfaces eth0
ipv4only
noarp
nodelay
option routers
"""
# The client keeps leases and sockets in places that it cannot be told; they become its own.
PRIVATE = (
    "mount -t tmpfs lib /var/lib && mount -t tmpfs run /run && mkdir /var/lib/dhcpcd /run/dhcpcd"
)


class Lease:
    """A client on the host, a server on the router."""

    def __init__(
        self,
        start: StartProgram,
        program: Callable[[str], str],
        host: Namespace,
        router: Namespace,
        directory: Path,
    ) -> None:
        self._start = start
        self._program = program
        self._host = host
        self._router = router
        self._directory = directory
        (directory / "client.conf").write_text(CLIENT)

    def serve(self, first: str, last: str) -> subprocess.Popen[bytes]:
        """Start a server that knows no lease, with this range."""
        leases = self._directory / f"leases-{first}"
        config = self._directory / f"server-{first}.conf"
        config.write_text(SERVER.format(leases=leases, first=first, last=last))
        return self._start(self._router, self._program("dnsmasq"), "-C", str(config))

    def ask(self) -> subprocess.Popen[bytes]:
        """Start the client."""
        client = f"{self._program('dhcpcd')} -B -d -f {self._directory}/client.conf -c /bin/true"
        return self._start(
            self._host, "unshare", "-m", "sh", "-c", f"{PRIVATE} && exec {client} eth0"
        )

    def renew(self, client: subprocess.Popen[bytes]) -> None:
        """Have the client renew its lease; returns once it has."""
        (log,) = self._directory.glob("unshare-*.log")
        count = log.read_text().count("acknowledged")
        watch = Watch(str(self._directory))
        client.send_signal(signal.SIGUSR1)
        watch.wait(lambda: log.read_text().count("acknowledged") > count, 20, "a renewal")
        watch.close()


def test_renewals_are_silent_and_a_new_lease_is_published_once(
    host: Namespace,
    router: Namespace,
    program: Callable[[str], str],
    start_program: StartProgram,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
    tmp_path: Path,
) -> None:
    connect(host, "eth0", router, "eth0")
    router.ip("addr add 192.0.2.1/24 dev eth0")
    lease = Lease(start_program, program, host, router, tmp_path)
    server = lease.serve("192.0.2.50", "192.0.2.60")
    client = lease.ask()
    host.wait(lambda: host.addresses("eth0"), "a first lease")
    (first,) = host.addresses("eth0")

    daemon = start_daemon(host)
    daemon.wait_primary("ipv4", first)
    reader = read_files(daemon)
    before = {path.name: path.stat() for path in daemon.files.iterdir()}

    for _ in range(RENEWALS):
        lease.renew(client)

    server.terminate()
    server.wait()
    after = {path.name: path.stat() for path in daemon.files.iterdir()}
    assert after == before, "a renewal touched a file"
    lease.serve("192.0.2.70", "192.0.2.80")
    client.send_signal(signal.SIGHUP)
    host.wait(lambda: host.addresses("eth0") not in ([], [first]), "another lease")
    (second,) = host.addresses("eth0")

    daemon.wait_primary("ipv4", second)
    reader.finish()
    assert daemon.changes("ipv4") == [(None, first), (first, second)]
    assert reader.seen["ipv4"] == [first, second]
