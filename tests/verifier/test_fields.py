"""Nothing that no proof reads stands in a document, and nothing that it needs is missing."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

import cvxprivacy as cpv
from cvxprivacy_verifier import verify

PAIR = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
PROBLEMS = {
    "channel": cpv.PrivacyDistortion(
        PAIR, cpv.hamming(2), budget=0.2, criteria=[cpv.LocalPrivacy(3), cpv.TCloseness(0.1)]
    ),
    "excess": cpv.MinimumDistortion(
        PAIR, cpv.hamming(2), [cpv.MarginalDistance(0.1), cpv.LeakageCap(0.1)]
    ),
    "worst": cpv.PrivacyDistortion(PAIR, cpv.hamming(2), budget=0.2, laws=[PAIR]),
    "covariance": cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), 0.3),
    "hamming": cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.2),
}


def document_of(name: str) -> Any:
    return json.loads(json.dumps(PROBLEMS[name].solve().certificate.document()))


def objects(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of objects whose fields have meanings of their own."""
    if isinstance(node, dict):
        yield path
        for key, value in node.items():
            yield from objects(value, (*path, key))


NAMED = {  # objects whose keys are names of the file's own: one more is one more of them
    *("views", "rows", "terms", "auxiliaries", "caps", "weights", "worst"),
    *("scores", "multipliers", "shares", "posteriors"),
}


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        body = body[key]
    return body


def verdict(document: Any) -> list[str]:
    document["sha256"] = verify.digest(document)
    return verify.disagreements(document)


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_unknown_field_is_refused_wherever_it_stands(name: str) -> None:
    honest, places = document_of(name), 0
    assert not verdict(honest)
    for path in objects(honest):
        if (path and path[-1] in NAMED) or path[:1] == ("table",):
            continue
        other = copy.deepcopy(honest)
        at(other, path)["surely"] = "true of everything"
        assert verdict(other), path
        places += 1
    assert places >= (4 if name == "hamming" else 8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_missing_field_is_no_traceback(name: str) -> None:
    """It is refused, or what is left proves what is claimed of it."""
    honest = document_of(name)
    for path in objects(honest):
        for key in at(honest, path).keys() - {"sha256"}:
            other = copy.deepcopy(honest)
            del at(other, path)[key]
            information = verdict(other)
            assert all(isinstance(line, str) for line in information)
            optional = path == ("dual",) and key in ("objective", "shares")
            labelled = key == "name" or (path and path[-1] in NAMED) or path[:1] == ("table",)
            assert information or optional or labelled, (path, key)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_proof_without_multipliers_has_no_lower_end(name: str) -> None:
    document = document_of(name)
    document["dual"] = None
    proved = verify.recompute(document)
    assert (proved["status"], proved["lower"]) == ("uncertified", float("-inf"))
    assert verdict(document)  # as more is claimed
    document["claim"] |= {"status": "uncertified", "lower": "-inf"}
    assert not verdict(document)
    document["primal"] = None
    assert verdict(document)
