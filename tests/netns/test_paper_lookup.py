"""What a snapshot says of the way to an address is what the kernel says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.netns.following import IP_COMMANDS
from tests.netns.namespace import Namespace, connect
from tracker.capture.cases import Case
from tracker.capture.inputs import load
from tracker.capture.lookup import KernelLookup
from tracker.capture.paper import PaperLookup
from tracker.engine.native import NativeEngine

if TYPE_CHECKING:
    from pathlib import Path

SETUPS = {
    "nothing": [],
    "one": ["route add default via 192.0.2.1", "route add default via 2001:db8:1::1 dev eth1"],
    "metrics": [
        "route add default via 192.0.2.1 metric 200",
        "route add default via 198.51.100.1 metric 100",
        "route add 203.0.113.0/24 via 192.0.2.1",
    ],
    "prefsrc": ["addr add 10.9.9.9/32 dev lo", "route add default via 192.0.2.1 src 10.9.9.9"],
    "multipath": [
        "route add default nexthop via 192.0.2.1 nexthop via 198.51.100.1",
        "route add 2001:db8:f::/48 nexthop via 2001:db8:1::1 nexthop via 2001:db8:2::1",
    ],
    "group": [
        "nexthop add id 1 via 192.0.2.1 dev eth1",
        "nexthop add id 2 via 198.51.100.1 dev eth2",
        "nexthop add id 3 group 1/2",
        "route add default nhid 3",
    ],
    "unreachable": ["route add unreachable default", "route add blackhole 203.0.113.0/25"],
    "prohibit": ["route add prohibit default", "route add default via 2001:db8:2::1"],
    "second subnet": ["addr add 203.0.113.11/24 dev eth1", "route add default via 203.0.113.1"],
    "down": ["route add default via 192.0.2.1", "link set eth1 down"],
}
TARGETS = ("203.0.113.7", "203.0.113.200", "192.0.2.11", "198.51.100.7", "2001:db8:f::7")


@pytest.mark.parametrize("commands", SETUPS.values(), ids=SETUPS)
def test_paper_answers_as_the_kernel_does(
    host: Namespace, router: Namespace, commands: list[str], tmp_path: Path
) -> None:
    for link in ("eth1", "eth2"):
        connect(host, link, router, link)
    host.batch(
        [
            "addr add 192.0.2.11/24 dev eth1",
            "addr add 198.51.100.11/24 dev eth2",
            "addr add 2001:db8:1::11/64 dev eth1 nodad",
            "addr add 2001:db8:2::11/64 dev eth2 nodad",
            "link set lo up",
            *commands,
        ]
    )
    paths = []
    for number, command in enumerate(IP_COMMANDS):
        path = tmp_path / f"ip-{number}.json"
        path.write_text(json.dumps(host.json(command)))
        paths.append(str(path))
    case = load(paths)
    assert isinstance(case, Case)
    paper = PaperLookup(case.snapshot.stand_in(0))
    with host.entered():
        for target in TARGETS:
            real = KernelLookup(NativeEngine()).ways(target)
            drawn = paper.ways(target)
            assert [way.source for way in drawn.ways] == [way.source for way in real.ways], target
            assert (drawn.failure, drawn.local) == (real.failure, real.local), target
