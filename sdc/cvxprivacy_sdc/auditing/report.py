"""A released table against the original: in words, as a picture, and in files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.base import criteria_listed
from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw
from cvxprivacy.files import whole_file
from cvxprivacy.leakage import Leakage
from cvxprivacy.leakage.base import by_name
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.labels import written
from cvxprivacy.validation import one_of
from cvxprivacy_sdc.auditing import view
from cvxprivacy_sdc.auditing.findings import RISK, STANDARD, Findings, Leaked, Measure
from cvxprivacy_sdc.auditing.pairing import COUNTED, counted, laws_of, order_of
from cvxprivacy_sdc.auditing.selection import records_with
from cvxprivacy_sdc.risk.estimators import draws_of
from cvxprivacy_sdc.risk.individual import ESTIMATE
from cvxprivacy_sdc.risk.wildcards import convention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "cvxprivacy audit 1"
KEYS = {"I(W; X)": "before", "t": "t", "H(W) − log ℓ": "l"}  # of conditions on the average, in JSON


class Audit(Findings):
    """What :func:`audit` found; print it, draw it, or write it down.

    Attributes
    ----------
    original, released : DiscreteSource
        The tables as they were counted; ``released.joint`` holds the counts N(w, x̃).
    laws : Laws
        What is measured of them: the same, or the sums of the survey weights of the same letters.
    letters : list
        Released letters x̃.
    measures : dict of str to Measure
        ``"k"``, ``"individual risk"`` (1/k, or with weights an estimate for the population),
        ``"distinct l"``, ``"entropy l"``, ``"c at l=2"`` and ``"c at l=3"`` (recursive,
        infinite where W has fewer values), ``"I2"`` to ``"I4"``, ``"delta"``, ``"delta observed"``,
        ``"beta"``, ``"enhanced beta"``; then those of leakage.  :meth:`measure` has others.
    leaks : list of Leaked
        The measures of leakage, whose average is what leaks in all: ``"I1"``, ``"equal distance"``,
        ``"ordered distance"`` (where W is ordered), which are information, total variation and the
        earth mover's distance, then those asked for, by their names.
    before, after : Information
        I(W; X) and I(W; X̃), with bias and interval.
    verdicts : list of Verdict
        Eq. 14 of Bezzi 2010, and its like for k and δ: necessary and sufficient.
    averages : dict of str to Condition
        Eq. 13: necessary, not sufficient.  ``"I(W; X)"``, where both tables have the same records
        of each W, is an observation: a drawn table may exceed it by chance, and it is part of no
        verdict.
    criteria : tuple of Criterion
        Those that were asked for.
    units : {"bits", "nats"}
        Of information.
    notes : list of str
        What a reader of the numbers should know.
    frame : frame
        The released table as it came.

    Examples
    --------
    Bezzi's twelve people, their heights in three bands of four.  The one who is ill is tall: there
    the diagnosis has probability ¼ instead of 1/12, and I1 = ¼ log 3 + ¾ log(9/11) bits:

    >>> import numpy as np, pandas as pd
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> people = cpv.datasets.load_bezzi()
    >>> bands = pd.cut(people["height"], [160, 170, 180, 200], right=False).astype(str)
    >>> released = people.assign(height=bands)
    >>> criteria = [cpv.KAnonymity(4), cpv.TCloseness(0.15)]
    >>> audit = sdc.audit(people, released, key="height", sensitive="diagnosis", criteria=criteria)
    >>> audit.measures["k"].worst, round(audit.measures["I1"].worst, 4)
    (4.0, 0.1791)
    >>> bool(np.isclose(audit.measures["I1"].worst, (np.log2(3) + 3 * np.log2(9 / 11)) / 4))
    True
    >>> [verdict.holds for verdict in audit.verdicts], audit.holds
    ([True, False], False)
    >>> audit.worst("I1", 1), audit.records(audit.worst("I1", 1))["name"].tolist()
    (['[180, 200)'], ['Sonya', 'Leslie', 'Erin', 'John'])
    """

    def __init__(self, original: Any, released: Any, *, frame: Any, **options: Any) -> None:
        super().__init__(original, released, **options)
        self.frame = frame

    # ---- records -------------------------------------------------------------------------

    def records(self, letters: Sequence[Any]) -> Any:
        """Return the records of some released letters, such as ``audit.records(audit.worst())``.

        The rows come in the flavour of the released table; a lazy one is filtered in its own
        engine, when it is asked for them.

        Parameters
        ----------
        letters : sequence
            Some of ``audit.letters``.

        Raises
        ------
        InputError
            For what is no released letter.
        """
        assert self.released.schema is not None
        place = {letter: i for i, letter in enumerate(self.letters)}
        places = set()
        for i, letter in enumerate(letters):
            try:
                places.add(place[letter])
            except (KeyError, TypeError):
                remedy = "pass some of audit.letters, such as audit.worst()"
                problem = f"{letter!r} is no released letter"
                raise InputError("letters", problem, remedy, where=i, value=letter) from None
        chosen = sorted(places)
        records = records_with(self.released.schema, self.frame, [self.letters[i] for i in chosen])
        rows, expected = as_narwhals(records), int(self.released.joint[:, chosen].sum())
        if isinstance(rows, nw.DataFrame) and len(rows) != expected:
            problem = f"{len(rows):,} records have these letters, and {expected:,} were counted"
            raise InputError("released", problem, "audit the table again: it has changed since")
        return records

    def per_record(self, measure: str = "I1") -> npt.NDArray[np.float64]:
        """Return a measure for each record of a released table in memory, in its order.

        NaN where a record was left out for missing values.

        Parameters
        ----------
        measure : str
            A key of ``audit.measures``, or a name of :meth:`measure`.

        Raises
        ------
        InputError
            For another measure, and for a lazy table, whose records have no order.
        """
        schema, frame = self.released.schema, as_narwhals(self.frame)
        assert schema is not None
        if isinstance(frame, nw.LazyFrame):
            raise InputError("released", "a lazy table", "collect it to have its records in order")
        place = {letter: i for i, letter in enumerate(self.letters)}
        values = np.append(self.measure(measure).values, math.nan)
        values = values[[place.get(x, -1) for x in schema.letters(frame, schema.key)]]
        if schema.missing == "drop":
            w = schema.letters(frame, schema.sensitive)
            rows = w if len(schema.sensitive) > 1 else [(value,) for value in w]
            values[[None in row for row in rows]] = math.nan
        return values

    # ---- in words and as a picture -------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"Audit({self.released.records:,} records, {len(self.letters):,} letters, "
            f"{len(self.verdicts)} criteria: {'hold' if self.holds else 'broken'})"
        )

    @property
    def facts(self) -> dict[str, str]:
        """What the tables are, in words."""
        return view.facts(self)

    @property
    def conclusions(self) -> list[tuple[str, str, str]]:
        """Every condition: what it says, "holds", "BROKEN" or "seen", and by how much."""
        return view.conclusions(self)

    @property
    def all_notes(self) -> list[str]:
        """Notes, with those on the intervals."""
        return view.notes(self)

    def __str__(self) -> str:
        return view.text(self)

    def _repr_html_(self) -> str:
        return view.html(self, document=False)

    def draw(self, figure: Figure | None = None) -> Figure:
        """Draw the average and the letters, in the layout of Bezzi's Fig. 2.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            A new one by default.
        """
        return view.drawn(self, figure)

    # ---- written -------------------------------------------------------------------------

    def document(self, *, letters: bool = True) -> dict[str, Any]:
        """Return the audit as JSON holds it.

        Parameters
        ----------
        letters : bool
            With every released letter and its counts of the confidential attribute, and the places
            among them of those that break a criterion.
        """
        source, law = self.released, self.laws.released
        assert source.schema is not None
        assert self.original.schema is not None
        missing = {"missing": "wildcard"} if self.wildcards else {}
        document = {
            "schema": SCHEMA,
            "units": self.units,
            "original": {"records": self.original.records, **self.original.schema.to_dict()},
            "released": {"records": source.records, **source.schema.to_dict(), **missing},
            "entropy": law.entropy(units=self.units),
            "individual_risk": self._individual_risk(),
            "classes": asdict(self.classes),
            "l_max": self.greatest_diversity,
            "information": {
                name: {**asdict(of), "corrected": of.corrected}
                for name, of in (("before", self.before), ("after", self.after))
            },
            "measures": {m.name: _document(m) for m in self.measures.values()},
            "averages": {
                KEYS[name]: {"title": name, "value": c.value, "bound": c.bound, "holds": c.holds}
                for name, c in self.averages.items()
            },
            "criteria": [
                {
                    "criterion": repr(v.criterion), "holds": v.holds, "letters": v.letters,
                    "records": v.records, **({"places": v.broken.tolist()} if letters else {}),
                }
                for v in self.verdicts
            ],
            "holds": self.holds,
            "notes": self.all_notes,
            "w": [written(w, lenient=True) for w in source.w],
        }  # fmt: skip
        if self.laws.weights is not None:
            document["weights"] = {
                "column": self.laws.weights, "effective": law.effective, "measures": COUNTED,
                "population": float(law.joint.sum()),
            }  # fmt: skip
        if letters:
            sizes = law.joint.sum(axis=0).tolist()
            document["letters"] = [
                {
                    "letter": written(letter, lenient=True),
                    "counts": source.joint[:, i].astype(int).tolist(),
                    **({} if self.laws.weights is None else {"population": sizes[i]}),
                    **{m.name: written(float(m.values[i])) for m in self.measures.values()},
                }
                for i, letter in enumerate(self.letters)
            ]
        return document

    def _individual_risk(self) -> dict[str, Any]:
        """Return how many records are expected to be re-identified, and by which model."""
        worst, records = self.measures[RISK].worst, self.released.records or 0
        model = None if self.laws.weights is None else ESTIMATE
        rate = self.re_identified / records
        return {"expected": self.re_identified, "rate": rate, "greatest": worst, "model": model}

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the audit as JSON, readable by its owner only; return where it is.

        It discloses the counts of the confidential attribute in every released letter: keep it
        with the original table.

        Parameters
        ----------
        path : str or path
            Where it is written, whole or not at all.
        """
        with whole_file(path, private=True) as file:
            self.write_json(file)
        return Path(path)

    def write_json(self, file: IO[str]) -> None:
        """Write what :meth:`to_json` writes into an open file.

        Parameters
        ----------
        file : text file
            Open for writing; the caller closes it.
        """
        json.dump(self.document(), file, ensure_ascii=False, indent=1)
        file.write("\n")

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the audit as one self-contained HTML page, readable by its owner only.

        It names the worst letters and what they reveal: keep it with the original table.

        Parameters
        ----------
        path : str or path
            Where it is written, whole or not at all.
        """
        with whole_file(path, private=True) as file:
            self.write_html(file)
        return Path(path)

    def write_html(self, file: IO[str]) -> None:
        """Write what :meth:`to_html` writes into an open file.

        Parameters
        ----------
        file : text file
            Open for writing; the caller closes it.
        """
        file.write(view.html(self))


def _document(measure: Measure) -> dict[str, Any]:
    """Return a measure as JSON holds it, without its letters."""
    facts = {
        "title": measure.title, "worst": written(measure.worst),
        "average": written(measure.average),
        "letters": measure.letters, "records": measure.records,
    }  # fmt: skip
    if isinstance(measure, Leaked):
        ends = {name: getattr(measure, name) for name in ("nothing", "original", "everything")}
        facts |= {name: None if math.isnan(value) else value for name, value in ends.items()}
        facts["meaning"] = measure.leakage.meaning
    return facts


def audit(
    original: Any,
    released: Any = None,
    *,
    key: Hashable | Sequence[Hashable],
    sensitive: Hashable | Sequence[Hashable],
    criteria: Sequence[Criterion] = (),
    leakage: Leakage | str | Sequence[Leakage | str] | None = None,
    bins: Mapping[Hashable, float | str | Sequence[float]] | None = None,
    groups: Mapping[Hashable, int | Mapping[Hashable, Hashable]] | None = None,
    missing: str = "refuse",
    weights: Hashable | None = None,
    ordered: bool | Sequence[Hashable] | None = None,
    reference: str = "released",
    bootstrap: int = 0,
    seed: int | np.random.Generator | None = None,
    units: str = "bits",
) -> Audit:
    """Measure a released table against the original: every measure, per letter and at its worst.

    Parameters
    ----------
    original, released : frame of any kind
        Tables, as :meth:`DiscreteSource.from_table` takes them.  Each is counted by one group-by
        in its own engine.  Without ``released`` the original is audited as it stands.
    key : column name, or several
        X in the original.  Those that the released table lacks are suppressed; the others are X̃.
    sensitive : column name, or several
        W, the combination of several; :func:`audit_each` takes each by itself.  The measures
        compare with its law in the released table.
    criteria : sequence of Criterion
        ``TCloseness(t)``, ``LDiversity(l)``, ``KAnonymity(k)``, ``DeltaDisclosure(delta)``.
    leakage : Leakage or its name, or several, optional
        What else to measure beside information and the distances of t-closeness; by default
        chi-squared, squared Hellinger, the guessing probability, Sibson's of order 2 and maximal
        leakage.  Matrices are in the order of ``released.w``, or of ``original.w`` where that is
        the reference.
    bins : mapping of column to number, text or sequence, optional
        As for :meth:`DiscreteSource.from_table`; for a released column only where it is numeric, or
        of dates.
        Bands of a width cover both tables; quantiles are those of the original.
    groups : mapping of column to mapping or number, optional
        As for :meth:`DiscreteSource.from_table`, of the original.  A released column that holds
        the original's values is grouped likewise, one that holds groups is taken as it is.
    missing : {"refuse", "level", "drop", "wildcard"}
        A missing value is an error, is a letter, or leaves its record uncounted.  Under
        ``"wildcard"`` it is a letter too, but k, ``KAnonymity`` and the individual risk count the
        records that agree where neither misses a key value, as sdcMicro does: what local
        suppression achieves.
    weights : column name, optional
        Survey weights, in both tables.  k, distinct ℓ and the records of letters stay counts of
        records; entropies, divergences, distances, δ, β and leakage are those of the weighted law,
        whose bias is told by Kish's effective number of records; an interval there is none of.
        The sum of the weights of a letter estimates its persons in the population, and gives the
        individual risk (:mod:`cvxprivacy_sdc.risk.individual`).
    ordered : bool or sequence of values, optional
        Whether W's values are in order, for the ordered earth mover's distance, or the values in
        their order.  By default they are where their type says so, in the released table or in the
        original: numbers, dates, bins and ordered categories; text has no order of its own.
    reference : {"released", "original"}
        The table whose p(w) the letters are compared with, in I1, the distances, δ, β, and the
        criteria on I1 and δ.  Where records were suppressed the released p(w) hides what that
        tells.  I2 to I4 and ℓ-diversity are of the released table alone.
    bootstrap : int
        Draws for intervals of the mutual information; 0 for none, a few hundred otherwise.
    seed : int or Generator, optional
        Of the bootstrap, as NumPy takes it; not that of a release, which the interval would help
        to guess.
    units : {"bits", "nats"}
        Of information and of t; δ is a natural logarithm always.

    Returns
    -------
    Audit
        Measures, verdicts and conditions; ``print`` shows them.

    Raises
    ------
    InputError
        For what cannot be counted, and for criteria that are not per released letter.

    Notes
    -----
    Class sizes (k) and individual risks speak of identity only where the release is deterministic
    in the key: under a randomised one a small class need not hold the record that it seems to.

    The t of pycanon's ``t_closeness`` (1.3.6) is the worst "ordered distance" where W is of
    numbers, in ranks divided by one less than the values that occur, as here, and the worst "equal
    distance" where it is of text.  It takes ordered categories as text, and refuses dates and a
    number of one value only; of records without a key, which are in no class, it counts W in p(w);
    of several columns W it returns the greatest t, where here they are one attribute; and where
    the index of a frame is not 0, 1, … it reads labels as places.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [1, 1, 2, 2], "ill": ["no", "yes", "no", "no"]})
    >>> result = audit(people, key="age", sensitive="ill")
    >>> result.measures["k"].worst, result.worst("distinct l", 1)
    (2.0, [2])
    """
    if sensitive is None:  # which a table may be counted without, but not audited
        raise InputError("sensitive", "None", "name what is confidential, a column or several")
    bootstrap = draws_of(bootstrap, "bootstrap")
    missing, wildcards = convention(missing)
    criteria = criteria_listed(criteria)
    family = by_name(STANDARD if leakage is None else leakage, "leakage")
    one_of(reference, "reference", "released", "original")
    before, after, notes = counted(
        original, released, key=key, sensitive=sensitive, bins=bins or {}, groups=groups or {},
        missing=missing,
    )  # fmt: skip
    new = set(after.w) - set(before.w)
    if reference == "original" and new:
        problem = f"the original has no {' nor '.join(sorted(map(repr, new)))}"
        raise InputError("reference", problem, 'use reference="released"')
    frame = original if released is None else released
    return Audit(
        before,
        after,
        criteria=criteria,
        leakage=family,
        order=order_of(ordered, reference, (after, frame), (before, original)),
        reference=reference,
        draws=bootstrap,
        seed=seed,
        units=units,
        notes=notes,
        laws=laws_of(before, after, weights, original, frame),
        wildcards=wildcards,
        frame=frame,
    )
