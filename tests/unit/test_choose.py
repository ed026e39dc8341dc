"""Which source is taken, and what is said about those that are not."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracker.capture import choose, loader
from tracker.capture.bpf import Maps
from tracker.capture.choose import RING_BYTES, open_source
from tracker.capture.opening import Opening, begin_source
from tracker.errors import LoadError, NotPermittedError, UnsupportedError, UsageError
from tracker.model import Scope


@pytest.fixture
def no_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = "tracker.capture"
    for name in (
        "tracker._engine",
        f"{capture}.netlink",
        f"{capture}.bpf",
        "tracker.engine.native",
    ):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def no_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither prebuilt objects nor sources."""
    monkeypatch.setattr(loader, "FILES", Path("/nowhere"))


def test_the_best_that_loads_is_taken() -> None:
    chosen = open_source()
    assert (chosen.source.name, chosen.source.engine.name) == ("bpf", "native")
    # Of a BpfSource, which is what was asked for.
    assert chosen.source.loader == "libbpf"  # type: ignore[attr-defined]
    assert chosen.passed_over == ()
    chosen.source.close()


def test_one_look_loads_nothing_into_the_kernel() -> None:
    chosen = open_source(once=True)
    assert chosen.source.name == "netlink"
    assert chosen.passed_over == ()
    chosen.source.close()


def test_what_is_asked_for_is_loaded_for_one_look_too() -> None:
    chosen = open_source("bpf", once=True)
    assert chosen.source.name == "bpf"
    chosen.source.close()


@pytest.mark.usefixtures("no_loader")
def test_a_plain_socket_is_taken_where_nothing_can_be_loaded() -> None:
    chosen = open_source()
    assert chosen.source.name == "netlink"
    [line] = chosen.passed_over
    assert line.startswith("source bpf: loader libbpf: no prebuilt object: ")
    assert "; loader bcc: no source for BCC: /nowhere/filter.bpf.c is missing" in line
    chosen.source.close()


@pytest.mark.usefixtures("no_loader")
@pytest.mark.parametrize("name", ["libbpf", "bcc"])
def test_a_loader_that_is_asked_for_is_not_replaced(name: str) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(LoadError, match=r"^no (prebuilt object|source for BCC): "):
        open_source("bpf", loader=name)
    assert len(os.listdir("/proc/self/fd")) == descriptors, "maps are left open"


@pytest.mark.usefixtures("no_extension")
def test_without_the_extension_python_does_it_and_says_why() -> None:
    chosen = open_source()
    assert (chosen.source.name, chosen.source.engine.name) == ("pyroute2", "reference")
    bpf, netlink = chosen.passed_over
    assert bpf.startswith("source bpf: the extension tracker._engine cannot be loaded: ")
    assert netlink.startswith("source netlink: the extension tracker._engine cannot be loaded: ")
    assert chosen.source.engine.dirty(), "nothing has been read yet"
    chosen.source.close()


@pytest.mark.usefixtures("no_extension")
@pytest.mark.parametrize(
    "wanted", [("bpf", "auto"), ("netlink", "auto"), ("auto", "native"), ("pyroute2", "native")]
)
def test_what_is_asked_for_by_name_is_not_replaced(wanted: tuple[str, str]) -> None:
    with pytest.raises(UnsupportedError, match=r"tracker\._engine cannot be loaded"):
        open_source(*wanted)


def test_no_permission_is_no_reason_to_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotPermittedError("cannot open a netlink socket: Operation not permitted")

    for name in ("_bpf", "_netlink", "_pyroute2"):
        monkeypatch.setattr(choose, name, refuse)
    with pytest.raises(UnsupportedError) as raised:
        open_source()
    refused = "cannot open a netlink socket: Operation not permitted"
    assert str(raised.value) == (
        f"no source works here: source bpf: {refused}; source netlink: {refused}; source pyroute2: "
        f"{refused}"
    )


@pytest.mark.parametrize("named", ["/proc/thread-self/status", None])
def test_whatever_the_system_refuses_is_a_reason_to_take_another_source(
    monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), named)

    monkeypatch.setattr(loader, "load", refuse)
    descriptors = len(os.listdir("/proc/self/fd"))
    chosen = open_source()
    assert chosen.source.name == "netlink"
    where = f"{named}: " if named else ""
    assert chosen.passed_over == (
        f"source bpf: it cannot be opened: {where}No such file or directory",
    )
    chosen.source.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors


class Probes:
    """Loaded beside the filter."""

    def __init__(self, maps: Maps) -> None:
        self.maps = maps
        self.closed = False

    def close(self) -> None:
        self.closed = True


def begin(beside: Callable[[Maps], Probes], source: str = "auto") -> Opening[Probes]:
    return begin_source(source, "auto", loader="auto", ring_bytes=RING_BYTES, beside=beside)


def test_a_source_listens_while_its_program_is_loaded() -> None:
    opening = begin(Probes)
    assert opening.source.name == "netlink"
    assert opening.source.dump(Scope.LINK)
    passed_over, probes = opening.complete()
    assert (opening.source.name, passed_over) == ("bpf", ())
    assert probes is not None
    assert probes.maps is opening.source.maps  # type: ignore[attr-defined]
    opening.source.close()


@pytest.mark.usefixtures("no_loader")
def test_what_is_not_loaded_in_the_end_leaves_a_plain_socket() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    opening = begin(Probes)
    [line], probes = opening.complete()
    assert (opening.source.name, probes) == ("netlink", None)
    assert line.startswith("source bpf: loader libbpf: no prebuilt object: ")
    assert opening.source.dump(Scope.LINK)
    opening.source.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.usefixtures("no_loader")
def test_what_is_asked_for_and_not_loaded_is_an_error_in_the_end() -> None:
    opening = begin(Probes, "bpf")
    with pytest.raises(LoadError):
        opening.complete()
    opening.source.close()


def test_probes_of_a_program_that_is_not_attached_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise UnsupportedError("refused")

    made: list[Probes] = []

    def beside(maps: Maps) -> Probes:
        made.append(Probes(maps))
        return made[-1]

    opening = begin(beside)
    monkeypatch.setattr(opening.source, "feed", refuse)
    assert opening.complete() == (("source bpf: refused",), None)
    assert made[0].closed
    opening.source.close()


@pytest.mark.usefixtures("no_extension")
def test_without_the_extension_there_is_nothing_to_wait_for() -> None:
    opening = begin(Probes)
    passed_over, probes = opening.complete()
    assert (opening.source.name, len(passed_over), probes) == ("pyroute2", 2, None)
    opening.source.close()


def test_the_reference_engine_has_a_source() -> None:
    chosen = open_source("auto", "reference")
    assert (chosen.source.name, chosen.source.engine.name) == ("pyroute2", "reference")
    chosen.source.close()


@pytest.mark.parametrize("source", ["bpf", "netlink"])
def test_a_source_in_c_feeds_one_engine_only(source: str) -> None:
    with pytest.raises(UsageError, match=f"source {source} feeds the native engine only"):
        open_source(source, "reference")


@pytest.mark.parametrize("extension", [True, False])
def test_a_namespace_that_is_not_there_is_one_line(
    extension: bool, request: pytest.FixtureRequest
) -> None:
    if not extension:
        request.getfixturevalue("no_extension")
    with pytest.raises(UsageError) as raised:
        choose.enter_netns("no-such-namespace")
    assert str(raised.value) == "network namespace 'no-such-namespace': No such file or directory"
