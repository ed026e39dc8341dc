"""addrtracker doctor: what this kernel and this process can do, and what follows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import tracker
from tracker import doctor, features
from tracker.capture.base import has_attribution, loader_of
from tracker.cli import options
from tracker.cli.follow import attach_trace, configuration, open_host
from tracker.cli.output import console, print_json, table, wants_table
from tracker.errors import TrackerError

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.config import Config

BCC = options.Option("--bcc", "compile the filter by BCC and load it, too (takes a second)")
VERIFIER_LOG = options.Option(
    "--verifier-log", "print all that the kernel says of a program that it refuses"
)
OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    BCC,
    VERIFIER_LOG,
)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """0, or what opening the source failed with."""
    config = configuration(arguments)
    source, status = _source(arguments, config)
    found = doctor.features()
    if arguments.flag(BCC.name):
        why = features.bcc_compiles()
        found.append(doctor.Finding("bcc-compiles", not why, why or "yes", ""))
    report = {
        "version": tracker.__version__,
        "python": sys.version.split()[0],
        "kernel": os.uname().release,
        "configuration": config.path,
        "source": source,
        "features": [finding._asdict() for finding in found],
        "capabilities": [finding._asdict() for finding in doctor.capabilities()],
        "sysctls": [finding._asdict() for finding in doctor.sysctls()],
    }
    if arguments.flag(VERIFIER_LOG.name):
        report["verifier_log"] = features.verifier_logs()
    if wants_table(arguments):
        _print_tables(report)
    else:
        print_json(report)
    return status


def _source(arguments: Arguments, config: Config) -> tuple[dict[str, Any], int]:
    """The source that `run` would use, why it is not a better one, and the exit status."""
    try:
        chosen = open_host(arguments, config)
    except TrackerError as error:
        return {"name": None, "engine": None, "error": str(error)}, error.exit_status
    source = chosen.source
    counters = source.counters()
    trace = attach_trace(source, config)
    trace.close()
    found = {
        "name": source.name,
        "engine": source.engine.name,
        "loader": loader_of(source) or None,
        "attribution": has_attribution(source),
        "ring": counters.get("ring_bytes"),
        "receive_buffer": counters.get("rcvbuf"),
        "passed_over": list(chosen.passed_over),
        "trace": {
            "way": trace.way or None,
            "probes": list(trace.probes),
            "passed_over": list(trace.passed_over),
        },
    }
    source.close()
    return found, 0


def _print_tables(report: dict[str, Any]) -> None:
    out = console()
    out.print(f"addrtracker {report['version']}, kernel {report['kernel']}", style="bold")
    out.print(f"configuration: {report['configuration'] or 'defaults'}", soft_wrap=True)
    for line, style in _source_lines(report["source"]):
        out.print(line, style=style, soft_wrap=True)
    for section in ("features", "capabilities", "sysctls"):
        shown = table(section, "value", "what follows")
        for finding in report[section]:
            style = None if finding["ok"] else "yellow"
            shown.add_row(finding["name"], finding["value"], finding["follows"], style=style)
        out.print()
        out.print(shown)
    for name, text in report.get("verifier_log", {}).items():
        out.print(f"\n{name}:", style="bold")
        # As it came: a log has lines, and people look for them elsewhere.
        print(text or "nothing was refused")


def _source_lines(source: dict[str, Any]) -> list[tuple[str, str | None]]:
    """What is in use, and why nothing better is."""
    if source["name"] is None:
        return [(f"source: none: {source['error']}", "red")]
    loader = f", loader: {source['loader']}" if source["loader"] else ""
    lines: list[tuple[str, str | None]] = [
        (f"source: {source['name']}{loader}, engine: {source['engine']}", None)
    ]
    named = "named with each change" if source["attribution"] else "not known"
    lines.append((f"processes: {named}", None))
    if source["ring"] is not None:
        lines.append((f"ring buffer: {source['ring']} bytes", None))
    if source["receive_buffer"] is not None:
        lines.append((f"receive buffer: {source['receive_buffer']} bytes", None))
    trace = source["trace"]
    if trace["way"]:
        lines.append((f"trace: {trace['way']} ({', '.join(trace['probes'])})", None))
    every = (*source["passed_over"], *trace["passed_over"])
    return [*lines, *((f"not taken: {line}", "yellow") for line in every)]
