"""Random operations, many of which do not fit, on the kernel and on paper."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from tests.standin.both import Both
from tests.standin.payloads import address, any_route, group, leg, nexthop, packed, route
from tests.standin.real import RealKernel
from tracker.capture.names import IFA_F_NOPREFIXROUTE
from tracker.capture.record import Leg, Route
from tracker.model import AF_INET, AF_INET6

OPERATIONS = 200
LINKS = ("v0", "v1", "v2")

# IPv6 routes over a gateway, over a link alone and over objects have metrics of their own: a
# dump hides a route that stands between siblings, and a delete takes any route over an object.
# Those over gateways have no source, as siblings share one on paper.
GATEWAY, DEVICE, OBJECT = (100, 200), 400, (301, 302)


class Walk:
    """One random operation after the other."""

    def __init__(self, both: Both, seed: int) -> None:
        self.both = both
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.operations: list[tuple[int, Callable[[], bool]]] = [
            (10, self.up),
            (4, self.down),
            (4, self.carrier),
            (2, self.rename),
            (18, self.add_address),
            (12, self.delete_address),
            (4, self.deprecate),
            (18, self.add_route),
            (10, self.delete_route),
            (8, self.add_nexthop),
            (4, self.add_group),
            (2, self.delete_nexthop),
            (6, self.route_by_nexthop),
        ]

    def step(self) -> None:
        weights = [weight for weight, _ in self.operations]
        [(_, operation)] = self.random.choices(self.operations, weights)
        self.done[operation.__name__] += operation()

    def pick(self) -> tuple[str, int]:
        """A link, by its present name and by number."""
        links = [link for link in self.both.paper.links.values() if link.ifindex != 1]
        link = self.random.choice(links)
        return link.name, link.ifindex

    # Operations.

    def up(self) -> bool:
        return self.both.up(self.pick()[0])

    def down(self) -> bool:
        return self.both.down(self.pick()[0])

    def carrier(self) -> bool:
        name, ifindex = self.pick()
        number = sorted(link for link in self.both.paper.links if link != 1).index(ifindex)
        on = self.random.random() < 0.6
        self.both.far_end(number, up=on)
        self.both.compare(f"carrier of {name}", self.both.paper.set_carrier(ifindex, on=on))
        return True

    def rename(self) -> bool:
        return self.both.rename(self.pick()[0], self.random.choice([*LINKS, "eth0", "eth1"]))

    def _address(self) -> str:
        net, host = self.random.randrange(2), self.random.randrange(1, 6)
        if self.random.random() < 0.6:
            return f"192.0.{net}.{host}/{self.random.choice((24, 24, 24, 32, 16))}"
        return f"2001:db8:{net}::{host}/{self.random.choice((64, 64, 128))}"

    def add_address(self) -> bool:
        flags = IFA_F_NOPREFIXROUTE if self.random.random() < 0.1 else 0
        return self.both.add_address(address(self.pick()[1], self._address(), flags))

    def delete_address(self) -> bool:
        mine = [a for a in self.both.paper.addresses if a.ifindex != 1]
        if mine and self.random.random() < 0.8:
            return self.both.delete_address(self.random.choice(mine))
        return self.both.delete_address(address(self.pick()[1], self._address()))

    def deprecate(self) -> bool:
        mine = [a for a in self.both.paper.addresses if a.ifindex != 1]
        if not mine:
            return False
        preferred = self.random.choice((0, 0xFFFFFFFF))
        return self.both.add_address(
            self.random.choice(mine)._replace(preferred=preferred), "change"
        )

    def _leg(self, family: int) -> Leg:
        ifindex = self.pick()[1]
        weight = self.random.choice((1, 1, 3))
        last = self.random.randrange(1, 5)
        if family == AF_INET6:
            return leg(ifindex, f"fe80::{last}", weight)
        kind = self.random.random()
        if kind < 0.2:
            return leg(ifindex, f"192.0.{self.random.randrange(2)}.{100 + last}", weight)
        if kind < 0.3:
            return leg(ifindex, f"fe80::{last}", weight)
        return leg(ifindex, f"203.0.113.{last}", weight, onlink=True)

    def _source(self, family: int) -> bytes:
        if self.random.random() < 0.7:
            return b""
        own = [a.local for a in self.both.paper.addresses if a.family == family]
        return self.random.choice([*own, packed("192.0.2.1" if family == AF_INET else "fd00::1")])

    def add_route(self) -> bool:
        family = self.random.choice((AF_INET, AF_INET, AF_INET6))
        table = self.random.choice((254, 254, 100))
        if self.random.random() < 0.15:
            only = leg(self.pick()[1])
            plain = route(family, only, metric=DEVICE, table=table)
        elif self.random.random() < 0.1:
            plain = route(family, type=7, metric=DEVICE + 1, table=table)
        else:
            count = self.random.choice((1, 1, 1, 2, 3))
            legs = {(x.oif, x.gw): x for x in (self._leg(family) for _ in range(count))}
            metric = self.random.choice(GATEWAY)
            plain = route(family, *legs.values(), metric=metric, table=table)
            if len(legs) == 1:
                plain = plain._replace(legs=(plain.legs[0]._replace(weight=1),))
        if family == AF_INET or plain.metric not in GATEWAY:
            plain = plain._replace(prefsrc=self._source(family))
        actions = ["add", "add", "replace", "append", "prepend"]
        if family == AF_INET6 and len(plain.legs) > 1:
            # Of several legs of which one is there already the kernel adds some, takes them back
            # and says so.
            actions = actions[:3]
        return self.both.route(self.random.choice(actions), plain)

    def delete_route(self) -> bool:
        defaults = [r for r in self.both.paper.routes if not r.dst_len]
        if not defaults or self.random.random() < 0.2:
            return self.both.route("delete", any_route(AF_INET, metric=GATEWAY[0]))
        chosen = self.random.choice(defaults)
        return self.both.route("delete", self._request(chosen))

    def _request(self, chosen: Route) -> Route:
        request = any_route(chosen.family, metric=chosen.metric, table=chosen.table)
        if chosen.nh_id:
            return request._replace(nh_id=chosen.nh_id)
        if chosen.type != 1:
            return request._replace(type=chosen.type)
        if chosen.legs[0].gw and self.random.random() < 0.5:
            one = self.random.choice(chosen.legs)
            if chosen.family == AF_INET and len(chosen.legs) > 1:
                one = chosen.legs[0]
            return request._replace(legs=(one._replace(weight=1, flags=0),))
        return request

    def add_nexthop(self) -> bool:
        gateway = self.random.choice(("203.0.113.9", "203.0.113.8", "fe80::9"))
        onlink = gateway[0] != "f"
        one = nexthop(self.random.randrange(1, 5), self.pick()[1], gateway, onlink=onlink)
        return self.both.nexthop(self.random.choice(("add", "add", "replace")), one)

    def add_group(self) -> bool:
        members = self.random.sample(range(1, 5), self.random.choice((1, 2, 3)))
        pairs = [(number, self.random.choice((1, 2))) for number in members]
        number = self.random.randrange(10, 12)
        return self.both.nexthop(self.random.choice(("add", "replace")), group(number, *pairs))

    def delete_nexthop(self) -> bool:
        return self.both.delete_nexthop(self.random.choice((1, 2, 3, 4, 10, 11)))

    def route_by_nexthop(self) -> bool:
        number = self.random.choice((1, 2, 3, 4, 10, 11))
        family = self.random.choice((AF_INET, AF_INET6))
        plain = route(family, nh_id=number, metric=self.random.choice(OBJECT))
        return self.both.route(self.random.choice(("add", "append", "replace")), plain)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_operations_come_out_the_same(real: RealKernel, seed: int) -> None:
    walk = Walk(Both(real, promote_secondaries=seed % 2 == 1), seed)
    for name in LINKS:
        walk.both.up(name)
    for _ in range(OPERATIONS):
        walk.step()
    # Most kinds of operation must have succeeded, or the walk says little.
    assert all(walk.done[name] for name in ("add_address", "add_route", "add_nexthop", "down"))
