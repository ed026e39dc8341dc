"""The state in C is what `ip` shows, field by field, by events as well as by dumps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.namespace import Namespace, connect
from tests.tiers import SMALLEST_RING, Tier
from tracker.address import text
from tracker.capture.base import Wake
from tracker.capture.netlink import boot_ns
from tracker.capture.payload import FOREVER, Addr, Leg, Link, Nexthop, Route
from tracker.capture.record import iter_records
from tracker.engine.native import NativeEngine
from tracker.model import AF_INET, AF_INET6, FAMILIES, NANOSECONDS, Scope
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER_TABLE = 100
PATIENCE_NS = 5 * NANOSECONDS
"""How long the kernel may take to announce what it does by itself (linkwatch, DAD)."""

LINK_FLAGS = {
    "UP": 0x1,
    "BROADCAST": 0x2,
    "LOOPBACK": 0x8,
    "POINTOPOINT": 0x10,
    "NOARP": 0x80,
    "PROMISC": 0x100,
    "ALLMULTI": 0x200,
    "SLAVE": 0x800,
    "MULTICAST": 0x1000,
    "LOWER_UP": 0x10000,
}
OPERSTATES = ("UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP")
ADDRESS_FLAGS = {
    "secondary": 0x01,
    "nodad": 0x02,
    "dadfailed": 0x08,
    "deprecated": 0x20,
    "tentative": 0x40,
    "mngtmpaddr": 0x100,
    "noprefixroute": 0x200,
}
TYPES = {"unicast": 1, "blackhole": 6, "unreachable": 7, "prohibit": 8}
PROTOCOLS = {"kernel": 2, "boot": 3, "static": 4, "ra": 9}
SCOPES = {"global": 0, "site": 200, "link": 253, "host": 254, "nowhere": 255}
PREFERENCES = {"medium": 0, "high": 1, "low": 3}
State = dict[str, Any]


class Watched:
    """A source and an engine on the namespace that the calling thread has entered."""

    def __init__(self, host: Namespace, tier: Tier, rcvbuf: int = 1 << 20, **more: int) -> None:
        self._host = host
        self.engine = NativeEngine()
        self.engine.set_policy(0, default_route_policy(families=FAMILIES))
        self.engine.set_policy(1, default_route_policy(families=FAMILIES, table=OTHER_TABLE))
        self.source = tier.open(self.engine, rcvbuf=rcvbuf, **more)

    def resync(self) -> None:
        """Read what is queued and dump whatever is dirty."""
        self.source.drain()
        while dirt := self.engine.dirty():
            for dirty in dirt:
                assert self.source.dump(dirty.scope, dirty.ifindex, dirty.table)

    def expect_what_ip_shows(self) -> None:
        """At this quiet point, or at one that the kernel reaches by itself."""
        give_up = boot_ns() + PATIENCE_NS
        while True:
            self.resync()
            shown, known = shown_by_ip(self._host), self.state()
            if known == shown:
                break
            if boot_ns() > give_up:
                assert known == shown
            self.source.wait(give_up)
        for scope in Scope:
            assert self.source.dump(scope, audit=True)
        counters = self.engine.counters()
        assert {name for name in counters if name.startswith("drift.") and counters[name]} == set()

    def state(self) -> State:
        payloads = [record.payload for record in iter_records(self.engine.snapshot())]
        names = {link.ifindex: link.name for link in payloads if isinstance(link, Link)}
        return {
            "links": {p.ifindex: _link(p, names) for p in payloads if isinstance(p, Link)},
            "addresses": {
                (names[p.ifindex], text(p.local), p.prefixlen, _text(p.peer)): _addr(p)
                for p in payloads
                if isinstance(p, Addr)
            },
            "nexthops": {p.id: _nexthop(p, names) for p in payloads if isinstance(p, Nexthop)},
            "routes": [_route(p, names) for p in payloads if isinstance(p, Route)],
        }


def _text(packed: bytes) -> str:
    return text(packed) if packed else ""


def _link(p: Link, names: dict[int, str]) -> State:
    return {
        "name": p.name,
        "flags": {name for name, bit in LINK_FLAGS.items() if p.flags & bit},
        "mtu": p.mtu,
        "master": names.get(p.master, ""),
        "kind": p.kind,
        "operstate": OPERSTATES[p.operstate],
    }


def _addr(p: Addr) -> State:
    return {
        "flags": {name for name, bit in ADDRESS_FLAGS.items() if p.flags & bit},
        "scope": p.scope,
        "metric": p.priority,
        "for ever": (p.valid == FOREVER, p.preferred == FOREVER),
        "deprecated by time": p.preferred == 0,
    }


def _leg(p: Leg, names: dict[int, str]) -> tuple[str, str, int]:
    return names[p.oif], _text(p.gw), p.weight


def _route(p: Route, names: dict[int, str]) -> State:
    legs = [_leg(leg, names) for leg in p.legs]
    return {
        "family": p.family,
        "table": p.table,
        "metric": p.metric,
        "type": p.type,
        "proto": p.proto,
        "prefsrc": _text(p.prefsrc),
        "nhid": p.nh_id,
        "pref": p.pref,
        "expires": p.expires > 0,
        "legs": _in_order(legs, p.family, p.nh_id),
    }


def _in_order(legs: list[Any], family: int, nhid: int) -> list[Any]:
    """Siblings of IPv6 have no order; those of a nexthop object are told with the object."""
    if nhid:
        return []
    return legs if family == AF_INET else sorted(legs)


def _nexthop(p: Nexthop, names: dict[int, str]) -> State:
    return {
        "dev": names.get(p.oif, ""),
        "gateway": _text(p.gw),
        "blackhole": p.blackhole,
        "group": [(member.id, member.weight) for member in p.members],
    }


def shown_by_ip(host: Namespace) -> State:
    links = host.json("address show")
    return {
        "links": {link["ifindex"]: _shown_link(link) for link in links},
        "addresses": {
            (link["ifname"], a["local"], a["prefixlen"], a.get("address", "")): _shown_addr(a)
            for link in links
            for a in link["addr_info"]
        },
        "nexthops": {hop["id"]: _shown_nexthop(hop) for hop in host.json("nexthop show")},
        "routes": [
            _shown_route(route, version, table)
            for version in (4, 6)
            for table in (OTHER_TABLE, 254)
            for route in _routes(host, version, table)
        ],
    }


def _routes(host: Namespace, version: int, table: int) -> list[Any]:
    shown = [
        route
        for route in host.json(f"-{version} route show table all default")
        if route.get("table", "main") == ("main" if table == 254 else str(table))
    ]
    return sorted(shown, key=lambda route: int(route.get("metric", 0)))


def _shown_link(link: Any) -> State:
    return {
        "name": link["ifname"],
        "flags": set(link["flags"]) & LINK_FLAGS.keys(),
        "mtu": link["mtu"],
        "master": link.get("master", ""),
        "kind": link.get("linkinfo", {}).get("info_kind", ""),
        "operstate": link["operstate"],
    }


def _shown_addr(a: Any) -> State:
    return {
        "flags": {name for name in ADDRESS_FLAGS if a.get(name)},
        "scope": SCOPES[a["scope"]],
        "metric": a.get("metric", 0),
        "for ever": (a["valid_life_time"] == FOREVER, a["preferred_life_time"] == FOREVER),
        "deprecated by time": a["preferred_life_time"] == 0,
    }


def _shown_leg(leg: Any) -> tuple[str, str, int]:
    gateway = leg.get("gateway") or leg.get("via", {}).get("host", "")
    return leg["dev"], gateway, leg.get("weight", 1)


def _shown_route(route: Any, version: int, table: int) -> State:
    family = AF_INET if version == 4 else AF_INET6
    legs = route.get("nexthops") or ([route] if "dev" in route else [])
    return {
        "family": family,
        "table": table,
        "metric": route.get("metric", 0),
        "type": TYPES[route["type"]],
        "proto": PROTOCOLS[route["protocol"]],
        "prefsrc": route.get("prefsrc", ""),
        "nhid": route.get("nhid", 0),
        "pref": PREFERENCES[route.get("pref", "medium")],
        "expires": "expires" in route,
        "legs": _in_order(list(map(_shown_leg, legs)), family, route.get("nhid", 0)),
    }


def _shown_nexthop(hop: Any) -> State:
    return {
        "dev": hop.get("dev", ""),
        "gateway": hop.get("gateway", ""),
        "blackhole": "blackhole" in hop,
        "group": [(member["id"], member.get("weight", 1)) for member in hop.get("group", ())],
    }


@pytest.fixture
def watched(host: Namespace, router: Namespace, tier: Tier) -> Iterator[Watched]:
    """Two uplinks, watched since before they had addresses."""
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")
    with host.entered():
        made = Watched(host, tier)
        made.expect_what_ip_shows()
        yield made
        fresh = Watched(host, tier)
        fresh.expect_what_ip_shows()
        fresh.source.close()
        made.source.close()


LINKS = [
    ["link add br0 type bridge", "link set eth1 master br0", "link set br0 up"],
    ["link add mac0 link eth0 type macvlan mode bridge", "link set mac0 up mtu 1400"],
    ["link add ifb0 type ifb"],
    ["link set eth0 down"],
    ["link set eth0 name uplink0", "link set uplink0 up"],
    ["link set eth1 nomaster", "link set eth1 allmulticast on"],
    ["link del mac0", "link del br0"],
]


@pytest.mark.both_loaders
def test_links(host: Namespace, watched: Watched) -> None:
    for step in LINKS:
        host.batch(step)
        watched.expect_what_ip_shows()


def test_carrier_that_is_announced_late_is_no_drift(
    host: Namespace, router: Namespace, watched: Watched
) -> None:
    """A bridge has the carrier of its port at once, and tells it with the next round of events."""
    host.batch(["link add br0 type bridge", "link set br0 up", "link set eth1 master br0"])
    watched.expect_what_ip_shows()
    for state in ("down", "up", "down", "up"):
        router.ip(f"link set eth1 {state}")
        watched.resync()
        assert watched.source.dump(Scope.LINK, audit=True)
        assert watched.engine.counters()["drift.link"] == 0
    watched.expect_what_ip_shows()


ADDRESSES = [
    ["addr add 192.0.2.11/24 dev eth0", "addr add 192.0.2.12/24 dev eth0"],
    ["addr add 10.1.0.1 peer 10.1.0.2/32 dev eth0 metric 33"],
    ["addr add 192.0.2.13/32 dev lo", "addr add 10.255.255.1/8 dev eth1 noprefixroute scope link"],
    ["addr add 2001:db8::11/64 dev eth0 nodad", "addr add 2001:db8::12/128 dev eth1"],
    ["addr add 2001:db8:1::1 peer 2001:db8:1::2/128 dev eth0 nodad metric 12"],
    ["addr add fd00::1/64 dev eth0 preferred_lft 0 valid_lft 3000 nodad"],
    ["addr change 192.0.2.11/24 dev eth0 preferred_lft 100 valid_lft 300"],
    ["addr del 192.0.2.11/24 dev eth0"],
    ["link set eth0 down"],
    ["link set eth0 up"],
]


@pytest.mark.both_loaders
def test_addresses(host: Namespace, watched: Watched) -> None:
    for step in ADDRESSES:
        host.batch(step)
        watched.expect_what_ip_shows()


ROUTES = [
    ["route add default via 192.0.2.1 metric 100", "route add default via 198.51.100.1 metric 200"],
    ["route add 0.0.0.0/1 via 192.0.2.1", "route add 0.0.0.0/8 via 192.0.2.1"],
    ["route add default nexthop via 192.0.2.2 weight 3 nexthop via 198.51.100.2"],
    ["route append default via 192.0.2.3 metric 100 src 192.0.2.11 proto static"],
    ["route add default via inet6 fe80::1 dev eth0 metric 300"],
    ["route add default dev eth1 metric 301", "route add unreachable default metric 4000"],
    ["route add default via 192.0.2.1 table 100", "route add default via 192.0.2.1 table 1000"],
    ["route replace default via 192.0.2.4 metric 100"],
    ["route add default via 2001:db8::1 metric 100 pref high"],
    ["route append default via 2001:db8:1::1 metric 100 pref high"],
    ["route add default via 2001:db8::2 metric 200 expires 3000 proto ra"],
    ["route add blackhole ::/0 table 100", "route add ::/1 via 2001:db8::1"],
    ["route append default via 2001:db8::3 metric 100 pref high"],
    ["route del default via 2001:db8::1 metric 100"],
    ["route del default metric 200", "route flush table 100"],
]


@pytest.fixture
def addressed(host: Namespace, watched: Watched) -> Watched:
    host.batch(
        [
            "addr add 192.0.2.11/24 dev eth0",
            "addr add 198.51.100.11/24 dev eth1",
            "addr add 2001:db8::11/64 dev eth0 nodad",
            "addr add 2001:db8:1::11/64 dev eth1 nodad",
        ]
    )
    watched.expect_what_ip_shows()
    return watched


@pytest.mark.both_loaders
def test_default_routes(host: Namespace, addressed: Watched) -> None:
    for step in ROUTES:
        host.batch(step)
        addressed.expect_what_ip_shows()
    assert len(addressed.state()["routes"]) > 5


NEXTHOPS = [
    ["nexthop add id 1 via 192.0.2.1 dev eth0", "nexthop add id 2 via 198.51.100.1 dev eth1"],
    ["nexthop add id 3 group 1,5/2", "nexthop add id 4 blackhole"],
    ["nexthop add id 5 via 2001:db8::1 dev eth0", "nexthop add id 6 dev eth1"],
    ["route add default nhid 3", "route add default nhid 1 metric 100"],
    ["route add default nhid 5 metric 200", "route add ::/0 nhid 5"],
    ["nexthop replace id 1 via 192.0.2.7 dev eth0"],
    ["nexthop replace id 3 group 1/2,9"],
    ["nexthop del id 2"],
    ["link set eth0 down"],
    ["link set eth0 up"],
]


@pytest.mark.both_loaders
def test_nexthop_objects_and_groups(host: Namespace, addressed: Watched) -> None:
    for step in NEXTHOPS:
        host.batch(step)
        addressed.expect_what_ip_shows()


def test_routes_by_nexthop_objects_alone(host: Namespace, addressed: Watched) -> None:
    """With nexthop_compat_mode 0 a route carries the id of its nexthop and nothing else."""
    host.sysctl("ipv4/nexthop_compat_mode", 0)
    host.batch([*NEXTHOPS[0], *NEXTHOPS[1], *NEXTHOPS[2], *NEXTHOPS[3], *NEXTHOPS[4]])
    addressed.resync()
    routes = [(route["nhid"], route["legs"]) for route in addressed.state()["routes"]]
    assert routes == [(3, []), (1, []), (5, []), (5, [])]
    view = addressed.engine.view(0, "ipv4")
    assert view.best is not None
    assert view.default_routes == 3
    assert view.best.interface == "eth0"


@pytest.mark.both_loaders
def test_what_an_overrun_lost_is_found_by_dumps(
    host: Namespace, addressed: Watched, tier: Tier
) -> None:
    small = Watched(host, tier, rcvbuf=1, ring=SMALLEST_RING)
    small.expect_what_ip_shows()
    host.batch([f"addr add 10.0.{n}.1/24 dev eth0" for n in range(200)])
    host.batch(["route add default via 192.0.2.1", "link set eth1 down"])
    assert Wake.DIRTY in small.source.drain()
    lost = {dirty.scope for dirty in small.engine.dirty() if dirty.lost}
    counters = small.source.counters()
    if tier.source == "netlink":
        # What the kernel dropped may have been anything.
        assert lost == set(Scope)
        assert counters["overruns"] > 0
        assert counters["lost"] > 100
    else:
        assert Scope.ADDR4 in lost
        assert counters["lost.RTM_NEWADDR"] > 100
    small.expect_what_ip_shows()
    small.source.close()


def test_twenty_thousand_routes_wake_nobody(
    host: Namespace, addressed: Watched, tier: Tier
) -> None:
    """They are dropped in C, or in the kernel; the default routes among them are still found."""
    count = 20_000
    quiet = Watched(host, tier, rcvbuf=256 << 20)
    quiet.expect_what_ip_shows()
    quiet.engine.changed()
    host.batch([f"route add 10.{n >> 8}.{n & 255}.0/24 via 192.0.2.1" for n in range(count)])
    host.batch([f"route add 2001:db8:f:{n:x}::/64 via 2001:db8::1" for n in range(1000)])
    assert quiet.source.wait(boot_ns() + NANOSECONDS // 10) is Wake.TIMEOUT
    counters = quiet.source.counters()
    assert counters["overruns"] == 0
    assert counters["dropped.RTM_NEWROUTE"] >= count + 1000
    assert counters["seen.RTM_NEWROUTE"] == counters["dropped.RTM_NEWROUTE"]
    quiet.source.close()
    host.batch(["route add default via 192.0.2.1", "route add default via 2001:db8::1"])
    # The teardown reads everything again, by dumps alone.
    addressed.expect_what_ip_shows()
    assert [route["family"] for route in addressed.state()["routes"]] == [AF_INET, AF_INET6]


def test_times_are_those_of_the_clock_that_counts_sleep(watched: Watched, host: Namespace) -> None:
    watched.source.tap(1 << 16)
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    host.ip("addr add 192.0.2.11/24 dev eth0")
    watched.source.drain()
    records = list(iter_records(watched.source.read_tap()))
    assert [r.payload.local for r in records if isinstance(r.payload, Addr)] == [
        bytes([192, 0, 2, 11])
    ]
    assert all(before < record.header.boot_ns < boot_ns() for record in records)
    assert records[0].header.portid != 0
