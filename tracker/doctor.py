"""What this kernel and this process can do, and what follows from it.

Everything is read from /proc, or tried and undone: sockets are closed, programs unloaded.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import NamedTuple

from tracker import features as table

PROC = "/proc"


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    """False: something is missing or worth knowing."""
    value: str
    follows: str
    """What follows from it, in a sentence; "" = nothing."""


def features() -> list[Finding]:
    """Each feature, tried; what proves that this kernel has none is said."""
    found = []
    for feature in table.FEATURES:
        why = feature.probe()
        proof = table.absence(feature) if why else ""
        value = f"{why} ({proof})" if proof and proof != why else why
        since = f" (needs kernel {feature.since})" if table.is_too_old(feature) else ""
        follows = _unless(not why, f"{feature.without}{since}")
        found.append(Finding(feature.name, not why, value or "yes", follows))
    return found


class _Capability(NamedTuple):
    bit: int
    without: str
    instead: str = ""
    """Another one that stands for it."""
    until: str = ""
    """The kernel version from which on it is of no use to us; "" = there is none."""


_CAPABILITIES = {
    "CAP_BPF": _Capability(39, "no source bpf: every announcement is read", "CAP_SYS_ADMIN"),
    "CAP_PERFMON": _Capability(
        38,
        "changes do not name the process that made them, silent removals are not traced",
        "CAP_SYS_ADMIN",
    ),
    "CAP_NET_ADMIN": _Capability(12, "the receive buffer is at most net.core.rmem_max"),
    "CAP_SYS_ADMIN": _Capability(21, "--netns is not permitted"),
    "CAP_SYS_RESOURCE": _Capability(
        24, "the maps of the source bpf have to fit in RLIMIT_MEMLOCK", until="5.11"
    ),
}


def capabilities(status: str | None = None, release: str = "") -> list[Finding]:
    """The effective capabilities that something here uses.

    `status` is /proc/self/status, `release` that of the kernel that runs.
    """
    if status is None:
        try:
            status = Path(PROC, "self/status").read_text()
        except OSError as error:
            return [Finding("all", False, f"not known: {error.filename}: {error.strerror}", "")]
    lines = [line.split(":", 1) for line in status.splitlines() if ":" in line]
    mask = int(dict(lines).get("CapEff", "0").strip(), 16)
    kernel = table.version(release or os.uname().release)

    def has(name: str) -> bool:
        return bool(name) and bool(mask >> _CAPABILITIES[name].bit & 1)

    found = []
    for name, capability in _CAPABILITIES.items():
        value = "yes" if has(name) else "no"
        if not has(name) and has(capability.instead):
            value = f"by {capability.instead}"
        unused = bool(capability.until) and kernel >= table.version(capability.until)
        ok = value != "no" or unused
        found.append(Finding(name, ok, value, _unless(ok, capability.without)))
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
    _Sysctl(
        "net.core.bpf_jit_enable",
        "0",
        "programs in the kernel are interpreted: each announcement costs several times as much",
    ),
    _Sysctl(
        "kernel.unprivileged_bpf_disabled",
        "0",
        "every user may load BPF programs; nothing here needs that, and most hosts forbid it",
    ),
    _Sysctl(
        "kernel.bpf_stats_enabled",
        "1",
        "the kernel takes the time of every run of a BPF program, which costs time itself",
    ),
    _Sysctl("net.core.optmem_max", "", ""),
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
