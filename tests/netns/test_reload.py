"""A running daemon is given another configuration: all of it, or nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.netns.daemon import COMMAND
from tests.netns.namespace import Namespace, connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.netns.conftest import StartDaemon
    from tests.netns.daemon import Daemon

FIRST, SECOND = "192.0.2.11", "198.51.100.11"

# No hold may be waited for: what a policy rejects does not come back.
SLOW = """
[stability]
settle = "300ms"
settle_max = "2s"
hold = "300s"
"""
SECOND_LINK = '[select]\nmode = "interface"\ninterfaces = ["eth2"]\n'
STORAGE = '[selections.storage]\nmode = "cidr"\ncidrs = ["198.51.100.0/24"]\n'


@pytest.fixture
def two(host: Namespace, router: Namespace) -> Namespace:
    for link in ("eth1", "eth2"):
        connect(host, link, router, link)
    host.batch(
        [
            "link set lo up",
            f"addr add {FIRST}/24 dev eth1",
            f"addr add {SECOND}/24 dev eth2",
            "route add default via 192.0.2.1",
        ]
    )
    return host


@pytest.fixture
def daemon(two: Namespace, start_daemon: StartDaemon) -> Daemon:
    """It has decided for the first address."""
    started = start_daemon(two, SLOW)
    started.wait_primary("ipv4", FIRST)
    return started


def path_of(daemon: Daemon) -> Path:
    return daemon.directory / "addrtracker.toml"


def configure(daemon: Daemon, text: str) -> None:
    """Another configuration with the same paths."""
    path_of(daemon).write_text(
        f'state = "{daemon.directory}/state"\nhostname = "n1"\n{text}\n'
        f'[publish.files]\ndirectory = "{daemon.files}"\n'
    )


def reload(daemon: Daemon) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "reload", "--config", str(path_of(daemon))],
        capture_output=True,
        text=True,
        check=False,
    )


def test_another_mode_moves_the_answer_after_it_has_settled(daemon: Daemon) -> None:
    configure(daemon, SLOW + SECOND_LINK)
    done = reload(daemon)
    assert (done.returncode, done.stderr) == (0, "")
    document = daemon.wait_primary("ipv4", SECOND)
    assert document["cause"]["change"] == "reload of the configuration"
    assert daemon.changes("ipv4") == [(None, FIRST), (FIRST, SECOND)]
    changed = [line for line in daemon.log() if line["event"] == "configuration changed"]
    assert [(line["key"], line["from"], line["to"]) for line in changed] == [
        ("select.mode", "default-route", "interface"),
        ("select.interfaces", [], ["eth2"]),
    ]


def test_a_signal_does_the_same(daemon: Daemon) -> None:
    configure(daemon, SLOW + SECOND_LINK)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_primary("ipv4", SECOND)


def test_an_address_that_is_excluded_now_is_not_held(daemon: Daemon) -> None:
    configure(
        daemon, SLOW + f'[exclude]\naddresses = ["{FIRST}"]\n[select]\nfallback = "physical"\n'
    )
    assert reload(daemon).returncode == 0
    daemon.wait_primary("ipv4", SECOND)


def test_a_policy_that_changes_nothing_changes_nothing(daemon: Daemon) -> None:
    before = daemon.document()
    assert before is not None
    configure(daemon, SLOW + '[exclude]\ncidrs = ["10.0.0.0/8"]\n')
    assert reload(daemon).returncode == 0
    daemon.wait_log(lambda line: line["event"] == "configuration changed", "a change")
    # A second one goes through the same thread: whatever the first did is done by now.
    assert reload(daemon).returncode == 0
    assert daemon.document() == before
    assert daemon.changes("ipv4") == [(None, FIRST)]


def test_a_list_that_loses_what_took_the_answer_keeps_it(daemon: Daemon) -> None:
    both = '[select]\nmode = "cidr"\ncidrs = ["198.51.100.0/24", "192.0.2.0/24"]\n'
    configure(daemon, SLOW + both)
    assert reload(daemon).returncode == 0
    daemon.wait_primary("ipv4", SECOND)
    configure(daemon, SLOW + both.replace('"198.51.100.0/24", ', ""))
    assert reload(daemon).returncode == 0
    daemon.wait_primary("ipv4", FIRST)
    configure(daemon, SLOW + both.replace('["198.51.100.0/24", "192.0.2.0/24"]', '["10.0.0.0/8"]'))
    assert reload(daemon).returncode == 0
    document = daemon.wait(lambda document: document["stale"], "an answer that is out of date")
    assert document["primary"]["ipv4"] == FIRST
    assert [entry["reason"] for entry in document["ips"]] == ["mode cidr: inside 192.0.2.0/24"]


WRONG = [
    ("[stability]\nhodl = 1\n", "stability.hodl: unknown key"),
    ("[select\n", "is not TOML"),
    ('[select]\nmode = "cidr"\n', "select.cidrs is empty"),
]


@pytest.mark.parametrize(("text", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_wrong_file_keeps_the_old_configuration(daemon: Daemon, text: str, why: str) -> None:
    before = daemon.document()
    # The right part of a file that is wrong elsewhere is not taken either.
    configure(daemon, text + STORAGE)
    done = reload(daemon)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any("refused" in line["event"] for line in daemon.log()), "nothing was sent"
    daemon.process.send_signal(signal.SIGHUP)
    line = daemon.wait_log(lambda line: "refused" in line["event"], "one line")
    assert (line["level"], line["error"]) == (
        "error",
        done.stderr.removeprefix("addrtracker: ").rstrip(),
    )
    assert daemon.document() == before
    configure(daemon, SLOW + SECOND_LINK)
    assert reload(daemon).returncode == 0
    daemon.wait_primary("ipv4", SECOND)


def test_a_pipe_is_not_read_again(daemon: Daemon) -> None:
    path_of(daemon).unlink()
    os.mkfifo(path_of(daemon))
    done = reload(daemon)
    line = f"{path_of(daemon)}: cannot be read again: it is no file"
    assert (done.returncode, done.stderr) == (2, f"addrtracker: {line}\n")
    daemon.process.send_signal(signal.SIGHUP)
    refused = daemon.wait_log(lambda line: "refused" in line["event"], "one line")
    assert refused["error"] == line
    path_of(daemon).unlink()
    configure(daemon, SLOW + SECOND_LINK)
    assert reload(daemon).returncode == 0
    daemon.wait_primary("ipv4", SECOND)


def test_what_belongs_to_the_process_needs_a_restart(daemon: Daemon) -> None:
    configure(daemon, SLOW + STORAGE + '[capture]\nring = "64KiB"\n')
    done = reload(daemon)
    assert done.returncode == 2
    assert done.stderr == (
        f'addrtracker: {path_of(daemon)}: capture.ring = "64KiB": it cannot change while the '
        'daemon runs; allowed: "1MiB", or a restart\n'
    )
    document = daemon.document()
    assert document is not None
    assert document["selections"] == {}


def test_selections_come_and_go(daemon: Daemon) -> None:
    configure(daemon, SLOW + STORAGE)
    assert reload(daemon).returncode == 0
    document = daemon.wait(lambda document: document["selections"], "a selection")
    assert document["primary"]["ipv4"] == FIRST
    document = daemon.wait(
        lambda document: document["selections"]["storage"]["primary"]["ipv4"], "its address"
    )
    assert document["selections"]["storage"]["primary"] == {"ipv4": SECOND, "ipv6": None}
    assert (daemon.files / "selections/storage/ipv4").read_text() == SECOND
    configure(daemon, SLOW)
    assert reload(daemon).returncode == 0
    daemon.wait(lambda document: not document["selections"], "none again")
    assert not (daemon.files / "selections/storage/ipv4").exists()


def test_a_family_that_is_no_longer_wanted_goes(daemon: Daemon, two: Namespace) -> None:
    configure(daemon, 'families = ["ipv6"]\n' + SLOW)
    assert reload(daemon).returncode == 0
    daemon.wait(lambda document: document["families"] == ["ipv6"], "one family")
    assert not (daemon.files / "ipv4").exists()
    two.batch(
        ["addr add 2001:db8::11/64 dev eth1 nodad", "route add default via 2001:db8::1 dev eth1"]
    )
    daemon.wait_primary("ipv6", "2001:db8::11")


def test_metrics_move_to_another_port(daemon: Daemon, two: Namespace) -> None:
    configure(daemon, SLOW + STORAGE + '[metrics]\nlisten = "127.0.0.1:9798"\n')
    assert reload(daemon).returncode == 0
    daemon.wait(lambda document: document["selections"], "a selection")
    with two.entered(), urllib.request.urlopen("http://127.0.0.1:9798/metrics") as answer:
        text = answer.read().decode()
    assert 'addrtracker_config_reloads_total{result="taken"} 1.0' in text
    assert 'addrtracker_ambiguous{family="ipv4",selection="storage"} 0.0' in text
    assert 'addrtracker_ambiguous{family="ipv4"} 0.0' in text
    with two.entered(), pytest.raises(OSError, match="refused"):
        urllib.request.urlopen("http://127.0.0.1:9797/metrics")


def test_without_a_daemon_it_is_one_line(daemon: Daemon) -> None:
    assert daemon.stop() == 0
    done = reload(daemon)
    assert done.returncode == 4
    assert done.stderr == f"addrtracker: {daemon.files}: no daemon publishes there\n"


@pytest.fixture
def service_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What the daemon takes for systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def test_systemd_hears_when_it_begins_and_when_it_ends(
    service_manager: socket.socket, two: Namespace, start_daemon: StartDaemon
) -> None:
    daemon = start_daemon(two, SLOW)
    while not service_manager.recv(500).startswith(b"READY=1"):
        pass
    configure(daemon, SLOW + STORAGE)
    daemon.process.send_signal(signal.SIGHUP)
    heard: list[str] = []
    while not heard or not heard[-1].startswith("READY=1"):
        heard.append(service_manager.recv(500).decode())
    [began] = [text for text in heard if text.startswith("RELOADING=1\n")]
    assert int(began.removeprefix("RELOADING=1\nMONOTONIC_USEC=")) > 0
