"""A small network that changes at random, by the kernel's own rules."""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.soak.rtnl import (
    NLM_F_APPEND,
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    RTM_DELROUTE,
    RTM_NEWROUTE,
    Leg,
    Rtnl,
    ifindex,
    name_of,
)

AF_INET, AF_INET6 = socket.AF_INET, socket.AF_INET6
PAIRS = 4
NAMES = [
    *(f"eth{i}" for i in range(PAIRS)),
    *(f"peer{i}" for i in range(PAIRS)),
    *("br0", "docker0", "mac0", "veth9", "uplink"),
]
TABLES = (254, 254, 254, 100)
PROTOCOLS = (4, 4, 4, 186)
"""static, bgp: most often dumps of IPv6 routes are narrowed to one."""
METRICS = (0, 100, 100, 200)
METRIC_WITHOUT_GATEWAY = 50
METRIC_OF_OBJECTS = 60
"""IPv6 routes on nexthop objects stand alone for the same reason: a dump of siblings skips them."""
_SYSCTL = Path("/proc/sys/net")


def quiet_ipv6() -> None:
    """No duplicate address detection and no link-local addresses: nothing comes by itself."""
    for where in ("default", "all"):
        (_SYSCTL / f"ipv6/conf/{where}/accept_dad").write_text("0")
        (_SYSCTL / f"ipv6/conf/{where}/addr_gen_mode").write_text("1")
        (_SYSCTL / f"ipv6/conf/{where}/accept_ra").write_text("0")


class World:
    """Does one random operation at a time; most fit the state, some do not, as in life."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rtnl = Rtnl()
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        quiet_ipv6()
        promote = self.random.choice("01")
        (_SYSCTL / "ipv4/conf/all/promote_secondaries").write_text(promote)
        (_SYSCTL / "ipv4/conf/default/promote_secondaries").write_text(promote)
        ignore = self.random.choice("01")
        for family in ("ipv4", "ipv6"):
            (_SYSCTL / f"{family}/conf/default/ignore_routes_with_linkdown").write_text(ignore)
        self.rtnl.set_link(1, up=True)
        for pair in range(PAIRS):
            self.rtnl.add_veth(f"eth{pair}", f"peer{pair}")
            self.rtnl.set_link(ifindex(f"eth{pair}"), up=True)
            self.rtnl.set_link(ifindex(f"peer{pair}"), up=True)
        self.rtnl.add_link("br0", "bridge")
        self.rtnl.set_link(ifindex("br0"), up=True)
        self._operations: list[tuple[int, Callable[[], int]]] = [
            (20, self.add_address),
            (18, self.delete_address),
            (4, self.deprecate),
            (9, self.link_up),
            (4, self.link_down),
            (2, self.rename),
            (2, self.master),
            (4, self.make_link),
            (1, self.delete_link),
            (14, self.add_route),
            (8, self.append_route),
            (6, self.replace_route),
            (14, self.delete_route),
            (8, self.add_nexthop),
            (4, self.add_group),
            (2, self.delete_nexthop),
            (8, self.route_by_nexthop),
            (6, self.other_route),
            (2, self.rule),
        ]
        self._weights = [weight for weight, _ in self._operations]

    def close(self) -> None:
        """Free the socket; the namespace goes with the process."""
        self.rtnl.close()

    def step(self) -> str:
        """One operation; its name."""
        (_, operation), *_ = self.random.choices(self._operations, self._weights)
        error = operation()
        name = operation.__name__
        if error:
            self.refused[f"{name}: {name_of(error)}"] += 1
        else:
            self.done[name] += 1
        return name

    # What is picked from.

    def _link(self) -> int:
        """Index of a link, now and then of one that does not exist."""
        for _ in range(8):
            found = ifindex(self.random.choice(NAMES))
            if found:
                return found
        return 999

    def _family(self) -> int:
        return self.random.choice((AF_INET, AF_INET, AF_INET6))

    def _address(self, family: int) -> tuple[str, int]:
        net, host = self.random.randrange(3), self.random.randrange(1, 7)
        if family == AF_INET:
            return f"10.0.{net}.{host}", self.random.choice((24, 24, 24, 32, 16))
        prefix = self.random.choice(("2001:db8", "2001:db8", "fd00"))
        return f"{prefix}:0:{net}::{host}", self.random.choice((64, 64, 128))

    def _gateway(self, family: int) -> str:
        if self.random.random() < 0.2:
            return ""
        net, host = self.random.randrange(3), self.random.randrange(1, 7)
        return f"10.0.{net}.10{host}" if family == AF_INET else f"2001:db8:0:{net}::10{host}"

    def _legs(self, family: int) -> list[Leg]:
        count = self.random.choice((1, 1, 1, 2, 3))
        return [self._leg(family) for _ in range(count)]

    def _leg(self, family: int) -> Leg:
        gateway = self._gateway(family)
        weight = self.random.choice((1, 1, 3))
        # Mostly as routing daemons do: the gateway needs no connected prefix.
        return Leg(self._link(), gateway, weight, bool(gateway) and self.random.random() < 0.8)

    # Operations.

    def add_address(self) -> int:
        address, length = self._address(self._family())
        link = 1 if self.random.random() < 0.05 else self._link()
        return self.rtnl.address(True, link, address, length)

    def delete_address(self) -> int:
        address, length = self._address(self._family())
        error = 0
        for link in self._links():
            error = self.rtnl.address(False, link, address, length)
            if not error:
                return 0
        return error

    def _links(self) -> Iterator[int]:
        names = ["lo", *NAMES]
        self.random.shuffle(names)
        return filter(None, map(ifindex, names))

    def deprecate(self) -> int:
        address, length = self._address(self._family())
        preferred = self.random.choice((0, 0xFFFFFFFF))
        return self.rtnl.address(True, self._link(), address, length, preferred)

    def link_up(self) -> int:
        return self.rtnl.set_link(self._link(), up=True)

    def link_down(self) -> int:
        return self.rtnl.set_link(self._link(), up=False)

    def rename(self) -> int:
        link = self._link()
        error = self.rtnl.set_link(link, up=False)
        error = error or self.rtnl.set_link(link, name=self.random.choice(NAMES))
        self.rtnl.set_link(link, up=True)
        return error

    def master(self) -> int:
        bridge = ifindex("br0") or ifindex("docker0")
        return self.rtnl.set_link(self._link(), master=self.random.choice((0, bridge)))

    def make_link(self) -> int:
        free = [name for name in NAMES if not ifindex(name)]
        if not free:
            return 0
        name = self.random.choice(free)
        choice = self.random.randrange(3)
        if choice == 0:
            return self.rtnl.add_link(name, "bridge")
        if choice == 1 or len(free) < 2:
            return self.rtnl.add_macvlan(name, self._link())
        self.random.shuffle(free)
        error = self.rtnl.add_veth(free[0], free[1])
        for each in free[:2]:
            self.rtnl.set_link(ifindex(each), up=True)
        return error

    def delete_link(self) -> int:
        return self.rtnl.delete_link(self._link())

    def _route(self, kind: int, flags: int) -> int:
        family = self._family()
        prefsrc = self._address(family)[0] if self.random.random() < 0.3 else ""
        type_ = 7 if self.random.random() < 0.05 else 1
        legs = [] if type_ == 7 else self._legs(family)
        metric = self.random.choice(METRICS)
        if family == AF_INET6 and not all(leg.gateway for leg in legs or [Leg(0)]):
            # A dump skips what stands between the siblings of a multipath route, so a fresh
            # dump is no judge where routes with and without gateway share a metric.
            metric = METRIC_WITHOUT_GATEWAY
        return self.rtnl.route(
            kind,
            flags,
            family,
            legs,
            metric=metric,
            table=self.random.choice(TABLES),
            prefsrc=prefsrc,
            type_=type_,
            protocol=self.random.choice(PROTOCOLS),
        )

    def add_route(self) -> int:
        # Without EXCL an IPv4 route is put in front of those of the same metric.
        return self._route(RTM_NEWROUTE, NLM_F_CREATE | self.random.choice((NLM_F_EXCL, 0)))

    def append_route(self) -> int:
        return self._route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_APPEND)

    def replace_route(self) -> int:
        return self._route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE)

    def delete_route(self) -> int:
        family = self._family()
        legs = [Leg(self._link())] if self.random.random() < 0.5 else []
        return self.rtnl.route(
            RTM_DELROUTE,
            0,
            family,
            legs,
            metric=self.random.choice((*METRICS, METRIC_WITHOUT_GATEWAY, METRIC_OF_OBJECTS)),
            table=self.random.choice(TABLES),
            type_=self.random.choice((0, 1)),
            protocol=self.random.choice((0, *PROTOCOLS)),
        )

    def add_nexthop(self) -> int:
        family = self._family()
        leg = self._leg(family)
        flags = NLM_F_CREATE | self.random.choice((0, NLM_F_REPLACE))
        return self.rtnl.nexthop(self.random.randrange(1, 6), family, leg, flags)

    def add_group(self) -> int:
        members = self.random.sample(range(1, 6), self.random.choice((1, 2, 2, 3)))
        flags = NLM_F_CREATE | self.random.choice((0, NLM_F_REPLACE))
        return self.rtnl.group(self.random.randrange(10, 13), members, flags)

    def delete_nexthop(self) -> int:
        return self.rtnl.delete_nexthop(self.random.choice((1, 2, 3, 4, 5, 10, 11, 12)))

    def route_by_nexthop(self) -> int:
        family = self._family()
        return self.rtnl.route(
            RTM_NEWROUTE,
            NLM_F_CREATE | self.random.choice((NLM_F_EXCL, NLM_F_APPEND, NLM_F_REPLACE)),
            family,
            metric=METRIC_OF_OBJECTS if family == AF_INET6 else self.random.choice(METRICS),
            nexthop=self.random.choice((1, 2, 3, 4, 5, 10, 11, 12)),
        )

    def other_route(self) -> int:
        """What a routing daemon does all day: nothing to us."""
        target = f"172.16.{self.random.randrange(64)}.0/24"
        kind, flags = self.random.choice(((RTM_NEWROUTE, NLM_F_CREATE), (RTM_DELROUTE, 0)))
        return self.rtnl.route(kind, flags, AF_INET, [Leg(self._link())], destination=target)

    def rule(self) -> int:
        """Which table counts for one destination."""
        family = self._family()
        to = "172.16.7.7" if family == AF_INET else "2001:db8:ffff::7"
        return self.rtnl.rule(self.random.random() < 0.4, family, to, TABLES[-1])
