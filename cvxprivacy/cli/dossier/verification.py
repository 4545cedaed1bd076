"""How a reader checks the proof: the commands, the sums of the files, and what verify prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier.secrecy import KEPT_OUT, Guard, file_name

if TYPE_CHECKING:
    from cvxprivacy.cli.dossier.common import Asked
    from cvxprivacy.cli.dossier.provenance import Kept

__all__ = ["verification"]

Facts = dict[str, Any]

MOST_BYTES = 8 << 20  # of a proof that is proved again while the report is made


def verification(
    kept: Kept, asked: Asked, guard: Guard, sensitive: Sequence[str], *, all_records: bool = True
) -> Facts:
    """Return how the release is checked; a proof file of moderate size is verified on the spot.

    A proof that is not of ``all_records`` of the table is checked without it.

    What the verifier prints is its own text; a line that names a confidential value is kept out.
    """
    from cvxprivacy.verifier.statement import reported
    from cvxprivacy.verifier.verify import disagreements

    paths = {output.option: output.path for output in kept.outputs if output.path}
    table, names = file_name(asked.table), {o: file_name(str(p)) for o, p in paths.items()}
    sums = [f"sha256sum {name}" for name in (table, *names.values())]
    if "certificate" not in names:
        return {
            "commands": sums, "files": kept.files(), "verified": None, "says": [],
            "note": "no proof was written: pass --certificate proof.json",
        }  # fmt: skip
    proof = names["certificate"]
    problem = f" --problem {names['problem-out']}" if "problem-out" in names else ""
    against = f" --table {table}{problem}" if all_records else ""
    commands = [f"cvxprivacy verify {proof}{against}", *sums]
    with kept.copy("certificate", ".json") as path:
        if path is None or path.stat().st_size > MOST_BYTES:
            note = "the proof was not verified again while this report was made: it is large"
            return {"commands": commands, "files": kept.files(), "verified": None, "says": [],
                    "note": note}  # fmt: skip
        document = json.loads(path.read_text(encoding="utf-8"))
    problems = disagreements(document)
    note = "" if all_records else "the proof is of the records that the channel was designed on"
    lines = [] if problems else reported(proof, document).splitlines()
    lines = [_without_edges(line, sensitive) for line in lines]
    return {
        "commands": commands,
        "files": kept.files(),
        "verified": not problems,
        "says": guard.kept(lines, numbers=False),
        "note": note,
    }


def _without_edges(line: str, sensitive: Sequence[str]) -> str:
    """Return a line of the verifier without the edges of the confidential columns' bins."""
    from cvxprivacy.verifier.wording import quoted

    parts = line.split("; ")
    for i, part in enumerate(parts):
        if any(part.startswith(f"{quoted(name)} in ") for name in sensitive):
            parts[i] = f"{part.partition(' from ')[0]} {KEPT_OUT}"
    return "; ".join(parts)
