"""What the kernel removes without a message: the probes' count, and the engine's.

The cases are those of which a kernel is known to say nothing, and some of which it says something.
"""

from __future__ import annotations

import socket
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.bpf.program import filtering, policy
from tests.kernels.tracing import Pieced
from tests.messages import link
from tests.netns.namespace import Namespace, connect
from tracker.capture import trace
from tracker.capture.loader import PLAIN
from tracker.capture.payload import Flush, Task
from tracker.model import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST = "192.0.2.11"
SECOND = "198.51.100.11"
UPLINK = ("192.0.2.0/24", "10.0.0.0/8", "0.0.0.0/0")
"""The routes over eth0."""
RTMGRP_IPV4_ROUTE = 0x40
RTM_DELLINK = 17
WITH_OBJECT = (
    "route del default via 192.0.2.1",
    "nexthop add id 1 via 192.0.2.1 dev eth0",
    "route add default nhid 1 metric 100",
)


class Traces(Pieced):
    """A session with probes, and what they say."""

    def __init__(self, host: Namespace, directory: Path, way: str) -> None:
        super().__init__(host, directory, way=way)
        self.trace = self.tier.trace

    def prefixes(self) -> list[str]:
        return sorted(
            f"{socket.inet_ntoa(flush.dst or bytes(4))}/{flush.dst_len}"
            for flush, _ in self.latest(Flush)
        )

    def counted(self, name: str) -> int:
        return self.session.source.counters()[f"traced.{name}"]

    def removed(self) -> int:
        """Entries that the engine removed by itself."""
        return sum(self.inferred(rule) for rule in range(1, 6))


@pytest.fixture(params=["fentry", "kprobe"])
def traces(
    request: pytest.FixtureRequest, host: Namespace, router: Namespace, tmp_path: Path
) -> Iterator[Traces]:
    """Two uplinks, the first one better; each has a default route and one more."""
    connect(host, "eth0", router, "eth0")
    connect(host, "eth1", router, "eth1")
    host.batch(
        [
            f"addr add {FIRST}/24 dev eth0",
            f"addr add {SECOND}/24 dev eth1",
            "route add default via 192.0.2.1 metric 100",
            "route add default via 198.51.100.1 metric 200",
            "route add 10.0.0.0/8 via 192.0.2.1",
        ]
    )
    with host.entered():
        made = Traces(host, tmp_path, request.param)
        made.best(FIRST)
        yield made
        made.audit()
        made.close()


class Case(NamedTuple):
    before: tuple[str, ...]
    """Commands, before anybody looks."""
    change: tuple[str, ...]
    silent: tuple[str, ...]
    """Destinations of the routes that go without a message."""
    best: str
    objects: int = 0
    """Nexthop objects that go without a message, which no probe looks at."""


CASES = {
    "link down": Case((), ("link set eth0 down",), UPLINK, SECOND),
    "last address": Case(
        (), (f"addr del {FIRST}/24 dev eth0",), ("10.0.0.0/8", "0.0.0.0/0"), SECOND
    ),
    "link deleted": Case((), ("link del eth0",), UPLINK, SECOND),
    "enslaved to a VRF": Case(
        ("link add red type vrf table 100", "link set red up"),
        ("link set eth0 master red",),
        UPLINK,
        SECOND,
    ),
    "freed from a VRF": Case(
        (
            "link add red type vrf table 100",
            "link set red up",
            "link set eth0 master red",
            "route add default via 192.0.2.1 dev eth0 table 100",
        ),
        ("link set eth0 nomaster",),
        # A VRF has the local routes of its ports in its table.
        ("192.0.2.0/24", "192.0.2.11/32", "192.0.2.255/32", "0.0.0.0/0"),
        SECOND,
    ),
    "nexthop object deleted": Case(WITH_OBJECT, ("nexthop del id 1",), ("0.0.0.0/0",), SECOND),
    "link down under a nexthop object": Case(
        WITH_OBJECT, ("link set eth0 down",), UPLINK, SECOND, 1
    ),
    "one leg of two": Case(
        ("route add 172.16.0.0/12 nexthop dev eth0 nexthop dev eth1",),
        ("link set eth0 down",),
        UPLINK,
        SECOND,
    ),
    "preferred source": Case(
        (
            "addr add 192.0.2.12/32 dev eth0",
            "route replace 10.0.0.0/8 via 192.0.2.1 src 192.0.2.12",
        ),
        ("addr del 192.0.2.12/32 dev eth0",),
        # Announced since 6.6, and by the stable kernels that these are.
        (),
        FIRST,
    ),
    "announced": Case(
        (),
        (
            "route del 10.0.0.0/8",
            "route replace default via 192.0.2.2 metric 100",
            "route del default via 198.51.100.1",
            "addr add 192.0.2.12/32 dev eth0",
            "addr del 192.0.2.12/32 dev eth0",
        ),
        (),
        FIRST,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_silent_removal_is_seen_and_was_inferred(
    host: Namespace, traces: Traces, case: Case
) -> None:
    host.batch(case.before)
    traces.check()
    before = traces.counted("flushed"), traces.removed()
    process = subprocess.Popen(
        ["ip", "-n", host.name, "-batch", "-"], stdin=subprocess.PIPE, text=True
    )
    process.communicate("\n".join(case.change) + "\n")
    assert process.returncode == 0
    traces.best(case.best)

    assert traces.prefixes() == sorted(case.silent)
    assert traces.counted("flushed") - before[0] == len(case.silent)
    assert traces.counted("unreported") == 0
    # The engine keeps default routes alone.
    assert traces.removed() - before[1] == case.silent.count("0.0.0.0/0") + case.objects
    tasks = {task for _, task in traces.latest(Flush)}
    assert tasks <= {Task(process.pid, "ip")}


def test_carrier_loss_takes_objects_and_their_routes(
    host: Namespace, router: Namespace, traces: Traces
) -> None:
    host.batch(WITH_OBJECT)
    traces.check()
    router.ip("link set eth0 down")
    traces.wait(SECOND)
    assert traces.prefixes() == ["0.0.0.0/0"]
    # The object is the other one.
    assert traces.removed() == 2


def test_another_namespace_is_none_of_ours(router: Namespace, traces: Traces) -> None:
    router.batch(
        [
            "addr add 192.0.2.1/24 dev eth0",
            "route add default via 192.0.2.9",
            "addr del 192.0.2.1/24 dev eth0",
        ]
    )
    traces.best(FIRST)
    assert traces.prefixes() == []
    assert traces.counted("flushed") == 0


def test_a_reader_that_is_too_slow_is_counted(host: Namespace, traces: Traces) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        slow.bind((0, RTMGRP_IPV4_ROUTE))
        host.batch([f"route add 10.0.{number}.0/24 via 192.0.2.1" for number in range(100)])
        traces.best(FIRST)
        assert traces.counted("overruns") > 0
    assert traces.counted("flushed") == 0


def test_all_probes_are_attached_and_go(traces: Traces, host: Namespace) -> None:
    assert traces.trace.probes == ("fib_notify_alias_delete", "netlink_overrun")
    assert traces.trace.passed_over == ()
    traces.trace.close()
    host.ip("link set eth0 down")
    traces.best(SECOND)
    assert traces.counted("flushed") == 0


def test_without_btf_there_is_a_number(host: Namespace, tmp_path: Path, router: Namespace) -> None:
    connect(host, "eth0", router, "eth0")
    host.batch(
        [
            f"addr add {FIRST}/24 dev eth0",
            "route add default via 192.0.2.1",
        ]
    )
    with host.entered():
        traces = Traces(host, tmp_path, "count")
        host.ip("link set eth0 down")
        traces.best(None)
        # The local route of the address is among them.
        assert traces.counted("flushed") == 3
        assert traces.prefixes() == []
        traces.close()


TARGETS = [socket.inet_aton("10.1.2.3"), bytes([0x20, 1, *[0] * 14])]


@pytest.mark.parametrize("way", ["fentry", "kprobe"])
@pytest.mark.parametrize(
    ("prefix", "matters"),
    [("10.0.0.0/8", True), ("10.1.2.3/32", True), ("0.0.0.0/0", True), ("10.1.2.4/30", False)],
)
def test_a_route_that_goes_from_under_a_target_wakes_and_may_not_get_lost(
    host: Namespace, router: Namespace, way: str, prefix: str, matters: bool
) -> None:
    connect(host, "eth0", router, "eth0")
    with filtering(PLAIN, 4096) as program, host.entered():
        program.obey(policy(tables=[], targets=TARGETS))
        traced = trace.attach(program.maps._asdict(), way)
        host.ip(f"route add {prefix} dev eth0")
        host.ip("link set eth0 down")
        assert program.ring.woke() == matters
        assert len(program.ring.read()) == 1
        host.batch(["link set eth0 up", f"route add {prefix} dev eth0"])
        # So small that there is no room for anything less either.
        while program.feed(link([(3, b"eth1\0"), (26, bytes(64))], kind=RTM_DELLINK)) == "emitted":
            pass
        host.ip("link set eth0 down")
        assert program.lost[Scope.ROUTE4] == matters
        traced.close()
