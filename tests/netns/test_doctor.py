"""Doctor tells the truth, with and without privileges."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.netns.daemon import COMMAND
from tests.tiers import BCC, BPF, NETLINK, Tier

if TYPE_CHECKING:
    from tests.netns.namespace import Namespace

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def only(*capabilities: str) -> tuple[str, ...]:
    """A command line that runs a program as nobody, with these capabilities alone."""
    wanted = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    return (*NOBODY, f"--inh-caps={wanted}", f"--ambient-caps={wanted}", f"--bounding-set={wanted}")


def doctor(host: Namespace, *options: str, by: tuple[str, ...] = ()) -> dict[str, Any]:
    """Its report."""
    command = [*by, COMMAND, "doctor", "--output", "json", *options]
    done = subprocess.run(host.command(command), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def finding(report: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    return next(entry for entry in report[section] if entry["name"] == name)


@pytest.mark.parametrize(
    ("way", "loader", "attribution", "ring"),
    [
        (BPF, "libbpf", True, 1 << 20),
        (BCC, "bcc", False, 1 << 20),
        (NETLINK, None, False, None),
    ],
    ids=str,
)
def test_doctor_says_what_is_in_use(
    host: Namespace, way: Tier, loader: str | None, attribution: bool, ring: int | None
) -> None:
    source = doctor(host, *way.options)["source"]
    assert (source["name"], source["loader"]) == (way.source, loader)
    assert (source["attribution"], source["ring"]) == (attribution, ring)


def test_what_doctor_found_is_what_is_used(host: Namespace) -> None:
    report = doctor(host)
    source, trace = report["source"], report["source"]["trace"]
    assert source["name"] == "bpf"
    assert finding(report, "features", "task-identity")["ok"] == source["attribution"]
    ways = {"fentry": "fentry", "kprobes": "kprobe"}
    works = [way for name, way in ways.items() if finding(report, "features", name)["ok"]]
    assert trace["way"] == next(iter(works), trace["way"])
    assert trace["way"] or trace["passed_over"], "none, and no word of why"


def test_without_capabilities_netlink_is_used_and_why_is_said(host: Namespace) -> None:
    report = doctor(host, by=only())
    source = report["source"]
    assert source["name"] == "netlink"
    [why] = source["passed_over"]
    assert why.startswith("source bpf: cannot make BPF maps")
    assert why.endswith("Operation not permitted")
    assert finding(report, "features", "bpf-maps")["value"].endswith("Operation not permitted")
    for name in ("CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"):
        assert not finding(report, "capabilities", name)["ok"]


def test_without_perfmon_all_works_but_the_names(host: Namespace) -> None:
    source = doctor(host, by=only("bpf", "net_admin"))["source"]
    assert (source["name"], source["loader"], source["attribution"]) == ("bpf", "libbpf", False)
    assert source["passed_over"] == ["names of processes: this process has no CAP_PERFMON"]


def test_three_capabilities_are_enough(host: Namespace) -> None:
    report = doctor(host, by=only("bpf", "perfmon", "net_admin"))
    source = report["source"]
    assert (source["name"], source["attribution"]) == ("bpf", True)
    assert source["passed_over"] == []
    assert finding(report, "features", "socket-filter")["ok"]


def test_the_whole_log_of_a_refused_program_can_be_had(host: Namespace) -> None:
    report = doctor(host, "--verifier-log", by=only("bpf"))
    logs = report["verifier_log"]
    assert logs["socket-filter"] == ""
    assert logs["task-identity"], "without CAP_PERFMON it is refused"
    assert "\n" in logs["task-identity"]
