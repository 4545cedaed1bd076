"""Attacks on what is proved, each a campaign of any length.

``python -m tests.attacks forge --count 100000`` changes documents and seals them anew, ``lie`` has
solvers propose nonsense, ``gaussian`` writes one problem several ways, ``malformed`` asks the
verifier for time and memory.  One line sums up; the exit code is 1 if anything was false.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tests import forgeries, gaussian_orders, lies, malformed  # noqa: E402
from tests.tally import Tally  # noqa: E402

CAMPAIGNS: dict[str, Any] = {
    "forge": forgeries.campaign,
    "lie": lies.campaign,
    "gaussian": gaussian_orders.campaign,
    "malformed": malformed.campaign,
}
PART = 60  # trials at a time, of one process


def part(value: tuple[str, int, int, int]) -> Tally:
    name, count, seed, first = value
    return CAMPAIGNS[name](count, seed, first)


def campaign(name: str, count: int, seed: int = 0, first: int = 0, jobs: int = 1) -> Tally:
    """Run a campaign, in several processes if asked to."""
    if jobs == 1:
        return part((name, count, seed, first))
    ends = range(first, first + count, PART)
    parts = [(name, min(PART, first + count - start), seed, start) for start in ends]
    with multiprocessing.get_context("spawn").Pool(jobs) as processes:
        return sum(processes.imap_unordered(part, parts), Tally())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    value = parser.parse_args(arguments)
    tally = campaign(value.campaign, value.count, value.seed, value.first, value.jobs)
    for line in tally.false[:50]:
        print(line)
    print(f"{value.campaign}: {tally}")
    return 1 if tally.false else 0


if __name__ == "__main__":
    sys.exit(main())
