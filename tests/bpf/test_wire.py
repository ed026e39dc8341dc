"""bpf/wire.h says of rtnetlink what the system's headers say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.bpf.program import FILTER_BYTES, HEADER, LINK, TASK
from tracker._engine import ffi

ROOT = Path(__file__).resolve().parents[2]
WIRE = ROOT / "bpf" / "wire.h"

HEADERS = ("if_addr", "if_link", "fib_rules", "netlink", "nexthop", "rtnetlink")

STRUCTS = {
    "wire_nlmsg": ("nlmsghdr", "nlmsg_"),
    "wire_attr": ("nlattr", "nla_"),
    "wire_ifaddr": ("ifaddrmsg", "ifa_"),
    "wire_ifinfo": ("ifinfomsg", "ifi_"),
    "wire_rtmsg": ("rtmsg", "rtm_"),
}
"""Ours, theirs, and what the names of their members begin with."""

OTHER_NAMES = {"ATTR_TYPE_MASK": "NLA_TYPE_MASK & 0xffff", "ALIGN": None}


SAME = r"""
#define SIZE(s, m) sizeof(((struct s *)0)->m)
#define SAME(s, m, t, n) _Static_assert(offsetof(struct s, m) == offsetof(struct t, n) && \
                                        SIZE(s, m) == SIZE(t, n), #s "." #m)
"""


def constants() -> dict[str, str]:
    """Names in bpf/wire.h and what they have to be."""
    names = re.findall(r"^#define WIRE_(\w+)", WIRE.read_text(), re.MULTILINE)
    theirs = {name: OTHER_NAMES.get(name, name) for name in names}
    return {name: other for name, other in theirs.items() if other}


def members() -> list[tuple[str, str]]:
    """Each structure of bpf/wire.h and each of its members."""
    found = []
    for name, body in re.findall(
        r"^struct (\w+) \{(.*?)^\};", WIRE.read_text(), re.MULTILINE | re.DOTALL
    ):
        found += [(name, member) for member in re.findall(r"(\w+);", body)]
    return found


def test_constants_sizes_and_offsets_are_those_of_the_kernel(tmp_path: Path) -> None:
    lines = [f"#include <linux/{header}.h>" for header in HEADERS]
    lines += ["#include <stddef.h>", "#include <sys/socket.h>", f'#include "{WIRE}"']
    lines.append(SAME)
    for name, theirs in constants().items():
        lines.append(f'_Static_assert(WIRE_{name} == ({theirs}), "{name}");')
    lines.append('_Static_assert(WIRE_ALIGN(5) == NLMSG_ALIGN(5), "align");')
    for ours, (their, _) in STRUCTS.items():
        lines.append(f'_Static_assert(sizeof(struct {ours}) == sizeof(struct {their}), "{ours}");')
    for ours, member in members():
        their, prefix = STRUCTS[ours]
        if member.startswith("pad"):
            continue
        lines.append(f"SAME({ours}, {member}, {their}, {prefix}{member});")
    source = tmp_path / "wire.c"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-fsyntax-only", str(source)], check=True)
    assert len(members()) > 20
    assert len(constants()) > 20


def test_the_tests_have_the_sizes_of_the_headers() -> None:
    """A map writes as many bytes as it has, whatever was meant for it."""
    sizes = {"filter": FILTER_BYTES, "header": HEADER, "link": LINK.size, "task": TASK}
    assert {name: ffi.sizeof(f"struct at_{name}") for name in sizes} == sizes
