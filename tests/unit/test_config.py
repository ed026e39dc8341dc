"""What a configuration may say, and the one line that each wrong one gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tracker import config, values
from tracker.config import Capture, Config, Listen
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
external = []
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
    later = {"mode", "interfaces", "cidrs", "route_to", "hint", "vrf", "extra"}
    assert shown | later == keys(_SCHEMA)


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
    assert found.stability == Stability(0, 90 * NANOSECONDS, 1_500_000_000, 500_000_000)
    assert found.metrics == Listen("::1", 0)
    assert found.capture == Capture("bpf", "bcc", 64 << 10, "off", 0)


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


_DURATION = 'allowed: a duration such as "500ms", "10s" or "2m"'
_ADDRESSES = 'allowed: a list of IP addresses such as ["192.0.2.10", "2001:db8::10"]'
_NETWORKS = 'allowed: a list of networks such as ["10.0.0.0/8", "fd00::/8"]'
_GLOBS = (
    'allowed: a list of interface names or globs such as ["wg*", "!docker0"], '
    "each of 1 to 127 bytes"
)
_OTHER_MODE = (
    'allowed: in this release only []: this key belongs to a mode other than "default-route"'
)

WRONG = [
    (
        '[stability]\nhodl = "1s"',
        (
            "stability.hodl: unknown key; the nearest is stability.hold; "
            "allowed: settle, settle_max, hold, failback"
        ),
    ),
    (
        "families_ = []",
        (
            "families_: unknown key; the nearest is families; allowed: state, hostname, families, "
            "require, select, selections, exclude, networks, stability, publish, metrics, capture"
        ),
    ),
    (
        '[publish.kubelet]\nfile = "/x"',
        "publish.kubelet: unknown key; allowed: files",
    ),
    ('[metrics]\n"a\\nb" = 1', "metrics.a\\x0ab: unknown key; allowed: listen"),
    ("select = 5", "select = 5; allowed: a table [select]"),
    ("[[select]]\nextra = 0", "select = [a table]; allowed: a table [select]"),
    ('state = "lib"', 'state = "lib"; allowed: an absolute path, or "" for no memory'),
    ("state = 1", 'state = 1; allowed: an absolute path, or "" for no memory'),
    (
        "state = 1979-05-27T07:32:00Z",
        'state = 1979-05-27 07:32:00+00:00; allowed: an absolute path, or "" for no memory',
    ),
    (
        'hostname = "two words"',
        'hostname = "two words"; allowed: a host name, or "" for the kernel\'s',
    ),
    (
        'families = ["ipv5"]',
        (
            'families = ["ipv5"] ("ipv5" is not allowed); '
            'allowed: a list of "ipv4" and "ipv6", at least one'
        ),
    ),
    ("families = []", 'families = []; allowed: a list of "ipv4" and "ipv6", at least one'),
    (
        'families = "ipv4"',
        'families = "ipv4"; allowed: a list of "ipv4" and "ipv6", at least one',
    ),
    (
        'families = ["ipv4", "ipv4"]',
        (
            'families = ["ipv4", "ipv4"] ("ipv4" is there twice); '
            'allowed: a list of "ipv4" and "ipv6", at least one'
        ),
    ),
    (
        'families = ["ipv4"]\nrequire = ["ipv6"]',
        'require = ["ipv6"]; allowed: only what is wanted: ipv4',
    ),
    (
        '[select]\nmode = "cidr"',
        'select.mode = "cidr"; allowed: in this release only "default-route"',
    ),
    ('[select]\ninterfaces = ["eth0"]', f'select.interfaces = ["eth0"]; {_OTHER_MODE}'),
    ('[select]\nhint = ["10.0.0.1"]', f'select.hint = ["10.0.0.1"]; {_OTHER_MODE}'),
    (
        '[select]\nvrf = "red"',
        (
            'select.vrf = "red"; allowed: in this release only "": '
            "name the table of the VRF in select.table"
        ),
    ),
    (
        "[select]\nextra = 2",
        "select.extra = 2; allowed: in this release only 0: one address per family",
    ),
    (
        "[select]\nextra = false",
        "select.extra = false; allowed: in this release only 0: one address per family",
    ),
    (
        '[select]\nstatic = ["fe80::1%eth0"]',
        'select.static = ["fe80::1%eth0"] ("fe80::1%eth0" is not an IP address); ' + _ADDRESSES,
    ),
    (
        '[select]\nstatic = ["0.0.0.0"]',
        'select.static = ["0.0.0.0"] ("0.0.0.0" is the unspecified address); ' + _ADDRESSES,
    ),
    (
        '[select]\nstatic = ["192.0.2.1", "::ffff:192.0.2.1"]',
        (
            'select.static = ["192.0.2.1", "::ffff:192.0.2.1"] '
            f'("::ffff:192.0.2.1" is there twice); {_ADDRESSES}'
        ),
    ),
    (
        "[select]\ntable = 255",
        (
            'select.table = 255; allowed: "main", the name of a table in /etc/iproute2/rt_tables, '
            "or a number but 255 (local)"
        ),
    ),
    (
        '[select]\nfallback = "interface:"',
        'select.fallback = "interface:"; allowed: "auto", "none", "physical" or "interface:NAME"',
    ),
    (
        '[select]\nfallback = "default-route"',
        (
            'select.fallback = "default-route"; '
            'allowed: "auto", "none", "physical" or "interface:NAME"'
        ),
    ),
    (
        '[selections.storage]\nmode = "cidr"',
        (
            "selections = a table; "
            "allowed: in this release only [select]: there are no named selections yet"
        ),
    ),
    (
        '[exclude]\ninterfaces = ["a b"]',
        f'exclude.interfaces = ["a b"] ("a b" is not allowed); {_GLOBS}',
    ),
    (
        '[exclude]\ninterfaces = ["eth[[:digit:]]"]',
        f'exclude.interfaces = ["eth[[:digit:]]"] ("eth[[:digit:]]" is not allowed); {_GLOBS}',
    ),
    (
        '[exclude]\ninterfaces = ["!"]',
        f'exclude.interfaces = ["!"] ("!" is not allowed); {_GLOBS}',
    ),
    (
        '[exclude]\ncidrs = ["10.1.2.3/8"]',
        'exclude.cidrs = ["10.1.2.3/8"] '
        '("10.1.2.3/8" has host bits set; the network is 10.0.0.0/8); ' + _NETWORKS,
    ),
    (
        '[networks]\npods = ["10.0.0.0/33"]',
        'networks.pods = ["10.0.0.0/33"] ("10.0.0.0/33" has no such prefix length); ' + _NETWORKS,
    ),
    (
        '[networks]\ninternal = ["10.0.0.0"]',
        'networks.internal = ["10.0.0.0"] ("10.0.0.0" is not a network); ' + _NETWORKS,
    ),
    (
        '[networks]\nexternal = ["198.51.100.0/24"]',
        'networks.external = ["198.51.100.0/24"] '
        '("198.51.100.0/24" is not an IP address); ' + _ADDRESSES,
    ),
    ('[stability]\nhold = "5 parsecs"', f'stability.hold = "5 parsecs"; {_DURATION}'),
    ("[stability]\nhold = 10", f"stability.hold = 10; {_DURATION}"),
    ('[stability]\nhold = ""', f'stability.hold = ""; {_DURATION}'),
    ('[stability]\nhold = "-1s"', f'stability.hold = "-1s"; {_DURATION}'),
    ('[stability]\nhold = "9000h"', f'stability.hold = "9000h"; {_DURATION}'),
    (
        '[stability]\nfailback = "soon"',
        f'stability.failback = "soon"; {_DURATION}, or "never"',
    ),
    (
        '[stability]\nsettle = "20s"',
        'stability.settle = "20s"; allowed: a duration not longer than settle_max (10s)',
    ),
    (
        '[stability]\nsettle_max = "0s"',
        'stability.settle = "1s"; allowed: a duration not longer than settle_max (0s)',
    ),
    (
        '[publish.files]\ndirectory = "run"',
        'publish.files.directory = "run"; allowed: an absolute path',
    ),
    *(
        (
            f'[metrics]\nlisten = "{listen}"',
            (
                f'metrics.listen = "{listen}"{detail}; allowed: an IP address and a port such as '
                '"127.0.0.1:9797" or "[::1]:9797", or "" for none'
            ),
        )
        for listen, detail in [
            ("9797", ' ("" is not an IP address)'),
            ("127.0.0.1:http", ""),
            ("127.0.0.1:65536", ""),
            ("::1:9797", ""),
            ("node.example:9797", ' ("node.example" is not an IP address)'),
        ]
    ),
    (
        '[capture]\nsource = "ebpf"',
        'capture.source = "ebpf"; allowed: "auto", "bpf", "netlink" or "pyroute2"',
    ),
    (
        '[capture]\nloader = "pylibbpf"',
        'capture.loader = "pylibbpf"; allowed: "auto", "libbpf" or "bcc"',
    ),
    *(
        (
            f"[capture]\nring = {ring}",
            f'capture.ring = {ring}; allowed: a power of two of bytes, "4KiB" to "1GiB"',
        )
        for ring in ('"2KiB"', '"3MiB"', '"2GiB"', '"1 MiB"', '"1MB"', '""', "1048576")
    ),
    ('[capture]\naudit = "10ms"', 'capture.audit = "10ms"; allowed: "1s" or more, or "never"'),
    (
        'state = "' + "x" * 100 + '"',
        'state = "' + "x" * 56 + '...; allowed: an absolute path, or "" for no memory',
    ),
]


@pytest.mark.parametrize(("text", "line"), WRONG, ids=[line for _, line in WRONG])
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
        (b"a = " + b"[" * 100_000, "f.toml: is not TOML: "),
        (b"a = " + b"9" * 5000, "f.toml: is not TOML: a number is too long"),
    ],
)
def test_what_is_not_toml_gets_one_line(raw: bytes, start: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_file(raw, "f.toml")
    assert str(raised.value).startswith(start)
    assert "\n" not in str(raised.value)


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
