"""A certificate read back from its document, for programs that are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.exact_channel import DENOMINATOR, ExactChannel
from cvxprivacy.programs.channel import DENSE, ChannelProgram
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance
from cvxprivacy.programs.dual import Dual
from cvxprivacy_verifier.balls import decode

__all__ = ["channel", "dual_of", "multipliers", "primal_of", "restored"]


def restored(document: Mapping[str, Any], program: Any) -> Certificate:
    """Return the certificate that a document states of ``program``; nothing is proved again."""
    primal, dual, claim = document["primal"], document["dual"], document["claim"]
    primal = None if primal is None else primal_of(primal, program)
    dual = None if dual is None else dual_of(dual, program)
    return Certificate(
        program,
        document["accuracy"],
        claim["status"],
        decode(claim["lower"]),  # as they are claimed; ``verify`` proves them
        decode(claim["upper"]),
        primal,
        dual,
        {name: (decode(low), decode(high)) for name, (low, high) in claim["terms"].items()},
        document.get("raw", {}),
    )


def primal_of(primal: Mapping[str, Any], program: Any) -> Any:
    """Return the channel, or the error covariance, of a document."""
    if isinstance(program, ChannelProgram):
        return channel(primal, program.m)
    return ErrorCovariance(*_factors(primal))


def dual_of(dual: Mapping[str, Any], program: Any) -> Any:
    """Return the multipliers of a document, of either kind of program."""
    return multipliers(dual) if isinstance(program, ChannelProgram) else _covariance_dual(dual)


def channel(primal: Mapping[str, Any], m: int) -> ExactChannel:
    """Return the channel to ``m`` outputs of a document."""
    denominator = int(primal["denominator"])
    if len(primal["outputs"]) * m > DENSE and denominator == DENOMINATOR:
        ends = np.cumsum([0, *map(len, primal["outputs"])])
        outputs, numerators = (np.concatenate(primal[k]) for k in ("outputs", "numerators"))
        shape = (len(primal["outputs"]), m)
        return ExactChannel(sparse.csr_array((numerators, outputs, ends), shape=shape), denominator)
    # numerators below 2⁵³ are machine integers; over any other denominator Python's own
    kind: Any = np.int64 if denominator == DENOMINATOR else object
    numerators = np.zeros((len(primal["outputs"]), m), dtype=kind)
    for s, listed in enumerate(zip(primal["outputs"], primal["numerators"], strict=True)):
        numerators[s, listed[0]] = listed[1]
    return ExactChannel(numerators, denominator)


def multipliers(dual: Mapping[str, Any]) -> Dual:
    """Return the multipliers of a channel program's document: any are sound (C4)."""
    return Dual(
        {name: np.array(scores, float) for name, scores in dual["scores"].items()},
        {name: np.array(value, float) for name, value in dual["multipliers"].items()},
        {name: [np.array(a, float) for a in parts] for name, parts in dual["auxiliaries"].items()},
        dual["objective"],
        dual.get("shares", {}),
    )


def _covariance_dual(dual: Mapping[str, Any]) -> CovarianceDual:
    return CovarianceDual(
        {name: _number(value) for name, value in dual["multipliers"].items()},
        {name: _factors(pair) for name, pair in dual["posteriors"].items()},
        {name: _factors(pair) for name, pair in dual["parts"].items()},
        dual["objective"],
    )


def _factors(pair: Mapping[str, Any]) -> tuple[Any, Any]:
    second = pair["middle"]
    return _matrix(pair["root"]), _matrix(second)


def _matrix(rows: Any) -> list[list[float | Fraction]]:
    return [[_number(x) for x in row] for row in rows]


def _number(value: float | str) -> float | Fraction:
    return Fraction(value) if isinstance(value, str) else value
