"""addrtracker check: findings of a host in a file, options, exit status."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.unit.command import ENGINE, HOST, ROOT, Answer, address, default, link, run, write
from tracker.cli.check import OPTIONS
from tracker.cli.config_text import effective, to_toml
from tracker.cli.reloader import _differences
from tracker.config import Config
from tracker.configfile import parse

FINE = """
[networks]
pods = ["10.244.0.0/16", "fd7c:1d2e:3f40::/56"]
services = ["10.96.0.0/12", "fd7c:1d2e:3f41::/108"]
"""


class Check(Protocol):
    def __call__(
        self, config: str = FINE, *arguments: str, host: dict[str, Any] = HOST
    ) -> Answer: ...


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    def checked(config: str = FINE, *arguments: str, host: dict[str, Any] = HOST) -> Answer:
        path = tmp_path / "check.toml"
        path.write_text(config)
        given: list[str | Path] = ["--from", write(tmp_path, host), "--config", path, *ENGINE]
        return run(capsys, "check", *arguments, *given)

    return checked


def codes(answer: Answer) -> list[str]:
    return [finding["code"] for finding in answer.json["findings"]]


def host_with(*extra: dict[str, Any], name: str = "eth1", **values: Any) -> dict[str, Any]:
    """A host with one uplink and another link with these addresses."""
    return {
        "hostname": "n1",
        "links": [link(1, "lo"), link(2, "eth0"), link(3, name, **values)],
        "addresses": [address(1, "127.0.0.1/8"), address(2, "192.0.2.10/24"), *extra],
        "routes": [default(2, "192.0.2.1")],
    }


def test_a_host_and_a_cluster_that_fit(check: Check) -> None:
    answer = check()
    assert (answer.status, answer.err) == (0, "")
    report = answer.json
    assert report["schema"] == "addrtracker.check/v1"
    assert report["primary"] == {"ipv4": "192.0.2.10", "ipv6": "2001:db8::10"}
    assert report["counts"] == {"error": 0, "warning": 0, "note": 1}
    assert codes(answer) == ["ula-pods-global-node"]
    assert report["stage"]["now"] == "dual-stack"
    assert report["free"] is None
    assert "rp_filter" in report["skipped"]


def test_an_error_is_exit_status_1_and_has_fields(check: Check) -> None:
    answer = check('networks.pods = ["198.51.0.0/16"]\nnetworks.services = ["198.51.100.0/24"]')
    assert answer.status == 1
    first = answer.json["findings"][0]
    assert first.keys() == {"severity", "code", "text", "data"}
    assert first["severity"] == "error"
    assert {"overlap-pods-services", "overlap-host-pods"} <= set(codes(answer))


def test_warnings_are_no_failure(check: Check) -> None:
    host = host_with(address(2, "198.18.5.5/24"))
    answer = check('networks.public = ["10.0.0.0/8"]\nfamilies = ["ipv4"]', host=host)
    assert (answer.status, codes(answer)) == (0, ["public-not-global"])


def test_a_wrong_configuration_is_one_line_and_exit_status_2(check: Check) -> None:
    answer = check('networks.pods = ["10.0.0.1/8"]')
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "networks.pods" in answer.err


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("eth1", "device", ["overlap-host-pods"]),
        ("cni0", "bridge", []),
        ("flannel.1", "vxlan", []),
        ("docker0", "bridge", ["overlap-host-pods"]),
        ("anycast", "dummy", ["overlap-host-pods"]),
    ],
)
def test_the_networks_of_network_plugins_are_the_clusters(
    check: Check, name: str, kind: str, expected: list[str]
) -> None:
    host = host_with(address(3, "10.244.1.1/24"), name=name, kind=kind)
    config = 'families = ["ipv4"]\nnetworks.pods = ["10.244.0.0/16"]'
    assert codes(check(config, host=host)) == expected


def test_a_network_on_a_container_bridge_is_a_warning(check: Check) -> None:
    answer = check('networks.pods = ["172.16.0.0/12"]')
    [found] = [f for f in answer.json["findings"] if f["code"] == "overlap-host-pods"]
    assert found["severity"] == "warning"
    assert "docker0" in found["text"]


def test_an_exclusion_that_leaves_nothing_is_an_error(check: Check) -> None:
    config = 'families = ["ipv4"]\nexclude.cidrs = ["192.0.2.0/24"]'
    answer = check(config, host=host_with())
    assert answer.status == 1
    found = {finding["code"]: finding for finding in answer.json["findings"]}
    assert set(found) == {"no-address", "exclusion-hits-primary"}
    assert found["exclusion-hits-primary"]["text"] == (
        "exclude.cidrs 192.0.2.0/24 excludes 192.0.2.10 on eth0, which would be the ipv4 primary; "
        "nothing is left: take it out of exclude.cidrs"
    )


def test_an_exclusion_that_leaves_another_one_is_a_note(check: Check) -> None:
    answer = check('families = ["ipv4"]\nexclude.interfaces = ["eth0"]')
    [found] = answer.json["findings"]
    assert (found["severity"], found["code"]) == ("note", "exclusion-hits-primary")
    assert found["data"]["instead"] == "198.51.100.10"


def test_services_need_families_that_the_node_has(check: Check) -> None:
    config = 'networks.services = ["10.96.0.0/12", "fd7c:1d2e:3f41::/108"]'
    answer = check(config, host=host_with())
    assert answer.status == 1
    assert "family-node-lacks" in codes(answer)


def test_a_public_primary_is_said(check: Check) -> None:
    host = {
        **host_with(),
        "addresses": [address(2, "8.8.4.10/24")],
        "routes": [default(2, "8.8.4.1")],
    }
    assert codes(check('families = ["ipv4"]', host=host)) == ["primary-public"]
    internal = 'families = ["ipv4"]\nnetworks.internal = ["8.8.4.0/24"]'
    assert codes(check(internal, host=host)) == []


def test_a_clat_is_noticed(check: Check) -> None:
    host = host_with(address(3, "192.0.0.1/32"), name="tun0")
    assert check(host=host).json["stage"]["clat"] == ["tun0"]


def test_free_ranges_avoid_all_that_is_known(check: Check, tmp_path: Path) -> None:
    others = tmp_path / "others.txt"
    others.write_text("# ours\nb: 10.0.0.0/16, 10.1.0.0/16\n10.2.0.0/15 # no name\n\n")
    answer = check(FINE, "--free", "/16", "--count", "2", "--other", str(others), "10.4.0.0/16")
    assert answer.json["free"] == ["10.5.0.0/16", "10.6.0.0/16"]
    answer = check(FINE, "--free", "/25", "--within", "192.0.2.0/24")
    assert (answer.status, answer.json["free"]) == (1, [])
    assert codes(answer)[0] == "free-none"


def test_free_ipv6_ranges_are_unique_local_and_random(check: Check) -> None:
    found = {tuple(check(FINE, "--free", "/64", "--count", "2").json["free"]) for _ in range(3)}
    assert len(found) == 3
    assert all(len(ranges) == 2 and ranges[0].startswith("fd") for ranges in found)


def test_other_clusters_have_names(check: Check, tmp_path: Path) -> None:
    others = tmp_path / "others.txt"
    others.write_text("berlin: 10.244.8.0/24\n")
    [found] = [
        finding
        for finding in check(FINE, "--other", str(others)).json["findings"]
        if finding["code"] == "overlap-other-pods"
    ]
    assert "overlap 10.244.8.0/24 of cluster berlin" in found["text"]


def test_given_nat64_prefixes_count(check: Check) -> None:
    answer = check(FINE, "--nat64", "64:ff9b::/96")
    assert answer.json["stage"]["nat64"] == [{"prefix": "64:ff9b::/96", "source": "--nat64"}]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--nodes", "10.0.0.1/8"], 'check: --nodes: "10.0.0.1/8" has host bits set; the network'),
        (["--peer", "1.2.3.4"], "check: --peer: only the host itself can tell; allowed: without"),
        (["--dns64"], "check: --dns64: only the host itself can tell"),
        (["--within", "10.0.0.0/8"], "check: --within: what for? allowed: with --free"),
        (
            ["--free", "/33"],
            "check: --free: /33: nothing of that size is searched without --within",
        ),
        (
            ["--free", "/47"],
            "check: --free: /47: nothing of that size is searched without --within",
        ),
        (["--free", "/7"], "check: --free: /7: nothing of that size is searched without --within"),
        (["--free", "9" * 5000], f"check: --free: {'9' * 57}...; allowed: a prefix length"),
        (["--node-mask", "/24", "/25"], "check: --node-mask: two of one family; allowed: one for"),
        (["--nodes", "x" * 100_000], f'check: --nodes: "{"x" * 57}..." is not a network; allowed'),
        (["--free", "0"], "check: --free: 0; allowed: a prefix length such as /24 or /64"),
        (["--free", "/8", "--within", "10.0.0.0/16"], "check: --within: 10.0.0.0/16: no /8 of"),
        (["--free", "/24", "--count", "0"], "check: --count: 0; allowed: 1 to 1000"),
        (["--nat64", "64:ff9b::/95"], "check: --nat64: 64:ff9b::/95; allowed: IPv6 prefixes of"),
        (["--node-mask", "/129"], "check: --node-mask: /129; allowed: a prefix length"),
        (["--ipv6", "site"], "check: --ipv6 site; allowed: global, ula"),
        (["--other", "10.0.0.0/33"], 'check: --other: "10.0.0.0/33" has no such prefix length, a'),
        (["--other", "no-such-file"], 'check: --other: "no-such-file" is not a network, and'),
    ],
)
def test_wrong_options_are_one_line(check: Check, arguments: list[str], line: str) -> None:
    answer = check(FINE, *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"addrtracker: {line}")
    assert answer.err.count("\n") == 1


def test_a_wrong_line_in_a_file_is_named(check: Check, tmp_path: Path) -> None:
    others = tmp_path / "others.txt"
    others.write_text("b: 10.0.0.0/16\nc: 10.0.0.1/16\n")
    answer = check(FINE, "--other", str(others))
    assert answer.status == 2
    assert f"{others}: line 2:" in answer.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("10.1.0.0\n", '"10.1.0.0" is not a network'),
        ("10.1.0.0 10.2.0.0/16\n", '"10.1.0.0" is not a network'),
        ("berlin:\n", '"berlin:" has no networks'),
        ("fd00::\n", '"fd00::" has no networks'),
        ("[\n", '"[" is not a network'),
    ],
)
def test_what_is_no_network_is_no_name(check: Check, tmp_path: Path, text: str, line: str) -> None:
    others = tmp_path / "others.txt"
    others.write_text(text)
    answer = check(FINE, "--other", str(others))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"addrtracker: {others}: line 1: {line}")


def test_text_has_a_line_for_each_finding(check: Check) -> None:
    answer = check('families = ["ipv4"]\nexclude.interfaces = ["eth0"]', "--output", "table")
    lines = answer.out.splitlines()
    assert any(line.startswith("note     exclusion-hits-primary: exclude.int") for line in lines)
    assert "0 errors, 0 warnings, 1 note" in lines
    assert "stage: ipv4-only, next dual-stack" in lines


def test_text_shows_brackets_as_they_are(check: Check) -> None:
    answer = check('exclude.interfaces = ["eth[0]"]', "--output", "table")
    assert "exclude.interfaces eth[0] excludes" in answer.out


# What the configuration says of the cluster.


def test_what_the_cluster_is_like_may_stand_in_the_configuration(check: Check) -> None:
    config = """
        families = ["ipv4"]
        [networks]
        nodes = ["10.244.128.0/17"]
        pods = ["10.244.0.0/16"]
        nat64 = ["64:ff9b::/96"]
        others.berlin = ["10.244.8.0/24"]
        [check]
        ipv6 = "global"
        node_mask = [30]
    """
    answer = check(config)
    found = {finding["code"]: finding["text"] for finding in answer.json["findings"]}
    assert "nodes 10.244.128.0/17 (networks.nodes) overlap pods" in found["overlap-nodes-pods"]
    assert "of cluster berlin" in found["overlap-other-pods"]
    assert "is in no network of the nodes" in found["primary-outside-nodes"]
    assert "pod-range-nodes" in found
    assert answer.json["stage"]["nat64"] == [{"prefix": "64:ff9b::/96", "source": "networks.nat64"}]


def test_an_option_counts_instead_of_its_key(check: Check) -> None:
    config = """
        families = ["ipv4"]
        [networks]
        nodes = ["10.0.0.0/8"]
        nat64 = ["64:ff9b::/96"]
        pods = ["10.244.0.0/16"]
        others.berlin = ["10.244.8.0/24"]
        [check]
        node_mask = [8]
    """
    options = ("--nodes", "192.0.2.0/24", "--other", "10.9.0.0/16", "--node-mask", "/24")
    answer = check(config, *options, "--nat64", "64:ff9b:1::/48")
    assert codes(answer) == ["pod-range-nodes"]
    assert answer.json["stage"]["nat64"] == [{"prefix": "64:ff9b:1::/48", "source": "--nat64"}]


# Named selections.


STORAGE = """
families = ["ipv4"]
[selections.storage]
mode = "interface"
interfaces = ["eth1"]
"""


def test_the_address_of_a_named_selection_is_shown(check: Check) -> None:
    answer = check(STORAGE)
    assert answer.json["selections"] == {"storage": {"ipv4": "198.51.100.10", "ipv6": None}}
    assert answer.json["findings"] == []
    lines = check(STORAGE, "--output", "table").out.splitlines()
    assert "ipv4 address of selection storage 198.51.100.10 on eth1" in lines


def test_an_exclusion_that_hits_a_named_selection_is_said(check: Check) -> None:
    answer = check(STORAGE + '[exclude]\naddresses = ["198.51.100.10"]\n')
    found = {finding["code"]: finding for finding in answer.json["findings"]}
    assert found["exclusion-hits-primary"]["data"]["selection"] == "storage"
    assert (
        "would be the ipv4 address of selection storage; nothing is left"
        in (found["exclusion-hits-primary"]["text"])
    )
    assert found["selection-empty"]["severity"] == "warning"
    assert "explain --selection storage" in found["selection-empty"]["text"]


def test_an_exclusion_hits_what_is_left_of_a_list(check: Check) -> None:
    """Without the exclusion the mode still takes what its list has, and nothing else."""
    answer = check(STORAGE + '[exclude]\naddresses = ["192.0.2.10"]\n')
    assert [f["data"]["selection"] for f in answer.json["findings"]] == [None]


def test_an_exclusion_hits_what_a_mode_finds_out(check: Check) -> None:
    config = """
        families = ["ipv4"]
        [selections.storage]
        mode = "route-to"
        route_to = ["198.51.100.77"]
        [exclude]
        addresses = ["198.51.100.10"]
    """
    connected = {"family": "inet", "dst": "198.51.100.0/24", "oif": 3, "table": 254}
    host = {**HOST, "routes": [*HOST["routes"], connected]}
    [found] = check(config, host=host).json["findings"]
    assert found["code"] == "exclusion-hits-primary"
    data = found["data"]
    assert (data["selection"], data["primary"]) == ("storage", "198.51.100.10")
    assert data["instead"] == "192.0.2.10", "by its fallback"


def test_a_named_selection_may_be_open_to_the_internet(check: Check) -> None:
    host = host_with(address(3, "8.8.4.10/24"))
    assert codes(check(STORAGE, host=host)) == []
    host["routes"].append(default(3, "8.8.4.1", 200))
    [found] = check(STORAGE, host=host).json["findings"]
    assert (found["code"], found["data"]["selection"]) == ("primary-public", "storage")


def test_a_name_that_kubernetes_refuses_is_said(check: Check) -> None:
    answer = check('families = ["ipv4"]', host={**HOST, "hostname": "Node_1"})
    [found] = answer.json["findings"]
    assert (found["severity"], found["code"]) == ("warning", "hostname-refused")


# The effective configuration.

WRITTEN = """
state = ""
hostname = "n2"
families = ["ipv6", "ipv4"]
require = ["ipv6"]
[select]
static = ["192.0.2.10"]
table = 100
fallback = "interface:eth*"
[exclude]
interfaces = ["!docker0", "stor[0-9]"]
addresses = ["192.0.2.99"]
cidrs = ["198.51.100.0/24"]
[networks]
pods = ["10.244.0.0/16"]
services = ["10.96.0.0/12"]
internal = ["192.0.2.0/24"]
nodes = ["192.0.2.0/24"]
public = ["203.0.113.0/24"]
external = ["203.0.113.9"]
nat64 = ["64:ff9b::/96"]
[networks.others]
berlin = ["10.1.0.0/16", "fd12:3456:789a::/48"]
"b.example" = []
[selections.storage]
mode = "cidr"
cidrs = ["10.9.0.0/24"]
[check]
peers = ["203.0.113.1", "storage=10.9.0.1"]
ipv6 = "global"
node_mask = [24, 64]
[stability]
settle = "1500ms"
settle_max = "1m"
hold = "0s"
failback = "90s"
[publish.files]
directory = "/run/other"
[metrics]
listen = "[::1]:9000"
[capture]
source = "netlink"
loader = "bcc"
ring = "256KiB"
trace = "off"
audit = "never"
"""


@pytest.mark.parametrize("text", ["", FINE, WRITTEN, 'metrics.listen = ""'])
def test_what_is_printed_reads_as_what_is_in_effect(text: str) -> None:
    config = parse(text.encode(), "/etc/addrtracker.toml")
    again = parse(to_toml(config).encode(), "/etc/addrtracker.toml")
    assert again == config


def test_print_prints_toml_and_checks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(WRITTEN)
    answer = run(capsys, "check", "--print", "--config", path)
    assert (answer.status, answer.err) == (0, "")
    assert tomllib.loads(answer.out) == effective(parse(WRITTEN.encode(), "-"))
    as_json = run(capsys, "check", "--print", "--output", "json", "--config", path)
    assert as_json.json == tomllib.loads(answer.out)


def test_what_went_out_of_a_table_differs() -> None:
    """A reload logs what changed key by key, and clusters come and go."""
    before = effective(parse(WRITTEN.encode(), "-"))
    after = effective(parse(WRITTEN.replace('"b.example" = []', "").encode(), "-"))
    assert list(_differences(before, after)) == [("networks.others.b.example", [], None)]
    assert list(_differences(after, before)) == [("networks.others.b.example", None, [])]


def test_families_that_nobody_wrote_stay_a_comment() -> None:
    lines = to_toml(Config("n1")).splitlines()
    assert lines[0] == "# defaults"
    assert '# families = ["ipv4", "ipv6"]' in lines


# Documentation.


def test_every_code_is_documented() -> None:
    documented = (ROOT / "docs/check.md").read_text()
    sources = [*(ROOT / "tracker/clusternet").glob("*.py"), *(ROOT / "tracker/cli").glob("check*")]
    called = re.compile(r'\b(?:error|warning|note|make)\(\s*"([a-z0-9-]+)"')
    found = {code for source in sources for code in called.findall(source.read_text())}
    assert len(found) > 25
    assert {code for code in found if f"`{code}`" not in documented} == set()


def test_every_option_is_documented() -> None:
    documented = (ROOT / "docs/check.md").read_text()
    shared = {"--config", "--output", "--source", "--loader", "--engine"}
    own = {option.name for option in OPTIONS} - shared
    assert {name for name in own if f"`{name}" not in documented} == set()
