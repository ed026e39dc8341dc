"""What other software would choose, on hosts with real routes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND
from tests.netns.namespace import connect
from tracker.model import IPV4, IPV6
from tracker.profiles import live, procnet
from tracker.profiles.host import Host
from tracker.profiles.procnet import DefaultRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.netns.namespace import Namespace

FIRST, SECOND = "10.1.0.5", "10.2.0.5"
"""On eth2 and on eth3, which has the higher ifindex."""
HOPS = "nexthop via 10.2.0.1 dev eth3 nexthop via 10.1.0.1 dev eth2"

ON_EACH = {
    "kubelet": SECOND,
    "kep1664": FIRST,
    "openshift": None,
    "calico": SECOND,
    "talos-v1": FIRST,
    "talos-v2": FIRST,
    "cilium-fallback": FIRST,
    "flannel": None,
    "kube-vip": SECOND,
    "ovn-kubernetes": SECOND,
}
"""Of one default route over both links, the first nexthop over eth3."""


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks, and no default route yet."""
    for link, net in (("eth2", "10.1.0"), ("eth3", "10.2.0")):
        connect(host, link, router, f"peer-{link}")
        host.ip(f"addr add {net}.5/24 dev {link}")
    return host


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, "compare", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def compare(namespace: Namespace, *options: str) -> Any:
    extra = ("--option", *options) if options else ()
    done = call("--netns", namespace.name, *extra)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def ipv4(document: Any, names: Sequence[str] = tuple(ON_EACH)) -> dict[str, str | None]:
    return {name: document["profiles"][name]["ipv4"] for name in names}


def said(document: Any, name: str) -> str:
    profile = document["profiles"][name]
    text: str = profile["error"] or profile["reason"]
    return text


def test_one_multipath_default_has_every_answer(node: Namespace) -> None:
    node.ip(f"route add default {HOPS}")
    found = compare(node, "cilium.devices=eth+")
    assert ipv4(found) == ON_EACH
    assert found["agree"] is False
    own = found["profiles"]["addrtracker"]["ipv4"]
    others = {name for name, ip in ON_EACH.items() if ip != own}
    assert others <= set(found["differ"]["ipv4"])
    reasons = {
        "kubelet": "default route over eth3 in /proc/net/route",
        "kep1664": "eth2",
        "openshift": "a default route with several nexthops matches no interface",
        "calico": "first-found: eth3, the last of the links",
        "talos-v1": "lowest address on links that are up",
        "cilium-fallback": "lower ifindex",
        "flannel": "Found default route but could not determine interface",
        "kube-vip": "eth3",
        "ovn-kubernetes": "eth3: gateway interface",
    }
    for name, reason in reasons.items():
        assert reason in said(found, name), name


def test_a_group_of_nexthops_is_the_same_to_all(node: Namespace) -> None:
    node.ip("nexthop add id 1 via 10.2.0.1 dev eth3")
    node.ip("nexthop add id 2 via 10.1.0.1 dev eth2")
    node.ip("nexthop add id 10 group 1/2")
    node.ip("route add default nhid 10")
    assert ipv4(compare(node, "cilium.devices=eth+")) == ON_EACH


def test_a_group_that_the_kernel_does_not_spell_out_is_no_interface_to_most(
    node: Namespace,
) -> None:
    node.ip("nexthop add id 1 via 10.2.0.1 dev eth3")
    node.ip("nexthop add id 2 via 10.1.0.1 dev eth2")
    node.ip("nexthop add id 10 group 1/2")
    node.ip("route add default nhid 10")
    node.sysctl("ipv4/nexthop_compat_mode", 0)
    found = compare(node, "cilium.devices=eth+")
    assert ipv4(found) == {**ON_EACH, "kube-vip": None, "ovn-kubernetes": None}
    assert said(found, "kube-vip") == "Found default route but could not determine interface"


def test_a_deprecated_ipv6_vip_is_taken_by_those_that_take_the_newest(
    host: Namespace, router: Namespace
) -> None:
    connect(host, "eth2", router, "peer")
    host.ip("addr add 2001:db8::10/64 dev eth2 nodad")
    host.ip("addr add 2001:db8::100/128 dev eth2 nodad preferred_lft 0")
    host.wait(lambda: len(host.addresses("eth2", 6)) == 2, "both addresses")
    host.ip("-6 route add default via fe80::1 dev eth2")
    profiles = compare(host, "cilium.devices=eth+")["profiles"]
    node, vip = "2001:db8::10", "2001:db8::100"
    assert {name: profiles[name]["ipv6"] for name in ON_EACH} == {
        "kubelet": vip,
        "kep1664": node,
        "openshift": node,
        "calico": vip,
        "talos-v1": node,
        "talos-v2": vip,
        "cilium-fallback": node,
        "flannel": node,
        "kube-vip": vip,
        "ovn-kubernetes": vip,
    }


def test_a_secondary_address_that_is_lower_is_taken_by_those_that_sort(
    host: Namespace, router: Namespace
) -> None:
    connect(host, "eth2", router, "peer")
    host.ip("addr add 10.0.0.9/24 dev eth2")
    host.ip("addr add 10.0.0.1/24 dev eth2")
    host.ip("route add default via 10.0.0.254")
    first, lowest = "10.0.0.9", "10.0.0.1"
    found = ipv4(compare(host, "cilium.devices=eth+"))
    assert {name for name, ip in found.items() if ip == lowest} == {
        "openshift",
        "talos-v1",
        "talos-v2",
    }
    assert set(found.values()) == {first, lowest}


def test_of_two_metrics_those_that_sort_addresses_take_the_worse_route(node: Namespace) -> None:
    node.ip("route add default via 10.1.0.1 metric 200")
    node.ip("route add default via 10.2.0.1 metric 50")
    found = ipv4(compare(node, "cilium.devices=eth+"))
    sorting = {"talos-v1", "talos-v2", "cilium-fallback"}
    assert {name for name, ip in found.items() if ip == FIRST} == sorting
    assert set(found.values()) == {FIRST, SECOND}


def test_can_reach_is_what_the_kernel_says(node: Namespace) -> None:
    node.ip(f"route add default {HOPS}")
    node.ip("route add 203.0.113.0/24 via 10.1.0.1")
    for target in ("203.0.113.9", "198.51.100.7", "8.8.8.8"):
        [answer] = node.json(f"route get {target} ipproto udp dport 80")
        found = compare(node, f"calico.method=can-reach={target}")
        assert found["profiles"]["calico"]["ipv4"] == answer["prefsrc"], target
        assert f"source towards {target}" in said(found, "calico")


def test_a_label_marks_an_egress_address(node: Namespace) -> None:
    node.ip("route add default via 10.2.0.1")
    node.ip("addr add 10.2.0.4/24 dev eth3 label eth3:eip")
    assert compare(node)["profiles"]["openshift"]["ipv4"] == SECOND


def test_a_recording_is_compared_as_it_ends_however_short(node: Namespace, tmp_path: Path) -> None:
    """Nothing has settled yet when it ends; what would be chosen is known all the same."""
    node.ip(f"route add default {HOPS}")
    path = str(tmp_path / "recording")
    node.run(COMMAND, "record", path, "--seconds", "0.1")
    done = call("--from", path, "--option", "cilium.devices=eth+")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["profiles"]["addrtracker"]["ipv4"] == FIRST
    assert ipv4(found) == ON_EACH


def test_everybody_may_compare(node: Namespace) -> None:
    node.ip("route add default via 10.1.0.1")
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    shown = node.run(*unprivileged, "--inh-caps=-all", COMMAND, "compare", "--output", "json")
    assert json.loads(shown)["profiles"]["kubelet"]["ipv4"] == FIRST


def test_a_thousand_addresses_are_all_seen(node: Namespace) -> None:
    node.batch([f"addr add 10.2.{n // 200 + 1}.{n % 200 + 1}/16 dev eth3" for n in range(1000)])
    node.ip("route add default via 10.2.0.1")
    with node.entered():
        host = read()
    known = [a.ip for a in host.addresses if a.ifindex == node.json("link show eth3")[0]["ifindex"]]
    assert [str(ip) for ip in known if ip.version == 4] == node.addresses("eth3")
    assert compare(node)["profiles"]["kubelet"]["ipv4"] == SECOND


# What the kubelet sees.


def read() -> Host:
    return live.read("n1", live.Resolver("localhost"))


def plain(rows: Sequence[DefaultRow]) -> list[tuple[str, str, int]]:
    return [(row.family, row.interface, int(row.gateway or 0)) for row in rows]


def prepare_ipv6(node: Namespace) -> None:
    for link, net in (("eth2", 1), ("eth3", 2)):
        node.ip(f"addr add 2001:db8:{net}::5/64 dev {link} nodad")


@pytest.mark.parametrize(
    "routes",
    [
        [f"route add default {HOPS}"],
        ["route add default via 10.1.0.1 metric 200", "route add default via 10.2.0.1 metric 50"],
        ["route add default via 10.1.0.1", "route append default via 10.2.0.1"],
        ["route add 0.0.0.0/1 via 10.1.0.1", "route add default via 10.2.0.1"],
        ["route add unreachable default", "route add default via 10.1.0.1 metric 7"],
        ["route add default via 10.1.0.1 table 100"],
        ["route add default dev eth2"],
        ["route add default via inet6 fe80::1 dev eth3"],
        [
            "nexthop add id 1 via 10.2.0.1 dev eth3",
            "nexthop add id 2 via 10.1.0.1 dev eth2",
            "nexthop add id 10 group 1/2",
            "route add default nhid 10",
        ],
        ["-6 route add default nexthop via 2001:db8:2::1 nexthop via 2001:db8:1::1"],
        [
            "nexthop add id 1 via 2001:db8:2::1 dev eth3",
            "nexthop add id 2 via 2001:db8:1::1 dev eth2",
            "nexthop add id 10 group 1/2",
            "-6 route add default nhid 10",
        ],
        [
            "-6 route add default via 2001:db8:1::1",
            "-6 route add default via 2001:db8:2::1 table 100",
        ],
        ["-6 route add default dev eth2"],
        ["-6 route add unreachable default", "-6 route add default via 2001:db8:1::1 metric 9"],
    ],
    ids=lambda routes: routes[-1],
)
@pytest.mark.parametrize("compat", [0, 1])
def test_the_rows_are_those_of_the_kernels_files(
    node: Namespace, routes: list[str], compat: int
) -> None:
    prepare_ipv6(node)
    node.sysctl("ipv4/nexthop_compat_mode", compat)
    for command in routes:
        node.ip(command)
    with node.entered():
        host = read()
        assert host.default_rows is not None
        shown = plain(host.default_rows())
    assert plain(procnet.derived_rows(host)) == shown
    assert {route.family for route in host.routes if route.main} == {IPV4, IPV6}
