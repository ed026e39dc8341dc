"""The command addrtracker: finds the command that is meant and runs it.

Each command is a module of this package with SUMMARY, OPTIONS, WORDS (how many words that are no
option it needs and allows, and what they are) and `run`, which returns the exit status. Only the
one that is meant is imported: `show` has to start fast.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from importlib import import_module
from typing import NoReturn

import tracker
from tracker.cli.options import Arguments, nearest, parse, usage
from tracker.cli.output import warn
from tracker.errors import TrackerError, UnsupportedError, UsageError
from tracker.printable import quoted

COMMANDS = {
    "show": "the node document: the primary addresses now",
    "explain": "every candidate, ranked, and why each other address is none",
    "compare": "what other software would choose here, and where it disagrees",
    "watch": "decisions as they change",
    "events": "every change that matters, and the process that made it",
    "run": "the daemon",
    "reload": "have the daemon read its configuration again",
    "replay": "what a recording or a case would have published, and the document at its end",
    "record": "record what the kernel announces, for a replay",
    "check": "the configuration and the networks of the cluster",
    "doctor": "what this kernel and this process can do, and what follows",
}

SIGINT_STATUS = 130
"""128 + SIGINT, as shells have it."""
OUTPUT_STATUS = 4
_OF_OUTPUT = {
    *(errno.EAGAIN, errno.EBADF, errno.ECONNRESET, errno.EDQUOT, errno.EFBIG),
    *(errno.EIO, errno.ENOSPC, errno.ENXIO, errno.EROFS, errno.ESTALE),
}
"""What writing to a stream can run into; only such an error names no file."""


def main() -> NoReturn:
    """The process: run what its command line says, then end."""
    _open_streams()
    status = run(sys.argv[1:])
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    # Python would spend a sixth of show's time on freeing what the kernel takes back anyway.
    os._exit(status)


def _open_streams() -> None:
    """Where the caller closed one of the three streams, nobody is there: neither to be told,
    nor to be sent what is written to a socket or file that would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def run(arguments: list[str]) -> int:
    """Run one command; the exit status. Every error is one line on standard error."""
    try:
        # Names of interfaces are bytes; those that are no UTF-8 shall not end a table.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        status = _run(arguments)
        sys.stdout.flush()
    except TrackerError as error:
        return _fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        return SIGINT_STATUS
    except BrokenPipeError:
        return 0  # whoever read has had enough
    except OSError as error:
        return _fail(*_told(error))
    return status


def _run(argv: list[str]) -> int:
    name = argv[0] if argv else "--help"
    if name in {"--help", "-h", "help"}:
        print(_help())
        return 0 if argv else UsageError.exit_status
    if name in {"--version", "version"}:
        print(f"addrtracker {tracker.__version__}")
        return 0
    if name not in COMMANDS:
        raise UsageError(f"{quoted(name)}: unknown command{nearest(name, COMMANDS)}")
    command = import_module(f"tracker.cli.{name}")
    arguments: Arguments = parse(name, command.OPTIONS, command.WORDS, argv[1:])
    if arguments.flag("--help"):
        print(usage(name, COMMANDS[name], command.OPTIONS, command.WORDS[2]))
        return 0
    status: int = command.run(arguments)
    return status


def _told(error: OSError) -> tuple[str, int]:
    """One line on what the system refused, and the exit status."""
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return what, UnsupportedError.exit_status
    if error.filename is None and error.errno in _OF_OUTPUT:
        return f"standard output: {what}", OUTPUT_STATUS
    return what, OUTPUT_STATUS


def _fail(line: str, status: int) -> int:
    warn(line)
    return status


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "usage: addrtracker COMMAND [options]",
            "",
            "Which IPv4 and which IPv6 address is this node's primary one, and why.",
            "",
            *lines,
            "",
            "addrtracker COMMAND --help says more.",
        ]
    )
