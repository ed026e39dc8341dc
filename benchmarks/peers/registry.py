"""Who is compared: what each is asked to do, how it is started, and whether it is there at all."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import storms
from benchmarks.peers import logs
from benchmarks.peers.process import Reader
from benchmarks.storms import BUILD, PLENTY
from tests.netns.namespace import PROGRAMS
from tests.tiers import RING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from benchmarks.storms import Ground

BIRD = PROGRAMS / "bird"
ZEBRA = BUILD / "peers/bin/zebra"
ZEBRA_BUFFER = 90_000_000
"""Bytes: what Debian's /etc/frr/daemons has in its example."""

_BIRD_CONF = """\
log "{log}" all;
timeformat log "%F %T.%6f";
router id 192.0.2.254;
protocol device {{ }}
protocol direct {{ ipv4; ipv6; debug {{ interfaces }}; }}
protocol kernel {{ learn; persist; ipv4 {{ import all; export none; }}; }}
protocol kernel {{ learn; persist; ipv6 {{ import all; export none; }}; }}
"""

# Without the third line it adds nexthop objects to the namespace, which all others see.
_ZEBRA_CONF = """\
log file {log} debugging
log timestamp precision 6
no zebra nexthop kernel enable
debug zebra events
"""


class Peer(NamedTuple):
    """One that follows addresses."""

    name: str
    title: str
    asked: str
    """What it is asked to do."""
    buffer: str
    start: Callable[[Ground, str, Path], AbstractContextManager[Reader]]
    missing: Callable[[], str] = str
    """Why it cannot be measured here; "" = it can."""
    log: logs.Log | None = None
    """Where its sights are, if it does not report them: in DIRECTORY/log."""
    by_network: bool = False
    """Its log names networks, not addresses."""
    lag: float = 0.0
    """Seconds that it may sleep while there is something to read."""


def _needs(program: Path, why: str) -> Callable[[], str]:
    return lambda: "" if program.exists() else f"no {program.name}: {why}"


def _in_path(program: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(program) else f"no {program} in PATH"


def _floor(*command: object) -> Callable[[Ground, str, Path], Reader]:
    """A C program of ours that takes the network behind its first word or words."""
    program, *words = command

    def start(ground: Ground, watch: str, directory: Path) -> Reader:
        line = [str(BUILD / str(program)), *(watch if w is None else str(w) for w in words)]
        return Reader(ground.namespace, line)

    return start


@contextlib.contextmanager
def _ring(ground: Ground, watch: str, directory: Path) -> Iterator[Reader]:
    with storms.on_bpf(ground, "ring", RING, watch) as (reader, _):
        yield reader


def _ip_monitor(ground: Ground, watch: str, directory: Path) -> Reader:
    command = ["ip", "-o", "-ts", "monitor", "link", "address", "route", "nexthop"]
    return _logging(ground, command, directory / "log")


def _bird(ground: Ground, watch: str, directory: Path) -> Reader:
    (directory / "bird.conf").write_text(_BIRD_CONF.format(log=directory / "log"))
    command = [str(BIRD), "-f", "-c", str(directory / "bird.conf"), "-s", str(directory / "ctl")]
    return _logging(ground, command, directory / "output")


def _zebra(ground: Ground, watch: str, directory: Path) -> Reader:
    (directory / "zebra.conf").write_text(_ZEBRA_CONF.format(log=directory / "log"))
    files = {"-f": "zebra.conf", "-z": "zserv", "-i": "pid"}
    command = [str(ZEBRA), *(w for k, v in files.items() for w in (k, str(directory / v)))]
    command += ["-u", "root", "-g", "root", "--vty_socket", str(directory), "-P", "0"]
    command += ["-s", str(ZEBRA_BUFFER)]
    return _logging(ground, command, directory / "output")


def _logging(ground: Ground, command: Sequence[str], log: Path) -> Reader:
    return Reader(
        ground.namespace, command, log=log, is_ready=Reader.has_socket, environ={"TZ": "UTC"}
    )


def _pyroute2(*words: object) -> Callable[[Ground, str, Path], Reader]:
    what, *more = words

    def start(ground: Ground, watch: str, directory: Path) -> Reader:
        module = "benchmarks.peers.pyroute2_reader"
        command = [sys.executable, "-m", module, str(what), watch, *map(str, more)]
        return Reader(ground.namespace, command)

    return start


def _tracker(tier: str) -> Callable[[Ground, str, Path], Reader]:
    return lambda ground, watch, directory: storms.tracker(ground, tier, watch)


_BUILT = "make bench-peers builds it"
_ALL = "links, addresses, routes and nexthops of both families"

PEERS = (
    Peer(
        "recv",
        "bare C recv loop",
        f"receives the messages about {_ALL} one by one and looks whether it is the address",
        "256 MiB",
        _floor("floor", "recv", None, PLENTY),
        _needs(BUILD / "floor", _BUILT),
    ),
    Peer(
        "ring",
        "bare C ring reader",
        "reads the ring that addrtracker's program in the kernel fills, and nothing more",
        "ring of 1 MiB",
        _ring,
        _needs(BUILD / "floor", _BUILT),
    ),
    Peer(
        "bpf",
        "addrtracker, source bpf",
        "keeps the candidates ranked and decides, without a wait, which address is the primary one",
        "ring of 1 MiB",
        _tracker("bpf"),
    ),
    Peer(
        "netlink",
        "addrtracker, source netlink",
        "the same without its program in the kernel",
        "8 MiB",
        _tracker("netlink"),
    ),
    Peer(
        "ip-monitor",
        "ip monitor",
        f"prints what it receives about {_ALL}, each with its time, into a file in memory",
        "1 MiB, its own default",
        _ip_monitor,
        _in_path("ip"),
        log=logs.IP_MONITOR,
    ),
    Peer(
        "libnl",
        "libnl cache manager",
        "keeps libnl's caches of links, addresses and routes and calls back at each change",
        "32 KiB, the library's default",
        _floor("peer-libnl", None),
        _needs(BUILD / "peer-libnl", "it could not be built, or libnl was not to be had"),
    ),
    Peer(
        "iproute",
        "pyroute2 IPRoute",
        "bind() and get(), which makes an object of each message; a new socket after a loss",
        "1 MiB, the library's default",
        _pyroute2("iproute"),
    ),
    Peer(
        "iproute-large",
        "pyroute2 IPRoute, large buffer",
        "the same; the buffer holds the whole storm",
        "256 MiB",
        _pyroute2("iproute", PLENTY),
    ),
    Peer(
        "async",
        "pyroute2 AsyncIPRoute",
        "the same under asyncio",
        "1 MiB, the library's default",
        _pyroute2("async"),
    ),
    Peer(
        "ndb",
        "pyroute2 NDB",
        "keeps all in its SQLite database and calls a handler at each address",
        "1 MiB, the library's default",
        _pyroute2("ndb"),
    ),
    Peer(
        "bird",
        "BIRD 2",
        "keeps the full table (direct and kernel with learn) and logs addresses",
        "the kernel's default",
        _bird,
        _needs(BIRD, "tools/unpack-programs could not get it"),
        log=logs.BIRD,
        by_network=True,
    ),
    Peer(
        "zebra",
        "FRR zebra",
        "keeps the full table and logs what it tells other daemons about addresses",
        "90 MB (-s 90000000)",
        _zebra,
        _needs(ZEBRA, "tools/unpack-programs peers could not get it"),
        log=logs.ZEBRA,
    ),
    Peer(
        "poll-10s",
        "poll loop, 10 s",
        "looks for a default route in /proc/net, then lists links and addresses: every 10 s, as "
        "the kubelet does",
        "none to overrun",
        _floor("peer-poll", None, 10_000),
        _needs(BUILD / "peer-poll", _BUILT),
        lag=10.0,
    ),
    Peer(
        "poll-100ms",
        "poll loop, 100 ms",
        "the same every 100 ms",
        "none to overrun",
        _floor("peer-poll", None, 100),
        _needs(BUILD / "peer-poll", _BUILT),
        lag=0.1,
    ),
    Peer(
        "relist",
        "full re-list per event",
        "reads links, addresses and routes anew as soon as there was any message",
        "the kernel's default",
        _floor("peer-relist", None, 0),
        _needs(BUILD / "peer-relist", _BUILT),
    ),
    Peer(
        "relist-100ms",
        "full re-list, events gathered for 100 ms",
        "the same at most every 100 ms, as Cilium's agent gathers them",
        "the kernel's default",
        _floor("peer-relist", None, 0, 100),
        _needs(BUILD / "peer-relist", _BUILT),
        lag=0.1,
    ),
)
BY_NAME = {peer.name: peer for peer in PEERS}
