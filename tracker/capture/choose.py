"""The best source that works here, and why the better ones do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from tracker.capture.process import require_files
from tracker.errors import TrackerError, UnsupportedError, UsageError
from tracker.model import Scope

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.capture.bpf import BpfSource, Maps
    from tracker.capture.loader import Loaded
    from tracker.engine.base import Engine

Way = TypeVar("Way")
B = TypeVar("B", bound="Beside")
T = TypeVar("T")
SOURCES = ("auto", "bpf", "netlink", "pyroute2")
ENGINES = ("auto", "native", "reference")
FILES = {"bpf": 24, "netlink": 6, "pyroute2": 12}
"""How many more files each source has open at a time, those included that a command reads."""
RING_BYTES = 1 << 20
"""Of the ring that a program in the kernel writes to; a power of two."""


class Chosen(NamedTuple):
    """A source that is open, with its engine."""

    source: Source
    passed_over: tuple[str, ...]
    """Why better sources, loaders or engines were not taken, one line each."""


class Beside(Protocol):
    """What is loaded beside the program of a source."""

    @property
    def close(self) -> Callable[[], None]:
        """Unload it."""


class Opening(NamedTuple, Generic[B]):
    """A source that listens, while what it is to be fed by may still be loaded."""

    source: Source
    complete: Callable[[], tuple[tuple[str, ...], B | None]]
    """Wait for that: what was passed over, as in Chosen, and what was loaded beside, None = there
    is no such source. Raises as open_source(); meant for the thread that uses the source, once."""


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
        return _opened("bpf", bpf)
    if source == "netlink":
        return _opened("netlink", netlink)
    passed_over: list[str] = []
    if source == "auto" and engine != "reference":
        if not once:
            try:
                return _opened("bpf", bpf)
            except TrackerError as error:
                passed_over.append(f"source bpf: {error}")
        try:
            return _opened("netlink", netlink)._replace(passed_over=tuple(passed_over))
        except TrackerError as error:
            passed_over.append(f"source netlink: {error}")

    def pyroute2() -> Chosen:
        return Chosen(_pyroute2(_engine(engine, passed_over)), tuple(passed_over))

    try:
        return _opened("pyroute2", pyroute2)
    except TrackerError as error:
        if not passed_over or source == "pyroute2":
            raise
        every = "; ".join([*passed_over, f"source pyroute2: {error}"])
        raise UnsupportedError(f"no source works here: {every}") from None


def begin_source(
    source: str = "auto",
    engine: str = "auto",
    *,
    loader: str = "auto",
    ring_bytes: int = RING_BYTES,
    beside: Callable[[Maps], B],
) -> Opening[B]:
    """As open_source(), but where a program is to be loaded, that is done in a thread: meanwhile
    the source reads the socket, and the host can be dumped. `beside` loads what else belongs to
    the maps, in the same thread.
    """
    if source in {"auto", "bpf"} and engine != "reference":
        try:
            return _opened("bpf", lambda: _loading(source, loader, ring_bytes, beside))
        except TrackerError:
            pass  # it comes again, and is told
    chosen = open_source(source, engine, loader=loader, ring_bytes=ring_bytes)
    return Opening(chosen.source, lambda: (chosen.passed_over, None))


def _loading(wanted: str, loader: str, ring_bytes: int, beside: Callable[[Maps], B]) -> Opening[B]:
    from tracker.capture.aside import Aside  # noqa: PLC0415 - threads are for daemons

    source = _unfed()

    loading = Aside("load", lambda: _load(loader, ring_bytes, beside))

    def complete() -> tuple[tuple[str, ...], B | None]:
        try:
            maps, loaded, more = _opened("bpf", loading.result)
            try:
                _feed(source, maps, loaded)
            except TrackerError:
                more.close()
                raise
        except TrackerError as error:
            if wanted == "bpf":
                raise
            return (f"source bpf: {error}",), None
        return loaded.passed_over, more

    return Opening(source, complete)


def _opened(name: str, way: Callable[[], Way]) -> Way:
    """What a way to open a source gives; where the system refuses anything, it does not work."""
    require_files(FILES[name])
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


def _unfed() -> BpfSource:
    try:
        from tracker.capture.bpf import BpfSource  # noqa: PLC0415
        from tracker.engine.native import NativeEngine  # noqa: PLC0415
    except ImportError as error:
        raise _no_extension(error) from None
    return BpfSource(NativeEngine())


def _load(loader: str, ring_bytes: int, beside: Callable[[Maps], T]) -> tuple[Maps, Loaded, T]:
    from tracker.capture.aside import Aside  # noqa: PLC0415 - only for this source
    from tracker.capture.bpf import create_maps  # noqa: PLC0415 - as above
    from tracker.capture.loader import load  # noqa: PLC0415 - only for this source

    maps = create_maps(ring_bytes)
    # The kernel waits at this while we do something else.
    placing = Aside("filter", maps.place_filter)
    try:
        loaded = load(maps._asdict(), loader)
        more = beside(maps)
        placing.result()
    except BaseException:
        placing.wait()
        maps.close()
        raise
    return maps, loaded, more


def _feed(source: BpfSource, maps: Maps, loaded: Loaded) -> None:
    source.feed(maps, loaded.program, loaded.loader, attribution=loaded.attribution)


def _bpf(loader: str, ring_bytes: int) -> Chosen:
    source = _unfed()
    try:
        maps, loaded, _ = _load(loader, ring_bytes, lambda _: None)
        _feed(source, maps, loaded)
    except BaseException:
        source.close()
        raise
    return Chosen(source, loaded.passed_over)


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
