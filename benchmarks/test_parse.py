"""Netlink messages: the C parser alone, and pyroute2's, in this process."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from benchmarks.processes import ROOT
from benchmarks.samples import MemoryOf, group, group_of_samples, hand_over
from benchmarks.storms import build
from tests import build as records
from tests import netlink_bytes
from tracker.capture.netlink import parse
from tracker.capture.pyroute2_messages import decode, heads
from tracker.capture.record import Header, Record, Rule
from tracker.model import AF_INET

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

MESSAGES = 100
"""Of each kind, as in a datagram or two of a dump."""
RUNS = 7
SAMPLES = 2000

KINDS: dict[str, Record] = {
    "address IPv4": records.addr("192.0.2.10/24", 2),
    "address IPv6": records.addr("2001:db8::10/64", 2),
    "link": records.link(2, "eth0", kind="veth", master=7),
    "route IPv4": records.route(via="192.0.2.1", oif=2, metric=100),
    "route IPv6": records.route(via="fe80::1", oif=2, metric=100),
    "route of 4 legs": records.route(
        legs=tuple(records.leg(oif, f"192.0.2.{oif}") for oif in range(2, 6))
    ),
    "route to elsewhere": records.route("198.51.100.0/24", via="192.0.2.1", oif=2),
    "nexthop": records.nexthop(1, oif=2, via="192.0.2.1"),
    "nexthop group": records.nexthop(9, members=((1, 1), (2, 1), (3, 1), (4, 1))),
    "rule": Record(Header(), Rule(AF_INET, 1000, records.MAIN, action=1)),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """Seconds for a message in each run of parse_bench, by kind."""
    build("parse_bench")
    directory: Path = tmp_path_factory.mktemp("messages")
    files = {str(directory / kind.replace(" ", "-")): kind for kind in KINDS}
    for path, kind in files.items():
        with open(path, "wb") as file:
            file.write(netlink_bytes.encode(KINDS[kind]) * MESSAGES)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(RUNS):
        command = [str(ROOT / ".build/parse_bench"), str(SAMPLES), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            printed = json.loads(line)
            assert printed["messages"] == MESSAGES
            found[files[printed["file"]]].append(printed["median_ns"] / 1e9)
    return found


@group_of_samples("parsing")
@each_kind
def test_c(kind: str, parsed: dict[str, list[float]], benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"parsing: {kind}"
    hand_over(benchmark, parsed[kind])


@group("parsing")
@each_kind
def test_c_from_python(kind: str, benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"parsing: {kind}"
    message = netlink_bytes.encode(KINDS[kind])
    assert benchmark(parse, message) is not None


@group("parsing")
@each_kind
def test_pyroute2(kind: str, benchmark: BenchmarkFixture, memory: MemoryOf) -> None:
    """Its decoding, and a record of that: what the source pyroute2 does with each message."""
    benchmark.group = f"parsing: {kind}"
    message = netlink_bytes.encode(KINDS[kind])
    [head] = heads(message)
    assert benchmark(decode, message, head, 0) is not None
    memory.allocated(lambda: decode(message, head, 0))
