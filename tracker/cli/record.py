"""addrtracker record: what the kernel announces, into a file for a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tracker.capture.recording import Head, RecordingWriter
from tracker.cli import options
from tracker.cli.follow import TAP_BYTES, configuration, open_host, session
from tracker.cli.limits import COUNT, SECONDS, Limits
from tracker.cli.output import warn
from tracker.clock import SystemClock
from tracker.errors import InputError
from tracker.lastrun import INSTANT
from tracker.memory import boot_id

if TYPE_CHECKING:
    from tracker.capture.base import Tapped
    from tracker.cli.options import Arguments

OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    COUNT,
    SECONDS,
)
WORDS = (1, 1, "FILE")


def run(arguments: Arguments) -> int:
    """Until SIGINT, SIGTERM or a limit; --count counts what was announced after the start."""
    config = configuration(arguments)
    clock = SystemClock()
    limits = Limits(arguments, clock)
    tapped = cast("Tapped", open_host(arguments, config).source)
    head = Head(config.hostname, boot_id(), clock.boot_ns(), clock.wall_ns())
    path = arguments.words[0]
    try:
        opened = open(path, "wb", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; allowed: a file that can be written") from None
    try:
        with opened as file:
            tapped.tap(TAP_BYTES)
            recording = session(tapped, config, clock, wanted=INSTANT)
            total = 0
            with limits.signals(tapped):
                with limits.output():
                    writer = RecordingWriter(file, head)
                recording.start()
                with limits.output():
                    total += _write(tapped, writer)
                while not limits.reached:
                    recording.step(limits.deadline)
                    with limits.output():
                        written = _write(tapped, writer)
                    total += written
                    limits.count(written)
                with limits.output():
                    writer.finish(clock.boot_ns())
    except OSError as error:
        error.filename = error.filename or path
        raise
    lost = tapped.counters()["tap_lost"]
    if lost:
        warn(f"{path}: {lost} records were lost: they came faster than the file took them")
    warn(f"{path}: {total} records")
    return 0


def _write(source: Tapped, writer: RecordingWriter) -> int:
    """Write what the tap holds; how many records."""
    written = 0
    while records := source.read_tap():
        written += writer.write(records)
    return written
