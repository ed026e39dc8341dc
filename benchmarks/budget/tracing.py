"""Counts what an interpreter executes. Imports next to nothing: it runs before what it counts."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable

ROOT = __file__.removesuffix("benchmarks/budget/tracing.py")
OURS = f"{ROOT}tracker/"
_LIBRARIES = ("site-packages/", "dist-packages/", f"python3.{sys.version_info.minor}/")

Parts = dict[str, int]
TraceFunction = Callable[[types.FrameType, str, object], "TraceFunction | None"]


def bytecode(run: Callable[[], object]) -> tuple[Parts, Parts]:
    """Instructions of the interpreter: those of our functions, and those of others by file."""
    counted: dict[types.CodeType, int] = {}

    def trace(frame: types.FrameType, event: str, arg: object) -> TraceFunction:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            counted[frame.f_code] = counted.get(frame.f_code, 0) + 1
        return trace

    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(None)
    ours, others = Parts(), Parts()
    for code, times in counted.items():
        if code.co_filename.startswith(OURS):
            name = f"{code.co_qualname} ({code.co_filename.removeprefix(ROOT)})"
            ours[name] = ours.get(name, 0) + times
        elif not code.co_filename.startswith(ROOT):
            name = _library(code.co_filename)
            others[name] = others.get(name, 0) + times
    return ours, others


def c_functions(run: Callable[[], object]) -> Parts:
    """How often our functions call some that are written in C."""
    called = Parts()

    def profile(frame: types.FrameType, event: str, arg: object) -> None:
        if event == "c_call" and frame.f_code.co_filename.startswith(OURS):
            name = str(getattr(arg, "__qualname__", arg))
            called[name] = called.get(name, 0) + 1

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return called


def modules(names: Iterable[str]) -> tuple[Parts, Parts]:
    """Ours, and those of others."""
    ours, others = Parts(), Parts()
    for name in names:
        (ours if name.partition(".")[0] == "tracker" else others)[name] = 1
    return ours, others


def _library(path: str) -> str:
    for folder in _LIBRARIES:
        path = path.rpartition(folder)[2]
    return path
