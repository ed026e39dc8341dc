"""Changes as records from a program in the kernel, which drops what does not matter."""

from __future__ import annotations

import errno
import os
from typing import Any, NamedTuple

from tracker._engine import ffi, lib
from tracker.capture.netlink import NetlinkSource, refused
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

    def place_filter(self) -> None:
        """Before a source is fed: what a program goes by until it is told something else. The
        kernel waits for a grace period at that, tens of milliseconds while it is busy.
        """
        error = -lib.at_bpf_place(self.struct())
        if error:
            raise UnsupportedError(f"cannot set up BPF maps: {os.strerror(error)}")

    def struct(self, program: int = -1) -> Any:
        """struct at_bpf."""
        made = ffi.new("struct at_bpf *", {"prog": program})
        for name in self._fields:
            if not name.startswith("filter") or name == "filters":
                setattr(made, name, getattr(self, name))
        made.filter = [self.filter0, self.filter1]
        return made

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
    """Feeds a NativeEngine from a ring that a socket filter writes, once it has one; until then
    it reads the socket, and is a source like any other.
    """

    loader = ""
    """What loaded the program: "libbpf", "bcc"."""
    attribution = False
    """Whether records name the process that made a change."""
    maps: Maps
    """For probes that write to the same ring; theirs while the source is open."""

    def feed(self, maps: Maps, program: int, loader: str, *, attribution: bool) -> None:
        """Have the program read what is announced from here on. Its descriptor and the maps, whose
        filter is in its place, are the source's, also where this fails. Raises
        NotPermittedError, UnsupportedError.
        """
        result = lib.at_source_feed(self._open(), maps.struct(program))
        refused("cannot attach a BPF program to a netlink socket", result)
        self.name = "bpf"
        self.loader, self.attribution, self.maps = loader, attribution, maps

    def counters(self) -> dict[str, int]:
        """As NetlinkSource.counters(), and: ring_bytes, reordered (records that came behind a
        newer one, which is no loss), unfiltered (messages that got past the program),
        traced.flushed, traced.unreported, traced.overruns."""
        raw = self._raw_counters()
        counters = self._counters(raw)
        counters |= {name: getattr(raw, name) for name in ("ring_bytes", "reordered", "unfiltered")}
        traced = ("flushed", "unreported", "overruns")
        return counters | {f"traced.{name}": getattr(raw.traced, name) for name in traced}
