"""What `show` is asked for beyond the node document: a form, a provider's list, an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracker.cli.options import Option
from tracker.cli.output import warn
from tracker.errors import InputError, UsageError
from tracker.nodeip.addresses import EXTERNAL_IP, INTERNAL_IP, PREFERRED_TYPES, NodeAddress
from tracker.nodeip.arguments import NodeIPError, parse_argument, sloppy_ip
from tracker.printable import quoted

if TYPE_CHECKING:
    from tracker.capture.fields import Fields
    from tracker.cli.options import Arguments

NODE = "node"
INTERNAL_IPS = "internal-ips"
KUBELET = "kubelet"
FORMS = (NODE, INTERNAL_IPS, KUBELET)

AS = Option("--as", "one InternalIP per family alone, or today's kubelet", choices=FORMS)
PREFERRED = Option(
    "--preferred-address-types",
    "order of preferredAddresses, as the API server is told it",
    "TYPE,...",
)
PROVIDER = Option(
    "--provider-addresses",
    "what a cloud provider lists: what is published of it (JSON)",
    "FILE",
)
NODE_IP = Option("--node-ip", "the kubelet's flag (default: the primary addresses)", "IP[,IP]")
PATCH = Option("--status-patch", "a patch of Node.status with the addresses, for kubectl patch")
OPTIONS = (AS, PREFERRED, PROVIDER, NODE_IP, PATCH)


class Request(NamedTuple):
    """What the command line asks for."""

    form: str
    preferred: tuple[str, ...]
    listed: tuple[NodeAddress, ...] | None
    """What the provider lists; None = there is no provider."""
    node_ips: tuple[str, ...] | None
    """None: not given; () = the kubelet would take none of it."""

    @property
    def plain(self) -> bool:
        """Whether the node document is all that is wanted."""
        return self.form == NODE and self.listed is None


def read(arguments: Arguments) -> Request:
    """The request. Raises UsageError, InputError."""
    form = arguments.value(AS.name, NODE)
    path = arguments.value(PROVIDER.name)
    if path == "-" and "-" in arguments.values("--from"):
        raise UsageError(f"show: {PROVIDER.name} -: --from reads standard input; allowed: a file")
    if arguments.flag(NODE_IP.name) and form != KUBELET and not path:
        raise UsageError(
            f"show: {NODE_IP.name}: allowed with {PROVIDER.name} or {AS.name} {KUBELET}; "
            "select.static says which addresses are wanted"
        )
    return Request(
        form,
        _types(arguments),
        _listed(path) if path else None,
        _node_ips(arguments, provider=bool(path)),
    )


def _types(arguments: Arguments) -> tuple[str, ...]:
    if not arguments.flag(PREFERRED.name):
        return PREFERRED_TYPES
    types = tuple(part.strip() for part in arguments.value(PREFERRED.name).split(","))
    for kind in types:
        if kind not in PREFERRED_TYPES:
            allowed = ", ".join(PREFERRED_TYPES)
            raise UsageError(f'show: {PREFERRED.name}: "{quoted(kind)}"; allowed: {allowed}')
    return types


def _node_ips(arguments: Arguments, *, provider: bool) -> tuple[str, ...] | None:
    if not arguments.flag(NODE_IP.name):
        return None
    try:
        found = parse_argument(arguments.value(NODE_IP.name), "external" if provider else "")
    except NodeIPError as error:
        raise UsageError(f"show: {NODE_IP.name}: {error}") from None
    for item in found.invalid:
        warn(
            f'show: {NODE_IP.name}: "{quoted(item)}" is no address and left out, as by the kubelet'
        )
    return found.ips


def _listed(path: str) -> tuple[NodeAddress, ...]:
    """A list of addresses, a Node or its status with one."""
    from tracker.capture import fields as inputs  # noqa: PLC0415 - only where given

    values = inputs.json_values(inputs.as_text(inputs.read_bytes(path)), path)
    if len(values) > 1:
        raise InputError(f"{path}: {len(values)} JSON values; allowed: one")
    value = {"addresses": values[0]} if isinstance(values[0], list) else values[0]
    fields = inputs.Fields(value, path)
    if "addresses" not in fields and "status" in fields:
        fields = fields.nested("status")
    entries = fields.objects("addresses", required=True)
    # The API server takes no entry twice.
    return tuple(dict.fromkeys(_entry(entry) for entry in entries))


def _entry(fields: Fields) -> NodeAddress:
    entry = NodeAddress(fields.string("type"), fields.string("address"))
    # The API server takes anything for an address, and pods would get it.
    if entry.type in (INTERNAL_IP, EXTERNAL_IP) and sloppy_ip(entry.address) is None:
        raise fields.error("address", f"an IP address, as the type is {entry.type}")
    return entry
