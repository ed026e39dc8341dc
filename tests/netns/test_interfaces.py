"""An address that moves to a bridge, and a link that gets another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.netns.namespace import Namespace, connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.netns.conftest import StartDaemon
    from tests.netns.daemon import Daemon, Reader

ADDRESS = "192.0.2.11"


def interface_is(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda document: [ip["interface"] for ip in document["ips"]] == [name]


def test_a_bridge_takes_an_address_over_without_a_change(
    host: Namespace,
    router: Namespace,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
) -> None:
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")
    host.ip(f"addr add {ADDRESS}/24 dev eth0")
    host.ip("addr add 198.51.100.11/24 dev eth1")
    host.ip("route add default via 192.0.2.1 metric 100")
    host.ip("route add default via 198.51.100.1 metric 200")
    daemon = start_daemon(host)
    daemon.wait(interface_is("eth0"), "the link")
    reader = read_files(daemon)

    # What a network manager does: the port first, then the address, then the route.
    host.ip("link add br-ex type bridge")
    host.ip("link set eth0 master br-ex")
    host.ip(f"addr del {ADDRESS}/24 dev eth0")
    host.ip("link set br-ex up")
    host.ip(f"addr add {ADDRESS}/24 dev br-ex")
    host.ip("route add default via 192.0.2.1 metric 100")

    document = daemon.wait(interface_is("br-ex"), "the bridge")
    reader.finish()
    assert document["primary"]["ipv4"] == ADDRESS
    assert daemon.changes("ipv4") == [(None, ADDRESS)]
    assert reader.seen["ipv4"] == [ADDRESS]
    assert {document["generation"] for document in reader.documents} == {document["generation"]}


def test_a_renamed_link_keeps_its_address(
    host: Namespace,
    router: Namespace,
    start_daemon: StartDaemon,
    read_files: Callable[[Daemon], Reader],
) -> None:
    connect(host, "eth0", router, "eth0")
    host.ip(f"addr add {ADDRESS}/24 dev eth0")
    host.ip("route add default via 192.0.2.1")
    daemon = start_daemon(host)
    daemon.wait(interface_is("eth0"), "the link")
    reader = read_files(daemon)

    host.ip("link set eth0 down")
    host.ip("link set eth0 name lan0")
    host.ip("link set lan0 up")
    host.ip("route add default via 192.0.2.1")

    daemon.wait(interface_is("lan0"), "the new name")
    reader.finish()
    assert daemon.changes("ipv4") == [(None, ADDRESS)]
    assert reader.seen["ipv4"] == [ADDRESS]
