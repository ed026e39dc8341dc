"""Counts the paths of the C engine: what callgrind sees of the objects that the extension has."""

from __future__ import annotations

import fcntl
import json
import platform
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.budget.counts import HERE, Count, amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT = HERE.parents[1]
OBJECTS = ROOT / ".build/cmake/native/CMakeFiles/_engine.dir"
"""Where `make build` leaves what it links: compiled as it is shipped."""

APART = (
    *("clock_gettime", "sendto", "recv", "recvfrom", "setsockopt"),
    *(f"at_map_{what}" for what in ("lookup", "update", "delete", "clear", "entries")),
    *("memcpy", "memmove", "memset", "memcmp", "bcmp", "memchr"),
    *("qsort", "qsort_r"),
    *("strlen", "strnlen", "strcmp", "strncmp", "strncpy", "strchr"),
)
"""What apart.c does instead."""
OF_MEMORY = re.compile(r"__wrap_(mem|bcmp|str)\w*")
"""Counted as ours: how much of it there is is up to the caller."""
ALLOCATORS = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "memalign"}
"""aligned_alloc is memalign in libc."""
UNCOUNTED = {"__errno_location", *ALLOCATORS}

# Loops must stay loops: a compiler knows that they are memcpy.
_PROGRAM = ("-std=gnu11", "-O2", "-g", "-fno-builtin", "-fno-tree-loop-distribute-patterns")
_CALLGRIND = (
    *("valgrind", "--tool=callgrind", "--instr-atstart=no"),
    *("--compress-strings=no", "--compress-pos=no"),
)
# What the compiler made of a function is that function.
_PARTS = re.compile(r"(\.(isra|part|constprop|cold)(\.\d+)?)+$")
# Callgrind tells a function apart from where it is in a recursion, and versions of symbols.
_PLAIN = re.compile(r"('\d+|@.*)$")


class Dump(NamedTuple):
    """Of one path."""

    own: Mapping[str, int]
    """Instructions by function, without those that it calls."""
    calls: Mapping[tuple[str, str], int]
    """By caller and called function."""


def toolchain(objects: Iterable[Path] | None = None) -> str:
    """Such as gcc-12-x86_64: who compiled the objects, for what."""
    first = next(iter(objects or sorted(OBJECTS.glob("*.c.o"))))
    comment = _output("readelf", "-p", ".comment", str(first))
    found = re.search(r"(GCC|clang).*?(\d+)\.\d+\.\d+", comment)
    assert found is not None, comment
    return f"{found[1].lower()}-{found[2]}-{platform.machine()}"


def objects_of_build() -> list[Path]:
    """All that the extension is linked from but what cffi wrote."""
    found = sorted(OBJECTS.glob("*.c.o"))
    assert found, f"nothing below {OBJECTS}: run make build"
    return found


def count(objects: Sequence[Path] | None = None, groups: Sequence[str] = ()) -> list[Count]:
    """Counts these groups of main.c, or all, of the engine that is made of these objects."""
    objects = objects or objects_of_build()
    sources = _functions(objects)
    with tempfile.TemporaryDirectory() as folder:
        program = _link(objects, Path(folder))
        out = Path(folder) / "out"
        done = subprocess.run(
            [*_CALLGRIND, f"--callgrind-out-file={out}", program, *groups],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told = [json.loads(line) for line in done.stdout.splitlines()]
        dumps = [_read(Path(f"{out}.{number}")) for number in range(1, len(told) + 1)]
    return [_count(path, dump, sources) for path, dump in zip(told, dumps, strict=True)]


def _link(objects: Sequence[Path], folder: Path) -> Path:
    program = folder / "counted"
    with open(ROOT / ".build/engine.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # nobody builds meanwhile
        _compile(objects, program)
    return program


def _compile(objects: Sequence[Path], program: Path) -> None:
    subprocess.run(
        ["cc", *_PROGRAM, f"-I{ROOT / 'native'}", f"-I{ROOT / 'bpf'}"]
        + sorted(map(str, HERE.glob("*.c")))
        + [str(path) for path in objects]
        # Bound at the start: the first call of each function would count the linker's work.
        + ["-Wl,-z,now", *(f"-Wl,--wrap={name}" for name in APART), "-o", str(program)],
        check=True,
    )


def _functions(objects: Sequence[Path]) -> dict[str, str]:
    """Where each function of the engine is, with all of its parts."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in objects:
        for line in _output("nm", str(path)).splitlines():
            kind, name = line.split()[-2:]
            if kind in "tT":
                found[name].add(path.name.removesuffix(".o"))
    return {name: ", ".join(sorted(files)) for name, files in found.items()}


def _read(path: Path) -> Dump:
    """A dump in callgrind's format: costs behind the function that they are of, and behind
    `calls=` one line of what the called function took, which is in its own lines."""
    own: dict[str, int] = defaultdict(int)
    calls: dict[tuple[str, str], int] = defaultdict(int)
    function = called = ""
    inclusive = False
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("fn="):
            function = _PLAIN.sub("", line[3:])
        elif line.startswith("cfn="):
            called = _PLAIN.sub("", line[4:])
        elif line.startswith("calls="):
            calls[function, called] += int(line[6:].split()[0])
            inclusive = True
        elif line[:1].isdigit():
            if not inclusive:
                own[function] += int(line.split()[1])
            inclusive = False
    return Dump(own, calls)


def _count(path: dict[str, object], dump: Dump, sources: Mapping[str, str]) -> Count:
    instructions: dict[str, float] = defaultdict(float)
    for name, cost in dump.own.items():
        if name in sources or OF_MEMORY.fullmatch(name):
            instructions[_named(name, sources)] += cost
    allocations: dict[str, float] = defaultdict(float)
    calls: dict[str, float] = defaultdict(float)
    for (caller, called), times in dump.calls.items():
        if caller not in sources or called in sources or OF_MEMORY.fullmatch(called):
            continue
        if called in ALLOCATORS:
            allocations[f"{_named(caller, sources)} calls {called}"] += times
        if called not in UNCOUNTED:
            calls[called.removeprefix("__wrap_")] += times
    size, units = int(str(path["n"])), int(str(path["units"]))
    name = str(path["name"])
    return Count(
        f"{name}, {size}" if size else name,
        {
            "instructions": amount(instructions, units),
            "allocations": amount(allocations),
            "calls": amount(calls),
        },
        family=name,
        size=size,
        event=bool(path["event"]),
    )


def _named(name: str, sources: Mapping[str, str]) -> str:
    plain = _PARTS.sub("", name).removeprefix("__wrap_")
    return f"{plain} ({sources[name]})" if name in sources else plain


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
