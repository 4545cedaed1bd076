"""Rules of post-randomisation: what single moves, marginals, means and linear functions must be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.added import cvxpy_rows
from cvxprivacy.criteria.base import Criterion, Words
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, array as exact_array, plain, rational
from cvxprivacy.frozen import frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.laws import index_of
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.latex_symbols import Notation, PrintedCost, tex, upright
from cvxprivacy.programs.parameter import Parameter, Scalar, Symbol
from cvxprivacy.programs.side_conditions import EntryBounds, Excess, Rule
from cvxprivacy.validation import labels, one_of, table, text, typed

__all__ = [
    "ForbiddenMoves",
    "KeepProbability",
    "Linear",
    "MarginalDistance",
    "PreserveMarginal",
    "PreserveMean",
]


class KeepProbability(Criterion):
    """p(x̂ = x | x) ≥ p: every value stays with at least this probability.

    Parameters
    ----------
    p : float or array_like, shape (|X|,)
        One floor, or one for each key letter, in [0, 1]; no series with labels of its own.

    Raises
    ------
    InputError
        For what is no probability, or labelled floors.

    Examples
    --------
    Two fair bits differ with probability 0.2.  Nothing is protected better than by keeping X with
    the least probability, 0.75: then W and X̂ differ with 0.2 + 0.6 · 0.25 = 0.35.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.KeepProbability(0.75)
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), criteria=[rule]).solve()
    >>> round(solution.value, 4), solution.channel.matrix.round(4).tolist()
    (0.0659, [[0.75, 0.25], [0.25, 0.75]])
    >>> round(1 - cpv.information.entropy([0.35, 0.65]), 4)
    0.0659
    """

    name = "keep_probability"
    of_releases = "this"
    survives_informed_encoder = of_channel = True
    words = Words(
        "each record keeps its own value with probability at least {n}",
        "least probability",
        at_least=True,
        examples=("KeepProbability=0.6",),
    )

    def __init__(self, p: Real | npt.ArrayLike) -> None:
        if index_of(p) is not None:
            remedy = "pass its values in the order of the source's x: p[source.x].to_numpy()"
            raise InputError("p", "labelled floors", remedy)
        floors = table(p, "p", "pass a probability, or one for each key letter", axes=(0, 1))
        if (floors > 1).any():
            where = int(np.argmax(floors > 1)) if floors.ndim else None
            worst = float(floors.max())
            raise InputError("p", f"{worst!r} is above 1", "pass probabilities", where=where)
        self.p: Any = floors if floors.ndim else plain(rational(floors))

    @property
    def value(self) -> Any:
        return self.p

    @property
    def loosens(self) -> Literal["up", "down"] | None:
        return None if np.ndim(self.p) else "down"

    @property
    def loosest(self) -> float | None:
        return None if np.ndim(self.p) else 0.0

    def tightest(self, laws: Sequence[DiscreteSource]) -> float:
        """Nothing is changed."""
        return 1.0

    def stated(self, of: Notation) -> str:
        least = "p_x" if np.ndim(self.p) else tex(float(self.p))
        condition = f"{of.s}, z" if of.strategies else of.s
        return rf"p(\hat X = x \mid {condition}) \ge {least} \quad \forall\, {condition}"

    def __repr__(self) -> str:
        return f"KeepProbability({'…' if np.ndim(self.p) else format(float(self.p), 'g')})"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        size = len(release.source.x)
        if np.ndim(self.p) and np.size(self.p) != size:
            remedy = f"pass {size}, one per key letter"
            raise InputError("p", f"{np.size(self.p)} floors", remedy)
        same = release.unchanged(release.x_of.tolist())
        floors = np.broadcast_to(self.p, size)[release.x_of]
        if release.strategies is None:
            symbol = Symbol("p", typed=self.p)
            entry = release.x_of if np.ndim(self.p) else None
            lower = floors[:, None] * same
            return {"": EntryBounds(lower, None, {symbol: same.astype(float)}, entry)}
        if np.ndim(self.p):
            remedy = "pass one floor for all letters"
            raise InputError("p", "one for each letter, where the user decodes with Z", remedy)
        # Σ p(u | s) over the strategies that keep x, for every letter and every z that it meets
        rules: dict[str, Rule] = {}
        floor = Scalar.named(self.p, "p")
        for observer in release.observers if self.p else ():
            met = np.where(observer.atoms, release.law, 0.0).sum(axis=0) > 0
            for s in np.flatnonzero(met):
                cost = np.zeros((release.n, release.m))
                cost[s] = -1.0 * same[s][release.strategies[:, observer.z]]
                rules[f"{s}|{observer.name}"] = (
                    Expression("kept", cost=cost) <= -release.masses[s] * floor
                )
        return rules

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        floor = float(np.broadcast_to(self.p, len(release.source.x))[x])
        label = release.source.x[x]
        same = np.array([output == label for output in release.d.outputs])
        if release.strategies is not None:  # one that keeps x at every z takes the whole floor
            same = np.asarray(same[release.met_strategies].all(axis=1))
        lower = np.zeros(release.m)
        lower[np.flatnonzero(same)[:1]] = floor
        return (lower, 1.0) if same.any() or not floor else None


class ForbiddenMoves(Criterion):
    """p(x̂ | x) = 0 wherever ``mask[x, x̂]`` is true.

    Parameters
    ----------
    mask : array_like of bool, shape (|X|, |X̂|), or callable
        A callable is asked ``mask(x, x̂)`` with labels.

    Raises
    ------
    InputError
        For what are no booleans of that shape, or a letter that may go nowhere.

    Examples
    --------
    The optimum exchanges the values 1 and 3, which tell most about W, and leaves 2 as it is.  If a
    value may become a neighbour only, four times as much leaks:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.3, 0.15, 0.05], [0.05, 0.15, 0.3]], x=[1, 2, 3])
    >>> far, d = cpv.ForbiddenMoves(lambda x, y: abs(x - y) > 1), cpv.hamming(source.x)
    >>> for rules in ([], [far]):
    ...     solution = cpv.PrivacyDistortion(source, d, budget=0.2, criteria=rules).solve()
    ...     print(round(solution.value, 4), abs(solution.channel.matrix[0].round(3)).tolist())
    0.0481 [0.714, 0.0, 0.286]
    0.2018 [0.786, 0.214, 0.0]
    """

    name = "forbidden_moves"
    of_releases = "this"
    survives_informed_encoder = of_channel = True
    words = Words("no value is released as one that is forbidden for it", "moves")

    def __init__(self, mask: npt.ArrayLike | Callable[[Any, Any], bool]) -> None:
        self.mask = mask if callable(mask) else frozen(np.array(mask))

    def __repr__(self) -> str:
        if callable(self.mask):
            return f"ForbiddenMoves({getattr(self.mask, '__name__', repr(self.mask))})"
        return f"ForbiddenMoves({np.count_nonzero(self.mask)} of {self.mask.size} moves)"

    def stated(self, of: Notation) -> str:
        moves = rf"(x, {of.released}) \text{{ forbidden}}"
        return rf"{of.channel} = 0 \quad \forall\, {moves}"

    def _row(self, release: Alphabet, x: int) -> Any:
        if not callable(self.mask):
            return self.mask[x]
        label = release.source.x[x]
        return np.array([bool(self.mask(label, output)) for output in release.d.outputs])

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        inputs, mask = release.source.x, self.mask
        if callable(mask):
            mask = np.array([self._row(release, x) for x in range(len(inputs))])
        shape = (len(inputs), len(release.d.outputs))
        if mask.shape != shape or mask.dtype != bool:
            problem = f"{mask.dtype} of shape {mask.shape}"
            raise InputError("mask", problem, f"pass booleans of shape {shape}")
        stuck = np.flatnonzero(mask.all(axis=1))
        if len(stuck):
            remedy = "leave every letter at least one move"
            raise InputError("mask", f"{inputs[stuck[0]]!r} may go nowhere", remedy, where=stuck[0])
        return {"": EntryBounds(upper=np.where(release.possible(mask), 0.0, 1.0))}

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        banned = np.asarray(self._row(release, x), bool)
        if release.strategies is not None:  # a strategy must be allowed at every z
            banned = np.asarray(banned[release.met_strategies].any(axis=1))
        return 0.0, np.where(banned, 0.0, 1.0)


class PreserveMarginal(Criterion):
    """p(x̂ = x) = p(x) for every key letter: invariant post-randomisation, exactly.

    Tables of X̂ alone need no correction then, whatever W is.

    Examples
    --------
    W = X with p = (0.8, 0.2), which may be changed in a tenth of the records.  The optimum releases
    the rare letter less often still; to keep its share costs 0.037 bits.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.identical([0.8, 0.2])
    >>> for rules in ([], [cpv.PreserveMarginal()]):
    ...     problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1, criteria=rules)
    ...     solution = problem.solve()
    ...     print(round(solution.value, 4), solution.channel.released_marginal.round(3).tolist())
    0.2529 [0.875, 0.125]
    0.2898 [0.8, 0.2]

    The first is R(D) = h(0.2) − h(0.1):

    >>> h = cpv.information.entropy
    >>> round(h([0.2, 0.8]) - h([0.1, 0.9]), 4)
    0.2529
    """

    name = "preserve_marginal"
    of_releases = "this"
    survives_informed_encoder = True
    on_average = True
    words = Words(
        "the expected share of each released value is its original share",
        "shares",
        examples=("PreserveMarginal",),
    )

    def stated(self, of: Notation) -> str:
        return r"p_{\hat X}(\hat x) = p_X(\hat x) \quad \forall\, \hat x"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        support = [x for x, p in enumerate(release.p_x) if p]
        letters = len(release.d.outputs)
        bounds = [Fraction(0)] * letters
        for x, row in zip(support, release.unchanged(support), strict=True):
            bounds[int(row.argmax())] = release.p_x[x]
        if release.strategies is not None:
            costs = np.eye(letters)[:, None, :].repeat(len(release.source.x), axis=1)
            words = PrintedCost(r"\mathbf 1[u(z) = \hat x]", "xz", (r"\hat x",))
            totals = [Expression("marginal", cost=release.per_letter(cost)) for cost in costs]
            return {
                str(y): replace(total.printed_as(words) == bound, level=r"p_{X}(\hat x)")
                for y, (total, bound) in enumerate(zip(totals, bounds, strict=True))
            }
        mass, level = release.mass().named("marginal", ""), release.notation.original
        row = Constraint(mass.each(), "==", tuple(bounds), relation="=", level=level)
        rules: dict[str, Rule] = {"": row}
        unused = np.array([not bound for bound in bounds])
        if unused.any() and not release.several:  # of letters with mass under another law, no word
            rules["unused"] = EntryBounds(upper=np.tile(np.where(unused, 0.0, 1.0), (release.n, 1)))
        return rules

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        return 0.0, 1.0  # such a letter has no part in the marginal


class MarginalDistance(Criterion):
    """TV(p_X̂, p_X) ≤ t: the released marginal is near that of X, in total variation.

    The perception constraint of Blau and Michaeli, *Rethinking Lossy Compression: The
    Rate–Distortion–Perception Tradeoff*, ICML 2019, eq. 4.

    Parameters
    ----------
    t : number
        t ≥ 0: Σ_x̂ (p(x̂) − p(x))₊, x̂ = x, the least share of records that would have to change.
        ``MarginalDistance(0)`` makes a :class:`PreserveMarginal`, whose rows are equations.

    Raises
    ------
    InputError
        For a negative t.

    Examples
    --------
    Between the optimum, which moves the marginal of (0.8, 0.2) by 0.075, and an invariant release:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.identical([0.8, 0.2])
    >>> for rules in ([], [cpv.MarginalDistance(0.03)], [cpv.PreserveMarginal()]):
    ...     problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1, criteria=rules)
    ...     print(round(problem.solve().value, 4))
    0.2529
    0.2684
    0.2898
    """

    name = "marginal_distance"
    of_releases = "this"
    on_average = True
    words = Words(
        "the expected shares of the released values differ from the original ones by at most {n} "
        "in all (total variation)",
        "total variation",
        examples=("MarginalDistance=0.05",),
    )
    t = Parameter(zero=False, loosens="up", loosest=lambda t: max(2 * t, 2.0))

    def __new__(cls, t: Any = None) -> Any:
        """Return the criterion, or that of the marginal itself at a distance of 0."""
        exactly = cls is MarginalDistance and t is not None and typed(t, "t") == 0
        return PreserveMarginal() if exactly else super().__new__(cls)

    def stated(self, of: Notation) -> str:
        return rf"\mathrm{{TV}}(p_{{\hat X}}, p_X) \le {tex(float(self.t))}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if release.strategies is not None:
            remedy = "use PreserveMarginal, or an encoder that knows Z"
            raise InputError("criteria", "a user who knows Z decodes what is released", remedy)
        if len(set(release.outputs)) < len(release.outputs):
            problem, remedy = "a label is released under two columns", "release each under one"
            raise InputError("distortion", problem, remedy)
        shares = dict(zip(release.source.x, release.p_x, strict=True))
        if not any(y in shares for y in release.outputs):
            letter, remedy = release.source.x[0], "use a distortion that releases key letters"
            raise InputError(
                "distortion", f"{letter!r} is no released letter", remedy, value=letter
            )
        levels = exact_array([shares.get(y, Fraction(0)) for y in release.outputs])
        mass: Any = release.mass().cost
        return {"": Excess.above(levels, mass[:, 0], self.t)}

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        return 0.0, 1.0  # such a letter has no part in the marginal


class PreserveMean(Criterion):
    """E v(X̂) = E v(X), exactly.

    Parameters
    ----------
    values : mapping of letter to float, series, or array_like, shape (|X|,)
        v of each key letter, which the index of a pandas series labels; with an array, released
        letters must be key letters.

    Raises
    ------
    InputError
        For numbers that are not finite, or a letter without one.

    Examples
    --------
    E X = 2.2 here, and moves to 2.27 at the optimum.  That it stays costs 0.0016 bits:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.0, 0.1, 0.4]], x=[1, 2, 3])
    >>> d = cpv.hamming(source.x)
    >>> for rules in ([], [cpv.PreserveMean(source.x)]):
    ...     solution = cpv.PrivacyDistortion(source, d, budget=0.15, criteria=rules).solve()
    ...     print(f"{solution.value:.4f} {solution.channel.released_marginal @ source.x:.2f}")
    0.1296 2.27
    0.1312 2.20
    """

    name = "preserve_mean"
    of_releases = "this"
    survives_informed_encoder = True
    on_average = True
    words = Words("the expected mean is the original's", "mean")

    def __init__(self, values: Mapping[Hashable, float] | npt.ArrayLike) -> None:
        index, remedy = index_of(values), "pass one number per key letter"
        numbers: Any = values
        if not isinstance(values, Mapping):
            numbers = table(values, "values", remedy, axes=(1,), negative=True)
        if index is not None:
            letters = labels(index, len(numbers), "values")
            numbers = dict(zip(letters, numbers.tolist(), strict=True))
        self.values = numbers

    def stated(self, of: Notation) -> str:
        return r"\mathrm{E}\, v(\hat X) = \mathrm{E}\, v(X)"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        inputs, outputs = release.source.x, release.d.outputs
        numbers: Any = self.values
        if not isinstance(numbers, Mapping):
            if len(numbers) != len(inputs):
                raise InputError("values", f"{len(numbers)} numbers", f"pass {len(inputs)}")
            numbers = dict(zip(inputs, numbers.tolist(), strict=True))
        v: dict[Any, float | Fraction] = {}
        for label in (*inputs, *outputs):
            if label not in numbers:
                raise InputError("values", f"none for {label!r}", "pass a mapping with all letters")
            v[label] = typed(numbers[label], "values", negative=True, where=label)
        mean = sum(
            (p * Fraction(v[x]) for p, x in zip(release.p_x, inputs, strict=True)), Fraction(0)
        )
        row = exact_array([v[y] for y in outputs])
        mean_output, of = release.total("mean", np.tile(row, (len(inputs), 1))), release.notation
        words = PrintedCost(f"v({of.released})", "xz" if of.strategies else "x")
        level = rf"\sum_{{x}} {of.law}(x) \, v(x)"
        return {"": replace(mean_output.printed_as(words) == mean, level=level)}


class Linear(Criterion):
    """Σ_x Σ_x̂ A(x, x̂) p(x, x̂) ≤ bound, or = bound.

    Parameters
    ----------
    A : array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        What a unit of joint mass at (x, x̂), or (w, x, x̂), counts.
    bound : number
        The most that the sum may be, or what it is; of any sign, in A's unit.
    name : str
        Its name among constraints, duals and prices.
    sense : {"<=", "=="}
        Whether ``bound`` is the most, or the value itself.

    Raises
    ------
    InputError
        For numbers that are not finite, or shapes that do not match.

    Examples
    --------
    A second distortion: at most a twentieth of the records may be raised from 0 to 1.  Half of the
    records are 0, so that a tenth of these is raised; the risk was 0.0956 without the rule.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.Linear([[0, 1], [0, 0]], 0.05, name="raised")
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, criteria=[rule])
    >>> solution = problem.solve()
    >>> print(f"{solution.value:.4f} {solution.channel.matrix[0, 1]:.2f}")
    0.1001 0.10
    """

    of_releases = "this"
    survives_informed_encoder = True
    bound = Parameter(negative=True)

    def __init__(
        self, A: npt.ArrayLike, bound: Real, *, name: str = "linear", sense: str = "<="
    ) -> None:
        remedy = "pass finite numbers of shape (|X|, |X̂|) or (|W|, |X|, |X̂|)"
        self.matrix = table(A, "A", remedy, axes=(2, 3), negative=True)
        self.bound = bound
        one_of(sense, "sense", "<=", "==")
        self.name, self.sense = text(name, "name"), sense

    def stated(self, of: Notation) -> str:
        relation = r"\le" if self.sense == "<=" else "="
        left = rf"\langle A_{{{upright(self.name)}}}, Q \rangle"
        return f"{left} {relation} {tex(float(self.bound))}"

    def at(self, value: Real) -> Criterion:
        return Linear(self.matrix, value, name=self.name, sense=self.sense)

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        shape = (len(release.source.x), len(release.d.outputs))
        wanted = shape if self.matrix.ndim == 2 else (len(release.source.w), *shape)
        if self.matrix.shape != wanted:
            raise InputError("A", f"shape {self.matrix.shape}", f"pass shape {wanted}")
        total = release.total(self.name, self.matrix)
        return {"": total <= self.bound if self.sense == "<=" else total == self.bound}

    @staticmethod
    def from_cvxpy(constraint: Any, problem: Any, *, name: str = "linear") -> list[Linear]:
        """Return a CVXPY constraint on ``problem.variables["Q"]`` as certified rules.

        Build the constraint on an existing problem's variable, then pass the result in
        ``criteria`` of a new one; ``problem.with_constraint`` does both.

        Parameters
        ----------
        constraint : cvxpy constraint
            An affine ``<=``, ``>=`` or ``==``, or a convex piecewise linear ``<=``.
        problem : ChannelProblem
            The problem whose variable Q the constraint is on.
        name : str
            Of the rule; several are ``name[0]``, ``name[1]``, ….

        Returns
        -------
        list of Linear
            One for each affine piece of each scalar constraint.

        Raises
        ------
        InputError
            If the constraint is neither, or uses another variable.
        """
        text(name, "name")
        release = getattr(problem, "alphabet", None)
        if not isinstance(release, Alphabet):
            wrong, remedy = (
                f"a {type(problem).__name__}",
                "pass the discrete problem whose Q it is on",
            )
            raise InputError("problem", wrong, remedy, value=problem)
        if release.side_information is not None:
            remedy = "use problem.with_constraint, or Linear(A, bound)"
            raise InputError("problem", "its Q is no law of (x, x̂): the user knows Z", remedy)
        w, x, m = len(release.source.w), len(release.source.x), release.m
        shape = (x, m) if release.encoder == "x" else (w * x, m)
        rows, bounds = cvxpy_rows(constraint, problem.variables["Q"])
        rules = []
        for i, row in enumerate(rows):
            sign, sense = (-1, "<=") if row.relation == ">=" else (1, row.relation)
            bound = Fraction(bounds[row.place]) - Fraction(row.constant)
            matrix = np.zeros(shape)
            matrix[release.support] = sign * row.coefficients
            label = f"{name}[{i}]" if len(rows) > 1 else name
            costs = matrix if release.encoder == "x" else matrix.reshape(w, x, m)
            rules.append(Linear(costs, sign * bound, name=label, sense=sense))
        return rules
