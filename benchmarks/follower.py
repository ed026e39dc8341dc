"""The tracker in a process of its own, without any wait before it decides.

    python -m benchmarks.follower TIER WATCH [RING]

In the network namespace that it was started in. Prints what it took to load and attach when it is
ready, and at SIGTERM, once it has read everything, one JSON object: as benchmarks/floor.c does,
with the counters of the source beside. A sight says that an address of the network WATCH became
the primary one ("+"), or that another one did ("-"). `decided` has the times of the decisions,
`sights` when the step ended in which each was made: when its caller gets it.
"""

from __future__ import annotations

import ipaddress
import json
import signal
import sys
import threading
import time

from tests.tiers import RING, TIERS
from tracker.capture.netlink import boot_ns
from tracker.clock import SystemClock
from tracker.engine.native import NativeEngine
from tracker.lastrun import INSTANT
from tracker.model import FAMILIES, Change
from tracker.policy.compile import default_route_policy
from tracker.session import NODE, Session


def sights(watch: str, changes: list[tuple[int, Change]]) -> list[tuple[int, str]]:
    """What became of the addresses of a network, in the form of all readers."""
    network = ipaddress.ip_network(watch)
    found = []
    for at, change in changes:
        for sign, address in (("-", change.old), ("+", change.new)):
            if address and ipaddress.ip_address(address) in network:
                found.append((at, sign + address))
    return found


def main() -> None:
    """Follow until SIGTERM."""
    tier, watch = TIERS[sys.argv[1]], sys.argv[2]
    ring = int(sys.argv[3]) if len(sys.argv) > 3 else RING
    start = time.perf_counter()
    source = tier.open(NativeEngine(), ring=ring)
    opened = time.perf_counter() - start
    ended = threading.Event()

    def end() -> None:
        signal.sigwait({signal.SIGTERM})
        ended.set()
        source.wake()

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=end).start()
    policies = {NODE: default_route_policy(families=FAMILIES)}
    session = Session(source, policies, INSTANT, SystemClock(), hostname="n1")
    session.start()
    session.take_changes()
    changes: list[tuple[int, Change]] = []

    def take() -> None:
        now = boot_ns()
        changes.extend((now, change) for change in session.take_changes())

    print(json.dumps({"opened": opened}), flush=True)
    while not ended.is_set():
        if session.step():
            take()
    session.step(boot_ns())
    take()
    counters = source.counters()

    def total(group: str) -> int:
        return sum(count for name, count in counters.items() if name.startswith(group))

    print(
        json.dumps(
            {
                "messages": total("seen."),
                "lost": total("lost."),
                "sights": sights(watch, changes),
                "decided": sights(watch, [(change.boot_ns, change) for _, change in changes]),
                "counters": counters,
                "resyncs": {" ".join(what): n for what, n in session.resync.done.items()},
            }
        ),
        flush=True,
    )
    source.close()


if __name__ == "__main__":
    main()
