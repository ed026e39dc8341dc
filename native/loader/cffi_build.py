"""Writes the C source of tracker._bpf: `python native/loader/cffi_build.py OUT.c`."""

from __future__ import annotations

import sys
from pathlib import Path

import cffi


def builder() -> cffi.FFI:
    """What cffi needs to know of the headers here (API mode, abi3)."""
    here = Path(__file__).resolve().parent
    ffi = cffi.FFI()
    for declarations in sorted(here.glob("*.cdef")):
        ffi.cdef(declarations.read_text(encoding="ascii"))
    headers = sorted(header.name for header in here.glob("*.h"))
    ffi.set_source("tracker._bpf", "\n".join(f'#include "{header}"' for header in headers))
    return ffi


def main(arguments: list[str]) -> int:
    """Entry point; the exit status."""
    if len(arguments) != 1:
        print("usage: cffi_build.py OUT.c", file=sys.stderr)
        return 2
    builder().emit_c_code(arguments[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
