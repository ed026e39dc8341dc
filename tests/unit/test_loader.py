"""How a program gets into the kernel by libbpf, and what is said where it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.programs import HEAD, PLAIN, REFUSED, WITH_TASKS, compile_object, ring
from tracker.capture import loader
from tracker.errors import LoadError

ROOT = Path(__file__).resolve().parents[2]

VERIFIER_6_1 = """\
libbpf: prog 'at_filter': BPF program load failed: Permission denied
libbpf: prog 'at_filter': -- BEGIN PROG LOAD LOG --
reg type unsupported for arg#0 function at_filter#5
0: R1=ctx(off=0,imm=0) R10=fp0
; int at_filter(struct __sk_buff *skb)
0: (bf) r6 = r1                       ; R1=ctx(off=0,imm=0) R6_w=ctx(off=0,imm=0)
from 3 to 5: R6=ctx(off=0,imm=0)
R2 min value is negative, either use unsigned or 'var &= const'
processed 12 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 1
-- END PROG LOAD LOG --
libbpf: prog 'at_filter': failed to load: -13
libbpf: failed to load object 'addrtracker'
"""
TOO_LARGE = """\
libbpf: prog 'at_filter': -- BEGIN PROG LOAD LOG --
2039: (3e) if w2 >= w1 goto pc+2 BPF program is too large. Processed 1000001 insn
processed 1000001 insns (limit 1000000) max_states_per_insn 122 total_states 31 peak_states 16
-- END PROG LOAD LOG --
"""
NO_LOG = """\
libbpf: prog 'at_filter': BPF program load failed: Argument list too long
libbpf: prog 'at_filter': failed to load: -7
"""
BROKEN_OBJECT = "libbpf: elf: failed to open addrtracker as ELF file: (null)\n"
COMPILER = """\
/virtual/main.c:3:5: warning: something else [-Wunused]
/virtual/main.c:10:9: error: use of undeclared identifier 'x'
        x = 1;
        ^
1 error generated.
"""
BY_BCC = """\
bpf: Failed to load program: Permission denied
0: R1=ctx(off=0,imm=0) R10=fp0
0: (b7) r1 = 8                        ; R1_w=8
R1 invalid mem access 'scalar'
processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0

HINT: The invalid mem access 'inv' error can happen if you try to dereference memory.
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (VERIFIER_6_1, "R2 min value is negative, either use unsigned or 'var &= const'"),
        (TOO_LARGE, "BPF program is too large. Processed 1000001 insn"),
        (NO_LOG, "prog 'at_filter': BPF program load failed: Argument list too long"),
        (BROKEN_OBJECT, "elf: failed to open addrtracker as ELF file: (null)"),
        (COMPILER, "/virtual/main.c:10:9: error: use of undeclared identifier 'x'"),
        (BY_BCC, "R1 invalid mem access 'scalar'"),
        ("", "Argument list too long"),
    ],
)
def test_a_log_comes_down_to_one_line(log: str, line: str) -> None:
    assert loader.reason(log, 7) == line


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for that of our programs."""
    monkeypatch.setattr(loader, "FILES", tmp_path)
    return tmp_path


@pytest.fixture
def maps() -> Iterator[dict[str, int]]:
    descriptor = ring()
    yield {"ring": descriptor, "unused": descriptor}
    os.close(descriptor)


def test_the_variant_that_names_processes_is_preferred(files: Path, maps: dict[str, int]) -> None:
    compile_object(files, HEAD + PLAIN + WITH_TASKS)
    loaded = loader.load(maps)
    os.close(loaded.program)
    assert loaded[1:] == ("libbpf", True, ())


def test_without_it_the_plain_one_does_and_a_line_says_so(
    files: Path, maps: dict[str, int]
) -> None:
    compile_object(files, HEAD + PLAIN + REFUSED.replace("at_refused", "at_filter_tasks"))
    loaded = loader.load(maps)
    os.close(loaded.program)
    assert loaded[1:3] == ("libbpf", False)
    [line] = loaded.passed_over
    assert line.startswith("names of processes: at_filter_tasks is refused: R1 invalid mem access")


def test_where_both_are_refused_the_least_one_does(files: Path, maps: dict[str, int]) -> None:
    bad = "".join(REFUSED.replace("at_refused", name) for name in ("at_filter_tasks", "at_filter"))
    compile_object(files, HEAD + bad + PLAIN.replace("at_filter", "at_filter_least"))
    loaded = loader.load(maps)
    os.close(loaded.program)
    assert loaded[1:3] == ("libbpf", False)
    line = loaded.passed_over[1]
    assert line.startswith("links that did not change reach user space: at_filter is refused: R1 ")


def test_a_refusal_is_one_line_and_the_log_is_kept(
    files: Path, maps: dict[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    compile_object(files, HEAD + REFUSED)
    with pytest.raises(LoadError) as raised:
        loader.load_object("filter", "at_refused", maps)
    assert str(raised.value).startswith("at_refused is refused: R1 invalid mem access ")
    assert "\n" not in str(raised.value)
    assert "processed 2 insns" in raised.value.log
    assert capfd.readouterr() == ("", "")


def test_maps_that_the_object_has_and_we_have_not_are_named(files: Path) -> None:
    compile_object(files, HEAD + PLAIN)
    with pytest.raises(LoadError, match="map ring: the object has one, the caller has none"):
        loader.load_object("filter", "at_filter", {})


def test_a_program_that_the_object_has_not_is_named(files: Path, maps: dict[str, int]) -> None:
    compile_object(files, HEAD + PLAIN)
    with pytest.raises(LoadError, match="program at_else: the object has none of this name"):
        loader.load_object("filter", "at_else", maps)


def test_what_is_no_object_is_one_line(files: Path, maps: dict[str, int]) -> None:
    (files / "filter.bpf.o").write_bytes(b"nothing of the kind")
    with pytest.raises(LoadError, match=r"at_filter is refused: elf: "):
        loader.load(maps, "libbpf")


def test_a_package_built_without_clang_says_so(files: Path, maps: dict[str, int]) -> None:
    with pytest.raises(LoadError) as raised:
        loader.load(maps, "libbpf")
    assert str(raised.value) == (
        f"no prebuilt object: {files}/filter.bpf.o is missing (this package was built without "
        "clang)"
    )


def test_a_host_without_libbpf_loses_the_loader_and_nothing_else(
    maps: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tracker._bpf", None)
    with pytest.raises(LoadError, match=r"^the extension tracker\._bpf cannot be loaded: "):
        loader.load(maps, "libbpf")


def test_auto_names_each_loader_that_failed(files: Path, maps: dict[str, int]) -> None:
    with pytest.raises(LoadError) as raised:
        loader.load(maps)
    assert str(raised.value) == (
        f"loader libbpf: no prebuilt object: {files}/filter.bpf.o is missing (this package was "
        f"built without clang); loader bcc: no source for BCC: {files}/filter.bpf.c is missing"
    )


TRY = """
import sys
from pathlib import Path
from tracker.capture import loader
from tracker.errors import TrackerError
loader.FILES = Path(sys.argv[1])
try:
    print(loader.load({"ring": int(sys.argv[2])}, "libbpf")[1:])
except TrackerError as error:
    print(f"{type(error).__name__}: {error}")
"""


def try_elsewhere(files: Path, maps: dict[str, int], *around: str) -> str:
    """What loading ends with in a process that something was done to."""
    done = subprocess.run(
        [*around, sys.executable, "-c", TRY, str(files), str(maps["ring"])],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        pass_fds=[maps["ring"]],
    )
    return done.stdout.strip()


def test_a_kernel_without_btf_gets_the_plain_program(files: Path, maps: dict[str, int]) -> None:
    compile_object(files, HEAD + PLAIN + WITH_TASKS)
    hide = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    assert try_elsewhere(files, maps, "unshare", "--mount", "sh", "-c", hide, "sh") == (
        "('libbpf', False, ('names of processes: this kernel has no BTF "
        "(/sys/kernel/btf/vmlinux)',))"
    )


NOT_PERMITTED = (
    "NotPermittedError: the kernel loads no BPF program for this process: Operation not permitted "
    "(CAP_BPF is needed)"
)


@pytest.mark.parametrize(
    ("capabilities", "ends_with"),
    [
        ("+bpf,+perfmon", "('libbpf', True, ())"),
        ("+bpf", "('libbpf', False, ('names of processes: this process has no CAP_PERFMON',))"),
        ("+net_admin", NOT_PERMITTED),
    ],
)
def test_what_a_process_may_load_depends_on_its_capabilities(
    files: Path, maps: dict[str, int], capabilities: str, ends_with: str
) -> None:
    compile_object(files, HEAD + PLAIN + WITH_TASKS)
    assert try_elsewhere(files, maps, "setpriv", f"--bounding-set=-all,{capabilities}") == ends_with
