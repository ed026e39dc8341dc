"""The host as other software sees it, live or in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.cli.play import Played
    from tracker.profiles.host import Host


def played_host(played: Played) -> Host:
    """The state in which files end."""
    from tracker.capture.cases import Case  # noqa: PLC0415 - only for files
    from tracker.capture.replay import CaseSource  # noqa: PLC0415
    from tracker.profiles.records import from_kernel, from_snapshot  # noqa: PLC0415

    given, session = played.given, played.session
    if isinstance(given, Case) and isinstance(session.source, CaseSource):
        return from_kernel(session.source.kernel, given.snapshot.labels, session.hostname)
    return from_snapshot(session.engine.snapshot(), session.hostname)


def live_host(hostname: str) -> Host:
    """The network namespace of the calling thread, in which its name is looked up as well."""
    from tracker.profiles.live import Resolver, read  # noqa: PLC0415 - not for files

    return read(hostname, Resolver(hostname))
