"""Network namespaces to test in: the host's own network is never touched."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.netns.watching import Announcements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROGRAMS = Path(__file__).resolve().parents[2] / ".build/programs/bin"
"""What tools/unpack-programs makes."""

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()


class Namespace:
    """A named network namespace; `lo` is up."""

    def __init__(self) -> None:
        self.name = f"at-{os.getpid()}-{next(_numbers)}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.ip("link set lo up")

    @property
    def path(self) -> str:
        return f"/run/netns/{self.name}"

    def ip(self, command: str) -> str:
        """Run `ip` with a command line of words."""
        return self._checked(["ip", "-n", self.name, *command.split()])

    def json(self, command: str) -> Any:
        """What `ip -json -details` prints."""
        text = self._checked(["ip", "-n", self.name, "-json", "-details", *command.split()])
        return json.loads(text or "[]")

    def batch(self, commands: Sequence[str]) -> None:
        """Run many commands in one `ip` process."""
        self._checked(["ip", "-n", self.name, "-batch", "-"], "\n".join(commands) + "\n")

    def sysctl(self, name: str, value: int) -> None:
        """Set a value below /proc/sys/net."""
        with self.entered(), open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command line that runs something inside."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def run(self, *arguments: str) -> str:
        """Run a program inside to its end; its output."""
        return self._checked(self.command(arguments))

    def start(self, *arguments: str, log: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Start a program inside; its output goes to `log`."""
        return subprocess.Popen(
            self.command(arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Move the calling thread inside for a while."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            inside = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _setns(inside)
            finally:
                os.close(inside)
            try:
                yield
            finally:
                _setns(home)
        finally:
            os.close(home)

    def addresses(self, link: str, family: int = 4) -> list[str]:
        """Addresses of a link that are not link-local and have passed DAD, in kernel order."""
        return [
            entry["local"]
            for found in self.json(f"-{family} addr show dev {link}")
            for entry in found.get("addr_info", [])
            if entry["scope"] != "link" and not entry.get("tentative")
        ]

    def wait(self, probe: Callable[[], object], what: str, seconds: float = 20) -> None:
        """Wait until a probe of this namespace is true: it is asked at each change."""
        announcements = Announcements(self)
        try:
            announcements.wait(probe, seconds, what)
        finally:
            announcements.close()

    def delete(self) -> None:
        """Remove the namespace and every device in it."""
        subprocess.run(["ip", "netns", "del", self.name], check=True)

    @staticmethod
    def _checked(command: Sequence[str], text: str = "") -> str:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
        return done.stdout


def connect(first: Namespace, first_link: str, second: Namespace, second_link: str) -> None:
    """A veth pair between two namespaces, both ends up."""
    first.ip(f"link add {first_link} type veth peer name {second_link} netns {second.name}")
    first.ip(f"link set {first_link} up")
    second.ip(f"link set {second_link} up")


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
