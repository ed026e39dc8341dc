"""One line for what is wrong, the right exit status, and clean ends."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracker
from tests.unit.command import ENGINE, HOST, ROOT, run, start, write
from tracker import config
from tracker.cli import show
from tracker.cli.main import COMMANDS


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, "--help")
    assert answer.status == 0
    assert all(f"  {name} " in answer.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, name, "--help")
    assert answer.status == 0
    assert answer.out.startswith(f"usage: addrtracker {name} ")
    assert "--config FILE" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100


def test_nothing_at_all_is_help_and_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys)
    assert answer.status == 2
    assert answer.out.startswith("usage: addrtracker COMMAND")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version").out == f"addrtracker {tracker.__version__}\n"


WRONG = [
    (["shwo"], "shwo: unknown command; the nearest is show"),
    (
        ["zzz"],
        (
            "zzz: unknown command; allowed: show, explain, compare, watch, events, run, reload, "
            "replay, record, check, doctor"
        ),
    ),
    (["show", "--outptu", "json"], "show: --outptu: unknown option; the nearest is --output"),
    (["show", "--output"], "show: --output: table|json is missing"),
    (["show", "--output=xml"], "show: --output xml; allowed: table, json"),
    (["show", "--local=yes"], "show: --local: takes no value"),
    (["show", "--config", "--local"], "show: --config: FILE is missing"),
    (["show", "x" * 100_000], f"show: {'x' * 57}...: too much; allowed: options only"),
    (
        ["show", "--as", "x" * 100_000],
        f"show: --as {'x' * 57}...; allowed: node, internal-ips, kubelet",
    ),
    (["show", "now"], "show: now: too much; allowed: options only"),
    (["explain", "192.0.2.1", "x"], "explain: x: too much; allowed: at most 1: [ADDRESS]"),
    (
        ["explain", "eth0"],
        'explain: "eth0" is not an IP address; allowed: an address of this host',
    ),
    (["replay"], "replay: FILE is missing"),
    (["watch", "--seconds", "soon"], "--seconds soon; allowed: a number of seconds above 0"),
    (["watch", "--seconds", "-1"], "--seconds -1; allowed: a number of seconds above 0"),
    (["record", "x", "--count", "1.5"], "--count 1.5; allowed: a whole number of 1 or more"),
    (
        ["show", "--source", "netlink", "--engine", "reference"],
        (
            "source netlink feeds the native engine only; allowed with the reference engine: "
            "source pyroute2"
        ),
    ),
]


@pytest.mark.parametrize(("arguments", "line"), WRONG, ids=[" ".join(a)[:60] for a, _ in WRONG])
def test_a_wrong_command_line_gets_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *arguments) == (2, "", f"addrtracker: {line}\n")


@pytest.mark.parametrize("name", ["show", "explain", "watch", "run", "record", "replay", "doctor"])
def test_a_wrong_configuration_gets_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[stability]\nhold = "soon"\n')
    words = {"record": [tmp_path / "r"], "replay": [write(tmp_path, HOST)]}.get(name, [])
    answer = run(capsys, name, "--config", path, *words)
    assert answer.status == 2
    assert answer.err == (
        f'addrtracker: {path}: stability.hold = "soon"; allowed: a duration such as '
        '"500ms", "10s" or "2m"\n'
    )
    assert answer.out == ""
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("name", ["show", "explain", "replay"])
def test_a_file_that_is_not_there_gets_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [tmp_path / "no.json"] if name == "replay" else ["--from", tmp_path / "no.json"]
    answer = run(capsys, name, *words, *ENGINE)
    assert answer.status == 2
    assert answer.err.startswith(f"addrtracker: {tmp_path}/no.json: No such file or directory")
    assert answer.err.count("\n") == 1


def test_a_network_namespace_that_is_not_there_gets_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = run(capsys, "show", "--netns", "no-such-namespace")
    assert answer.status == 2
    assert "no-such-namespace" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_reader_that_leaves_is_no_error(tmp_path: Path, output: str) -> None:
    read, written = os.pipe()
    os.close(read)
    process = start(
        *("show", "--from", write(tmp_path, HOST), "--output", output, *ENGINE),
        stdout=written,
        stderr=subprocess.PIPE,
    )
    os.close(written)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize(
    ("number", "name", "status", "line"),
    [
        (errno.EMFILE, None, 3, "Too many open files"),
        (errno.ENFILE, "/etc/hosts", 3, "/etc/hosts: Too many open files in system"),
        (errno.EPERM, None, 4, "Operation not permitted"),
        (errno.ENOSPC, None, 4, "standard output: No space left on device"),
        (errno.ENOSPC, "/var/x", 4, "/var/x: No space left on device"),
    ],
)
def test_what_the_system_refuses_is_not_blamed_on_something_else(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    name: str | None,
    status: int,
    line: str,
) -> None:
    def refuse(_: object) -> int:
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(show, "run", refuse)
    answer = run(capsys, "show")
    assert (answer.status, answer.out, answer.err) == (status, "", f"addrtracker: {line}\n")


def test_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = start(
            *("show", "--from", write(tmp_path, HOST), "--output", "json", *ENGINE),
            stdout=full,
            stderr=subprocess.PIPE,
        )
        _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert err == b"addrtracker: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("closed", "arguments", "status"),
    [
        ((2,), ("nope",), 2),
        ((0, 1, 2), ("nope",), 2),
        ((0, 1, 2), ("--help",), 0),
    ],
)
def test_streams_that_are_closed_change_no_status(
    closed: tuple[int, ...], arguments: tuple[str, ...], status: int
) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    process = start(*arguments, stdout=subprocess.PIPE, preexec_fn=close)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (status, b"")


def test_an_error_is_one_line_whatever_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, "show", "--config", "no\nsuch\x1b[2Jfile")
    assert answer.err == (
        r"addrtracker: no\x0asuch\x1b[2Jfile: cannot be read: No such file or directory" "\n"
    )


def test_a_name_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = [{**link, "name": "e\x1b[2J\u202e"} for link in HOST["links"][1:2]]
    path = write(tmp_path, {**HOST, "links": links})
    answer = run(capsys, "show", "--from", path, "--output", "table", *ENGINE)
    assert r"e\x1b[2J\u202e" in answer.out
    assert answer.out.replace("\n", "").isprintable()


def test_a_name_that_is_no_text_is_printed_nevertheless(tmp_path: Path) -> None:
    odd = {**HOST, "links": [{**link, "name": "eth\udcff"} for link in HOST["links"][1:2]]}
    path = tmp_path / "host.json"
    path.write_bytes(json.dumps(odd, ensure_ascii=True).encode())
    for output in ("table", "json"):
        process = start(
            *("show", "--from", path, "--output", output, *ENGINE),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        )
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert b"192.0.2.10" in out


HEAVY = {
    "argparse",
    "dataclasses",
    "difflib",
    "inspect",
    "ipaddress",
    "logging",
    "prometheus_client",
    "pyroute2",
    "random",
    "rich",
    "socket",
    "structlog",
    "tomllib",
    "tracker.clusternet",
    "tracker.profiles",
}


def test_show_imports_nothing_heavy() -> None:
    script = (
        "import json, sys\n"
        "from tracker.cli import main\n"
        "main.run(['show', '--output', 'json'])\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    assert not HEAVY & set(json.loads(done.stdout.splitlines()[-1]))


def test_run_decides_without_what_its_consumers_need() -> None:
    """Metrics and their server take longer to import than everything up to the first decision."""
    script = "import sys, tracker.cli.run\nprint(*sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    needed = {"ipaddress", "socket"}  # files, the service manager
    assert not (HEAVY - needed) & set(done.stdout.decode().split())


def test_the_default_configuration_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "addrtracker.toml"
    path.write_text("families = []")
    monkeypatch.setattr(config, "DEFAULT_PATH", str(path))
    assert run(capsys, "show").err.startswith(f"addrtracker: {path}: families = []")
