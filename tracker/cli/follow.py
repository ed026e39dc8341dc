"""What commands need to look at a host: configuration, policies, source, session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tracker.cli.output import warn
from tracker.config import Config, Select, load
from tracker.errors import DumpError, TrackerError
from tracker.guidance import Helpers
from tracker.lastrun import INSTANT, Settings
from tracker.policy import modes
from tracker.policy.compile import TABLE_NOWHERE, policy
from tracker.policy.modes import Guide
from tracker.session import NODE, Session

if TYPE_CHECKING:
    from tracker.capture.base import Source
    from tracker.capture.bpf import Maps
    from tracker.capture.choose import Chosen
    from tracker.capture.opening import Opening
    from tracker.cli.options import Arguments
    from tracker.clock import Clock
    from tracker.lastrun import Memory
    from tracker.model import Decision, PolicyTable

TAP_BYTES = 16 << 20
"""Room for what is applied between two looks; memory is used as far as it is filled."""

RETRY_NS = 3_000_000_000
"""How long a command that looks once goes on trying where a dump fails."""


def configuration(arguments: Arguments) -> Config:
    """What --config names, else the default. Raises ConfigError."""
    return load(arguments.value("--config") or None)


def policies(config: Config) -> dict[str, PolicyTable]:
    """The table of each selection, the node's own first."""
    return {name: _policy(config, select) for name, select in _selections(config)}


def guides(config: Config) -> dict[str, Guide]:
    """What a session does for each selection beside."""
    return {name: _guide(config, select) for name, select in _selections(config)}


def _selections(config: Config) -> list[tuple[str, Select]]:
    return [(NODE, config.select), *config.selections.items()]


def _policy(config: Config, select: Select) -> PolicyTable:
    exclude, networks = config.exclude, config.networks
    return policy(
        # A hint alone is no destination: it narrows what the default routes lead to.
        modes.DEFAULT_ROUTE if _is_hint_alone(select) else select.mode,
        families=config.families,
        interfaces=select.interfaces,
        cidrs=select.cidrs,
        static=select.static,
        hint=select.hint,
        table=TABLE_NOWHERE if select.vrf else select.table,
        fallback=select.fallback,
        exclude_interfaces=exclude.interfaces,
        exclude_addresses=exclude.addresses,
        exclude_cidrs=exclude.cidrs,
        pods=networks.pods,
        services=networks.services,
        internal=networks.internal,
    )


def _guide(config: Config, select: Select) -> Guide:
    return Guide(
        mode=select.mode,
        targets=select.route_to,
        host=config.hostname if select.mode == modes.DNS else "",
        vrf=select.vrf,
        extra=select.extra,
    )


def _is_hint_alone(select: Select) -> bool:
    return select.mode == modes.ROUTE_TO and not select.route_to


def settings(config: Config) -> Settings:
    """The configured reluctance and audits."""
    expected = config.families if config.families_written else config.require
    return Settings(config.stability, config.capture.audit, expected)


def open_host(arguments: Arguments, config: Config, *, once: bool = False) -> Chosen:
    """A source for the network namespace that is asked for, as it is configured.

    `once`: it is for one look, so nothing is loaded into the kernel unless that is asked for.
    Raises UsageError, UnsupportedError, NotPermittedError.
    """
    from tracker.capture.choose import enter_netns, open_source  # noqa: PLC0415 - not for files

    if name := arguments.value("--netns"):
        enter_netns(name)
    capture = config.capture
    return open_source(
        arguments.value("--source") or capture.source,
        arguments.value("--engine", "auto"),
        loader=arguments.value("--loader") or capture.loader,
        ring_bytes=capture.ring,
        once=once,
    )


def begin_host(arguments: Arguments, config: Config) -> Opening[Tracing]:
    """As open_host(), for a daemon: the source can be read from while its filter and the trace
    tier are being loaded."""
    from tracker.capture.choose import enter_netns  # noqa: PLC0415 - as above
    from tracker.capture.opening import begin_source  # noqa: PLC0415 - threads are for daemons

    if name := arguments.value("--netns"):
        enter_netns(name)
    capture = config.capture
    return begin_source(
        arguments.value("--source") or capture.source,
        arguments.value("--engine", "auto"),
        loader=arguments.value("--loader") or capture.loader,
        ring_bytes=capture.ring,
        beside=lambda maps: _trace(maps, config),
    )


class Tracing(NamedTuple):
    """The probes that tell of silent removals, where there are any."""

    way: str
    """"fentry", "kprobe", "count"; "" = there are none."""
    probes: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    """Why there is none, or no better way; one line each."""
    close: Callable[[], None] = lambda: None


def attach_trace(source: Source, config: Config) -> Tracing:
    """The trace tier, if the source can take it and it is wanted (capture.trace)."""
    if source.name != "bpf":
        return Tracing("")
    return _trace(source.maps, config)  # type: ignore[attr-defined]


def _trace(maps: Maps, config: Config) -> Tracing:
    if config.capture.trace == "off":
        return Tracing("", passed_over=("trace: switched off by the configuration",))
    try:
        from tracker.capture.trace import attach  # noqa: PLC0415 - for few

        trace = attach(maps._asdict())
    except (ImportError, OSError, TrackerError) as error:
        return Tracing("", passed_over=(f"trace: {error}",))
    return Tracing(trace.way, trace.probes, trace.passed_over, trace.close)


def drop_privileges() -> tuple[str, ...]:
    """Give up the capabilities that only opening a source needs; which they were."""
    try:
        from tracker.capture.privileges import drop  # noqa: PLC0415 - for the daemon alone
    except ImportError:
        return ()  # without the extension nothing was loaded either
    return drop()


def source_text(source: Source) -> str:
    """The source in a few words, for example "source bpf, loader libbpf"."""
    from tracker.capture.base import has_attribution, loader_of  # noqa: PLC0415 - for few

    loaded = f", loader {loader_of(source)}" if loader_of(source) else ""
    named = "" if has_attribution(source) else ", without names of processes"
    return f"source {source.name}{loaded}{named}"


def session(
    source: Source,
    config: Config,
    clock: Clock,
    *,
    wanted: Settings | None = None,
    hostname: str = "",
    memory: Memory | None = None,
    helpers: Helpers | None = None,
) -> Session:
    """A session as configured; without `helpers` it asks nobody, as in a replay."""
    return Session(
        source,
        policies(config),
        wanted if wanted is not None else settings(config),
        clock,
        hostname=hostname or config.hostname,
        memory=memory,
        guides=guides(config),
        helpers=helpers,
    )


def helpers(source: Source, config: Config, before: Helpers | None = None) -> Helpers:
    """Whom a session on this host asks: the kernel, and the resolver where a mode needs one;
    those of `before` as far as they are good for this configuration, too.
    """
    known = before or Helpers()
    lookup, resolver = known.lookup, None
    given = guides(config).values()
    if lookup is None and any(guide.targets for guide in given):
        from tracker.capture.lookup import KernelLookup  # noqa: PLC0415 - for one mode

        lookup = KernelLookup(source.engine)
    if any(guide.host for guide in given):
        from tracker.resolve import Resolver  # noqa: PLC0415 - for one mode

        resolver = known.resolver
        if resolver is None or resolver.name != config.hostname:
            resolver = Resolver(config.hostname, source.wake)
    return Helpers(lookup, resolver)


def look(arguments: Arguments, config: Config) -> Session:
    """This host, read once; what cannot be read is tried again for three seconds.

    Raises DumpError where that left no address at all.
    """
    from tracker.clock import SystemClock  # noqa: PLC0415 - not for files

    for text in config.warnings:
        warn(text)
    clock = SystemClock()
    source = open_host(arguments, config, once=True).source
    asked = helpers(source, config)
    looking = session(source, config, clock, wanted=INSTANT, helpers=asked)
    looking.start()
    while looking.pending:  # it is failure soon, else
        looking.step()
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
