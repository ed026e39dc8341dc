"""Paths in Python, counted in an interpreter of their own; prints them as JSON."""

from __future__ import annotations

import ast
import gc
import itertools
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prometheus_client import generate_latest

from benchmarks.budget import tracing
from benchmarks.engines import BEST, Fed, best_in_turn, other_in_turn
from benchmarks.hosts import Host
from benchmarks.processes import ENVIRON
from tests import build
from tracker.api.metrics import MetricsCollector, registry
from tracker.clock import VirtualClock
from tracker.config import Networks
from tracker.engine.native import NativeEngine
from tracker.lastrun import INSTANT
from tracker.node import node_document
from tracker.session import NODE, Session
from tracker.stats import DECISION_BOUNDS, Histogram, collect

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 1000
TURNS = 2
"""There and back again."""
WARM_UPS = 10
KEPT_OVER = 100

SHOW = f"""
import gc, os, sys
sys.path.insert(0, {tracing.ROOT!r})
from benchmarks.budget import tracing
way, told = sys.argv[1], os.dup(1)
os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
gc.disable()
def show():
    from tracker.cli.main import run
    if run(["show", "--output", "json"]) != 0:
        raise SystemExit("show failed")
if way == "peak":
    import tracemalloc
    tracemalloc.start()
before = set(sys.modules)
if way == "bytecode":
    found = tracing.bytecode(show)
elif way == "c":
    found = tracing.c_functions(show)
elif way == "modules":
    show()
    found = tracing.modules(set(sys.modules) - before)
else:
    show()
    found = tracemalloc.get_traced_memory()[1]
os.write(told, repr(found).encode())
os._exit(0)
"""

Operation = Callable[[], object]


def started() -> tuple[Session, Fed]:
    source = Fed(NativeEngine(), SIZE)
    policies = {NODE: build.policy()}
    session = Session(source, policies, INSTANT, VirtualClock(), hostname="n1")
    session.start()
    return session, source


def step(changes: list[bytes]) -> Operation:
    """What a change takes from the source to the decision."""
    session, source = started()
    source.changes = itertools.cycle(changes)

    def once() -> None:
        session.step()
        session.take_changes()

    return once


def document() -> Operation:
    session, _ = started()
    return lambda: node_document(session.decision(), Networks())


def scrape() -> Operation:
    session, _ = started()
    took = Histogram(DECISION_BOUNDS)
    own = registry(MetricsCollector(lambda: collect(session, took)))
    return lambda: generate_latest(own)


def operations() -> Iterator[tuple[str, Operation]]:
    yield "session: step, nothing changes for anybody", step(other_in_turn(SIZE))
    yield f"session: step, {BEST} and another in turn", step(best_in_turn())
    yield "node document", document()
    yield f"scrape, {SIZE} addresses", scrape()


def counted(once: Operation) -> dict[str, Any]:
    """What one operation takes, by measure: a number or what it is made of."""

    def turns() -> None:
        for _ in range(TURNS):
            once()

    for _ in range(WARM_UPS):
        turns()
    gc.collect()
    gc.disable()
    ours, others = tracing.bytecode(turns)
    return {
        "units": TURNS,
        "bytecode": ours,
        "bytecode of libraries": others,
        "C functions": tracing.c_functions(turns),
        "blocks kept": _kept(turns),
        "peak bytes": _peak(turns),
    }


def _kept(turns: Operation) -> float:
    """Memory that is not given back, in blocks for each operation."""
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(KEPT_OVER):
        turns()
    gc.collect()
    return (sys.getallocatedblocks() - before) / (KEPT_OVER * TURNS)


def _peak(turns: Operation) -> int:
    """Bytes beyond what there was before."""
    tracemalloc.start()
    turns()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    turns()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


def shown(host: Host) -> dict[str, Any]:
    """`addrtracker show --output json` from its first import on."""

    def ask(way: str) -> Any:
        command = [sys.executable, "-c", SHOW, way]
        environ = {**ENVIRON, "PYTHONHASHSEED": "0"}
        with host.namespace.entered():
            done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
        return ast.literal_eval(done.stdout.decode())

    ask("modules")  # compiles them where nobody has
    ours, others = ask("bytecode")
    own_modules, other_modules = ask("modules")
    return {
        "units": 1,
        "bytecode": ours,
        "bytecode of libraries": others,
        "C functions": ask("c"),
        "modules": own_modules,
        "modules of libraries": other_modules,
        "peak bytes": ask("peak"),
    }


def main() -> None:
    found = {name: counted(once) for name, once in operations()}
    host = Host(20)
    try:
        found["show --output json"] = shown(host)
    finally:
        host.delete()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
