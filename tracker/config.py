"""The configuration: typed, immutable, every value with a default.

Reading a file is `tracker.configfile`'s, which is loaded only where there is one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tracker.decision import Stability
from tracker.errors import ConfigError
from tracker.model import FAMILIES, NANOSECONDS

DEFAULT_PATH = "/etc/addrtracker.toml"
"""Read when no --config is given, if it is there."""


class Select(NamedTuple):
    """How addresses are selected: the node's primary ones, or those of a named selection."""

    mode: str = "default-route"
    """Of tracker.policy.modes.MODES."""
    interfaces: tuple[str, ...] = ()
    """Mode interface: globs, in order of preference."""
    cidrs: tuple[str, ...] = ()
    """Mode cidr: networks, in order of preference."""
    route_to: tuple[str, ...] = ()
    """Mode route-to: addresses that must be reached, in order of preference."""
    hint: tuple[str, ...] = ()
    """Addresses; only subnets count that hold one of them."""
    static: tuple[str, ...] = ()
    """Mode static: all there is, as the kubelet's --node-ip. Else: preferred, in order."""
    table: int = 254
    vrf: str = ""
    """A VRF whose table counts instead of `table`; "" = none."""
    fallback: str = "auto"
    """Or "none", "physical", "default-route", "interface:" and a glob."""
    extra: int = 0
    """Addresses of a family beside the first one."""


class Exclude(NamedTuple):
    """What is never a candidate, beside the built-in list of interfaces."""

    interfaces: tuple[str, ...] = ()
    """Globs; "!" in front takes one out of the exclusions."""
    addresses: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()


class Networks(NamedTuple):
    """What is known about addresses; networks in canonical text."""

    nodes: tuple[str, ...] = ()
    """What nodes are in; nothing follows from it for the choice."""
    pods: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    external: tuple[str, ...] = ()
    """Addresses, not networks: they reach this node through another box."""
    nat64: tuple[str, ...] = ()
    """Prefixes through which IPv4 is reached."""
    others: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Ranges of other clusters, by their names."""


class Check(NamedTuple):
    """What the command `check` is told beside; its options win."""

    peers: tuple[str, ...] = ()
    """Addresses; "NAME=ADDRESS" for the named selection NAME."""
    ipv6: str = ""
    """What IPv6 ranges have to be: "global", "ula", "" = either."""
    node_mask: tuple[int, ...] = ()
    """Prefix lengths of a node's share of the pod ranges, one for each family at most."""


class Listen(NamedTuple):
    """Where to listen."""

    host: str
    port: int


class Capture(NamedTuple):
    """Where changes come from."""

    source: str = "auto"
    """Or "bpf", "netlink", "pyroute2"."""
    loader: str = "auto"
    """What loads the programs of the source bpf: "libbpf", "bcc"."""
    ring: int = 1 << 20
    """Bytes of the ring buffer between these programs and us."""
    trace: str = "auto"
    """Probes that tell of silent removals, where they can be attached; "off" = none."""
    audit: int = 60 * NANOSECONDS
    """Between two audits; 0 = never."""


class Config(NamedTuple):
    """The whole configuration; times in nanoseconds."""

    hostname: str
    path: str | None = None
    """The file it came from; None = defaults."""
    state: str = "/var/lib/addrtracker"
    """Directory of the last decision; "" = no memory."""
    families: tuple[str, ...] = FAMILIES
    """Wanted families, in order."""
    families_written: bool = False
    """`families` stands in the file, or mode static names their addresses: so publishers may
    change number and order of families."""
    require: tuple[str, ...] = ()
    """Families without which the node is not ready; () = at least one."""
    select: Select = Select()
    selections: Mapping[str, Select] = MappingProxyType({})
    """Named ones, each with addresses for a purpose of its own."""
    exclude: Exclude = Exclude()
    networks: Networks = Networks()
    check: Check = Check()
    stability: Stability = Stability(
        settle=NANOSECONDS, settle_max=10 * NANOSECONDS, hold=10 * NANOSECONDS, failback=None
    )
    files: str = "/run/addrtracker"
    """Directory of the files that are published."""
    metrics: Listen | None = Listen("127.0.0.1", 9797)
    """Where /metrics is served; None = nowhere."""
    capture: Capture = Capture()
    warnings: tuple[str, ...] = ()
    """What was read and left out, one line each."""


def kernel_hostname() -> str:
    """The kernel's node name, lower case, as the kubelet does."""
    return os.uname().nodename.strip().lower()


def load(path: str | None = None) -> Config:
    """The configuration in `path`; without one the default file, or the defaults.

    Raises ConfigError with one line: file, key, value, what is allowed.
    """
    if path is None:
        if not os.path.exists(DEFAULT_PATH):
            return Config(kernel_hostname())
        path = DEFAULT_PATH
    from tracker.configfile import read  # noqa: PLC0415 - most hosts have no file

    return read(path)


def load_again(path: str | None) -> Config:
    """As load(), of what a daemon goes by: of a file, since a pipe says nothing a second time, or
    keeps whoever opens it waiting.
    """
    known = path or DEFAULT_PATH
    if os.path.exists(known) and not (os.path.isfile(known) or os.path.isdir(known)):
        raise ConfigError(f"{known}: cannot be read again: it is no file")
    return load(path)
