"""What it costs to wait: all readers at once in one namespace in which nothing happens."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from benchmarks.peers.following import BEGIN_SECONDS, Row, costs, row, scratch
from benchmarks.peers.process import NotStartedError
from benchmarks.storms import IPV4, ground

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.registry import Peer

ADDRESSES = 1000
SECONDS = 10
COLUMNS = ("cpu_s", "wake_ups", "rss_mb")
NOTES = ("RSS is what is resident at the end; what a socket holds is the kernel's and not in it.",)


def run(peers: Sequence[Peer]) -> list[Row]:
    """Nobody has anything to do but those that poll: so they do not disturb each other."""
    rows = []
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(ground())
        made.load("fill", "idle", 1, ADDRESSES, 0)
        readers = {}
        for peer in peers:
            directory = stack.enter_context(scratch())
            try:
                reader = stack.enter_context(peer.start(made, IPV4.watch, directory))
            except NotStartedError as error:
                rows.append(row(peer, f"missing: {error}"))
            else:
                readers[peer] = reader
        for reader in readers.values():
            reader.begin(BEGIN_SECONDS)
        # What is measured is that nothing happens for a while, so there is nothing to wait for.
        time.sleep(SECONDS)
        rows += [row(peer) | costs(reader) for peer, reader in readers.items()]
    return rows
