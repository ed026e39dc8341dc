"""pyroute2 as its documentation shows it, in a process of its own.

    python -m benchmarks.peers.pyroute2_reader iproute|async|ndb WATCH [BYTES]

A reader as benchmarks/peers/process.py has them. BYTES: of the socket's buffer, where it is not to
be the library's own default (by SO_RCVBUFFORCE: the library itself stops at net.core.rmem_max).
When messages were lost, its documentation says, "the only solution is to close the socket and
create a new one": so it is done here, and what is there is read anew. NDB does that by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any, NoReturn

from pyroute2 import NDB, AsyncIPRoute, IPRoute
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

SO_RCVBUFFORCE = 33


class Watched:
    """The addresses of a network that a reader knows of, and when it learned of each change."""

    def __init__(self, watch: str) -> None:
        self._network = ipaddress.ip_network(watch)
        self._there: set[str] = set()
        self.messages = 0
        self.sockets = 1
        self.sights: list[tuple[int, str]] = []

    def look_at(self, message: Any) -> None:
        """One message, whatever it is about."""
        self.messages += 1
        event = message["event"]
        if event in {"RTM_NEWADDR", "RTM_DELADDR"}:
            address = address_of(message)
            if ipaddress.ip_address(address) in self._network:
                self._set(address, there=event == "RTM_NEWADDR")

    def is_all_of(self, addresses: Iterable[str]) -> None:
        """There are these, and no other ones."""
        before = self._there
        self._there = {a for a in addresses if ipaddress.ip_address(a) in self._network}
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.sights += [(now, f"-{address}") for address in before - self._there]
        self.sights += [(now, f"+{address}") for address in self._there - before]

    def _set(self, address: str, *, there: bool) -> None:
        if there == (address in self._there):
            return
        (self._there.add if there else self._there.discard)(address)
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.sights.append((now, ("+" if there else "-") + address))

    def report(self) -> dict[str, Any]:
        """In the form of all readers."""
        return {
            "messages": self.messages,
            "lost": None,  # the library does not tell
            "sockets": self.sockets,
            "sights": self.sights,
        }


def address_of(message: Any) -> str:
    """The address that a message about addresses has."""
    found: str = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
    return found


def consume(messages: Iterable[Any]) -> None:
    """Read a dump that says nothing about the address."""
    for _ in messages:
        pass


def enlarge(ipr: Any, rcvbuf: int) -> None:
    """Give it a buffer of so many bytes; 0 = leave it as it is."""
    if rcvbuf:
        with socket.socket(fileno=os.dup(ipr.fileno())) as same:
            same.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, rcvbuf)


def follow(watched: Watched, rcvbuf: int) -> NoReturn:
    """IPRoute: bind(), and get() again and again."""
    while True:
        ipr = IPRoute()
        try:
            enlarge(ipr, rcvbuf)
            ipr.bind()
            consume(ipr.get_links())
            watched.is_all_of(map(address_of, ipr.get_addr()))
            consume(ipr.get_routes())
            say_ready()
            while True:
                for message in ipr.get():
                    watched.look_at(message)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            watched.sockets += 1
        finally:
            # Behind a loss it raises that error once more.
            with contextlib.suppress(OSError):
                ipr.close()


async def follow_async(watched: Watched) -> NoReturn:
    """AsyncIPRoute: the same."""
    while True:
        ipr = AsyncIPRoute()
        try:
            await ipr.bind()
            [_ async for _ in await ipr.get_links()]
            watched.is_all_of([address_of(m) async for m in await ipr.get_addr()])
            [_ async for _ in await ipr.get_routes()]
            say_ready()
            while True:
                async for message in ipr.get():
                    watched.look_at(message)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            watched.sockets += 1
        finally:
            with contextlib.suppress(OSError):
                ipr.close()


def follow_ndb(watched: Watched) -> NoReturn:
    """NDB: its handlers run once what they tell of is in its database."""
    with NDB() as ndb:

        async def link(sources: Any, target: str, message: Any) -> None:
            # It makes one up, without a number, before it reads all again: its tables are empty.
            if message["index"] == 0:
                watched.sockets += 1
                watched.is_all_of(())

        async def address(sources: Any, target: str, message: Any) -> None:
            watched.look_at(message)

        watched.is_all_of(record.address for record in ndb.addresses.dump())
        ndb.task_manager.register_handler(ifinfmsg, link)
        ndb.task_manager.register_handler(ifaddrmsg, address)
        say_ready()
        while True:
            signal.pause()


_ready = threading.Event()


def say_ready() -> None:
    """Once."""
    if not _ready.is_set():
        _ready.set()
        print("ready", flush=True)


def main() -> None:
    """Follow until SIGTERM."""
    what, watched = sys.argv[1], Watched(sys.argv[2])
    rcvbuf = int(sys.argv[3]) if len(sys.argv) > 3 else 0

    def end(number: int, frame: object) -> NoReturn:
        print(json.dumps(watched.report()), flush=True)
        os._exit(0)  # threads of the library would be waited for

    signal.signal(signal.SIGTERM, end)
    if what == "ndb":
        follow_ndb(watched)
    elif what == "async":
        asyncio.run(follow_async(watched))
    else:
        follow(watched, rcvbuf)


if __name__ == "__main__":
    main()
