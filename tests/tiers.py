"""The tiers of capture (docs/design, section 9) that feed the C engine, opened by tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tracker.capture.netlink import RCVBUF, NetlinkSource

if TYPE_CHECKING:
    from tracker.engine.native import NativeEngine

if not os.path.exists(f"/lib/modules/{os.uname().release}/build"):
    # BCC wants headers; any will do, for the program includes none of the kernel's own.
    headers = Path(__file__).resolve().parents[1] / ".build/headers"
    os.environ.setdefault("BCC_KERNEL_SOURCE", str(headers))

RING = 1 << 20
"""Bytes; what the configuration says where it says nothing."""
SMALLEST_RING = 1 << 12
"""Loses what comes in a burst."""


class Tier(NamedTuple):
    """A source and, for bpf, what loads its program."""

    source: str
    loader: str = ""

    def __str__(self) -> str:
        return f"{self.source}-{self.loader}" if self.loader == "bcc" else self.source

    @property
    def options(self) -> tuple[str, ...]:
        """What a command takes to use it."""
        loader = ("--loader", self.loader) if self.loader else ()
        return ("--source", self.source, *loader)

    def open(
        self, engine: NativeEngine, *, rcvbuf: int = RCVBUF, ring: int = RING
    ) -> NetlinkSource:
        """A source in the network namespace of the calling thread."""
        if self.source == "netlink":
            return NetlinkSource(engine, rcvbuf)
        from tracker.capture.bpf import BpfSource, create_maps
        from tracker.capture.loader import load

        maps = create_maps(ring)
        loaded = load(maps._asdict(), self.loader)
        maps.place_filter()
        source = BpfSource(engine, rcvbuf)
        source.feed(maps, loaded.program, loaded.loader, attribution=loaded.attribution)
        return source


NETLINK = Tier("netlink")
BPF = Tier("bpf", "libbpf")
BCC = Tier("bpf", "bcc")
TIERS = {str(tier): tier for tier in (NETLINK, BPF, BCC)}
