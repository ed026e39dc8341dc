"""Engines and sessions filled with records, without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests import build
from tracker.capture.base import Wake
from tracker.capture.record import encode
from tracker.model import Scope

if TYPE_CHECKING:
    from tracker.capture.record import Record
    from tracker.engine.base import Engine

PER_LINK = 100
FIRST_LINK = 2
BEST, SECOND = "10.0.0.1", "10.0.0.2"
"""The two best addresses of every host here, over the link of the better default route."""
GATEWAY = "10.0.255.254"
PREFIXLEN = 16


def links(addresses: int) -> list[Record]:
    """As many as it takes for PER_LINK addresses on each."""
    count = addresses // PER_LINK
    return [build.link(index, f"eth{index}") for index in range(FIRST_LINK, FIRST_LINK + count)]


def addresses(count: int) -> list[Record]:
    """IPv4 addresses, BEST and SECOND first."""
    return [_address(number) for number in range(count)]


def routes(addresses: int) -> list[Record]:
    """Default routes over the first and the last link."""
    last = FIRST_LINK + addresses // PER_LINK - 1
    return [
        build.route(oif=oif, via=GATEWAY, metric=metric)
        for oif, metric in ((FIRST_LINK, 100), (last, 200))
    ]


def filled(engine: Engine, count: int) -> Engine:
    """The engine with so many addresses and the default policy."""
    # Routes of tables that no policy names are not kept; the rest comes first, because the
    # reference ranks anew after each record as soon as there is a policy.
    apply(engine, [*links(count), *addresses(count)])
    engine.set_policy(0, build.policy())
    apply(engine, routes(count))
    return engine


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
