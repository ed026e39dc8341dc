"""What the filter in the kernel is told of policies: nothing is quiet that some selection wants."""

from __future__ import annotations

import struct
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.build import addr, gone, link, nexthop, policy, route
from tracker._engine import ffi, lib
from tracker.address import host_network
from tracker.capture.record import encode
from tracker.engine.native import NativeEngine
from tracker.model import AF_INET, Fallback, Ground, Grounds, PolicyTable
from tracker.policy.defaults import DOCKER_BRIDGE

BORROWED = Ground(AF_INET, host_network("192.0.2.10").address, 2)


def told(
    *policies: PolicyTable, targets: tuple[str, ...] = (), grounds: Grounds | None = None
) -> Any:
    """struct at_filter of an engine with these selections."""
    engine = NativeEngine()
    engine.set_targets(tuple(map(host_network, targets)))
    engine.set_grounds(grounds)
    for selection, table in enumerate(policies):
        engine.set_policy(selection, table)
    out = ffi.new("struct at_filter *")
    lib.at_engine_filter(engine.handle, out)
    return out


def matches(masks: Any, count: int, name: str) -> bool:
    words = struct.unpack("=2Q", name.encode("utf-8", "surrogateescape").ljust(16, b"\0"))
    return any(
        all(word & mask == value for word, mask, value in zip(words, m.mask, m.value, strict=True))
        for m in masks[0:count]
    )


def is_quiet(filter_: Any, name: str, kind: str = "") -> bool:
    """As the program judges it (bpf/quiet.h), but for links that are watched."""
    if matches(filter_.loud_names, filter_.n_loud_names, name):
        return False
    kinds = [ffi.string(kind) for kind in filter_.quiet_kinds[0 : filter_.n_quiet_kinds]]
    return matches(filter_.quiet_names, filter_.n_quiet_names, name) or kind.encode() in kinds


def names(*exclude: str, keep: tuple[str, ...] = (), kinds: tuple[str, ...] = ()) -> PolicyTable:
    return policy(exclude_names=exclude, keep_names=keep, exclude_kinds=kinds)


@pytest.mark.parametrize(
    ("pattern", "quiet", "loud"),
    [
        ("docker*", ["docker0", "docker", "docker_gwbridge"], ["docke", "adocker", "eth0"]),
        ("clat", ["clat"], ["clat0", "cla", ""]),
        ("v?th", ["veth", "vxth"], ["vth", "veth0", "vvvth"]),
        ("v?th*", ["veth", "veth0"], ["vth0"]),
        ("*", ["eth0", ""], []),
        # What no mask says is loud, though the policy excludes it.
        ("eth?", [], ["eth", "eth0"]),
        ("eth?*", [], ["eth", "eth0"]),
        ("*0", [], ["eth0"]),
        ("a*b", [], ["ab", "acb"]),
        (DOCKER_BRIDGE, [], ["br-0123456789ab", "br-lan"]),
        ("sixteen-bytes-it", [], ["sixteen-bytes-i"]),
    ],
)
def test_patterns_that_a_mask_can_say_are_quiet(
    pattern: str, quiet: list[str], loud: list[str]
) -> None:
    filter_ = told(names(pattern))
    assert [name for name in quiet + loud if is_quiet(filter_, name)] == quiet


short = st.text("ab-0", min_size=0, max_size=5)
pattern = st.text("ab-0*?[]", min_size=1, max_size=6)
selection = st.builds(
    names, pattern, pattern, keep=st.tuples(pattern), kinds=st.sampled_from([(), ("dummy",)])
)


@given(st.lists(selection, min_size=1, max_size=3), st.lists(short, min_size=1, max_size=20))
@example([names("a*", keep=("ab*",))], ["a", "ab", "ab0"])
def test_no_link_is_quiet_that_some_selection_may_take(
    selections: list[PolicyTable], links: list[str]
) -> None:
    filter_ = told(*selections)
    for name in links:
        if not is_quiet(filter_, name):
            continue
        for table in selections:
            assert any(fnmatchcase(name, exclude) for exclude in table.exclude_names)
            assert not any(fnmatchcase(name, keep) for keep in table.keep_names)


def test_a_link_that_one_of_two_selections_may_take_is_loud() -> None:
    filter_ = told(
        names("docker*", "veth*", kinds=("dummy", "ifb")), names("veth*", kinds=("ifb",))
    )
    assert is_quiet(filter_, "veth1")
    assert not is_quiet(filter_, "docker0")
    assert is_quiet(filter_, "x", kind="ifb")
    assert not is_quiet(filter_, "x", kind="dummy")


def test_a_name_that_is_kept_is_loud_whatever_its_kind() -> None:
    filter_ = told(names("docker*", keep=("docker0", "d[a-c]*"), kinds=("dummy",)))
    assert not is_quiet(filter_, "docker0")
    assert is_quiet(filter_, "docker1", kind="dummy") is False, "d[ widens to d*"
    assert is_quiet(filter_, "x", kind="dummy")


def test_the_link_of_a_fallback_is_loud() -> None:
    table = names("wg*")._replace(fallback=Fallback.INTERFACE, fallback_name="wg0")
    assert not is_quiet(told(table), "wg0")
    assert is_quiet(told(table), "wg1")


def test_the_loopback_link_is_loud() -> None:
    assert not is_quiet(told(names("*")), "lo")


def test_without_room_for_all_that_is_kept_nothing_is_quiet() -> None:
    filter_ = told(names("docker*", keep=tuple(f"docker{number}" for number in range(64))))
    assert filter_.n_quiet_names == filter_.n_loud_names == filter_.n_quiet_kinds == 0


def test_what_there_is_no_room_for_is_loud() -> None:
    filter_ = told(names(*(f"n{number}" for number in range(100)), kinds=("k",) * 20))
    assert (filter_.n_quiet_names, filter_.n_quiet_kinds) == (64, 16)


@pytest.mark.parametrize(
    "grounds",
    [None, Grounds(any_address=frozenset({AF_INET})), Grounds(sources=frozenset({BORROWED}))],
    ids=["unknown", "any address", "borrowed"],
)
def test_nothing_is_quiet_while_any_link_may_matter_to_a_target(grounds: Grounds | None) -> None:
    """A route to one may lead over any link, and goes with it without a message."""
    filter_ = told(names("docker*", kinds=("dummy",)), targets=("10.0.0.1",), grounds=grounds)
    assert filter_.n_targets == 1
    assert filter_.n_quiet_names == filter_.n_quiet_kinds == 0


def test_links_are_quiet_that_are_not_on_the_way_to_a_target() -> None:
    way = Grounds(frozenset({2}), sources=frozenset({BORROWED._replace(ifindex=0)}))
    filter_ = told(names("docker*"), targets=("10.0.0.1",), grounds=way)
    assert (filter_.n_targets, filter_.n_quiet_names) == (1, 1)


def test_tables_of_all_selections_are_told_once() -> None:
    filter_ = told(policy(), policy(table=7), policy())
    assert list(filter_.tables[0 : filter_.n_tables]) == [7, 254]
    assert filter_.n_targets == 0


def test_without_a_selection_nothing_matters() -> None:
    filter_ = told()
    assert (filter_.n_tables, filter_.n_quiet_names, filter_.n_quiet_kinds) == (0, 0, 0)


# Links that are never quiet.


BORROWED_ON_9 = addr("192.0.2.10/32", 9)


class Watching:
    def __init__(self) -> None:
        self.engine = NativeEngine()
        self.engine.set_policy(0, policy())
        self._moves = 0

    def apply(self, *records: object) -> None:
        # The builders make records.
        self.engine.apply(b"".join(map(encode, records)))  # type: ignore[arg-type]

    def moved(self) -> bool:
        """Whether the engine says that they may have changed since the last call."""
        before, self._moves = self._moves, lib.at_engine_moves(self.engine.handle)
        return self._moves != before

    def links(self) -> list[int]:
        out = ffi.new("uint32_t[64]")
        count = lib.at_engine_watched(self.engine.handle, out, 64)
        return list(out[0:count])


@pytest.mark.parametrize(
    ("records", "links"),
    [
        ([route(via="192.0.2.1", oif=3, metric=1)], [3]),
        ([route(via="fe80::1", oif=3), route(via="192.0.2.1", oif=2)], [2, 3]),
        ([nexthop(1, oif=4), nexthop(2, members=((1, 1),))], [4]),
        ([nexthop(1, oif=4), route(nh_id=1)], [4]),
        ([route(via="192.0.2.1", oif=3, src="10.0.0.1"), addr("10.0.0.1/32", 9)], [3, 9]),
        ([addr("10.0.0.1/32", 9), route(via="192.0.2.1", oif=3, src="10.0.0.1")], [3, 9]),
        ([link(7, "eth0"), addr("192.0.2.10/24", 7)], [7]),
        ([route("10.0.0.0/8", oif=3), route(via="192.0.2.1", oif=3, table=7)], []),
    ],
    ids=["route", "families", "object", "route on object", "named", "named before", "best", "none"],
)
def test_links_that_a_choice_depends_on_are_watched(records: list[Any], links: list[int]) -> None:
    watching = Watching()
    watching.moved()
    watching.apply(*records)
    assert watching.links() == links
    assert watching.moved() == bool(links)


def test_links_on_the_way_to_a_target_are_watched() -> None:
    watching = Watching()
    watching.apply(
        link(6, "eth5"), link(7, "eth6", carrier=False), link(8, "eth7", up=False), BORROWED_ON_9
    )
    watching.engine.set_targets((host_network("203.0.113.7"),))
    assert watching.links() == []
    watching.moved()
    watching.engine.set_grounds(Grounds(frozenset({3}), sources=frozenset({BORROWED})))
    assert watching.moved()
    # The link of the way, those that may get carrier, and that of the source.
    assert watching.links() == [3, 7, 8, 9]
    watching.engine.set_targets(())
    assert watching.moved()
    assert watching.links() == []


def test_the_link_of_the_incumbent_is_watched() -> None:
    watching = Watching()
    watching.apply(link(7, "eth0"), addr("192.0.2.10/24", 7), addr("192.0.2.11/24", 8))
    watching.moved()
    watching.engine.set_incumbent(0, "ipv4", "192.0.2.11")
    assert watching.moved()
    assert 8 in watching.links()


def test_links_are_watched_no_longer_than_they_matter() -> None:
    watching = Watching()
    over = route(via="192.0.2.1", oif=3)
    watching.apply(over)
    watching.apply(gone(over))
    assert watching.links() == []


def test_more_links_than_fit_are_counted() -> None:
    watching = Watching()
    watching.apply(*(nexthop(number, oif=number) for number in range(1, 11)))
    out = ffi.new("uint32_t[4]")
    assert lib.at_engine_watched(watching.engine.handle, out, 4) == 10
    assert list(out) == [1, 2, 3, 4]
