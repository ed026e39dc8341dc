"""The commands on a live kernel: one look, watching, recording, the daemon's surroundings."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND, QUICK
from tests.netns.namespace import connect
from tests.tiers import BPF, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netns.conftest import StartDaemon, StartProgram
    from tests.netns.namespace import Namespace

NO_WAIT = '[stability]\nsettle = "0s"\nsettle_max = "0s"\nhold = "0s"\n'


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    """A host with two uplinks."""
    for link, net, metric in (("eth0", "192.0.2", 100), ("eth1", "198.51.100", 200)):
        connect(host, link, router, f"peer-{link}")
        host.ip(f"addr add {net}.10/24 dev {link}")
        host.ip(f"route add default via {net}.1 metric {metric}")
    return host


@pytest.fixture
def no_wait(tmp_path: Path) -> str:
    path = tmp_path / "no-wait.toml"
    path.write_text(f'hostname = "n1"\n{NO_WAIT}')
    return str(path)


@pytest.fixture
def begin(tier: Tier) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts commands that follow and whose output is a pipe; they end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(namespace: Namespace, *arguments: str) -> subprocess.Popen[bytes]:
        command = namespace.command([COMMAND, *arguments, *tier.options])
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def next_json(process: subprocess.Popen[bytes]) -> Any:
    return json.loads(stdout(process).readline())


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_show_and_explain_look_into_a_namespace(node: Namespace) -> None:
    shown = call("show", "--netns", node.name)
    assert (shown.returncode, shown.stderr) == (0, "")
    document = json.loads(shown.stdout)
    assert document["primary"] == {"ipv4": "192.0.2.10", "ipv6": None}
    assert document["cause"] is None
    explained = json.loads(call("explain", "--netns", node.path).stdout)
    reasons = {c["address"]: c["reason"] for c in explained["families"]["ipv4"]["candidates"]}
    assert reasons == {
        "192.0.2.10": "default-route metric 100",
        "198.51.100.10": "behind by default-route",
        "127.0.0.1": "loopback",
    }


def test_both_engines_and_sources_say_the_same(node: Namespace) -> None:
    answers = []
    for choice in (
        ("--source", "netlink", "--engine", "native"),
        (*BPF.options, "--engine", "native"),
        ("--source", "pyroute2", "--engine", "native"),
        ("--source", "pyroute2", "--engine", "reference"),
    ):
        explained = call("explain", "--netns", node.name, "--output", "json", *choice)
        assert (explained.returncode, explained.stderr) == (0, "")
        answers.append(json.loads(explained.stdout))
    assert answers[1:] == answers[:-1]


def test_show_without_any_address_says_why_and_fails(host: Namespace) -> None:
    shown = call("show", "--netns", host.name)
    assert shown.returncode == 1
    assert json.loads(shown.stdout)["state"] == {"ipv4": "none", "ipv6": "none"}
    assert shown.stderr.splitlines() == [
        (
            "addrtracker: no ipv4 address: no default route in table main; "
            "fallback auto: no eligible address"
        ),
        (
            "addrtracker: no ipv6 address: no default route in table main; "
            "fallback auto: no eligible address"
        ),
    ]


def test_show_works_for_everybody(node: Namespace) -> None:
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    shown = node.run(*unprivileged, "--inh-caps=-all", COMMAND, "show", "--output", "json")
    assert json.loads(shown)["primary"]["ipv4"] == "192.0.2.10"


def test_a_namespace_is_not_for_everybody(node: Namespace) -> None:
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [*unprivileged, COMMAND, "show", "--netns", node.name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("addrtracker: network namespace")
    assert done.stderr.count("\n") == 1


def test_watch_tells_of_each_decision_and_ends_with_a_signal(
    node: Namespace, no_wait: str, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    watching = begin(node, "watch", "--output", "json", "--config", no_wait)
    assert next_json(watching)["primary"]["ipv4"] == "192.0.2.10"
    node.ip("addr del 192.0.2.10/24 dev eth0")
    document = next_json(watching)
    assert document["primary"]["ipv4"] == "198.51.100.10"
    assert document["cause"]["change"] == "RTM_DELADDR 192.0.2.10/24 eth0"
    watching.send_signal(signal.SIGTERM)
    out, err = watching.communicate(timeout=20)
    assert (watching.returncode, out, err) == (0, b"", b"")


def test_watch_ends_with_a_signal_amid_changes_that_concern_nobody(
    node: Namespace,
    no_wait: str,
    begin: Callable[..., subprocess.Popen[bytes]],
    start_program: StartProgram,
    tmp_path: Path,
) -> None:
    churn = tmp_path / "churn"
    route = "10.0.0.0/24 via 192.0.2.1"
    churn.write_text(f"route replace {route}\nroute del {route}\n" * 1000)
    start_program(node, "sh", "-c", f"while ip -batch {churn}; do :; done")
    for _ in range(20):
        watching = begin(node, "watch", "--output", "json", "--config", no_wait)
        assert next_json(watching)["primary"]["ipv4"] == "192.0.2.10"
        watching.send_signal(signal.SIGTERM)
        out, err = watching.communicate(timeout=20)
        assert (watching.returncode, out, err) == (0, b"", b"")


def test_watch_ends_after_so_many(
    node: Namespace, no_wait: str, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    watching = begin(node, "watch", "--output", "table", "--config", no_wait, "--count", "1")
    out, _ = watching.communicate(timeout=20)
    assert watching.returncode == 0
    assert b"ipv4  192.0.2.10 on eth0  (stable: default-route metric 100)" in out


def test_watch_ends_when_its_reader_does(
    node: Namespace, no_wait: str, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    watching = begin(node, "watch", "--output", "json", "--config", no_wait)
    next_json(watching)
    stdout(watching).close()
    node.ip("addr del 192.0.2.10/24 dev eth0")
    assert watching.wait(20) == 0


def test_a_recording_gives_the_same_answers_later(
    node: Namespace, no_wait: str, tmp_path: Path, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    path = tmp_path / "recording"
    recording = begin(node, "record", str(path), "--config", no_wait, "--count", "2")
    # The dumps of the start are in the file when the recorder waits for more.
    watching = begin(node, "watch", "--output", "json", "--config", no_wait)
    next_json(watching)
    node.wait(lambda: path.exists() and path.stat().st_size > 1000, "the start is recorded")
    node.ip("addr del 192.0.2.10/24 dev eth0")
    published = next_json(watching)
    assert recording.wait(20) == 0
    replayed = call("replay", str(path), "--config", no_wait)
    assert (replayed.returncode, replayed.stderr) == (0, "")
    answer = json.loads(replayed.stdout)
    assert [(c["from"], c["to"]) for c in answer["changes"]] == [
        (None, "192.0.2.10"),
        ("192.0.2.10", "198.51.100.10"),
    ]
    assert answer["node"]["primary"] == published["primary"]
    assert answer["node"]["cause"] == published["cause"]
    assert answer["node"]["hostname"] == "n1"


def test_recording_into_a_directory_that_is_not_there_is_one_line(node: Namespace) -> None:
    done = call("record", "/nonexistent/file", "--netns", node.name)
    assert (done.returncode, done.stderr) == (
        2,
        (
            "addrtracker: /nonexistent/file: No such file or directory; "
            "allowed: a file that can be written\n"
        ),
    )


def test_metrics_are_there_while_the_daemon_runs(
    node: Namespace, start_daemon: StartDaemon, tier: Tier
) -> None:
    daemon = start_daemon(node)
    daemon.wait_primary("ipv4", "192.0.2.10")
    with node.entered():
        text = urllib.request.urlopen("http://127.0.0.1:9797/metrics", timeout=20).read().decode()
    lines = text.splitlines()
    assert (
        'addrtracker_primary_address_info{address="192.0.2.10",family="ipv4",interface="eth0"} 1.0'
        in lines
    )
    (source,) = [line for line in lines if line.startswith("addrtracker_source_info{")]
    assert f'source="{tier.source}"' in source
    assert 'addrtracker_candidates{family="ipv4",state="eligible"} 2.0' in lines
    assert 'addrtracker_stale{family="ipv4"} 0.0' in lines


def test_a_taken_port_costs_the_metrics_alone(node: Namespace, start_daemon: StartDaemon) -> None:
    with node.entered(), socket.create_server(("127.0.0.1", 9797)):
        daemon = start_daemon(node)
        line = daemon.wait_log(lambda line: "metrics" in line.get("error", ""), "a warning")
        assert line["error"] == "metrics: 127.0.0.1:9797: Address already in use"
        daemon.wait_primary("ipv4", "192.0.2.10")
    # The port is free now, and is tried again.
    daemon.wait_log(lambda line: line["event"] == "serving metrics", "metrics at last")


def test_systemd_hears_of_the_start_and_of_the_end(
    node: Namespace, tmp_path: Path, start_daemon: StartDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        daemon = start_daemon(node)
        heard: list[bytes] = []
        while b"WATCHDOG=1" not in heard or not any(b"READY=1" in text for text in heard):
            heard.append(manager.recv(4096))
        assert b"READY=1\nSTATUS=192.0.2.10" in heard
        assert daemon.stop() == 0
        while heard[-1] != b"STOPPING=1":
            heard.append(manager.recv(4096))


def test_the_daemon_without_a_place_to_write_tracks_on(
    node: Namespace, tmp_path: Path, start_daemon: StartDaemon
) -> None:
    daemon = start_daemon(node, QUICK)
    daemon.wait_primary("ipv4", "192.0.2.10")
    os.rename(daemon.files, tmp_path / "moved")
    daemon.files.write_text("in the way")
    node.ip("addr del 192.0.2.10/24 dev eth0")
    line = daemon.wait_log(lambda line: line.get("publisher") == "files", "a warning")
    assert line["level"] == "warning"
    daemon.files.unlink()
    daemon.wait_log(lambda line: line["event"] == "publishing again", "the retry")
    daemon.wait_log(lambda line: line.get("to") == "198.51.100.10", "the change")
    assert daemon.stop() == 0
    assert (daemon.files / "ipv4").read_text() == "198.51.100.10"


def test_a_namespace_can_be_entered_without_the_extension(node: Namespace) -> None:
    script = (
        "import sys; sys.modules['tracker._engine'] = None\n"
        "from tracker.cli.main import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "show", "--netns", node.name],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["primary"]["ipv4"] == "192.0.2.10"
