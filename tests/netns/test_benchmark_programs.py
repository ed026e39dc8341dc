"""The C programs of benchmarks/: what a load does is what it tells, and readers see it."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.peers.process import Reader, stop
from benchmarks.storms import BUILD, IPV4, IPV6, Addresses, Ground, build

if TYPE_CHECKING:
    from collections.abc import Iterator

PLENTY = str(64 << 20)
LITTLE = "8192"
FAMILIES = pytest.mark.parametrize("family", [IPV4, IPV6], ids=["IPv4", "IPv6"])


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    build("load", "floor", "peer-libnl", "peer-relist", "peer-poll")


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.delete()


def reader(ground: Ground, name: str, *arguments: str) -> Reader:
    return Reader(ground.namespace, [str(BUILD / name), *arguments])


def words(events: list[tuple[int, str]]) -> list[str]:
    return [what for _, what in events]


def address(text: str) -> str:
    return text.partition("/")[0]


def addresses(ground: Ground, link: str = "eth0") -> list[str]:
    found: list[dict[str, Any]] = ground.namespace.json(f"addr show dev {link}")
    return [entry["local"] for entry in found[0]["addr_info"]]


EVENTS = [("floor", "recv"), ("peer-libnl",)]


@FAMILIES
@pytest.mark.parametrize("program", EVENTS, ids=" ".join)
def test_a_reader_of_events_sees_each_change(
    ground: Ground, program: tuple[str, ...], family: Addresses
) -> None:
    with reader(ground, *program, family.watch, PLENTY) as follows:
        load = ground.load("routes", "eth0", 5000, family.flipping, 1, 2)
        report = follows.report()
    assert report["lost"] == 0
    assert load["messages"] == 20_000
    assert len(load["changes"]) >= 2
    assert words(report["sights"]) == words(load["changes"])
    for (at, _), (seen, _) in zip(load["changes"], report["sights"], strict=True):
        assert at < seen


@FAMILIES
def test_a_reader_of_lists_sees_each_change_that_stays(ground: Ground, family: Addresses) -> None:
    ip = ground.namespace.ip
    with reader(ground, "peer-relist", family.watch, PLENTY) as lists:
        for what in ("add", "del", "add"):
            ip(f"addr {what} {family.flipping} dev eth0 {'nodad' if what == 'add' else ''}")
            assert lists.wait_until_quiet(20)
        report = lists.report()
    flipping = address(family.flipping)
    assert words(report["sights"]) == [f"+{flipping}", f"-{flipping}", f"+{flipping}"]


@FAMILIES
@pytest.mark.parametrize(
    "program", [("peer-libnl",), ("peer-relist", LITTLE), ("peer-poll", "10000")], ids=" ".join
)
def test_what_is_there_at_the_start_is_seen(
    ground: Ground, program: tuple[str, ...], family: Addresses
) -> None:
    name, *more = program
    with reader(ground, name, family.stays, *more) as starts:
        report = starts.report()
    assert words(report["sights"]) == [f"+{address(family.stays)}"]


@pytest.mark.parametrize("name", ["peer-libnl", "peer-relist"])
def test_what_was_lost_is_made_up_for(ground: Ground, name: str) -> None:
    with reader(ground, name, IPV4.watch, LITTLE) as loses:
        stop(loses.pid)
        ground.load("routes", "eth0", 5000, IPV4.flipping, 0)
        ground.namespace.ip(f"addr add {IPV4.flipping} dev eth0")
        loses.signal(signal.SIGCONT)
        report = loses.report()
    assert report["lost"] > 0
    assert words(report["sights"]) == [f"+{address(IPV4.flipping)}"]


@FAMILIES
def test_a_load_leaves_nothing_behind(ground: Ground, family: Addresses) -> None:
    def routes() -> list[Any]:
        return [
            *ground.namespace.json("-4 route show table all"),
            *ground.namespace.json("-6 route show table all"),
        ]

    before = routes(), addresses(ground)
    for command in (
        ("routes", "eth0", 300, family.flipping, 1),
        ("rate", "eth0", 3000, 1, family.flipping, 7),
        ("links", "v", 20, ground.other.path, "eth0", family.flipping, 1),
    ):
        changes = words(ground.load(*command)["changes"])
        came, went = changes[::2], changes[1::2]
        assert [word[1:] for word in came] == [word[1:] for word in went]
        assert {word[0] for word in came} <= {"+"}
        assert len(set(came)) == len(came) or len(came) > 200
        assert (routes(), addresses(ground)) == before


def test_each_promotion_takes_the_primary_address(ground: Ground) -> None:
    changes = ground.load("promotions", "eth0", 15, "198.18.0.0/23", 20)["changes"]
    assert words(changes) == [f"-198.18.0.{host}" for host in range(1, 16)]
    # Two are away: the last two that went. Those before them came back, as the last ones.
    left = [f"198.18.0.{host}" for host in [*range(16, 21), *range(1, 14)]]
    assert addresses(ground)[1:-1] == left


def test_a_filled_host_has_what_was_asked_for(ground: Ground) -> None:
    def counts() -> dict[str, int]:
        with reader(ground, "floor", "dump") as dumps:
            found: dict[str, int] = json.loads(dumps.ready)
        return found

    before = counts()
    ground.load("fill", "f", 3, 240, 500)
    after = counts()
    assert {name: after[name] - before[name] for name in ("links", "addresses", "nexthops")} == {
        "links": 6,
        "addresses": 240,
        "nexthops": 0,
    }
    # Besides, networks of links: one of each family, and that of link-local addresses.
    assert after["routes"] - before["routes"] >= 500 + 3 + 3
    assert after["rules"] == 5
    assert len(addresses(ground, "f0")) == 80
