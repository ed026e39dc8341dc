"""Writes the C source of tracker._engine: `python native/cffi_build.py OUT.c`."""

from __future__ import annotations

import os
import sys

import cffi

DECLARATIONS = ("records.cdef", "filter.cdef", "engine.cdef", "bpf.cdef", "netlink.cdef")


def builder() -> cffi.FFI:
    """What cffi needs to know of the headers (API mode, abi3)."""
    here = os.path.dirname(os.path.abspath(__file__))
    ffi = cffi.FFI()
    for name in DECLARATIONS:
        with open(os.path.join(here, name), encoding="ascii") as file:
            ffi.cdef(file.read())
    ffi.set_source("tracker._engine", '#include "netlink.h"')
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
