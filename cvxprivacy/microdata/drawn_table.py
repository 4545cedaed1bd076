"""A drawn table, held against what was asked: the law is proved, a table is a draw of it.

A criterion per released letter, a cap or a budget that the law satisfies may be broken by the
table that is drawn, where few records share a letter.  Here each is evaluated on the counts of the
table itself, and groups that break one are merged if that is wanted
(:mod:`cvxprivacy.microdata.merging`).  Drawing again until a table fits is not offered: the table
would then not be one of the channel that the proof is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.additive import AdditiveCost, Cost, Part, entries
from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.errors import BrokenTableError, InputError
from cvxprivacy.exact import FloatArray, is_sparse, rational
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frozen import frozen, owned
from cvxprivacy.microdata.merging import Merging, merging
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.one_symbol import SLACK, i1
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.tally import DrawnCounts, drawn_counts
from cvxprivacy.results.recount import other_records, table_record
from cvxprivacy.results.solution import Solution
from cvxprivacy.text import aligned
from cvxprivacy.validation import one_of

__all__ = ["Check", "DrawnTable", "ReleasedLaw", "lines_of", "release_table"]

_NOTHING = 1e-14  # mass of a letter that is no more than rounding


@dataclass(frozen=True, eq=False)
class DrawnTable:
    """What a channel drew of a table, what was asked of it, and the channel that writes it.

    :func:`release_table` returns one.

    Attributes
    ----------
    problem : ChannelProblem
        What was asked.
    solution : Solution
        Its optimum, which drew.
    counts : DrawnCounts
        Of the table that is released: after groups were merged.
    merging : Merging or None
        How groups were merged, where ``ensure="table"`` found some that break a criterion.
    source : DiscreteSource
        Of the whole table, of which the problem's may be a part.
    drawn_distortion : Fraction
        Of the table before groups were merged, where some were.
    frame : frame or None
        The released table, as :func:`release_table` returns it.

    Examples
    --------
    By the law every released age leaves as much open as three equally likely records would; the
    table of this draw has groups of 1, 2 and 3:

    >>> import cvxprivacy as cpv, pandas as pd
    >>> table = pd.DataFrame({"age": [30, 30, 40, 40, 50, 50], "ill": list("nnyyny")})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    >>> measure = cpv.absolute_error(source.x)
    >>> problem = cpv.MinimumDistortion(source, measure, [cpv.KAnonymity(3)])
    >>> drawn = cpv.release_table(problem, table, seed=1)
    >>> drawn.frame["age"].tolist(), drawn.holds
    ([30, 40, 40, 50, 50, 50], False)
    >>> [check] = drawn.broken
    >>> round(check.law, 6), check.table
    (3.0, 1.0)

    ``ensure="table"`` merges groups of the same draw, and says which:

    >>> merged = cpv.release_table(problem, table, seed=1, ensure="table")
    >>> merged.frame["age"].tolist(), merged.holds, merged.merging.moves
    ([30, 30, 30, 50, 50, 50], True, [(40, 30, 2)])
    """

    problem: ChannelProblem
    solution: Solution
    counts: DrawnCounts
    source: DiscreteSource
    merging: Merging | None = None
    drawn_distortion: Fraction = Fraction(0)
    frame: Any = None

    @classmethod
    def of(
        cls,
        problem: ChannelProblem,
        solution: Solution,
        frame: Any,
        *,
        seed: int,
        row_id: Any = None,
        ensure: str = "law",
        source: DiscreteSource | None = None,
    ) -> DrawnTable:
        """Draw the table that a problem's source was counted from; see :func:`release_table`.

        Parameters
        ----------
        problem : ChannelProblem
            Of one law, without side information.
        solution : Solution
            Of the problem.
        frame : frame of any kind
            The table.
        seed : int
            Of the draws.
        row_id : column name, optional
            Which names each record.
        ensure : {"law", "table"}
            What is to satisfy the criteria.
        source : DiscreteSource, optional
            Of the whole table, where the problem is of a part of it alone.

        Raises
        ------
        InputError
            For a solution of another problem.
        BrokenTableError
            If no merging of groups makes the table satisfy the criteria.
        """
        one_of(ensure, "ensure", "law", "table")
        refuse_other(solution.certificate, problem, "solution")
        channel = solution.channel
        if channel is None or problem.side_information is not None or problem.alphabet.several:
            remedy = "pass a solved problem of one law, without side information"
            raise InputError("problem", "no channel that draws this table", remedy)
        record = table_record(problem.source, problem.alphabet.encoder_inputs)
        apart = other_records(solution.certificate.table, record)
        if apart or channel.outputs != problem.alphabet.outputs:
            wrong, remedy = "of letters or columns of another table", "pass this problem's own"
            raise InputError("solution", wrong, remedy)
        kept = with_values(problem, frame)
        counts = drawn_counts(channel, kept, problem.source, seed=seed, row_id=row_id)
        source = problem.source if source is None else source
        if counts.total != source.records:
            wrong = f"{counts.total:,} records, where the source has {source.records:,}"
            raise InputError("frame", wrong, "pass the table that the source was counted from")
        _refuse_other_cells(counts, source)
        drawn = cls(problem, solution, counts, source)
        if ensure == "law" or drawn.holds is not False:
            return drawn
        rules = list(problem._criteria().values())
        merged = merging(counts, rules, problem.alphabet, _blocked(problem, counts))
        before, after = drawn.distortion, counts.relabelled(merged.places)
        mended = cls(problem, solution, after, source, merged, before)
        if left := [check.stated for check in mended.checks if check.unmet]:
            raise BrokenTableError(int((after.sizes > 0).sum()), left)
        return mended

    @property
    def channel(self) -> Channel:
        """What releases this table, drawn with the same seed: the solution's channel, merged."""
        channel = self.solution.channel
        assert channel is not None
        if self.merging is None:
            return channel
        return channel.relabelled([channel.outputs[y] for y in self.merging.places])

    @property
    def broken(self) -> list[Check]:
        """The criteria and caps that the table breaks; budgets and the like bound averages."""
        return [check for check in self.checks if check.breaks]

    @property
    def holds(self) -> bool | None:
        """Whether the table satisfies every criterion and cap; None if it breaks none that a table
        can tell, and some cannot be decided on a table.  A budget bounds an average.
        """
        verdicts = [check.holds for check in self.checks if not check.budget]
        return False if False in verdicts else None if None in verdicts else True

    @cached_property
    def distortion(self) -> Fraction:
        """The distortion of the table itself, Σ N(w, x, x̂) d / N."""
        return mean_cost(self.problem.alphabet.d.cost, self.counts)

    @cached_property
    def law(self) -> ReleasedLaw:
        """The law of what is released of the whole table."""
        channel, alphabet = self.solution.channel, self.problem.alphabet
        assert channel is not None
        feasible = self.solution.certificate.primal is not None
        designed = self.source is self.problem.source and feasible
        units = self.problem.units
        return ReleasedLaw(channel, self.source, alphabet.d, units, designed, self.merging)

    @property
    def risk(self) -> float:
        """I(W; X̂) of the law of what is released, in the problem's units."""
        return self.law.risk

    @cached_property
    def checks(self) -> list[Check]:
        """Everything that was asked, in the order of the problem's statement."""
        rules = self.problem._criteria()
        budget = [self._budget()] if "budget" in self.problem._formulated[1] else []
        return [*budget, *(self._check(name, rule) for name, rule in rules.items())]

    def _budget(self) -> Check:
        budget: Any = getattr(self.problem, "budget", None)
        if budget is None:
            raise InputError("problem", "a budget of parts", "pass a problem of one budget")
        bound, law = rational(budget), self.law.mean_distortion
        if self.law.proved:
            law = float(self.solution.terms["distortion"])
        return Check(
            "budget", f"budget {float(bound):g}", f"the distortion is at most {float(bound):g}",
            "distortion", "", False, float(bound), law,
            True if self.law.proved else clearly(law, float(bound)),
            float(self.distortion), self.distortion <= bound, on_average=True, budget=True,
        )  # fmt: skip

    @cached_property
    def table(self) -> Counts:
        """The records of the table, as criteria are evaluated at them."""
        counts = self.counts
        sizes = None if counts.weighted else counts.sizes
        moves = counts.w_at, counts.x_at, counts.y_at
        return Counts.of_moves(self._alphabet, moves, counts.masses, sizes)

    @property
    def _alphabet(self) -> Alphabet:
        """The letters of the problem under the law of the whole table."""
        alphabet = self.problem.alphabet
        if self.source is self.problem.source:
            return alphabet
        return Alphabet(self.source, alphabet.d, encoder=alphabet.encoder, units=alphabet.units)

    def _check(self, name: str, rule: Criterion) -> Check:
        source, units = self.problem.source, self.problem.units
        words = rule.in_words(w=source.names[0], x=source.names[1], units=units)
        bound = rule.value if isinstance(rule.value, int | float | Fraction) else None
        asked = (name, repr(rule), words.asks, words.quantity, words.unit, words.at_least)
        law, law_holds = self.law.standing(rule)
        verdict, broken = rule.verdict(self.table), 0
        if verdict.broken is not None:
            broken = int(verdict.broken.sum())
        return Check(
            *asked, None if bound is None else float(bound), law, law_holds, verdict.value,
            verdict.holds, rule.on_average, per_group=verdict.met is not None, groups=broken,
            records=int(self.counts.sizes[verdict.broken].sum()) if broken else 0,
        )  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(lines_of(check.document() for check in self.checks))


def with_values(problem: ChannelProblem, frame: Any) -> Any:
    """Return the records that were counted, of a problem whose source was counted from a table."""
    schema = problem.source.schema
    if schema is None:
        remedy = "make the source with DiscreteSource.from_table"
        raise InputError("problem", "its source was not counted from a table", remedy)
    return schema.counted_records(frame)


def _refuse_other_cells(counts: DrawnCounts, source: DiscreteSource) -> None:
    """Refuse a table of other records, though they be as many."""
    counted = np.zeros(source.joint.shape)
    np.add.at(counted, (counts.w_at, counts.x_at), counts.masses)
    apart = np.abs(counted / counted.sum() - source.joint / source.joint.sum())
    if apart.max() > SLACK:  # of shares: any record of fewer than 1 / SLACK tells
        w, x = np.unravel_index(apart.argmax(), apart.shape)
        problem = f"other records of {source.w[w]!r} and {source.x[x]!r} than the source counted"
        raise InputError("frame", problem, "pass the table that the source was counted from")


def mean_cost(cost: Cost, counts: DrawnCounts) -> Fraction:
    """Return Σ N(w, x, x̂) d / N, exactly of whole records."""
    parts: Sequence[Part]
    rows, total = counts.x_at, Fraction(0)
    if isinstance(cost, AdditiveCost):
        parts = cost.parts
    else:
        table = np.asarray(cost)
        if table.ndim == 3:
            rows = counts.w_at * table.shape[1] + counts.x_at
        table = frozen(table.reshape(-1, table.shape[-1]))
        parts = [Part(table, np.arange(len(table)), np.arange(table.shape[1]))]
    for part in parts:
        width = part.table.shape[1]
        at = part.rows[rows] * width + part.columns[counts.y_at]
        entries, place = np.unique(at, return_inverse=True)
        weights = map(rational, np.bincount(place, counts.masses).tolist())
        values = part.table.ravel()[entries].tolist()
        total += sum((n * rational(v) for n, v in zip(weights, values, strict=True)), Fraction(0))
    return total / rational(float(counts.masses.sum()))


def _blocked(problem: ChannelProblem, counts: DrawnCounts) -> np.ndarray | None:
    """Tell which outputs may not be released as which others: of a record that may not go there."""
    upper = problem.program.upper
    if upper is None:
        return None
    alphabet = problem.alphabet
    letters = counts.x_at if alphabet.encoder == "x" else (
        counts.w_at * len(counts.x) + counts.x_at
    )  # fmt: skip
    place = np.full(len(counts.w) * len(counts.x), -1)
    place[alphabet.support] = np.arange(alphabet.n)
    blocked = np.zeros((alphabet.m, alphabet.m), bool)
    forbidden = np.vstack([upper == 0, np.zeros((1, alphabet.m), bool)])  # none of a letter unseen
    np.logical_or.at(blocked, counts.y_at, forbidden[place[letters]])
    return blocked


def release_table(
    problem: ChannelProblem,
    frame: Any,
    *,
    seed: int,
    solution: Solution | None = None,
    row_id: Any = None,
    ensure: str = "law",
) -> DrawnTable:
    """Release a table by the optimal channel, and check what was drawn.

    Parameters
    ----------
    problem : PrivacyDistortion or MinimumDistortion
        Of a source that was made of this table by ``DiscreteSource.from_table``.
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.Channel.apply` takes it.
    seed : int
        As of :meth:`cvxprivacy.Channel.apply`: keep it secret.
    solution : Solution, optional
        Of the problem, if it has been solved.
    row_id : column name, optional
        Which names each record.
    ensure : {"law", "table"}
        What is to satisfy the criteria: the law, which is proved whatever is drawn; or the drawn
        table too, of which groups are merged until it breaks no criterion and no cap.

    Returns
    -------
    DrawnTable
        With the released ``frame``; records that were left out for missing values are not in it.

    Raises
    ------
    InputError
        For a solution of another problem, and for what is no such table.
    BrokenTableError
        If no merging makes the table satisfy the criteria.

    Examples
    --------
    >>> import cvxprivacy as cpv, pandas as pd
    >>> table = pd.DataFrame({"age": [30, 30, 30, 50, 50, 50], "ill": [0, 1, 0, 0, 1, 1]})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.KAnonymity(3)])
    >>> released = cpv.release_table(problem, table, seed=1, ensure="table")
    >>> released.holds, released.checks[0].table
    (True, 3.0)
    """
    solved = problem.solve() if solution is None else solution
    how: dict[str, Any] = {"seed": seed, "row_id": row_id}
    drawn = DrawnTable.of(problem, solved, frame, **how, ensure=ensure)
    released = drawn.channel.apply(with_values(problem, frame), **how)
    return replace(drawn, frame=released)


# ---- the law of what is released ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedLaw:
    """p(w, x̂) of what is released of a table, in floats.

    Attributes
    ----------
    channel : Channel
        As it was solved for.
    source : DiscreteSource
        The law of the whole table.
    distortion : Distortion
        Fitted to the source.
    units : {"bits", "nats"}
    designed : bool
        Whether the channel was proved to be feasible under this law, and not under that of a part
        of the table.
    merging : Merging or None
    """

    channel: Channel
    source: DiscreteSource
    distortion: Distortion
    units: str
    designed: bool
    merging: Merging | None

    @property
    def proved(self) -> bool:
        """Whether it is the law that the certificate is of."""
        return self.designed and self.merging is None

    @cached_property
    def _atoms(self) -> FloatArray:
        """p(w, s) of the channel's inputs s, shape (|W|, n)."""
        source, channel = self.source, self.channel
        law, x_of = source.joint / source.joint.sum(), self._x_of
        if channel.encoder == "x":
            return np.asarray(law[:, x_of])
        place, w = {v: i for i, v in enumerate(source.w)}, channel.encoder.index("w")
        w_of = [place[letter[w]] for letter in channel.inputs]
        atoms = np.zeros((len(source.w), len(channel.inputs)))
        atoms[w_of, np.arange(len(w_of))] = law[w_of, x_of]
        return atoms

    @cached_property
    def _x_of(self) -> list[int]:
        """The key letter of each input."""
        place, channel = {v: i for i, v in enumerate(self.source.x)}, self.channel
        if channel.encoder == "x":
            return [place[letter] for letter in channel.inputs]
        return [place[letter[channel.encoder.index("x")]] for letter in channel.inputs]

    @cached_property
    def joint(self) -> FloatArray:
        """p(w, x̂), shape (|W|, |X̂|)."""
        return owned(self._merged(self._atoms @ self.channel.matrix))

    def _merged(self, joint: FloatArray) -> FloatArray:
        """Return the columns of outputs that are released as one, added."""
        if self.merging is None:
            return joint
        merged = np.zeros_like(joint)
        np.add.at(merged.T, self.merging.places, joint.T)
        return merged

    @property
    def risk(self) -> float:
        """I(W; X̂)."""
        per_letter = np.nan_to_num(i1(self.joint, units=self.units))
        return float(per_letter @ self.joint.sum(axis=0))

    @cached_property
    def mean_distortion(self) -> float:
        """E d."""
        atoms, q = self._atoms, self.channel.matrix
        if is_sparse(q):
            some = q.tocoo()
            y = some.col if self.merging is None else self.merging.places[some.col]
            costs = entries(self.distortion.cost, np.asarray(self._x_of)[some.row], y)
            return float(atoms.sum(axis=0)[some.row] @ (some.data * costs))
        d = self.distortion.matrix
        if self.merging is not None:
            d = d[..., self.merging.places]
        if d.ndim == 2:
            return float((atoms.sum(axis=0)[:, None] * q * d[self._x_of]).sum())
        return float(np.einsum("wi,iy,wiy->", atoms, q, d[:, self._x_of]))

    @cached_property
    def _counts(self) -> Counts:
        """The law as a table, in floats: what criteria measure of it."""
        sizes = None
        if self.source.records is not None:  # N e^−D(p(s | x̂) ‖ p(s)), s what the encoder sees
            sizes = self.source.records * np.exp(-self._of_letters())
        there = self.joint.sum(axis=0) > _NOTHING
        joint = self.joint[:, there]
        sizes = None if sizes is None else sizes[there]
        return Counts(joint, self.units, self.joint.sum(axis=1), sizes)

    def _of_letters(self) -> FloatArray:
        """Return D(p(s | x̂) ‖ p(s)) of each output, in nats; 0 where it has no mass."""
        masses, q = self._atoms.sum(axis=0), self.channel.matrix
        if not is_sparse(q):
            letters = self._merged(masses[:, None] * q)
            letters = letters[letters.sum(axis=1) > 0]
            return np.nan_to_num(i1(letters, units="nats"))
        there = masses > 0
        joint = q[there].multiply(masses[there, None]).tocoo()
        marginal = np.bincount(joint.col, joint.data, minlength=q.shape[1])
        ratio = joint.data / (marginal[joint.col] * masses[there][joint.row] / masses.sum())
        sums = np.bincount(joint.col, joint.data * np.log(ratio), minlength=q.shape[1])
        return np.divide(sums, marginal, out=np.zeros_like(sums), where=marginal > 0)

    def standing(self, rule: Criterion) -> tuple[float | None, bool | None]:
        """Return what a criterion measures of this law, and whether it holds, if that is known.

        Proved of the law that the channel was solved for, and after groups were merged of what
        survives that; else by its value, where it declares how its number loosens and that value is
        farther from it than any rounding.
        """
        stated = rule.verdict(self._counts)
        if self.proved or (self.designed and rule.survives_merging):
            return stated.value, True
        number, loosens = rule.value, rule.loosens
        if number is None and not rule.numbers and rule.measure:  # nothing leaks
            number, loosens = 0.0, "up"
        if stated.value is None or loosens is None:
            return stated.value, None
        if not isinstance(number, int | float | Fraction):  # one for each letter
            return stated.value, None
        at_least = loosens == "down"
        return stated.value, clearly(stated.value, float(number), at_least=at_least)


def clearly(value: float, bound: float, *, at_least: bool = False) -> bool | None:
    """Tell whether a value in floats is within a bound; None where rounding might tell wrongly."""
    beyond = bound - value if at_least else value - bound
    return None if abs(beyond) <= SLACK * max(1.0, abs(bound)) else beyond < 0


# ---- one thing that was asked ------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One thing that was asked, on the law and on the drawn table.

    Attributes
    ----------
    name : str
        Among the constraints of the problem.
    stated, asks : str
        As it was typed, and in words.
    quantity, unit : str
        What is bounded.
    at_least : bool
        Whether ``bound`` is the least that there may be, else the most.
    bound : float or None
        The number typed.
    law : float or None
        What the release has under the law, at its worst letter.
    law_holds : bool or None
        Whether that is within the bound: as is proved, or as is counted where groups were merged
        or the channel was designed on a part of the records; None where it is not known.
    table : float or None
        The same of the drawn table, where it has a number.
    holds : bool or None
        Whether the table satisfies it, decided exactly; None where that cannot be decided on a
        table, as it is about chances.
    on_average : bool
        Whether it bounds an expectation, as a budget does: draws scatter about it.
    budget : bool
        Whether it is the budget of distortion, which no criterion is.
    per_group : bool
        Whether it speaks of each released group by itself, else of the table as a whole.
    groups, records : int
        How many groups break it, and how many records they hold.
    """

    name: str
    stated: str
    asks: str
    quantity: str
    unit: str
    at_least: bool
    bound: float | None
    law: float | None
    law_holds: bool | None
    table: float | None
    holds: bool | None
    on_average: bool = False
    budget: bool = False
    per_group: bool = False
    groups: int = 0
    records: int = 0

    @property
    def breaks(self) -> bool:
        """Whether the table breaks it, and not only scatters about what is met on average."""
        return self.holds is False and not self.on_average

    @property
    def unmet(self) -> bool:
        """Whether the table does not satisfy it, be that of no account on average; not a budget."""
        return self.holds is False and not self.budget

    @property
    def standing(self) -> str:
        """How the table stands with it, in words."""
        if self.holds is None:
            return "cannot be decided on a table: it is of the randomisation"
        if self.holds:
            return "holds"
        if self.on_average:
            return "beyond it by this table" if self.law_holds else "beyond it"
        if not self.per_group:
            return "BROKEN by this table" if self.law_holds else "BROKEN"
        groups = "1 group" if self.groups == 1 else f"{self.groups:,} groups"
        records = "1 record" if self.records == 1 else f"{self.records:,} records"
        return f"BROKEN by {groups} of {records}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        table: dict[str, Any] | None = None
        if self.holds is not None:
            table = {"value": self.table, "bound": self.bound, "holds": self.holds,
                     "groups": self.groups, "records": self.records}  # fmt: skip
        return {
            "name": self.name,
            "criterion": self.stated,
            "says": self.asks,
            "quantity": self.quantity,
            "unit": self.unit,
            "at_least": self.at_least,
            "per_group": self.per_group,
            "breaks": self.breaks,
            "law": {"value": self.law, "bound": self.bound, "holds": self.law_holds},
            "table": table,
            "standing": self.standing,
        }


def lines_of(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return checks, as ``Check.document`` has them, a line each under a head."""
    rows: list[tuple[str, ...]] = [("", "bound", "law", "table", "")]
    for check in checks:
        bound, sign = check["law"]["bound"], "≥" if check["at_least"] else "≤"
        numbers = [check["law"]["value"], (check["table"] or {}).get("value")]
        cells = ["–" if value is None else f"{value:.6g}" for value in numbers]
        limit = "" if bound is None else f"{sign} {bound:.6g} {check['unit']}".rstrip()
        rows.append((check["criterion"], limit, *cells, check["standing"]))
    return [f"  {line}" for line in aligned(rows)]
