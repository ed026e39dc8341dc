"""Runs the scenarios, prints a table of each, and writes it all to a JSON document.

python -m benchmarks.peers [--scenario NAME]... [--peer NAME]... [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers import figures, report
from benchmarks.peers.following import row
from benchmarks.peers.machine import machine, versions
from benchmarks.peers.registry import PEERS
from benchmarks.peers.scenarios import SCENARIOS
from benchmarks.storms import BUILD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.registry import Peer
    from benchmarks.peers.scenarios import Scenario


def main() -> None:
    """All of it, or what is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--scenario", action="append", choices=names, default=[])
    parser.add_argument(
        "--peer", action="append", choices=[peer.name for peer in PEERS], default=[]
    )
    parser.add_argument("--json", type=Path, default=BUILD / "peers.json")
    options = parser.parse_args()
    peers = [peer for peer in PEERS if peer.name in options.peer or not options.peer]
    began, busy = time.monotonic(), os.getloadavg()[0]
    done = []
    for scenario in SCENARIOS:
        if scenario.name in options.scenario or not options.scenario:
            done.append(run(scenario, peers))
            print("\n".join(report.table(done[-1])), flush=True)
    whole: dict[str, Any] = {
        "machine": {**machine(), "busy": [busy, os.getloadavg()[0]]},
        "versions": versions(),
        "peers": report.peers(peers),
        "scenarios": done,
        "figures": figures.rows(done),
        "notes": [*report.NOTES],
        "seconds": time.monotonic() - began,
    }
    print("\n".join(report.ending(whole)))
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps(whole, indent=1))


def run(scenario: Scenario, peers: Sequence[Peer]) -> dict[str, Any]:
    """One scenario; those that it leaves out, or that are not there, are named."""
    not_asked = {
        peer.name: row(peer, f"missing: {why}") for peer in peers if (why := peer.missing())
    }
    for peer in peers:
        if peer.name in scenario.leaves_out:
            not_asked[peer.name] = row(peer, f"not asked: {scenario.leaves_out[peer.name]}")
    began = time.monotonic()
    rows = scenario.run([peer for peer in peers if peer.name not in not_asked])
    seconds = time.monotonic() - began
    return report.document(scenario, [*rows, *not_asked.values()]) | {"seconds": seconds}


if __name__ == "__main__":
    main()
