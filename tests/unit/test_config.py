"""What a configuration may say, and the one line that each wrong one gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.wrong_files import WRONG
from tracker import config, values
from tracker.config import Capture, Config, Listen, Select
from tracker.configfile import _SCHEMA
from tracker.configfile import parse as parse_file
from tracker.decision import Stability
from tracker.errors import ConfigError
from tracker.model import NANOSECONDS

# The example of the documentation: every key, each at its default.
EVERY_KEY = b"""
state = "/var/lib/addrtracker"
hostname = ""
families = ["ipv4", "ipv6"]
require = []
[select]
mode = "default-route"
interfaces = []
cidrs = []
route_to = []
hint = []
static = []
table = "main"
vrf = ""
fallback = "auto"
extra = 0
[selections]
[exclude]
interfaces = []
addresses = []
cidrs = []
[networks]
pods = []
services = []
internal = []
public = []
nodes = []
external = []
nat64 = []
others = {}
[check]
peers = []
ipv6 = ""
node_mask = []
[stability]
settle = "1s"
settle_max = "10s"
hold = "10s"
failback = "never"
[publish.files]
directory = "/run/addrtracker"
[metrics]
listen = "127.0.0.1:9797"
[capture]
source = "auto"
loader = "auto"
ring = "1MiB"
trace = "auto"
audit = "60s"
"""


def parse(text: str) -> Config:
    return parse_file(text.encode(), "f.toml")


def test_an_empty_file_means_the_defaults() -> None:
    empty = parse("")
    assert empty == Config(os.uname().nodename.lower(), "f.toml")
    assert empty.families == ("ipv4", "ipv6")
    assert not empty.families_written
    assert empty.stability == Stability(NANOSECONDS, 10 * NANOSECONDS, 10 * NANOSECONDS, None)
    assert empty.metrics == Listen("127.0.0.1", 9797)
    assert empty.hostname == os.uname().nodename.lower()


def test_every_key_at_its_default_is_the_default() -> None:
    every = parse_file(EVERY_KEY, "f.toml")
    assert every == parse("")._replace(families_written=True)


def test_the_documentation_shows_every_key_at_its_default() -> None:
    text = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert parse(example) == parse("")._replace(families_written=True)
    shown = {line.split(" = ")[0] for line in example.splitlines() if " = " in line}
    assert {key.strip() for key in shown} == keys(_SCHEMA)


def keys(schema: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for name, entry in schema.items():
        if isinstance(entry, dict):
            found |= keys(entry)
        elif name != "selections":
            found.add(name)
    return found


def test_values_come_out_typed() -> None:
    found = parse("""
        hostname = " Node-1.Example "
        require = ["ipv6"]
        state = ""
        [select]
        static = ["::ffff:192.0.2.1", "2001:DB8:0:0::1"]
        table = 1000
        fallback = "interface:br-*"
        [exclude]
        interfaces = ["wg*", "!docker0"]
        [networks]
        internal = ["::ffff:10.0.0.0/104", "fd00::/8"]
        nodes = ["::ffff:10.0.0.0/104"]
        nat64 = ["64:FF9B::/96"]
        others.berlin = ["10.1.0.0/16"]
        [selections.storage]
        [check]
        peers = ["2001:DB8::1", "storage=::ffff:10.9.0.1"]
        ipv6 = "ula"
        node_mask = [26, 72]
        [stability]
        settle = "0s"
        settle_max = "1m30s"
        hold = "1.5s"
        failback = "500ms"
        [publish.files]
        directory = "/srv/addresses"
        [metrics]
        listen = "[::1]:0"
        [capture]
        source = "bpf"
        loader = "bcc"
        ring = "64KiB"
        trace = "off"
        audit = "never"
    """)
    assert found.hostname == "node-1.example"
    assert found.state == ""
    assert found.files == "/srv/addresses"
    assert found.require == ("ipv6",)
    assert found.select.static == ("192.0.2.1", "2001:db8::1")
    assert found.select.table == 1000
    assert found.select.fallback == "interface:br-*"
    assert found.exclude.interfaces == ("wg*", "!docker0")
    assert found.networks.internal == ("10.0.0.0/8", "fd00::/8")
    assert found.networks.nodes == ("10.0.0.0/8",)
    assert found.networks.nat64 == ("64:ff9b::/96",)
    assert found.networks.others == {"berlin": ("10.1.0.0/16",)}
    assert found.check.peers == ("2001:db8::1", "storage=10.9.0.1")
    assert found.check.ipv6 == "ula"
    assert found.check.node_mask == (26, 72)
    assert found.stability == Stability(0, 90 * NANOSECONDS, 1_500_000_000, 500_000_000)
    assert found.metrics == Listen("::1", 0)
    assert found.capture == Capture("bpf", "bcc", 64 << 10, "off", 0)


def test_selections_come_out_in_the_order_of_the_file() -> None:
    found = parse("""
        [selections.storage]
        mode = "interface"
        interfaces = ["bond1", "eth*"]
        extra = 2
        [select]
        mode = "route-to"
        route_to = ["::ffff:192.0.2.1", "2001:db8::1"]
        hint = ["10.0.0.1"]
        fallback = "default-route"
        [selections.bgp]
        mode = "cidr"
        cidrs = ["fd00::/8"]
        vrf = "red"
        [selections.tunnels]
        mode = "dns"
    """)
    assert list(found.selections) == ["storage", "bgp", "tunnels"]
    assert found.select == Select(
        mode="route-to",
        route_to=("192.0.2.1", "2001:db8::1"),
        hint=("10.0.0.1",),
        fallback="default-route",
    )
    assert found.selections["storage"] == Select(
        mode="interface", interfaces=("bond1", "eth*"), extra=2
    )
    assert found.selections["bgp"] == Select(mode="cidr", cidrs=("fd00::/8",), vrf="red")
    assert found.selections["tunnels"] == Select(mode="dns")


@pytest.mark.parametrize(
    ("static", "ips", "families"),
    [
        ('"192.0.2.1"', ("192.0.2.1",), ("ipv4",)),
        ('" 192.0.2.010 , 2001:DB8::1 "', ("192.0.2.10", "2001:db8::1"), ("ipv4", "ipv6")),
        ('["2001:db8::1", "192.0.2.1"]', ("2001:db8::1", "192.0.2.1"), ("ipv6", "ipv4")),
        ('"::ffff:192.0.2.1"', ("192.0.2.1",), ("ipv4",)),
        ('"0.0.0.0"', ("0.0.0.0",), ("ipv4",)),
        ('["::"]', ("::",), ("ipv6",)),
    ],
)
def test_mode_static_reads_what_the_kubelet_reads(
    static: str, ips: tuple[str, ...], families: tuple[str, ...]
) -> None:
    found = parse(f'[select]\nmode = "static"\nstatic = {static}')
    assert found.select.static == ips
    assert found.families == families
    assert found.families_written, "whoever names addresses names families"
    assert found.warnings == ()


def test_what_is_no_address_is_left_out_of_node_ip_with_a_warning() -> None:
    found = parse('[select]\nmode = "static"\nstatic = "192.0.2.1,node,10.0.0.0/8"')
    assert found.select.static == ("192.0.2.1",)
    assert found.warnings == (
        'select.static: "node" is no IP address and left out, as the kubelet does',
        'select.static: "10.0.0.0/8" is no IP address and left out, as the kubelet does',
    )


def test_in_other_modes_static_is_a_list_of_preferences() -> None:
    found = parse('[select]\nstatic = ["192.0.2.1", "192.0.2.2", "2001:db8::1"]')
    assert found.select.static == ("192.0.2.1", "192.0.2.2", "2001:db8::1")
    assert found.families == ("ipv4", "ipv6")


def test_metrics_can_be_turned_off() -> None:
    assert parse('metrics = {listen = ""}').metrics is None


@pytest.mark.parametrize(
    ("services", "families"),
    [
        ('["fd00:10::/112", "10.96.0.0/12"]', ("ipv6", "ipv4")),
        ('["10.96.0.0/12"]', ("ipv4",)),
        ("[]", ("ipv4", "ipv6")),
    ],
)
def test_families_follow_the_service_networks(services: str, families: tuple[str, ...]) -> None:
    found = parse(f"networks = {{services = {services}}}")
    assert found.families == families
    assert not found.families_written


def test_families_that_are_written_win_over_service_networks() -> None:
    found = parse('families = ["ipv6"]\n[networks]\nservices = ["10.96.0.0/12"]')
    assert found.families == ("ipv6",)
    assert found.families_written


@pytest.mark.parametrize(("text", "line"), WRONG, ids=[line[:60] for _, line in WRONG])
def test_a_wrong_file_gets_one_line(text: str, line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(text)
    assert str(raised.value) == f"f.toml: {line}"
    assert raised.value.exit_status == 2


@pytest.mark.parametrize(
    ("raw", "start"),
    [
        (b"a =", "f.toml: is not TOML: Invalid value"),
        (b"state = 1\nstate = 2", "f.toml: is not TOML: Cannot overwrite a value"),
        (b'state = "\xff"', "f.toml: byte 9 is not UTF-8; allowed is TOML"),
        (b"\x00", "f.toml: is not TOML: "),
        (b"[%b]\n" % (b"k" * 100_000) * 2, f"f.toml: is not TOML: Cannot declare ('{'k' * 55}..."),
        (b"a = " + b"[" * 100_000, "f.toml: is not TOML: "),
        (b"a = " + b"9" * 5000, "f.toml: is not TOML: a number is too long"),
    ],
)
def test_what_is_not_toml_gets_one_line(raw: bytes, start: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_file(raw, "f.toml")
    assert str(raised.value).startswith(start)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


def test_a_file_that_is_not_there_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml: cannot be read: No such file or directory$"):
        config.load(str(tmp_path / "no.toml"))


def test_a_directory_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        config.load(str(tmp_path))


def test_the_default_file_counts_if_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "addrtracker.toml"
    monkeypatch.setattr(config, "DEFAULT_PATH", str(path))
    assert config.load().path is None
    path.write_text('hostname = "n7"')
    assert config.load().hostname == "n7"
    assert config.load().path == str(path)


def test_a_table_may_have_a_name(tmp_path: Path) -> None:
    tables = tmp_path / "rt_tables"
    tables.write_text("# reserved\n255\tlocal\n254 main\n0x64 uplink # ours\nnonsense\n")
    (tmp_path / "rt_tables.d").mkdir()
    (tmp_path / "rt_tables.d" / "b.conf").write_text("200 storage\n")
    (tmp_path / "rt_tables.d" / "README").write_text("201 no\n")
    names = values.table_names((str(tmp_path / "none"), str(tables)))
    assert names == {"local": 255, "main": 254, "uplink": 100, "storage": 200}


def test_an_unknown_table_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "table_names", lambda: {"local": 255, "storage": 200})
    assert parse('select = {table = "storage"}').select.table == 200
    with pytest.raises(ConfigError) as raised:
        parse('select = {table = "stroage"}')
    assert '("stroage" is no table that this host knows (default, main, storage))' in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("text", "number"), [("main", 254), ("default", 253), ("100", 100), ("0x64", 100)]
)
def test_a_table_may_be_a_number(text: str, number: int) -> None:
    assert values.routing_table(text) == number
