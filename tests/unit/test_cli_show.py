"""addrtracker show, from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.unit.command import ENGINE, HOST, Answer, address, default, link, run, write
from tracker.capture import choose
from tracker.capture.base import Wake
from tracker.capture.choose import Chosen
from tracker.capture.fields import Fields
from tracker.capture.record import Dump, Header, Op, Phase, Record, encode
from tracker.capture.snapshot import read as read_snapshot
from tracker.cli import follow
from tracker.clock import SystemClock
from tracker.engine.reference import ReferenceEngine
from tracker.model import Scope

if TYPE_CHECKING:
    from tracker.capture.base import Source


@pytest.fixture
def show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def shown(host: dict[str, Any], *arguments: str, config: str | None = None) -> Answer:
        extra: tuple[str, ...] = ()
        if config is not None:
            path = tmp_path / "addrtracker.toml"
            path.write_text(config)
            extra = ("--config", str(path))
        return run(capsys, "show", "--from", write(tmp_path, host), *ENGINE, *extra, *arguments)

    return shown


NONE: dict[str, Any] = {"links": [link(1, "lo"), link(2, "eth0")], "addresses": [], "routes": []}
ONLY_IPV4 = {
    **NONE,
    "addresses": [address(2, "192.0.2.10/24")],
    "routes": [default(2, "192.0.2.1")],
}


def test_json_is_the_node_document(show: Any) -> None:
    answer = show(HOST, "--output", "json")
    assert (answer.status, answer.err) == (0, "")
    document = answer.json
    assert document["schema"] == "addrtracker.node/v1"
    assert document["hostname"] == "n1"
    assert document["primary"] == {"ipv4": "192.0.2.10", "ipv6": "2001:db8::10"}
    assert document["state"] == {"ipv4": "stable", "ipv6": "stable"}
    assert [ip["interface"] for ip in document["ips"]] == ["eth0", "eth0"]
    assert document["hostIPs"] == ["192.0.2.10", "2001:db8::10"]


def test_json_is_what_a_pipe_gets(show: Any) -> None:
    assert show(HOST).json == show(HOST, "--output", "json").json


def test_a_table_has_a_row_for_each_family(show: Any) -> None:
    answer = show(ONLY_IPV4, "--output", "table")
    assert answer.status == 0
    rows = {line.split()[0]: line for line in answer.out.splitlines() if line.strip()}
    assert "192.0.2.10/24" in rows["ipv4"]
    assert "eth0" in rows["ipv4"]
    assert "none" in rows["ipv6"]


def test_one_family_is_enough_unless_both_are_required(show: Any) -> None:
    assert show(ONLY_IPV4).status == 0
    required = show(ONLY_IPV4, config='require = ["ipv6"]')
    assert required.status == 1
    assert required.json["primary"] == {"ipv4": "192.0.2.10", "ipv6": None}
    assert required.err == (
        "addrtracker: no ipv6 address: no default route in table main; "
        "fallback auto: no eligible address\n"
    )


def test_no_address_at_all_says_why_for_each_family(show: Any) -> None:
    answer = show(NONE)
    assert answer.status == 1
    assert answer.json["primary"] == {"ipv4": None, "ipv6": None}
    assert answer.json["state"] == {"ipv4": "none", "ipv6": "none"}
    lines = answer.err.splitlines()
    assert [line.split(":")[1] for line in lines] == [" no ipv4 address", " no ipv6 address"]


def test_the_configuration_decides(show: Any) -> None:
    answer = show(HOST, config='families = ["ipv6", "ipv4"]\n[select]\nstatic = ["198.51.100.10"]')
    assert answer.json["primary"]["ipv4"] == "198.51.100.10"
    assert answer.json["hostIPs"] == ["2001:db8::10", "198.51.100.10"]
    excluded = show(HOST, config='[exclude]\naddresses = ["192.0.2.10"]')
    assert excluded.json["primary"]["ipv4"] == "198.51.100.10"


def test_a_case_brings_its_own_configuration(show: Any) -> None:
    case = {"id": "x", "input": {**HOST, "config": {"exclude": ["192.0.2.10"]}}}
    assert show(case).json["primary"]["ipv4"] == "198.51.100.10"
    assert show(case, config="").json["primary"]["ipv4"] == "192.0.2.10"


def test_a_case_of_an_unknown_mode_is_one_line(show: Any) -> None:
    answer = show({"id": "x", "input": {**HOST, "config": {"policy": "random"}}})
    assert answer.status == 2
    assert 'host.json: select.mode = "random"; allowed: "default-route", ' in answer.err
    assert answer.err.count("\n") == 1


def test_a_case_has_the_answer_of_its_mode(show: Any) -> None:
    config = {"policy": "cidr", "cidrs": ["192.0.2.0/24"]}
    answer = show({"id": "x", "input": {**HOST, "config": config}})
    assert answer.json["primary"]["ipv4"] == "192.0.2.10"
    assert answer.json["ips"][0]["reason"] == "mode cidr: inside 192.0.2.0/24"


class Broken:
    """A source on a kernel that answers dumps of some scopes only."""

    name = "broken"
    dump_error = "broken"

    def __init__(self, failing: set[Scope]) -> None:
        self.engine = ReferenceEngine()
        self.engine.lose(tuple(Scope))
        snapshot = read_snapshot(Fields(ONLY_IPV4, "host.json"))
        self._kernel = snapshot.stand_in(SystemClock().boot_ns())
        self._failing = failing

    def wait(self, deadline_ns: int) -> Wake:
        return Wake.TIMEOUT

    drain = refresh = close = lambda self: None

    def dump(self, scope: Scope, ifindex: int = 0, table: int = 0, *, audit: bool = False) -> bool:
        now = SystemClock().boot_ns()
        failed = scope in self._failing
        begin = Dump(scope, Phase.BEGIN, ifindex, table)
        entries = [] if failed else self._kernel.dump(scope, ifindex, table)
        end = begin._replace(phase=Phase.FAIL if failed else Phase.END)
        head = Header(Op.NEW, now)
        records = [Record(head, begin), *entries, Record(head, end)]
        self.engine.apply(b"".join(map(encode, records)))
        return not failed


def look_at(source: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "RETRY_NS", 0)
    monkeypatch.setattr(choose, "open_source", lambda *_, **__: Chosen(cast("Source", source), ()))


def test_a_kernel_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look_at(Broken({Scope.ADDR4, Scope.ADDR6}), monkeypatch)
    line = "addrtracker: cannot be read from the kernel: addr4, addr6\n"
    assert run(capsys, "show") == (4, "", line)


def test_what_could_be_read_is_shown_as_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look_at(Broken({Scope.NEXTHOP}), monkeypatch)
    answer = run(capsys, "show")
    assert answer.status == 0
    assert answer.json["primary"]["ipv4"] == "192.0.2.10"
    assert answer.json["stale"] is True
    assert answer.err == "addrtracker: cannot be read from the kernel: nexthop\n"


def test_several_files_that_ip_wrote_are_one_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = [
        {
            "ifindex": 2,
            "ifname": "eth0",
            "flags": ["BROADCAST", "UP", "LOWER_UP"],
            "addr_info": [
                {"family": "inet", "local": "192.0.2.10", "prefixlen": 24, "scope": "global"}
            ],
        }
    ]
    routes = [{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "metric": 100}]
    files = [write(tmp_path, links, "a.json"), write(tmp_path, routes, "r.json")]
    answer = run(capsys, "show", "--from", *files, *ENGINE)
    assert answer.json["primary"]["ipv4"] == "192.0.2.10"
