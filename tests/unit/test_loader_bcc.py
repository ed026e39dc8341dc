"""How a program gets into the kernel by BCC, for real, and what is said where it does not."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.programs import ring
from tracker.capture import bcc_loader, loader
from tracker.errors import LoadError

SHIM = '#include "shim.h"\n'
PLAIN = """
int at_filter(struct __sk_buff *skb)
{
	u64 value = 7;

	bpf_ringbuf_output(RING, &value, sizeof(value), 0);
	return 0;
}
"""
REFUSED = "int at_filter(struct __sk_buff *skb) { return *(volatile int *)8; }\n"
BROKEN = "int at_filter(struct __sk_buff *skb) { return nothing; }\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for that of our programs; a source in it finds the ring as RING."""
    (tmp_path / "shim.h").write_text(
        "#ifdef AT_BCC\n#define RING ((void *)bpf_pseudo_fd(1, AT_FD_RING))\n#endif\n"
    )
    monkeypatch.setattr(loader, "FILES", tmp_path)
    return tmp_path


@pytest.fixture
def maps() -> Iterator[dict[str, int]]:
    descriptor = ring()
    yield {"ring": descriptor}
    os.close(descriptor)


def failure(files: Path, maps: dict[str, int], text: str = SHIM + PLAIN) -> LoadError:
    """What loading a text ends with."""
    (files / "filter.bpf.c").write_text(text)
    with pytest.raises(LoadError) as raised:
        loader.load(maps, "bcc")
    assert "\n" not in str(raised.value)
    return raised.value


def test_a_source_is_compiled_and_loaded_by_a_child(files: Path, maps: dict[str, int]) -> None:
    (files / "filter.bpf.c").write_text(SHIM + PLAIN)
    loaded = loader.load(maps)
    try:
        assert loaded.loader == "bcc"
        assert not loaded.attribution
        assert not os.get_inheritable(loaded.program)
        assert "prog_type:\t1\n" in Path(f"/proc/self/fdinfo/{loaded.program}").read_text()
        prebuilt, tasks = loaded.passed_over
        assert prebuilt.startswith(f"loader libbpf: no prebuilt object: {files}/filter.bpf.o is ")
        assert tasks == "names of processes: the loader bcc has none"
        assert "bcc" not in sys.modules
    finally:
        os.close(loaded.program)


def test_what_the_compiler_says_is_one_line_and_a_log(files: Path, maps: dict[str, int]) -> None:
    error = failure(files, maps, BROKEN)
    assert str(error).startswith("BCC cannot compile filter.bpf.c: /virtual/main.c:1:")
    assert str(error).endswith("error: use of undeclared identifier 'nothing'")
    assert "1 error generated" in error.log


def test_what_the_verifier_says_is_one_line_and_a_log(files: Path, maps: dict[str, int]) -> None:
    error = failure(files, maps, REFUSED)
    assert str(error).startswith("at_filter is refused: R1 invalid mem access ")
    assert "processed 2 insns" in error.log


def test_missing_headers_are_named(
    files: Path, maps: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BCC_KERNEL_SOURCE", "/nowhere/headers")
    assert str(failure(files, maps)).startswith(
        "BCC finds no kernel headers in BCC_KERNEL_SOURCE=/nowhere/headers: install them (Debian: "
        f"linux-headers-{os.uname().release})"
    )


@pytest.fixture
def only_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """This environment has no BCC."""
    monkeypatch.setattr(bcc_loader, "SYSTEM_PYTHON", sys.executable)


@pytest.mark.usefixtures("only_this_python")
def test_without_bcc_a_line_says_what_to_install(files: Path, maps: dict[str, int]) -> None:
    assert str(failure(files, maps)) == (
        f"no BCC for {sys.executable}: install it (Debian: python3-bpfcc; never the package bcc of "
        "PyPI)"
    )


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package like the one that PyPI has under this name."""
    path = tmp_path / "site/bcc"
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("class BCC: ...\n")
    monkeypatch.setenv("PYTHONPATH", str(path.parent))
    return path


def test_an_unrelated_package_named_bcc_is_refused(
    files: Path, maps: dict[str, int], impostor: Path
) -> None:
    assert str(failure(files, maps)) == (
        f"the Python package bcc in {impostor} is not IOVisor's but an unrelated one of the same "
        "name: uninstall it and install BCC (Debian: python3-bpfcc)"
    )


BPF = """
class Program:
    fd = {descriptor}

class BPF:
    SOCKET_FILTER = 1

    def __init__(self, text, cflags):
        {compiles}

    def load_func(self, name, kind):
        {loads}
        return Program()
"""


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (
            {"compiles": "raise AttributeError('no such\\nsymbol')"},
            "BCC fails: {file}: AttributeError: no such symbol",
        ),
        ({"loads": "raise TypeError('one')"}, "BCC fails: {file}: TypeError: one"),
        ({"loads": "self.nothing"}, "BCC fails: {file}: AttributeError: "),
        ({"descriptor": "None"}, "BCC fails: {file}: TypeError: "),
        (
            {"descriptor": "12345"},
            "BCC ended with status 1 and said nothing: OSError: [Errno 9] Bad file descriptor",
        ),
        (
            {"descriptor": "0"},
            "what the Python package bcc of {python} loaded is no filter for a socket: ",
        ),
        (
            {"descriptor": "-1"},
            "what the Python package bcc of {python} loaded is no filter for a socket: ",
        ),
    ],
)
def test_a_bcc_that_does_not_work_is_named(
    files: Path, maps: dict[str, int], impostor: Path, does: dict[str, str], said: str
) -> None:
    """Also on a host without headers, which then are not to blame."""
    file = impostor / "__init__.py"
    file.write_text(BPF.format(**{"compiles": "pass", "loads": "pass", "descriptor": "0"} | does))
    before = len(os.listdir("/proc/self/fd"))
    assert str(failure(files, maps)).startswith(said.format(file=file, python=sys.executable))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_bcc_that_cannot_be_imported_is_told_by_its_last_line(
    files: Path, maps: dict[str, int], impostor: Path
) -> None:
    (impostor / "__init__.py").write_text("raise RuntimeError('built for another Python')\n")
    assert str(failure(files, maps)) == (
        "BCC ended with status 1 and said nothing: RuntimeError: built for another Python"
    )


def python_that(folder: Path, does: str) -> str:
    """An interpreter that does something else than it should."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return str(path)


def test_a_child_that_dies_is_one_line(
    files: Path, maps: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_that(files, "echo out of memory >&2; kill -KILL $$")
    monkeypatch.setattr(sys, "executable", python)
    assert str(failure(files, maps)) == "BCC ended by signal 9 and said nothing: out of memory"


def has_ended(holder: int) -> bool:
    """Whether the last process that could write to this pipe has gone, or goes soon."""
    try:
        return os.read(holder, 1) == b""
    except BlockingIOError:
        select.select([holder], [], [], 20)
        return os.read(holder, 1) == b""


def test_a_child_that_does_not_end_is_ended(
    files: Path, maps: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(files / "held")
    holder = os.open(files / "held", os.O_RDONLY | os.O_NONBLOCK)
    # A compiler that it started has to go as well.
    python = python_that(files, f"exec 9>{files}/held; sleep 1000 & wait")
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(bcc_loader, "SECONDS", 1)
    assert str(failure(files, maps)) == "BCC did not finish within 1 s"
    assert has_ended(holder)
    os.close(holder)
