"""Opens the source of a daemon: it listens and reads while what feeds it is being loaded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from tracker.capture.aside import Aside
from tracker.capture.choose import open_source, opened, tried, unfed
from tracker.errors import TrackerError

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.capture.bpf import BpfSource, Maps
    from tracker.capture.loader import Loaded


class Beside(Protocol):
    """What is loaded beside the filter, onto the same maps."""

    @property
    def close(self) -> Callable[[], None]:
        """Unload it."""


B = TypeVar("B", bound=Beside)


class Loading(NamedTuple, Generic[B]):
    """A filter that is in the kernel, and not yet attached."""

    maps: Maps
    loaded: Loaded
    beside: B


class Opening(NamedTuple, Generic[B]):
    """A source that listens, while what is to feed it may still be loaded."""

    source: Source
    complete: Callable[[], tuple[tuple[str, ...], B | None]]
    """Wait for that and attach it: why better ways were not taken, one line each, and what was
    loaded beside; None = the source stays a plain socket. Once, in the thread that uses the source.
    Raises as open_source()."""


def load_filter(loader: str, ring_bytes: int, beside: Callable[[Maps], B]) -> Loading[B]:
    """Load it onto maps of its own, and `beside` as well. Raises TrackerError, OSError."""
    # With unfed() there is the extension that these need.
    from tracker.capture.bpf import create_maps  # noqa: PLC0415
    from tracker.capture.loader import load  # noqa: PLC0415

    with contextlib.ExitStack() as undo:
        maps = create_maps(ring_bytes)
        undo.callback(maps.close)
        # The kernel waits at this, and we do something else.
        placing = Aside("filter", maps.place_filter)
        undo.callback(placing.wait)
        loaded = load(maps._asdict(), loader)
        undo.callback(os.close, loaded.program)
        more = beside(maps)
        undo.callback(more.close)
        placing.result()
        undo.pop_all()
    return Loading(maps, loaded, more)


def feed(source: BpfSource, loading: Loading[B]) -> None:
    """Attach it; raises TrackerError."""
    maps, loaded, beside = loading
    try:
        source.feed(maps, loaded.program, loaded.loader, attribution=loaded.attribution)
    except TrackerError:
        beside.close()
        raise


def begin_source(
    source: str,
    engine: str,
    *,
    loader: str,
    ring_bytes: int,
    beside: Callable[[Maps], B],
) -> Opening[B]:
    """As open_source(), but what is to be loaded is loaded in a thread."""
    if source in {"auto", "bpf"} and engine != "reference":
        try:
            listening = opened("bpf", unfed)
        except TrackerError:
            pass  # it comes again, and is told
        else:
            loading = Aside("load", lambda: load_filter(loader, ring_bytes, beside))
            return Opening(listening, lambda: _fed(listening, loading, only=source == "bpf"))
    chosen = open_source(source, engine, loader=loader, ring_bytes=ring_bytes)
    return Opening(chosen.source, lambda: (chosen.passed_over, None))


def _fed(
    source: BpfSource, loading: Aside[Loading[B]], *, only: bool
) -> tuple[tuple[str, ...], B | None]:
    """What Opening.complete() returns. `only`: there is no other source where this one fails."""
    try:
        found = tried(loading.result)
        feed(source, found)
    except TrackerError as error:
        if only:
            raise
        return (f"source bpf: {error}",), None
    return found.loaded.passed_over, found.beside
