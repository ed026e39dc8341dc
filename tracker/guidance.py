"""Finds out what the tables of some selections depend on: the way to a destination, the addresses
of a host name, the table of a VRF.

The kernel is asked again only when the engine says that its answer may have changed; names are
resolved elsewhere (`tracker.resolve`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tracker.address import family_of, host_network
from tracker.engine.base import NEVER
from tracker.model import FAMILIES, NANOSECONDS, Grounds, Network, Vrf, joined
from tracker.policy import modes
from tracker.policy.compile import TABLE_NOWHERE
from tracker.policy.modes import Guide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracker.capture.lookup import Ways
    from tracker.engine.base import Engine
    from tracker.model import PolicyTable
    from tracker.resolve import Answer, Resolver

    Incumbents = Callable[[str], Mapping[str, str | None]]
    """The present answers of a selection, by family."""


PACE_FIRST_NS = NANOSECONDS // 10
PACE_MOST_NS = NANOSECONDS
"""Between two rounds of questions to the kernel, while its answers may change all the time."""


class Lookup(Protocol):
    """Asks for the way to an address."""

    def ways(self, target: str, vrf: str = "") -> Ways:
        """All equal ways."""


class Helpers(NamedTuple):
    """Whom to ask; None = nobody, as in a replay."""

    lookup: Lookup | None = None
    resolver: Resolver | None = None


class Remark(NamedTuple):
    """What is worth a warning about one family."""

    family: str
    text: str
    ambiguous: bool = False


class Found(NamedTuple):
    """What a list stands for now."""

    networks: tuple[Network, ...] = ()
    """In order of preference."""
    words: Mapping[Network, str] = MappingProxyType({})
    """Why an address is in the list, for example "source towards 192.0.2.1"."""
    remarks: tuple[Remark, ...] = ()


class _Round:
    """One round of questions: it ends with the first that is not answered in time, since the
    thread that decides waits for it.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.is_late = False

    def ways(self, target: str, vrf: str = "") -> Ways:
        """As of a Lookup; TimeoutError without a question once there was one."""
        if self.is_late:
            raise TimeoutError("timed out")
        try:
            return self._lookup.ways(target, vrf)
        except TimeoutError:
            self.is_late = True
            raise


class _Pace:
    """Says how often to do what is asked for again and again: at once after a quiet time, then
    less and less often.
    """

    def __init__(self) -> None:
        self.free_at = 0
        """When it is time again."""
        self._pause = PACE_FIRST_NS

    def take(self, now: int) -> None:
        """It is done now."""
        was_quiet = now >= self.free_at + self._pause
        self._pause = PACE_FIRST_NS if was_quiet else min(2 * self._pause, PACE_MOST_NS)
        self.free_at = now + self._pause


class RouteTo:
    """The source addresses towards the destinations of one selection."""

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self._last: dict[str, tuple[str, ...]] = {}
        self.inherited: dict[str, tuple[str, ...]] = {}
        """What the last run found, as far as it is known: its answer, by family."""
        self.grounds: Grounds | None = None
        """What the last answers rest on, None = nobody knows."""
        self.seconds = 0.0
        """For how long they are good, 0 = until something changes."""

    def ask(self, incumbents: Mapping[str, str | None], lookup: Lookup | None) -> Found:
        """Ask for each destination; `incumbents` are the present answers by family."""
        words: dict[Network, str] = {}
        remarks: list[Remark] = []
        first: dict[str, tuple[str, str]] = {}
        self.grounds, self.seconds = Grounds(), 0.0
        for target in self._guide.targets:
            family = family_of(target)
            # Equal ways: whichever the kernel takes for a packet, the answer stays.
            present = incumbents.get(family)
            sources = self._sources(target, remarks, lookup)
            sources.sort(key=lambda source: source != present)
            equal = f", one of {len(sources)} equal paths" if len(sources) > 1 else ""
            for source in sources:
                words.setdefault(host_network(source), f"source towards {target}{equal}")
            if sources:
                known, source = first.setdefault(family, (target, sources[0]))
                if source not in sources:
                    text = f"{target} is reached from {sources[0]}, {known} counts before it"
                    remarks.append(Remark(family, f"route-to: {text}"))
        return Found(tuple(words), words, tuple(remarks))

    def _sources(self, target: str, remarks: list[Remark], lookup: Lookup | None) -> list[str]:
        """The sources of the ways to a destination; without any those of before: to lose a path is
        no reason to change an address.
        """
        family = family_of(target)

        def remark(text: str, *, ambiguous: bool = False) -> None:
            remarks.append(Remark(family, f"route-to {target}: {text}", ambiguous))

        if lookup is None:
            remark("no kernel to ask")
            return []
        try:
            found = lookup.ways(target, self._guide.vrf)
            failure, grounds = found.failure, found.grounds
        except OSError as error:
            failure, grounds = f"the kernel cannot be asked: {error.strerror or error}", None
        self.grounds = joined(self.grounds, grounds)
        if failure:
            last = self._last.get(target, self.inherited.get(family, ()))
            remark(failure + (", what was found before stays" if last else ""))
            return list(last)
        if found.seconds:
            self.seconds = min(found.seconds, self.seconds or found.seconds)
        if found.local:
            remark("it is an address of this host")
        if text := equal_paths(found):
            remark(text, ambiguous=True)
        self._last[target] = tuple(dict.fromkeys(way.source for way in found.ways))
        return list(self._last[target])


def equal_paths(found: Ways) -> str:
    """What several equal paths leave open, "" = nothing: there is one, or the route itself names
    the source.
    """
    sources = sorted({way.source for way in found.ways})
    if len(sources) > 1:
        return f"{len(sources)} equal paths, with sources {', '.join(sources)}"
    if found.links > 1 and not found.named:
        return f"{found.links} equal paths, source {sources[0]} over each"
    return ""


class Guidance:
    """All selections that are guided."""

    def __init__(
        self,
        guides: Mapping[str, Guide],
        helpers: Helpers,
        engine: Engine,
        before: Guidance | None = None,
    ) -> None:
        """`before` had the guides of the last configuration: what it found out stays good for a
        guide that is the same.
        """
        self._guides = dict(guides)
        self._lookup = helpers.lookup
        self._resolver = helpers.resolver
        self._engine = engine
        self._found: dict[str, Found] = {}
        self._inherited: dict[str, tuple[str, ...]] = {}
        self._routes = {
            name: RouteTo(guide)
            for name, guide in guides.items()
            if guide.mode == modes.ROUTE_TO and guide.targets
        }
        self._named = [name for name, guide in guides.items() if guide.host]
        self._scoped = {name: guide.vrf for name, guide in guides.items() if guide.vrf}
        self.idle = not (self._routes or self._named or self._scoped)
        """Whether nothing depends on what is found out."""
        self._lookups = -1
        self._vrfs: tuple[Vrf, ...] = ()
        """Those that lookups were within."""
        self._pace = _Pace()
        self._ask_at = NEVER
        self._ends_at = NEVER
        """When a route of the last answers ends by itself."""
        self._answer: Answer | None = None
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: Guidance) -> None:
        if self._resolver is before._resolver:
            self._answer = before._answer
        for name, guide in self._guides.items():
            if guide._replace(extra=0) != before.guide(name)._replace(extra=0):
                continue
            if name in before._found:
                self._found[name] = before._found[name]
            if name in before._routes:
                self._routes[name] = before._routes[name]
        if self._answer is not None and self._resolver is not None:
            for name in self._named:
                kept = _resolved(self._resolver.name, "", self._answer.addresses)
                self._found.setdefault(name, kept)

    def inherit(self, name: str, answers: Mapping[str, str | None]) -> None:
        """What the last run answered, by family: that stays while nothing can be found out."""
        found: dict[str, tuple[str, ...]] = {
            family: (address,) for family, address in answers.items() if address is not None
        }
        self._inherited[name] = tuple(address for each in found.values() for address in each)
        if name in self._routes:
            self._routes[name].inherited = found

    @property
    def targets(self) -> tuple[Network, ...]:
        """All destinations, for Engine.set_targets()."""
        guides = (self._guides[name] for name in self._routes)
        return tuple(
            dict.fromkeys(host_network(target) for guide in guides for target in guide.targets)
        )

    @property
    def pending(self) -> frozenset[str]:
        """Selections whose first answer, or its failure, is still to come."""
        waits = self._resolver is not None and self._resolver.pending
        return frozenset(self._named) if waits else frozenset()

    @property
    def deadline(self) -> int:
        """CLOCK_BOOTTIME of the next thing that is due by itself."""
        if self._named and self._resolver is not None:
            return min(self._ask_at, self._resolver.deadline)
        return self._ask_at

    def guide(self, name: str) -> Guide:
        """What was asked for."""
        return self._guides.get(name, _UNGUIDED)

    def found(self, name: str) -> Found:
        """What a selection's list stands for now."""
        return self._found.get(name, _NOTHING)

    def step(
        self, now: int, policies: Mapping[str, PolicyTable], incumbents: Incumbents
    ) -> dict[str, PolicyTable]:
        """Ask whatever has to be asked; the tables that became other ones."""
        if self.idle:
            return {}
        if self._routes:
            self._ask(now, incumbents)
        if self._named:
            self._resolve(now, incumbents)
        changed = {}
        for name, policy in policies.items():
            wanted = policy
            if name in self._found:
                wanted = wanted._replace(mode_networks=self._found[name].networks)
            if name in self._scoped:
                table = self._engine.vrf(self._scoped[name]).table
                wanted = wanted._replace(table=table or TABLE_NOWHERE)
            if wanted is not policy and wanted != policy:
                changed[name] = wanted
        return changed

    def again(self) -> None:
        """Ask everything anew at the next step."""
        self._lookups = -1
        self._pace = _Pace()
        if self._resolver is not None:
            self._resolver.again()

    def _ask(self, now: int, incumbents: Incumbents) -> None:
        """Ask the kernel, if its answers may be others and it was not asked just now."""
        lookups = self._engine.lookups()
        scopes = (self._scoped[name] for name in self._routes if name in self._scoped)
        vrfs = tuple(map(self._engine.vrf, scopes))
        self._ask_at = self._ends_at
        if lookups == self._lookups and vrfs == self._vrfs and now < self._ends_at:
            return
        if now < self._pace.free_at:
            self._ask_at = self._pace.free_at
            return
        self._pace.take(now)
        asking = _Round(self._lookup) if self._lookup is not None else None
        for name, route in self._routes.items():
            self._found[name] = route.ask(incumbents(name), asking)
        self._lookups, self._vrfs = lookups, vrfs
        self._rest(now)
        if asking is not None and asking.is_late:
            self._lookups = -1
            self._ask_at = self._pace.free_at

    def _rest(self, now: int) -> None:
        """Wait for what the answers rest on to change, or to end."""
        grounds: Grounds | None = Grounds()
        for route in self._routes.values():
            grounds = joined(grounds, route.grounds)
        self._engine.set_grounds(grounds)
        ends = [route.seconds for route in self._routes.values() if route.seconds]
        # The kernel counts in 1/100 s, and is asked behind the end.
        self._ends_at = now + int((min(ends) + 0.02) * NANOSECONDS) if ends else NEVER
        self._ask_at = self._ends_at

    def _resolve(self, now: int, incumbents: Incumbents) -> None:
        if self._resolver is None:
            for name in self._named:
                text = f"dns: nobody resolves {self._guides[name].host} here"
                self._found[name] = Found((), {}, _of_both(text))
            return
        answer = self._resolver.step(now)
        if answer is None:
            return
        if not answer.failure:
            self._answer = answer
        for name in self._named:
            present = tuple(filter(None, incumbents(name).values()))
            last = (
                self._answer.addresses
                if self._answer is not None
                else self._inherited.get(name, ())
            )
            self._found[name] = _resolved(self._resolver.name, answer.failure, last, present)


_UNGUIDED = Guide()
_NOTHING = Found()


def _resolved(
    host: str, failure: str, last: tuple[str, ...], present: tuple[str, ...] = ()
) -> Found:
    """The addresses of a name; where it cannot be resolved those of before.

    Servers shuffle the addresses of a name, so their order decides nothing for the present one.
    """
    addresses = sorted(last, key=lambda address: address not in present)
    words = {host_network(address): f"address of {host}" for address in addresses}
    if not failure:
        return Found(tuple(words), words)
    kept = ", what was found before stays" if addresses else ""
    return Found(tuple(words), words, _of_both(f"dns: {host}: {failure}{kept}"))


def _of_both(text: str) -> tuple[Remark, ...]:
    return tuple(Remark(family, text) for family in FAMILIES)


def configured(
    policies: Mapping[str, PolicyTable], guidance: Guidance
) -> dict[str, tuple[PolicyTable, Guide]]:
    """All that a configuration says of where to look, without what was found out."""
    return {
        name: (policy, guidance.guide(name)._replace(extra=0)) for name, policy in policies.items()
    }
