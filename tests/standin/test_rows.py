"""Each kind of change that the kernel announces, or does not, on the kernel and on paper."""

from __future__ import annotations

from tests.standin.both import Both
from tests.standin.payloads import address, any_route, group, leg, nexthop, packed, route
from tests.standin.router import Router
from tracker.capture.names import IFA_F_NOPREFIXROUTE, IFF_UP, SCOPES
from tracker.capture.record import Addr
from tracker.model import AF_INET, AF_INET6


def addressed(both: Both) -> None:
    """Two links with an address of each family and defaults over both."""
    for number in (0, 1):
        link = both.index(f"v{number}")
        both.up(f"v{number}")
        both.add_address(address(link, f"192.0.{number}.10/24"))
        both.add_address(address(link, f"2001:db8:{number}::10/64"))
        metric = 100 + number
        both.route("add", route(AF_INET, leg(link, f"192.0.{number}.1"), metric=metric))
        both.route("add", route(AF_INET6, leg(link, f"2001:db8:{number}::1"), metric=metric))


def test_link_down_is_silent_about_ipv4_routes(both: Both) -> None:
    addressed(both)
    both.down("v0")
    v0 = both.index("v0")
    assert not [r for r in both.paper.routes if any(leg.oif == v0 for leg in r.legs)]
    both.up("v0")
    both.up("v0")


def test_a_pulled_cable_takes_nexthop_objects_with_it(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    both.nexthop("add", nexthop(1, v0, "192.0.0.2"))
    both.nexthop("add", nexthop(2, v1, "192.0.1.2"))
    both.nexthop("add", nexthop(3, v0, "2001:db8::2"))
    both.nexthop("add", nexthop(4, v1, "2001:db8:1::2"))
    both.nexthop("add", group(10, (1, 1), (2, 3)))
    both.nexthop("add", group(11, (3, 1), (4, 1)))
    both.nexthop("add", group(12, (1, 1)))
    for number, family in ((1, AF_INET), (10, AF_INET), (12, AF_INET)):
        both.route("add", route(family, nh_id=number, metric=number))
    for number in (3, 11):
        both.route("add", route(AF_INET6, nh_id=number, metric=number))
    both.carrier("v0", on=False)
    assert set(both.paper.nexthops) == {2, 4, 10, 11}
    both.carrier("v0", on=True)
    both.down("v1")
    assert both.paper.nexthops == {}


def test_deleting_a_preferred_source_is_announced(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    both.add_address(address(v0, "198.51.100.1/24"))
    source = packed("198.51.100.1")
    both.route("add", route(AF_INET, leg(v1, "192.0.1.1"), prefsrc=source, metric=7))
    both.route("add", route(AF_INET, leg(v1, "192.0.1.1"), prefsrc=source, metric=8, table=100))
    both.add_address(address(v0, "2001:db8:9::1/64"))
    source6 = packed("2001:db8:9::1")
    both.route("add", route(AF_INET6, leg(v0, "2001:db8::1"), prefsrc=source6, metric=7))
    both.delete_address(address(v0, "198.51.100.1/24"))
    both.delete_address(address(v0, "2001:db8:9::1/64"))


def test_a_source_that_another_link_has_as_well_stays(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    for link in (v0, v1):
        both.add_address(address(link, "198.51.100.1/32"))
    source = packed("198.51.100.1")
    both.route("add", route(AF_INET, leg(v1, "192.0.1.1"), prefsrc=source, metric=7))
    both.delete_address(address(v0, "198.51.100.1/32"))
    both.delete_address(address(v1, "198.51.100.1/32"))


def test_the_last_ipv4_address_takes_routes_silently(both: Both) -> None:
    addressed(both)
    both.delete_address(address(both.index("v0"), "192.0.0.10/24"))
    assert [r.metric for r in both.paper.routes if r.family == AF_INET and not r.dst_len] == [101]


def test_a_nexthop_object_is_deleted(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    both.nexthop("add", nexthop(1, v0, "192.0.0.2"))
    both.nexthop("add", nexthop(2, v1, "192.0.1.2"))
    both.nexthop("add", nexthop(3, v1, "2001:db8:1::2"))
    both.nexthop("add", group(10, (1, 1), (2, 2)))
    both.route("add", route(AF_INET, nh_id=1, metric=1))
    both.route("add", route(AF_INET, nh_id=10, metric=10))
    both.route("add", route(AF_INET6, nh_id=3, metric=3))
    both.nexthop("replace", nexthop(1, v0, "192.0.0.3"))
    both.nexthop("replace", group(10, (1, 2), (2, 1)))
    both.delete_nexthop(1)
    both.delete_nexthop(3)
    both.delete_nexthop(2)
    both.delete_nexthop(2)


def test_secondaries_go_before_their_primary(both: Both) -> None:
    secondaries(both)


def test_a_secondary_is_promoted(promoting: Both) -> None:
    secondaries(promoting)


def secondaries(both: Both) -> None:
    v0 = both.index("v0")
    both.up("v0")
    for last in (10, 11, 12, 13):
        both.add_address(address(v0, f"192.0.2.{last}/24"))
    both.add_address(address(v0, "192.0.2.12/32"))
    both.add_address(address(v0, "198.51.100.1/24"))
    for last in (10, 11, 12):
        source = packed(f"192.0.2.{last}")
        both.route("add", route(AF_INET, leg(v0, "198.51.100.9"), prefsrc=source, metric=last))
    both.delete_address(address(v0, "192.0.2.11/24"))
    both.delete_address(address(v0, "192.0.2.10/24"))
    for last in (12, 13):
        if any(
            a.local == packed(f"192.0.2.{last}") and a.prefixlen == 24 for a in both.paper.addresses
        ):
            both.delete_address(address(v0, f"192.0.2.{last}/24"))


def test_lifetimes_change_flags(both: Both) -> None:
    v0 = both.index("v0")
    both.up("v0")
    for text in ("192.0.2.10/24", "2001:db8::10/64"):
        both.add_address(address(v0, text))
        both.add_address(address(v0, text, preferred=0), "change")
        both.add_address(address(v0, text), "change")
    both.add_address(address(v0, "192.0.2.10/24", preferred=500, valid=1000), "change")
    both.add_address(address(v0, "2001:db8:1::10/64", preferred=500, valid=1000))
    both.add_address(address(v0, "2001:db8:1::10/64"), "change")


def test_an_ipv6_address_is_tentative_at_first(both: Both) -> None:
    v0 = both.index("v0")
    both.up("v0")
    detected = Addr(AF_INET6, v0, packed("2001:db8::10"), 64, flags=0x80)

    def add() -> None:
        out = both.paper.add_address(detected)
        out += both.paper.finish_detection(detected)
        both.compare("address add with detection", out)

    both.real.here.ip("address add 2001:db8::10/64 dev v0")
    add()
    both.delete_address(detected)


def test_a_rename_tells_ipv4_addresses_again(both: Both) -> None:
    addressed(both)
    both.rename("v0", "uplink")
    both.rename("uplink", "v1")
    both.rename("uplink", "uplink")
    both.down("uplink")
    both.rename("uplink", "v0")


def test_a_deleted_link_takes_everything_with_it(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    for text in ("192.0.0.11/24", "198.51.100.1/32", "2001:db8:7::1/128"):
        both.add_address(address(v0, text))
    source = packed("198.51.100.1")
    both.route("add", route(AF_INET, leg(v1, "192.0.1.1"), prefsrc=source, metric=7))
    ways = leg(v0, "192.0.0.1", 2), leg(v1, "192.0.1.1")
    both.route("add", route(AF_INET, *ways, metric=8))
    ways = leg(v0, "2001:db8::1", 2), leg(v1, "2001:db8:1::1")
    both.route("add", route(AF_INET6, *ways, metric=8))
    both.nexthop("add", nexthop(1, v0, "192.0.0.2"))
    both.delete("v0")
    both.delete("v1")


def test_a_multipath_route_loses_a_leg_silently(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    both.route("add", route(AF_INET, leg(v0, "192.0.0.1", 2), leg(v1, "192.0.1.1"), metric=8))
    both.route(
        "add", route(AF_INET6, leg(v0, "2001:db8::1"), leg(v1, "2001:db8:1::1", 3), metric=8)
    )
    both.down("v0")
    both.up("v0")
    both.carrier("v0", on=False)
    both.carrier("v0", on=True)
    both.down("v0")
    both.down("v1")


def test_ipv4_routes_of_one_metric(both: Both) -> None:
    addressed(both)
    v0 = both.index("v0")
    first, second, third = (route(AF_INET, leg(v0, f"192.0.0.{n}")) for n in (1, 2, 3))
    both.route("add", first)
    both.route("add", second)
    both.route("append", second)
    both.route("append", second)
    both.route("prepend", third)
    both.route("replace", route(AF_INET, leg(v0, "192.0.0.4")))
    both.route("replace", route(AF_INET, leg(v0, "192.0.0.4")))
    both.route("replace", second)
    both.route("change", route(AF_INET, leg(v0, "192.0.0.5")))
    both.route("change", route(AF_INET, leg(v0, "192.0.0.5"), metric=77))
    both.route("delete", any_route(AF_INET, leg(0, "192.0.0.2")))
    both.route("delete", any_route(AF_INET))
    both.route("delete", any_route(AF_INET, metric=100))
    both.route("delete", any_route(AF_INET, leg(v0)))
    both.route("delete", any_route(AF_INET, leg(v0)))
    both.route("add", route(AF_INET, type=7, metric=9))
    both.route("add", route(AF_INET, leg(v0, "203.0.113.1"), metric=9))
    both.route("add", route(AF_INET, leg(v0, "203.0.113.1", onlink=True), metric=10))
    both.route("add", route(AF_INET, leg(v0, "fe80::1"), metric=11))
    both.route("add", route(AF_INET, leg(v0), metric=12))
    both.route("delete", any_route(AF_INET, type=7))


def test_ipv6_routes_of_one_metric(both: Both) -> None:
    addressed(both)
    v0, v1 = both.index("v0"), both.index("v1")
    ways = [route(AF_INET6, leg(v0, f"2001:db8::{n}")) for n in range(1, 6)]
    both.route("add", ways[0])
    both.route("add", ways[1])
    both.route("append", ways[1])
    both.route("append", ways[1])
    both.route("append", route(AF_INET6, leg(v1), metric=1025))
    both.route("prepend", ways[2])
    both.route("append", route(AF_INET6, leg(v0, "2001:db8::4"), leg(v1, "fe80::1", 2)))
    both.route("delete", any_route(AF_INET6, leg(0, "2001:db8::2"), metric=1024))
    both.route("replace", ways[4])
    both.route("replace", route(AF_INET6, leg(v0, "2001:db8::4"), leg(v1, "fe80::1", 2)))
    both.route("replace", ways[0])
    both.route("change", ways[1])
    both.route("delete", any_route(AF_INET6, metric=1024))
    both.route("delete", any_route(AF_INET6, metric=1024))
    both.route("delete", any_route(AF_INET6, metric=1024))
    both.route("add", route(AF_INET6, type=7, metric=9))
    both.route("add", route(AF_INET6, leg(v0), metric=12, expires=500))
    both.route("add", route(AF_INET6, leg(v0, "2001:db8:77::1"), metric=13))


def test_connected_routes(both: Both) -> None:
    v0, v1 = both.index("v0"), both.index("v1")
    down = [
        address(v0, "192.0.2.10/24"),
        address(v0, "2001:db8::10/64"),
    ]
    for each in down:
        both.add_address(each)
    both.up("v0")
    both.up("v1")
    both.add_address(address(v0, "192.0.2.10/24"))
    both.add_address(address(v0, "2001:db8::10/128"))
    both.add_address(address(v1, "192.0.2.20/24"))
    both.add_address(address(v0, "192.0.2.77/32", peer=packed("192.0.2.78")))
    both.add_address(address(v0, "2001:db8:7::10/128", peer=packed("2001:db8:7::11")))
    both.add_address(address(v0, "2001:db8:6::10/64", IFA_F_NOPREFIXROUTE))
    both.add_address(address(v0, "198.51.100.1/24", IFA_F_NOPREFIXROUTE))
    both.add_address(address(v0, "10.1.0.1/24", scope=SCOPES["link"]))
    both.add_address(address(v0, "10.2.0.1/24", scope=SCOPES["host"]))
    both.add_address(address(v0, "10.3.0.1/24", priority=77))
    both.add_address(address(v0, "2001:db8:5::10/64", priority=77))
    both.add_address(address(v0, "2001:db8:0:0::11/64"))
    both.add_address(address(1, "10.0.0.1/32"))
    both.add_address(address(1, "10.0.1.1/24"))
    for each in list(both.paper.addresses):
        if each.local[0] != 127 and each.local != packed("::1"):
            both.delete_address(each)


def test_a_bridge_and_its_ports(both: Both) -> None:
    addressed(both)
    both.add_link("br0", "bridge")
    both.up("br0")
    both.master("v0", "br0")
    both.master("v2", "br0")
    both.carrier("v0", on=False)
    both.carrier("v0", on=True)
    both.up("v2")
    both.down("v0")
    both.master("v0", "")
    both.up("v0")
    both.master("v0", "br0")
    both.delete("v2")
    both.delete("br0")
    assert both.paper.links[both.index("v0")].flags & IFF_UP


def test_a_macvlan_follows_its_link(both: Both) -> None:
    addressed(both)
    both.add_link("mac0", "macvlan", "v0")
    both.up("mac0")
    both.add_address(address(both.index("mac0"), "203.0.113.1/24"))
    both.down("v0")
    both.up("v0")
    both.carrier("v0", on=False)
    both.carrier("v0", on=True)
    both.delete("v0")


def test_lifetimes_end_by_themselves(both: Both) -> None:
    v0 = both.index("v0")
    both.up("v0")
    both.add_address(address(v0, "192.0.2.10/24"))
    both.add_address(address(v0, "198.51.100.1/24", preferred=1, valid=2))
    both.add_address(address(v0, "2001:db8::1/64", IFA_F_NOPREFIXROUTE, preferred=1, valid=2))
    source = packed("198.51.100.1")
    both.route("add", route(AF_INET, leg(v0, "192.0.2.1"), prefsrc=source))
    for seconds in (1, 2):
        expected = both.paper.advance(seconds * 1_000_000_000)
        assert len(expected) == (2 if seconds == 1 else 4)
        # The kernel's timers have a second of slack, and a family each.
        both.compare_sorted(f"{seconds} s went by", expected, seconds=4)


def test_a_route_from_a_router_is_renewed_silently(both: Both) -> None:
    v0 = both.index("v0")
    both.up("v0")
    both.add_address(address(v0, "fe80::10/64", scope=SCOPES["link"]))
    both.real.here.sysctl("ipv6/conf/v0/accept_ra", 2)
    router = Router(both.real.far, "p0", "fe80::1")
    learned = route(AF_INET6, leg(v0, "fe80::1"))
    high = 1
    for lifetime, preference in ((1800, 0), (900, 0), (900, high), (900, 0), (0, 0), (600, high)):
        router.advertise(lifetime, preference)
        heard = learned._replace(expires=lifetime, pref=preference)
        both.compare(f"advertised {lifetime} {preference}", both.paper.learn_route(heard))
    router.close()
