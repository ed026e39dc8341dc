"""The daemon in a namespace, and readers of what it publishes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.netns.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.netns.namespace import Namespace

COMMAND = os.path.join(sysconfig.get_path("scripts"), "addrtracker")

# Short, so that tests are quick; the shape of the waits is that of the defaults.
QUICK = """
[stability]
settle = "200ms"
settle_max = "2s"
hold = "3s"
"""


class Daemon:
    """`addrtracker run` inside a namespace, with its files in one directory."""

    def __init__(
        self,
        namespace: Namespace,
        directory: Path,
        config: str = QUICK,
        *options: str,
        by: Sequence[str] = (),
    ) -> None:
        """Start it; `config` is added to the paths, `options` to the command line, which is the
        end of the command line `by`."""
        self.namespace = namespace
        self.directory = directory
        self.files = directory / "run"
        self.files.mkdir(parents=True, exist_ok=True)
        self._config = directory / "addrtracker.toml"
        self._config.write_text(
            f'state = "{directory}/state"\nhostname = "n1"\n{config}\n'
            f'[publish.files]\ndirectory = "{self.files}"\n'
        )
        self._command = (*by, COMMAND, "run", "--config", str(self._config), *options)
        self._log = directory / "log"
        self._files_watch = Watch(str(self.files))
        self._log_watch = Watch(str(directory))
        self.start()

    def start(self) -> None:
        """Start it, again after `kill` or `stop`."""
        with open(self._log, "ab") as log:
            self.process = self.namespace.start(*self._command, log=log)

    def document(self) -> dict[str, Any] | None:
        """The node document that is published now."""
        try:
            text = (self.files / "node.json").read_text()
        except FileNotFoundError:
            return None
        document: dict[str, Any] = json.loads(text)
        return document

    def wait(
        self, wanted: Callable[[dict[str, Any]], object], what: str, seconds: float = 20
    ) -> dict[str, Any]:
        """Wait until the published document is as wanted."""

        def probe() -> dict[str, Any] | None:
            self._alive()
            document = self.document()
            return document if document is not None and wanted(document) else None

        try:
            return self._files_watch.wait(probe, seconds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.document()}\n{self._tail()}") from None

    def wait_primary(self, family: str, address: str | None, seconds: float = 20) -> dict[str, Any]:
        """Wait until this is the published address of a family."""
        return self.wait(
            lambda document: document["primary"][family] == address,
            f"{family} {address}",
            seconds,
        )

    def log(self) -> list[dict[str, Any]]:
        """Its log lines so far (those of all its runs)."""
        whole = self._log.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def changes(self, family: str) -> list[tuple[str | None, str]]:
        """(from, to) of each change of a family's address that the log tells of."""
        return [
            (line["from"], line["to"])
            for line in self.log()
            if line.get("family") == family and "from" in line and "to" in line
        ]

    def wait_log(
        self, wanted: Callable[[dict[str, Any]], object], what: str, seconds: float = 20
    ) -> dict[str, Any]:
        """Wait until a log line is as wanted; that line."""

        def probe() -> dict[str, Any] | None:
            self._alive()
            return next((line for line in self.log() if wanted(line)), None)

        try:
            return self._log_watch.wait(probe, seconds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._tail()}") from None

    def wait_hold(self, family: str, seconds: float = 20) -> None:
        """Wait until a hold is kept for the next run."""
        state = self.directory / "state"

        def held() -> bool:
            kept = json.loads((state / "decision.json").read_text())
            return kept["selections"][""][family]["hold_until"] is not None

        watch = Watch(str(state))
        try:
            watch.wait(held, seconds, "a hold")
        finally:
            watch.close()

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"does not stop\n{self._tail()}") from None

    def close(self) -> None:
        """End it if it runs."""
        if self.process.poll() is None:
            self.kill()
        self._files_watch.close()
        self._log_watch.close()

    def _alive(self) -> None:
        status = self.process.poll()
        assert status is None, f"the daemon ended with {status}\n{self._tail()}"

    def _tail(self) -> str:
        return "\n".join(self._log.read_text().splitlines()[-30:])


class Reader(threading.Thread):
    """Reads the published files over and over, as consumers do, and keeps what it saw."""

    PAUSE = 0.0005

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._end = threading.Event()
        self.reads = 0
        self.problems: list[str] = []
        self.seen: dict[str, list[str]] = {name: [] for name in ("primary-ip", "ipv4", "ipv6")}
        self.documents: list[dict[str, Any]] = []

    def run(self) -> None:
        while not self._end.wait(self.PAUSE):
            self._read()

    def _read(self) -> None:
        self.reads += 1
        for name, values in self.seen.items():
            text = self._text(name)
            if text is None:
                if values:
                    self.problems.append(f"{name} went away after {values[-1]}")
                continue
            if not text.strip():
                self.problems.append(f"{name} is empty")
            if not values or values[-1] != text:
                values.append(text)
        text = self._text("node.json")
        if text is None:
            return
        try:
            document = json.loads(text)
        except ValueError:
            self.problems.append(f"node.json is not whole: {text!r}")
            return
        if not self.documents or self.documents[-1] != document:
            self.documents.append(document)

    def _text(self, name: str) -> str | None:
        try:
            return (self._directory / name).read_text()
        except FileNotFoundError:
            return None

    def finish(self) -> None:
        """Stop reading; AssertionError if any read was wrong."""
        self._end.set()
        self.join()
        self._read()
        assert self.reads > 0
        assert self.problems == []
        generations = [document["generation"] for document in self.documents]
        assert generations == sorted(generations), "the generation went back"
