"""What is asked for one way: routes alone, on one socket, and late answers are for nobody."""

from __future__ import annotations

import socket
import struct

import pytest

from tests.build import Host, link
from tracker.capture import lookup
from tracker.engine.reference import ReferenceEngine

TARGET = "203.0.113.7"
RED = link(5, "red", kind="vrf", vrf_table=7)


class Wire:
    """A socket whose other end answers as it is told."""

    opened = 0

    def __init__(self, *_: int) -> None:
        type(self).opened += 1
        self.kinds: list[int] = []
        self.oifs: list[int] = []
        self.answers: list[bytes] = []
        Wire.last = self

    last: Wire

    def bind(self, _: object) -> None:
        """Anywhere."""

    def settimeout(self, _: float) -> None:
        """Never late."""

    def close(self) -> None:
        """Nothing to free."""

    def send(self, request: bytes) -> None:
        _, kind, _, sequence, _ = struct.unpack_from("=IHHII", request)
        self.kinds.append(kind)
        has_oif = len(request) > 16 + 12 + 8
        self.oifs.append(struct.unpack_from("=i", request, len(request) - 4)[0] if has_oif else 0)
        self.answers.append(self._answer(sequence - 1, b""))
        attributes = struct.pack("=HHi", 8, 4, 2)
        if not struct.unpack_from("=I", request, 16 + 8)[0] & lookup.RTM_F_FIB_MATCH:
            attributes += struct.pack("=HH4s", 8, 7, socket.inet_aton("192.0.2.10"))
        self.answers.append(self._answer(sequence, attributes))

    def recv(self, _: int) -> bytes:
        return self.answers.pop(0)

    @staticmethod
    def _answer(sequence: int, attributes: bytes) -> bytes:
        body = struct.pack("=BBBBBBBBI", 2, 32, 0, 0, 254, 3, 0, 1, 0) + attributes
        return struct.pack("=IHHII", 16 + len(body), 24, 0, sequence, 0) + body


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> lookup.KernelLookup:
    monkeypatch.setattr(Wire, "opened", 0)
    monkeypatch.setattr(socket, "socket", Wire)
    host = Host(ReferenceEngine())
    host.send(RED)
    return lookup.KernelLookup(host.engine)


def test_nothing_is_asked_for_but_single_routes(asking: lookup.KernelLookup) -> None:
    """All else waits for the rtnl lock, in `send`, where no timeout counts."""
    for _ in range(3):
        ways = asking.ways(TARGET)
        assert ways.ways == (lookup.Way("192.0.2.10", 2),)
    assert set(Wire.last.kinds) == {lookup.RTM_GETROUTE}
    assert Wire.opened == 1


def test_a_vrf_is_the_link_that_the_engine_knows(asking: lookup.KernelLookup) -> None:
    assert asking.ways(TARGET, "blue").failure == "the VRF is not there"
    assert Wire.opened == 0
    ways = asking.ways(TARGET, "red")
    assert set(Wire.last.oifs) == {5}
    assert ways.grounds is not None
    assert ways.grounds.links == {2, 5}
