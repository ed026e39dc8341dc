"""The default policy: what is compiled, what is refused, and what values mean to people."""

from __future__ import annotations

import json

import pytest

from tests.build import Host, addr, link, policy, route
from tracker.address import host_network
from tracker.engine.base import Engine
from tracker.engine.reference import ReferenceEngine
from tracker.errors import ConfigError
from tracker.model import (
    AF_INET,
    AF_INET6,
    FAMILIES,
    NO_ROUTE,
    PATTERN_MOST,
    Criterion,
    Fallback,
    Network,
    PolicyTable,
    Reject,
    Row,
)
from tracker.policy import compile as compiling
from tracker.policy.compile import default_route_policy
from tracker.policy.criteria import (
    DEFAULT_ORDER,
    DISPLACING,
    describe,
    describe_row,
    winner_reason,
)
from tracker.policy.defaults import EXCLUDED_KINDS, EXCLUDED_NAMES


def compiled(**changes: object) -> PolicyTable:
    # Keywords of many types, by name.
    return default_route_policy(**{"families": FAMILIES, **changes})  # type: ignore[arg-type]


def test_the_default_policy_is_the_documented_one() -> None:
    table = default_route_policy(families=["ipv6"])
    assert table.families == ("ipv6",)
    assert table.table == 254
    assert (table.fallback, table.fallback_name) == (Fallback.AUTO, "")
    assert table.exclude_names == EXCLUDED_NAMES
    assert table.exclude_kinds == EXCLUDED_KINDS
    assert table.keep_names == table.exclude == table.statics == table.internal == ()
    assert [criterion.label for criterion in table.criteria] == [
        "static",
        "mode",
        "internal",
        "default-route",
        "prefsrc",
        "not-deprecated",
        "not-vip-like",
        "not-temporary",
        "assigned",
        "incumbent",
        "gateway-on-link",
        "primary-flag",
        "global-before-ula",
        "nexthop-weight",
        "ifindex",
        "age",
    ]
    assert {criterion.label for criterion in table.displacing} == {
        "static",
        "mode",
        "internal",
        "not-deprecated",
        "not-vip-like",
        "not-temporary",
        "assigned",
    }


def test_paths_alone_do_not_displace() -> None:
    assert {Criterion.DEFAULT_ROUTE, Criterion.PREFSRC, Criterion.INCUMBENT} & DISPLACING == set()


def test_patterns_fit_into_the_engine() -> None:
    assert all(len(name) <= PATTERN_MOST for name in EXCLUDED_NAMES)
    assert all(len(kind) <= 15 for kind in EXCLUDED_KINDS)


def test_an_exclamation_mark_keeps_an_interface() -> None:
    table = compiled(exclude_interfaces=["!docker*", "!docker0", "storage?", "storage?"])
    assert table.keep_names == ("docker*", "docker0")
    assert "docker*" not in table.exclude_names
    assert table.exclude_names[-1] == "storage?"
    assert len(table.exclude_names) == len(EXCLUDED_NAMES)


@pytest.mark.parametrize("pattern", ["eth[!0]", "e[:.=]*", "a[0-9][:x]", "a.b:1", "[]a]b", "[[]:"])
def test_brackets_that_all_read_alike_are_allowed(pattern: str) -> None:
    assert compiled(exclude_interfaces=[pattern]).exclude_names[-1] == pattern


def test_networks_are_packed() -> None:
    table = compiled(
        exclude_addresses=["192.0.2.10", "::ffff:192.0.2.10"],
        exclude_cidrs=["10.0.0.0/8"],
        pods=["10.42.0.0/16"],
        services=["fd00::/112"],
        internal=["192.0.2.0/24"],
        static=["2001:db8::1"],
    )
    assert table.exclude == (
        Network(AF_INET, 32, bytes([192, 0, 2, 10])),
        Network(AF_INET, 8, bytes([10, 0, 0, 0])),
        Network(AF_INET, 16, bytes([10, 42, 0, 0])),
        Network(AF_INET6, 112, b"\xfd" + bytes(15)),
    )
    assert table.internal == (Network(AF_INET, 24, bytes([192, 0, 2, 0])),)
    assert table.statics == (Network(AF_INET6, 128, b"\x20\x01\x0d\xb8" + bytes(11) + b"\1"),)


@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        ("none", (Fallback.NONE, "")),
        ("auto", (Fallback.AUTO, "")),
        ("physical", (Fallback.PHYSICAL, "")),
        ("interface:eth*", (Fallback.INTERFACE, "eth*")),
    ],
)
def test_fallbacks(fallback: str, expected: tuple[Fallback, str]) -> None:
    table = compiled(fallback=fallback)
    assert (table.fallback, table.fallback_name) == expected


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"families": []}, "families []: allowed: ipv4, ipv6, each once"),
        ({"families": ["ipv4", "ipv5"]}, "families ['ipv4', 'ipv5']: allowed: ipv4, ipv6"),
        ({"families": ["ipv4", "ipv4"]}, "families ['ipv4', 'ipv4']: allowed: ipv4, ipv6"),
        ({"table": 0}, "table 0: allowed: 1 to 4294967295"),
        ({"table": 255}, "table 255: allowed: 1 to 4294967295 but 255 (local)"),
        ({"table": 1 << 32}, "table 4294967296: allowed: 1 to 4294967295"),
        ({"fallback": "any"}, 'fallback "any": allowed: none, auto, physical, interface:NAME'),
        ({"fallback": "interface:"}, 'fallback "interface:": allowed: none, auto'),
        ({"exclude_interfaces": ["!"]}, 'exclude.interfaces "": allowed: a name or glob'),
        ({"exclude_interfaces": ["a" * 128]}, "allowed: a name or glob of 1 to 127 bytes"),
        ({"exclude_interfaces": ["a\\*"]}, "allowed: a name or glob"),
        ({"exclude_interfaces": ["eth[^0]"]}, "allowed: a name or glob"),
        ({"exclude_interfaces": ["eth[[:digit:]]"]}, "allowed: a name or glob"),
        ({"exclude_interfaces": ["!eth[!]x[.-.]]"]}, "allowed: a name or glob"),
        ({"exclude_interfaces": ["a b"]}, "allowed: a name or glob"),
        ({"fallback": "interface:eth[[=e=]]"}, "allowed: a name or glob"),
        ({"exclude_addresses": ["10.0.0.0/8"]}, '"10.0.0.0/8" is not an IP address; allowed: IP'),
        ({"exclude_cidrs": ["10.0.0.1/8"]}, "exclude.cidrs: "),
        ({"pods": ["x"]}, "networks.pods: "),
        ({"services": ["10.0.0.0/33"]}, "networks.services: "),
        ({"internal": [""]}, "networks.internal: "),
        ({"static": ["eth0"]}, "select.static: "),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(changes: dict[str, object], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compiled(**changes)
    assert line in str(caught.value)
    assert "allowed:" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("criterion", "value", "fact"),
    [
        (Criterion.STATIC, 1, 1),
        (Criterion.STATIC, 2, None),
        (Criterion.MODE, 0, None),
        (Criterion.INTERNAL, 0, True),
        (Criterion.INTERNAL, 1, False),
        (Criterion.DEFAULT_ROUTE, NO_ROUTE, None),
        (Criterion.DEFAULT_ROUTE, 401, {"metric": 100, "live": True, "pref": "medium"}),
        (
            Criterion.DEFAULT_ROUTE,
            1 << 34 | 0xFFFFFFFF << 2,
            {"metric": 0xFFFFFFFF, "live": False, "pref": "high"},
        ),
        (Criterion.DEFAULT_ROUTE, 2, {"metric": 0, "live": True, "pref": "low"}),
        (Criterion.PREFSRC, 0, True),
        (Criterion.NOT_VIP_LIKE, 1, False),
        (Criterion.INCUMBENT, 0, True),
        (Criterion.NEXTHOP_WEIGHT, 65534, 1),
        (Criterion.NEXTHOP_WEIGHT, 65535, None),
        (Criterion.IFINDEX, 4, 4),
        (Criterion.AGE, 1234, 12.34),
    ],
)
def test_values_read_as_facts(criterion: Criterion, value: int, fact: object) -> None:
    table = compiled(static=["192.0.2.1", "192.0.2.2"], internal=["192.0.2.0/24"])
    found = describe(table, criterion, value)
    assert found == fact
    assert type(found) is type(fact)


def test_internal_is_no_fact_where_nothing_is_configured() -> None:
    assert describe(compiled(), Criterion.INTERNAL, 0) is None


def test_a_row_reads_as_an_object_for_json(engine: Engine) -> None:
    table = compiled()
    host = Host(engine, table)
    host.send(link(2, "eth0"), addr("192.0.2.10/24", 2), route(oif=2, metric=100))
    facts = describe_row(table, host.rows()[0])
    assert list(facts) == [criterion.label for criterion in DEFAULT_ORDER]
    assert facts["default-route"] == {"metric": 100, "live": True, "pref": "medium"}
    assert json.loads(json.dumps(facts)) == facts


def winner(table: PolicyTable, *records: object, incumbent: str | None = None) -> str:
    """The reason of the best row, or of the incumbent's."""
    host = Host(ReferenceEngine(), table)
    # A record is made by a builder of tests.
    host.send(link(1, "lo", loopback=True), link(2, "eth0"), *records)  # type: ignore[arg-type]
    host.engine.set_incumbent(0, "ipv4", incumbent)
    view = host.view()
    row: Row | None = view.incumbent if incumbent else view.best
    assert row is not None
    return winner_reason(table, row)


TEN = addr("192.0.2.10/24", 2)


@pytest.mark.parametrize(
    ("changes", "records", "reason"),
    [
        ({}, [TEN, route(oif=2, metric=100)], "default-route metric 100"),
        ({}, [TEN, route(oif=2)], "default-route metric 0"),
        (
            {},
            [TEN, route(oif=2, src="192.0.2.10", metric=100)],
            "prefsrc of the default route, metric 100",
        ),
        (
            {},
            [TEN, route(oif=2), link(2, "eth0", carrier=False)],
            "default-route metric 0, without carrier",
        ),
        ({}, [addr("192.0.2.10/32", 1), route(oif=2)], "on lo: routing on the host"),
        ({}, [TEN], "fallback auto: the only address of an ordinary link"),
        ({"fallback": "physical"}, [TEN], "fallback physical: on eth0"),
        ({"fallback": "interface:eth*"}, [TEN], "fallback interface: eth0"),
        ({"static": ["192.0.2.10"]}, [TEN, route(oif=2)], "static"),
        ({"static": ["192.0.2.11"]}, [TEN, route(oif=2)], "default-route metric 0"),
        (
            {"internal": ["192.0.2.0/24"]},
            [TEN, route(oif=2)],
            "inside networks.internal, default-route metric 0",
        ),
        ({"internal": ["10.0.0.0/8"]}, [TEN, route(oif=2)], "default-route metric 0"),
    ],
)
def test_a_winner_has_a_reason(
    changes: dict[str, object], records: list[object], reason: str
) -> None:
    assert winner(compiled(**changes), *records) == reason


def test_an_answer_that_stays_says_what_it_lacks() -> None:
    other = addr("198.51.100.1/24", 3)
    records = [TEN, other, link(3, "eth1"), route(oif=3)]
    assert winner(compiled(), *records, incumbent="192.0.2.10") == "kept: no-default-route"


def test_a_policy_of_other_criteria_has_reasons_too() -> None:
    table = policy(criteria=(Criterion.AGE,))
    assert winner(table, TEN, route(oif=2)) == "default-route"


def test_labels_are_those_of_the_documentation() -> None:
    assert [reject.label for reject in Reject][1:] == [
        "family-not-wanted",
        "unspecified",
        "loopback",
        "link-local",
        "multicast",
        "reserved",
        "dad-failed",
        "tentative",
        "link-down",
        "excluded-address",
        "excluded-network",
        "other-vrf",
        "excluded-interface",
        "not-in-mode",
        "no-default-route",
    ]


@pytest.mark.parametrize("mode", ["route-to", "dns"])
def test_lists_of_addresses_are_one_list_for_the_engine(mode: str) -> None:
    """What route-to and dns find out makes the table that static has, but for who is excluded."""
    addresses = ("192.0.2.10", "2001:db8::10")
    networks = tuple(map(host_network, addresses))
    static = compiling.policy("static", families=FAMILIES, static=addresses, fallback="none")
    other = compiling.policy(mode, families=FAMILIES, fallback="none")
    assert other._replace(mode_networks=networks, keep_names=("*",)) == static
