"""The sections of a dossier: what each says, and which fields it has.

The JSON Schema of ``--report report.json`` is made of this. A dictionary is an object with these
fields (``{str: …}`` has any), a list an array, a tuple one of several,
a text itself, and a whole number is not negative.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["ABSENT", "SCHEMA", "SECTIONS", "schema"]

SCHEMA = "cvxprivacy dossier 4"

names, number, truth = [str], (float, None), (bool, None)
extended = (float, "infinite", None)
sha256 = re.compile("^[0-9a-f]{64}$")

SECTIONS: dict[str, tuple[str, Any]] = {
    "schema": ("", SCHEMA),
    "kind": ("", ("release", "audit")),
    "title": ("", str),
    "verdict": ("Null: nothing was drawn, or nothing was asked.",
        {"may_be_released": truth, "words": str, "reasons": names}),
    "cautions": ("What the board should weigh before it signs.", names),
    "asked": (
        "What was asked for; `suppress` has the price of a value that is withheld, of all columns "
        "where none is named.",
        {
            "budget": number, "units": str, "leakage": str, "prior": ("source", "any", None),
            "attributes": [{"column": str, "kind": str, "weight": float}],
            "suppress": [{"column": str, "price": float}],
            "criteria": [{"criterion": str, "asks": str}],
        }),
    "undecided": ("Criteria of a table that are not decided, as none was drawn.", names),
    "leaks": (
        "What is still told, counted in the released table where `information.counted`: by the "
        "best guess, on average, to who knows the key, by orders of records; of numbers what "
        "straight lines explain, what is told if they are Gaussian, and how far they are off. "
        "`records` are those protected, `others` columns that are neither confidential nor key.",
        {
            "records": int, "others": int,
            "explained": [{"column": str, "released": number, "original": number}],
            "gaussian": ({"units": str, "released": number, "original": number}, None),
            "off": [{"column": str, "mean": number}],
            "guess": ({"released": number, "original": number, "nothing": number}, None),
            "information": (
                {
                    "counted": bool, "units": str, "released": number, "original": number,
                    "chance": bool,
                },
                None,
            ),
            "smallest": (int, None), "weighted": bool,
            "informed": ({"sure": number, "sure_before": number}, None),
            "orders": [{"line": str, "about": str, "by": str}], "hints": str, "shuffled": bool,
        }),
    "files": ("Which file leaves the house, and which never do.",
        {
            "released": ({"name": str, "sha256": (sha256, None)}, None), "leaves": bool,
            "stay": names,
        }),
    "distortion_words": ("What is changed, column by column.", names),
    "figures": (
        "What the key tells, on the law of the release; `informed` to who knows it; in another "
        "measure of leakage.",
        {
            "units": str, "law": str, "before": number, "after": number, "distortion": number,
            "whatever_prior": number,
            "before_recoding": ({"value": number, "units": str}, None),
            "informed": (
                {
                    "before": number, "after": number, "sure_before": number, "sure": number,
                    "greatest_before": number, "greatest": number,
                },
                None,
            ),
            "leakage": ({"measure": str, "before": number, "after": number, "none": number}, None),
        }),
    "signatures": ("Who signs; nobody where it must not be released.", names),
    "input": (
        "Where the numbers come from. Keyed sums are HMAC-SHA-256 under the key that the file"
        " called `house` keeps. Edges and groups of a confidential column are null, and the "
        "command has neither folders nor the seed.",
        {
            "file": {"name": str, "keyed_sha256": sha256}, "house": (str, None),
            "released": ({"name": str, "sha256": sha256, "bytes": int}, None), "records": int,
            "left_out": int, "confidential": {"columns": names, "values": int},
            "key": {"columns": names, "cells": int}, "columns": [{"column": str, "part": str}],
            "recodings": [
                {"column": str, "intervals": int, "edges": ([(float, str)], None)},
                {"column": str, "unit": str},
            ],
            "groups": [
                {
                    "column": str, "groups": ([{"name": str, "count": int, "values": names}], None),
                    "rest": (str, None),
                },
            ],
            "missing": ("refuse", "level", "drop"), "reading": {str: (str, float, bool, None)},
            "when": re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$"), "versions": {str: str},
            "command": str, "seed": ({"given": bool, "row_id": bool, "balanced": bool}, None),
            "notes": names,
        }),
    "program": (
        "The convex program in LaTeX, and the enclosure of its optimum that is proved; "
        "`designed` where the counts of the table were, and it was not drawn; `sees` is what the "
        "randomisation saw of W, X and earlier releases.",
        {
            "designed": bool, "draw": str, "sees": str, "formulation": str, "statement": str,
            "rows": [{"left": str, "right": str}],
            "status": str, "minimised": str, "unit": str, "lower": number, "upper": number,
            "gap": number, "terms": [{"name": str, "value": number}],
        }),
    "sequel": (
        "Of a release after others: which records are in them, and what all tell, between two"
        " proved ends. Of those changed, or in some tables only, nothing is proved.",
        {
            "after": names, "units": ("bits", "nats"), "matched": int, "new": int, "changed": int,
            "partly": int, "gone": int,
            "told": [{"name": str, "lower": float, "upper": float, "words": str}],
            "new_records": {"status": str, "lower": float, "upper": float},
        }),
    "checks": (
        "What was asked, on the law of the release, as is proved (null where it is proved of "
        "another law alone), and on the table, as is counted.",
        [
            {
                "criterion": str, "says": str,
                "law": ({"of": str, "value": number, "bound": number, "holds": truth}, None),
                "table": (
                    {
                        "value": number, "bound": number, "holds": truth, "groups": (int, None),
                        "records": (int, None),
                    },
                    None,
                ),
                "quantity": str, "unit": str, "per_group": bool, "breaks": bool, "refuses": bool,
                "standing": str,
            },
        ]),
    "merged": (
        "Groups that were merged, and how many are left; distortion and risk are on the law.",
        {
            "groups": int, "records": int, "left": int, "distortion_before": number,
            "distortion_after": number, "distortion": number, "risk": number, "ties": str,
        }),
    "letters": (
        "Released groups, the greatest divergence first; those of fewer than ten records "
        "last, whose divergence is not told.",
        {
            "columns": names, "unit": str, "average": number,
            "bounds": {"records": number, "risk": number},
            "rows": [{"key": names, "records": int, "risk": number}],
        }),
    "measures": ("Each measure at its worst group.",
        {
            "rows": [
                {
                    "measure": str, "worst": extended, "groups": int, "records": int,
                    "average": extended,
                },
            ],
            "notes": names,
        }),
    "tradeoff": (
        "The optimum over the number that was chosen; `partial` is empty if the curve is "
        "whole.",
        {
            "parameter": str, "words": str, "kind": str, "minimised": str, "unit": str,
            "points": [{"x": number, "lower": number, "upper": number}],
            "curve": [{"x": number, "achieved": number, "proved": number}],
            "chosen": {"x": number, "value": number}, "band": number, "solved": int, "partial": str,
            "x_unit": str, "choices": [{"name": str, "x": float, "value": float, "chosen": bool}],
        }),
    "prices": ("", [{"name": str, "typed": number, "price": extended, "words": str}]),
    "changed": ("Records whose key is another one.",
        {
            "records": int, "columns": [{"column": str, "records": int, "share": number}],
            "any": {"records": int, "share": number},
        }),
    "quality": ("How far figures are off, as medians, beside those of PRAM; information in bits.",
        {
            "changed": float, "information": number, "pram_information": number,
            "rows": [
                {
                    "kind": ("one-way", "two-way", "correlation", "regression"), "figures": int,
                    "determined": int, "error": number, "standard_error": number,
                    "pram_error": number, "pram_standard_error": number,
                },
            ],
        }),
    "loss": ("Loss of the key as categories, in all the mean of its parts in percent.",
        {
            "columns": [
                {"column": str, "changed": number, "uncertainty": number, "marginal": number},
            ],
            "parts": {str: number}, "total": number,
        }),
    "unmodified": (
        "What copied columns tell, each less what shuffles show; together with `--attack` only.",
        {
            "unit": str, "released": number,
            "rows": [
                {
                    "column": str, "information": number, "bias": number, "corrected": float,
                    "lower": number, "upper": number, "values": int, "records": int,
                    "intervals": (int, None), "kind": ("", "drop", "coarsen", "look"),
                    "advice": str,
                },
            ],
            "together": (
                {
                    "lines": names,
                    "proposals": [{"column": str, "why": str}],
                },
                None,
            ),
        }),
    "uncertainty": (
        "How far information that was counted is known: its bias by Miller and Madow's "
        "formula, what that leaves, counted less both; and which records the proof is of.",
        {
            "rows": [
                {
                    "of": str, "counted": number, "bias": number, "remainder": number,
                    "corrected": number, "lower": number, "upper": number, "level": float,
                    "draws": int, "note": str,
                },
            ],
        }),
    "definitions": ("", [{"term": str, "sentence": str, "source": str}]),
    "verification": (
        "How the release is checked; sums are null of a device, `verified` where none was "
        "tried.",
        {
            "commands": names,
            "files": [
                {
                    "option": str, "name": str, "sha256": (sha256, None),
                    "keyed_sha256": (sha256, None),
                },
            ],
            "verified": truth, "says": names, "note": str,
        }),
    "left_out": ("", [{"section": str, "why": str}]),
}  # fmt: skip
# null where nothing is known of them
ABSENT = {"figures", "program", "sequel", "merged", "letters", "measures", "tradeoff"}
ABSENT |= {"changed", "quality", "loss", "unmodified", "verification"}
_TYPES: dict[Any, dict[str, Any]] = {
    None: {"type": "null"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    int: {"type": "integer", "minimum": 0},
    object: {},
    str: {"type": "string"},
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``--report report.json``."""
    properties = {}
    for name, (says, fields) in SECTIONS.items():
        described = {"description": says} if says else {}
        properties[name] = {**described, **_of((fields, None) if name in ABSENT else fields)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:cvxprivacy:dossier:4",
        "title": "Report of cvxprivacy release or audit for a disclosure board",
        "description": "Numbers are rounded. No value of the confidential attribute stands in a "
        "report.",
        **_object(properties),
    }


def _of(fields: Any) -> dict[str, Any]:
    """Return the schema of what is described so."""
    if isinstance(fields, dict):
        if str in fields:
            return {"type": "object", "additionalProperties": _of(fields[str])}
        return _object({name: _of(inner) for name, inner in fields.items()})
    if isinstance(fields, list):
        return {"type": "array", "items": _of(fields[0] if len(fields) == 1 else tuple(fields))}
    if isinstance(fields, tuple):
        return {"anyOf": [_of(one) for one in fields]}
    if isinstance(fields, re.Pattern):
        return {"type": "string", "pattern": fields.pattern}
    return {"const": fields} if isinstance(fields, str) else _TYPES[fields]


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
