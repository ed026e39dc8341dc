"""What happens to a host while all of them look, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.peers import idle, overrun, starts
from benchmarks.peers.following import Course, Row, follow, merged, row, writer_seconds
from benchmarks.peers.process import NotStartedError
from benchmarks.peers.registry import PEERS
from benchmarks.storms import IPV4, IPV6, Addresses, Ground, ground

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.peers.registry import Peer

FULL_ROUTES = 200_000
SMALL_ROUTES = 20_000
FLIP_MS = 100
SMALL_FLIP_MS = 20
SHARP_FLIP_MS = 10
PAIRS = 100
PAIRS_FLIP_MS = 10
HOSTS = 500
PROMOTIONS = 100
PROMOTION_NETWORK = "198.18.0.0/23"
TURNS = 2
SMALL_TURNS = 2
"""Of those that figures are made of: by turns, so that a busy machine is busy for all of them."""
SHARP_TURNS = 4

SLOW = ("iproute", "iproute-large", "async", "ndb")
TOO_SLOW = "the backlog of this storm would take it minutes: see the small one"
SLEEPS = "it sleeps longer than this takes: see overrun and idle"
FIGURED = ("recv", "ring", "bpf", "iproute-large")
SHARP = ("recv", "ring", "bpf", "netlink", "ip-monitor", "bird", "zebra")

_DELAYS = ("changes", "missed", "wrong", "median_s", "p99_s", "max_s")
_COSTS = ("cpu_s", "cpu_per_message_us", "wake_ups", "peak_rss_mb", "lost", "writer_s")
_OF_LOADS = (*_DELAYS, *_COSTS)


class Scenario(NamedTuple):
    """Something that happens to each peer in the same way."""

    name: str
    title: str
    load: str
    columns: Sequence[str]
    """Keys of a row, in the order of the table."""
    run: Callable[[Sequence[Peer]], list[Row]]
    leaves_out: dict[str, str]
    """Peers by their names, and why they are not asked."""
    notes: Sequence[str] = ()


def _by_turns(
    peers: Sequence[Peer],
    watch: str,
    load: Callable[[Ground], Row],
    turns: int = 1,
) -> list[Row]:
    """Each peer once, those of FIGURED so many times; the first row is the load alone."""
    courses: dict[str, list[Course]] = {peer.name: [] for peer in peers}
    failed = {}
    with ground() as alone:
        writer_s = writer_seconds(load(alone))
    for turn in range(turns):
        for peer in peers:
            if peer.name in failed or (turn and peer.name not in FIGURED):
                continue
            try:
                with ground() as made:
                    courses[peer.name].append(follow(peer, made, watch, load))
            except NotStartedError as error:
                failed[peer.name] = row(peer, f"missing: {error}")
    rows = [failed.get(peer.name) or merged(peer, courses[peer.name]) for peer in peers]
    nobody = {"peer": "nobody", "title": "nobody listens", "outcome": "", "writer_s": writer_s}
    return [nobody, *rows]


def _route_storm(
    count: int, every_ms: int, family: Addresses, turns: int = 1
) -> Callable[[Sequence[Peer]], list[Row]]:
    def load(made: Ground) -> Row:
        return made.routes(count, every_ms, family)

    return lambda peers: _by_turns(peers, family.watch, load, turns)


def _link_churn(peers: Sequence[Peer]) -> list[Row]:
    return _by_turns(peers, IPV4.watch, lambda made: made.links(PAIRS, PAIRS_FLIP_MS))


def _promotions(peers: Sequence[Peer]) -> list[Row]:
    def load(made: Ground) -> Row:
        return made.load("promotions", "eth0", PROMOTIONS, PROMOTION_NETWORK, HOSTS)

    return _by_turns(peers, PROMOTION_NETWORK, load)


def _storm(count: int, family: str, every_ms: int) -> str:
    return (
        f"{count} {family} host routes come and go in batches of 100, as fast as the kernel takes "
        f"them; meanwhile an address comes or goes every {every_ms} ms, each time in another "
        "network"
    )


_FULL = {**dict.fromkeys(SLOW, TOO_SLOW), "poll-10s": SLEEPS}
_SMALL = {
    peer.name: "see the full storm" for peer in PEERS if peer.name not in {*SLOW, "recv", "bpf"}
}

SCENARIOS = (
    *(
        Scenario(
            f"routes-{name.lower()}",
            f"{name} route storm while one address flips",
            _storm(FULL_ROUTES, name, FLIP_MS),
            _OF_LOADS,
            _route_storm(FULL_ROUTES, FLIP_MS, family, TURNS),
            _FULL,
        )
        for name, family in (("IPv4", IPV4), ("IPv6", IPV6))
    ),
    *(
        Scenario(
            f"routes-{name.lower()}-small",
            f"{name} route storm, a size that pyroute2 comes to the end of",
            _storm(SMALL_ROUTES, name, SMALL_FLIP_MS),
            _OF_LOADS,
            _route_storm(SMALL_ROUTES, SMALL_FLIP_MS, family, SMALL_TURNS),
            _SMALL,
        )
        for name, family in (("IPv4", IPV4), ("IPv6", IPV6))
    ),
    Scenario(
        "flips",
        "how late, under a storm",
        _storm(FULL_ROUTES, "IPv4", SHARP_FLIP_MS),
        _OF_LOADS,
        _route_storm(FULL_ROUTES, SHARP_FLIP_MS, IPV4, SHARP_TURNS),
        {peer.name: "see the storm above" for peer in PEERS if peer.name not in SHARP},
    ),
    Scenario(
        "links",
        "interface churn while one address flips",
        f"{PAIRS} veth pairs are made, one end moved into another namespace, both set up, and all "
        f"deleted; meanwhile an address comes or goes every {PAIRS_FLIP_MS} ms",
        _OF_LOADS,
        _link_churn,
        {"poll-10s": SLEEPS},
    ),
    Scenario(
        "promotion",
        f"{HOSTS} addresses of one network, promotion storm",
        f"on a link with promote_secondaries=1 and {HOSTS} addresses of {PROMOTION_NETWORK} the "
        f"primary one is deleted {PROMOTIONS} times; the kernel tells of all routes anew each time",
        tuple(name for name in _OF_LOADS if name not in {"wrong", "cpu_per_message_us"}),
        _promotions,
        {"bird": "it names networks, not addresses", "poll-10s": SLEEPS},
    ),
    Scenario(
        "cold-start",
        "cold start on a full table",
        f"{starts.ADDRESSES} addresses on {starts.LINKS} links and {starts.ROUTES} routes, half of "
        "each IPv6, are there; from exec until it is ready",
        starts.COLUMNS,
        starts.run,
        starts.LEAVES_OUT,
        starts.NOTES,
    ),
    Scenario(
        "overrun",
        "overrun, and the time until the answer is right",
        overrun.LOAD,
        overrun.COLUMNS,
        overrun.run,
        overrun.LEAVES_OUT,
        overrun.NOTES,
    ),
    Scenario(
        "idle",
        "idle cost",
        f"{idle.ADDRESSES} addresses are there; nothing happens for {idle.SECONDS} s",
        idle.COLUMNS,
        idle.run,
        {},
        idle.NOTES,
    ),
)
