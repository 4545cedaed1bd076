"""Audit Adult with this package and with pycanon 1.3.5, and print both: numbers and seconds.

    python benchmarks/sdc/pycanon_audit.py adult.csv

pycanon goes into an environment of its own, made in a temporary folder (the network is needed).
Compared are k, ⌊entropy ℓ⌋, t by the earth mover's distance, basic β, and δ; pycanon leaves out of
δ the values that a group misses, which is our "delta observed" and not δ-disclosure privacy.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

SIX = ["age", "education", "occupation", "relationship", "sex", "native-country"]
CASES = [
    (SIX, "marital-status"),
    (SIX, "income"),
    (["race", "sex"], "marital-status"),
    (["race", "sex"], "education-num"),
    (["race", "sex"], "occupation"),
]
THEIRS = """
import json, sys, time
import pandas as pd
from pycanon import anonymity as of

path, key, sensitive = sys.argv[1], sys.argv[2].split(","), [sys.argv[3]]
frame, found, seconds = pd.read_csv(path), {}, {}
for name, measure in (
    ("k", lambda: of.k_anonymity(frame, key)),
    ("l", lambda: of.entropy_l_diversity(frame, key, sensitive)),
    ("t", lambda: of.t_closeness(frame, key, sensitive)),
    ("beta", lambda: of.basic_beta_likeness(frame, key, sensitive)),
    ("delta observed", lambda: of.delta_disclosure(frame, key, sensitive)),
):
    start = time.perf_counter()
    found[name] = float(measure())
    seconds[name] = time.perf_counter() - start
print(json.dumps({"found": found, "seconds": seconds}))
"""


def environment(folder: Path) -> Path:
    """Return the Python of a fresh environment that has pycanon."""
    venv.create(folder / "pycanon", with_pip=True)
    python = folder / "pycanon" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "pycanon==1.3.5"]
    subprocess.run(install, check=True, capture_output=True)
    return python


def pycanon(python: Path, table: Path, key: list[str], sensitive: str) -> dict[str, Any]:
    """Return what pycanon finds, and the seconds of each measure."""
    command = [python, "-W", "ignore", "-c", THEIRS, table, ",".join(key), sensitive]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def ours(table: Path, key: list[str], sensitive: str) -> dict[str, Any]:
    """Return the same of this package, and the seconds of the whole audit."""
    import pandas as pd

    import cvxprivacy_sdc as sdc

    frame = pd.read_csv(table)
    sdc.audit(frame.head(100), key=key, sensitive=sensitive)  # imports what it needs
    start = time.perf_counter()
    audit = sdc.audit(frame, key=key, sensitive=sensitive)
    seconds = time.perf_counter() - start
    worst = {name: measure.worst for name, measure in audit.measures.items()}
    number = pd.api.types.is_numeric_dtype(frame[sensitive])
    found = {
        "k": worst["k"],
        "l": math.floor(worst["entropy l"] + 1e-9),
        "t": worst["ordered distance" if number else "equal distance"],
        "beta": worst["beta"],
        "delta observed": worst["delta observed"],
    }
    return {"found": found, "seconds": seconds}


def main() -> None:
    """Compare, print."""
    table = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder))
        for key, sensitive in CASES:
            theirs, mine = pycanon(python, table, key, sensitive), ours(table, key, sensitive)
            print(f"{sensitive} given {', '.join(key)}")
            for name, value in mine["found"].items():
                print(f"  {name:<15} {value:>12.6g}   pycanon {theirs['found'][name]:>12.6g}")
            print(
                f"  seconds: whole audit {mine['seconds']:.3f}; pycanon's t-closeness alone "
                f"{theirs['seconds']['t']:.2f}, all five {sum(theirs['seconds'].values()):.2f}"
            )


if __name__ == "__main__":
    main()
