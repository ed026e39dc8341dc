"""The first decision of a daemon whose filter was still being loaded while it read the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tracker.capture import loader
from tracker.capture.choose import RING_BYTES
from tracker.capture.opening import begin_source
from tracker.cli import follow
from tracker.clock import SystemClock
from tracker.configfile import parse
from tracker.lastrun import INSTANT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.netns.namespace import Namespace
    from tracker.capture.bpf import Maps


@pytest.mark.parametrize("loads", [True, False], ids=["loaded", "refused"])
def test_it_knows_what_came_meanwhile(
    host: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loads: bool
) -> None:
    if not loads:
        monkeypatch.setattr(loader, "FILES", tmp_path)
    host.batch(["link set lo up", "addr add 192.0.2.11/32 dev lo", "route add default dev lo"])

    def beside(_: Maps) -> follow.Tracing:
        return follow.Tracing("")

    with host.entered():
        opening = begin_source(
            "auto", "native", loader="libbpf", ring_bytes=RING_BYTES, beside=beside
        )

        def complete() -> None:
            host.batch(["addr del 192.0.2.11/32 dev lo", "addr add 192.0.2.12/32 dev lo"])
            opening.complete()

        config = parse(b"", "test.toml")
        session = follow.session(opening.source, config, SystemClock(), wanted=INSTANT)
        session.start(complete)
        assert session.decision().choices["ipv4"].address == "192.0.2.12"
        assert opening.source.name == ("bpf" if loads else "netlink")
        opening.source.close()
