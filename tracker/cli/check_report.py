"""What `check` says: text for people, JSON for programs."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracker.clusternet.finding import Finding, Severity
from tracker.clusternet.primary import Primary
from tracker.clusternet.ranges import IPNetwork
from tracker.clusternet.transition import Stage

SCHEMA = "addrtracker.check/v1"
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "none"}


class Report(NamedTuple):
    """All of it."""

    configuration: str | None
    """The file; None = defaults."""
    hostname: str
    primary: dict[str, Primary | None]
    selections: dict[str, dict[str, Primary]]
    """The addresses of named ones, by family."""
    findings: list[Finding]
    stage: Stage
    free: list[IPNetwork] | None
    """None: nobody asked."""
    skipped: tuple[str, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """As programs read it (addrtracker.check/v1)."""
        return {
            "schema": SCHEMA,
            "configuration": self.configuration,
            "hostname": self.hostname,
            "primary": {f: p.address if p is not None else None for f, p in self.primary.items()},
            "selections": {
                name: {f: p[f].address if f in p else None for f in self.primary}
                for name, p in self.selections.items()
            },
            "counts": {severity.value: self.count(severity) for severity in Severity},
            "findings": [finding._asdict() for finding in self.findings],
            "stage": self.stage.as_json(),
            "free": None if self.free is None else list(map(str, self.free)),
            "skipped": list(self.skipped),
        }


def print_report(report: Report) -> None:
    """A line for each finding, the worst first, then where the cluster stands."""
    from tracker.cli.output import console  # noqa: PLC0415 - JSON needs none

    out = console()
    out.print(report.hostname, style="bold")
    own = [primary for primary in report.primary.values() if primary is not None]
    named = [each for primaries in report.selections.values() for each in primaries.values()]
    for each in (*own, *named):
        out.print(f"{each.role} {each.address} on {each.interface}", soft_wrap=True)
    out.print(f"configuration: {report.configuration or 'defaults'}", soft_wrap=True)
    for finding in report.findings:
        line = f"{finding.severity.value:<7}  {finding.code}: {finding.text}"
        out.print(line, style=_STYLES[finding.severity], soft_wrap=True)
    counts = ", ".join(_counted(report.count(severity), severity) for severity in Severity)
    out.print(counts, style="bold")
    for line in _stage_lines(report.stage):
        out.print(line, soft_wrap=True)
    for network in report.free or ():
        out.print(f"free: {network}")
    if report.skipped:
        out.print(f"not looked at, for this is a file: {', '.join(report.skipped)}", soft_wrap=True)


def _counted(count: int, severity: Severity) -> str:
    return f"{count} {severity.value}{'' if count == 1 else 's'}"


def _stage_lines(stage: Stage) -> list[str]:
    following = f", next {stage.next}" if stage.next else ""
    lines = [f"stage: {stage.now}{following}"]
    lines += [f"  {part}: {', '.join(found) or 'not known'}" for part, found in stage.parts.items()]
    lines += [f"  missing: {line}" for line in stage.missing]
    lines += [f"  NAT64: {found['prefix']} ({found['source']})" for found in stage.nat64]
    lines += [f"  CLAT: {link}" for link in stage.clat]
    return lines
