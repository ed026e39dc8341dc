"""Where /proc, /sys or descriptors are lacking, the best source that works is taken, and it is
said why."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND, QUICK, Daemon
from tests.netns.test_doctor import finding

if TYPE_CHECKING:
    from pathlib import Path

    from tests.netns.namespace import Namespace

Done = subprocess.CompletedProcess[str]

BRIEF = ("--seconds", "0.1")
FOLLOWING = "addrtracker: following by source "


def without(mount: str, *command: str) -> list[str]:
    """A command line that runs a program where nothing is mounted there."""
    return ["unshare", "--mount", "sh", "-c", f'umount -l {mount} && exec "$@"', "sh", *command]


def with_files(number: int, *command: str) -> list[str]:
    """The same with so many descriptors, the three streams included."""
    return ["prlimit", f"--nofile={number}", *command]


def run(host: Namespace, command: list[str]) -> Done:
    return subprocess.run(host.command(command), capture_output=True, text=True, check=False)


def report(host: Namespace, command: list[str]) -> dict[str, Any]:
    done = run(host, command)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_without_proc_the_filter_is_used_and_nothing_is_traced(host: Namespace) -> None:
    done = run(host, without("/proc", COMMAND, "events", *BRIEF))
    assert (done.returncode, done.stderr) == (0, f"{FOLLOWING}bpf, loader libbpf\n")
    found = report(host, without("/proc", COMMAND, "doctor"))
    assert found["source"]["name"] == "bpf"
    assert found["source"]["trace"] == {
        "way": None,
        "probes": [],
        "passed_over": ["trace: /proc/thread-self/ns/net: No such file or directory"],
    }
    assert finding(found, "features", "ipv6")["value"] == "not known: /proc is not mounted"
    (capabilities,) = found["capabilities"]
    assert capabilities["value"].startswith("not known: /proc/self/status: ")


def test_without_proc_a_recording_is_made_and_read(host: Namespace, tmp_path: Path) -> None:
    path = str(tmp_path / "made.rec")
    assert run(host, without("/proc", COMMAND, "record", path, *BRIEF)).returncode == 0
    assert report(host, [COMMAND, "replay", path])["warnings"] == []


def test_without_proc_the_daemon_runs(host: Namespace, tmp_path: Path) -> None:
    daemon = Daemon(host, tmp_path, QUICK, by=without("/proc"))
    try:
        line = daemon.wait_log(lambda line: line["event"] == "following", "the start")
        assert line["source"] == "bpf"
        assert daemon.stop() == 0
    finally:
        daemon.close()


def test_without_sys_nobody_says_that_the_kernel_lacks_something(host: Namespace) -> None:
    found = report(host, without("/sys", COMMAND, "doctor"))
    assert found["source"]["passed_over"] == ["names of processes: /sys is not mounted"]
    trace = "; ".join(found["source"]["trace"]["passed_over"])
    assert "kprobe: /sys is not mounted" in trace
    assert finding(found, "features", "btf")["value"].startswith("/sys is not mounted")


@pytest.mark.parametrize("files", [28, 27, 24, 20, 16, 14, 12, 9])
def test_with_few_descriptors_another_source_is_taken_and_one_line_says_why(
    host: Namespace, files: int
) -> None:
    done = run(host, with_files(files, COMMAND, "events", *BRIEF))
    *passed_over, following = done.stderr.splitlines()
    assert done.returncode == 0
    assert following.startswith(FOLLOWING)
    if "source netlink" in following:
        (line,) = passed_over
        assert line == (
            "addrtracker: source bpf: Too many open files: this process may have "
            f"{files} (RLIMIT_NOFILE), and 24 more are needed"
        )
    else:
        assert passed_over == []


@pytest.mark.parametrize(
    "command", [["events"], ["show"], ["watch"], ["events", "--source", "bpf"]]
)
@pytest.mark.parametrize("files", [8, 6, 5])
def test_with_too_few_descriptors_one_line_says_so(
    host: Namespace, files: int, command: list[str]
) -> None:
    done = run(host, with_files(files, COMMAND, *command))
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert f"Too many open files: this process may have {files} (RLIMIT_NOFILE)" in line
    assert "headers" not in line


@pytest.mark.parametrize("source", ["bpf", "netlink", "pyroute2"])
def test_what_a_source_asks_for_is_enough(host: Namespace, source: str) -> None:
    """However many there are, a command works or says one line, and that it has too few."""
    for files in range(5, 36):
        command = [COMMAND, "events", *BRIEF, "--source", source]
        done = run(host, with_files(files, *command))
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        if done.returncode == 0:
            assert lines[0].startswith(FOLLOWING)
        else:
            assert done.returncode == 3
            assert "Too many open files" in lines[0]
