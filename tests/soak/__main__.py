"""`make soak N=...`: random kernel operations, checked at every quiet point, on each tier.

Runs in a network namespace of its own. At a quiet point three things must hold: the state equals
a fresh dump; rows and views equal those of the reference engine given that dump; the decision
follows the best row. Prints one line at the end; exit status 1 at the first difference.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time

from tests.soak.check import DifferenceError, Follower
from tests.soak.world import World
from tests.tiers import TIERS, Tier

CLONE_NEWNET = 0x40000000


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--quiet-every", type=int, default=40, help="operations, on average")
    parser.add_argument("--source", choices=TIERS, default="netlink")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        print(f"soak: no network namespace: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return 3
    print(f"soak: seed {seed}, {options.operations} operations, {options.source}", flush=True)
    return run(seed, options.operations, options.quiet_every, TIERS[options.source])


def run(seed: int, operations: int, quiet_every: int, tier: Tier) -> int:
    """One campaign."""
    world = World(seed)
    follower = Follower(tier)
    began = time.monotonic()
    quiet = 0
    trail: list[str] = []
    try:
        for number in range(1, operations + 1):
            trail.append(world.step())
            del trail[:-200]
            follower.follow()
            if world.random.randrange(quiet_every) == 0 or number == operations:
                follower.check()
                quiet += 1
            if number % 100_000 == 0:
                print(f"soak: {number} operations, {quiet} quiet points", flush=True)
        seconds = time.monotonic() - began
        print(f"soak: refused by the kernel: {sum(world.refused.values())}")
        print(f"soak: counters: {follower.summary()}")
    except DifferenceError as difference:
        print(f"soak: seed {seed}, operation {number}: {difference}", file=sys.stderr)
        print(f"soak: the last operations were {' '.join(trail)}", file=sys.stderr)
        print("\n".join(follower.recent()), file=sys.stderr)
        return 1
    finally:
        follower.close()
        world.close()
    print(
        f"soak: passed: seed {seed}, {operations} operations, {quiet} quiet points, "
        f"{seconds:.0f} s, {sum(world.done.values())} done, {tier}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
