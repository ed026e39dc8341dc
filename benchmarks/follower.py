"""The tracker in a process of its own, without any wait before it decides; for test_bpf.py.

    python -m benchmarks.follower TIER [RING]

In the network namespace that it was started in. Prints what it took to load and attach when it is
ready, and at SIGTERM, once it has read everything, one JSON object: as benchmarks/floor.c does,
with the counters of the source beside. `sights` are Change.boot_ns, the time at which the session
had another address; `ends` is when the step ended in which it had, so when its caller gets it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time

from tests.tiers import RING, TIERS
from tracker.capture.netlink import boot_ns
from tracker.clock import SystemClock
from tracker.engine.native import NativeEngine
from tracker.lastrun import INSTANT
from tracker.model import FAMILIES, IPV4
from tracker.policy.compile import default_route_policy
from tracker.session import NODE, Session


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _rss() -> int:
    """Bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def main() -> None:
    """Follow until SIGTERM."""
    tier = TIERS[sys.argv[1]]
    ring = int(sys.argv[2]) if len(sys.argv) > 2 else RING
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
    changes: list[tuple[int, int]] = []

    def take() -> None:
        now = boot_ns()
        changes.extend((c.boot_ns, now) for c in session.take_changes() if c.family == IPV4)

    print(json.dumps({"opened": opened}), flush=True)
    processor, rss = _processor(), _rss()
    while not ended.is_set():
        if session.step():
            take()
    session.step(boot_ns())
    take()
    took = {"processor": _processor() - processor, "grown": _rss() - rss}
    seen = {"sights": [sight for sight, _ in changes], "ends": [end for _, end in changes]}
    print(json.dumps(took | seen | {"counters": source.counters()}), flush=True)
    source.close()


if __name__ == "__main__":
    main()
