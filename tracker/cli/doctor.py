"""addrtracker doctor: what this kernel and this process can do, and what follows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import tracker
from tracker import doctor
from tracker.capture.choose import enter_netns, open_source
from tracker.cli import options
from tracker.cli.follow import configuration
from tracker.cli.output import console, print_json, table, wants_table
from tracker.errors import TrackerError

if TYPE_CHECKING:
    from tracker.cli.options import Arguments

OPTIONS = (options.CONFIG, options.NETNS, options.OUTPUT, options.SOURCE, options.ENGINE)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """0, or what opening the source failed with."""
    config = configuration(arguments)
    if name := arguments.value("--netns"):
        enter_netns(name)
    source, status = _source(arguments, config.capture.source)
    report = {
        "version": tracker.__version__,
        "python": sys.version.split()[0],
        "kernel": os.uname().release,
        "configuration": config.path,
        "source": source,
        "features": [finding._asdict() for finding in doctor.features()],
        "capabilities": [finding._asdict() for finding in doctor.capabilities()],
        "sysctls": [finding._asdict() for finding in doctor.sysctls()],
    }
    if wants_table(arguments):
        _print_tables(report)
    else:
        print_json(report)
    return status


def _source(arguments: Arguments, configured: str) -> tuple[dict[str, Any], int]:
    """The source that would be used, why it is not a better one, and the exit status."""
    wanted = arguments.value("--source") or configured
    try:
        chosen = open_source(wanted, arguments.value("--engine", "auto"))
    except TrackerError as error:
        return {"name": None, "engine": None, "error": str(error)}, error.exit_status
    found = {
        "name": chosen.source.name,
        "engine": chosen.source.engine.name,
        "receive_buffer": chosen.source.counters().get("rcvbuf"),
        "passed_over": list(chosen.passed_over),
    }
    chosen.source.close()
    return found, 0


def _print_tables(report: dict[str, Any]) -> None:
    out = console()
    source = report["source"]
    out.print(f"addrtracker {report['version']}, kernel {report['kernel']}", style="bold")
    out.print(f"configuration: {report['configuration'] or 'defaults'}", soft_wrap=True)
    if source["name"] is None:
        out.print(f"source: none: {source['error']}", style="red", soft_wrap=True)
    else:
        out.print(f"source: {source['name']}, engine: {source['engine']}")
        if source["receive_buffer"] is not None:
            out.print(f"receive buffer: {source['receive_buffer']} bytes")
        for line in source["passed_over"]:
            out.print(f"not taken: {line}", style="yellow", soft_wrap=True)
    for section in ("features", "capabilities", "sysctls"):
        shown = table(section, "", "what follows")
        for finding in report[section]:
            style = None if finding["ok"] else "yellow"
            shown.add_row(finding["name"], finding["value"], finding["follows"], style=style)
        out.print()
        out.print(shown)
