"""What the bindings say when something is missing or refused."""

from __future__ import annotations

import errno
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tracker.capture import netlink
from tracker.capture.netlink import NetlinkSource, enter_netns
from tracker.engine.native import NativeEngine
from tracker.errors import NotPermittedError, TrackerError, UnsupportedError, UsageError
from tracker.model import Scope


def refusing(error: int) -> SimpleNamespace:
    """The C library, but every call that can fail does."""

    def fail(*_arguments: object) -> int:
        return -error

    return SimpleNamespace(at_source_open=fail, at_netns_enter=fail)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (errno.EPERM, NotPermittedError, "cannot open a netlink socket: Operation not permitted"),
        (errno.EACCES, NotPermittedError, "cannot open a netlink socket: Permission denied"),
        (
            errno.EAFNOSUPPORT,
            UnsupportedError,
            "cannot open a netlink socket: Address family not supported by protocol",
        ),
        (errno.EMFILE, UnsupportedError, "cannot open a netlink socket: Too many open files"),
    ],
)
def test_a_socket_that_cannot_be_opened_is_one_line(
    monkeypatch: pytest.MonkeyPatch, error: int, kind: type[TrackerError], message: str
) -> None:
    monkeypatch.setattr(netlink, "lib", refusing(error))
    with pytest.raises(kind) as caught:
        NetlinkSource(NativeEngine())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("error", "kind"), [(errno.EPERM, NotPermittedError), (errno.ENOENT, UsageError)]
)
def test_a_namespace_that_cannot_be_entered_is_one_line(
    monkeypatch: pytest.MonkeyPatch, error: int, kind: type[TrackerError]
) -> None:
    monkeypatch.setattr(netlink, "lib", refusing(error))
    with pytest.raises(kind, match=r"^network namespace 'blue': "):
        enter_netns("blue")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errno.ENOMEM, "Cannot allocate memory"),
        (errno.EAGAIN, "what it lists changed each time"),
    ],
)
def test_a_dump_that_fails_says_why(
    monkeypatch: pytest.MonkeyPatch, error: int, message: str
) -> None:
    source = NetlinkSource(NativeEngine())
    failing = SimpleNamespace(at_source_dump=lambda *_: -error, AT_DUMP_AUDIT=1)
    monkeypatch.setattr(netlink, "lib", failing)
    assert not source.dump(Scope.LINK)
    assert source.dump_error == message


@pytest.mark.parametrize("module", ["tracker.engine.native", "tracker.capture.netlink"])
def test_without_the_extension_the_import_fails_and_says_so(module: str) -> None:
    code = f"""
import sys
sys.modules["tracker._engine"] = None
try:
    import {module}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tracker._engine" in done.stdout
    assert done.stderr == ""


def test_imports_are_cheap() -> None:
    """`show` imports these; modules that it does not need would cost it more than its work."""
    code = """
import sys
import tracker.capture.netlink
heavy = {"ipaddress", "dataclasses", "inspect", "socket", "cffi", "rich", "asyncio"}
print(sorted(heavy & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
