"""The Explorer's own problems, solved when the pages are built: ``write(folder)``.

Every picture is what :meth:`cvxprivacy.Frontier.to_json` writes.  They stand in one script,
``data.js``, as a page that is opened from a file cannot fetch others, and each in a file of its
own, to be downloaded and dropped into the page again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cvxprivacy as cpv
from cvxprivacy.frontiers.picture import categorical_document
from cvxprivacy.typing import Frontier

__all__ = ["PROBLEMS", "Shown", "write"]

HERE = Path(__file__).parent
SCRIPTS = ("frontier.js", "solver.js", "table.js", "views.js", "duality.js", "explorer.js")
RECORDS = [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]]  # made up: illness × age group
STUDENTS = [[68, 119, 26, 7], [20, 84, 17, 94], [15, 54, 14, 10], [5, 29, 14, 16]]  # eyes × hair
HAIR, EYES = ["black", "brown", "red", "blond"], ["brown", "blue", "hazel", "green"]
TRADES = {"farmer": 300, "clerk": 200, "carer": 150, "driver": 120, "teacher": 100, "cook": 60,
          "notary": 40, "diver": 30}  # fmt: skip
HEALTH = [  # covariance of two variables W and two variables X
    [1.0, 0.3, 0.6, 0.3],
    [0.3, 1.0, 0.1, 0.6],
    [0.6, 0.1, 1.0, 0.25],
    [0.3, 0.6, 0.25, 1.2],
]
CHORD = "MIUB: mixing the original table with one value for all"


def entropy(p: float) -> float:
    """h(p) in bits."""
    return -sum(q * np.log2(q) for q in (p, 1 - p) if q > 0)


def illness(*criteria: cpv.Criterion) -> cpv.PrivacyDistortion:
    """Age is released, illness is confidential."""
    ages, states = [25, 40, 55, 70], ["none", "mild", "severe"]
    source = cpv.DiscreteSource.from_counts(RECORDS, w=states, x=ages, names=["illness", "age"])
    return cpv.PrivacyDistortion(source, cpv.absolute_error(ages), budget=5.0, criteria=criteria)


def hair() -> cpv.PrivacyDistortion:
    """Hair colour is released, eye colour is confidential (Snee 1974)."""
    source = cpv.DiscreteSource.from_counts(STUDENTS, w=EYES, x=HAIR, names=["eyes", "hair"])
    return cpv.PrivacyDistortion(source, cpv.hamming(HAIR), budget=0.1)


def answer(p: float = 0.3) -> cpv.PrivacyDistortion:
    """A yes or no that is itself confidential."""
    source = cpv.DiscreteSource.identical([1 - p, p], x=["no", "yes"])
    return cpv.PrivacyDistortion(source, cpv.hamming(["no", "yes"]), budget=0.1)


def trade() -> cpv.HammingWaterFilling:
    """A trade that is itself confidential."""
    return cpv.HammingWaterFilling.from_counts(list(TRADES.values()), 0.1, x=list(TRADES))


def health() -> cpv.QuadraticGaussian:
    """Two measurements are released, two others are confidential."""
    names = ["blood pressure", "cholesterol", "age", "weight"]
    source = cpv.GaussianSource(HEALTH, sensitive=[0, 1], key=[2, 3], names=names)
    return cpv.QuadraticGaussian(source, 0.5)


def closed_form(budget: float) -> float:
    """Return the paper's lower bound for :func:`health`, which needs a budget > 0."""
    return cpv.closed_gaussian_bound(health().source, max(budget, 1e-9))


def chord(problem: cpv.PrivacyDistortion):
    """Return the upper bound of every curve: a straight line between its ends."""
    most, end = problem.source.information(), problem.greatest_distortion
    return lambda budget: max(most * (1 - budget / end), 0.0)


@dataclass(frozen=True)
class Shown:
    """A problem of the page: what is said of it, and to which band its frontier is proved."""

    about: str
    title: str
    problem: Callable[[], Any]
    words: Mapping[str, str]
    tol: float = 0.0
    references: Callable[[], Mapping[str, Callable[[float], float]]] = dict

    def frontier(self) -> Frontier:
        """Solve for the frontier."""
        return cpv.frontier(self.problem(), tol=self.tol)

    def write(self, path: Path) -> None:
        """Write the picture, for everybody to read, as these laws are public."""
        told: Any = {"title": self.title, "words": self.words, "references": self.references()}
        problem = self.problem()
        if isinstance(problem, cpv.HammingWaterFilling):
            end = 1 - problem.masses[-1] / float(problem.total)
            picture = categorical_document(problem, np.linspace(0.01, end, 12), **told)
            path.write_text(json.dumps(picture, ensure_ascii=False), encoding="utf-8")
        else:
            self.frontier().to_json(path, **told)
        path.chmod(0o644)


YEARS = {
    "parameter": "allowed error in age",
    "unit": "years",
    "value": "information left about illness, bits",
    "price": "what one more year of error would save, bits",
}


def share_of(what: str, who: str, told: str) -> dict[str, str]:
    """Return words for a budget that is a share: a price is per hundredth, in hundredths."""
    price = f"what one more {who} in a hundred would save, in hundredths of a bit"
    return {"parameter": what, "value": f"information left about {told}, bits", "price": price}


PROBLEMS = {
    "illness": Shown(
        "240 made-up records. Ages are released with errors of a few years on average, so that "
        "they tell less about the illness.",
        "Age and illness", illness, YEARS, 0.02,
        lambda: {CHORD: chord(illness())},
    ),
    "criteria": Shown(
        "The same records under two more rules: no released age may shift the distribution of "
        "illness by more than 0.2 bits, and six in ten records of every age keep it. Watch which "
        "rule is tight.",
        "The same with two criteria",
        lambda: illness(cpv.TCloseness(0.2), cpv.KeepProbability(0.6)), YEARS, 0.01,
    ),
    "hair": Shown(
        "592 students (Snee 1974). Eye colour is confidential; some students are listed under "
        "another hair colour.",
        "Hair and eyes", hair,
        share_of("share of students whose hair may be changed", "student", "eyes"), 0.012,
        lambda: {CHORD: chord(hair())},
    ),
    "answer": Shown(
        "Yes or no, and the answer itself is confidential. Here the curve is known: h(p) − h(D) "
        "with p = 0.3, which runs between what is achieved and what is proved.",
        "A yes or no", answer,
        share_of("how often an answer may be changed", "change", "the answer"), 0.05,
        lambda: {"h(p) − h(D), the closed form": lambda d: entropy(0.3) - entropy(d),
                 CHORD: chord(answer())},
    ),
    "trades": Shown(
        "A thousand made-up records; the trade itself is confidential. A water level rises with "
        "the budget: trades below it are never released.",
        "Eight trades under water", trade,
        share_of("share of records that may be changed", "record", "the trade"),
    ),
    "health": Shown(
        "Blood pressure and cholesterol are confidential; age and weight, in standard units, are "
        "released with Gaussian noise whose shape hides most for its size.",
        "Noise with a shape", health,
        {"parameter": "allowed squared error", "value": "information left about both, bits",
         "price": "what one more unit of squared error would save, bits"}, 0.03,
        lambda: {"closed form of Props. 5–6, a lower bound": closed_form},
    ),
}  # fmt: skip


def write(folder: Path | str) -> None:
    """Write scripts, style and data of the page into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for name, problem in PROBLEMS.items():
        problem.write(folder / f"{name}.json")
        picture = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        shown.append({"name": name, "about": problem.about, "picture": picture})
    data = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    (folder / "data.js").write_text(f"window.cvxprivacyData = {data};\n", encoding="utf-8")
    for asset in ("explorer.css", *SCRIPTS):
        shutil.copyfile(HERE / asset, folder / asset)
