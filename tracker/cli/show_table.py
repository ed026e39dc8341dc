"""The tables of show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracker.cli.output import console, table

REASON_LEAST = 24
_UNBOUNDED = 1000

Reasons = Mapping[str, Mapping[str, str]]
"""Why a family has its address or none: by selection ("" = the node's) and family."""


def print_document(document: dict[str, Any], reasons: Reasons, *, lists: bool) -> None:
    """The primary addresses; `lists`: what Node.status.addresses is, and what follows."""
    out = console()
    families = document["families"]
    answers = {document["hostname"]: (document, reasons.get("", {}))}
    for name, answer in document["selections"].items():
        answers[f"selection {name}"] = answer, reasons.get(name, {})
    for title, (answer, why) in answers.items():
        shown = table("family", "address", "interface", "state", "scope", "reason")
        for row in _rows(answer, families, why):
            shown.add_row(*row)
        # A reason is folded, but not into a pillar: rather lines that are longer than the screen.
        shown.columns[-1].min_width = REASON_LEAST
        unbounded = out.options.update(max_width=_UNBOUNDED)
        out.width = max(out.width, out.measure(shown, options=unbounded).minimum)
        out.print(title, style="bold")
        out.print(shown)
    if lists:
        for key in ("addresses", "preferredAddresses"):
            entries = [f"{entry['type']} {entry['address']}" for entry in document[key]]
            out.print(f"{key}: {', '.join(entries) or 'none'}", soft_wrap=True)
        out.print(f"hostIPs: {', '.join(document['hostIPs']) or 'none'}", soft_wrap=True)
    warnings = [*document["warnings"]]
    for name, selection in document["selections"].items():
        warnings += [f"{name}: {text}" for text in selection["warnings"]]
    for text in warnings:
        out.print(f"warning: {text}", style="yellow", soft_wrap=True)
    if document["stale"]:
        out.print("stale: the answer may be out of date", style="yellow")


def _rows(
    answer: dict[str, Any], families: list[str], reasons: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    """A row for each family, then what else there is."""
    primary = {ip["family"]: ip for ip in answer["ips"] if ip["primary"]}
    for family in families:
        state = answer["state"][family]
        ip = primary.get(family)
        if ip is None:
            yield family, "none", "", state, "", reasons.get(family, "")
        else:
            yield _row(ip, state)
    for ip in answer["ips"]:
        if not ip["primary"]:
            yield _row(ip, "")


def _row(ip: dict[str, Any], state: str) -> tuple[str, ...]:
    length = "" if ip["prefixlen"] is None else f"/{ip['prefixlen']}"
    address = f"{ip['ip']}{length}"
    return ip["family"], address, ip["interface"] or "", state, ip["scope"], ip["reason"]
