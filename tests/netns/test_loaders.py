"""Our filter, loaded in each way that there is, at work in a namespace."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tracker.capture import loader
from tracker.capture.bpf import BpfSource
from tracker.capture.choose import open_source
from tracker.capture.record import Addr, Record, iter_records
from tracker.model import FAMILIES
from tracker.policy.compile import default_route_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.netns.namespace import Namespace


def open_and_tap(name: str) -> BpfSource:
    """A source in the namespace of this thread, which keeps what it applies."""
    source = cast("BpfSource", open_source("bpf", loader=name).source)
    source.engine.set_policy(0, default_route_policy(families=FAMILIES))
    source.tap(1 << 20)
    return source


def addresses(source: BpfSource) -> Iterator[Record]:
    """Records about addresses since the last call."""
    source.drain()
    while raw := source.read_tap():
        yield from (found for found in iter_records(raw) if isinstance(found.payload, Addr))


@pytest.mark.parametrize("name", ["libbpf", "bcc"])
def test_a_change_comes_through_the_ring(host: Namespace, name: str) -> None:
    with host.entered():
        source = open_and_tap(name)
        host.ip("addr add 192.0.2.10/24 dev lo")
        [record] = addresses(source)
        before = source.counters()
        host.ip("route add 198.51.100.0/24 dev lo")
        source.drain()
        after = source.counters()
        source.close()
    assert cast("Addr", record.payload).local == bytes([192, 0, 2, 10])
    assert source.loader == name
    assert source.attribution == (name == "libbpf")
    assert (record.task is not None and record.task.comm == "ip") == source.attribution
    dropped = {name: after[name] - before[name] for name in after if name.startswith("dropped.")}
    assert dropped["dropped.RTM_NEWROUTE"] == 1, "what no policy asks for stays in the kernel"


def test_without_a_prebuilt_object_bcc_does_it_and_says_so(
    host: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(loader.FILES, tmp_path / "bpf", ignore=shutil.ignore_patterns("*.o"))
    monkeypatch.setattr(loader, "FILES", tmp_path / "bpf")
    with host.entered():
        chosen = open_source()
    assert chosen.source.name == "bpf"
    assert cast("BpfSource", chosen.source).loader == "bcc"
    prebuilt, tasks = chosen.passed_over
    assert prebuilt.startswith("loader libbpf: no prebuilt object: ")
    assert tasks == "names of processes: the loader bcc has none"
    chosen.source.close()


@pytest.mark.parametrize("name", ["libbpf", "bcc"])
def test_a_source_that_is_closed_leaves_nothing_open(host: Namespace, name: str) -> None:
    with host.entered():
        open_source("bpf", loader=name).source.close()
        before = sorted(os.listdir("/proc/self/fd"))
        open_source("bpf", loader=name).source.close()
        assert sorted(os.listdir("/proc/self/fd")) == before
