"""What Python is told of the C headers is what they say."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tracker._engine import ffi, lib

if TYPE_CHECKING:
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADERS = {
    "records": "bpf/records.h",
    "filter": "bpf/filter.h",
    "engine": "native/engine.h",
    "bpf": "native/bpf.h",
    "netlink": "native/netlink.h",
}
OPAQUE = {"at_engine", "at_source"}
STRUCTS = sorted(set(ffi.list_types()[1]) - OPAQUE)


def text_of(path: str) -> str:
    with open(os.path.join(ROOT, path), encoding="ascii") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.DOTALL)
    return re.sub(r"\\\n", " ", text)


def declarations(path: str) -> list[str]:
    """Structs, enums and functions, in order, with kernel types spelled as in C."""
    code = "\n".join(
        line for line in text_of(path).splitlines() if not line.startswith(("#", "_Static_assert"))
    )
    code = re.sub(r"\b__u(8|16|32|64)\b", r"uint\1_t", code)
    code = re.sub(r"\bunsigned long long\b", "uint64_t", code)
    pieces = re.findall(r"[^;{]+(?:\{.*?\})?\s*;", code, flags=re.DOTALL)
    return [" ".join(piece.split()) for piece in pieces]


def constants(path: str) -> set[str]:
    return set(re.findall(r"^#define (AT_\w+)\s", text_of(path), flags=re.MULTILINE))


@pytest.mark.parametrize("name", HEADERS)
def test_declarations_are_those_of_the_header(name: str) -> None:
    header = declarations(HEADERS[name])
    assert len(header) > 5
    assert declarations(f"native/{name}.cdef") == header
    assert constants(f"native/{name}.cdef") == constants(HEADERS[name])


def test_sizes_offsets_and_constants_are_those_of_the_compiler(tmp_path: Path) -> None:
    wanted: dict[str, int] = {}
    for struct in STRUCTS:
        kind = ffi.typeof(f"struct {struct}")
        wanted[f"sizeof(struct {struct})"] = ffi.sizeof(kind)
        for field, _ in kind.fields:
            wanted[f"offsetof(struct {struct}, {field})"] = ffi.offsetof(kind, field)
    for constant in (name for name in dir(lib) if name.startswith("AT_")):
        wanted[constant] = getattr(lib, constant)
    prints = "".join(f'printf("%llu\\n", (unsigned long long)({what}));' for what in wanted)
    source = tmp_path / "print.c"
    source.write_text(f'#include <stdio.h>\n#include "netlink.h"\nint main(void) {{ {prints} }}\n')
    program = tmp_path / "print"
    includes = [f"-I{os.path.join(ROOT, folder)}" for folder in ("native", "bpf")]
    subprocess.run(["cc", *includes, "-o", program, source], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    assert dict(zip(wanted, map(int, printed), strict=True)) == wanted
    assert len(STRUCTS) > 15
