"""A TOML file to a configuration; every key is optional, an unknown one is refused.

A wrong file raises ConfigError with one line: file, key, value, what is allowed.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from tracker import values
from tracker.address import family_of
from tracker.config import Config, Select, kernel_hostname
from tracker.errors import ConfigError
from tracker.model import FAMILIES, NANOSECONDS, TARGETS_MAX
from tracker.nodeip.arguments import NodeIPError, parse_annotation, parse_argument
from tracker.policy import modes
from tracker.policy.compile import TABLE_MAIN
from tracker.printable import QUOTED_MOST, printable, quoted

AUDIT_LEAST = NANOSECONDS
MOST_BYTES = 1 << 20
_TOML_MOST = 200
"""Characters of what the parser of TOML says; keys in it may be of any length."""


class _Key(NamedTuple):
    parse: Callable[[Any], Any]
    allowed: str


class _Tables(NamedTuple):
    """Any number of tables with the same keys, each under a name of its own."""

    schema: dict[str, Any]
    most: int


def _family_list(value: object) -> tuple[str, ...]:
    families = values.list_of(values.one_of(*FAMILIES))(value)
    if not families:
        raise ValueError
    return families


_NETWORKS = _Key(values.list_of(values.network), values.NETWORKS)
_ADDRESSES = _Key(values.list_of(values.address), values.ADDRESSES)
_UNICAST = _Key(values.list_of(values.unicast), values.ADDRESSES)
_FALLBACK = '"auto", "none", "physical" or "interface:NAME"'
_MODE = '"default-route", "interface", "cidr", "route-to", "dns" or "static"'
_STATIC = "one address, or one of each family, as the kubelet takes --node-ip"
_EXTRA_MOST = 64
_NAMED_MOST = 15
"""Engines have room for 16 selections, and one of them is the node's."""
_NAME = "1 to 63 of a-z, 0-9 and -, neither first nor last a -"
_TABLE = '"main", the name of a table in /etc/iproute2/rt_tables, or a number but 255 (local)'
_GLOBS = 'a list of interface names or globs such as ["wg*", "!docker0"], each of 1 to 127 bytes'
_PLAIN_GLOBS = (
    'a list of interface names or globs such as ["bond0", "eth*"], each of 1 to 127 bytes'
)
_LISTEN = 'an IP address and a port such as "127.0.0.1:9797" or "[::1]:9797", or "" for none'
_DURATION = _Key(values.duration, values.DURATION)
_DURATION_OR_NEVER = values.DURATION + ', or "never"'

_SELECT: dict[str, Any] = {
    "mode": _Key(values.one_of(*modes.MODES), _MODE),
    "interfaces": _Key(values.list_of(values.interface_pattern), _PLAIN_GLOBS),
    "cidrs": _NETWORKS,
    "route_to": _UNICAST,
    "hint": _ADDRESSES,
    "static": _Key(values.text_or_texts, values.ADDRESSES),
    "table": _Key(values.routing_table, _TABLE),
    "vrf": _Key(values.interface_name, 'the name of a VRF, or "" for none'),
    "fallback": _Key(values.fallback, _FALLBACK),
    "extra": _Key(values.whole_number(0, _EXTRA_MOST), f"a whole number from 0 to {_EXTRA_MOST}"),
}

# The keys of the file, in the order in which messages name them.
_SCHEMA: dict[str, Any] = {
    "state": _Key(values.path_or_off, 'an absolute path, or "" for no memory'),
    "hostname": _Key(values.host_name, values.HOST_NAME),
    "families": _Key(_family_list, 'a list of "ipv4" and "ipv6", at least one'),
    "require": _Key(values.list_of(values.one_of(*FAMILIES)), 'a list of "ipv4" and "ipv6"'),
    "select": _SELECT,
    "selections": _Tables(_SELECT, _NAMED_MOST),
    "exclude": {
        "interfaces": _Key(values.list_of(values.exclusion), _GLOBS),
        "addresses": _ADDRESSES,
        "cidrs": _NETWORKS,
    },
    "networks": {
        "nodes": _NETWORKS,
        "pods": _NETWORKS,
        "services": _NETWORKS,
        "internal": _NETWORKS,
        "public": _NETWORKS,
        "external": _UNICAST,
        "nat64": _Key(values.list_of(values.nat64_prefix), values.NAT64),
        "others": _Key(values.networks_by_name, values.OTHERS),
    },
    "check": {
        "peers": _Key(values.list_of(values.peer), values.PEERS),
        "ipv6": _Key(values.one_of("", "global", "ula"), '"global", "ula", or "" for either'),
        "node_mask": _Key(values.node_masks, values.NODE_MASK),
    },
    "stability": {
        "settle": _DURATION,
        "settle_max": _DURATION,
        "hold": _DURATION,
        "failback": _Key(values.duration_or_none, _DURATION_OR_NEVER),
    },
    "publish": {
        "files": {
            "directory": _Key(values.absolute_path, "an absolute path"),
        },
    },
    "metrics": {"listen": _Key(values.listen, _LISTEN)},
    "capture": {
        "source": _Key(
            values.one_of("auto", "bpf", "netlink", "pyroute2"),
            '"auto", "bpf", "netlink" or "pyroute2"',
        ),
        "loader": _Key(values.one_of("auto", "libbpf", "bcc"), '"auto", "libbpf" or "bcc"'),
        "ring": _Key(values.ring_size, values.RING),
        "trace": _Key(values.one_of("auto", "off"), '"auto" or "off"'),
        "audit": _Key(values.duration_or_zero, '"1s" or more, or "never"'),
    },
}


def read(path: str) -> Config:
    """The configuration in `path`. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise ConfigError(f"{path}: too large; allowed is TOML of {MOST_BYTES >> 20} MiB")
    return parse(raw, path)


def parse(raw: bytes, path: str) -> Config:
    """The configuration in `raw`; `path` is what messages call it. Raises ConfigError."""
    try:
        data = tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; allowed is TOML") from None
    except tomllib.TOMLDecodeError as error:
        line = quoted(" ".join(map(quoted, str(error).split())), _TOML_MOST)
        raise ConfigError(f"{path}: is not TOML: {line}") from None
    except RecursionError:
        raise ConfigError(f"{path}: is not TOML: nested too deeply") from None
    except ValueError:  # Python refuses to read a number of thousands of digits
        raise ConfigError(f"{path}: is not TOML: a number is too long") from None
    return from_data(data, path)


def from_data(data: dict[str, Any], path: str) -> Config:
    """The configuration in what TOML, or a case file, holds. Raises ConfigError."""
    reader = _Reader(path)
    config = _build(reader, data, reader.table(data, _SCHEMA, ""), path)
    _check(reader, data, config)
    return config


def _build(reader: _Reader, data: dict[str, Any], found: dict[str, Any], path: str) -> Config:
    """A configuration of what the file says and defaults for the rest."""

    def group(name: str) -> dict[str, Any]:
        start = f"{name}."
        return {key.removeprefix(start): v for key, v in found.items() if key.startswith(start)}

    config = Config(found.get("hostname") or kernel_hostname(), path)
    networks = config.networks._replace(**group("networks"))
    selecting = {key: _Selecting(reader, key, table, group(key)) for key, table in _tables(data)}
    chosen = {key: each.read() for key, each in selecting.items()}
    select = chosen.pop("select", config.select)
    return config._replace(
        state=found.get("state", config.state),
        families=found.get("families") or _families_of(select, networks.services),
        families_written="families" in found or select.mode == modes.STATIC,
        require=found.get("require", config.require),
        select=select,
        selections={key.removeprefix("selections."): each for key, each in chosen.items()},
        exclude=config.exclude._replace(**group("exclude")),
        networks=networks,
        check=config.check._replace(**group("check")),
        stability=config.stability._replace(**group("stability")),
        files=found.get("publish.files.directory", config.files),
        metrics=found.get("metrics.listen", config.metrics),
        capture=config.capture._replace(**group("capture")),
        warnings=tuple(text for each in selecting.values() for text in each.warnings),
    )


def _tables(data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The tables that select, by the key that messages call them by."""
    named = data.get("selections", {})
    own = [("select", data["select"])] if "select" in data else []
    return own + [(f"selections.{name}", table) for name, table in named.items()]


def _families_of(select: Select, services: tuple[str, ...]) -> tuple[str, ...]:
    """Where nobody wrote them: those of the addresses of mode static, as the kubelet takes them
    from --node-ip; else those of the service networks, in their order; else both.
    """
    if select.mode == modes.STATIC:
        return tuple(dict.fromkeys(map(family_of, select.static)))
    return tuple(dict.fromkeys(map(family_of, services))) or FAMILIES


def _check(reader: _Reader, data: dict[str, Any], config: Config) -> None:
    """What is right by itself and wrong together."""
    settle, settle_max = config.stability.settle, config.stability.settle_max
    if settle > settle_max:
        reader.fail(
            "stability.settle",
            data["stability"].get("settle", "1s"),
            f"a duration not longer than settle_max ({settle_max / NANOSECONDS:g}s)",
        )
    if 0 < config.capture.audit < AUDIT_LEAST:
        reader.fail("capture.audit", data["capture"]["audit"], '"1s" or more, or "never"')
    for family in config.require:
        if family not in config.families:
            wanted = ", ".join(config.families)
            reader.fail("require", data["require"], f"only what is wanted: {wanted}")
    for network in config.networks.public:
        if network in config.networks.internal:
            twice = f"{values.shown(network)} is in networks.internal, too"
            reader.fail("networks.public", data["networks"]["public"], "each in one of them", twice)
    for peer in config.check.peers:
        name, named, _ = peer.rpartition("=")
        if named and name not in config.selections:
            known = ", ".join(config.selections) or "none is configured"
            what = f'there is no selection "{name}"'
            reader.fail("check.peers", data["check"]["peers"], f"NAME=ADDRESS of {known}", what)
    targets: set[str] = set()
    for key, table in _tables(data):
        name = key.removeprefix("selections.")
        select = config.select if key == "select" else config.selections[name]
        if select.mode == modes.STATIC and not set(map(family_of, select.static)) <= set(
            config.families
        ):
            wanted = ", ".join(config.families)
            reader.fail(f"{key}.static", table["static"], f"addresses of wanted families: {wanted}")
        targets.update(select.route_to)
        if len(targets) > TARGETS_MAX:
            most = f"at most {TARGETS_MAX} different ones, all selections together"
            reader.fail(f"{key}.route_to", table["route_to"], most)


class _Selecting:
    """What a table that selects says, by the rules of its mode."""

    def __init__(
        self, reader: _Reader, key: str, data: dict[str, Any], found: dict[str, Any]
    ) -> None:
        """`key` is what messages call the table, `data` what the file has in it."""
        self._reader = reader
        self._key = key
        self._data = data
        self._select = Select(**{**found, "static": ()})
        self.warnings: list[str] = []

    def read(self) -> Select:
        """The whole of it. Raises ConfigError."""
        select = self._select
        static = self._static() if "static" in self._data else ()
        self._check_lists(select)
        if select.vrf and select.table != TABLE_MAIN:
            self._fail("vrf", "a VRF or a table, not both")
        by_itself = select.mode == modes.DEFAULT_ROUTE and not select.hint
        if by_itself and select.fallback == modes.DEFAULT_ROUTE:
            self._fail("fallback", _FALLBACK)
        return select._replace(static=static)

    def _check_lists(self, select: Select) -> None:
        """Each mode needs its own list, and has no use for those of others."""
        for mode, name in modes.LIST_OF.items():
            own = mode == select.mode
            if not own and name != "static" and getattr(select, name):
                self._fail(name, f'[] in mode "{select.mode}": it is the list of mode "{mode}"')
            hinted = mode == modes.ROUTE_TO and select.hint
            if own and not self._data.get(name) and not hinted:
                beside = " or hint" if mode == modes.ROUTE_TO else ""
                self._fail("mode", f"only with a list: {self._key}.{name}{beside} is empty")

    def _static(self) -> tuple[str, ...]:
        value = self._data["static"]
        if self._select.mode != modes.STATIC:
            listed: tuple[str, ...] = self._reader.value(f"{self._key}.static", value, _ADDRESSES)
            return listed
        try:
            if isinstance(value, str):
                return self._argument(value)
            return self._annotation(value)
        except NodeIPError as error:
            what, _, allowed = str(error).partition("; allowed: ")
            self._fail("static", allowed, f"rule {error.rule}: {what}")

    def _annotation(self, value: list[str]) -> tuple[str, ...]:
        """As the annotation, whose commas the list has already taken apart."""
        for item in value:
            if "," in item:
                allowed = "one address in an item"
                self._fail("static", allowed, f"rule parse: {values.shown(item)} has a comma")
        return parse_annotation(",".join(value)) if value else ()

    def _argument(self, value: str) -> tuple[str, ...]:
        """As the kubelet reads its flag: what is no address is left out, with a warning."""
        given = parse_argument(value)
        if value and not given.ips:
            self._fail("static", _STATIC, "rule parse: no IP address is in it")
        for item in given.invalid:
            what = f"{values.shown(item)} is no IP address and left out, as the kubelet does"
            self.warnings.append(f"{self._key}.static: {what}")
        return given.ips

    def _fail(self, name: str, allowed: str, detail: str = "") -> NoReturn:
        self._reader.fail(f"{self._key}.{name}", self._data.get(name), allowed, detail)


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path

    def fail(self, key: str, value: object, allowed: str, detail: str = "") -> NoReturn:
        because = f" ({printable(detail)})" if detail else ""
        raise ConfigError(
            f"{self._path}: {key} = {values.shown(value)}{because}; allowed: {allowed}"
        )

    def table(self, data: object, schema: dict[str, Any], prefix: str) -> dict[str, Any]:
        """Parsed values of the keys that the file has, by dotted key."""
        if not isinstance(data, dict):
            self.fail(prefix, data, f"a table [{prefix}]")
        dot = f"{prefix}." if prefix else ""
        found: dict[str, Any] = {}
        # The mode first: what else is wrong often follows from it.
        for name, value in sorted(data.items(), key=lambda item: item[0] != "mode"):
            entry = schema.get(name)
            if isinstance(entry, dict):
                found.update(self.table(value, entry, dot + name))
            elif isinstance(entry, _Tables):
                found.update(self._tables(value, entry, dot + name))
            elif entry is not None:
                found[dot + name] = self.value(dot + name, value, entry)
            else:
                self._unknown(dot, name, schema)
        return found

    def _tables(self, data: object, entry: _Tables, key: str) -> dict[str, Any]:
        """Tables under names; each in turn, in the order of the file."""
        if not isinstance(data, dict):
            self.fail(key, data, f"tables [{key}.NAME]")
        if len(data) > entry.most:
            self.fail(key, data, f"at most {entry.most}")
        found: dict[str, Any] = {}
        for name, table in data.items():
            try:
                values.selection_name(name)
            except ValueError:
                self.fail(f"{key}.{quoted(name)}", table, f"a name of {_NAME}")
            found.update(self.table(table, entry.schema, f"{key}.{name}"))
        return found

    def value(self, key: str, value: object, entry: _Key) -> Any:
        """The parsed value."""
        try:
            return entry.parse(value)
        except ValueError as error:
            self.fail(key, value, entry.allowed, str(error))

    def _unknown(self, dot: str, name: str, schema: dict[str, Any]) -> NoReturn:
        near = difflib.get_close_matches(name[:QUOTED_MOST], schema, 1, 0.6)
        hint = f"; the nearest is {dot}{near[0]}" if near else ""
        raise ConfigError(
            f"{self._path}: {dot}{quoted(name)}: unknown key{hint}; allowed: {', '.join(schema)}"
        )
