"""Records as JSON: what is shown can be put into a snapshot, and means the same there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracker.address import parse
from tracker.capture.fields import Fields
from tracker.capture.plain import cause, ifindex_of, plain
from tracker.capture.record import (
    Addr,
    Flush,
    Header,
    Leg,
    Link,
    Loss,
    LossCause,
    Member,
    Nexthop,
    Record,
    Route,
    Rule,
    Task,
)
from tracker.capture.snapshot import read
from tracker.model import AF_INET, AF_INET6, Cause

NAMES = {1: "lo", 4: "bond0", 5: "eth0"}
HOST = {"links": [{"ifindex": 1, "name": "lo"}], "addresses": [], "routes": []}

LINK = Link(4, "bond0", 0x11043, 0, 0, 0, 1500, 1, 6, "bond")
ADDRESS = Addr(AF_INET, 4, parse("192.0.2.10"), 24, flags=0x80, cstamp=77)
ROUTE = Route(AF_INET, 254, 100, proto=16, legs=(Leg(4, 1, 0, AF_INET, parse("192.0.2.1")),))

STATE: list[tuple[str, Any]] = [
    ("links", LINK),
    ("links", LINK._replace(flags=0x1003, operstate=2, kind="")),
    ("links", LINK._replace(flags=0x1002, master=9, lower=5, vrf_table=1001, type=65534)),
    ("links", LINK._replace(flags=0x80011043)),
    ("addresses", ADDRESS),
    ("addresses", ADDRESS._replace(flags=0x1, peer=parse("192.0.2.9"), priority=5, scope=253)),
    (
        "addresses",
        Addr(AF_INET6, 4, parse("2001:db8::1"), 64, b"", 0x361, 3600, 1800, 7, 0, 0, 2),
    ),
    ("routes", ROUTE),
    ("routes", ROUTE._replace(dst=parse("10.0.0.0"), dst_len=8, prefsrc=parse("192.0.2.10"))),
    ("routes", ROUTE._replace(nh_id=7, legs=(), table=1001, type=6, tos=8, scope=253)),
    (
        "routes",
        ROUTE._replace(
            rtm_flags=0x10,
            legs=(
                Leg(4, 5, 0x15, AF_INET6, parse("fe80::1")),
                Leg(5, 1, 0, 0, b""),
            ),
        ),
    ),
    (
        "routes",
        Route(AF_INET6, 254, 1024, proto=9, pref=1, expires=1800, legs=(Leg(4),)),
    ),
    ("nexthops", Nexthop(7, AF_INET, 4, 0, 4, AF_INET, parse("192.0.2.1"))),
    ("nexthops", Nexthop(8, members=(Member(7), Member(9, 3)))),
    ("nexthops", Nexthop(9, AF_INET, blackhole=True)),
]


@pytest.mark.parametrize(("kind", "payload"), STATE, ids=lambda value: str(value)[:40])
def test_what_is_shown_can_be_put_into_a_snapshot(kind: str, payload: Any) -> None:
    shown = json.loads(json.dumps(plain(payload, NAMES.__getitem__)))
    snapshot = read(Fields({**HOST, kind: [shown]}, "shown"))
    assert getattr(snapshot, kind)[-1] == payload


def test_what_says_nothing_is_left_out() -> None:
    assert plain(ROUTE, NAMES.__getitem__) == {
        "family": "inet",
        "dst": "default",
        "table": 254,
        "type": "unicast",
        "protocol": "dhcp",
        "scope": "global",
        "metric": 100,
        "nexthops": [{"oif": 4, "dev": "bond0", "gateway": "192.0.2.1"}],
    }


def test_losses_rules_and_silent_removals_are_told() -> None:
    loss = Loss(LossCause.RING, 1 << 6 | 1 << 4 | 1 << 0, 12)
    assert plain(loss, NAMES.__getitem__) == {
        "cause": "ring",
        "scopes": ["link", "route4", "rule"],
        "messages": 12,
    }
    rule = Rule(AF_INET, 100, 1001, 1)
    assert plain(rule, NAMES.__getitem__) == {
        "family": "inet",
        "priority": 100,
        "table": 1001,
        "action": 1,
    }
    flush = Flush(AF_INET, 254, 100, oif=4)
    assert plain(flush, NAMES.__getitem__) == {
        "family": "inet",
        "dst": "default",
        "table": 254,
        "type": "unicast",
        "metric": 100,
        "oif": 4,
        "dev": "bond0",
    }


def test_the_link_of_a_change_is_told_where_there_is_one() -> None:
    assert ifindex_of(LINK) == ifindex_of(ADDRESS) == ifindex_of(ROUTE) == 4
    assert ifindex_of(ROUTE._replace(legs=(Leg(4), Leg(5)))) == 0
    assert ifindex_of(Loss(LossCause.RING, 1)) == 0


@pytest.mark.parametrize(
    ("task", "by"),
    [
        (None, ""),
        (Task(812, "NetworkManager"), " by NetworkManager (812)"),
        (Task(33, "kworker/1:2", "kernel"), " by kworker/1:2 (kernel)"),
        (Task(4711, "bird", "untrusted"), " by bird (4711, untrusted)"),
    ],
    ids=["not-known", "process", "kernel", "untrusted"],
)
def test_who_made_a_change_is_told_as_far_as_it_is_known(task: Task | None, by: str) -> None:
    found = cause(Record(Header(), ADDRESS, task), NAMES.__getitem__)
    assert found.change == "RTM_NEWADDR 192.0.2.10/24 bond0"
    assert found.by == by
    if task is not None:
        assert found == Cause(found.change, task.comm, task.tgid, task.attribution)
