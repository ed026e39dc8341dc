"""Behaviour of the field cases that name a mode."""

from __future__ import annotations

import copy
from collections.abc import Callable

from tests.cases.playing import answer, changed, configured, play, raw
from tracker.model import Reject, Tier

BEHAVIOURS: dict[str, Callable[[str], None]] = {}


def behaviour(name: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    def keep(check: Callable[[str], None]) -> Callable[[str], None]:
        BEHAVIOURS[name] = check
        return check

    return keep


@behaviour("calico-5094-keepalived-vip-in-node-cidr")
def _(engine: str) -> None:
    """Whatever the order, and fe80 is no answer; the VIP is named beside it."""
    case = raw("calico-5094-keepalived-vip-in-node-cidr")
    addresses = case["input"]["addresses"]
    for each in (case, changed(case, addresses=addresses[::-1])):
        played = play(each, engine)
        assert answer(played.decision, "ipv4") == "192.168.200.51"
        assert answer(played.decision, "ipv6") is None
        assert played.row("ipv6", "fe80::2:51").reject is Reject.LINK_LOCAL
        assert played.warnings == {"ipv4: mode cidr also matches 192.168.200.59"}


@behaviour("cilium-12988-metal-bond-public-first")
def _(engine: str) -> None:
    """/31 and /127 are ordinary: the other address of each pair would do as well."""
    case = raw("cilium-12988-metal-bond-public-first")
    addresses = copy.deepcopy(case["input"]["addresses"])
    other = {"10.66.0.3": "10.66.0.2", "2001:db8:66::3": "2001:db8:66::2"}
    for address in addresses:
        address["address"] = other.get(address["address"], address["address"])
    decision = play(changed(case, addresses=addresses), engine).decision
    assert answer(decision, "ipv4") == "10.66.0.2"
    assert answer(decision, "ipv6") == "2001:db8:66::2"


@behaviour("cilium-46830-lo-127-before-node-ip")
def _(engine: str) -> None:
    """The IPv6 gateways of the IPv4 route are read; 127.0.0.1 is no candidate."""
    played = play(raw("cilium-46830-lo-127-before-node-ip"), engine)
    assert played.view("ipv4").default_routes == 1
    assert played.row("ipv4", "127.0.0.1").reject is Reject.LOOPBACK
    assert played.reason("ipv4") == "mode interface: lo"


@behaviour("eve-1888-stale-newlink-after-rename")
def _(engine: str) -> None:
    """The name belongs to ifindex 9, whatever the last message says."""
    played = play(raw("eve-1888-stale-newlink-after-rename"), engine)
    assert played.decision.choices["ipv4"].ifindex == 9
    assert (played.engine.link_name(9), played.engine.link_name(2)) == ("eth0", "keth0")


@behaviour("installer-2232-two-defaults-wanted-second")
def _(engine: str) -> None:
    """Without the mode it is the other one: test_without_its_mode_a_case_has_the_honest_answer."""
    played = play(raw("installer-2232-two-defaults-wanted-second"), engine)
    assert played.row("ipv4", "192.168.111.20").reject is Reject.NOT_IN_MODE
    assert not played.decision.choices["ipv4"].ambiguous


@behaviour("k8s-44702-nat-nic-first")
def _(engine: str) -> None:
    """Without the mode it is the other one: test_without_its_mode_a_case_has_the_honest_answer."""
    played = play(raw("k8s-44702-nat-nic-first"), engine)
    assert played.row("ipv4", "10.0.2.15").reject is Reject.NOT_IN_MODE
    assert played.reason("ipv4") == "mode cidr: inside 192.168.99.0/24"


@behaviour("ovnk-2338-node-address-is-leased-128")
def _(engine: str) -> None:
    """The address lies in the network, so its own length says nothing."""
    played = play(raw("ovnk-2338-node-address-is-leased-128"), engine)
    assert played.row("ipv6", "2001:db8:22::10").prefixlen == 128
    assert played.reason("ipv6") == "mode cidr: inside 2001:db8:22::/64"


@behaviour("runtimecfg-157-vip-in-foreign-subnet-matches-itself")
def _(engine: str) -> None:
    """The default route answers, and both reason and warning say so."""
    case = raw("runtimecfg-157-vip-in-foreign-subnet-matches-itself")
    played = play(case, engine)
    assert played.row("ipv4", "10.0.1.20").tier is Tier.LOOPBACK
    assert played.row("ipv4", "10.0.2.5").reject is Reject.EXCLUDED_ADDRESS
    assert played.reason("ipv4") == "fallback default-route: default-route metric 0"
    nothing = "ipv4: nothing is in the subnet of a hint (10.0.2.5), fallback default-route"
    also = "ipv4: the subnet of a hint (10.0.2.5) also matches 10.0.2.5 (excluded-address)"
    assert played.warnings == {nothing, also}
    strict = play(configured(case, fallback="none"), engine)
    assert answer(strict.decision, "ipv4") is None


@behaviour("talos-4318-vip-inside-valid-subnet")
def _(engine: str) -> None:
    """One address, and what was ignored is named."""
    case = raw("talos-4318-vip-inside-valid-subnet")
    played = play(case, engine)
    assert played.warnings == {"ipv4: mode cidr also matches 10.0.1.100 (excluded-address)"}
    unknown = play(configured(case, exclude=None), engine)
    choice = unknown.decision.choices["ipv4"]
    assert choice.address in {"10.0.1.2", "10.0.1.100"}
    assert any("also matches" in text for text in choice.warnings)
