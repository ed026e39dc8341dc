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
from tracker.config import Config, kernel_hostname
from tracker.errors import ConfigError
from tracker.model import FAMILIES, NANOSECONDS
from tracker.printable import printable

AUDIT_LEAST = NANOSECONDS
MOST_BYTES = 1 << 20


class _Key(NamedTuple):
    parse: Callable[[Any], Any]
    allowed: str


def _later(default: object, allowed: str) -> _Key:
    """A key whose only value, so far, is its default: what it tunes is not in this release."""

    def take(value: object) -> None:
        if value != default or type(value) is not type(default):
            raise ValueError

    return _Key(take, f"in this release only {allowed}")


def _family_list(value: object) -> tuple[str, ...]:
    families = values.list_of(values.one_of(*FAMILIES))(value)
    if not families:
        raise ValueError
    return families


def _empty_table(value: object) -> None:
    if value != {}:
        raise ValueError


_OTHER_MODE = '[]: this key belongs to a mode other than "default-route"'
_NETWORKS = _Key(values.list_of(values.network), values.NETWORKS)
_ADDRESSES = _Key(values.list_of(values.address), values.ADDRESSES)
_FALLBACK = '"auto", "none", "physical" or "interface:NAME"'
_TABLE = '"main", the name of a table in /etc/iproute2/rt_tables, or a number but 255 (local)'
_GLOBS = 'a list of interface names or globs such as ["wg*", "!docker0"], each of 1 to 127 bytes'
_LISTEN = 'an IP address and a port such as "127.0.0.1:9797" or "[::1]:9797", or "" for none'
_DURATION = _Key(values.duration, values.DURATION)
_DURATION_OR_NEVER = values.DURATION + ', or "never"'

# The keys of the file, in the order in which messages name them.
_SCHEMA: dict[str, Any] = {
    "state": _Key(values.path_or_off, 'an absolute path, or "" for no memory'),
    "hostname": _Key(values.host_name, 'a host name, or "" for the kernel\'s'),
    "families": _Key(_family_list, 'a list of "ipv4" and "ipv6", at least one'),
    "require": _Key(values.list_of(values.one_of(*FAMILIES)), 'a list of "ipv4" and "ipv6"'),
    "select": {
        "mode": _later("default-route", '"default-route"'),
        "interfaces": _later([], _OTHER_MODE),
        "cidrs": _later([], _OTHER_MODE),
        "route_to": _later([], _OTHER_MODE),
        "hint": _later([], _OTHER_MODE),
        "static": _ADDRESSES,
        "table": _Key(values.routing_table, _TABLE),
        "vrf": _later("", '"": name the table of the VRF in select.table'),
        "fallback": _Key(values.fallback, _FALLBACK),
        "extra": _later(0, "0: one address per family"),
    },
    "selections": _Key(
        _empty_table, "in this release only [select]: there are no named selections yet"
    ),
    "exclude": {
        "interfaces": _Key(values.list_of(values.exclusion), _GLOBS),
        "addresses": _ADDRESSES,
        "cidrs": _NETWORKS,
    },
    "networks": {
        "pods": _NETWORKS,
        "services": _NETWORKS,
        "internal": _NETWORKS,
        "public": _NETWORKS,
        "external": _ADDRESSES,
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
        "audit": _Key(values.duration_or_zero, _DURATION_OR_NEVER),
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
        line = printable(" ".join(str(error).split()))
        raise ConfigError(f"{path}: is not TOML: {line}") from None
    except RecursionError:
        raise ConfigError(f"{path}: is not TOML: nested too deeply") from None
    except ValueError:  # Python refuses to read a number of thousands of digits
        raise ConfigError(f"{path}: is not TOML: a number is too long") from None
    return from_data(data, path)


def from_data(data: dict[str, Any], path: str) -> Config:
    """The configuration in what TOML, or a case file, holds. Raises ConfigError."""
    reader = _Reader(path)
    config = _build(reader.table(data, _SCHEMA, ""), path)
    _check(reader, data, config)
    return config


def _build(found: dict[str, Any], path: str) -> Config:
    """A configuration of what the file says and defaults for the rest."""

    def group(name: str) -> dict[str, Any]:
        start = f"{name}."
        return {key.removeprefix(start): v for key, v in found.items() if key.startswith(start)}

    config = Config(found.get("hostname") or kernel_hostname(), path)
    select = {name: v for name, v in group("select").items() if name in config.select._fields}
    capture = {name: v for name, v in group("capture").items() if name in config.capture._fields}
    networks = config.networks._replace(**group("networks"))
    return config._replace(
        state=found.get("state", config.state),
        families=found.get("families") or _families_of(networks.services),
        families_written="families" in found,
        require=found.get("require", config.require),
        select=config.select._replace(**select),
        exclude=config.exclude._replace(**group("exclude")),
        networks=networks,
        stability=config.stability._replace(**group("stability")),
        files=found.get("publish.files.directory", config.files),
        metrics=found.get("metrics.listen", config.metrics),
        capture=config.capture._replace(**capture),
    )


def _families_of(services: tuple[str, ...]) -> tuple[str, ...]:
    """The families of the service networks, in their order; both if there are none."""
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
            elif entry is not None:
                found[dot + name] = self._value(dot + name, value, entry)
            else:
                self._unknown(dot, name, schema)
        return found

    def _value(self, key: str, value: object, entry: _Key) -> object:
        try:
            return entry.parse(value)
        except ValueError as error:
            self.fail(key, value, entry.allowed, str(error))

    def _unknown(self, dot: str, name: str, schema: dict[str, Any]) -> NoReturn:
        near = difflib.get_close_matches(name, schema, 1, 0.6)
        hint = f"; the nearest is {dot}{near[0]}" if near else ""
        raise ConfigError(
            f"{self._path}: {printable(dot + name)}: unknown key{hint}; "
            f"allowed: {', '.join(schema)}"
        )
