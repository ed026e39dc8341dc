"""Why an address is no candidate, on both engines: each filter, and their order."""

from __future__ import annotations

import pytest

from tests.build import (
    DADFAILED,
    DEPRECATED,
    MAIN,
    OPTIMISTIC,
    PERMANENT,
    TENTATIVE,
    Host,
    addr,
    gone,
    link,
    route,
)
from tracker.capture.record import Record
from tracker.engine.base import Engine
from tracker.model import FAMILIES, Fallback, PolicyTable, Reject
from tracker.policy.compile import default_route_policy

GOOD = Reject.NONE


def compiled(**changes: object) -> PolicyTable:
    # Keywords of many types, by name.
    return default_route_policy(**{"families": FAMILIES, **changes})  # type: ignore[arg-type]


def reject(host: Host, address: str) -> Reject:
    return host.row(address).own_reject


@pytest.fixture
def uplink(host: Host) -> Host:
    host.send(link(2, "eth0"), route(via="192.0.2.1", oif=2), route(via="fe80::1", oif=2))
    return host


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("0.0.0.0", Reject.UNSPECIFIED),
        ("0.0.0.1", GOOD),
        ("::", Reject.UNSPECIFIED),
        ("127.0.0.1", Reject.LOOPBACK),
        ("127.255.255.254", Reject.LOOPBACK),
        ("128.0.0.1", GOOD),
        ("::1", Reject.LOOPBACK),
        ("::2", GOOD),
        ("169.254.0.1", Reject.LINK_LOCAL),
        ("169.255.0.1", GOOD),
        ("fe80::1", Reject.LINK_LOCAL),
        ("febf::1", Reject.LINK_LOCAL),
        ("fec0::1", GOOD),
        ("223.255.255.1", GOOD),
        ("224.0.0.1", Reject.MULTICAST),
        ("239.1.1.1", Reject.MULTICAST),
        ("240.0.0.1", GOOD),
        ("ff02::1", Reject.MULTICAST),
        ("192.0.0.0", Reject.RESERVED),
        ("192.0.0.7", Reject.RESERVED),
        ("192.0.0.8", GOOD),
        ("fd00::1", GOOD),
    ],
)
def test_ranges_are_judged_by_the_address(uplink: Host, address: str, expected: Reject) -> None:
    uplink.send(addr(f"{address}/{64 if ':' in address else 24}", 2))
    assert reject(uplink, address) is expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (PERMANENT, GOOD),
        (TENTATIVE, Reject.TENTATIVE),
        (TENTATIVE | OPTIMISTIC, GOOD),
        (DADFAILED, Reject.DAD_FAILED),
        (DADFAILED | TENTATIVE, Reject.DAD_FAILED),
        (DEPRECATED, GOOD),
    ],
)
def test_duplicate_address_detection_must_be_over(
    uplink: Host, flags: int, expected: Reject
) -> None:
    uplink.send(addr("2001:db8::10/64", 2, flags=flags))
    assert reject(uplink, "2001:db8::10") is expected


def test_a_link_must_be_up_but_needs_no_carrier(uplink: Host) -> None:
    uplink.send(addr("192.0.2.10/24", 2), addr("192.0.2.11/24", 9))
    uplink.send(link(2, "eth0", carrier=False))
    assert reject(uplink, "192.0.2.10") is GOOD
    assert not uplink.row("192.0.2.10").carrier
    uplink.send(link(2, "eth0", up=False))
    assert reject(uplink, "192.0.2.10") is Reject.LINK_DOWN
    unknown = uplink.row("192.0.2.11")
    assert (unknown.own_reject, unknown.interface, unknown.carrier) == (
        Reject.LINK_DOWN,
        "",
        False,
    )


def test_a_family_may_not_be_wanted(engine: Engine) -> None:
    host = Host(engine, compiled(families=["ipv6"]))
    host.send(link(2, "eth0"), addr("127.0.0.1/8", 2), route(via="192.0.2.1", oif=2))
    assert reject(host, "127.0.0.1") is Reject.FAMILY_NOT_WANTED
    assert host.view().default_routes == 1


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.10", Reject.EXCLUDED_ADDRESS),
        ("192.0.2.11", Reject.EXCLUDED_NETWORK),
        ("192.0.3.1", GOOD),
        ("10.42.7.1", Reject.EXCLUDED_NETWORK),
        ("10.96.0.1", Reject.EXCLUDED_NETWORK),
        ("2001:db8::10", Reject.EXCLUDED_ADDRESS),
        ("2001:db8::11", GOOD),
    ],
)
def test_addresses_and_networks_can_be_excluded(
    engine: Engine, address: str, expected: Reject
) -> None:
    table = compiled(
        exclude_addresses=["192.0.2.10", "2001:db8::10"],
        exclude_cidrs=["192.0.2.0/24"],
        pods=["10.42.0.0/16"],
        services=["10.96.0.0/12"],
    )
    host = Host(engine, table)
    host.send(link(2, "eth0"), addr(f"{address}/64" if ":" in address else f"{address}/24", 2))
    assert reject(host, address) is expected


@pytest.mark.parametrize(
    ("table", "links", "expected"),
    [
        (MAIN, [link(2, "eth0", master=5)], Reject.OTHER_VRF),
        (100, [link(2, "eth0", master=5)], GOOD),
        (101, [link(2, "eth0", master=5)], Reject.OTHER_VRF),
        (MAIN, [link(2, "eth0", kind="vrf", vrf_table=100)], Reject.OTHER_VRF),
        (MAIN, [link(2, "eth0", master=6), link(6, "br0", kind="bridge")], GOOD),
        (MAIN, [link(2, "eth0", master=9)], GOOD),
        (100, [link(2, "eth0")], GOOD),
    ],
)
def test_an_address_in_another_vrf_is_none_of_ours(
    engine: Engine, table: int, links: list[Record], expected: Reject
) -> None:
    host = Host(engine, compiled(table=table))
    host.send(link(5, "red", kind="vrf", vrf_table=100), *links, addr("192.0.2.10/24", 2))
    assert reject(host, "192.0.2.10") is expected


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("eth0", "", GOOD),
        ("docker0", "bridge", Reject.EXCLUDED_INTERFACE),
        ("br-0123456789ab", "bridge", Reject.EXCLUDED_INTERFACE),
        ("br-0123456789az", "bridge", GOOD),
        ("br-PRODUCTION01", "bridge", GOOD),
        ("br-ex", "openvswitch", GOOD),
        ("br0", "bridge", GOOD),
        ("dummy0", "dummy", Reject.EXCLUDED_INTERFACE),
        ("anything", "vxlan", Reject.EXCLUDED_INTERFACE),
        ("vxlanish", "", Reject.EXCLUDED_INTERFACE),
        ("kube-bridge", "bridge", Reject.EXCLUDED_INTERFACE),
        ("kube-bridge2", "bridge", GOOD),
        ("tunl0", "ipip", Reject.EXCLUDED_INTERFACE),
        ("eth0.100", "vlan", GOOD),
        ("bond0", "bond", GOOD),
        ("macvlan0", "macvlan", GOOD),
        ("wlan0", "", GOOD),
        ("wg0", "wireguard", Reject.EXCLUDED_INTERFACE),
        ("xeth7", "", Reject.EXCLUDED_INTERFACE),
        ("docker9", "bridge", GOOD),
        ("dummy9", "dummy", GOOD),
    ],
)
def test_interfaces_are_excluded_by_name_and_kind(
    engine: Engine, name: str, kind: str, expected: Reject
) -> None:
    table = compiled(exclude_interfaces=["xeth?", "!docker9", "!dummy[89]"])
    host = Host(engine, table)
    host.send(link(2, name, kind=kind), addr("192.0.2.10/24", 2))
    assert reject(host, "192.0.2.10") is expected


@pytest.mark.parametrize(
    ("master_kind", "expected"),
    [
        ("bridge", Reject.EXCLUDED_INTERFACE),
        ("openvswitch", Reject.EXCLUDED_INTERFACE),
        ("bond", GOOD),
    ],
)
def test_a_veth_is_excluded_as_a_port(host: Host, master_kind: str, expected: Reject) -> None:
    host.send(link(5, "m0", kind=master_kind))
    host.send(link(2, "eth0", kind="veth", master=5), addr("192.0.2.10/24", 2))
    assert reject(host, "192.0.2.10") is expected


def test_a_rename_is_judged_anew(host: Host) -> None:
    host.send(link(2, "docker0"), addr("192.0.2.10/24", 2))
    host.send(link(2, "eth0"))
    assert reject(host, "192.0.2.10") is GOOD
    assert host.row("192.0.2.10").interface == "eth0"


def test_the_master_decides_whether_a_veth_is_a_port(host: Host) -> None:
    host.send(link(2, "eth0", kind="veth", master=5), addr("192.0.2.10/24", 2))
    assert reject(host, "192.0.2.10") is GOOD
    host.send(link(5, "br0", kind="bridge"))
    assert reject(host, "192.0.2.10") is Reject.EXCLUDED_INTERFACE
    host.send(gone(link(5, "br0", kind="bridge")))
    assert reject(host, "192.0.2.10") is GOOD


def test_what_a_default_route_names_passes_on_an_excluded_interface(uplink: Host) -> None:
    uplink.send(link(7, "dummy0", kind="dummy"), addr("192.0.2.99/32", 7))
    assert reject(uplink, "192.0.2.99") is Reject.EXCLUDED_INTERFACE
    uplink.send(route(via="192.0.2.1", oif=2, src="192.0.2.99", metric=5))
    assert reject(uplink, "192.0.2.99") is GOOD


def test_lo_is_never_excluded_as_an_interface(engine: Engine) -> None:
    host = Host(engine, compiled(exclude_interfaces=["*"]))
    host.send(link(1, "lo", loopback=True), addr("192.0.2.10/32", 1))
    host.send(link(2, "eth0"), addr("192.0.2.11/24", 2))
    assert reject(host, "192.0.2.10") is GOOD
    assert reject(host, "192.0.2.11") is Reject.EXCLUDED_INTERFACE


def test_the_interface_of_the_fallback_is_not_excluded(engine: Engine) -> None:
    host = Host(engine, compiled(fallback="interface:dummy*"))
    host.send(link(2, "dummy0", kind="dummy"), addr("192.0.2.10/24", 2))
    host.send(link(3, "docker0", kind="bridge"), addr("172.17.0.1/16", 3))
    assert reject(host, "192.0.2.10") is GOOD
    assert reject(host, "172.17.0.1") is Reject.EXCLUDED_INTERFACE
    assert host.best() == "192.0.2.10"


def test_the_first_filter_gives_the_reason(engine: Engine) -> None:
    table = compiled(exclude_addresses=["169.254.1.1", "192.0.2.10"])._replace(
        fallback=Fallback.NONE
    )
    host = Host(engine, table)
    host.send(addr("169.254.1.1/16", 9, flags=TENTATIVE), addr("192.0.2.10/24", 9))
    assert reject(host, "169.254.1.1") is Reject.LINK_LOCAL
    assert reject(host, "192.0.2.10") is Reject.LINK_DOWN
    host.send(link(9, "docker0", master=5), link(5, "red", kind="vrf", vrf_table=7))
    assert reject(host, "192.0.2.10") is Reject.EXCLUDED_ADDRESS
