"""Which capabilities are kept where the kernel wants one of them for every look at a map."""

from __future__ import annotations

import ctypes
import errno
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit import netlink_hooks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.netns
CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF = 12, 21, 39
VERSION_3 = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)


def _sets(held: frozenset[int]) -> Any:
    """Effective, permitted, inheritable, in words of 32 bits."""
    mask = sum(1 << number for number in held)
    words = [mask & 0xFFFFFFFF, mask >> 32]
    return ctypes.create_string_buffer(
        struct.pack("=6I", *(part for word in words for part in (word, word, 0)))
    )


def _head() -> Any:
    return ctypes.create_string_buffer(struct.pack("=Ii", VERSION_3, 0))


def hold(held: frozenset[int]) -> None:
    """Give up all others."""
    assert _LIBC.capset(_head(), _sets(held)) == 0


def held(which: int) -> set[int]:
    """Of one set: 0 effective, 1 permitted."""
    out = _sets(frozenset())
    assert _LIBC.capget(_head(), out) == 0
    words = struct.unpack_from("=6I", out.raw)
    mask = words[which + 3] << 32 | words[which]
    return {number for number in range(64) if mask >> number & 1}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return netlink_hooks.build(str(tmp_path_factory.mktemp("hooked")))


@pytest.fixture(params=[errno.EPERM, errno.EBADF], ids=["wants one", "wants none"])
def wants_one(built: Any, request: pytest.FixtureRequest) -> Iterator[bool]:
    ffi, lib = built
    needed = {CAP_SYS_ADMIN, CAP_BPF}

    def look() -> int:
        return -errno.EBADF if held(0) & needed else -request.param

    hook = ffi.callback("int(void)", look)
    lib.hook_lookup = hook
    yield request.param == errno.EPERM
    lib.hook_lookup = ffi.NULL


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ({CAP_BPF, CAP_SYS_ADMIN, CAP_NET_ADMIN}, {CAP_BPF}),
        ({CAP_BPF, CAP_NET_ADMIN}, {CAP_BPF}),
        ({CAP_SYS_ADMIN, CAP_NET_ADMIN}, {CAP_SYS_ADMIN}),
        ({CAP_NET_ADMIN}, set()),
    ],
    ids=["both", "CAP_BPF", "CAP_SYS_ADMIN", "neither"],
)
def test_one_that_reads_maps_is_kept_where_it_takes_one(
    built: Any, wants_one: bool, before: set[int], kept: set[int]
) -> None:
    ffi, lib = built
    given_up = ffi.new("uint64_t *")

    def drop() -> set[int]:
        hold(frozenset(before))
        assert lib.at_caps_drop(given_up) == 0
        return held(0) | held(1)

    # Capabilities are a thread's own.
    with ThreadPoolExecutor(1) as thread:
        left = thread.submit(drop).result()
    assert left == (kept if wants_one else set())
    assert {number for number in range(64) if given_up[0] >> number & 1} == before - left
