"""Changes as records from a program in the kernel, which drops what does not matter."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from tracker._engine import ffi, lib
from tracker.capture.netlink import RCVBUF, NetlinkSource
from tracker.engine.native import NativeEngine
from tracker.errors import NotPermittedError, UnsupportedError

__all__ = ["BpfSource", "Maps", "create_maps"]


class Maps(NamedTuple):
    """File descriptors of the maps, by their names in bpf/filter.h."""

    ring: int
    alarm: int
    counts: int
    shared: int
    filters: int
    filter0: int
    filter1: int
    links: int
    watched: int
    traced: int

    def close(self) -> None:
        """Close them; not where a source was made of them, which then owns them."""
        for descriptor in self:
            os.close(descriptor)


def create_maps(ring_bytes: int) -> Maps:
    """The maps of one source; the ring has a power of two of bytes, at least a page.

    Raises NotPermittedError, and UnsupportedError for a kernel that lacks some (before 5.8).
    """
    made = ffi.new("struct at_bpf *")
    error = -lib.at_bpf_create(made, ring_bytes)
    if error in {errno.EPERM, errno.EACCES}:
        raise NotPermittedError(f"cannot make BPF maps without CAP_BPF: {os.strerror(error)}")
    if error:
        raise UnsupportedError(f"cannot make BPF maps: {os.strerror(error)}")
    filters = {"filter0": made.filter[0], "filter1": made.filter[1]}
    plain = (name for name in Maps._fields if name not in filters)
    return Maps(**{name: getattr(made, name) for name in plain}, **filters)


class BpfSource(NetlinkSource):
    """Feeds a NativeEngine from a ring that a socket filter writes.

    It owns the maps and the program from the moment it is made, also where that fails.
    """

    name = "bpf"

    def __init__(  # noqa: PLR0917 - what a loader returns, in its order
        self,
        engine: NativeEngine,
        maps: Maps,
        program: int,
        loader: str,
        attribution: bool,
        rcvbuf: int = RCVBUF,
    ) -> None:
        self.loader = loader
        """What loaded the program: "libbpf", "bcc"."""
        self.attribution = attribution
        """Whether records name the process that made a change."""
        self.maps = maps
        """For probes that write to the same ring; theirs while the source is open."""
        bpf = ffi.new("struct at_bpf *", {"prog": program})
        for name in Maps._fields:
            if not name.startswith("filter") or name == "filters":
                setattr(bpf, name, getattr(maps, name))
        bpf.filter = [maps.filter0, maps.filter1]
        self._start(engine, rcvbuf, bpf, "cannot attach a BPF program to a netlink socket")

    def counters(self) -> dict[str, int]:
        """As NetlinkSource.counters(), and: ring_bytes, reordered (records that came behind a
        newer one, which is no loss), unfiltered (messages that got past the program),
        traced.flushed, traced.unreported, traced.overruns."""
        raw = self._raw_counters()
        counters = self._counters(raw)
        counters |= {name: getattr(raw, name) for name in ("ring_bytes", "reordered", "unfiltered")}
        traced = ("flushed", "unreported", "overruns")
        return counters | {f"traced.{name}": getattr(raw.traced, name) for name in traced}
