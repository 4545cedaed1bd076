"""Regions: bad input, proofs of tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.results.recount import recount
from cvxprivacy_verifier.__main__ import main
from tests.formulations.regions import CASES, ENCODERS, people, rde
from tests.lengths import some_at_length
from tests.refusals import UNSAID, refused
from tests.release import test_decoder as td

SOURCE = cpv.DiscreteSource(np.full((2, 3, 2), 1 / 12))

REFUSED = [  # options; argument, value, place
    *(({"minimize": v}, "minimize", v, None) for v in ("risk", None, {}, {"rate": 0})),
    ({"minimize": {"risk": 1}}, "minimize", "risk", None),
    *(({"minimize": {"rate": v}}, "minimize", v, "rate") for v in (-1, "a")),
    *(({"budget": v}, "budget", v, None) for v in (-0.1, math.nan, "x", [0.1])),
    ({"budget": {}}, "budget", UNSAID, None),
    ({"budget": {"a": 0.1}}, "budget", "a", None),
    *(({"max_leakage": v}, "max_leakage", v, None) for v in (-1, math.inf)),
    ({"max_leakage": {"0": -1}}, "max_leakage", -1, "0"),
    ({"max_leakage": {"a": 1}}, "max_leakage", "a", None),
    ({"max_leakage": {}}, "max_leakage", UNSAID, None),
    *(({"max_rate": v}, "max_rate", v, None) for v in (-1, {"x": 1})),
    *(({"min_equivocation": v}, "min_equivocation", v, None) for v in (-1, "much")),
    *(({"side_information": v}, "side_information", v, None) for v in ("user", True)),
    ({"encoder": "xz"}, "encoder", "xz", None),
    ({"units": "bit"}, "units", "bit", None),
    ({"criteria": [3]}, "criteria", 3, 0),
    ({"criteria": 3}, "criteria", 3, None),
    *(({"most_strategies": v}, "most_strategies", v, None) for v in (0, 1.5)),
    (
        {"criteria": [cpv.KeepProbability([0.1] * 3)], "side_information": "decoder"},
        "p", UNSAID, None,
    ),
    ({"criteria": [cpv.RecordEntropy(2)], "side_information": "both"}, "source", UNSAID, None),
]  # fmt: skip


@pytest.mark.parametrize(("options", "argument", "value", "where"), REFUSED)
def test_what_is_no_region(options, argument, value, where):
    refused(
        lambda: rde(SOURCE, cpv.hamming(3), **options).solve(), argument, value=value, where=where
    )


def test_sources_and_distortions_that_do_not_fit():
    small = cpv.DiscreteSource(np.eye(2) / 2)
    refused(lambda: rde(small, cpv.hamming(2), side_information="both"), "source")
    refused(lambda: rde(np.eye(2) / 2, cpv.hamming(2)), "source", "ndarray")
    wrong = lambda: rde(SOURCE, cpv.hamming(2), side_information="decoder")  # noqa: E731
    refused(wrong, "distortion", "(2, 2)")
    problem = rde(SOURCE, cpv.hamming(3), 0.1, side_information="decoder")
    refused(lambda: cpv.Linear.from_cvxpy(None, problem), "problem")
    assert r"|\hat X| = 9" not in problem._repr_latex_()  # letters and strategies are two counts
    assert "4 strategies" not in repr(problem)
    assert "9 strategies Z → X̂" in repr(problem)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: cpv.Decoder([["a"]], side=["p"]).apply([0], [["p"]]),
        lambda: cpv.Decoder(None, side=["p"]),
        lambda: cpv.Decoder([1], side=["p"]),
        lambda: cpv.Channel([[1.0]], inputs=["a"], outputs=[0], decoder="x"),
    ],
)
def test_bad_decoders_are_input_errors(bad):
    with pytest.raises(cpv.InputError):
        bad()


@pytest.mark.parametrize("case", some_at_length(CASES, 1))
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_proof_is_of_its_table_and_of_no_other(case, encoder, tmp_path):
    frame = people()
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="sex", side="town")
    problem = rde(source, cpv.hamming(source.x), 0.2, side_information=case, encoder=encoder)
    certificate = problem.solve().certificate
    document = certificate.document()
    for same in (frame, frame.sample(frac=1.0, random_state=1)):
        assert recount(document, same) == []
    for other in (
        frame.assign(town=frame["town"].sample(frac=1.0, random_state=2).to_numpy()),
        frame.assign(town=frame["town"].replace({"A": "B", "B": "A"})),
        frame.assign(ill=frame["ill"].replace({"no": "flu", "flu": "no"})),
        frame.assign(sex=frame["sex"].replace({"m": "f", "f": "m"})),
        frame.iloc[1:],
    ):
        assert recount(document, other)
    assert main([str(certificate.to_json(tmp_path / "proof.json"))]) == 0


def test_a_proof_is_not_of_a_table_with_other_keys():
    """The same masses, of other x."""
    a = pd.DataFrame({"w": [0] * 4 + [1] * 5, "x": ["s"] * 4 + ["t"] * 5})
    source = cpv.DiscreteSource.from_table(a, sensitive="w", key="x")
    d = cpv.Distortion([[0, 1], [3, 0]], inputs=["s", "t"], outputs=["s", "t"])
    solution = cpv.PrivacyDistortion(source, d, budget=0.2, encoder="wx").solve()
    document = solution.certificate.document()
    assert recount(document, a) == []
    assert recount(document, a.assign(x=["t"] * 4 + ["s"] * 5))


def test_the_unit_of_the_gap_is_one_nat_whatever_z():
    source = cpv.DiscreteSource(np.full((2, 2, 50), 1 / 200))
    for case in CASES:
        assert rde(source, cpv.hamming(2), 0.1, side_information=case).program.scale == 1.0


def test_a_channel_before_one_with_a_decoder_keeps_it():
    channel = td.problem().solve().channel
    first = cpv.Channel(np.eye(len(channel.inputs)), inputs=channel.inputs, outputs=channel.inputs)
    assert first.then(channel).decoder is channel.decoder


def test_estimate_says_which_column_is_missing():
    """A channel without a decoder does the same."""
    channel = td.problem().solve().channel
    with pytest.raises(cpv.InputError):
        channel.estimate(td.people())
