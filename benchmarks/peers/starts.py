"""Cold starts: from exec until all that is there has been read."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import storms
from benchmarks.peers.following import BEGIN_SECONDS, Row, row, scratch
from benchmarks.peers.process import NotStartedError, Reader
from benchmarks.processes import MB, PASS, SHOW, Run, timed
from benchmarks.storms import BUILD, IPV4

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.peers.registry import Peer
    from benchmarks.storms import Ground

LINKS = 20
ADDRESSES = 20_000
ROUTES = 100_000
TURNS = 5
COLUMNS = ("ready_s", "cpu_s", "peak_rss_mb")

LEAVES_OUT = {
    **dict.fromkeys(("recv", "ring", "ip-monitor"), "it keeps no table"),
    **dict.fromkeys(("bpf", "netlink"), "its command `run` is measured instead"),
    **dict.fromkeys(("iproute-large", "async"), "it reads a table as IPRoute does"),
    "poll-10s": "as every 100 ms",
    "relist-100ms": "as without the pause",
}
NOTES = (
    (
        "BIRD and zebra do not say when they are ready: they are once they have come to rest, "
        "which is seen to some 20 ms."
    ),
    (
        "The bare C dump asks for links, addresses, routes, nexthops and rules and parses each "
        "attribute into a table; `python -c pass` is the interpreter's own start."
    ),
    (
        "addrtracker reads those routes that can matter for its answer, all others read all of "
        "them; who wants one default route from pyroute2 has to do so as well."
    ),
    f"Those that figures are made of have started {TURNS} times by turns: medians.",
)

Start = dict[str, float]
"""Columns of one start."""


def run(peers: Sequence[Peer]) -> list[Row]:
    """One after the other on the same table; the rows begin with what figures are made of."""
    with storms.ground() as ground:
        ground.load("fill", "full", LINKS, ADDRESSES, ROUTES)
        by_turns: dict[str, tuple[str, Callable[[], Start]]] = {
            "dump": ("bare C dump and parse", lambda: _dump(ground)),
            "python": ("python -c pass", lambda: _command(ground, PASS)),
            "run-bpf": ("addrtracker run, source bpf", lambda: _run(ground, "bpf")),
            "run-netlink": ("addrtracker run, source netlink", lambda: _run(ground, "netlink")),
            "show": ("addrtracker show", lambda: _command(ground, SHOW)),
        }
        _run(ground, "netlink")  # makes the bytecode
        found: dict[str, list[Start]] = {name: [] for name in by_turns}
        for _ in range(TURNS):
            for name, (_, start) in by_turns.items():
                found[name].append(start())
        rows = [
            {"peer": name, "title": title, "outcome": "", **_medians(found[name])}
            for name, (title, _) in by_turns.items()
        ]
        return rows + [_of_peer(peer, ground) for peer in peers]


def _medians(starts: Sequence[Start]) -> dict[str, object]:
    columns = {name: statistics.median(start[name] for start in starts) for name in starts[0]}
    return {**columns, "turns": list(starts)}


def _command(ground: Ground, command: tuple[str, ...]) -> Start:
    took = timed(command, ground)
    return {"ready_s": took.seconds, "cpu_s": took.processor}


def _dump(ground: Ground) -> Start:
    with Reader(ground.namespace, [str(BUILD / "floor"), "dump"]) as reader:
        return _started(reader)


def _run(ground: Ground, source: str) -> Start:
    with tempfile.TemporaryDirectory() as directory:
        daemon = Run(ground, Path(directory), "--source", source)
        try:
            return {"ready_s": daemon.seconds, "peak_rss_mb": daemon.rss()["VmHWM"]}
        finally:
            daemon.close()


def _of_peer(peer: Peer, ground: Ground) -> Row:
    try:
        with scratch() as directory, peer.start(ground, IPV4.watch, directory) as reader:
            if not reader.ready:
                reader.wait_until_quiet(BEGIN_SECONDS)
                reader.ready_seconds = reader.quiet_since - reader.began
            return row(peer) | _started(reader)
    except NotStartedError as error:
        return row(peer, str(error))


def _started(reader: Reader) -> Start:
    usage = reader.usage()
    return {
        "ready_s": reader.ready_seconds,
        "cpu_s": usage.processor,
        "peak_rss_mb": usage.peak / MB,
    }
