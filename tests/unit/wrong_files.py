"""Wrong configurations, and the one line that each of them gets behind the name of the file."""

from __future__ import annotations

_DURATION = 'allowed: a duration such as "500ms", "10s" or "2m"'
_ADDRESSES = 'allowed: a list of IP addresses such as ["192.0.2.10", "2001:db8::10"]'
_NETWORKS = 'allowed: a list of networks such as ["10.0.0.0/8", "fd00::/8"]'
_GLOBS = (
    'allowed: a list of interface names or globs such as ["wg*", "!docker0"], '
    "each of 1 to 127 bytes"
)
_PLAIN_GLOBS = (
    'allowed: a list of interface names or globs such as ["bond0", "eth*"], each of 1 to 127 bytes'
)
_EXTRA = "allowed: a whole number from 0 to 64"
_NAME = "allowed: a name of 1 to 63 of a-z, 0-9 and -, neither first nor last a -"

_HOST_NAME = 'an RFC 1123 subdomain such as "n1" or "n1.example", or "" for the kernel\'s name'
_PEERS = "a list of IP addresses, or NAME=ADDRESS for the selection NAME"

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
            "require, select, selections, exclude, networks, check, stability, publish, metrics, "
            "capture"
        ),
    ),
    (
        '[publish.kubelet]\nfile = "/x"',
        "publish.kubelet: unknown key; allowed: files",
    ),
    ('[metrics]\n"a\\nb" = 1', "metrics.a\\x0ab: unknown key; allowed: listen"),
    (
        f"{'k' * 100_000} = 1",
        (
            f"{'k' * 57}...: unknown key; allowed: state, hostname, families, require, select, "
            "selections, exclude, networks, check, stability, publish, metrics, capture"
        ),
    ),
    (f"[selections.{'s' * 100_000}]", f"selections.{'s' * 57}... = a table; {_NAME}"),
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
        f'hostname = "two words"; allowed: {_HOST_NAME}',
    ),
    *(
        (
            f"hostname = {name}",
            f"hostname = {shown}; allowed: {_HOST_NAME}",
        )
        for name, shown in [
            ('"node_1"', '"node_1"'),
            ('"n1."', '"n1."'),
            ('"n1..example"', '"n1..example"'),
            ('"-n1"', '"-n1"'),
            ('"n1-.example"', '"n1-.example"'),
            ('"n1\\n"', '"n1\\x0a"'),
            ('"n1\\u0000"', '"n1\\x00"'),
            ('"\\tn1"', '"\\x09n1"'),
            ('"n\u00f6de"', '"n\u00f6de"'),
            ('"\u212a8s"', '"\u212a8s"'),
            (f'"{"n" * 64}"', f'"{"n" * 56}...'),
            (f'"{"n.ab" * 64}"', f'"{"n.ab" * 14}...'),
        ]
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
        '[select]\nmode = "reach"',
        (
            'select.mode = "reach"; allowed: "default-route", "interface", "cidr", "route-to", '
            '"dns" or "static"'
        ),
    ),
    (
        '[select]\nmode = "cidr"',
        'select.mode = "cidr"; allowed: only with a list: select.cidrs is empty',
    ),
    (
        '[select]\nmode = "interface"\ninterfaces = []',
        'select.mode = "interface"; allowed: only with a list: select.interfaces is empty',
    ),
    (
        '[select]\nmode = "route-to"',
        'select.mode = "route-to"; allowed: only with a list: select.route_to or hint is empty',
    ),
    (
        '[select]\nmode = "static"',
        'select.mode = "static"; allowed: only with a list: select.static is empty',
    ),
    (
        '[select]\ninterfaces = ["eth0"]',
        (
            'select.interfaces = ["eth0"]; '
            'allowed: [] in mode "default-route": it is the list of mode "interface"'
        ),
    ),
    (
        '[select]\nmode = "dns"\nroute_to = ["192.0.2.1"]',
        (
            'select.route_to = ["192.0.2.1"]; '
            'allowed: [] in mode "dns": it is the list of mode "route-to"'
        ),
    ),
    (
        '[select]\nmode = "interface"\ninterfaces = ["eth[[:digit:]]"]',
        (
            'select.interfaces = ["eth[[:digit:]]"] ("eth[[:digit:]]" is not allowed); '
            + _PLAIN_GLOBS
        ),
    ),
    (
        '[select]\nmode = "interface"\ninterfaces = ["eth0", "!eth1"]',
        (
            'select.interfaces = ["eth0", "!eth1"] ("!eth1": "!" in front has no meaning here); '
            + _PLAIN_GLOBS
        ),
    ),
    (
        '[select]\nmode = "cidr"\ncidrs = ["10.0.0.1"]',
        'select.cidrs = ["10.0.0.1"] ("10.0.0.1" is not a network); ' + _NETWORKS,
    ),
    (
        '[select]\nmode = "route-to"\nroute_to = ["router.example"]',
        'select.route_to = ["router.example"] ("router.example" is not an IP address); '
        + _ADDRESSES,
    ),
    *(
        (
            f'[select]\nmode = "route-to"\nroute_to = ["{address}"]',
            f'select.route_to = ["{address}"] ("{address}" is {what}); {_ADDRESSES}',
        )
        for address, what in [
            ("0.0.0.0", "the unspecified address"),
            ("::", "the unspecified address"),
            ("127.0.0.53", "a loopback address"),
            ("::1", "the loopback address"),
            ("224.0.0.1", "a multicast address"),
            ("ff02::1", "a multicast address"),
            ("255.255.255.255", "the broadcast address"),
            ("::ffff:127.0.0.1", "a loopback address"),
            ("fe80::1", "a link-local address, and no link is named"),
        ]
    ),
    (
        (
            '[select]\nmode = "route-to"\nroute_to = ["10.0.0.1"]\n'
            '[selections.a]\nmode = "route-to"\n'
            f"route_to = {[f'10.0.0.{number}' for number in range(2, 18)]}"
        ),
        (
            'selections.a.route_to = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0....; '
            "allowed: at most 16 different ones, all selections together"
        ),
    ),
    (
        '[select]\nhint = ["10.0.0.0/8"]',
        'select.hint = ["10.0.0.0/8"] ("10.0.0.0/8" is not an IP address); ' + _ADDRESSES,
    ),
    ('[select]\nvrf = "a b"', 'select.vrf = "a b"; allowed: the name of a VRF, or "" for none'),
    (
        '[select]\nvrf = "' + "r" * 16 + '"',
        f'select.vrf = "{"r" * 16}"; allowed: the name of a VRF, or "" for none',
    ),
    (
        '[select]\nvrf = "red"\ntable = 100',
        'select.vrf = "red"; allowed: a VRF or a table, not both',
    ),
    ("[select]\nextra = -1", f"select.extra = -1; {_EXTRA}"),
    ("[select]\nextra = 65", f"select.extra = 65; {_EXTRA}"),
    ("[select]\nextra = false", f"select.extra = false; {_EXTRA}"),
    ('[select]\nextra = "1"', f'select.extra = "1"; {_EXTRA}'),
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
        '[select]\nfallback = "interface:!eth0"',
        (
            'select.fallback = "interface:!eth0" ("!eth0": "!" in front has no meaning here); '
            'allowed: "auto", "none", "physical" or "interface:NAME"'
        ),
    ),
    (
        '[select]\nfallback = "default-route"',
        (
            'select.fallback = "default-route"; '
            'allowed: "auto", "none", "physical" or "interface:NAME"'
        ),
    ),
    *(
        (f'[select]\nmode = "static"\nstatic = {static}', f"select.static = {static} {line}")
        for static, line in [
            (
                '["192.0.2.1", "192.0.2.2"]',
                (
                    '(rule need-single-or-dual: "192.0.2.1,192.0.2.2" has two ipv4 addresses); '
                    "allowed: one, or one of each family"
                ),
            ),
            (
                '"192.0.2.1,::ffff:192.0.2.1"',
                (
                    '(rule need-single-or-dual: "192.0.2.1,::ffff:192.0.2.1" has two ipv4 '
                    "addresses); allowed: one, or one of each family"
                ),
            ),
            (
                '"192.0.2.1,2001:db8::1,192.0.2.2"',
                (
                    '(rule need-single-or-dual: "192.0.2.1,2001:db8::1,192.0.2.2" has 3 '
                    "addresses); allowed: one, or one of each family"
                ),
            ),
            (
                '"192.0.2.1,::"',
                (
                    '(rule unspecified-in-pair: "192.0.2.1,::" has :: in a pair); '
                    "allowed: two addresses of this host, or :: alone"
                ),
            ),
            (
                '["192.0.2.1", "node"]',
                '(rule parse: "node" is not an IP address); allowed: one, or a pair',
            ),
            (
                '["192.0.2.1,2001:db8::1"]',
                (
                    '(rule parse: "192.0.2.1,2001:db8::1" has a comma); '
                    "allowed: one address in an item"
                ),
            ),
            (
                '["192.0.2.1", "2001:db8::1,"]',
                '(rule parse: "2001:db8::1," has a comma); allowed: one address in an item',
            ),
            (
                '["192.0.2.1/24"]',
                '(rule parse: "192.0.2.1/24" is not an IP address); allowed: one, or a pair',
            ),
            (
                '[" 192.0.2.1"]',
                '(rule parse: " 192.0.2.1" is not an IP address); allowed: one, or a pair',
            ),
            (
                '"node,"',
                (
                    "(rule parse: no IP address is in it); "
                    "allowed: one address, or one of each family, as the kubelet takes --node-ip"
                ),
            ),
        ]
    ),
    (
        'families = ["ipv4"]\n[select]\nmode = "static"\nstatic = "2001:db8::1"',
        'select.static = "2001:db8::1"; allowed: addresses of wanted families: ipv4',
    ),
    (
        '[select]\nmode = "static"\nstatic = 5',
        f"select.static = 5; {_ADDRESSES}",
    ),
    (
        '[selections.storage]\nmode = "cidr"',
        (
            'selections.storage.mode = "cidr"; '
            "allowed: only with a list: selections.storage.cidrs is empty"
        ),
    ),
    (
        '[selections.storage]\nmodus = "cidr"',
        (
            "selections.storage.modus: unknown key; the nearest is selections.storage.mode; "
            "allowed: mode, interfaces, cidrs, route_to, hint, static, table, vrf, fallback, extra"
        ),
    ),
    ("selections = 5", "selections = 5; allowed: tables [selections.NAME]"),
    ("[selections]\nbgp = 5", "selections.bgp = 5; allowed: a table [selections.bgp]"),
    ("[selections.Storage]", f"selections.Storage = a table; {_NAME}"),
    ('[selections."a/b"]', f"selections.a/b = a table; {_NAME}"),
    ("[selections.-x]", f"selections.-x = a table; {_NAME}"),
    (
        "".join(f"[selections.s{number}]\n" for number in range(16)),
        "selections = a table; allowed: at most 15",
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
    (
        '[networks]\nexternal = ["224.0.0.1"]',
        'networks.external = ["224.0.0.1"] ("224.0.0.1" is a multicast address); ' + _ADDRESSES,
    ),
    (
        '[networks]\ninternal = ["10.0.0.0/8"]\npublic = ["192.0.2.0/24", "10.0.0.0/8"]',
        (
            'networks.public = ["192.0.2.0/24", "10.0.0.0/8"] '
            '("10.0.0.0/8" is in networks.internal, too); allowed: each in one of them'
        ),
    ),
    (
        '[networks]\nnodes = ["10.0.0.1/8"]',
        'networks.nodes = ["10.0.0.1/8"] '
        '("10.0.0.1/8" has host bits set; the network is 10.0.0.0/8); ' + _NETWORKS,
    ),
    (
        '[networks]\nnat64 = ["64:ff9b::/95"]',
        (
            'networks.nat64 = ["64:ff9b::/95"] ("64:ff9b::/95" is not allowed); '
            "allowed: a list of IPv6 prefixes of /32, /40, /48, /56, /64 or /96 (RFC 6052)"
        ),
    ),
    *(
        (
            f"[networks]\nothers = {others}",
            (
                f"networks.others = {shown}; allowed: lists of networks by the name of a cluster "
                'such as {berlin = ["10.0.0.0/16"]}'
            ),
        )
        for others, shown in [
            ('["10.0.0.0/16"]', '["10.0.0.0/16"]'),
            ('{b = "10.0.0.0/16"}', "a table (b has no list)"),
            ('{b = ["10.0.0.0"]}', 'a table (b: "10.0.0.0" is not a network)'),
            (
                '{"a b" = []}',
                'a table ("a b": names are 1 to 63 of letters, digits, _, . and -)',
            ),
        ]
    ),
    *(
        (
            f"[check]\npeers = {peers}",
            f"check.peers = {shown}; allowed: {allowed}",
        )
        for peers, shown, allowed in [
            ('["node"]', '["node"] ("node" is not an IP address)', _PEERS),
            ('["ff02::1"]', '["ff02::1"] ("ff02::1" is a multicast address)', _PEERS),
            ('["a b=192.0.2.1"]', '["a b=192.0.2.1"] ("a b=192.0.2.1" is not allowed)', _PEERS),
            (
                '["bgp=192.0.2.1"]',
                '["bgp=192.0.2.1"] (there is no selection "bgp")',
                "NAME=ADDRESS of none is configured",
            ),
        ]
    ),
    ('[check]\nipv6 = "yes"', 'check.ipv6 = "yes"; allowed: "global", "ula", or "" for either'),
    *(
        (
            f"[check]\nnode_mask = {masks}",
            (
                f"check.node_mask = {masks} ({what}); allowed: a list of prefix lengths such as "
                "[24, 64], one for each family; up to 32 it is IPv4"
            ),
        )
        for masks, what in [
            ("[129]", "129 is not allowed"),
            ('["/24"]', '"/24" is not allowed'),
            ("[24, 25]", "two of one family"),
        ]
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
    ('[capture]\naudit = "0s"', 'capture.audit = "0s"; allowed: "1s" or more, or "never"'),
    (
        'state = "' + "x" * 100 + '"',
        'state = "' + "x" * 56 + '...; allowed: an absolute path, or "" for no memory',
    ),
]
