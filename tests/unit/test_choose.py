"""Which source is taken, and what is said about those that are not."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tracker.capture import choose
from tracker.capture.choose import open_source
from tracker.errors import NotPermittedError, UnsupportedError, UsageError


@pytest.fixture
def no_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tracker._engine", "tracker.capture.netlink", "tracker.engine.native"):
        monkeypatch.setitem(sys.modules, name, None)


def test_the_best_that_loads_is_taken() -> None:
    chosen = open_source()
    assert (chosen.source.name, chosen.source.engine.name) == ("netlink", "native")
    assert chosen.passed_over == ()
    chosen.source.close()


@pytest.mark.usefixtures("no_extension")
def test_without_the_extension_python_does_it_and_says_why() -> None:
    chosen = open_source()
    assert (chosen.source.name, chosen.source.engine.name) == ("pyroute2", "reference")
    [line] = chosen.passed_over
    assert line.startswith("source netlink: the extension tracker._engine cannot be loaded: ")
    assert chosen.source.engine.dirty(), "nothing has been read yet"
    chosen.source.close()


@pytest.mark.usefixtures("no_extension")
@pytest.mark.parametrize(
    "wanted", [("netlink", "auto"), ("auto", "native"), ("pyroute2", "native")]
)
def test_what_is_asked_for_by_name_is_not_replaced(wanted: tuple[str, str]) -> None:
    with pytest.raises(UnsupportedError, match=r"tracker\._engine cannot be loaded"):
        open_source(*wanted)


def test_no_permission_is_no_reason_to_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotPermittedError("cannot open a netlink socket: Operation not permitted")

    monkeypatch.setattr(choose, "_netlink", refuse)
    monkeypatch.setattr(choose, "_pyroute2", refuse)
    with pytest.raises(UnsupportedError) as raised:
        open_source()
    assert str(raised.value) == (
        "no source works here: source netlink: cannot open a netlink socket: Operation not "
        "permitted; source pyroute2: cannot open a netlink socket: Operation not permitted"
    )


def test_the_reference_engine_has_a_source() -> None:
    chosen = open_source("auto", "reference")
    assert (chosen.source.name, chosen.source.engine.name) == ("pyroute2", "reference")
    chosen.source.close()


def test_netlink_feeds_one_engine_only() -> None:
    with pytest.raises(UsageError, match="feeds the native engine only"):
        open_source("netlink", "reference")


@pytest.mark.parametrize("extension", [True, False])
def test_a_namespace_that_is_not_there_is_one_line(
    extension: bool, request: pytest.FixtureRequest
) -> None:
    if not extension:
        request.getfixturevalue("no_extension")
    with pytest.raises(UsageError) as raised:
        choose.enter_netns("no-such-namespace")
    assert str(raised.value) == "network namespace 'no-such-namespace': No such file or directory"
