"""addrtracker show: the node document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.cli import options, show_request
from tracker.cli.follow import configuration, look, missing
from tracker.cli.output import print_json, wants_table, warn
from tracker.model import FAMILIES
from tracker.node import Scopes, node_document
from tracker.session import NODE

if TYPE_CHECKING:
    from tracker.cli.options import Arguments
    from tracker.cli.play import Played
    from tracker.cli.show_request import Request
    from tracker.config import Config
    from tracker.model import Decision
    from tracker.profiles.host import Host
    from tracker.session import Session

OPTIONS = (
    options.CONFIG,
    options.NETNS,
    options.OUTPUT,
    options.LOCAL,
    options.FROM,
    options.SOURCE,
    options.LOADER,
    options.ENGINE,
    *show_request.OPTIONS,
)
WORDS = (0, 0, "")


def run(arguments: Arguments) -> int:
    """0, or 1 where a required family has no address."""
    config = configuration(arguments)
    request = show_request.read(arguments)
    played: Played | None = None
    if files := arguments.values("--from"):
        from tracker.cli.play import play  # noqa: PLC0415 - only for files

        played = play(files, config, arguments, look=True)
        config, session = played.config, played.session
    else:
        session = look(arguments, config)
    decision = session.decision()
    document = node_document(decision, config.networks, request.preferred)
    if not request.plain:
        document = _formed(document, request, config, session, played)
    # Where the kubelet decides, or is told, our own answer is not what the node gets.
    own = request.form != show_request.KUBELET and request.node_ips is None
    lines = missing(config, decision) if own else []
    if arguments.flag(show_request.PATCH.name):
        if not lines:  # nobody shall take away what a node has
            print_json(_patch(document))
    elif wants_table(arguments):
        from tracker.cli.show_table import print_document  # noqa: PLC0415 - JSON needs none

        lists = not request.plain or arguments.flag(show_request.PREFERRED.name)
        print_document(document, _reasons(decision), lists=lists)
    else:
        print_json(document)
    for line in lines:
        warn(line)
    return 1 if lines else 0


def _formed(
    document: dict[str, Any],
    request: Request,
    config: Config,
    session: Session,
    played: Played | None,
) -> dict[str, Any]:
    from tracker.cli.host import live_host, played_host  # noqa: PLC0415 - few ask for it
    from tracker.cli.show_forms import Surroundings, formed  # noqa: PLC0415

    def host() -> Host:
        return live_host(document["hostname"]) if played is None else played_host(played)

    index = list(session.policies).index(NODE)
    rows = {row.address: row for family in FAMILIES for row in session.engine.rows(index, family)}
    return formed(document, request, Surroundings(Scopes(config.networks), rows, host))


def _patch(document: dict[str, Any]) -> dict[str, Any]:
    from tracker.nodeip.addresses import NodeAddress, status_patch  # noqa: PLC0415 - few ask for it

    addresses = (NodeAddress(entry["type"], entry["address"]) for entry in document["addresses"])
    body: dict[str, Any] = status_patch(addresses)["body"]
    return body


def _reasons(decision: Decision) -> dict[str, dict[str, str]]:
    selections = {NODE: decision.choices, **decision.selections}
    return {
        name: {family: choice.reason for family, choice in choices.items()}
        for name, choices in selections.items()
    }
