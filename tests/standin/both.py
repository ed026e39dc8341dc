"""Does each operation on the real kernel and on paper, and compares what comes of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import pytest

from tests.standin.commands import (
    address_words,
    family_option,
    nexthop_words,
    route_words,
)
from tests.standin.paper.base import NLM_F_CREATE, NLM_F_EXCL, Refused
from tests.standin.paper.kernel import KernelOnPaper
from tests.standin.real import RealKernel, deadline_after, left
from tracker.capture.names import IFF_LOWER_UP, IFF_UP, RTNH_F_ONLINK
from tracker.capture.record import Addr, Leg, Link, Nexthop, Op, Record, Route, text
from tracker.capture.standin import NLM_F_APPEND, NLM_F_REPLACE, route_key
from tracker.model import AF_INET, AF_INET6, Scope

ACTIONS = {
    "add": NLM_F_CREATE | NLM_F_EXCL,
    "append": NLM_F_CREATE | NLM_F_APPEND,
    "prepend": NLM_F_CREATE,
    "replace": NLM_F_CREATE | NLM_F_REPLACE,
    "change": NLM_F_REPLACE,
}
"""Flags of `ip route ACTION`."""

SECONDS = 3.0
"""How long an announcement may take; most are there before `ip` returns."""


class Both:
    """The two kernels, in the same state.

    Operations name links; what they take otherwise are payloads. Each returns whether the
    kernels did it (both or neither).
    """

    def __init__(self, real: RealKernel, *, promote_secondaries: bool = False) -> None:
        self.real = real
        self.paper = KernelOnPaper()
        self.paper.promote_secondaries = promote_secondaries
        for where in ("all", "default"):
            real.here.sysctl(f"ipv4/conf/{where}/promote_secondaries", int(promote_secondaries))
        self._known: dict[str, dict[int, str]] = {"real": {}, "paper": {}}
        self.adopt()

    def adopt(self) -> None:
        """Take over the real state as it is."""
        self.real.settle_links()
        self.real.messages()
        kinds = {
            "links": (Scope.LINK,),
            "addresses": (Scope.ADDR4, Scope.ADDR6),
            "nexthops": (Scope.NEXTHOP,),
            "routes": (Scope.ROUTE4, Scope.ROUTE6),
        }
        for kind, scopes in kinds.items():
            entries = [r.payload for scope in scopes for r in self.real.dump(scope)]
            self.paper.replace_all(kind, entries)
        for link in self.paper.links.values():
            for seen in self._known.values():
                seen[link.ifindex] = shown(link)

    def index(self, name: str) -> int:
        link = self.paper.find_link(name)
        return link.ifindex if link is not None else 999

    def name(self, ifindex: int) -> str:
        link = self.paper.links.get(ifindex)
        return link.name if link is not None else "none"

    # Operations.

    def up(self, link: str) -> bool:
        return self._do(f"link set {link} up", lambda: self.paper.set_up(self.index(link)))

    def down(self, link: str) -> bool:
        return self._do(f"link set {link} down", lambda: self.paper.set_down(self.index(link)))

    def carrier(self, link: str, *, on: bool) -> bool:
        """Take the far end up or down."""
        self.far_end(int(link[1:]), up=on)
        return self._do("", lambda: self.paper.set_carrier(self.index(link), on=on))

    def far_end(self, number: int, *, up: bool) -> None:
        self.real.far.ip(f"link set p{number} {'up' if up else 'down'}")

    def rename(self, link: str, name: str) -> bool:
        return self._do(
            f"link set {link} name {name}", lambda: self.paper.rename(self.index(link), name)
        )

    def master(self, link: str, master: str) -> bool:
        """ "" = none."""
        number = self.index(master) if master else 0
        words = f"master {master}" if master else "nomaster"
        return self._do(
            f"link set {link} {words}", lambda: self.paper.set_master(self.index(link), number)
        )

    def delete(self, link: str) -> bool:
        return self._do(f"link delete {link}", lambda: self.paper.delete_link(self.index(link)))

    def add_link(self, name: str, kind: str, on: str = "") -> bool:
        """A bridge or a macvlan."""
        below = f"link {on} " if on else ""
        self.real.here.ip(f"link add {name} {below}type {kind}")
        ifindex = next(
            link.ifindex
            for link in (record.payload for record in self.real.dump(Scope.LINK))
            if isinstance(link, Link) and link.name == name
        )
        link = Link(ifindex, name, kind=kind, lower=self.index(on) if on else 0)
        return self._do("", lambda: self.paper.add_link(link))

    def add_address(self, address: Addr, action: str = "add") -> bool:
        words = f"address {action} {address_words(address, self.name)}"
        operation = self.paper.add_address if action == "add" else self.paper.change_address
        return self._do(words, lambda: operation(address))

    def delete_address(self, address: Addr) -> bool:
        plain = address._replace(
            flags=0, scope=0, priority=0, valid=0xFFFFFFFF, preferred=0xFFFFFFFF
        )
        words = f"address delete {address_words(plain, self.name)}"
        return self._do(words, lambda: self.paper.delete_address(address))

    def route(self, action: str, route: Route) -> bool:
        words = f"{family_option(route.family)} route {action} {route_words(route, self.name)}"
        if action == "delete":
            return self._do(words, lambda: self.paper.delete_route(route))
        return self._do(words, lambda: self.paper.add_route(route, ACTIONS[action]))

    def nexthop(self, action: str, nexthop: Nexthop) -> bool:
        words = nexthop_words(nexthop, self.name)
        option = family_option(nexthop.family) + " " if nexthop.family else ""
        return self._do(
            f"{option}nexthop {action} {words}",
            lambda: self.paper.add_nexthop(nexthop, ACTIONS[action]),
        )

    def delete_nexthop(self, number: int) -> bool:
        return self._do(f"nexthop delete id {number}", lambda: self.paper.delete_nexthop(number))

    # Comparing.

    def _do(self, words: str, operation: Callable[[], list[Record]]) -> bool:
        refusal = refused = ""
        expected: list[Record] = []
        if words:
            try:
                self.real.here.ip(words)
            except AssertionError as error:
                refusal = str(error)
        try:
            expected = operation()
        except Refused as error:
            refused = str(error)
        if words and bool(refusal) != bool(refused):
            said = f"kernel: {refusal or 'done'}; on paper: {refused or 'done'}"
            pytest.fail(f"{words}: {said}", pytrace=False)
        self.compare(words, expected)
        return not refused

    def compare(self, what: str, expected: list[Record]) -> None:
        """The messages of the operation, then the states."""
        self.real.settle_links()
        wanted, found = self._wait(expected, SECONDS)
        check_equal(in_order(wanted), in_order(found), f"messages of: {what}")
        self._compare_states(what)

    def compare_sorted(self, what: str, expected: list[Record], seconds: float) -> None:
        """The same where several timers run out at about the same time."""
        wanted, found = self._wait(expected, seconds)
        check_equal(sorted(wanted), sorted(found), f"messages of: {what}")
        self._compare_states(what)

    def _wait(self, expected: list[Record], seconds: float) -> tuple[list[str], list[str]]:
        wanted = self._comparable("paper", expected)
        found = self._comparable("real", self.real.messages())
        deadline = deadline_after(seconds)
        while len(found) < len(wanted) and self.real.wait(left(deadline)):
            found += self._comparable("real", self.real.messages())
        return wanted, found

    def _compare_states(self, what: str) -> None:
        for scope in Scope:
            expected_state = state_of(scope, self.paper.dump(scope))
            real_state = state_of(scope, self.real.dump(scope))
            check_equal(expected_state, real_state, f"{scope.name} after: {what}")

    def _comparable(self, side: str, records: list[Record]) -> list[str]:
        """Without what says nothing new about a link."""
        known = self._known[side]
        found = []
        for record in records:
            entry = shown(record.payload)
            if isinstance(record.payload, Link):
                ifindex = record.payload.ifindex
                if record.header.op is Op.NEW and known.get(ifindex) == entry:
                    continue
                known[ifindex] = entry
            flags = record.header.nl_flags & (NLM_F_REPLACE | NLM_F_APPEND)
            how = f" flags {flags:#x}" if flags and isinstance(record.payload, Route) else ""
            found.append(f"{record.header.op.name} {entry}{how}")
        return found


def shown(payload: Any) -> str:
    """What the tracker goes by, in one line."""
    if isinstance(payload, Link):
        live = payload.flags & (IFF_UP | IFF_LOWER_UP)
        words = (payload.ifindex, payload.name, f"{live:#x}", "master", payload.master)
        return " ".join(map(str, ("link", *words, payload.kind)))
    if isinstance(payload, Addr):
        values = payload._replace(cstamp=0, valid=0, preferred=0, local=b"", peer=b"")
        own = f"{text(payload.local)} peer {text(payload.peer) if payload.peer else None}"
        return f"address {own} {tuple(values)}"
    if isinstance(payload, Nexthop):
        return f"nexthop {payload._replace(flags=payload.flags & RTNH_F_ONLINK)}"
    legs = [_leg(leg) for leg in payload.legs]
    if payload.family == AF_INET6:
        legs.sort()
    values = payload._replace(legs=(), rtm_flags=0, expires=bool(payload.expires))
    return f"{_ROUTE[payload.family]} {' '.join(map(str, values))} {', '.join(legs)}"


_ROUTE = {AF_INET: "route4", AF_INET6: "route6"}


def _leg(leg: Leg) -> str:
    via = f" via {text(leg.gw)}" if leg.gw else ""
    onlink = " onlink" if leg.flags & RTNH_F_ONLINK else ""
    return f"dev {leg.oif}{via} weight {leg.weight}{onlink}"


def in_order(found: list[str]) -> list[str]:
    """Messages about IPv6 routes that follow each other come in the order of a tree walk."""
    ordered: list[str] = []
    run: list[str] = []
    for entry in [*found, ""]:
        if " route6 " in entry:
            run.append(entry)
            continue
        ordered += sorted(run)
        run = []
        ordered += [entry] if entry else []
    return ordered


def state_of(scope: Scope, records: list[Record]) -> list[str]:
    """A dump: in order where the order means something."""
    payloads = [record.payload for record in records]
    if scope is Scope.ROUTE4:
        payloads.sort(key=lambda p: repr(route_key(p)) if isinstance(p, Route) else "")
    elif scope in (Scope.ADDR4, Scope.ADDR6):
        payloads.sort(key=lambda p: p.ifindex if isinstance(p, Addr) else 0)
    else:
        return sorted(map(shown, payloads))
    return list(map(shown, payloads))


def check_equal(paper: list[str], real: list[str], what: str) -> None:
    if paper != real:
        lines = "\n".join(difflib.ndiff(paper, real))
        pytest.fail(f"{what}; - only on paper, + only by the kernel:\n{lines}", pytrace=False)
