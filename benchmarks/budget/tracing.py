"""Counts what an interpreter executes. Imports next to nothing: it runs before what it counts."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable

ROOT = __file__.removesuffix("/benchmarks/budget/tracing.py")
_OURS = "/tracker/"
_LIBRARIES = ("/site-packages/", "/dist-packages/", f"/python3.{sys.version_info.minor}/")

Parts = dict[str, int]
TraceFunction = Callable[[types.FrameType, str, object], "TraceFunction | None"]


def bytecode(run: Callable[[], object]) -> tuple[Parts, Parts]:
    """Instructions of the interpreter: those of our functions, and those of others by file."""
    ours, others = Parts(), Parts()
    for code, times in _executed(run).items():
        if own := _own(code):
            name = f"{code.co_qualname} ({own})"
            ours[name] = ours.get(name, 0) + times
        elif library := _library(code):
            others[library] = others.get(library, 0) + times
    return ours, others


def _executed(run: Callable[[], object]) -> dict[types.CodeType, int]:
    counted: dict[types.CodeType, int] = {}

    def see(code: types.CodeType, offset: int) -> None:
        counted[code] = counted.get(code, 0) + 1

    def trace(frame: types.FrameType, event: str, arg: object) -> TraceFunction:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            see(frame.f_code, frame.f_lasti)
        return trace

    if sys.version_info >= (3, 12):
        # There f_trace_opcodes misses code that runs for the first time, such as that of modules.
        tool, instruction = sys.monitoring.PROFILER_ID, sys.monitoring.events.INSTRUCTION
        sys.monitoring.use_tool_id(tool, "budget")
        sys.monitoring.register_callback(tool, instruction, see)
        sys.monitoring.set_events(tool, instruction)
        run()
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.free_tool_id(tool)
    else:
        sys.settrace(trace)
        run()
        sys.settrace(None)
    return counted


def c_functions(run: Callable[[], object]) -> Parts:
    """How often our functions call some that are written in C."""
    called = Parts()

    def profile(frame: types.FrameType, event: str, arg: object) -> None:
        if event == "c_call" and _own(frame.f_code):
            name = str(getattr(arg, "__qualname__", arg))
            called[name] = called.get(name, 0) + 1

    sys.setprofile(profile)
    run()
    sys.setprofile(None)
    return called


def modules(names: Iterable[str]) -> tuple[Parts, Parts]:
    """Ours, and those of others."""
    ours, others = Parts(), Parts()
    for name in names:
        (ours if name.partition(".")[0] == "tracker" else others)[name] = 1
    return ours, others


def _own(code: types.CodeType) -> str:
    """Its file below tracker/, if it has one."""
    path = code.co_filename.removeprefix(ROOT)
    found = _OURS in path and not any(folder in path for folder in _LIBRARIES)
    return f"tracker/{path.rpartition(_OURS)[2]}" if found else ""


def _library(code: types.CodeType) -> str:
    """Its file without the folder of its library; nothing for what counts."""
    path = code.co_filename
    for folder in _LIBRARIES:
        _, found, rest = path.rpartition(folder)
        if found:
            return rest
    return "" if path.startswith(ROOT) else path
