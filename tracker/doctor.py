"""What this kernel and this process can do, and what follows from it.

Everything is read from /proc or tried on a socket that is closed again; nothing is changed.
"""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# linux/netlink.h, linux/rtnetlink.h
_SOL_NETLINK = 270
_NETLINK_ADD_MEMBERSHIP = 1
_NETLINK_GET_STRICT_CHK = 12
_RTNLGRP_NEXTHOP = 32

PROC = "/proc"


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    """False: something is missing or worth knowing."""
    value: str
    follows: str
    """What follows from it, in a sentence; "" = nothing."""


class Feature(NamedTuple):
    """Something that a kernel can do from some version on."""

    name: str
    since: str
    """The first kernel version that has it; "" = not a matter of the kernel's version."""
    probe: Callable[[], str]
    """ "" = it is there, else why not."""
    without: str
    """What follows where it is not there."""


def _probe_option(option: int, value: int) -> str:
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.setsockopt(_SOL_NETLINK, option, value)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _probe_ipv6() -> str:
    return "" if os.path.exists(f"{PROC}/net/if_inet6") else "not in this kernel or namespace"


def _probe_extension() -> str:
    try:
        import tracker.engine.native  # noqa: F401, PLC0415 - the import is what is tried
    except ImportError as error:
        return str(error)
    return ""


FEATURES = (
    Feature(
        "extension",
        "",
        _probe_extension,
        "the reference engine and pyroute2 do its work: for small nodes only",
    ),
    Feature("ipv6", "", _probe_ipv6, "there will be no IPv6 address"),
    Feature(
        "strict-dumps",
        "4.20",
        lambda: _probe_option(_NETLINK_GET_STRICT_CHK, 1),
        "dumps cannot be narrowed to one table or link and cost more",
    ),
    Feature(
        "nexthop-objects",
        "5.3",
        lambda: _probe_option(_NETLINK_ADD_MEMBERSHIP, _RTNLGRP_NEXTHOP),
        "nothing: a kernel without them has no routes that use them",
    ),
)


def features() -> list[Finding]:
    """Each feature, tried."""
    found = []
    for feature in FEATURES:
        why = feature.probe()
        since = f" (needs kernel {feature.since})" if feature.since else ""
        follows = _unless(not why, f"{feature.without}{since}")
        found.append(Finding(feature.name, not why, why or "yes", follows))
    return found


_CAPABILITIES = {
    "CAP_NET_ADMIN": (12, "the receive buffer is at most net.core.rmem_max"),
    "CAP_SYS_ADMIN": (21, "--netns is not permitted"),
}


def capabilities(status: str | None = None) -> list[Finding]:
    """The effective capabilities that something here uses; `status` is /proc/self/status."""
    text = Path(PROC, "self/status").read_text() if status is None else status
    lines = [line.split(":", 1) for line in text.splitlines() if ":" in line]
    mask = int(dict(lines).get("CapEff", "0").strip(), 16)
    found = []
    for name, (bit, without) in _CAPABILITIES.items():
        ok = bool(mask >> bit & 1)
        found.append(Finding(name, ok, "yes" if ok else "no", _unless(ok, without)))
    return found


def _unless(ok: bool, follows: str) -> str:
    return "" if ok else follows


class _Sysctl(NamedTuple):
    name: str
    worth_knowing: str
    """The value that is worth a word."""
    follows: str


LINKS_MOST = 3
"""Links that get a line of their own each."""

_SYSCTLS = (
    _Sysctl(
        "net.ipv4.conf.all.promote_secondaries",
        "0",
        "an IPv4 address that goes takes the secondaries of its network with it, "
        "unless its link says otherwise",
    ),
    _Sysctl(
        "net.ipv6.conf.all.keep_addr_on_down",
        "0",
        "IPv6 addresses go when their link goes down; the hold time bridges a short one",
    ),
    _Sysctl(
        "net.ipv6.route.skip_notify_on_dev_down",
        "1",
        "IPv6 routes go without a message when a link goes down; this is inferred",
    ),
    _Sysctl(
        "net.ipv4.nexthop_compat_mode",
        "0",
        "routes with nexthop objects name only an id; the objects are followed",
    ),
    _Sysctl(
        "net.ipv4.conf.all.rp_filter",
        "1",
        "strict: with several default routes, packets that arrive over another link than the "
        "answer would take are dropped",
    ),
    _Sysctl("net.core.rmem_max", "", ""),
    _Sysctl("net.ipv4.ip_forward", "", ""),
    _Sysctl("net.ipv6.conf.all.forwarding", "", ""),
)


def sysctls(root: str | None = None) -> list[Finding]:
    """The sysctls that matter, as this network namespace has them; `root` is /proc/sys."""
    root = f"{PROC}/sys" if root is None else root
    found = []
    for sysctl in _SYSCTLS:
        value = _read(f"{root}/{sysctl.name.replace('.', '/')}")
        ok = value != sysctl.worth_knowing
        shown = "not there" if value is None else value
        found.append(Finding(sysctl.name, ok, shown, _unless(ok, sysctl.follows)))
    return [*found, *_router_advertisements(root)]


def _router_advertisements(root: str) -> list[Finding]:
    """Links that forward and so take no default route from a router (RFC 4861 6.2; accept_ra)."""
    links = []
    for path in sorted(glob.glob(f"{glob.escape(root)}/net/ipv6/conf/*/forwarding")):
        folder, _ = os.path.split(path)
        link = os.path.basename(folder)
        if link not in {"all", "default", "lo"} and _read(path) == "1":
            links += [link] if _read(f"{folder}/accept_ra") == "1" else []
    if len(links) <= LINKS_MOST:
        return [_no_default_route(link, link) for link in links]
    # A node with containers has hundreds, and they forward together.
    named = ", ".join(links[:LINKS_MOST])
    return [_no_default_route("*", f"each of {len(links)} links ({named} ...)")]


def _no_default_route(name: str, link: str) -> Finding:
    return Finding(
        f"net.ipv6.conf.{name}.accept_ra",
        ok=False,
        value="1",
        follows=f"{link} forwards, so it takes no default route from router advertisements; "
        "2 would",
    )


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
