"""addrtracker check on a live kernel: sources, filters, NAT64, free ranges."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND
from tests.netns.namespace import connect
from tracker.cli.check_host import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.netns.namespace import Namespace

IPV4_ONLY = 'families = ["ipv4"]\n'
PEER = "203.0.113.77"


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks, of which the first is better."""
    for link, net, metric in (("eth0", "192.0.2", 100), ("eth1", "198.51.100", 200)):
        connect(host, link, router, f"peer-{link}")
        host.ip(f"addr add {net}.10/24 dev {link}")
        host.ip(f"route add default via {net}.1 metric {metric}")
    return host


@pytest.fixture
def check(node: Namespace, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs the command on the host; its report, with findings by code."""

    def checked(*arguments: str, config: str = IPV4_ONLY) -> dict[str, Any]:
        path = tmp_path / "check.toml"
        path.write_text(config)
        command = [COMMAND, "check", "--netns", node.name, "--config", str(path)]
        done = subprocess.run(
            [*command, "--output", "json", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.stderr == ""
        report: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (1 if report["counts"]["error"] else 0)
        report["findings"] = {finding["code"]: finding for finding in report["findings"]}
        return report

    return checked


def test_a_host_that_speaks_from_its_primary_has_no_findings(check: Any) -> None:
    report = check("--peer", PEER, "192.0.2.1")
    assert report["primary"]["ipv4"] == "192.0.2.10"
    assert report["findings"] == {}
    assert report["skipped"] == []


def test_a_route_with_another_source_is_said(node: Namespace, check: Any) -> None:
    node.ip(f"route add {PEER}/32 via 198.51.100.1")
    found = check("--peer", PEER)["findings"]
    assert list(found) == ["source-peer"]
    lookup = found["source-peer"]["data"]["lookup"]
    assert (lookup["source"], lookup["interfaces"]) == ("198.51.100.10", ["eth1"])


def test_a_default_route_with_another_source_is_said(node: Namespace, check: Any) -> None:
    config = f'{IPV4_ONLY}select.static = ["198.51.100.10"]\n'
    found = check(config=config)["findings"]
    assert list(found) == ["source-default"]
    assert found["source-default"]["data"]["primary"] == "198.51.100.10"
    node.ip("route add 0.0.0.0/1 via 198.51.100.1")
    node.ip("route add 128.0.0.0/1 via 198.51.100.1")
    assert check(config=config)["findings"] == {}
    assert list(check()["findings"]) == ["source-default"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("route add unreachable 203.0.113.0/24", "the route is unreachable"),
        ("route add blackhole 203.0.113.0/24", "the route is a blackhole"),
        ("route add prohibit 203.0.113.0/24", "the route is prohibited"),
    ],
)
def test_a_peer_without_a_way_is_an_error(
    node: Namespace, check: Any, command: str, why: str
) -> None:
    node.ip(command)
    found = check("--peer", PEER)["findings"]
    assert found["peer-unreachable"]["data"]["lookup"]["error"] == why


def test_an_address_of_the_host_is_no_peer(check: Any) -> None:
    assert list(check("--peer", "198.51.100.10")["findings"]) == ["peer-local"]


def test_a_family_without_a_way_is_an_error(check: Any) -> None:
    found = check("--peer", "2001:db8::1")["findings"]
    assert found["peer-unreachable"]["data"]["lookup"]["family"] == "ipv6"


# Named selections.

STORAGE = f"""{IPV4_ONLY}
[selections.storage]
mode = "interface"
interfaces = ["eth1"]
[check]
peers = ["storage={PEER}"]
"""


def test_a_named_selection_has_peers_of_its_own(node: Namespace, check: Any) -> None:
    found = check(config=STORAGE)["findings"]
    assert list(found) == ["source-peer"]
    assert found["source-peer"]["data"]["selection"] == "storage"
    assert (
        "not from its ipv4 address of selection storage 198.51.100.10"
        in (found["source-peer"]["text"])
    )
    assert check("--peer", PEER, config=STORAGE)["findings"] == {}
    node.ip(f"route add {PEER}/32 via 198.51.100.1")
    assert check(config=STORAGE)["findings"] == {}
    node.ip(f"route replace unreachable {PEER}/32")
    assert list(check("--peer", f"storage={PEER}", config=STORAGE)["findings"]) == [
        "peer-unreachable"
    ]


def test_what_a_mode_asks_the_way_to_is_a_peer(node: Namespace, check: Any) -> None:
    config = f"""{IPV4_ONLY}
        [selections.storage]
        mode = "route-to"
        route_to = ["{PEER}", "198.51.100.77"]
    """
    found = check(config=config)["findings"]
    assert list(found) == ["source-peer"]
    assert found["source-peer"]["data"]["lookup"]["destination"] == "198.51.100.77"


def test_strict_rp_filter_drops_what_comes_to_a_named_selection(
    node: Namespace, check: Any
) -> None:
    node.sysctl("ipv4/conf/eth1/rp_filter", 1)
    found = check(config=STORAGE)["findings"]
    assert set(found) == {"source-peer", "rp-filter-drops"}
    assert found["rp-filter-drops"]["data"]["primary"] == "198.51.100.10"


def test_a_lookup_can_be_one_within_a_link_that_is_named(node: Namespace) -> None:
    """A VRF is named by its link; this kernel has none, and another link narrows as well."""
    with node.entered():
        kernel = Kernel()
        try:
            found = kernel.lookup(PEER, None, "eth1")
            assert (found.source, found.interfaces) == ("198.51.100.10", ("eth1",))
            assert kernel.lookup(PEER, None, "red").error == "there is no such VRF"
            assert kernel.default("ipv4", None, "red") is None
        finally:
            kernel.close()


def test_a_selection_in_a_vrf_has_its_peers_there(check: Any) -> None:
    config = f"""{IPV4_ONLY}
        [selections.storage]
        vrf = "red"
        [check]
        peers = ["storage={PEER}"]
    """
    found = check(config=config)["findings"]
    assert set(found) == {"selection-empty", "peer-unreachable"}
    assert found["peer-unreachable"]["data"]["lookup"]["error"] == "there is no such VRF"


# Reverse path filter.


STATIC = f'{IPV4_ONLY}select.static = ["198.51.100.10"]\n'
"""The primary is on the link that the default route does not leave by."""


@pytest.mark.parametrize(
    ("every", "own", "drops"),
    [(0, 1, True), (1, 0, True), (0, 2, False), (1, 2, False), (0, 0, False)],
)
def test_strict_rp_filter_on_another_link_is_an_error(
    node: Namespace, check: Any, every: int, own: int, drops: bool
) -> None:
    node.sysctl("ipv4/conf/all/rp_filter", every)
    node.sysctl("ipv4/conf/eth1/rp_filter", own)
    found = check("--peer", PEER, config=STATIC)["findings"]
    assert ("rp-filter-drops" in found) is drops


def test_the_kernel_drops_what_is_said_to_be_dropped(
    node: Namespace, router: Namespace, check: Any
) -> None:
    """A datagram from far away to the primary: with the rule it arrives, without it does not."""
    router.ip("addr add 198.51.100.1/24 dev peer-eth1")
    router.ip(f"addr add {PEER}/32 dev lo")
    node.sysctl("ipv4/conf/eth1/rp_filter", 1)

    def arrives() -> bool:
        with node.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
            listening.bind(("198.51.100.10", 4000))
            with router.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
                sending.bind((PEER, 0))
                sending.sendto(b"far", ("198.51.100.10", 4000))
                sending.sendto(b"far", ("198.51.100.10", 4000))
                # From the link itself nothing is dropped, so what came before has been judged.
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near:
                    near.bind(("198.51.100.1", 0))
                    near.sendto(b"near", ("198.51.100.10", 4000))
            listening.settimeout(10)
            return listening.recv(16) == b"far"

    assert "rp-filter-drops" in check("--peer", PEER, config=STATIC)["findings"]
    assert not arrives()
    node.ip("route add default via 198.51.100.1 table 100")
    node.ip("rule add from 198.51.100.10 table 100")
    assert "rp-filter-drops" not in check("--peer", PEER, config=STATIC)["findings"]
    assert arrives()


def test_one_of_several_equal_paths_is_enough(node: Namespace, check: Any) -> None:
    for metric in (100, 200):
        node.ip(f"route del default metric {metric}")
    node.ip("route add default nexthop via 192.0.2.1 nexthop via 198.51.100.1")
    node.sysctl("ipv4/conf/all/rp_filter", 1)
    found = check("--peer", PEER, config=STATIC)["findings"]
    assert "rp-filter-drops" not in found
    assert found["source-varies"]["data"]["lookup"]["interfaces"] == ["eth0", "eth1"]
    node.ip(
        "route replace default src 198.51.100.10 nexthop via 192.0.2.1 nexthop via 198.51.100.1"
    )
    assert check("--peer", PEER, config=STATIC)["findings"] == {}


# The way to IPv6.


def test_a_route_for_nat64_and_a_clat_are_noticed(node: Namespace, check: Any) -> None:
    node.ip("addr add 2001:db8::10/64 dev eth0 nodad")
    node.ip("route add 64:ff9b::/96 via 2001:db8::1")
    node.ip("route add 64:ff9b:1:fffe::/96 via 2001:db8::1")
    node.ip("link add clat type veth peer name clat-peer")
    stage = check()["stage"]
    assert stage["nat64"] == [
        {"prefix": "64:ff9b::/96", "source": "route over eth0"},
        {"prefix": "64:ff9b:1:fffe::/96", "source": "route over eth0"},
    ]
    assert stage["clat"] == ["clat"]
    assert stage["now"] == "ipv4-only"
    assert "nodes: this one has IPv6, and families does not want it" not in stage["missing"]
    node.ip("route add default via 2001:db8::1")
    assert "nodes: this one has IPv6, and families does not want it" in check()["stage"]["missing"]


def test_a_given_nat64_prefix_needs_a_way(check: Any) -> None:
    report = check("--nat64", "2001:db8:64::/96")
    assert report["stage"]["nat64"] == [{"prefix": "2001:db8:64::/96", "source": "--nat64"}]
    assert list(report["findings"]) == ["nat64-unreachable"]


def test_a_router_that_announces_a_prefix_is_heard(
    node: Namespace, router: Namespace, check: Any
) -> None:
    for namespace, link in ((node, "eth0"), (router, "peer-eth0")):
        command = f"-6 addr show dev {link} scope link -tentative"
        # mypy cannot infer a lambda with defaults, which bind this round's values.
        namespace.wait(lambda n=namespace, c=command: n.json(c), "link-local")  # type: ignore[misc]
    head = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 0, 0, 0)
    pref64 = struct.pack("!BBH12s", 38, 2, 600 << 3, socket.inet_pton(socket.AF_INET6, "64:ff9b::"))
    heard = threading.Event()

    def advertise() -> None:
        """As a router does it: again and again."""
        with router.entered():
            kind = (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
            with socket.socket(*kind) as sending:
                sending.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
                index = socket.if_nametoindex("peer-eth0")
                while not heard.wait(0.1):
                    sending.sendto(head + pref64, ("ff02::1", 0, 0, index))

    advertising = threading.Thread(target=advertise)
    advertising.start()
    try:
        found = check("--pref64", "60")["stage"]["nat64"]
    finally:
        heard.set()
        advertising.join()
    assert found == [{"prefix": "64:ff9b::/96", "source": "router advertisement on eth0"}]


# Free ranges and everybody's use.


def test_routed_networks_are_not_free(node: Namespace, check: Any) -> None:
    node.ip("route add 10.0.0.0/8 via 192.0.2.1")
    node.ip("route add 10.0.0.0/15 via 192.0.2.1")
    node.ip("route add blackhole 10.2.0.0/16")
    node.ip("route add fd12:3456:789a::/64 via fe80::1 dev eth0")
    free = check("--free", "/16", "--count", "1")["free"]
    assert free == ["10.3.0.0/16"]
    within = ("--within", "fd12:3456:789a::/48", "--count", "1")
    assert check("--free", "/64", *within)["free"] == ["fd12:3456:789a:1::/64"]


def test_check_works_for_everybody(node: Namespace) -> None:
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    command = [*unprivileged, "--inh-caps=-all", COMMAND, "check", "--peer", PEER]
    report = json.loads(node.run(*command, "--output", "json"))
    assert report["primary"]["ipv4"] == "192.0.2.10"
    assert report["counts"]["error"] == 0


def test_a_new_exclusion_that_hits_what_is_published_is_said(
    node: Namespace, tmp_path: Path
) -> None:
    """Before a reload: the files of the daemon tell which address the node is known by."""
    (tmp_path / "ipv4").write_text("192.0.2.10")
    config = tmp_path / "new.toml"
    config.write_text(
        f'families = ["ipv4"]\npublish.files.directory = "{tmp_path}"\n'
        'exclude.addresses = ["192.0.2.10"]\n'
    )
    command = [COMMAND, "check", "--config", str(config), "--output", "json"]
    findings = json.loads(node.run(*command))["findings"]
    assert [finding["code"] for finding in findings] == [
        "exclusion-hits-published",
        "source-default",
    ]
    assert findings[0]["severity"] == "warning"
    assert findings[0]["data"]["instead"] == "198.51.100.10"


def test_what_is_published_of_a_named_selection_counts_as_well(
    node: Namespace, tmp_path: Path
) -> None:
    (tmp_path / "selections/storage").mkdir(parents=True)
    (tmp_path / "selections/storage/ipv4").write_text("198.51.100.10")
    config = tmp_path / "new.toml"
    config.write_text(
        f'{IPV4_ONLY}publish.files.directory = "{tmp_path}"\n'
        'exclude.addresses = ["198.51.100.10"]\n'
        '[selections.storage]\nmode = "interface"\ninterfaces = ["eth1", "eth0"]\n'
    )
    command = [COMMAND, "check", "--config", str(config), "--output", "json"]
    [found] = json.loads(node.run(*command))["findings"]
    assert found["code"] == "exclusion-hits-published"
    assert found["data"]["selection"] == "storage"
    assert found["data"]["instead"] == "192.0.2.10"
