"""addrtracker check: the configuration and the networks of the cluster against this host."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from tracker import values
from tracker.address import parse
from tracker.cli import check_facts, check_findings, check_input, options
from tracker.cli.check_input import Request
from tracker.cli.check_report import Report, print_report
from tracker.cli.follow import configuration, look, missing
from tracker.cli.output import print_json, wants_table
from tracker.clusternet.finding import Severity, error, ordered
from tracker.clusternet.transition import stage
from tracker.errors import UsageError
from tracker.model import FAMILIES
from tracker.publish.files import SELECTIONS
from tracker.session import NODE

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.clusternet.ranges import IPNetwork
    from tracker.config import Config

PRINT = options.Option("--print", "print the effective configuration as TOML, check nothing")
NODES = options.Option("--nodes", "networks that the nodes are in", "NETWORK", many=True)
OTHER = options.Option("--other", "other clusters' ranges, or files of them", "RANGE", many=True)
PEER = options.Option(
    "--peer", "is the primary the source towards it?", "[SELECTION=]ADDRESS", many=True
)
IPV6 = options.Option("--ipv6", "what IPv6 ranges have to be", choices=("global", "ula"))
NODE_MASK = options.Option("--node-mask", "a node's share of the pod range", "/LENGTH", many=True)
FREE = options.Option("--free", "propose free ranges of this size", "/LENGTH")
WITHIN = options.Option("--within", "where to look for them", "NETWORK", many=True)
COUNT = options.Option("--count", "how many (default: 5)", "NUMBER")
NAT64 = options.Option("--nat64", "prefixes of NAT64 that are known", "PREFIX", many=True)
DNS64 = options.Option("--dns64", "ask the resolvers for the prefix of a DNS64")
PREF64 = options.Option("--pref64", "wait for the prefix in a router advertisement", "SECONDS")
OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.FROM,
    PRINT,
    NODES,
    OTHER,
    PEER,
    IPV6,
    NODE_MASK,
    FREE,
    WITHIN,
    COUNT,
    NAT64,
    DNS64,
    PREF64,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
)
WORDS = (0, 0, "")

_LIVE = (PEER, DNS64, PREF64)
"""What has to be asked for on the host itself."""
_COUNT = 5
_COUNT_MOST = 1000
_SECONDS_MOST = 3600


def run(arguments: Arguments) -> int:
    """0, or 1 where there is an error among the findings."""
    config = configuration(arguments)
    if arguments.flag(PRINT.name):
        _print_configuration(arguments, config)
        return 0
    if files := arguments.values("--from"):
        from tracker.cli.play import play  # noqa: PLC0415 - only for files

        played = play(files, config, arguments, look=True)
        config, session = played.config, played.session
        request = _request(arguments, config)
    else:
        request = _request(arguments, config)
        session = look(arguments, config)
    decision = session.decision()
    facts = check_facts.read(session)
    cluster = check_findings.cluster_of(config, request, facts)
    ranges = check_findings.ranges_of(request, facts, cluster)
    asked = (
        check_findings.ask_nobody(request) if files else check_findings.ask(request, facts, config)
    )
    published = {} if files or arguments.flag("--netns") else _published(config)
    found = [
        *(error("no-address", line) for line in missing(config, decision)),
        *check_facts.without_address(facts),
        *check_facts.exclusions(facts, config, published),
        *check_findings.findings(config, request, facts, cluster),
        *asked.findings,
    ]
    free: list[IPNetwork] = []
    if request.free:
        free, none = check_findings.free_ranges(request, ranges, config, asked.routes)
        found += none
    report = Report(
        config.path,
        decision.hostname,
        {family: facts.primaries.get(family) for family in FAMILIES},
        {each.name: each.primaries for each in facts.named},
        ordered(found),
        stage(cluster, facts.present, asked.prefixes, facts.clat),
        free if request.free else None,
        asked.skipped,
    )
    if wants_table(arguments):
        print_report(report)
    else:
        print_json(report.as_json())
    return int(report.count(Severity.ERROR) > 0)


def _published(config: Config) -> dict[tuple[str, str], str]:
    """The addresses in the files of a daemon on this host, by selection and family."""
    found = {}
    directory = Path(config.files)
    for name in (NODE, *config.selections):
        for family in FAMILIES:
            path = directory / SELECTIONS / name / family if name else directory / family
            with contextlib.suppress(OSError, ValueError):
                text = path.read_text("ascii").strip()
                parse(text)
                found[name, family] = text
    return found


def _print_configuration(arguments: Arguments, config: Config) -> None:
    from tracker.cli.config_text import effective, to_toml  # noqa: PLC0415 - only for this

    if arguments.value("--output") == "json":
        print_json(effective(config))
    else:
        print(to_toml(config))


def _request(arguments: Arguments, config: Config) -> Request:
    """What is asked for. Raises UsageError, InputError."""
    if arguments.flag("--from"):
        for option in _LIVE:
            if arguments.flag(option.name):
                raise UsageError(
                    f"check: {option.name}: only the host itself can tell; allowed: without --from"
                )
    for option in (WITHIN, COUNT):
        if arguments.flag(option.name) and not arguments.flag(FREE.name):
            raise UsageError(f"check: {option.name}: what for? allowed: with {FREE.name}")
    free, within = check_input.free(arguments, FREE, WITHIN)
    count = arguments.value(COUNT.name, str(_COUNT))
    seconds = arguments.value(PREF64.name)
    nodes = ("networks.nodes", config.networks.nodes)
    nat64 = ("networks.nat64", config.networks.nat64)
    return Request(
        nodes=check_input.named(arguments, NODES, values.network, check_input.NETWORKS, nodes),
        others=check_input.others(arguments, OTHER, config),
        peers=check_input.peers(arguments, PEER, config),
        ipv6=arguments.value(IPV6.name) or config.check.ipv6,
        masks=check_input.node_masks(arguments, NODE_MASK, config),
        free=free,
        within=within,
        most=check_input.whole_number(count, COUNT, _COUNT_MOST),
        nat64=check_input.named(arguments, NAT64, values.nat64_prefix, check_input.NAT64, nat64),
        dns64=arguments.flag(DNS64.name),
        pref64=check_input.whole_number(seconds, PREF64, _SECONDS_MOST) if seconds else 0,
    )
