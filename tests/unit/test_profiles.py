"""Profiles: the options that the real systems have, and what they say."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from tracker.capture import names
from tracker.errors import UsageError
from tracker.profiles.choice import Choice, ProfileError
from tracker.profiles.host import Address, Hop, Host, Link, Nexthop, Route, global_unicast
from tracker.profiles.reach import source_towards
from tracker.profiles.registry import PROFILES, choose, parse_options

UP = names.IFF_UP | names.IFF_LOWER_UP | names.IFF_RUNNING
LO = Link(1, "lo", UP | names.IFF_LOOPBACK, type=names.LINK_TYPES["loopback"])
ETH0, ETH1 = Link(2, "eth0", UP), Link(3, "eth1", UP)


def address(ifindex: int, text: str, **values: Any) -> Address:
    plain, _, length = text.partition("/")
    return Address(ifindex, ip_address(plain), int(length), **values)


def route(dst: str, oif: int = 0, gateway: str = "", **values: Any) -> Route:
    plain, _, length = dst.partition("/")
    ip = ip_address(plain)
    gw = ip_address(gateway) if gateway else None
    family = "ipv4" if ip.version == 4 else "ipv6"
    return Route(family, ip, int(length), oif=oif, gateway=gw, **values)


def two_uplinks(**values: Any) -> Host:
    """eth0 with IPv4 and IPv6 and the default routes; eth1 with another network."""
    addresses = [
        address(1, "127.0.0.1/8", scope=names.SCOPE_HOST),
        address(2, "10.0.0.5/24"),
        address(3, "192.168.7.5/24"),
        address(2, "2001:db8::5/64"),
        address(3, "fd00:7::5/64"),
    ]
    routes = [
        route("0.0.0.0/0", 2, "10.0.0.1"),
        route("10.0.0.0/24", 2),
        route("192.168.7.0/24", 3),
        route("203.0.113.0/24", 3, "192.168.7.1"),
        route("::/0", 2, "fe80::1", metric=1024),
    ]
    return Host([LO, ETH0, ETH1], addresses, routes, hostname="n1", **values)


def answer(profile: str, host: Host | None = None, **options: str) -> Choice:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return choose(profile, host or two_uplinks(), named)


def ips(choice: Choice) -> tuple[str | None, str | None]:
    return choice.ipv4, choice.ipv6


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_answers_on_a_plain_host(profile: str) -> None:
    choice = answer(profile)
    assert choice.error is None
    assert choice.reason
    assert "\n" not in choice.reason


@pytest.mark.parametrize("profile", PROFILES)
def test_an_empty_host_is_an_error_or_no_answer(profile: str) -> None:
    choice = answer(profile, Host([], [], []))
    assert ips(choice) == (None, None)
    assert choice.error or choice.families == ()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_names_the_source_and_the_commit_that_it_follows(profile: str) -> None:
    import sys

    text = sys.modules[PROFILES[profile].choose.__module__].__doc__ or ""
    assert "Follows " in text
    assert any(len(word.strip("().,;:")) >= 8 and _is_hex(word) for word in text.split())


def _is_hex(word: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in word.strip("().,;:"))


# The kubelet.


def test_the_kubelet_publishes_one_family_unless_told() -> None:
    assert answer("kubelet").families == ("ipv4",)
    both = answer("kubelet", node_ip="fd00:7::5,10.0.0.5")
    assert (ips(both), both.reason) == (("10.0.0.5", "fd00:7::5"), "--node-ip")


def test_the_unspecified_address_prefers_a_family() -> None:
    assert ips(answer("kubelet", node_ip="::")) == (None, "2001:db8::5")
    only_ipv4 = Host([ETH0], [address(2, "10.0.0.5/24")], [route("0.0.0.0/0", 2, "10.0.0.1")])
    assert answer("kubelet", only_ipv4, node_ip="::").ipv4 == "10.0.0.5"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("10.0.0.99", "not found in the host's network interfaces"),
        ("127.0.0.1", "loopback"),
        ("169.254.0.1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("10.0.0.5,10.0.0.6", "two ipv4 addresses"),
    ],
)
def test_a_wrong_node_ip_is_an_error(value: str, said: str) -> None:
    assert said in (answer("kubelet", node_ip=value).error or "")


def test_the_name_service_comes_before_routes() -> None:
    found = answer("kubelet", two_uplinks(resolved=(ip_address("192.168.7.5"),)))
    assert found.ipv4 == "192.168.7.5"
    assert found.reason == "the host name n1 resolves to it"
    assert answer("kubelet", lookup="127.0.1.1,192.168.7.5").ipv4 == "192.168.7.5"
    elsewhere = two_uplinks(resolved=(ip_address("192.0.2.99"),))
    assert answer("kubelet", elsewhere).ipv4 == "10.0.0.5"
    resolved = two_uplinks(resolved=(ip_address("192.168.7.5"),))
    assert answer("kubelet", resolved, lookup="none").ipv4 == "10.0.0.5"


def test_with_an_external_provider_there_is_the_host_name_alone() -> None:
    assert answer("kubelet-external").families == ()
    assert answer("kubelet-external", node_ip="0.0.0.0").ipv4 == "10.0.0.5"


def test_what_an_external_provider_lists_is_published() -> None:
    listed = "InternalIP:10.9.9.9,InternalIP:10.0.0.5,ExternalIP:203.0.113.4"
    assert answer("kubelet-external", provider=listed).ipv4 == "10.9.9.9"
    assert answer("kubelet-external", provider=listed, node_ip="10.0.0.5").ipv4 == "10.0.0.5"
    refused = answer("kubelet-external", provider=listed, node_ip="192.168.7.5")
    assert "192.168.7.5 is not among" in (refused.error or "")


def test_one_route_that_cannot_be_looked_up_ends_detection() -> None:
    host = two_uplinks()
    broken = Host(host.links, host.addresses, [route("0.0.0.0/0", type=7), *host.routes])
    assert answer("kubelet", broken).error == "no such network interface: *"


def test_k3s_looks_for_both_families() -> None:
    assert ips(answer("k3s")) == ("10.0.0.5", "2001:db8::5")


# KEP-1664.


def test_the_proposed_default_skips_dead_nexthops_and_virtual_addresses() -> None:
    dead = Hop(2, ip_address("10.0.0.1"), names.RTNH_F_LINKDOWN)
    ways = (dead, Hop(3, ip_address("192.168.7.1")))
    host = Host(
        [ETH0, ETH1],
        [address(2, "10.0.0.5/24"), address(3, "192.168.7.9/24"), address(3, "192.168.7.5/24")],
        [route("0.0.0.0/0", hops=ways)],
    )
    assert answer("kep1664", host).ipv4 == "192.168.7.9"
    assert answer("kep1664", host, vips="192.168.7.9").ipv4 == "192.168.7.5"


def test_the_proposed_default_knows_nexthop_objects() -> None:
    group = [
        Nexthop(1, Hop(3, ip_address("192.168.7.1"))),
        Nexthop(2, Hop(2, ip_address("10.0.0.1"))),
        Nexthop(10, members=(1, 2)),
    ]
    known = two_uplinks()
    host = Host(known.links, known.addresses, [route("0.0.0.0/0", nhid=10)], group)
    assert answer("kep1664", host).ipv4 == "10.0.0.5"
    assert answer("kubelet", host).ipv4 == "192.168.7.5"


def test_the_proposed_default_takes_lo_where_uplinks_have_no_address() -> None:
    host = Host([LO, ETH0], [address(1, "10.255.0.1/32")], [route("0.0.0.0/0", 2, "169.254.0.1")])
    assert answer("kep1664", host).ipv4 == "10.255.0.1"


# OpenShift.


def test_a_hint_chooses_its_subnet_and_excludes_itself() -> None:
    found = answer("openshift", hint="192.168.7.1")
    assert ips(found) == ("192.168.7.5", "fd00:7::5")
    assert "the subnet of 192.168.7.5/24 on eth1 holds 192.168.7.1" in found.reason
    assert answer("openshift", hint="192.168.7.5").ipv4 == "10.0.0.5"


def test_vips_choose_an_interface_before_the_default_route() -> None:
    assert answer("openshift", vips="192.168.7.100,192.168.7.101").ipv4 == "192.168.7.5"
    assert answer("openshift", vips="172.31.0.1").ipv4 == "10.0.0.5"


def test_a_leased_ipv6_address_has_the_subnet_of_router_advertisements() -> None:
    leased = Host(
        [ETH0],
        [address(2, "2001:db8::5/128")],
        [route("2001:db8::/64", 2, protocol=names.RTPROT_RA)],
    )
    assert answer("openshift", leased, vips="2001:db8::99").ipv6 == "2001:db8::5"


def test_the_bridge_address_of_ovn_is_skipped_on_ovn() -> None:
    host = Host(
        [ETH0],
        [address(2, "fd69::2/125"), address(2, "fd70::5/64")],
        [route("::/0", 2, "fe80::1")],
    )
    assert answer("openshift", host).ipv6 == "fd70::5"
    assert answer("openshift", host, network_type="OpenShiftSDN").ipv6 == "fd69::2"


def test_which_of_two_subnets_is_first_is_said_to_be_chance() -> None:
    host = Host([ETH0, ETH1], [address(2, "10.0.0.5/8"), address(3, "10.0.1.5/8")], [])
    assert "eth1: which is first is chance" in answer("openshift", host, vips="10.0.0.1").reason


# Calico.


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("first-found", ("192.168.7.5", "fd00:7::5")),
        ("interface=eth0", ("10.0.0.5", "2001:db8::5")),
        ("skip-interface=eth1", ("10.0.0.5", "2001:db8::5")),
        ("cidr=10.0.0.0/8", ("10.0.0.5", None)),
        ("can-reach=8.8.8.8", ("10.0.0.5", None)),
        ("can-reach=203.0.113.9", ("192.168.7.5", None)),
        ("can-reach=2001:db8:ffff::1", (None, "2001:db8::5")),
    ],
)
def test_each_method_of_calico(method: str, expected: tuple[str | None, str | None]) -> None:
    found = answer("calico", method=method)
    assert ips(found) == expected
    assert found.reason.startswith(method.partition("=")[0])


def test_calico_speaks_of_one_family_where_its_target_has_one() -> None:
    assert answer("calico", method="can-reach=8.8.8.8").families == ("ipv4",)
    both = answer("calico", method="can-reach=8.8.8.8", method6="first-found")
    assert ips(both) == ("10.0.0.5", "fd00:7::5")


def test_calico_takes_the_nodes_own_address() -> None:
    found = answer("calico", method="kubernetes-internal-ip", internal_ips="10.0.0.5")
    assert ips(found) == ("10.0.0.5", None)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("interface=ens.*", "no valid host interfaces found"),
        ("cidr=172.16.0.0/12", "no valid IPv4 addresses found on the host interfaces"),
        ("interface=(", "invalid interface regex"),
        ("kubernetes-internal-ip", "the node has no IPv4 InternalIP"),
    ],
)
def test_calico_fails_in_its_own_words(method: str, said: str) -> None:
    assert said in (answer("calico", method=method).error or "")


# Talos.


def test_talos_takes_subnets_in_order_and_leaves_out_those_of_the_cluster() -> None:
    assert answer("talos-v1", valid_subnets="192.168.0.0/16,0.0.0.0/0").ipv4 == "192.168.7.5"
    assert answer("talos-v1", exclude_subnets="10.0.0.5").ipv4 == "192.168.7.5"
    assert answer("talos-v1", pod_subnets="10.0.0.0/16").ipv4 == "192.168.7.5"
    assert answer("talos-v1", valid_subnets="0.0.0.0/0,!10.0.0.0/8").ipv4 == "192.168.7.5"
    assert answer("talos-v2", valid_subnets="172.31.0.0/16").error == "no suitable node IP found"


def test_talos_leaves_out_links_without_carrier() -> None:
    dark = Link(2, "eth0", names.IFF_UP)
    host = Host([dark, ETH1], two_uplinks().addresses, [])
    assert answer("talos-v1", host).ipv4 == "192.168.7.5"


# Cilium.


def test_cilium_lists_what_each_device_has() -> None:
    found = answer("cilium")
    assert found.ipv4 == "10.0.0.5"
    assert found.reason == (
        "primary by device: eth0: 10.0.0.5 2001:db8::5; eth1: 192.168.7.5 fd00:7::5"
    )
    assert answer("cilium", devices="eth1").ipv4 == "192.168.7.5"
    assert answer("cilium-nodeport", nodeport_addresses="192.168.0.0/16").ipv4 == "192.168.7.5"


@pytest.mark.parametrize(
    ("link", "routes", "selected"),
    [
        (Link(2, "eth0", UP), [], True),
        (Link(2, "eth0", 0), [], False),
        (Link(2, "docker0", UP), [], False),
        (Link(2, "br0", UP, "bridge"), [], False),
        (Link(2, "eth0", UP, master=7), [], False),
        (Link(2, "eth0", UP, "veth"), [], False),
        (Link(2, "eth0", UP, "veth"), [route("0.0.0.0/0", 2, "10.0.0.1")], True),
    ],
)
def test_which_devices_cilium_selects(link: Link, routes: list[Route], selected: bool) -> None:
    found = answer("cilium", Host([link], [address(2, "10.0.0.5/24")], routes))
    assert (found.ipv4 == "10.0.0.5") == selected


def test_cilium_takes_a_local_route_for_an_address() -> None:
    forwarded = route("10.9.9.9/32", 2, table=255, type=2, scope=254, protocol=66)
    host = Host([ETH0], [address(2, "10.128.0.4/32")], [forwarded])
    nodeport = answer("cilium-nodeport", host, nodeport_addresses="10.9.9.0/24")
    assert nodeport.ipv4 == "10.9.9.9"
    assert answer("cilium", host).ipv4 == "10.128.0.4"


def test_the_fallback_of_cilium_is_found_on_devices_that_count() -> None:
    veth = Link(2, "eth0", UP, "veth")
    addresses = [address(1, "127.0.0.1/8", scope=names.SCOPE_HOST), address(2, "10.0.0.5/24")]
    host = Host([LO, veth], addresses, [])
    assert answer("cilium-fallback", host).ipv4 == "127.0.0.1"
    assert answer("cilium-fallback", host, devices="eth+").ipv4 == "10.0.0.5"


# flannel, kube-vip, OVN-Kubernetes.


def test_flannel_has_one_interface() -> None:
    assert ips(answer("flannel")) == ("10.0.0.5", "2001:db8::5")
    assert ips(answer("flannel", iface="eth1", stack="ipv4")) == ("192.168.7.5", None)
    assert answer("flannel", iface="192.168.7.5", stack="ipv4").ipv4 == "192.168.7.5"
    assert answer("flannel", iface_regex="^192", stack="ipv4").ipv4 == "192.168.7.5"
    assert answer("flannel", iface_regex="eth1", stack="ipv4").ipv4 == "192.168.7.5"
    assert answer("flannel", iface_regex="(").error == (
        "could not compile the IP address regex: error parsing regexp: missing closing ): `(`"
    )
    reached = answer("flannel", iface_can_reach="203.0.113.9", stack="ipv4")
    assert reached.ipv4 == "192.168.7.5"
    assert "no such interface" in (answer("flannel", iface="ens9").error or "")


def apart() -> Host:
    """The default routes of the two families over different links."""
    known = two_uplinks()
    return Host(
        known.links,
        known.addresses,
        [route("0.0.0.0/0", 2, "10.0.0.1"), route("::/0", 3, "fe80::1")],
    )


def test_families_over_different_links_are_too_much_for_some() -> None:
    assert "must be the same" in (answer("flannel", apart()).error or "")
    assert "multiple gateway interfaces detected: 'eth0' 'eth1'" in (
        answer("ovn-kubernetes", apart()).error or ""
    )
    assert answer("ovn-kubernetes", apart(), stack="ipv6").ipv6 == "fd00:7::5"


def test_ovn_kubernetes_needs_a_gateway() -> None:
    on_link = Host([ETH0], [address(2, "10.0.0.5/24")], [route("0.0.0.0/0", 2)])
    assert answer("ovn-kubernetes", on_link).error == "no default gateway interface found"
    assert answer("kube-vip", on_link).ipv4 == "10.0.0.5"


def test_ovn_kubernetes_with_an_interface_wants_all_nexthops_on_it() -> None:
    ways = (Hop(2, ip_address("10.0.0.1")), Hop(3, ip_address("192.168.7.1")))
    host = Host([ETH0, ETH1], two_uplinks().addresses, [route("0.0.0.0/0", hops=ways)])
    assert answer("ovn-kubernetes", host).ipv4 == "10.0.0.5"
    named = answer("ovn-kubernetes", host, gateway_interface="eth1")
    assert named.error == "no default gateway interface found"


# Without a kernel.


def test_several_ways_have_no_source_that_a_file_could_tell() -> None:
    ways = (Hop(2, ip_address("10.0.0.1")), Hop(3, ip_address("192.168.7.1")))
    host = Host([ETH0, ETH1], two_uplinks().addresses, [route("0.0.0.0/0", hops=ways)])
    with pytest.raises(ProfileError, match=r"which of eth0, eth1 .* flow hash"):
        source_towards(host, ip_address("8.8.8.8"))


def test_prefsrc_and_the_gateways_subnet_tell_the_source() -> None:
    named = route("0.0.0.0/0", 2, "10.0.0.1", prefsrc=ip_address("10.255.0.1"))
    beside = [address(2, "172.16.0.5/24"), address(2, "10.0.0.5/24")]
    target = ip_address("8.8.8.8")
    assert str(source_towards(Host([ETH0], beside, [named]), target)) == "10.255.0.1"
    plain = Host([ETH0], beside, [route("0.0.0.0/0", 2, "10.0.0.1")])
    assert str(source_towards(plain, target)) == "10.0.0.5"


# Options.


def test_an_option_goes_to_all_profiles_of_its_name() -> None:
    found = parse_options(["talos.valid-subnets=10.0.0.0/8", "kubelet.provider=InternalIP:1.1.1.1"])
    assert found["talos-v1"] == found["talos-v2"] == {"valid-subnets": "10.0.0.0/8"}
    assert found["kubelet"] == {}
    assert found["kubelet-external"] == {"provider": "InternalIP:1.1.1.1"}


@pytest.mark.parametrize("text", ["calico", "calico.method", "docker.x=1", "calico.colour=red"])
def test_an_option_that_nobody_has_is_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_options([text])
    assert str(refused.value).startswith(f"compare: --option {text}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("profile", "option", "value", "allowed"),
    [
        ("calico", "method", "nearest", "first-found"),
        ("calico", "method", "cidr=nowhere", "first-found"),
        ("talos-v1", "valid-subnets", "everywhere", "networks, with commas"),
        ("openshift", "vips", "10.0.0.0/8", "addresses, with commas"),
        ("openshift", "prefer-ipv6", "yes", "false, true"),
        ("flannel", "stack", "both", "auto, ipv4, ipv6, dual"),
        ("flannel", "iface-can-reach", "1.1.1.1,2.2.2.2", "one address"),
        ("cilium", "local-max-addr-scope", "link", "0 to 255"),
        ("kubelet-external", "provider", "10.0.0.1", "InternalIP:ADDRESS"),
    ],
)
def test_a_wrong_value_says_what_is_allowed(
    profile: str, option: str, value: str, allowed: str
) -> None:
    with pytest.raises(UsageError) as refused:
        choose(profile, two_uplinks(), {option: value})
    assert str(refused.value).startswith(f"compare: --option {profile}.{option}={value}; allowed: ")
    assert allowed in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", True),
        ("100.64.0.1", True),
        ("fd00::1", True),
        ("::ffff:10.0.0.1", True),
        ("127.0.0.1", False),
        ("169.254.1.1", False),
        ("255.255.255.255", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("fe80::1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
    ],
)
def test_what_go_calls_global_unicast(text: str, expected: bool) -> None:
    assert global_unicast(ip_address(text)) is expected
