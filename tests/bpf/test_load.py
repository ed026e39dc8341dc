"""The filter gets into the kernel with few capabilities, and within the limits of old ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.bpf.kernel import facts
from tests.bpf.program import LEAST, Filter
from tests.features import require
from tracker.capture.loader import PLAIN, WITH_TASKS
from tracker.features import version

NOBODY = 65534
OPTMEM = 20480
"""Bytes of net.core.optmem_max up to Linux 6.6: what a socket may spend on a filter."""
OVERHEAD = 256
"""Of these, for what is not instructions, generously."""
LIMIT = (OPTMEM - OVERHEAD) // 8

VERIFIED = 100_000
"""Instructions, a third of which take some 30 ms."""

CHILD = """
import sys
from tests.bpf.kernel import facts
from tests.bpf.program import filtering
from tests.netlink_bytes import message
with filtering(sys.argv[1]) as program:
    assert program.pass_on(message(20, bytes([2]) + bytes(7)))
    assert program.pass_on(message(28, bytes(12))) is None
    print(facts(program.program).instructions)
"""


def load_as_nobody(variant: str, *capabilities: str) -> subprocess.CompletedProcess[str]:
    """With exactly these; it prints the number of instructions."""
    words = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    sets = [f"--{name}={words}" for name in ("inh-caps", "ambient-caps", "bounding-set")]
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    child = [sys.executable, "-B", "-c", CHILD, variant]
    command = ["setpriv", *user, *sets, *child]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_it_fits_what_a_socket_may_spend(loaded: Filter) -> None:
    count = facts(loaded.program).instructions
    print(f"{loaded.variant}: {count} instructions")
    assert count <= LIMIT


def test_the_verifier_is_done_with_it_soon(loaded: Filter) -> None:
    """A branch in the wrong place makes it follow a million ways, or refuse the program."""
    count = facts(loaded.program).verified
    print(f"{loaded.variant}: {count} instructions verified")
    assert count <= VERIFIED


@pytest.mark.parametrize(
    ("variant", "capabilities"),
    [(LEAST, ["bpf"]), (PLAIN, ["bpf", "perfmon"]), (WITH_TASKS, ["bpf", "perfmon"])],
    ids=[LEAST, PLAIN, WITH_TASKS],
)
def test_it_takes_as_few_capabilities(variant: str, capabilities: list[str]) -> None:
    """What the verifier adds against speculation for those whom it does not trust fits as well."""
    require("task-identity" if variant == WITH_TASKS else "socket-filter")
    done = load_as_nobody(variant, *capabilities)
    assert done.returncode == 0, done.stderr
    print(f"{variant} with {capabilities}: {done.stdout.strip()} instructions")
    assert int(done.stdout) <= LIMIT


def test_links_can_be_read_without_perfmon_on_newer_kernels() -> None:
    """Older ones follow the loops where a processor would guess that they do not end."""
    require("socket-filter")
    done = load_as_nobody(PLAIN, "bpf")
    if version(os.uname().release) < (6, 16):
        assert done.returncode == 1
        assert f"LoadError: {PLAIN} is refused: " in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) <= LIMIT


@pytest.mark.parametrize(
    ("variant", "capabilities", "error"),
    [(WITH_TASKS, ["bpf"], "LoadError"), (LEAST, ["perfmon", "net_admin"], "NotPermittedError")],
    ids=[WITH_TASKS, LEAST],
)
def test_it_does_not_take_fewer(variant: str, capabilities: list[str], error: str) -> None:
    require("socket-filter")
    done = load_as_nobody(variant, *capabilities)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"tracker.errors.{error}: ")
