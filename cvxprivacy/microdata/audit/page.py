"""An audit as one HTML page that needs nothing else."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from cvxprivacy.microdata.audit import picture
from cvxprivacy.microdata.audit.findings import SHOWN, Findings
from cvxprivacy.microdata.audit.words import (
    conclusions,
    facts,
    leaked,
    meanings,
    measured,
    notes,
    number,
    shown,
)

LISTS = ("I1", "I2", "k")  # measures whose worst letters are listed
COLUMNS = {"records": "k", "I1": "I1", "I2": "I2", "entropy ℓ": "entropy l"}  # of these lists


def html(findings: Findings, *, document: bool = True) -> str:
    """Return the audit as a page with its style and picture inside, or for a page without them."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    source = files("cvxprivacy.microdata").joinpath("templates", "audit.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    return template.render(
        document=document,
        names=findings.released.names,
        facts=list(facts(findings).items()),
        conclusions=conclusions(findings),
        measures=measured(findings),
        leaks=leaked(findings),
        meanings=list(meanings(findings).items()),
        picture=picture.svg(findings) if document else "",
        columns=list(COLUMNS),
        worst={findings.measures[name].title: _worst(findings, name) for name in LISTS},
        notes=notes(findings),
    )


def _worst(findings: Findings, measure: str) -> list[list[Any]]:
    """Return the worst letters of a measure, what is measured of them, and their commonest W."""
    counts, rows = findings.laws.released.joint, []
    for i in findings.measures[measure].order[:SHOWN]:
        values = [number(float(findings.measures[name].values[i])) for name in COLUMNS.values()]
        most = int(counts[:, i].argmax())
        share = f"{shown(findings.released.w[most])}: {counts[most, i] / counts[:, i].sum():.0%}"
        rows.append([shown(findings.letters[i]), *values, share])
    return rows
