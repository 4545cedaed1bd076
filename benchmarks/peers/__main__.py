"""Put the same cases to this package and to its peers; print how far they agree, and who is right.

    python -m venv peers && . peers/bin/activate
    pip install -e ./verifier -e ".[tables]" -r benchmarks/peers/requirements.txt
    python -m benchmarks.peers              # all of them; or some: dit qif pycanon pot arx
    python -m benchmarks.peers --examples   # with the first case of each line that differs

ARX is asked where java is there and ``ARX_CLASSPATH`` has its classes (the jar libarx, or a build
of its sources with the jars of its folder lib).
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
import time
import warnings
from pathlib import Path

from .tally import HEAD

PEERS = ("dit", "qif", "pycanon", "pot", "arx")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "peers.md"


def main(names: list[str], *, examples: bool) -> int:
    """Print the table; return how often this package was wrong."""
    warnings.simplefilter("ignore")
    print(HEAD)
    wrong, cases, notes, differences = 0, 0, [], []
    for name in names or PEERS:
        start = time.perf_counter()
        try:
            peer = importlib.import_module(f".with_{name}", __package__)
            lines = list(peer.tallies())
        except ModuleNotFoundError as error:
            notes.append(f"{name}: not asked, {error}")
            continue
        print(name)
        for line in lines:
            print(line.row(), flush=True)
            wrong += line.wrong
            cases += len(line.agreement)
            if line.example:
                differences.append(f"{name}, {line.quantity}: {line.example}")
        notes += getattr(peer, "NOTES", [])
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(f"\nof {cases:,} cases this package is wrong in {wrong}")
    print("\n".join(notes))
    if examples:
        print("\nthe first difference of each line:", *differences, sep="\n")
    return wrong


def scripts() -> None:
    """Run the peers' scripts that the page shows beside those of this package."""
    shown = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    for script in shown:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(script, {})
        assert printed.getvalue(), script
    print(f"{len(shown)} scripts of {PAGE.name} run")


if __name__ == "__main__":
    asked = [name for name in sys.argv[1:] if name in PEERS]
    wrong_here = main(asked, examples="--examples" in sys.argv)
    if not asked:
        scripts()
    sys.exit(min(wrong_here, 1))
