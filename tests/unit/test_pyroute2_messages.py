"""What pyroute2 decodes, where that is not what the kernel meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import netlink_bytes
from tracker.capture.payload import Header, Link, Record
from tracker.capture.pyroute2_messages import decode, heads

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [b"eth0", "\u65e5".encode(), b"e\xff", b"e\x1b[2J"])
def test_any_name_that_the_kernel_takes_is_read(name: bytes) -> None:
    message = netlink_bytes.encode(Record(Header(), Link(2, "N" * len(name))))
    data = message.replace(b"N" * len(name), name)
    [head] = heads(data)
    record = decode(data, head, 0)
    assert record is not None
    assert isinstance(record.payload, Link)
    assert record.payload.name.encode("utf-8", "surrogateescape") == name


@pytest.mark.parametrize(("attributes", "is_link"), [([], True), ([(11, bytes(24))], False)])
def test_a_wireless_event_is_no_link_without_master_and_kind(
    attributes: list[tuple[int, bytes]], is_link: bool
) -> None:
    data = netlink_bytes.encode(Record(Header(), Link(2, "wlan0")), attributes)
    [head] = heads(data)
    assert (decode(data, head, 0) is not None) is is_link


def test_who_else_reads_routes_in_this_process_changes_nothing() -> None:
    """pyroute2 keeps by class what it has compiled, and children inherit that."""
    script = """
from pyroute2.netlink.rtnl.rtmsg import rtmsg
rtmsg()
from tests import build, netlink_bytes
from tracker.capture.pyroute2_messages import decode, heads
data = netlink_bytes.encode(build.route(oif=2, via="192.0.2.1", nh_id=10))
[head] = heads(data)
print(decode(data, head, 0).payload.nh_id)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "10\n"
