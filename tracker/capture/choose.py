"""The best source that works here, and why the better ones do not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tracker.capture.process import require_files
from tracker.errors import TrackerError, UnsupportedError, UsageError
from tracker.model import Scope

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.capture.bpf import BpfSource
    from tracker.engine.base import Engine

Way = TypeVar("Way")
FILES = {"bpf": 24, "netlink": 6, "pyroute2": 12}
"""How many more files each source has open at a time, those included that a command reads."""
RING_BYTES = 1 << 20
"""Of the ring that a program in the kernel writes to; a power of two."""


class Chosen(NamedTuple):
    """A source that is open, with its engine."""

    source: Source
    passed_over: tuple[str, ...]
    """Why better sources, loaders or engines were not taken, one line each."""


def open_source(
    source: str = "auto",
    engine: str = "auto",
    *,
    loader: str = "auto",
    ring_bytes: int = RING_BYTES,
    once: bool = False,
) -> Chosen:
    """Open a source in the present network namespace.

    `auto` takes the best that works; a name takes that one or fails. `once`: it is for one look,
    for which `auto` loads nothing into the kernel: that would cost more than it saves. Raises
    UsageError, UnsupportedError, NotPermittedError.
    """
    if source in {"bpf", "netlink"} and engine == "reference":
        raise UsageError(
            f"source {source} feeds the native engine only; allowed with the reference engine: "
            "source pyroute2"
        )

    def bpf() -> Chosen:
        return _bpf(loader, ring_bytes)

    def netlink() -> Chosen:
        return Chosen(_netlink(), ())

    if source == "bpf":
        return opened("bpf", bpf)
    if source == "netlink":
        return opened("netlink", netlink)
    passed_over: list[str] = []
    if source == "auto" and engine != "reference":
        if not once:
            try:
                return opened("bpf", bpf)
            except TrackerError as error:
                passed_over.append(f"source bpf: {error}")
        try:
            return opened("netlink", netlink)._replace(passed_over=tuple(passed_over))
        except TrackerError as error:
            passed_over.append(f"source netlink: {error}")

    def pyroute2() -> Chosen:
        return Chosen(_pyroute2(_engine(engine, passed_over)), tuple(passed_over))

    try:
        return opened("pyroute2", pyroute2)
    except TrackerError as error:
        if not passed_over or source == "pyroute2":
            raise
        every = "; ".join([*passed_over, f"source pyroute2: {error}"])
        raise UnsupportedError(f"no source works here: {every}") from None


def opened(name: str, way: Callable[[], Way]) -> Way:
    """What a way to open a source gives, where so many more files can be open as it needs."""
    require_files(FILES[name])
    return tried(way)


def tried(way: Callable[[], Way]) -> Way:
    """What a way gives; where the system refuses anything, it does not work."""
    try:
        return way()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise UnsupportedError(f"it cannot be opened: {where}{error.strerror}") from None


def enter_netns(name: str) -> None:
    """Move this thread into a network namespace: a name under /run/netns, or a path.

    Raises UsageError, NotPermittedError.
    """
    try:
        from tracker.capture.netlink import enter_netns as enter  # noqa: PLC0415
    except ImportError:
        from tracker.capture.netns import enter_netns as enter  # noqa: PLC0415
    enter(name)


def make_engine(engine: str = "auto") -> Engine:
    """An engine that no source feeds yet. Raises UnsupportedError."""
    return _engine(engine, [])


def _no_extension(error: ImportError) -> UnsupportedError:
    return UnsupportedError(f"the extension tracker._engine cannot be loaded: {error}")


def _bpf(loader: str, ring_bytes: int) -> Chosen:
    source = unfed()
    # Behind it, which needs the same extension.
    from tracker.capture.opening import feed, load_filter  # noqa: PLC0415 - only for this source

    try:
        loading = load_filter(loader, ring_bytes, lambda _: contextlib.ExitStack())
        feed(source, loading)
    except BaseException:
        source.close()
        raise
    return Chosen(source, loading.loaded.passed_over)


def unfed() -> BpfSource:
    """A source that listens, and that a program may be attached to."""
    try:
        from tracker.capture.bpf import BpfSource  # noqa: PLC0415
        from tracker.engine.native import NativeEngine  # noqa: PLC0415
    except ImportError as error:
        raise _no_extension(error) from None
    return BpfSource(NativeEngine())


def _netlink() -> Source:
    try:
        from tracker.capture.netlink import NetlinkSource  # noqa: PLC0415
        from tracker.engine.native import NativeEngine  # noqa: PLC0415
    except ImportError as error:
        raise _no_extension(error) from None
    return NetlinkSource(NativeEngine())


def _pyroute2(engine: Engine) -> Source:
    try:
        from tracker.capture.pyroute2 import Pyroute2Source  # noqa: PLC0415
    except ImportError as error:
        raise UnsupportedError(f"pyroute2 cannot be loaded: {error}") from None
    source = Pyroute2Source(engine)
    engine.lose(tuple(Scope))  # all of it has yet to be read
    return source


def _engine(engine: str, passed_over: list[str]) -> Engine:
    if engine != "reference":
        try:
            from tracker.engine.native import NativeEngine  # noqa: PLC0415
        except ImportError as error:
            if engine == "native":
                raise _no_extension(error) from None
            if not passed_over:
                passed_over.append(f"engine native: {_no_extension(error)}")
        else:
            return NativeEngine()
    from tracker.engine.reference import ReferenceEngine  # noqa: PLC0415

    return ReferenceEngine()
