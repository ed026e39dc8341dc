"""Log lines as people and machines read them."""

from __future__ import annotations

import io
import json
import time
from datetime import datetime
from typing import Any

from tracker.log import Log, log_change, logger
from tracker.model import Cause, Change

CHANGE = Change(
    selection="",
    family="ipv4",
    old="192.0.2.9",
    new="192.0.2.10",
    reason="default-route metric 100",
    cause=Cause("RTM_NEWADDR 192.0.2.10/24 bond0", "NetworkManager", 812, "process"),
    boot_ns=5_000_000_000,
    took_ns=1_250_000,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def started(stream: io.StringIO, **how: Any) -> Log:
    log = logger(stream, **how)
    log.start()
    return log


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_change_is_one_json_line() -> None:
    stream = io.StringIO()
    log_change(started(stream), CHANGE)
    [line] = lines(stream)
    assert str(line.pop("timestamp")).endswith("Z")
    assert line == {
        "event": "primary address changed",
        "level": "info",
        "family": "ipv4",
        "from": "192.0.2.9",
        "to": "192.0.2.10",
        "reason": "default-route metric 100",
        "cause": "RTM_NEWADDR 192.0.2.10/24 bond0",
        "process": "NetworkManager",
        "pid": 812,
        "attribution": "process",
        "seconds": 0.00125,
    }


def test_what_is_not_known_is_not_made_up() -> None:
    stream = io.StringIO()
    log_change(started(stream), CHANGE._replace(old=None, cause=None, selection="storage"))
    [line] = lines(stream)
    assert line["from"] is None
    assert line["cause"] is None
    assert line["selection"] == "storage"
    assert "process" not in line


def test_a_terminal_gets_keys_and_values() -> None:
    stream = Terminal()
    log_change(started(stream, environ={"NO_COLOR": "1"}), CHANGE)
    [line] = stream.getvalue().splitlines()
    assert "primary address changed" in line
    assert "from=192.0.2.9 to=192.0.2.10" in line
    assert "\x1b" not in line


def test_no_name_moves_the_cursor_of_a_terminal() -> None:
    cause = Cause("RTM_NEWADDR 192.0.2.10/24 e\x1b[2J\udcff\u202e", None, None)
    stream = Terminal()
    log_change(started(stream, environ={"NO_COLOR": "1"}), CHANGE._replace(cause=cause))
    [line] = stream.getvalue().splitlines()
    assert r"e\x1b[2J\xff\u202e" in line.replace(r"\\", "\\")
    assert line.isprintable()


def test_debug_lines_are_for_who_asks() -> None:
    quiet, verbose = io.StringIO(), io.StringIO()
    started(quiet).debug("held")
    started(verbose, verbose=True).debug("held")
    assert quiet.getvalue() == ""
    assert [line["level"] for line in lines(verbose)] == ["debug"]


def test_a_stream_that_is_gone_stops_nobody() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    closed = io.StringIO()
    closed.close()
    log_change(started(Gone()), CHANGE)


def test_lines_wait_until_there_is_time_for_them() -> None:
    stream = io.StringIO()
    log = logger(stream)
    log.info("first", number=1)
    log.debug("of no interest")
    assert not stream.getvalue()
    log.start()
    log.warning("second")
    log.start()
    assert [line["event"] for line in lines(stream)] == ["first", "second"]


def test_a_line_that_waited_has_the_time_at_which_it_was_said() -> None:
    stream = io.StringIO()
    log = logger(stream)
    log.info("first")
    said = time.time()
    log.start()
    log.info("second")
    first, second = (datetime.fromisoformat(str(line["timestamp"])) for line in lines(stream))
    assert first.timestamp() <= said < second.timestamp()
    assert "said_at" not in stream.getvalue()
