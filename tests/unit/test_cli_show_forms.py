"""Forms of the node document: a provider's list, one InternalIP each, today's kubelet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.command import ENGINE, HOST, Answer, address, default, link, run, write
from tests.unit.test_node import choice, decision, extra
from tracker.cli.show_table import print_document
from tracker.config import Networks
from tracker.node import node_document

LISTED = [
    {"type": "Hostname", "address": "n1"},
    {"type": "ExternalIP", "address": "203.0.113.7"},
    {"type": "InternalIP", "address": "198.51.100.10"},
    {"type": "InternalIP", "address": "192.0.2.10"},
    {"type": "InternalIP", "address": "2001:DB8:0::10"},
    {"type": "InternalDNS", "address": "n1.internal"},
]
"""A provider that orders addresses in its own way, and spells them so."""


@pytest.fixture
def show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def shown(*arguments: str, host: Any = HOST, config: str = "", listed: Any = None) -> Answer:
        path = tmp_path / "addrtracker.toml"
        path.write_text(config)
        given = ["--config", str(path), *arguments]
        if listed is not None:
            given += ["--provider-addresses", str(write(tmp_path, listed, "provider.json"))]
        return run(capsys, "show", "--from", write(tmp_path, host), *ENGINE, *given)

    return shown


def flat(document: dict[str, Any], key: str = "addresses") -> list[tuple[str, str]]:
    return [(entry["type"], entry["address"]) for entry in document[key]]


def test_the_primary_addresses_come_first_in_a_providers_list(show: Any) -> None:
    answer = show(listed=LISTED)
    assert (answer.status, answer.err) == (0, "")
    document = answer.json
    assert document["schema"] == "addrtracker.node/v1"
    assert flat(document) == [
        ("InternalIP", "192.0.2.10"),
        ("InternalIP", "2001:DB8:0::10"),
        ("Hostname", "n1"),
        ("ExternalIP", "203.0.113.7"),
        ("InternalDNS", "n1.internal"),
    ]
    assert document["primary"] == {"ipv4": "192.0.2.10", "ipv6": "2001:db8::10"}
    assert document["hostIPs"] == ["192.0.2.10", "2001:db8::10"]
    ips = {ip["ip"]: ip for ip in document["ips"]}
    assert ips["192.0.2.10"]["reason"] == "default-route metric 100"
    assert (ips["203.0.113.7"]["scope"], ips["203.0.113.7"]["interface"]) == ("External", None)
    assert "198.51.100.10" not in ips


def test_the_configured_order_of_families_is_that_of_the_list(show: Any) -> None:
    document = show(config='families = ["ipv6", "ipv4"]', listed=LISTED).json
    assert flat(document)[:2] == [("InternalIP", "2001:DB8:0::10"), ("InternalIP", "192.0.2.10")]
    assert document["families"] == ["ipv6", "ipv4"]


def test_a_single_family_leaves_no_internal_ip_of_the_other(show: Any) -> None:
    document = show(config='families = ["ipv6"]', listed=LISTED).json
    assert [a for kind, a in flat(document) if kind == "InternalIP"] == ["2001:DB8:0::10"]
    assert document["primary"] == {"ipv4": None, "ipv6": "2001:db8::10"}


@pytest.mark.parametrize(
    "value",
    [
        {"addresses": LISTED},
        {"status": {"addresses": LISTED}, "kind": "Node"},
        [*LISTED, LISTED[3]],
    ],
)
def test_the_list_may_be_that_of_a_node_or_its_status(show: Any, value: Any) -> None:
    assert flat(show(listed=value).json) == flat(show(listed=LISTED).json)


def test_an_address_that_the_provider_lacks_is_refused(show: Any) -> None:
    answer = show(listed=LISTED[:3])
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == (
        "addrtracker: show: --provider-addresses: node IP 192.0.2.10 is not among the provider's "
        "addresses: n1, 203.0.113.7, 198.51.100.10\n"
    )


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ({}, "addresses: missing; allowed: a list"),
        ([{"type": "InternalIP"}], "addresses[0].address: missing; allowed: a string"),
        ([{"address": "1.2.3.4"}], "addresses[0].type: missing; allowed: a string"),
        (
            [{"type": "InternalIP", "address": "fe80::1%eth0"}],
            (
                'addresses[0].address: "fe80::1%eth0"; allowed: an IP address, '
                "as the type is InternalIP"
            ),
        ),
        ("x", '"x"; allowed: an object'),
        ({"status": {"addresses": 1}}, "status.addresses: 1; allowed: a list"),
    ],
)
def test_a_wrong_list_is_one_line(show: Any, listed: Any, said: str) -> None:
    answer = show(listed=listed)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.endswith(f"provider.json: {said}\n")
    assert answer.err.count("\n") == 1


def test_a_list_that_is_not_there_is_one_line(show: Any) -> None:
    answer = show("--provider-addresses", "/nowhere")
    assert answer.status == 2
    assert answer.err.startswith("addrtracker: /nowhere: No such file")


def test_the_list_may_come_through_a_pipe(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert show("--from", "-", "--provider-addresses", "-").err == (
        "addrtracker: show: --provider-addresses -: --from reads standard input; allowed: a file\n"
    )


def test_node_ip_takes_the_place_of_the_answer(show: Any) -> None:
    answer = show("--node-ip", " 198.51.100.010", listed=LISTED)
    assert (answer.status, answer.err) == (0, "")
    document = answer.json
    assert flat(document)[0] == ("InternalIP", "198.51.100.10")
    assert document["families"] == ["ipv4"]
    assert document["primary"] == {"ipv4": "198.51.100.10", "ipv6": None}
    assert document["state"] == {"ipv4": "stable", "ipv6": "none"}
    assert (
        "ipv4: --node-ip 198.51.100.10 is not what the policy chooses: 192.0.2.10"
        in document["warnings"]
    )


def test_an_unspecified_node_ip_asks_the_provider_for_nothing(show: Any) -> None:
    document = show("--node-ip", "::", listed=LISTED).json
    assert document["addresses"] == LISTED


@pytest.mark.parametrize(
    ("value", "status", "said"),
    [
        ("192.0.2.10,198.51.100.10", 2, "has two ipv4 addresses"),
        ("192.0.2.10,::ffff:198.51.100.10", 2, "has two ipv4 addresses"),
        ("0.0.0.0,2001:db8::10", 2, "has 0.0.0.0 in a pair"),
        ("198.51.100.99", 1, "not found in the host's network interfaces"),
        ("127.0.0.1", 1, "can't be a loopback address"),
    ],
)
@pytest.mark.parametrize("form", ["node", "kubelet"])
def test_a_node_ip_that_the_kubelet_refuses_is_one_line(
    show: Any, value: str, status: int, said: str, form: str
) -> None:
    answer = show("--as", form, "--node-ip", value, listed=LISTED)
    assert (answer.status, answer.out) == (status, "")
    assert answer.err.startswith("addrtracker: show: --node-ip: ")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_what_is_no_address_is_left_out_with_a_word(show: Any) -> None:
    answer = show("--as", "kubelet", "--node-ip", "eth0,198.51.100.10")
    assert answer.status == 0
    assert answer.json["primary"]["ipv4"] == "198.51.100.10"
    assert answer.err == (
        'addrtracker: show: --node-ip: "eth0" is no address and left out, as by the kubelet\n'
    )


def test_node_ip_needs_somebody_who_takes_it(show: Any) -> None:
    answer = show("--node-ip", "198.51.100.10")
    assert answer.status == 2
    assert "allowed with --provider-addresses or --as kubelet" in answer.err


def test_internal_ips_are_one_of_each_family_and_nothing_else(show: Any) -> None:
    config = '[networks]\nexternal = ["203.0.113.9"]'
    document = show("--as", "internal-ips", config=config).json
    assert flat(document) == [("InternalIP", "192.0.2.10"), ("InternalIP", "2001:db8::10")]
    assert document["addresses"] == document["preferredAddresses"]
    assert [ip["ip"] for ip in document["ips"]] == ["192.0.2.10", "2001:db8::10"]
    assert document["hostIPs"] == ["192.0.2.10", "2001:db8::10"]
    merged = show("--as", "internal-ips", listed=LISTED).json
    assert flat(merged) == [("InternalIP", "192.0.2.10"), ("InternalIP", "2001:DB8:0::10")]


@pytest.mark.parametrize(
    ("families", "wanted"),
    [
        (["ipv4"], ["192.0.2.10"]),
        (["ipv6"], ["2001:db8::10"]),
        (["ipv6", "ipv4"], ["2001:db8::10", "192.0.2.10"]),
    ],
)
def test_there_are_as_many_as_there_are_wanted_families(
    show: Any, families: list[str], wanted: list[str]
) -> None:
    document = show("--as", "internal-ips", config=f"families = {json.dumps(families)}").json
    assert [entry["address"] for entry in document["addresses"]] == wanted


def test_the_kubelet_of_today_publishes_one_address(show: Any) -> None:
    document = show("--as", "kubelet").json
    assert flat(document) == [("InternalIP", "192.0.2.10"), ("Hostname", "n1")]
    assert document["families"] == ["ipv4"]
    assert document["primary"] == {"ipv4": "192.0.2.10", "ipv6": None}
    [ip] = document["ips"]
    assert (ip["interface"], ip["prefixlen"], ip["primary"]) == ("eth0", 24, True)
    assert "/proc/net/route" in ip["reason"]


def test_the_kubelet_of_today_heeds_no_policy(show: Any) -> None:
    # It reads no metrics: the first default route of the file is its own.
    host = {**HOST, "routes": [default(3, "198.51.100.1", 200), default(2, "192.0.2.1")]}
    config = 'families = ["ipv6"]\n[exclude]\naddresses = ["198.51.100.10"]'
    document = show("--as", "kubelet", host=host, config=config).json
    assert document["primary"] == {"ipv4": "198.51.100.10", "ipv6": None}
    assert document["warnings"] == []


def test_the_kubelet_of_today_takes_a_pair_in_its_order(show: Any) -> None:
    document = show("--as", "kubelet", "--node-ip", "2001:db8::10,198.51.100.10").json
    assert flat(document) == [
        ("InternalIP", "2001:db8::10"),
        ("InternalIP", "198.51.100.10"),
        ("Hostname", "n1"),
    ]
    assert document["families"] == ["ipv6", "ipv4"]


def test_the_kubelet_of_today_prefers_a_family_by_an_unspecified_address(show: Any) -> None:
    assert show("--as", "kubelet", "--node-ip", "::").json["families"] == ["ipv6"]
    assert show("--as", "kubelet", "--node-ip", "0.0.0.0").json["families"] == ["ipv4"]


def test_with_a_provider_the_kubelet_of_today_asks_for_nothing_by_itself(show: Any) -> None:
    document = show("--as", "kubelet", listed=LISTED).json
    assert document["addresses"] == LISTED
    assert document["primary"] == {"ipv4": "198.51.100.10", "ipv6": "2001:db8::10"}
    asked = show("--as", "kubelet", "--node-ip", "192.0.2.10", listed=LISTED).json
    assert flat(asked)[0] == ("InternalIP", "192.0.2.10")


def test_where_the_kubelet_fails_there_is_one_line(show: Any) -> None:
    host = {"hostname": "n1", "links": [link(1, "lo"), link(2, "eth0")], "routes": []}
    host["addresses"] = [address(2, "192.0.2.10/24")]
    answer = show("--as", "kubelet", host=host)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith("addrtracker: show: the kubelet finds no address: ")
    # It is asked, not we: nobody else has to have an address then.
    pair = show("--as", "kubelet", "--node-ip", "192.0.2.10", host=host, config="")
    assert pair.status == 0


SELECTIONS = """
[select]
extra = 1
[selections.storage]
mode = "cidr"
cidrs = ["198.51.100.0/24"]
"""


def test_a_patch_replaces_the_addresses_of_a_node(show: Any) -> None:
    """The last entry keeps the API server from merging two of one type (component-helpers)."""
    for arguments in ((), ("--as", "internal-ips"), ("--as", "kubelet")):
        listed = show(*arguments).json["addresses"]
        for output in ("json", "table"):
            patch = show(*arguments, "--status-patch", "--output", output).json
            assert patch == {"status": {"addresses": [*listed, {"$patch": "replace"}]}}
    merged = show("--status-patch", listed=LISTED).json["status"]["addresses"]
    assert merged[:-1] == show(listed=LISTED).json["addresses"]


def test_no_patch_takes_away_what_a_node_has(show: Any) -> None:
    alone = {**HOST, "routes": [], "addresses": HOST["addresses"][:1]}
    answer = show("--status-patch", host=alone)
    assert (answer.status, answer.out) == (1, "")
    assert "no ipv4 address" in answer.err
    ipv4 = {**HOST, "addresses": HOST["addresses"][:3]}
    assert show("--status-patch", host=ipv4).status == 0
    answer = show("--status-patch", host=ipv4, config='require = ["ipv6"]')
    assert (answer.status, answer.out) == (1, "")


def test_extra_addresses_and_selections_are_in_the_document(show: Any) -> None:
    document = show(config=SELECTIONS).json
    assert flat(document) == [
        ("InternalIP", "192.0.2.10"),
        ("InternalIP", "2001:db8::10"),
        ("InternalIP", "198.51.100.10"),
        ("Hostname", "n1"),
    ]
    assert document["primary"]["ipv4"] == "192.0.2.10"
    storage = document["selections"]["storage"]
    assert storage["primary"] == {"ipv4": "198.51.100.10", "ipv6": None}
    assert storage["state"] == {"ipv4": "stable", "ipv6": "none"}
    assert [ip["interface"] for ip in storage["ips"]] == ["eth1"]


def test_forms_know_nothing_of_what_is_extra(show: Any) -> None:
    one_each = [("InternalIP", "192.0.2.10"), ("InternalIP", "2001:db8::10")]
    assert flat(show("--as", "internal-ips", config=SELECTIONS).json) == one_each
    assert show("--as", "kubelet", config=SELECTIONS).json["selections"] == {}
    merged = show(config=SELECTIONS, listed=LISTED).json
    assert [a for kind, a in flat(merged) if kind == "InternalIP"] == [
        "192.0.2.10",
        "2001:DB8:0::10",
    ]
    assert list(merged["selections"]) == ["storage"]


def test_preferred_types_order_the_list(show: Any) -> None:
    types = "InternalIP, ExternalIP,Hostname"
    document = show("--preferred-address-types", types, listed=LISTED).json
    assert flat(document, "preferredAddresses") == [
        ("InternalIP", "192.0.2.10"),
        ("InternalIP", "2001:DB8:0::10"),
        ("ExternalIP", "203.0.113.7"),
        ("Hostname", "n1"),
    ]
    assert flat(show().json, "preferredAddresses")[0] == ("Hostname", "n1")
    wrong = show("--preferred-address-types", "InternalIp")
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.err == (
        'addrtracker: show: --preferred-address-types: "InternalIp"; allowed: '
        "Hostname, InternalDNS, InternalIP, ExternalDNS, ExternalIP\n"
    )


def test_a_table_names_the_lists_where_they_are_asked_for(show: Any) -> None:
    plain = show("--output", "table").out
    assert "addresses:" not in plain
    lines = show("--output", "table", listed=LISTED).out.splitlines()
    assert "hostIPs: 192.0.2.10, 2001:db8::10" in lines
    assert any(line.startswith("addresses: InternalIP 192.0.2.10, ") for line in lines)


def test_a_table_for_each_selection_is_legible_on_a_narrow_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    long = choice(
        "ipv6", "2001:db8::aaaa:bbbb:cccc:dddf", prefixlen=64, reason="mode cidr: inside a network"
    )
    bgp = {
        "ipv4": choice("ipv4", None, reason="mode cidr names no ipv4 address"),
        "ipv6": long._replace(extra=(extra("fd00::9", 2, prefixlen=64),), warnings=("ipv6: odd",)),
    }
    made = decision(choice("ipv4", "192.0.2.10"), choice("ipv6", None), selections={"bgp": bgp})
    reasons = {name: {f: c.reason for f, c in found.items()} for name, found in (("bgp", bgp),)}
    print_document(node_document(made, Networks()), reasons, lists=False)
    lines = capsys.readouterr().out.splitlines()
    assert "selection bgp" in lines
    rows = [line.split() for line in lines[lines.index("selection bgp") + 3 :]]
    assert rows[0][:3] == ["ipv4", "none", "none"]
    assert ["ipv6", "2001:db8::aaaa:bbbb:cccc:dddf/64", "bond0", "stable"] in [
        row[:4] for row in rows
    ]
    assert ["ipv6", "fd00::9/64", "eth1", "Internal", "extra,", "rank", "2"] in rows
    assert "warning: bgp: ipv6: odd" in lines
