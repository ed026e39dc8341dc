"""addrtracker show: the node document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.cli import options
from tracker.cli.follow import configuration, look, missing
from tracker.cli.output import print_json, wants_table, warn
from tracker.node import node_document

if TYPE_CHECKING:
    from tracker.cli.options import Arguments

OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.FROM,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """0, or 1 where a required family has no address."""
    config = configuration(arguments)
    if files := arguments.values("--from"):
        from tracker.cli.play import play  # noqa: PLC0415 - only for files

        played = play(files, config, arguments)
        config, session = played.config, played.session
    else:
        session = look(arguments, config)
    decision = session.decision()
    document = node_document(decision, config.networks)
    if wants_table(arguments):
        _print_table(document, {f: c.reason for f, c in decision.choices.items()})
    else:
        print_json(document)
    lines = missing(config, decision)
    for line in lines:
        warn(line)
    return 1 if lines else 0


def _print_table(document: dict[str, Any], reasons: dict[str, str]) -> None:
    from tracker.cli.output import console, table  # noqa: PLC0415 - JSON needs none

    shown = table("family", "address", "interface", "state", "scope", "reason")
    by_family = {ip["family"]: ip for ip in document["ips"] if ip["primary"]}
    for family in document["families"]:
        ip = by_family.get(family)
        state = document["state"][family]
        if ip is None:
            shown.add_row(family, "none", "", state, "", reasons[family])
        else:
            address = f"{ip['ip']}/{ip['prefixlen']}"
            shown.add_row(family, address, ip["interface"], state, ip["scope"], ip["reason"])
    out = console()
    out.print(document["hostname"], style="bold")
    out.print(shown)
    for text in document["warnings"]:
        out.print(f"warning: {text}", style="yellow", soft_wrap=True)
    if document["stale"]:
        out.print("stale: the answer may be out of date", style="yellow")
