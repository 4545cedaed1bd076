"""Put the same cases to this package and to its peers; print how far they agree, and who is right.

    python -m venv peers && . peers/bin/activate
    pip install -e ./verifier -e ".[tables]" -r benchmarks/peers/requirements.txt
    python -m benchmarks.peers              # all that are installed; or: dit qif pycanon pot arx

ARX runs where ``ARX_CLASSPATH`` names its jar (libarx-….jar of its releases) and java is there.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings

from .tally import HEAD

PEERS = ("dit", "qif", "pycanon", "pot", "arx")


def main(names: list[str]) -> int:
    """Print the table; return how often this package was wrong."""
    warnings.simplefilter("ignore")
    print(HEAD)
    wrong, notes, examples = 0, [], []
    for name in names or PEERS:
        start = time.perf_counter()
        try:
            peer = importlib.import_module(f".with_{name}", __package__)
            lines = list(peer.tallies())
        except ModuleNotFoundError as error:
            notes.append(f"{name}: not asked, {error}")
            continue
        for line in lines:
            print(line.row(name), flush=True)
            wrong += line.wrong
            if line.example:
                examples.append(f"{name}, {line.quantity}: {line.example}")
        notes += getattr(peer, "NOTES", [])
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(f"\nnumbers of this package that are wrong: {wrong}")
    print("\n".join(notes))
    if "--examples" in sys.argv:
        print("\nthe first difference of each line:", *examples, sep="\n")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main([name for name in sys.argv[1:] if name in PEERS]), 1))
