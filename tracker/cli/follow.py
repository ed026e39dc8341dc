"""What commands need to look at a host: configuration, policies, source, session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.cli.output import warn
from tracker.config import Config, load
from tracker.errors import DumpError
from tracker.policy.compile import default_route_policy
from tracker.session import INSTANT, NODE, Session, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.capture.base import Source
    from tracker.cli.options import Arguments
    from tracker.clock import Clock
    from tracker.model import Decision, PolicyTable
    from tracker.session import Memory

RETRY_NS = 3_000_000_000
"""How long a command that looks once goes on trying where a dump fails."""


def configuration(arguments: Arguments) -> Config:
    """What --config names, else the default. Raises ConfigError."""
    return load(arguments.value("--config") or None)


def policies(config: Config) -> dict[str, PolicyTable]:
    """The table of each selection."""
    select, exclude, networks = config.select, config.exclude, config.networks
    return {
        NODE: default_route_policy(
            families=config.families,
            table=select.table,
            fallback=select.fallback,
            exclude_interfaces=exclude.interfaces,
            exclude_addresses=exclude.addresses,
            exclude_cidrs=exclude.cidrs,
            pods=networks.pods,
            services=networks.services,
            internal=networks.internal,
            static=select.static,
        )
    }


def settings(config: Config) -> Settings:
    """The configured reluctance and audits."""
    expected = config.families if config.families_written else config.require
    return Settings(config.stability, config.capture.audit, expected)


def open_host(
    arguments: Arguments, config: Config, report: Callable[[str], object] = lambda _why: None
) -> Source:
    """A source for the network namespace that is asked for.

    `report` is called with one line for each better source or engine that was passed over.
    Raises UsageError, UnsupportedError, NotPermittedError.
    """
    from tracker.capture.choose import enter_netns, open_source  # noqa: PLC0415 - not for files

    if name := arguments.value("--netns"):
        enter_netns(name)
    wanted = arguments.value("--source") or config.capture.source
    chosen = open_source(wanted, arguments.value("--engine", "auto"))
    for why in chosen.passed_over:
        report(why)
    return chosen.source


def session(
    source: Source,
    config: Config,
    clock: Clock,
    *,
    wanted: Settings | None = None,
    hostname: str = "",
    memory: Memory | None = None,
) -> Session:
    """A session as configured."""
    return Session(
        source,
        policies(config),
        wanted if wanted is not None else settings(config),
        clock,
        hostname=hostname or config.hostname,
        memory=memory,
    )


def look(arguments: Arguments, config: Config) -> Session:
    """This host, read once; what cannot be read is tried again for three seconds.

    Raises DumpError where that left no address at all.
    """
    from tracker.clock import SystemClock  # noqa: PLC0415 - not for files

    clock = SystemClock()
    looking = session(open_host(arguments, config), config, clock, wanted=INSTANT)
    looking.start()
    give_up = clock.boot_ns() + RETRY_NS
    while any(dirty.lost for dirty in looking.engine.dirty()) and clock.boot_ns() < give_up:
        looking.step(give_up)
    if unread := sorted({d.scope.name.lower() for d in looking.engine.dirty() if d.lost}):
        line = f"cannot be read from the kernel: {', '.join(unread)}"
        if all(c.address is None for c in looking.decision().choices.values()):
            raise DumpError(line)
        warn(line)
    return looking


def missing(config: Config, decision: Decision) -> list[str]:
    """Why the node is not ready, one line for each family; [] = it is."""
    without = [family for family, c in decision.choices.items() if c.address is None]
    if config.require:
        without = [family for family in without if family in config.require]
    elif len(without) < len(decision.choices):
        without = []
    return [f"no {family} address: {decision.choices[family].reason}" for family in without]
