"""What each field case says in words (`expected.behaviour`), as checks by the id of the case.

Where a text gives a variant ("also in the opposite order"), the variant is played as well.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from tests.cases import behaviour_events as events
from tests.cases import behaviour_modes as modes
from tests.cases.playing import Raw, answer, changed, configured, play, raw
from tracker.model import Criterion, Reject, Row, Tier

SETTLE_NS = 1_000_000_000
"""stability.settle by default."""

Behaviour = Callable[[str], None]
"""Plays a case (and its variants) on the engine that is named, and checks."""

BEHAVIOURS: dict[str, Behaviour] = {}


def behaviour(name: str) -> Callable[[Behaviour], Behaviour]:
    def keep(check: Behaviour) -> Behaviour:
        BEHAVIOURS[name] = check
        return check

    return keep


def value(row: Row, criterion: Criterion) -> int:
    """A criterion of the default policy; it has no list of networks, so the order is fixed."""
    from tracker.policy.criteria import DEFAULT_ORDER

    return row.values[DEFAULT_ORDER.index(criterion)]


def reversed_order(case: Raw, *kinds: str) -> Raw:
    return changed(case, **{kind: case["input"][kind][::-1] for kind in kinds})


def check_answers(case: Raw, engine: str, ipv4: str | None, ipv6: str | None) -> None:
    decision = play(case, engine).decision
    assert (answer(decision, "ipv4"), answer(decision, "ipv6")) == (ipv4, ipv6)


BEHAVIOURS.update(events.BEHAVIOURS)
BEHAVIOURS.update(modes.BEHAVIOURS)


@behaviour("amp-348-two-slaac-addresses-ambiguous")
def _(engine: str) -> None:
    """No refusal: flags settle it, so it is not even ambiguous."""
    played = play(raw("amp-348-two-slaac-addresses-ambiguous"), engine)
    assert not played.decision.choices["ipv6"].ambiguous
    assert played.warnings == set()
    temporary = played.row("ipv6", "2001:db8:8083:8:e092:3051:cbcf:5987")
    assert value(temporary, Criterion.NOT_TEMPORARY) == 1


@behaviour("calico-1628-docker-bridge-duplicate")
def _(engine: str) -> None:
    """Also in the opposite order, and with a bridge that has ports."""
    case = raw("calico-1628-docker-bridge-duplicate")
    check_answers(reversed_order(case, "links"), engine, "10.40.0.21", None)
    check_answers(reversed_order(case, "links", "addresses"), engine, "10.40.0.21", None)
    port = {"ifindex": 9, "name": "veth1234567", "kind": "veth", "master": "br-0123456789ab"}
    links = [*case["input"]["links"], {**port, "flags": ["UP", "LOWER_UP"]}]
    played = play(changed(case, links=links), engine)
    assert answer(played.decision, "ipv4") == "10.40.0.21"
    for address in ("172.17.0.1", "172.18.0.1"):
        assert played.row("ipv4", address).reject is Reject.EXCLUDED_INTERFACE


@behaviour("cilium-16019-node-ipv6-also-on-cni-device")
def _(engine: str) -> None:
    """Attributed to enp1s0; losing the copy on cilium_host is no loss."""
    case = raw("cilium-16019-node-ipv6-also-on-cni-device")
    gone = {"ifindex": 6, "address": "2001:db8:70::5", "prefixlen": 128}
    for variant in (case, changed(case, events=[{"type": "RTM_DELADDR", "data": gone}])):
        played = play(variant, engine)
        assert played.interface("ipv6") == "enp1s0"
        assert played.later == []
        assert {state.decision.choices["ipv6"].state for state in played.seen[1:]} <= {"stable"}


@behaviour("cilium-46843-route-only-vip-is-not-an-address")
def _(engine: str) -> None:
    """The two routes of table local are no candidates."""
    played = play(raw("cilium-46843-route-only-vip-is-not-an-address"), engine)
    assert {row.address for row in played.explanation("ipv4")} == {"127.0.0.1", "10.128.0.40"}
    assert played.row("ipv4", "10.128.0.40").prefixlen == 32


@behaviour("cilium-47981-stale-published-after-reboot")
def _(engine: str) -> None:
    """What is not on the host any more is dropped at once, and replaced when settled.

    The order of the families is kept.
    """
    case = raw("cilium-47981-stale-published-after-reboot")
    played = play(case, engine)
    assert played.decision.families == ("ipv6", "ipv4")
    assert {s.decision.choices["ipv6"].address for s in played.seen} == {
        None,
        "2001:db8:7::b2:2",
    }
    [published] = [c.boot_ns for c in played.changes if c.family == "ipv6"]
    assert published - played.start_ns <= SETTLE_NS
    # An absent family in a read is not a deletion.
    nothing = {"type": "DUMP_FAILED", "data": {"scopes": ["addr4"], "empty": True}}
    played = play(changed(case, events=[nothing]), engine)
    assert played.later == []
    assert answer(played.decision, "ipv4") == "192.168.7.30"


@behaviour("cloudinit-3690-default-only-in-unused-table")
def _(engine: str) -> None:
    """Says why: no default in main, so the only ordinary link with an address."""
    played = play(raw("cloudinit-3690-default-only-in-unused-table"), engine)
    assert "ipv4: no default route in table main, fallback physical" in played.warnings
    assert played.row("ipv4", "10.140.121.1").reject is Reject.EXCLUDED_INTERFACE
    assert [change.new for change in played.changes] == ["10.245.168.63"]


@behaviour("frr-1082-unreachable-mapped-prefixes-on-lo")
def _(engine: str) -> None:
    """::/96 is not ::/0; a bridge with the node's address is an ordinary link."""
    played = play(raw("frr-1082-unreachable-mapped-prefixes-on-lo"), engine)
    view = played.view("ipv6")
    assert (view.default_routes, view.bad_defaults) == (1, 0)
    assert played.interface("ipv4") == played.interface("ipv6") == "br0"


@behaviour("harvester-1459-same-ip-on-nic-and-bridge")
def _(engine: str) -> None:
    """One address, attributed to the bridge; nothing to warn of."""
    played = play(raw("harvester-1459-same-ip-on-nic-and-bridge"), engine)
    assert played.interface("ipv4") == "harvester-br0"
    assert [change.new for change in played.changes] == ["10.0.0.239"]
    assert played.warnings == set()


@behaviour("ifupdown2-149-local-vs-address-with-peer")
def _(engine: str) -> None:
    """The four forms of IFA_ADDRESS and IFA_LOCAL; the messages themselves: test_messages."""
    played = play(raw("ifupdown2-149-local-vs-address-with-peer"), engine)
    assert played.row("ipv4", "192.168.0.2").peer == "192.168.0.254"
    assert played.row("ipv6", "2001:db8:2000:100::e").peer == "2001:db8:2000:100::1"
    assert played.rows("ipv4", "192.168.0.254") == []
    assert played.rows("ipv6", "2001:db8:2000:100::1") == []


@behaviour("k3s-1144-dummy-default-for-airgap")
def _(engine: str) -> None:
    """The default's interface has no usable address: fallback to the real one."""
    played = play(raw("k3s-1144-dummy-default-for-airgap"), engine)
    assert "ipv4: no usable address behind one in table main, fallback physical" in played.warnings
    assert played.row("ipv4", "169.254.255.254").reject is Reject.LINK_LOCAL


@behaviour("k3s-3466-dhcpcd-link-local-defaults-on-veths")
def _(engine: str) -> None:
    """The lower metric of links that have only link-local addresses does not win."""
    played = play(raw("k3s-3466-dhcpcd-link-local-defaults-on-veths"), engine)
    assert played.view("ipv4").default_routes == 3
    assert played.interface("ipv4") == "wlan0"
    for address in ("169.254.44.10", "169.254.201.3"):
        assert played.row("ipv4", address).reject is Reject.LINK_LOCAL


@behaviour("k8s-44075-all-kernel-interfaces-published")
def _(engine: str) -> None:
    """Exactly one address of each family was ever published, never a link-local one."""
    played = play(raw("k8s-44075-all-kernel-interfaces-published"), engine)
    assert sorted(change.family for change in played.changes) == ["ipv4", "ipv6"]
    local = [row for row in played.explanation("ipv6") if row.address.startswith("fe80")]
    assert local
    assert all(row.reject is Reject.LINK_LOCAL for row in local)


@behaviour("k8s-95779-bgp-unnumbered-vlan-uplinks")
def _(engine: str) -> None:
    """IPv6: none. Losing one uplink changes nothing."""
    case = raw("k8s-95779-bgp-unnumbered-vlan-uplinks")
    for uplink in (10, 11):
        down = {"ifindex": uplink, "flags": ["BROADCAST", "MULTICAST"], "operstate": "DOWN"}
        played = play(changed(case, events=[{"type": "RTM_NEWLINK", "data": down}]), engine)
        assert played.later == []
        assert answer(played.decision, "ipv4") == "198.51.100.17"
        assert answer(played.decision, "ipv6") is None


@behaviour("kubeadm-1156-routing-on-host-lo-32")
def _(engine: str) -> None:
    """IPv6 has fe80 only, and unreachable routes to /96 and /24 are no defaults."""
    played = play(raw("kubeadm-1156-routing-on-host-lo-32"), engine)
    view = played.view("ipv6")
    assert (view.default_routes, view.bad_defaults) == (0, 0)
    assert played.reason("ipv6").startswith("no default route in table main")
    assert played.row("ipv4", "127.0.0.1").reject is Reject.LOOPBACK


@behaviour("kubeadm-3102-blackhole-default-star-interface")
def _(engine: str) -> None:
    """No crash; the reason names the type of the route."""
    played = play(raw("kubeadm-3102-blackhole-default-star-interface"), engine)
    assert played.decision.choices["ipv4"].state == "none"
    assert "unreachable" in played.reason("ipv4")


@behaviour("kubevip-1198-ipv6-vip-last-added-source")
def _(engine: str) -> None:
    """The kernel would take the address that was added last; the ranking knows a VIP."""
    played = play(raw("kubevip-1198-ipv6-vip-last-added-source"), engine)
    vip, own = (played.row("ipv6", f"2001:db8::{n}") for n in ("10", "5"))
    assert (own.rank, vip.rank) == (1, 2)
    assert value(vip, Criterion.NOT_VIP_LIKE) == 1


@behaviour("kubevip-1371-ipv6-ecmp-default")
def _(engine: str) -> None:
    """A multipath default is a default: its nexthops are searched."""
    played = play(raw("kubevip-1371-ipv6-ecmp-default"), engine)
    assert played.view("ipv6").default_routes == 1
    assert played.reason("ipv6") == "default-route metric 1024"


@behaviour("kubevip-741-vip-replaces-internal-ip")
def _(engine: str) -> None:
    """The leased address, though .10 sorts lower; a global address before a unique local one."""
    played = play(raw("kubevip-741-vip-replaces-internal-ip"), engine)
    vip = played.row("ipv4", "192.168.163.10")
    assert vip.rank == 2
    assert value(vip, Criterion.NOT_VIP_LIKE) == 1
    assert value(played.row("ipv6", "fd00:741::13"), Criterion.GLOBAL_BEFORE_ULA) == 1


@behaviour("kubevirtccm-339-eui64-and-assigned")
def _(engine: str) -> None:
    """One IPv6 address only; the autoconfigured one is there for when the other is not."""
    case = raw("kubevirtccm-339-eui64-and-assigned")
    assert [c.new for c in play(case, engine).changes if c.family == "ipv6"] == [
        "2001:db8:a00b:482::c"
    ]
    left = [a for a in case["input"]["addresses"] if a["address"] != "2001:db8:a00b:482::c"]
    check_answers(
        changed(case, addresses=left), engine, "10.145.189.14", "2001:db8:a00b:482::e91:9e27"
    )


@behaviour("microk8s-3669-two-defaults-same-metric")
def _(engine: str) -> None:
    """The tie is told, the incumbent keeps it, and the CNI's device never wins.

    The text breaks the tie by table order; docs/engine.md by ifindex, as a result must not depend
    on the order of a dump. Both give the same answer here.
    """
    case = raw("microk8s-3669-two-defaults-same-metric")
    played = play(case, engine)
    assert played.decision.choices["ipv4"].ambiguous
    assert played.row("ipv4", "10.1.55.64").reject is Reject.EXCLUDED_INTERFACE
    check_answers(reversed_order(case, "routes", "addresses"), engine, "172.16.99.226", None)
    kept = configured(case, previously_published=["192.168.1.32"])
    check_answers(kept, engine, "192.168.1.32", None)


@behaviour("microshift-876-no-default-use-bridge")
def _(engine: str) -> None:
    """Never loopback, never the CNI's port."""
    played = play(raw("microshift-876-no-default-use-bridge"), engine)
    assert [change.new for change in played.changes] == ["192.168.122.50"]
    assert played.reason("ipv4") == "fallback interface: br-ex"
    assert played.row("ipv4", "10.42.0.2").reject is Reject.EXCLUDED_INTERFACE
    assert played.row("ipv4", "127.0.0.1").reject is Reject.LOOPBACK


@behaviour("moby-25327-private-anchor-on-public-nic")
def _(engine: str) -> None:
    """The address whose prefix holds the gateway, not the private one."""
    played = play(raw("moby-25327-private-anchor-on-public-nic"), engine)
    anchor = played.row("ipv4", "10.18.0.12")
    assert value(anchor, Criterion.GATEWAY_ON_LINK) == 1
    assert value(played.row("ipv4", "203.0.113.154"), Criterion.GATEWAY_ON_LINK) == 0


@behaviour("netifaces-71-split-default-vpn")
def _(engine: str) -> None:
    """0.0.0.0/1 is no default, although its destination is all zero."""
    played = play(raw("netifaces-71-split-default-vpn"), engine)
    assert played.view("ipv4").default_routes == 1
    assert played.row("ipv4", "10.58.112.8").reject is Reject.NO_DEFAULT_ROUTE


@behaviour("netlink-66-two-ipv4-defaults-same-weight-crash")
def _(engine: str) -> None:
    """The first nexthop wins, and goes on to win if the kernel lists them the other way.

    At equal weights the lowest ifindex wins (docs/engine.md), whatever the order.
    """
    case = raw("netlink-66-two-ipv4-defaults-same-weight-crash")
    route = copy.deepcopy(case["input"]["routes"][0])
    route["nexthops"].reverse()
    swapped = {"type": "RTM_NEWROUTE", "data": {**route, "replace": True}}
    for variant in (changed(case, events=[swapped]), changed(case, routes=[route])):
        played = play(variant, engine)
        assert played.later == []
        assert answer(played.decision, "ipv4") == "192.0.2.10"


@behaviour("nmstate-1153-default-in-other-table-first")
def _(engine: str) -> None:
    """Metric 50 of table 1001 is not compared with metric 100 of main."""
    played = play(raw("nmstate-1153-default-in-other-table-first"), engine)
    assert played.view("ipv4").default_routes == 1
    assert played.row("ipv4", "10.99.0.5").reject is Reject.OTHER_VRF


@behaviour("nmstate-1174-main-table-default-not-found")
def _(engine: str) -> None:
    """Found wherever the id of the table stands; the messages themselves: test_messages."""
    played = play(raw("nmstate-1174-main-table-default-not-found"), engine)
    assert played.view("ipv4").default_routes == 1
    assert played.reason("ipv4") == "default-route metric 426"


@behaviour("ovnk-3170-ipv6-single-nexthop-multipath")
def _(engine: str) -> None:
    """The default is found through its only nexthop."""
    played = play(raw("ovnk-3170-ipv6-single-nexthop-multipath"), engine)
    assert played.reason("ipv6") == "default-route metric 1024"
    assert played.row("ipv6", "2001:db8:11::20").tier is Tier.ROUTE


@behaviour("ovnk-3552-ipv6-vip-vs-dhcpv6-both-128")
def _(engine: str) -> None:
    """In any order; and with the leased one excluded the deprecated one is better than none."""
    case = raw("ovnk-3552-ipv6-vip-vs-dhcpv6-both-128")
    leased = "fd2e:6f44:5dd8:c956::17"
    check_answers(reversed_order(case, "addresses"), engine, None, leased)
    check_answers(configured(case, exclude=[leased]), engine, None, "fd2e:6f44:5dd8:c956::4")
    assert play(case, engine).row("ipv6", "fd69::2").reject is Reject.DAD_FAILED


@behaviour("rancher-16597-fe80-as-node-ip")
def _(engine: str) -> None:
    """Also when the address is not there yet at boot: nothing is published until it is."""
    case = raw("rancher-16597-fe80-as-node-ip")
    own = [a for a in case["input"]["addresses"] if a["address"] == "10.85.175.47"]
    others = [a for a in case["input"]["addresses"] if a not in own]
    comes = [{"type": "RTM_NEWADDR", "data": own[0], "t": 5}]
    played = play(changed(case, addresses=others, events=comes), engine)
    assert [(c.new, 5 <= played.seconds(c) <= 7) for c in played.changes] == [
        ("10.85.175.47", True)
    ]
    assert played.row("ipv6", "fe80::2:8e31").reject is Reject.LINK_LOCAL


@behaviour("runtimecfg-218-two-vips-exclude-both")
def _(engine: str) -> None:
    """Both are excluded, in any order."""
    case = raw("runtimecfg-218-two-vips-exclude-both")
    for variant in (case, reversed_order(case, "addresses")):
        played = play(variant, engine)
        assert [change.new for change in played.changes] == ["192.0.2.50"]
        for vip in ("192.0.2.101", "192.0.2.102"):
            assert played.row("ipv4", vip).reject is Reject.EXCLUDED_ADDRESS


@behaviour("systemd-33470-two-ra-routers-two-shapes")
def _(engine: str) -> None:
    """Two routes or one with two nexthops: the same; one router's end changes nothing."""
    case = raw("systemd-33470-two-ra-routers-two-shapes")
    prefix, first, second = case["input"]["routes"]
    gateways = [{"oif": 2, "weight": 1, "gateway": r["gateway"]} for r in (first, second)]
    whole = {k: v for k, v in first.items() if k not in ("gateway", "oif", "expires")}
    shape_b = changed(case, routes=[prefix, {**whole, "nexthops": gateways}])
    one, other = play(case, engine), play(shape_b, engine)
    assert one.explanation("ipv6") == other.explanation("ipv6")
    assert one.reason("ipv6") == other.reason("ipv6")
    assert one.warnings == other.warnings
    ended = play(changed(case, routes=[prefix, {**first, "expires": 20}, second]), engine)
    assert ended.view("ipv6").default_routes == 1
    assert ended.later == []
    assert ended.reason("ipv6") == one.reason("ipv6")


@behaviour("talosext-337-tailscale-sorts-below")
def _(engine: str) -> None:
    """The same for an address that sorts below the tunnel's."""
    case = raw("talosext-337-tailscale-sorts-below")
    addresses = copy.deepcopy(case["input"]["addresses"])
    own = next(a for a in addresses if a["address"] == "192.168.1.50")
    own["address"] = "10.1.1.50"
    check_answers(changed(case, addresses=addresses), engine, "10.1.1.50", None)
