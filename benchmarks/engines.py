"""Engines and sessions filled with records, without a kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests import build
from tracker.address import host_network
from tracker.capture.base import Wake
from tracker.capture.record import encode
from tracker.model import FAMILIES, Scope
from tracker.policy.compile import policy

if TYPE_CHECKING:
    from tracker.capture.record import Record
    from tracker.engine.base import Engine

PER_LINK = 100
FIRST_LINK = 2
BEST, SECOND = "10.0.0.1", "10.0.0.2"
"""The two best addresses of every host here, over the link of the better default route."""
GATEWAY = "10.0.255.254"
PREFIXLEN = 16
NEXTHOP = 1
"""The object of the better default route, where that is what changes."""

_FOUND = ("10.0.0.1", "10.0.0.7", "192.0.2.7")
"""What a name server, or the kernel, answered; or what is configured."""
_MODES: dict[str, dict[str, object]] = {
    "default-route": {},
    "interface": {"interfaces": ("bond0", "eth*")},
    "cidr": {"cidrs": ("192.168.0.0/16", "10.0.0.0/8")},
    "hint": {"mode": "default-route", "hint": _FOUND[:1]},
    "route-to": {},
    "dns": {},
    "static": {"static": _FOUND},
}
MODES = tuple(_MODES)


def set_mode(engine: Engine, name: str) -> None:
    """A policy of that mode, as configured and with what is found out in it."""
    given = {"mode": name, **_MODES[name]}
    # Keywords of many types, by name.
    engine.set_policy(0, policy(families=FAMILIES, **given))  # type: ignore[arg-type]
    if name in {"route-to", "dns"}:
        engine.set_mode_networks(0, tuple(map(host_network, _FOUND)))
    engine.set_targets((host_network("203.0.113.7"),) if name == "route-to" else ())


def links(addresses: int) -> list[Record]:
    """As many as it takes for PER_LINK addresses on each."""
    return [build.link(index, f"eth{index}") for index in range(FIRST_LINK, _end(addresses))]


def _end(addresses: int) -> int:
    """Behind the last link."""
    return FIRST_LINK + max(1, addresses // PER_LINK)


def addresses(count: int) -> list[Record]:
    """IPv4 addresses, BEST and SECOND first."""
    return [_address(number) for number in range(count)]


def routes(addresses: int) -> list[Record]:
    """Default routes over the first and the last link."""
    return [_default(FIRST_LINK, 100), _default(_end(addresses) - 1, 200)]


def _default(oif: int, metric: int, **more: int) -> Record:
    # Numbers by name; mypy thinks of the keywords that are none.
    return build.route(oif=oif, via=GATEWAY, metric=metric, **more)  # type: ignore[arg-type]


def filled(engine: Engine, count: int) -> Engine:
    """The engine with so many addresses and the default policy."""
    # Routes of tables that no policy names are not kept; the rest comes first, because the
    # reference ranks anew after each record as soon as there is a policy.
    engine.apply(_state(count))
    assert engine.counters()["addresses"] == count
    engine.set_policy(0, build.policy())
    apply(engine, routes(count))
    return engine


@functools.cache
def _state(count: int) -> bytes:
    return b"".join(map(encode, [*links(count), *addresses(count)]))


def apply(engine: Engine, records: list[Record]) -> None:
    """Feed records."""
    assert engine.apply(b"".join(map(encode, records))) == len(records)


def best_in_turn() -> list[bytes]:
    """Changes that make the second address the best one, and the first one again."""
    deprecated = build.DEPRECATED
    return [
        b"".join(map(encode, (_address(0, flags=flags), _address(1, flags=deprecated - flags))))
        for flags in (deprecated, 0)
    ]


def other_in_turn(count: int) -> list[bytes]:
    """Changes of an address that neither makes the best one nor unmakes it."""
    last = count - 1
    return [encode(_address(last, flags=flags)) for flags in (build.DEPRECATED, 0)]


def _carrier(_engine: Engine, _count: int) -> list[bytes]:
    name = f"eth{FIRST_LINK}"
    return [encode(build.link(FIRST_LINK, name, carrier=carrier)) for carrier in (False, True)]


def _default_route(_engine: Engine, _count: int) -> list[bytes]:
    route = _default(FIRST_LINK, 100)
    return [encode(build.gone(route)), encode(route)]


def _nexthop(engine: Engine, _count: int) -> list[bytes]:
    """An object whose gateway is in a subnet of the host, or not."""
    far, near = (
        build.nexthop(NEXTHOP, oif=FIRST_LINK, via=via) for via in ("192.0.2.254", GATEWAY)
    )
    route = _default(FIRST_LINK, 100)
    apply(engine, [near, build.gone(route), _default(FIRST_LINK, 100, nh_id=NEXTHOP)])
    return [encode(far), encode(near)]


CHANGES: dict[str, Callable[[Engine, int], list[bytes]]] = {
    "best address": lambda _, count: best_in_turn(),
    "other address": lambda _, count: other_in_turn(count),
    "link carrier": _carrier,
    "default route": _default_route,
    "nexthop object": _nexthop,
}
"""What changes, and back, again and again; of a link that has PER_LINK addresses at most."""


def _address(number: int, flags: int = 0) -> Record:
    local = f"10.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}"
    return build.addr(
        f"{local}/{PREFIXLEN}",
        FIRST_LINK + number // PER_LINK,
        flags=build.PERMANENT | flags,
        cstamp=number,
    )


def _dump(scope: Scope, shown: list[Record]) -> bytes:
    records = [build.begin(scope), *map(build.entry, shown), build.end(scope)]
    return b"".join(map(encode, records))


class Fed:
    """A source that has one change ready for each wait, and dumps what it was filled with."""

    name = "fed"
    dump_error = ""

    def __init__(self, engine: Engine, count: int) -> None:
        """Every scope is lost, as when a real source is opened."""
        self.engine = engine
        self.changes: Iterator[bytes] = iter(())
        shown = {
            Scope.LINK: links(count),
            Scope.ADDR4: addresses(count),
            Scope.ROUTE4: routes(count),
        }
        self._dumps = {scope: _dump(scope, shown.get(scope, [])) for scope in Scope}
        engine.lose(tuple(Scope))

    def wait(self, deadline_ns: int) -> Wake:
        self.engine.apply(next(self.changes))
        return Wake.CHANGED

    def drain(self) -> Wake:
        return Wake(0)

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        self.engine.apply(self._dumps[scope])
        return True

    def refresh(self) -> None:
        pass

    def wake(self) -> None:
        pass

    def close(self) -> None:
        pass

    def counters(self) -> dict[str, int]:
        return {}
