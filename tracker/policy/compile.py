"""What people configure becomes the table that the engines run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tracker.address import host_network, parse_network
from tracker.errors import ConfigError
from tracker.model import FAMILIES, PATTERN_MOST, Fallback, Mode, Network, PolicyTable
from tracker.policy import modes
from tracker.policy.criteria import DEFAULT_ORDER, DISPLACING
from tracker.policy.defaults import EXCLUDED_KINDS, EXCLUDED_NAMES
from tracker.policy.patterns import is_literal, is_pattern

T = TypeVar("T")

TABLE_MAIN = 254
TABLE_LOCAL = 255
"""Its routes are the host's own addresses."""
TABLE_MOST = 0xFFFFFFFF
TABLE_NOWHERE = TABLE_MOST
"""Stands for the table of a VRF that is not there: nothing is in it."""

_INTERFACE = "interface:"
_FALLBACKS = {
    "none": Fallback.NONE,
    "auto": Fallback.AUTO,
    "physical": Fallback.PHYSICAL,
}


def policy(
    mode: str,
    *,
    families: Iterable[str],
    interfaces: Iterable[str] = (),
    cidrs: Iterable[str] = (),
    static: Iterable[str] = (),
    hint: Iterable[str] = (),
    fallback: str = "auto",
    **rest: Any,
) -> PolicyTable:
    """The policy of any mode (see `tracker.policy.modes`); `rest` as in default_route_policy.

    `interfaces` are the globs of mode interface, `cidrs` the networks of mode cidr, in order of
    preference. `static` are the addresses of mode static; in any other mode they are preferred
    among its candidates. What modes route-to and dns take is found out later
    (Engine.set_mode_networks). `hint` narrows every mode to the subnets that hold one of them.

    `fallback` may also be "default-route", but in that mode. Raises ConfigError.
    """
    hints = _unique(_each("hint", hint, host_network))
    static = tuple(static)
    only = modes.autodetected_family(static) if mode == modes.STATIC else ""
    if only:
        mode, families, static = modes.DEFAULT_ROUTE, (only,), ()
    names: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    if mode == modes.INTERFACE:
        names = _unique(_pattern("interfaces", name) for name in interfaces)
    elif mode == modes.CIDR:
        networks = _unique(_each("cidrs", cidrs, parse_network))
    elif mode == modes.STATIC:
        networks, static = _unique(_each("static", static, host_network)), ()
    fallback = modes.fallback_of(mode, fallback, hinted=bool(hints))
    by_route = fallback == modes.DEFAULT_ROUTE
    table = default_route_policy(
        families=families, static=static, fallback="none" if by_route else fallback, **rest
    )
    return table._replace(
        mode=Mode.DEFAULT_ROUTE if mode == modes.DEFAULT_ROUTE else Mode.LIST,
        mode_names=names,
        mode_networks=networks,
        hints=hints,
        fallback=Fallback.DEFAULT_ROUTE if by_route else table.fallback,
        keep_names=(*table.keep_names, *_kept(mode, names, fallback)),
    )


def _kept(mode: str, names: tuple[str, ...], fallback: str) -> tuple[str, ...]:
    """Whoever names an interface, or an address, means it: the built-in exclusions are for
    addresses that come by themselves."""
    if mode == modes.STATIC:
        return ("*",) if fallback == "none" else ()
    return tuple(name for name in names if is_literal(name))


def default_route_policy(
    *,
    families: Iterable[str],
    table: int = TABLE_MAIN,
    fallback: str = "auto",
    exclude_interfaces: Iterable[str] = (),
    exclude_addresses: Iterable[str] = (),
    exclude_cidrs: Iterable[str] = (),
    pods: Iterable[str] = (),
    services: Iterable[str] = (),
    internal: Iterable[str] = (),
    static: Iterable[str] = (),
) -> PolicyTable:
    """The policy of mode default-route.

    `families` are "ipv4" and "ipv6"; `table` is the routing table of the default routes;
    `fallback` is "none", "auto", "physical" or "interface:NAME" with a glob. Interfaces to
    exclude are globs beside the built-in ones; "!" in front keeps what it matches. Networks of
    pods and services are excluded like `exclude_cidrs`.

    Raises ConfigError with one line that names the value and what is allowed.
    """
    kind, fallback_name = _fallback(fallback)
    exclude, keep = _interfaces(exclude_interfaces)
    networks = [
        *_each("exclude.addresses", exclude_addresses, host_network),
        *_each("exclude.cidrs", exclude_cidrs, parse_network),
        *_each("networks.pods", pods, parse_network),
        *_each("networks.services", services, parse_network),
    ]
    return PolicyTable(
        families=_families(families),
        table=_table(table),
        criteria=DEFAULT_ORDER,
        displacing=DISPLACING,
        fallback=kind,
        fallback_name=fallback_name,
        exclude_names=(*(name for name in EXCLUDED_NAMES if name not in keep), *exclude),
        keep_names=keep,
        exclude_kinds=EXCLUDED_KINDS,
        exclude=_unique(networks),
        statics=_unique(_each("select.static", static, host_network)),
        internal=_unique(_each("networks.internal", internal, parse_network)),
    )


def _families(families: Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(families)
    if not wanted or not set(wanted) <= set(FAMILIES) or len(set(wanted)) != len(wanted):
        raise ConfigError(f"families {list(wanted)}: allowed: {', '.join(FAMILIES)}, each once")
    return wanted


def _table(table: int) -> int:
    if not 0 < table <= TABLE_MOST or table == TABLE_LOCAL:
        raise ConfigError(f"table {table}: allowed: 1 to {TABLE_MOST} but {TABLE_LOCAL} (local)")
    return table


def _fallback(fallback: str) -> tuple[Fallback, str]:
    if fallback in _FALLBACKS:
        return _FALLBACKS[fallback], ""
    name = fallback.removeprefix(_INTERFACE)
    if name and name != fallback:
        return Fallback.INTERFACE, _pattern("fallback", name)
    raise ConfigError(f'fallback "{fallback}": allowed: {", ".join(_FALLBACKS)}, interface:NAME')


def _interfaces(patterns: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Globs to exclude and globs to keep."""
    exclude: list[str] = []
    keep: list[str] = []
    for pattern in patterns:
        name = pattern.removeprefix("!")
        (exclude if name == pattern else keep).append(_pattern("exclude.interfaces", name))
    return _unique(exclude), _unique(keep)


def _pattern(key: str, pattern: str) -> str:
    if not is_pattern(pattern):
        allowed = f'a name or glob of 1 to {PATTERN_MOST} bytes such as "eth*" or "eth[!0]"'
        raise ConfigError(f'{key} "{pattern}": allowed: {allowed}')
    return pattern


def _each(key: str, values: Iterable[str], parse: Callable[[str], Network]) -> list[Network]:
    """Each value parsed; the parser's message already names it."""
    networks = []
    for value in values:
        try:
            networks.append(parse(value))
        except ValueError as error:
            kind = "IP addresses" if parse is host_network else "networks such as 10.0.0.0/8"
            raise ConfigError(f"{key}: {error}; allowed: {kind}") from None
    return networks


def _unique(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))
