"""TOML to a validated, immutable configuration; every key is optional.

A wrong file raises ConfigError with one line: file, key, value, what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from tracker import values
from tracker.address import family_of
from tracker.decision import Stability
from tracker.errors import ConfigError
from tracker.model import FAMILIES, NANOSECONDS, Fallback
from tracker.values import Listen

DEFAULT_PATH = "/etc/addrtracker.toml"
"""Read when no --config is given, if it is there."""


class Select(NamedTuple):
    """How the node's primary addresses are selected (mode default-route)."""

    static: tuple[str, ...]
    table: int
    fallback: Fallback
    fallback_name: str
    """Glob of Fallback.INTERFACE, else ""."""


class Exclude(NamedTuple):
    """What is never a candidate, beside the built-in list of interfaces."""

    interfaces: tuple[str, ...]
    """Globs; "!" in front takes one out of the exclusions."""
    addresses: tuple[str, ...]
    cidrs: tuple[str, ...]


class Networks(NamedTuple):
    """What is known about addresses; networks in canonical text."""

    pods: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    external: tuple[str, ...] = ()
    """Addresses, not networks: they reach this node through another box."""


class Capture(NamedTuple):
    """Where changes come from."""

    source: str
    """ "auto", "netlink" or "pyroute2"."""
    audit_ns: int | None
    """Between two audits, nanoseconds; None = never."""


class Config(NamedTuple):
    """The whole configuration."""

    path: str | None
    """The file it came from; None = defaults."""
    state: str
    """Directory of the last decision; "" = no memory."""
    hostname: str
    families: tuple[str, ...]
    """Wanted families, in order."""
    families_written: bool
    """`families` stands in the file, so publishers may change number and order of families."""
    require: tuple[str, ...]
    """Families without which the node is not ready; () = at least one."""
    select: Select
    exclude: Exclude
    networks: Networks
    stability: Stability
    files: str
    """Directory of the files that are published; "" = none."""
    metrics: Listen | None
    """Where /metrics is served; None = nowhere."""
    capture: Capture


class _Key(NamedTuple):
    default: Any
    parse: Callable[[Any], Any]
    allowed: str


def _later(default: object, allowed: str) -> _Key:
    """A key whose only value, so far, is its default: what it tunes is not in this release."""

    def take(value: object) -> object:
        if value != default or type(value) is not type(default):
            raise ValueError
        return value

    return _Key(default, take, f"in this release only {allowed}")


def _family_list(value: object) -> tuple[str, ...]:
    families = values.list_of(values.one_of(*FAMILIES))(value)
    if not families:
        raise ValueError
    return families


def _empty_table(value: object) -> None:
    if value != {}:
        raise ValueError


_OTHER_MODE = '[]: this key belongs to a mode other than "default-route"'
_NO_BPF = "there is no source bpf yet"
_NETWORKS = _Key((), values.list_of(values.network), values.NETWORKS)
_ADDRESSES = _Key((), values.list_of(values.address), values.ADDRESSES)
_FALLBACK = '"auto", "none", "physical" or "interface:NAME"'
_TABLE = '"main", the name of a table in /etc/iproute2/rt_tables, or a number but 255 (local)'
_GLOBS = 'a list of interface names or globs such as ["wg*", "!docker0"], each of 1 to 63 bytes'

# The keys of the file, in the order in which messages name them.
_SCHEMA: dict[str, Any] = {
    "state": _Key(
        "/var/lib/addrtracker", values.path_or_off, 'an absolute path, or "" for no memory'
    ),
    "hostname": _Key("", values.host_name, 'a host name, or "" for the kernel\'s'),
    "families": _Key(None, _family_list, 'a list of "ipv4" and "ipv6", at least one'),
    "require": _Key((), values.list_of(values.one_of(*FAMILIES)), 'a list of "ipv4" and "ipv6"'),
    "select": {
        "mode": _later("default-route", '"default-route"'),
        "interfaces": _later([], _OTHER_MODE),
        "cidrs": _later([], _OTHER_MODE),
        "route_to": _later([], _OTHER_MODE),
        "hint": _later([], _OTHER_MODE),
        "static": _ADDRESSES,
        "table": _Key(254, values.routing_table, _TABLE),
        "vrf": _later("", '"": name the table of the VRF in select.table'),
        "fallback": _Key((Fallback.AUTO, ""), values.fallback, _FALLBACK),
        "extra": _later(0, "0: one address per family"),
    },
    "selections": _Key(
        {}, _empty_table, "in this release only [select]: there are no named selections yet"
    ),
    "exclude": {
        "interfaces": _Key((), values.list_of(values.exclusion), _GLOBS),
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
        "settle": _Key(NANOSECONDS, values.duration, values.DURATION),
        "settle_max": _Key(10 * NANOSECONDS, values.duration, values.DURATION),
        "hold": _Key(10 * NANOSECONDS, values.duration, values.DURATION),
        "failback": _Key(None, values.duration_or_never, values.DURATION_OR_NEVER),
    },
    "publish": {
        "files": {
            "directory": _Key(
                "/run/addrtracker", values.path_or_off, 'an absolute path, or "" for no files'
            ),
        },
    },
    "metrics": {
        "listen": _Key(
            Listen("127.0.0.1", 9797),
            values.listen,
            'an IP address and a port such as "127.0.0.1:9797" or "[::1]:9797", or "" for none',
        ),
    },
    "capture": {
        "source": _Key(
            "auto",
            values.one_of("auto", "netlink", "pyroute2"),
            '"auto", "netlink" or "pyroute2" in this release',
        ),
        "loader": _later("auto", f'"auto": {_NO_BPF}'),
        "ring": _later("1MiB", f'"1MiB": {_NO_BPF}'),
        "audit": _Key(60 * NANOSECONDS, values.duration_or_never, values.DURATION_OR_NEVER),
    },
}

AUDIT_LEAST = NANOSECONDS


def load(path: str | None = None) -> Config:
    """The configuration in `path`; without one the default file, or the defaults.

    Raises ConfigError.
    """
    if path is None:
        if not os.path.exists(DEFAULT_PATH):
            return _build({}, None)
        path = DEFAULT_PATH
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return parse(raw, path)


def parse(raw: bytes, path: str) -> Config:
    """The configuration in `raw`; `path` is what messages call it. Raises ConfigError."""
    import tomllib  # noqa: PLC0415 - most hosts have no file

    try:
        data = tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; allowed is TOML") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {_one_line(error)}") from None
    except RecursionError:
        raise ConfigError(f"{path}: is not TOML: nested too deeply") from None
    return _build(data, path)


def _build(data: dict[str, Any], path: str | None) -> Config:
    read = _Reader(path or "")
    found = read.table(data, _SCHEMA, "")
    stability = Stability(**{name: found[f"stability.{name}"] for name in Stability._fields})
    networks = Networks(**{name: found[f"networks.{name}"] for name in Networks._fields})
    if stability.settle > stability.settle_max:
        read.fail(
            "stability.settle",
            data.get("stability", {}).get("settle", "1s"),
            f"a duration not longer than settle_max ({stability.settle_max / NANOSECONDS:g}s)",
        )
    audit_ns = found["capture.audit"]
    if audit_ns is not None and audit_ns < AUDIT_LEAST:
        read.fail("capture.audit", data["capture"]["audit"], '"1s" or more, or "never"')
    families = found["families"] or _families_of(networks.services)
    for family in found["require"]:
        if family not in families:
            read.fail("require", data["require"], f"only what is wanted: {', '.join(families)}")
    fallback, fallback_name = found["select.fallback"]
    return Config(
        path=path,
        state=found["state"],
        hostname=found["hostname"] or kernel_hostname(),
        families=families,
        families_written=found["families"] is not None,
        require=found["require"],
        select=Select(found["select.static"], found["select.table"], fallback, fallback_name),
        exclude=Exclude(*(found[f"exclude.{name}"] for name in Exclude._fields)),
        networks=networks,
        stability=stability,
        files=found["publish.files.directory"],
        metrics=found["metrics.listen"],
        capture=Capture(found["capture.source"], audit_ns),
    )


def kernel_hostname() -> str:
    """The kernel's node name, lower case, as the kubelet does."""
    return os.uname().nodename.strip().lower()


def _families_of(services: tuple[str, ...]) -> tuple[str, ...]:
    """The families of the service networks, in their order; both if there are none."""
    return tuple(dict.fromkeys(map(family_of, services))) or FAMILIES


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path

    def fail(self, key: str, value: object, allowed: str, detail: str = "") -> NoReturn:
        because = f" ({values.printable(detail)})" if detail else ""
        raise ConfigError(
            f"{self._path}: {key} = {values.shown(value)}{because}; allowed: {allowed}"
        )

    def table(self, data: object, schema: dict[str, Any], prefix: str) -> dict[str, Any]:
        """Parsed values by dotted key, defaults where the file says nothing."""
        if not isinstance(data, dict):
            self.fail(prefix, data, f"a table [{prefix}]")
        dot = f"{prefix}." if prefix else ""
        for name in data:
            if name not in schema:
                self._unknown(dot, name, schema)
        found: dict[str, Any] = {}
        for name, entry in schema.items():
            key = dot + name
            if isinstance(entry, dict):
                found.update(self.table(data.get(name, {}), entry, key))
            elif name in data:
                found[key] = self._value(key, data[name], entry)
            else:
                found[key] = entry.default
        return found

    def _value(self, key: str, value: object, entry: _Key) -> object:
        try:
            return entry.parse(value)
        except ValueError as error:
            self.fail(key, value, entry.allowed, str(error))

    def _unknown(self, dot: str, name: str, schema: dict[str, Any]) -> None:
        import difflib  # noqa: PLC0415 - only for the message

        key = values.printable(dot + name)
        near = difflib.get_close_matches(name, schema, 1, 0.6)
        hint = f"; the nearest is {dot}{near[0]}" if near else ""
        raise ConfigError(f"{self._path}: {key}: unknown key{hint}; allowed: {', '.join(schema)}")


def _one_line(error: Exception) -> str:
    return values.printable(" ".join(str(error).split()))
