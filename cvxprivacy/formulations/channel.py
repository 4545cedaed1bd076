"""From source, distortion and criteria to a channel program, and from its proof to a solution.

A formulation states ``objective`` and ``subject_to`` in the terms defined here; nothing about
solving, proving or edge cases is written in one.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.privacy import criteria_listed, named
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Real, fractions, rational
from cvxprivacy.formulations import side
from cvxprivacy.formulations.conflict import explained
from cvxprivacy.formulations.massless import restored
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frozen import frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import nat
from cvxprivacy.programs import (
    Auxiliary,
    ChannelProgram,
    EntryBounds,
    Part,
    Row,
    Term,
    View,
)
from cvxprivacy.programs.channel import tex
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.decoder import Decoder
from cvxprivacy.results.recount import record
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome, solve

if TYPE_CHECKING:
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

__all__ = ["ChannelProblem"]

_SENSE = {"<=": r"\le", "==": "="}


class ChannelProblem(Problem[Solution]):
    """A formulation over discrete channels; subclasses state one program each.

    Attributes
    ----------
    program : ChannelProgram
        The canonical data.
    problem : cvxpy.Problem
        The conic problem that is solved, with named constraints.
    constraints : dict of str to cvxpy.Constraint
    variables : dict of str to cvxpy.Variable
    latex : str
        The program as written.
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        *,
        encoder: str = "x",
        side_information: str | None = None,
        criteria: Sequence[Criterion] = (),
        units: str = "bits",
    ) -> None:
        if not isinstance(source, DiscreteSource):
            raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
        if encoder not in ("x", "wx"):
            raise InputError("encoder", f"{encoder!r} is unknown", 'use "x" or "wx"')
        criteria = criteria_listed(criteria)
        nat(units)
        side.checked(source, side_information)
        self.source, self.encoder, self.units = source, encoder, units
        self.side_information, self.criteria = side_information, criteria
        d = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
        self.measure = d.fitted(len(source.w), source.x)
        self.seen = encoder + ("z" if side_information == "both" else "")
        atoms = source.atoms(self.seen)
        self.law, self.w_of, self.alive_w = atoms.law, atoms.w_of, atoms.alive_w
        self.alive, self.x_of, self.z_of = atoms.alive, atoms.x_of, atoms.z_of
        self.observers = side.observers(source, atoms, side_information)
        self.strategies: np.ndarray | None = None
        self.strategies = frozen(self._strategies())
        self.parts = frozen(self._named_parts())

    def _strategies(self) -> np.ndarray | None:
        """Return what an output means for each z, shape (m, |Z|): none if it is a letter x̂."""
        return None

    @property
    def n(self) -> int:
        """Number of letters that the encoder sees."""
        return len(self.alive)

    @property
    def m(self) -> int:
        """Number of outputs: released letters, or strategies."""
        return len(self.measure.outputs if self.strategies is None else self.strategies)

    @property
    def outputs(self) -> list[Any]:
        """Labels of the outputs; strategies are numbered."""
        return self.measure.outputs if self.strategies is None else list(range(self.m))

    # ---- what a subclass states ----------------------------------------------------------

    def objective(self) -> Term:
        """Return the term that is minimised."""
        raise NotImplementedError

    def subject_to(self) -> Mapping[str, Row]:
        """Return the constraints besides the criteria, by name."""
        return {}

    def priced(self) -> Mapping[str, str]:
        """Return numbers typed into the objective: name → term that is d value / d number."""
        return {}

    def terms(self) -> Mapping[str, Term]:
        """Return the quantities that are reported, by name."""
        return {"risk": self.risk, "distortion": self.distortion}

    # ---- letters, views and terms --------------------------------------------------------

    def per_letter(self, matrix: np.ndarray) -> np.ndarray:
        """Return a cost (|X|, |X̂|) or (|W|, |X|, |X̂|) for the program's letters or atoms."""
        w = self.alive_w[self.w_of]
        if matrix.ndim == 2:
            cost = matrix[self.x_of]
        elif self.encoder == "wx":
            cost = matrix[w[0], self.x_of]
        else:
            cost = matrix[w, self.x_of]
        if self.strategies is None:
            return cost
        whole = np.broadcast_to(cost, (*self.law.shape, matrix.shape[-1]))
        return np.take_along_axis(whole, self.strategies.T[self.z_of], axis=2)

    def possible(self, moves: np.ndarray) -> np.ndarray:
        """Tell where an output may make one of these moves, (|X|, |X̂|) → (n, m)."""
        layers = self.per_letter(moves)
        if layers.ndim == 3:
            layers = np.asarray((layers & (self.law > 0)[:, :, None]).any(axis=0))
        return layers

    def masses_of_w(self) -> list[Fraction]:
        """Return the exact masses of the possible values of W."""
        masses = [Fraction(0)] * len(self.alive_w)
        for at, atom in np.ndenumerate(self.law):
            masses[self.w_of[at]] += Fraction(float(atom))
        return masses

    def masses_of_x(self) -> list[Fraction]:
        """Return the exact masses of all key letters of the source."""
        masses = [Fraction(0)] * len(self.source.x)
        for (_, s), atom in np.ndenumerate(self.law):
            masses[self.x_of[s]] += Fraction(float(atom))
        return masses

    def same(self, letters: Sequence[int]) -> np.ndarray:
        """Tell where a released letter is the key letter itself, shape (len(letters), |X̂|)."""
        outputs = self.measure.outputs
        found = []
        for x in letters:
            row = [label == self.source.x[x] for label in outputs]
            if sum(row) != 1:
                how = "is released under two columns" if any(row) else "is no released letter"
                problem = f"{self.source.x[x]!r} {how}"
                remedy = "use a distortion whose outputs are the source's key letters, once each"
                raise InputError("distortion", problem, remedy, value=self.source.x[x])
            found.append(row)
        return np.array(found)

    def views(self) -> dict[str, View]:
        """Return what every observer sees of W, and of the encoder's letter.

        Leakage is against p(w) whatever z, so that Σ_z Φ is I(W; X̂, Z); rate against p(s | z).
        """
        letter = np.tile(np.arange(self.n), (len(self.law), 1))
        found = {"W": View(self.w_of), "S": View(letter)}
        for observer in self.observers if self.side_information else ():
            found[observer.view("W")] = View(np.where(observer.here, self.w_of, -1), self.w_of)
            here = observer.here & (self.law > 0)
            number = np.cumsum(here.any(axis=0)) - 1
            found[observer.view("S")] = View(np.where(here, number[letter], -1))
        return found

    def told(self, kind: str) -> dict[str, float]:
        """Return the weights of what all observers together are told about W or S."""
        return {observer.view(kind): 1.0 for observer in self.observers}

    @property
    def held(self) -> str:
        """What the user holds, in LaTeX."""
        return {None: r"\hat X", "decoder": "U, Z", "both": r"\hat X, Z"}[self.side_information]

    @cached_property
    def risk(self) -> Term:
        """I(W; X̂), or I(W; U, Z) where the user knows Z, in the problem's units."""
        return Term("risk", self.told("W"), latex=rf"I(W; {self.held})")

    @cached_property
    def rate(self) -> Term:
        """I(S; X̂), S what is encoded, or I(S; U | Z), in the problem's units."""
        letter = "X" if self.encoder == "x" else "W, X"
        said = self.held.replace(", Z", r" \mid Z")
        return Term("rate", self.told("S"), latex=rf"I({letter}; {said})")

    @cached_property
    def distortion(self) -> Term:
        """E d(X, X̂), or E d(W, X, X̂)."""
        inner = r"W, X, \hat X" if self.measure.matrix.ndim == 3 else r"X, \hat X"
        cost = self.per_letter(self.measure.exact)
        return Term("distortion", cost=cost, latex=rf"\mathrm{{E}}\, d({inner})")

    def _named_parts(self) -> dict[str, dict[str, Part]]:
        """Return every constraint's parts under the name of what was typed."""
        found: dict[str, dict[str, Part]] = {k: {k: row} for k, row in self.subject_to().items()}
        used = set(found)
        for name, criterion in self.named_criteria().items():
            parts = criterion.parts(self).items()
            found[name] = {f"{name}.{key}" if key else name: part for key, part in parts}
            twice = used & set(found[name])
            if twice:
                remedy = "give the linear rule another name"
                raise InputError("criteria", f"two constraints are called {twice.pop()!r}", remedy)
            used |= set(found[name])
        return found

    @cached_property
    def program(self) -> ChannelProgram:
        parts = {key: part for group in self.parts.values() for key, part in group.items()}
        rows = {key: part for key, part in parts.items() if isinstance(part, Row)}
        boxes = [part for part in parts.values() if isinstance(part, EntryBounds)]
        lowers = [box.lower for box in boxes if box.lower is not None]
        uppers = [box.upper for box in boxes if box.upper is not None]
        lower = np.maximum.reduce(lowers) if lowers else None
        upper = np.minimum.reduce(uppers) if uppers else None
        if lower is not None and upper is not None and (lower > upper).any():
            s, y = (int(i) for i in np.argwhere(lower > upper)[0])
            move = f"{self.source.x[self.x_of[s]]!r} → {self.outputs[y]!r}"
            problem = f"{move} must have probability {float(lower[s, y]):g} and is forbidden"
            raise InputError("criteria", problem, "drop the floor or allow the move")
        terms = dict(self.terms())
        for name, cost in self.measure.parts.items():
            terms[f"distortion of {name}"] = Term(name, cost=self.per_letter(cost))
        stated = (self.objective(), *(row.term for row in rows.values()), *terms.values())
        used = {view for term in stated for view in term.weights}
        return ChannelProgram(
            law=self.law,
            outputs=self.m,
            views={k: view for k, view in self.views().items() if k == "W" or k in used},
            objective=self.objective(),
            rows=rows,
            lower=lower,
            upper=upper,
            auxiliaries={k: part for k, part in parts.items() if isinstance(part, Auxiliary)},
            terms=terms,
            units=self.units,
            statement=self._statement(),
        )

    def named_criteria(self) -> dict[str, Criterion]:
        """Return the criteria by their names among the constraints."""
        return named(self.criteria, self.subject_to())

    def with_criterion(self, name: str, new: Criterion) -> ChannelProblem:
        """Return the same problem with the criterion of that name exchanged."""
        criteria = self.named_criteria().items()
        exchanged = tuple(new if key == name else c for key, c in criteria)
        return self._remade({**self._typed(), "criteria": exchanged})

    def _retyped(self, typed: Mapping[str, Any], name: str, value: Real) -> dict[str, Any]:
        criteria = named(typed.get("criteria", ()), self.subject_to())
        if name not in criteria:
            return super()._retyped(typed, name, value)
        if criteria[name].value is None or np.ndim(criteria[name].value):
            remedy = "use the name of a constraint with one number"
            raise InputError(name, f"{criteria[name]!r} has no single number", remedy)
        criteria[name] = criteria[name].at(value)
        return {"criteria": tuple(criteria.values())}

    # ---- CVXPY in sight ------------------------------------------------------------------

    @cached_property
    def model(self) -> ConicModel:
        from cvxprivacy.solvers.cvxpy_channel import ConicModel

        return ConicModel(self.program)

    @property
    def latex(self) -> str:
        """The program in LaTeX, without delimiters."""
        rows = [rf"\min_{{{self._over}}} \quad & {self.objective().latex} \\"]
        said = [*self._stated(tex), *(self._held(c.latex) for c in self.criteria)]
        for i, line in enumerate(said):
            lead = "" if i else r"\text{s.t.}"
            rows.append(rf"{lead} \quad & {line} \\")
        rows[-1] = rows[-1].removesuffix(r" \\")
        return "\n".join([r"\begin{aligned}", *rows, r"\end{aligned}"])

    def _held(self, latex: str) -> str:
        """Return a criterion as it is for one who holds what the user holds."""
        if self.side_information is None or not ("W" in latex or "record" in latex):
            return latex
        return latex.replace(r"\hat X", self.held).replace(r"\hat x", self.held.lower())

    @property
    def _over(self) -> str:
        """Return what the program is minimised over, in LaTeX."""
        output = r"\hat x" if self.strategies is None else "u"
        return rf"p({output} \mid {', '.join(self.seen)})"

    def _repr_latex_(self) -> str:
        program = self.program
        cones = sum(view.size for view in program.views.values()) * program.m
        w, x = len(self.source.w), len(self.source.x)
        size = (
            rf"|W| = {w},\; |X| = {x},\; |\hat X| = {len(self.measure.outputs)}; \quad "
            rf"{program.n * program.m} \text{{ entries of mass, }} {cones} \text{{ cones}}"
        )
        return f"$$\n{self.latex}\n$$\n$${size}$$"

    def _stated(self, written: Callable[[float], str]) -> list[str]:
        """Return the formulation's own constraints in LaTeX, their bounds as ``written``."""
        found = []
        for row in self.subject_to().values():
            assert isinstance(row.bound, Fraction)
            least = row.bound_slope < 0  # the row of a least value has its sign changed
            sense, sign = (r"\ge", -1) if least else (_SENSE[row.sense], 1)
            found.append(rf"{row.term.latex} {sense} {written(sign * float(row.bound))}")
        return found

    def _statement(self) -> str:
        plain = {
            r"\hat X": "X̂",
            r"\mathrm{E}\,": "E",
            r"\,": "",
            r"\le": "≤",
            r"\ge": "≥",
            r"\mid": "|",
            r"\hat x": "x̂",
        }
        text = f"min {self.objective().latex}"
        said = [*self._stated("{:.6g}".format), *map(repr, self.criteria)]
        if said:
            text += f"  s.t.  {', '.join(said)}"
        plainly = self.seen == "x" and self.strategies is None
        text += "" if plainly else f"  over {self._over}"
        text = re.sub(r"\\text\{([^}]*)\}", r"\1", text)
        for latex, letter in plain.items():
            text = text.replace(latex, letter)
        return re.sub(r"_\{([^}]*)\}", r"[\1]", text)

    def _sizes(self) -> str:
        sizes = {"W": len(self.source.w), "X": len(self.source.x)}
        if self.side_information:
            sizes["Z"] = len(self.source.z or ())
        sizes["X̂"] = len(self.measure.outputs)
        said = ", ".join(f"|{letter}| = {size}" for letter, size in sizes.items())
        return said if self.strategies is None else f"{said}, {self.m:,} strategies Z → X̂"

    # ---- the ends of the curve -----------------------------------------------------------

    @cached_property
    def least_distortion(self) -> float:
        """D_min = E min_x̂ d, the least budget that is feasible, rounded up to a float."""
        return self.least_value(self.distortion)

    def least_value(self, term: Term) -> float:
        """Return the least value of a linear term over the entry bounds, rounded up."""
        program, value = self.program, Fraction(0)
        masses, shape = fractions(program.law), (program.n, program.m)
        cost = np.zeros(shape) if term.cost is None else term.cost
        low = np.zeros(shape) if program.lower is None else program.lower
        high = np.ones(shape) if program.upper is None else program.upper
        if len(cost) != len(masses) or cost.ndim == 2:  # one layer for all atoms
            masses, cost = masses.sum(axis=0)[None], cost.reshape(1, *shape)
        layers = zip(masses, fractions(cost), strict=True)
        costs: Any = sum(mass[:, None] * layer for mass, layer in layers)
        for row, floors, most in zip(costs, fractions(low), fractions(high), strict=True):
            value, left = value + row @ floors, 1 - floors.sum()
            for y in np.argsort(row):
                share = min(left, most[y] - floors[y])
                value, left = value + row[y] * share, left - share
                if left <= 0:
                    break
        least = value / masses.sum() + rational(term.constant)
        near = float(least)
        return near if near >= least else math.nextafter(near, math.inf)

    @cached_property
    def greatest_distortion(self) -> float:
        """D_max = min_x̂ E d: from there on a constant is released and nothing is revealed.

        A constant for each z, where the user knows it.
        """
        cost = self.program.mass[:, None] * self.program.cost(self.distortion)
        z = self.z_of[0] if "z" in self.seen else np.zeros(self.n, int)
        return float(sum(cost[z == each].sum(axis=0).min() for each in np.unique(z)))

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], model: ConicModel | None = None) -> Outcome:
        return solve(self.program, model=None if model is None else lambda: model, **options)

    def _explained(self, certificate: Certificate) -> InfeasibleError:
        return explained(self, certificate)

    def _solution(self, outcome: Outcome) -> Solution:
        certificate = outcome.certificate.recorded(record(self.source, self.seen))
        duals, posteriors = self._duals(certificate)
        return Solution(
            certificate,
            title=type(self).__name__,
            sizes=self._sizes(),
            release=None if certificate.primal is None else self._channel(certificate),
            prices=self._prices(certificate, outcome.edges),
            duals=duals,
            posteriors=posteriors,
            log=outcome.log,
        )

    def _duals(self, certificate: Certificate) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the multipliers of every row, mass and entry bound, and r(v | y) per view."""
        program, dual = certificate.program, certificate.dual
        duals: dict[str, Any] = {}
        posteriors: dict[str, np.ndarray] = {}
        if dual is None or not dual.objective or certificate.primal is None:
            return duals, posteriors
        g, _ = program.minorant(dual)
        nu = program.least(g)[1]
        duals["mass"] = -nu / program.mass
        duals["floor"] = np.maximum(g - nu[:, None], 0.0) / program.mass[:, None]
        if program.upper is not None:
            duals["cap"] = np.maximum(nu[:, None] - g, 0.0) / program.mass[:, None]
        for name, aux in program.auxiliaries.items():
            parts = ("floor", "cap") if aux.kind == "ratio" else ("cap",)
            for part, values in zip(parts, dual.auxiliaries[name], strict=True):
                duals[f"{name}.{part}"] = np.array(values)
        for name in program.rows:
            lam = np.asarray(dual.multipliers[name], float)
            duals[name] = lam.copy() if lam.ndim else float(lam)
        for view in program.views:
            log_ratio = program.log_posterior(dual, view)
            posteriors[view] = program.reference(view)[:, None] * np.exp(log_ratio)
        return duals, posteriors

    def _prices(self, certificate: Certificate, edges: Sequence[str]) -> dict[str, Any]:
        """Return d value / d (number typed) for each number: multipliers times slopes.

        Infinite at an edge, where the least tightening leaves nothing feasible.
        """
        program, dual, primal = certificate.program, certificate.dual, certificate.primal
        if dual is None or not dual.objective or primal is None:
            return {}
        channel = primal.matrix
        q = program.mass @ channel
        g, _ = program.minorant(dual)
        floor = np.maximum(g - program.least(g)[1][:, None], 0.0)
        prices: dict[str, Any] = {}
        criteria = self.named_criteria()
        for name, parts in self.parts.items():
            value = criteria[name].value if name in criteria else 0.0
            if value is None:
                continue  # a rule without a number
            price = np.zeros(np.shape(value))
            for key, part in parts.items():
                if isinstance(part, Row):
                    seen = q if part.share is None else (program.mass * part.share) @ channel
                    price += part.price(dual.multipliers[key], seen)
                elif isinstance(part, Auxiliary):
                    price += part.price(dual.auxiliaries[key], program.mass, channel)
                elif part.lower is not None and part.lower_slope is not None:
                    assert program.lower is not None
                    own = (part.lower == program.lower) * part.lower_slope
                    full = program.lower.sum(axis=1, keepdims=True) >= 1.0
                    # in a full row any more is infeasible
                    binding = np.where(full & (own > 0), math.inf, own * floor)
                    if price.ndim:
                        np.add.at(price, self.x_of, binding.sum(axis=1))
                    else:
                        price += binding.sum()
            prices[name] = price + 0.0 if price.ndim else float(price) + 0.0
            if any(key in edges for key in parts):
                rows = [part for part in parts.values() if isinstance(part, Row)]
                up = any(row.slope > 0 or row.bound_slope < 0 for row in rows)
                prices[name] = math.inf if up else -math.inf
        for name, term in self.priced().items():
            prices[name] = sum(certificate.terms[term]) / 2
        return prices

    def _channel(self, certificate: Certificate) -> Channel:
        """Restore the letters of probability zero, on which no optimum depends.

        Those for which the criteria leave no row are no inputs of the channel.
        """
        assert certificate.primal is not None
        kept = certificate.primal.matrix
        source = self.source
        axes = {"w": source.w, "x": source.x, "z": source.z or []}
        inputs: list[Any] = list(itertools.product(*(axes[axis] for axis in self.seen)))
        place = self.seen.index("x")
        letters = [label[place] for label in inputs]
        if len(self.seen) == 1:
            inputs = letters
        matrix = np.zeros((len(inputs), self.m))
        matrix[self.alive] = kept
        p_input = np.zeros(len(inputs))
        p_input[self.alive] = self.program.mass
        arbitrary = np.ones(len(inputs), bool)
        arbitrary[self.alive] = False
        empty = np.flatnonzero(arbitrary)
        for i, row in zip(empty, restored(self, kept, [letters[i] for i in empty]), strict=True):
            matrix[i] = math.nan if row is None else row
        has = np.flatnonzero(~np.isnan(matrix[:, 0]))
        return Channel(
            matrix[has],
            inputs=[inputs[i] for i in has],
            outputs=self.outputs,
            p_input=p_input[has],
            coding=source.coding,
            encoder=self.seen,
            arbitrary=arbitrary[has],
            decoder=self._decoder(),
        )

    def _decoder(self) -> Decoder | None:
        if self.strategies is None:
            return None
        letters, z = self.measure.outputs, self.source.z or []
        met = [observer.z for observer in self.observers]
        places = [i if i in met else met[0] for i in range(len(z))]  # z without mass: as another
        table = [[letters[rule[place]] for place in places] for rule in self.strategies.tolist()]
        return Decoder(table, side=z, coding=self.source.coding)
