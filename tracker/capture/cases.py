"""Case files: a state at start, what happens then, and what is expected."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracker.address import parse, text
from tracker.capture import names
from tracker.capture.fields import U32, Fields
from tracker.capture.record import Op
from tracker.capture.snapshot import (
    KINDS,
    LinkNames,
    Snapshot,
    address_values,
    link_values,
    nexthop,
    read,
    route_pattern,
    route_values,
)
from tracker.capture.standin import NLM_F_APPEND, NLM_F_REPLACE
from tracker.capture.steps import (
    AddressChange,
    Checkpoint,
    DumpFailure,
    LinkChange,
    NexthopChange,
    Overrun,
    Resync,
    RouteChange,
    Silent,
    Step,
)
from tracker.model import NANOSECONDS, Scope

MODES = {"reach-hint": "route-to"}
"""Names of modes that case files call otherwise."""


class Event(NamedTuple):
    """A step and its time."""

    at_ns: int | None
    """Nanoseconds since the start had settled; None = a millisecond after the one before."""
    step: Step


class Expected(NamedTuple):
    """What holds after the last event."""

    ipv4: str | None
    ipv6: str | None
    changes: int | None
    """Changes published after the first answers; None = nothing is said."""
    behaviour: str
    """What else must hold, in words."""


class Case(NamedTuple):
    """A state and what happens to it; a snapshot is a case without events."""

    file: str
    name: str
    hostname: str
    """ "" = not said."""
    snapshot: Snapshot
    events: tuple[Event, ...]
    config: dict[str, Any]
    """In the keys of the configuration file."""
    previously_published: tuple[str, ...]
    """Addresses of the decision that the last run left behind."""
    expected: Expected | None


def read_case(fields: Fields) -> Case:
    """A case file: {"input": {...}, "expected": {...}}. Raises InputError."""
    inner = fields.values.get("input")
    if not isinstance(inner, dict):
        raise fields.error("input", "an object with links, addresses, routes")
    # Places in messages start inside "input": it holds all that is described.
    given = Fields(inner, fields.file)
    snapshot = read(given)
    config = given.nested("config")
    return Case(
        file=fields.file,
        name=fields.string("id", fields.file),
        hostname=given.string("hostname", ""),
        snapshot=snapshot,
        events=_read_events(given, snapshot),
        config=read_config(config),
        previously_published=_read_published(config),
        expected=_read_expected(fields) if "expected" in fields else None,
    )


def _read_published(config: Fields) -> tuple[str, ...]:
    """Addresses of the last run, in canonical text."""
    listed = config.strings("previously_published")
    try:
        return tuple(text(parse(entry)) for entry in listed)
    except ValueError:
        raise config.error("previously_published", "a list of IPv4 or IPv6 addresses") from None


def _read_expected(fields: Fields) -> Expected:
    expected = fields.nested("expected")
    for family, number in (("ipv4", names.FAMILIES["inet"]), ("ipv6", names.FAMILIES["inet6"])):
        if family in expected:
            expected.address(family, number)
    return Expected(
        ipv4=expected.string("ipv4", "") or None,
        ipv6=expected.string("ipv6", "") or None,
        changes=expected.integer("changes") if "changes" in expected else None,
        behaviour=expected.string("behaviour", ""),
    )


# Configuration.

_SELECT = ("interfaces", "cidrs", "route_to", "hint", "static", "table", "vrf", "fallback", "extra")
_NETWORKS = ("pods", "services", "internal", "public", "external")
_STABILITY = ("settle", "settle_max", "hold", "failback")


def read_config(fields: Fields) -> dict[str, Any]:
    """A case's `config` in the keys of the configuration file, for its parser to judge."""
    given = fields.values
    config: dict[str, Any] = {}
    select = {name: given[name] for name in _SELECT if name in fields}
    if "policy" in fields:
        policy = fields.string("policy")
        select["mode"] = MODES.get(policy, policy)
    if "interface" in fields:
        select["interfaces"] = [given["interface"]]
    sections: tuple[tuple[str, dict[str, Any]], ...] = (
        ("select", select),
        ("exclude", _read_exclude(fields)),
        ("networks", {name: given[name] for name in _NETWORKS if name in fields}),
        ("stability", {name: given[name] for name in _STABILITY if name in fields}),
    )
    config.update((name, section) for name, section in sections if section)
    config.update((name, given[name]) for name in ("families", "require") if name in fields)
    return config


def _read_exclude(fields: Fields) -> dict[str, Any]:
    """Addresses, and networks among them."""
    listed = fields.strings("exclude")
    exclude = {
        "addresses": [text for text in listed if "/" not in text],
        "cidrs": [text for text in listed if "/" in text],
    }
    return {name: texts for name, texts in exclude.items() if texts}


# Events.


def _read_events(given: Fields, snapshot: Snapshot) -> tuple[Event, ...]:
    reader = _EventReader(LinkNames({link.ifindex: link.name for link in snapshot.links}))
    events = []
    for fields in given.objects("events"):
        kind = fields.string("type")
        step = reader.read(kind, fields.nested("data"))
        if step is not None:
            at = fields.seconds("t")
            events.append(Event(None if at is None else round(at * NANOSECONDS), step))
    return tuple(events)


class _EventReader:
    """Follows the names of links while it reads, as the kernel's state would have them."""

    def __init__(self, link_names: LinkNames) -> None:
        self._names = link_names

    def read(self, kind: str, data: Fields) -> Step | None:
        """The step; None for a kind of event that nobody here listens to."""
        op = Op.DEL if kind.startswith("RTM_DEL") else Op.NEW
        match kind:
            case "RTM_NEWLINK" | "RTM_DELLINK":
                return self._link(op, data)
            case "RTM_NEWADDR" | "RTM_DELADDR":
                return AddressChange(op, address_values(data))
            case "RTM_NEWROUTE" | "RTM_DELROUTE":
                return RouteChange(op, *route_values(data, self._names), _nl_flags(data))
            case "RTM_NEWNEXTHOP" | "RTM_DELNEXTHOP":
                return NexthopChange(op, nexthop(data, self._names))
            case "KERNEL_SILENT":
                return self._silent(data)
            case "RESYNC":
                return self._resync(data)
            case "ENOBUFS":
                return Overrun(_scopes(data))
            case "DUMP_FAILED":
                times = data.integer("times", 1, U32, 1)
                return DumpFailure(_scopes(data), times, data.boolean("empty", default=False))
            case "CHECKPOINT":
                return Checkpoint()
        return None

    def _link(self, op: Op, data: Fields) -> LinkChange:
        values = link_values(data, self._names)
        ifindex = values["ifindex"]
        if op is Op.DEL:
            self._names.forget(ifindex)
            return LinkChange(op, values)
        stale = "name" in values and not self._names.rename(values["name"], ifindex)
        return LinkChange(op, values, stale)

    def _silent(self, data: Fields) -> Silent:
        routes = tuple(
            route_pattern(*route_values(fields, self._names))
            for fields in data.objects("removed_routes")
        )
        addresses = [
            AddressChange(Op.DEL, address_values(fields))
            for fields in data.objects("removed_addresses")
        ]
        nexthops = [
            NexthopChange(Op.DEL, nexthop(fields, self._names))
            for fields in data.objects("removed_nexthops")
        ]
        return Silent(routes, (*addresses, *nexthops))

    def _resync(self, data: Fields) -> Resync:
        kinds = tuple(kind for kind in KINDS if kind in data)
        snapshot = read(data, required=False, link_names=self._names)
        order = data.string("order", "")
        if order not in ("", "shuffled"):
            raise data.error("order", "shuffled")
        if "links" in kinds:
            self._names = LinkNames({link.ifindex: link.name for link in snapshot.links})
        return Resync(kinds, snapshot, order == "shuffled")


def _nl_flags(data: Fields) -> int:
    """`replace` and `append`, as `ip route` has them."""
    replace = NLM_F_REPLACE if data.boolean("replace", default=False) else 0
    return replace | (NLM_F_APPEND if data.boolean("append", default=False) else 0)


def _scopes(data: Fields) -> tuple[Scope, ...]:
    """Scopes that are named; all if none is."""
    known = {scope.name.lower(): scope for scope in Scope}
    texts = data.strings("scopes")
    if any(text not in known for text in texts):
        raise data.error("scopes", f"a list of {', '.join(known)}")
    return tuple(known[text] for text in texts) or tuple(Scope)
