"""Behaviour of the field cases in which something happens."""

from __future__ import annotations

import copy
from collections.abc import Callable

from tests.cases.playing import Raw, answer, changed, configured, play, raw
from tracker.model import Criterion, Reject, State, Tier

BEHAVIOURS: dict[str, Callable[[str], None]] = {}

HOLD = 10
"""Seconds: stability.hold by default."""


def behaviour(name: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    def keep(check: Callable[[str], None]) -> Callable[[str], None]:
        BEHAVIOURS[name] = check
        return check

    return keep


def with_events(case: Raw, *events: Raw) -> Raw:
    return changed(case, events=[*case["input"].get("events", []), *events])


@behaviour("aardvark-725-teardown-order-with-tentative")
def _(engine: str) -> None:
    """Nothing published; noise and deletes for a link that is gone are no errors."""
    played = play(raw("aardvark-725-teardown-order-with-tentative"), engine)
    assert played.later == []
    assert played.engine.counters()["malformed"] == 0
    assert played.engine.counters()["links"] == 2
    assert played.warnings == set()


@behaviour("antrea-5111-uplink-renamed-bridge-takes-its-name")
def _(engine: str) -> None:
    """Zero changes; IPv6 stays on the renamed uplink, a port of OVS by now."""
    played = play(raw("antrea-5111-uplink-renamed-bridge-takes-its-name"), engine)
    assert played.later == []
    assert played.decision.choices["ipv4"].ifindex == 11
    assert played.interface("ipv4") == "eth0"
    assert played.interface("ipv6") == "eth0~"
    assert played.row("ipv6", "2001:db8:4::4").reject is Reject.NONE


@behaviour("basebox-470-newroute-with-nhid-only")
def _(engine: str) -> None:
    """The id leads to the group, its member and the link; also if the route comes first."""
    case = raw("basebox-470-newroute-with-nhid-only")
    events = case["input"]["events"]
    for order in (events, [events[2], events[0], events[1]]):
        played = play(changed(case, events=order), engine)
        assert played.row("ipv4", "172.16.1.1").tier is Tier.ROUTE
        assert played.reason("ipv4") == "default-route metric 20"
        assert played.engine.counters()["malformed"] == 0
        assert played.decision.warnings == ()


@behaviour("cilium-31528-flush-and-new-address")
def _(engine: str) -> None:
    """One change, after the hold time; IPv6 has no answer, though a default route.

    The case calls that "none". Here it is `lost`: the last value stays published and
    is marked stale, as an empty answer is never published over a value.
    """
    played = play(raw("cilium-31528-flush-and-new-address"), engine)
    assert [(c.family, c.old, c.new) for c in played.later] == [
        ("ipv4", "172.18.0.3", "192.168.8.123")
    ]
    assert HOLD <= played.seconds(played.later[0]) <= HOLD + 0.1
    ipv6 = played.decision.choices["ipv6"]
    assert (ipv6.state, ipv6.stale) == (State.LOST, True)
    assert played.view("ipv6").default_routes == 1
    assert played.view("ipv6").best is None


@behaviour("cilium-33234-lower-second-subnet-added")
def _(engine: str) -> None:
    """No change when a second subnet appears, though it sorts lower."""
    played = play(raw("cilium-33234-lower-second-subnet-added"), engine)
    assert played.later == []
    assert played.row("ipv4", "172.16.0.123").rank == 2


@behaviour("cloudproviderVsphere-576-node-with-tunl0-noise")
def _(engine: str) -> None:
    """A read that fails or is empty is not published as "no addresses"; it makes stale."""
    case = raw("cloudproviderVsphere-576-node-with-tunl0-noise")
    empty = {"type": "DUMP_FAILED", "data": {"empty": True}}
    for variant in (case, changed(case, events=[empty])):
        played = play(variant, engine)
        assert played.later == []
        assert {s.decision.choices["ipv4"].address for s in played.seen} <= {None, "10.240.84.35"}
        # Nothing was known only before the first answer.
        known = [s.decision.choices["ipv4"].address is not None for s in played.seen]
        assert known == sorted(known)
        assert not played.decision.stale
        assert played.engine.dirty() == []
    # While it cannot be read the answer stays, and is marked.
    often = {"type": "DUMP_FAILED", "data": {"times": 3}}
    played = play(changed(case, events=[often]), engine)
    assert played.later == []
    assert any(s.decision.stale for s in played.seen)
    assert not played.decision.stale


@behaviour("coreswitch-7-interface-moved-into-vrf")
def _(engine: str) -> None:
    """The address exists but belongs to a VRF."""
    played = play(raw("coreswitch-7-interface-moved-into-vrf"), engine)
    assert played.row("ipv4", "172.16.1.5").reject is Reject.OTHER_VRF
    assert [change.new for change in played.later] == ["192.0.2.5"]
    assert played.view("ipv4").default_routes == 1


@behaviour("finit-173-overrun-then-resync")
def _(engine: str) -> None:
    """A full dump reconciles, and what it does not show is deleted.

    "Messages arriving during the dump are replayed afterwards": test_messages.
    """
    case = raw("finit-173-overrun-then-resync")
    played = play(case, engine)
    quiet = play(changed(case, events=[]), engine)
    dumps = played.source.counters(), quiet.source.counters()
    for scope in ("link", "addr4", "addr6", "nexthop", "route4", "route6"):
        assert dumps[0][f"dumps.{scope}"] > dumps[1][f"dumps.{scope}"], scope
    assert played.rows("ipv4", "192.0.2.10") == []
    assert [row.address for row in played.explanation("ipv4")] == ["192.0.2.99"]
    assert not played.decision.stale


@behaviour("frr-19564-last-ipv4-address-removed-silently-drops-routes")
def _(engine: str) -> None:
    """The stale default over eth0 yields neither "none" nor a wrong answer."""
    played = play(raw("frr-19564-last-ipv4-address-removed-silently-drops-routes"), engine)
    assert [change.new for change in played.later] == ["198.51.100.10"]
    assert None not in {s.decision.choices["ipv4"].address for s in played.seen[-3:]}
    assert played.view("ipv4").default_routes == 1


@behaviour("iroh-4369-tentative-not-usable-yet")
def _(engine: str) -> None:
    """Only after the second message; never if detection failed; early if optimistic."""
    case = raw("iroh-4369-tentative-not-usable-yet")
    first, second = copy.deepcopy(case["input"]["events"])
    first["t"], second["t"] = 5, 6.5
    played = play(changed(case, events=[first, second]), engine)
    assert [c.new for c in played.changes] == ["fd00:1234::5"]
    assert 6.5 <= played.seconds(played.changes[0]) <= 8
    failed = copy.deepcopy(second)
    failed["data"]["flags"] = ["permanent", "tentative", "dadfailed"]
    assert play(changed(case, events=[first, failed]), engine).changes == []
    first["data"]["flags"] = ["permanent", "tentative", "optimistic"]
    early = play(changed(case, events=[first, second]), engine)
    assert early.seconds(early.changes[0]) < 6.5


@behaviour("k3s-2599-dhcpcd-puts-node-ip-on-flannel")
def _(engine: str) -> None:
    """No change at any step; the copy's removal does not remove the address of eth0."""
    case = raw("k3s-2599-dhcpcd-puts-node-ip-on-flannel")
    slow = copy.deepcopy(case)
    slow["input"]["events"][3]["t"] = 1
    for variant in (case, slow):
        played = play(variant, engine)
        assert played.later == []
        assert played.interface("ipv4") == "eth0"
        assert {s.decision.choices["ipv4"].interface for s in played.seen[1:]} <= {"", "eth0"}
        assert len(played.rows("ipv4", "192.168.1.125")) == 1


@behaviour("k3s-5019-forwarding-kills-ra-default")
def _(engine: str) -> None:
    """The answer stays, its address being valid; the lost route is told. Never the CNI's."""
    played = play(raw("k3s-5019-forwarding-kills-ra-default"), engine)
    assert played.later == []
    assert "ipv6: default route lost, 2001:db8:9d04::5 stays" in played.decision.warnings
    assert not any(change.new.startswith("fc15") for change in played.changes)
    assert not any(row.rank for row in played.explanation("ipv6") if row.address[:4] == "fc15")


@behaviour("k3s-7190-ipv6-later-than-ipv4-at-boot")
def _(engine: str) -> None:
    """IPv4 after its settle time, with a remark; IPv6 when it is no longer tentative."""
    case = raw("k3s-7190-ipv6-later-than-ipv4-at-boot")
    events = copy.deepcopy(case["input"]["events"])
    for event, at in zip(events, (8, 8.1, 9.5), strict=True):
        event["t"] = at
    played = play(changed(case, events=events), engine)
    ipv4, ipv6 = played.changes
    assert (ipv4.new, ipv6.new) == ("10.90.0.4", "2001:db8:90::4")
    assert 0 < ipv4.boot_ns - played.start_ns <= 1_000_000_000
    assert 9.5 <= played.seconds(ipv6) <= 11
    assert "ipv6: wanted, not there yet" in played.warnings
    assert played.decision.warnings == ()


@behaviour("k8s-74197-egress-ips-flap")
def _(engine: str) -> None:
    """Zero changes, also across egress addresses that move away and back."""
    case = raw("k8s-74197-egress-ips-flap")
    away, back = case["input"]["events"][-2:]
    for variant in (case, with_events(case, away, back, away, back)):
        played = play(variant, engine)
        assert played.later == []
        assert {s.decision.choices["ipv4"].address for s in played.seen[1:]} <= {"10.20.15.33"}


@behaviour("keepalived-155-same-ip-24-and-32")
def _(engine: str) -> None:
    """The /32 is still there, and no prefix covers the gateway any more."""
    played = play(raw("keepalived-155-same-ip-24-and-32"), engine)
    assert played.later == []
    row = played.row("ipv4", "192.168.122.7")
    assert row.prefixlen == 32
    from tracker.policy.criteria import DEFAULT_ORDER

    assert row.values[DEFAULT_ORDER.index(Criterion.GATEWAY_ON_LINK)] == 1


@behaviour("libnl-340-link-down-flushes-ipv4-routes-silently")
def _(engine: str) -> None:
    """The other link takes over after the hold time, and keeps it."""
    played = play(raw("libnl-340-link-down-flushes-ipv4-routes-silently"), engine)
    assert sorted((c.family, c.new) for c in played.later) == [
        ("ipv4", "198.51.100.10"),
        ("ipv6", "2001:db8:3::10"),
    ]
    assert all(HOLD <= played.seconds(c) <= HOLD + 0.1 for c in played.later)
    assert len(played.checkpoints) == 1
    assert played.view("ipv4").default_routes == 2


@behaviour("mco-2898-brex-takes-over-and-metrics-tie")
def _(engine: str) -> None:
    """The same value before, during and after, though its link is another one."""
    played = play(raw("mco-2898-brex-takes-over-and-metrics-tie"), engine)
    assert played.later == []
    assert {s.decision.choices["ipv4"].address for s in played.seen[1:]} <= {"192.168.10.20"}
    assert played.decision.choices["ipv4"].ifindex == 10


@behaviour("pyroute2-1188-nexthop-delete-drops-route-silently")
def _(engine: str) -> None:
    """The model has no default over the deleted nexthop; failback decides what follows."""
    case = raw("pyroute2-1188-nexthop-delete-drops-route-silently")
    played = play(case, engine)
    assert played.view("ipv4").default_routes == 1
    assert [change.new for change in played.later] == ["172.16.2.1"]
    kept = play(configured(case, failback=None), engine)
    assert kept.view("ipv4").default_routes == 1
    assert kept.later == []
    assert answer(kept.decision, "ipv4") == "172.16.1.1"
    assert "ipv4: no default route over swp1, 172.16.1.1 stays" in kept.decision.warnings


@behaviour("systemd-16071-renew-removes-and-readds")
def _(engine: str) -> None:
    """No change over any number of renewals; the watcher does see them."""
    case = raw("systemd-16071-renew-removes-and-readds")
    renewals = []
    for number in range(5):
        renewal = copy.deepcopy(case["input"]["events"])
        renewal[0]["t"] = number * 600
        renewals += renewal
    played = play(changed(case, events=renewals), engine)
    assert played.later == []
    assert played.source.counters()["seen.RTM_DELADDR"] == 5
    assert played.session.held == 5
