"""Churn in network namespaces, and who reads it: C programs of benchmarks/ and the tracker."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.peers.process import Reader
from benchmarks.processes import ROOT
from tests.netns.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILD = ROOT / ".build"
PLENTY = 256 << 20
"""Bytes of a socket buffer that a whole storm fits in."""


class Addresses(NamedTuple):
    """Those of one family that a ground has."""

    flipping: str
    """The first of those that come and go. While one of them is there it is the best: the one
    that stays looks like a VIP."""
    stays: str
    watch: str
    """The network that readers are to watch."""


IPV4 = Addresses("10.1.0.10/24", "192.0.2.1/32", "10.1.0.0/16")
IPV6 = Addresses("2001:db8:1::10/64", "2001:db8::1/128", "2001:db8:1::/48")


def build(*names: str) -> None:
    """Compile programs of this directory."""
    subprocess.run(["make", "-s", *(f".build/{name}" for name in names)], check=True, cwd=ROOT)


class Ground:
    """A network namespace with one uplink, and another one for links to be moved into."""

    def __init__(self) -> None:
        self.namespace = Namespace()
        self.other = Namespace()
        # Nothing comes by itself, but over links that come later.
        self.namespace.sysctl("ipv6/conf/default/disable_ipv6", 1)
        self.namespace.ip("link add eth0 type veth peer name peer0")
        self.namespace.sysctl("ipv6/conf/default/disable_ipv6", 0)
        self.namespace.sysctl("ipv6/conf/eth0/addr_gen_mode", 1)
        self.namespace.sysctl("ipv6/conf/eth0/disable_ipv6", 0)
        self.namespace.batch(
            [
                "link set peer0 up",
                "link set eth0 up",
                f"addr add {IPV4.stays} dev eth0",
                "route add default dev eth0",
                f"addr add {IPV6.stays} dev eth0 nodad",
                "route add ::/0 dev eth0",
            ]
        )

    def load(self, *arguments: object) -> dict[str, Any]:
        """Run benchmarks/load.c to its end; what it printed."""
        printed = self.namespace.run(str(BUILD / "load"), *map(str, arguments))
        done: dict[str, Any] = json.loads(printed)
        return done

    def routes(
        self, count: int, every_ms: int = 0, family: Addresses = IPV4, rounds: int = 1
    ) -> dict[str, Any]:
        """So many host routes come and go, and meanwhile an address."""
        return self.load("routes", "eth0", count, family.flipping, every_ms, rounds)

    def flips(self, count: int, every_ms: int) -> dict[str, Any]:
        """An address comes and goes, on an otherwise idle host."""
        return self.load("flips", "eth0", count, IPV4.flipping, every_ms)

    def links(self, count: int, every_ms: int = 0) -> dict[str, Any]:
        """So many veth pairs, as containers have them, and meanwhile an address."""
        flips = ["eth0", IPV4.flipping, every_ms] if every_ms else []
        return self.load("links", "veth", count, self.other.path, *flips)

    def delete(self) -> None:
        """Remove the namespaces.

        What is in them goes before: the kernel does that later, when others want its lock.
        """
        links = [link["ifname"] for link in self.namespace.json("link show type veth")]
        ends = [link for link in links if f"{link}p" in links or link == "eth0"]
        self.namespace.batch([f"link del {link}" for link in ends])
        self.namespace.delete()
        self.other.delete()


@contextlib.contextmanager
def ground() -> Iterator[Ground]:
    """One for a while."""
    made = Ground()
    try:
        yield made
    finally:
        made.delete()


def recv(ground: Ground, watch: str = IPV4.watch, rcvbuf: int = PLENTY) -> Reader:
    """The bare recv loop."""
    return Reader(ground.namespace, [str(BUILD / "floor"), "recv", watch, str(rcvbuf)])


def tracker(ground: Ground, tier: str, watch: str = IPV4.watch) -> Reader:
    """The session of tracker/, on a tier of tests/tiers.py."""
    return Reader(ground.namespace, [sys.executable, "-m", "benchmarks.follower", tier, watch])


@contextlib.contextmanager
def on_bpf(
    ground: Ground, what: str, ring: int, watch: str = IPV4.watch
) -> Iterator[tuple[Reader, int]]:
    """A mode of benchmarks/floor.c that reads the ring, and the program's descriptor."""
    from tracker.capture.bpf import create_maps
    from tracker.capture.loader import load

    maps = create_maps(ring)
    loaded = load(maps._asdict(), "libbpf")
    order = ("ring", "alarm", "counts", "shared", "filters", "filter0", "filter1", "links")
    fds = [loaded.program, *(getattr(maps, name) for name in (*order, "watched", "traced"))]
    words = ",".join(map(str, [*fds, ring]))
    command = [str(BUILD / "floor"), what, watch, words]
    try:
        with Reader(ground.namespace, command, fds) as reader:
            yield reader, loaded.program
    finally:
        maps.close()
        os.close(loaded.program)
