"""Runs the command in this process, and makes the files that it reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.cli import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ("--engine", "reference")


class Answer(NamedTuple):
    """What a command said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON object."""
        return json.loads(self.out)


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Answer:
    """Run one command in this process."""
    status = main.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Answer(status, captured.out, captured.err)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start one command in a process of its own."""
    words = [
        sys.executable,
        "-c",
        "from tracker.cli.main import main; main()",
    ]
    return subprocess.Popen([*words, *map(str, arguments)], cwd=ROOT, **options)


def link(ifindex: int, name: str, **values: Any) -> dict[str, Any]:
    """A link that is up."""
    loopback = name == "lo"
    flags = ["LOOPBACK" if loopback else "BROADCAST", "UP", "LOWER_UP"]
    return {"ifindex": ifindex, "name": name, "flags": flags, **values}


def address(ifindex: int, text: str, **values: Any) -> dict[str, Any]:
    """ "192.0.2.10/24" on a link."""
    plain, _, length = text.partition("/")
    return {"ifindex": ifindex, "address": plain, "prefixlen": int(length), **values}


def default(oif: int, gateway: str, metric: int = 100, **values: Any) -> dict[str, Any]:
    """A default route."""
    family = "inet6" if ":" in gateway else "inet"
    route = {"family": family, "dst": "default", "oif": oif, "gateway": gateway}
    return {**route, "metric": metric, "table": 254, **values}


HOST: dict[str, Any] = {
    "hostname": "n1",
    "links": [link(1, "lo"), link(2, "eth0"), link(3, "eth1"), link(4, "docker0")],
    "addresses": [
        address(1, "127.0.0.1/8", scope="host"),
        address(2, "192.0.2.10/24"),
        address(3, "198.51.100.10/24"),
        address(4, "172.17.0.1/16"),
        address(2, "2001:db8::10/64"),
        address(2, "fe80::10/64", scope="link"),
    ],
    "routes": [
        default(2, "192.0.2.1"),
        default(3, "198.51.100.1", 200),
        default(2, "2001:db8::1", 1024),
    ],
}
"""A host with two uplinks, the second of which is worse."""


def write(directory: Path, value: object, name: str = "host.json") -> Path:
    """A JSON file."""
    path = directory / name
    path.write_text(json.dumps(value))
    return path
