"""Files that can be replayed: recognised by content; what is wrong is said in one line."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracker.capture import cases
from tracker.capture.cases import Case
from tracker.capture.fields import Fields, read_bytes
from tracker.capture.inputs import load
from tracker.capture.ipjson import entries, read_entries
from tracker.capture.record import (
    Addr,
    Header,
    Leg,
    Link,
    Member,
    Nexthop,
    Record,
    Route,
    encode,
)
from tracker.capture.recording import Head, Recording, RecordingWriter
from tracker.errors import InputError
from tracker.model import AF_INET, AF_INET6, Scope

HOST: dict[str, Any] = {
    "links": [
        {"ifindex": 1, "name": "lo", "kind": "loopback", "flags": ["LOOPBACK", "UP", "LOWER_UP"]},
        {"ifindex": 2, "name": "eth0", "kind": "device", "flags": ["UP", "LOWER_UP"]},
        {"ifindex": 3, "name": "veth1", "kind": "veth", "up": False, "master": "ovs-system"},
        {"ifindex": 4, "name": "blue", "kind": "vrf", "up": True, "table": 1001},
    ],
    "addresses": [
        {"ifindex": 2, "address": "192.0.2.10", "prefixlen": 24, "valid_lft": 60},
        {"ifindex": 2, "address": "fe80::1", "prefixlen": 64},
    ],
    "routes": [
        {"family": "inet", "dst": "default", "gateway": "192.0.2.1", "oif": 2, "nhid": 7},
        {"family": "inet", "dst": "10.0.0.0/8", "table": "local", "type": "unreachable"},
    ],
}
CASE: dict[str, Any] = {
    "id": "x",
    "input": {
        **HOST,
        "events": [
            {"type": "RTM_NEWADDR", "data": {"ifindex": 2, "address": "::2", "prefixlen": 64}},
            {"type": "RTM_NEWLINK", "data": {"ifindex": 2, "name": "eth1"}, "t": 3},
            {"type": "RTM_NEWNEIGH", "data": {"whatever": 1}},
        ],
        "config": {"policy": "default-route"},
    },
    "expected": {"ipv4": "192.0.2.10", "ipv6": None, "behaviour": "None."},
}
PAIRS: list[tuple[str | bytes, str]] = [
    ("{", "line 1 column 2: not JSON; allowed: JSON or a recording"),
    ("", "the file is empty; allowed: JSON or a recording"),
    ("7", "not of a known format; allowed: a snapshot, a case file, a recording, or the output"),
    ('{"a": 1}', "not of a known format"),
    ('[{"a": 1}]', "[0]: not of a known format"),
    ("[7]", "[0]: 7; allowed: an object"),
    ('{"links": []} {"links": []}', "a case or snapshot with something beside it"),
    (b"ADDRTRK9", "another format; allowed: a recording of format ADDRTRK1"),
    (b"\xff\xfe", "line 1 column 1: not JSON; allowed: JSON or a recording"),
    ("[" * 100_000, "nested too deeply"),
    ('{"links": ' + "9" * 5000 + "}", "a number is too long"),
]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Any]:
    """Loads the given contents, each as a file of its own."""

    def reader(*contents: Any) -> Case | Recording:
        paths = []
        for number, content in enumerate(contents):
            path = tmp_path / f"f{number}"
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
            paths.append(str(path))
        return load(paths)

    return reader


def test_a_snapshot_is_a_case_without_events(read: Any) -> None:
    case = read(HOST)
    assert case.events == ()
    assert case.expected is None
    lo, eth0, veth1, blue = case.snapshot.links
    assert (lo.kind, lo.flags & 0x8, lo.type) == ("", 0x8, 772)
    assert (eth0.kind, eth0.type, eth0.flags & 0x10041) == ("", 1, 0x10041)
    assert veth1.flags & 1 == 0
    # A master that is only named has a number that no link has.
    assert veth1.master not in {0, *(link.ifindex for link in case.snapshot.links)}
    assert blue.vrf_table == 1001


def test_addresses_have_the_kernel_s_values_where_none_are_given(read: Any) -> None:
    leased, local = read(HOST).snapshot.addresses
    assert (leased.flags, leased.valid, leased.scope) == (0, 60, 0)
    assert (local.flags, local.scope) == (0x80, 253)


def test_routes_have_the_kernel_s_values_where_none_are_given(read: Any) -> None:
    default, other = read(HOST).snapshot.routes
    assert (default.table, default.proto, default.scope, default.metric) == (254, 3, 0, 0)
    assert (other.table, other.type, other.dst_len, other.legs) == (255, 7, 8, ())


def test_an_object_that_a_route_names_exists_in_the_kernel(read: Any) -> None:
    [hop] = read(HOST).snapshot.nexthops
    assert hop == Nexthop(7, AF_INET, 2, 0, 3, AF_INET, b"\xc0\x00\x02\x01")


def test_a_case_has_its_events_and_what_is_expected(read: Any) -> None:
    case = read(CASE)
    assert (case.name, case.hostname) == ("x", "")
    assert [event.at_ns for event in case.events] == [None, 3_000_000_000]
    assert case.config == {"select": {"mode": "default-route"}}
    assert (case.expected.ipv4, case.expected.ipv6) == ("192.0.2.10", None)


def test_configuration_of_a_case_has_the_keys_of_the_configuration_file(read: Any) -> None:
    case = copy.deepcopy(CASE)
    case["input"]["config"] = {
        "policy": "reach-hint",
        "hint": ["10.0.0.1"],
        "interface": "eth0",
        "table": 254,
        "fallback": "physical",
        "families": ["ipv6"],
        "exclude": ["10.0.0.2", "10.1.0.0/16"],
        "failback": "1s",
        "internal": ["10.0.0.0/8"],
        "prefer": "background",
        "previously_published": ["192.0.2.7"],
    }
    read_case = read(case)
    assert read_case.config == {
        "families": ["ipv6"],
        "select": {
            "mode": "route-to",
            "hint": ["10.0.0.1"],
            "interfaces": ["eth0"],
            "table": 254,
            "fallback": "physical",
        },
        "exclude": {"addresses": ["10.0.0.2"], "cidrs": ["10.1.0.0/16"]},
        "networks": {"internal": ["10.0.0.0/8"]},
        "stability": {"failback": "1s"},
    }
    assert read_case.previously_published == ("192.0.2.7",)


@pytest.mark.parametrize(("content", "said"), PAIRS)
def test_what_is_no_input_is_said_in_one_line(read: Any, content: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(content)
    assert said in str(caught.value)
    assert "allowed: " in str(caught.value)
    assert "\n" not in str(caught.value)


WRONG: list[tuple[tuple[Any, ...], Any, str]] = [
    (("links",), None, "links: missing; allowed: a list"),
    (("addresses",), {}, "addresses: {}; allowed: a list"),
    (("routes",), None, "routes: missing; allowed: a list"),
    (("links", 1), "eth0", 'links[1]: "eth0"; allowed: an object'),
    (("links", 1, "ifindex"), None, "links[1].ifindex: missing; allowed: 1 to 2147483647"),
    (("links", 1, "ifindex"), 0, "links[1].ifindex: 0; allowed: 1 to 2147483647"),
    (("links", 1, "name"), "x" * 16, "links[1].name: "),
    (("links", 1, "flags"), ["UP", "WEIRD"], 'links[1].flags[1]: "WEIRD"; allowed: up, '),
    (("links", 1, "operstate"), "SO-SO", 'links[1].operstate: "SO-SO"; allowed: unknown, '),
    (("links", 1, "master"), True, "links[1].master: true; allowed: the name or ifindex"),
    (("addresses", 0, "address"), "192.0.2", 'addresses[0].address: "192.0.2"; allowed: an IPv4'),
    (("addresses", 0, "prefixlen"), 33, "addresses[0].prefixlen: 33; allowed: 0 to 32"),
    (("addresses", 0, "prefixlen"), None, "addresses[0].prefixlen: missing; allowed: 0 to 32"),
    (("addresses", 0, "peer"), "::1", 'addresses[0].peer: "::1"; allowed: an IPv4 address'),
    (("addresses", 0, "flags"), ["loud"], 'addresses[0].flags[0]: "loud"; allowed: secondary'),
    (("routes", 0, "family"), "ipx", 'routes[0].family: "ipx"; allowed: inet, inet6'),
    (("routes", 0, "dst"), "::/0", 'routes[0].dst: "::/0"; allowed: default or an IPv4 network'),
    (("routes", 0, "dst"), "1.2.3.4/33", "routes[0].dst: "),
    (("routes", 0, "dst"), None, "routes[0].dst: missing; allowed: a string"),
    (("routes", 0, "gateway"), "fe80::1", "routes[0].gateway: "),
    (("routes", 0, "metric"), -1, "routes[0].metric: -1; allowed: 0 to 4294967295"),
    (("routes", 0, "metric"), "100", 'routes[0].metric: "100"; allowed: 0 to 4294967295'),
    (("routes", 0, "type"), "odd", 'routes[0].type: "odd"; allowed: unicast, local'),
    (("routes", 0, "dev"), "eth9", ""),
    (("events", 0, "type"), None, "events[0].type: missing; allowed: a string"),
    (("events", 0, "data", "address"), "x", 'events[0].data.address: "x"; allowed: an IPv4 or'),
    (("events", 1, "data", "ifindex"), None, "events[1].data.ifindex: missing; allowed: 1 to"),
    (("events", 1, "t"), "now", 'events[1].t: "now"; allowed: seconds since start, 0 to 604800'),
    (("events", 1, "t"), 1e9, "events[1].t: 1000000000.0; allowed: seconds since start"),
    (("config",), [], "config: []; allowed: an object"),
    (
        ("config",),
        {"previously_published": ["eth0"]},
        'config.previously_published: ["eth0"]; allowed: a list of IPv4 or IPv6 addresses',
    ),
]


@pytest.mark.parametrize(("place", "value", "said"), [w for w in WRONG if w[2]])
def test_a_wrong_field_is_named_with_its_place(
    read: Any, place: tuple[Any, ...], value: Any, said: str
) -> None:
    case = copy.deepcopy(CASE)
    inner = case["input"]
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(InputError) as caught:
        read(case)
    assert f"f0: {said}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_case_without_input_is_no_case(read: Any) -> None:
    with pytest.raises(InputError, match="input: 7; allowed: an object with links, addresses"):
        read({"id": "x", "input": 7})


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load([str(tmp_path / "none")])


ODD: list[Any] = [None, 0, -1, 1 << 40, 1.5, "", "x", "\u00ff" * 20, "\ud800", [], [7], {}]
ODD += [{"a": 1}, True]


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every field below `value`."""
    if isinstance(value, dict):
        pairs: list[tuple[Any, Any]] = list(value.items())
    else:
        pairs = list(enumerate(value)) if isinstance(value, list) else []
    found = [(*place, key) for key, _ in pairs]
    for key, inner in pairs:
        found += _places(inner, (*place, key))
    return found


@pytest.mark.parametrize("place", _places(CASE), ids=lambda place: ".".join(map(str, place)))
def test_nothing_in_a_field_is_more_than_an_error_in_one_line(place: tuple[Any, ...]) -> None:
    for odd in ODD:
        case = copy.deepcopy(CASE)
        inner: Any = case
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = odd
        said = None
        try:
            read_case = cases.read_case(Fields(case, "f"))
        except InputError as error:
            said = str(error)
        if said is not None:
            assert "\n" not in said
            assert "allowed: " in said
            continue
        kernel = read_case.snapshot.stand_in(10**12)
        records = [record for scope in Scope for record in kernel.dump(scope)]
        for event in read_case.events:
            # These events are all steps.
            records += event.step.play(kernel)  # type: ignore[union-attr]
        assert all(map(encode, records))


LINKS = [
    {
        "ifindex": 1,
        "ifname": "lo",
        "flags": ["LOOPBACK", "UP", "LOWER_UP"],
        "link_type": "loopback",
    },
    {},
    {
        "ifindex": 2,
        "ifname": "eth0",
        "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
        "operstate": "UP",
        "mtu": 1500,
        "master": "br0",
        "link_type": "ether",
        "linkinfo": {"info_kind": "veth"},
    },
    {"ifindex": 3, "ifname": "br0", "flags": ["UP"], "linkinfo": {"info_kind": "bridge"}},
    {
        "ifindex": 4,
        "ifname": "red",
        "flags": ["UP"],
        "linkinfo": {"info_kind": "vrf", "info_data": {"table": 77}},
    },
]
ADDRESSES = [
    {
        "ifindex": 2,
        "ifname": "eth0",
        "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
        "operstate": "UP",
        "master": "br0",
        "addr_info": [
            {
                "family": "inet",
                "local": "192.0.2.9",
                "address": "192.0.2.77",
                "prefixlen": 32,
                "scope": "global",
                "label": "eth0",
                "valid_life_time": 4294967295,
                "preferred_life_time": 4294967295,
            },
            {},
            {
                "family": "inet6",
                "local": "2001:db8::5",
                "prefixlen": 64,
                "scope": "global",
                "dynamic": True,
                "mngtmpaddr": True,
                "temporary": True,
                "valid_life_time": 100,
                "preferred_life_time": 0,
                "protocol": "kernel_ra",
            },
        ],
    }
]
ROUTES = [
    {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "protocol": "dhcp", "flags": []},
    {
        "dst": "default",
        "metric": 5,
        "flags": [],
        "nexthops": [
            {"gateway": "192.0.2.1", "dev": "eth0", "weight": 1, "flags": []},
            {"via": {"family": "inet6", "host": "fe80::3"}, "dev": "br0", "weight": 3, "flags": []},
        ],
    },
    {"type": "unreachable", "dst": "default", "metric": 999, "flags": []},
    {"dst": "192.0.2.77", "dev": "eth0", "scope": "link", "flags": ["linkdown"]},
    {"dst": "default", "dev": "eth0", "metric": 77, "flags": [], "expires": 99, "pref": "high"},
    {"dst": "default", "nhid": 1, "table": 77, "gateway": "fe80::1", "dev": "eth0", "pref": "low"},
    {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "protocol": "dhcp", "flags": []},
]
NEXTHOPS = [
    {"id": 1, "gateway": "fe80::1", "dev": "eth0", "scope": "link", "flags": []},
    {"id": 10, "group": [{"id": 1}, {"id": 3, "weight": 4}], "flags": []},
    {"id": 11, "blackhole": None, "flags": []},
]


def test_output_of_ip_is_read_from_several_files(read: Any) -> None:
    snapshot = read(LINKS, ADDRESSES, ROUTES, NEXTHOPS).snapshot
    lo, eth0, br0, red = snapshot.links
    assert (lo.type, lo.flags & 8) == (772, 8)
    assert eth0 == Link(2, "eth0", 0x11043, br0.ifindex, 0, 0, 1500, 1, 6, "veth")
    assert (br0.kind, red.vrf_table) == ("bridge", 77)
    far, slaac = snapshot.addresses
    assert far == Addr(AF_INET, 2, b"\xc0\x00\x02\x09", 32, b"\xc0\x00\x02\x4d", 0x80)
    assert (slaac.family, slaac.flags, slaac.proto) == (AF_INET6, 0x101, 2)
    assert (slaac.valid, slaac.preferred) == (100, 0)
    assert snapshot.nexthops[1].members == (Member(1), Member(3, 4))
    assert snapshot.nexthops[2].blackhole


def test_routes_of_ip_have_the_family_that_they_show(read: Any) -> None:
    routes = read(LINKS, ROUTES).snapshot.routes
    assert [route.family for route in routes] == [AF_INET] * 4 + [AF_INET6] * 2
    dhcp, multipath, unreachable, connected, on_link, by_object = routes
    assert dhcp == Route(AF_INET, 254, proto=16, legs=(Leg(2, 1, 0, AF_INET, b"\xc0\x00\x02\x01"),))
    assert multipath.legs[1] == Leg(3, 3, 0, AF_INET6, b"\xfe\x80" + bytes(13) + b"\x03")
    assert (unreachable.type, unreachable.legs) == (7, ())
    assert (connected.dst_len, connected.scope, connected.legs[0].flags) == (32, 253, 0x10)
    assert (on_link.expires, on_link.pref) == (99, 1)
    assert (by_object.table, by_object.nh_id, by_object.pref) == (77, 1, 3)


def test_output_of_ip_is_read_from_one_file(read: Any) -> None:
    together = "\n".join(map(json.dumps, (LINKS, ADDRESSES, ROUTES, NEXTHOPS)))
    apart = read(LINKS, ADDRESSES, ROUTES, NEXTHOPS)
    assert read(together).snapshot == apart.snapshot


def test_a_link_below_that_is_down_is_no_flag(read: Any) -> None:
    link = LINKS[3] | {"flags": ["NO-CARRIER", "BROADCAST", "UP", "M-DOWN"]}
    (found,) = read([link]).snapshot.links
    assert found.flags == 0x3


def test_a_route_over_an_unknown_link_is_an_error(read: Any) -> None:
    with pytest.raises(InputError, match=r'\[0\].dev: "eth0"; allowed: a link of this input'):
        read(ROUTES)


def test_a_name_that_only_the_other_host_knows_is_an_error(read: Any) -> None:
    for field in ("table", "protocol"):
        routes = [{"dst": "default", "dev": "lo", "flags": [], field: "mine"}]
        with pytest.raises(InputError, match=rf'{field}: "mine"; .*or a number, as `ip -N`'):
            read(LINKS, routes)


PRINTED = [LINKS, ADDRESSES, ROUTES, NEXTHOPS]


@pytest.mark.parametrize("place", _places(PRINTED), ids=lambda place: ".".join(map(str, place)))
def test_nothing_that_ip_printed_is_more_than_an_error_in_one_line(place: tuple[Any, ...]) -> None:
    for odd in ODD:
        printed = copy.deepcopy(PRINTED)
        inner: Any = printed
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = odd
        said = ""
        try:
            found = [entry for value in printed for entry in entries(value, "f", 0)]
            snapshot = read_entries(found)
        except InputError as error:
            said = str(error)
        if said:
            assert "\n" not in said
            assert "allowed: " in said
            continue
        assert all(encode(Record(Header(), payload)) for kind in snapshot[:4] for payload in kind)


def test_a_name_that_is_no_text_is_read_as_ip_prints_it(read: Any) -> None:
    raw = json.dumps(LINKS).replace("eth0", "NAME").encode().replace(b"NAME", b"e\xff")
    names = [link.name for link in read(raw).snapshot.links]
    assert names == ["lo", "e\udcff", "br0", "red"]


def test_a_mark_of_another_system_is_no_error(read: Any) -> None:
    assert read(b"\xef\xbb\xbf" + json.dumps(LINKS).encode()) == read(LINKS)


def test_a_file_that_is_too_large_is_said_so() -> None:
    with pytest.raises(InputError, match="/dev/zero: too large; allowed: 256 MiB"):
        load(["/dev/zero"])


def test_a_small_file_takes_no_room_for_the_largest(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"[]")
    tracemalloc.start()
    try:
        assert read_bytes(str(path)) == b"[]"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_pipe_is_read_once(path: str, recorded: bool, tmp_path: Path) -> None:
    if recorded:
        with (tmp_path / "r").open("wb") as file:
            RecordingWriter(file, Head("n1", "boot", 1, 2))
        content = (tmp_path / "r").read_bytes()
    else:
        content = json.dumps(LINKS + LINKS * 300).encode()
    command = f"from tracker.capture.inputs import load; print(type(load(['{path}'])).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", command], input=content, capture_output=True, check=True
    )
    assert done.stdout == (b"Recording\n" if recorded else b"Case\n")


def test_a_recording_stands_alone(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "r"
    with path.open("wb") as file:
        RecordingWriter(file, Head("n1", "boot", 1, 2))
    assert isinstance(load([str(path)]), Recording)
    with pytest.raises(InputError, match="a recording among other files"):
        load([str(path), str(path)])
