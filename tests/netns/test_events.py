"""Every change as it happens, and who made it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND
from tests.netns.namespace import connect
from tests.tiers import BPF, NETLINK, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netns.namespace import Namespace

PYROUTE2 = ("--source", "pyroute2")


class Events:
    """`addrtracker events` in a namespace; it follows when this is made."""

    def __init__(self, namespace: Namespace, *options: str) -> None:
        command = namespace.command([COMMAND, "events", *options])
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = ""
        while "following by" not in self.said:
            line = self._end("stderr").readline().decode()
            assert line, self.said
            self.said += line

    def _end(self, name: str) -> IO[bytes]:
        end: IO[bytes] = getattr(self.process, name)
        return end

    def next(self) -> dict[str, Any]:
        """The next event."""
        event: dict[str, Any] = json.loads(self._end("stdout").readline())
        return event

    def until(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The next event that is as wanted."""
        while not wanted(event := self.next()):
            pass
        return event

    def until_change(self, change: str) -> dict[str, Any]:
        """The next event about this."""
        return self.until(lambda event: event["change"] == change)

    def stop(self) -> tuple[int, str, str]:
        """SIGTERM; status, and the rest of both streams."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out.decode(), err.decode()

    def close_output(self) -> None:
        """Read no more."""
        self._end("stdout").close()

    def close(self) -> None:
        """End it if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def begin() -> Iterator[Callable[..., Events]]:
    """Starts them; they end with the test."""
    started: list[Events] = []

    def start(namespace: Namespace, *options: str) -> Events:
        started.append(Events(namespace, *options))
        # A test that waits for what does not come ends all the same.
        timer = threading.Timer(60, started[-1].process.kill)
        timer.daemon = True
        timer.start()
        timers.append(timer)
        return started[-1]

    timers: list[threading.Timer] = []
    yield start
    for timer in timers:
        timer.cancel()
    for events in started:
        events.close()


@pytest.fixture
def node(host: Namespace, router: Namespace) -> Namespace:
    """A host with an uplink and no address."""
    connect(host, "eth0", router, "peer0")
    return host


@pytest.mark.both_loaders
def test_each_change_is_an_object(
    node: Namespace, tier: Tier, begin: Callable[..., Events]
) -> None:
    events = begin(node, *tier.options, "--output", "json")
    assert f"source {tier.source}" in events.said
    node.ip("addr add 192.0.2.10/24 dev eth0")
    event = events.until_change("RTM_NEWADDR 192.0.2.10/24 eth0")
    assert (event["kind"], event["op"]) == ("addr", "new")
    assert (event["interface"], event["data"]["address"]) == ("eth0", "192.0.2.10")
    assert event["time"].endswith("Z")
    node.ip("route add default via 192.0.2.1")
    event = events.until_change("RTM_NEWROUTE default via 192.0.2.1 dev eth0")
    assert (event["kind"], event["data"]["protocol"]) == ("route", "boot")
    node.ip("addr del 192.0.2.10/24 dev eth0")
    event = events.until_change("RTM_DELADDR 192.0.2.10/24 eth0")
    assert event["op"] == "del"
    node.ip("link set eth0 down")
    event = events.until(lambda event: event["kind"] == "link")
    assert "up" not in event["data"]["flags"]
    # More may have happened since, such as the end of the link's own IPv6 address.
    status, rest, said = events.stop()
    assert (status, said) == (0, "")
    assert all(json.loads(line) for line in rest.splitlines())


def test_changes_name_the_process(node: Namespace, begin: Callable[..., Events]) -> None:
    events = begin(node, *BPF.options, "--output", "json")
    assert "without names of processes" not in events.said
    adding = subprocess.Popen(node.command(["ip", "addr", "add", "192.0.2.10/24", "dev", "eth0"]))
    assert adding.wait() == 0
    event = events.until_change("RTM_NEWADDR 192.0.2.10/24 eth0")
    assert (event["process"], event["attribution"]) == ("ip", "process")
    # `ip netns exec` becomes the program that it runs.
    assert event["pid"] == adding.pid


def test_what_the_kernel_does_by_itself_is_told_apart(
    node: Namespace, begin: Callable[..., Events]
) -> None:
    events = begin(node, *BPF.options, "--output", "json")
    node.ip("addr add 2001:db8::10/64 dev eth0 valid_lft 1 preferred_lft 1 nodad")
    event = events.until_change("RTM_DELADDR 2001:db8::10/64 eth0")
    assert event["attribution"] == "kernel"
    assert event["process"].startswith("kworker/")


@pytest.mark.parametrize("options", [PYROUTE2, NETLINK.options], ids=["pyroute2", "netlink"])
def test_without_the_filter_changes_have_no_process(
    node: Namespace, options: tuple[str, ...], begin: Callable[..., Events]
) -> None:
    events = begin(node, *options, "--output", "json")
    assert events.said.endswith("without names of processes\n")
    node.ip("addr add 192.0.2.10/24 dev eth0")
    event = events.until_change("RTM_NEWADDR 192.0.2.10/24 eth0")
    assert (event["process"], event["pid"], event["attribution"]) == (None, None, None)


def test_a_link_has_the_name_that_it_had(
    node: Namespace, tier: Tier, begin: Callable[..., Events]
) -> None:
    events = begin(node, *tier.options, "--output", "json")
    node.ip("link add early type bridge")
    node.ip("addr add 192.0.2.10/24 dev early")
    node.ip("link set early name late")
    node.ip("link del late")
    events.until_change("RTM_NEWADDR 192.0.2.10/24 early")
    assert events.until_change("RTM_DELADDR 192.0.2.10/24 late")["interface"] == "late"


def test_lines_are_for_people(node: Namespace, begin: Callable[..., Events]) -> None:
    events = begin(node, *BPF.options, "--output", "table", "--count", "1")
    node.ip("addr add 2001:db8::10/64 dev eth0")
    out, _ = events.process.communicate(timeout=20)
    line = out.decode()
    assert " RTM_NEWADDR 2001:db8::10/64 eth0 (tentative) by ip (" in line
    assert (events.process.returncode, line.count("\n")) == (0, 1)


def test_events_end_after_so_many(node: Namespace, begin: Callable[..., Events]) -> None:
    events = begin(node, *NETLINK.options, "--output", "json", "--count", "3")
    node.batch([f"addr add 192.0.2.{number}/24 dev eth0" for number in range(1, 9)])
    out, err = events.process.communicate(timeout=20)
    assert (events.process.returncode, out.count(b"\n"), err) == (0, 3, b"")


def test_events_end_when_their_reader_does(
    node: Namespace, tier: Tier, begin: Callable[..., Events]
) -> None:
    events = begin(node, *tier.options, "--output", "json")
    events.close_output()
    node.ip("addr add 192.0.2.10/24 dev eth0")
    assert events.process.wait(20) == 0


def test_losses_and_what_is_read_again_are_told(
    node: Namespace, begin: Callable[..., Events]
) -> None:
    events = begin(node, *NETLINK.options, "--output", "json")
    # While it is stopped more is announced than its buffer of 16 MiB takes.
    os.kill(events.process.pid, signal.SIGSTOP)
    changes = ("addr add 192.0.2.10/24 dev eth0", "addr del 192.0.2.10/24 dev eth0")
    node.batch([*changes] * 15_000)
    os.kill(events.process.pid, signal.SIGCONT)
    loss = events.until(lambda event: event["kind"] == "loss")
    assert loss["data"]["cause"] == "overrun"
    assert "addr4" in loss["data"]["scopes"]
    again = events.until(lambda event: event["kind"] == "resync")
    assert again["data"]["cause"] == "loss"
    assert again["data"]["error"] is None
