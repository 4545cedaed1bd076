r"""Rate, distortion and equivocation of a database, with and without side information.

Over the releases X̂ (or U, which a user who knows Z reads as x̂ = f(u, z)) of what the encoder sees,
S = X or (W, X), the achievable (R, D, E) are all with

====================  ===============  ==================  ============================
Z known to            rate R ≥         equivocation E ≤    over
====================  ===============  ==================  ============================
nobody                I(S; X̂)          H(W | X̂)            p(x̂ | s)         (Prop. 2)
the user              I(S; U | Z)      H(W | U, Z)         p(u | s), f      (Theorem 2)
user and encoder      I(S; X̂ | Z)      H(W | X̂, Z)         p(x̂ | s, z)      (Theorem 3)
====================  ===============  ==================  ============================

and E d(X, X̂) ≤ D: Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An
Information-Theoretic Approach*, IEEE TIFS 8(6), 2013.  In Theorem 2 the strategies t: Z → X̂ are
all the u that are needed: t = f(u, ·) is a function of u, so that rate and leakage can only fall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion, LocalPrivacy, MaximalLeakage
from cvxprivacy.criteria.privacy import entropy_of
from cvxprivacy.errors import InfeasibleError, InputError
from cvxprivacy.exact import Real, plus
from cvxprivacy.formulations import side, strategies
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frozen import frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs import Minimize, Row, Term, View
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.solvers.driver import Outcome
from cvxprivacy.validation import typed, whole

if TYPE_CHECKING:
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

__all__ = ["RateDistortionEquivocation"]

_QUANTITIES = ("rate", "leakage", "distortion")


def _fixed(name: str, default: Any = None) -> Any:
    """Return an argument as it was typed: another one is another problem (``problem.at``)."""
    return property(lambda self: self._typed().get(name, default))


class RateDistortionEquivocation(ChannelProblem):
    """Least rate, least leakage or a weighted sum, under the bounds given.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W, X, and Z where it is known to somebody.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
    budget : float or mapping, optional
        D; or one for each attribute of a ``per_attribute`` distortion, or for several together:
        ``{"age": 1.0, ("age", "sex"): 1.2}`` (Remark 2; ``"age, sex"`` is the same key).  None
        leaves distortion free.
    minimize : {"rate", "leakage", "distortion"} or mapping
        Γ(D) is H(W) less the least leakage; ``{"rate": 1, "leakage": 2}`` is a weighted sum.
    max_rate, min_equivocation : float, optional
        In the problem's units.
    max_leakage : float or mapping, optional
        For all of W; or for hidden attributes and sets of them, by column (Remark 2).  With Z no
        less than I(W; Z).
    side_information : {None, "decoder", "both"}
        Who knows Z: nobody, the user, or user and encoder.
    encoder : {"x", "wx"}
        What is encoded: the public attributes, or the private ones too (Remark 3).
    criteria : sequence of Criterion
        For each released letter, and each z where the user knows Z.
    units : {"bits", "nats"}
    most_strategies : int
        With Z at the user alone, up to so many strategies are all listed, and the optimum is
        exact.  Where there are more, good ones are generated while the problem is solved, which
        then has these outputs: the release is of them, and the lower end that of Theorem 3.
        Rates, leakages and distortions guide the search, criteria per letter do not.

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> law = [[[0.45, 0.05], [0, 0]], [[0, 0], [0.05, 0.45]]]  # W = X, Z tells nearly all
    >>> source = cpv.DiscreteSource(law)
    >>> problem = cpv.RateDistortionEquivocation(
    ...     source, cpv.hamming(2), 0.07, side_information="decoder"
    ... )
    >>> round(problem.solve().value, 4)
    0.1375
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        budget: Real | Mapping[Any, Real] | None = None,
        *,
        minimize: str | Mapping[str, Real] = "rate",
        max_rate: Real | None = None,
        max_leakage: Real | Mapping[Any, Real] | None = None,
        min_equivocation: Real | None = None,
        side_information: str | None = None,
        encoder: str = "x",
        criteria: Sequence[Criterion] = (),
        units: str = "bits",
        most_strategies: int = 1024,
    ) -> None:
        self._weights = _weights(minimize)
        self.most = whole(most_strategies, "most_strategies", least=1)
        super().__init__(
            source,
            distortion,
            encoder=encoder,
            side_information=side_information,
            criteria=criteria,
            units=units,
        )

    budget, minimize = _fixed("budget"), _fixed("minimize", "rate")
    max_rate, max_leakage = _fixed("max_rate"), _fixed("max_leakage")
    min_equivocation = _fixed("min_equivocation")

    # ---- the program ---------------------------------------------------------------------

    def objective(self) -> Term:
        terms = self.terms()
        weighed = [w * terms[name] if w != 1 else terms[name] for name, w in self._weights.items()]
        return Minimize(sum(weighed[1:], weighed[0]))

    def subject_to(self) -> Mapping[str, Row]:
        rows: dict[str, Row] = {}
        for key, bound in _bounds(self.budget, "budget").items():
            rows[_indexed("budget", key)] = self.distortion_of(key) <= bound  # E d(X, X̂) ≤ D
        for key, bound in _bounds(self.max_leakage, "max_leakage").items():
            rows[_indexed("max_leakage", key)] = self.leakage_of(key) <= bound  # I(W; X̂, Z) ≤ L
        if self.max_rate is not None:
            rows["max_rate"] = self.rate <= typed(self.max_rate, "max_rate")  # I(S; X̂ | Z) ≤ R
        if self.min_equivocation is not None:  # −H(W | X̂, Z) ≤ −E
            bound = -typed(self.min_equivocation, "min_equivocation")
            negative = replace(-self.equivocation, latex=self.equivocation.latex)
            rows["min_equivocation"] = replace(negative <= bound, bound_slope=-1.0)
        return rows

    def terms(self) -> dict[str, Term]:
        found = {"rate": self.rate, "leakage": self.leakage_of(())}
        found |= {"equivocation": self.equivocation, "distortion": self.distortion}
        if isinstance(self.max_leakage, Mapping):
            found |= {f"leakage of {', '.join(k)}": self.leakage_of(k) for k in self.hidden}
        return found

    # ---- strategies ----------------------------------------------------------------------

    def _strategies(self) -> np.ndarray | None:
        if self.side_information != "decoder":
            return None
        letters, size = len(self.measure.outputs), len(self.source.z or ())
        found = side.all_strategies(letters, self.observers, size, self.most)
        return strategies.first(self) if found is None else found

    @property
    def cut(self) -> bool:
        """Whether there are too many strategies for all of them to be listed."""
        letters = len(self.measure.outputs)
        decoded = self.side_information == "decoder"
        return decoded and not side.few(letters, self.observers, self.most)

    def listed(self, rules: np.ndarray) -> Self:
        """Return the problem with other strategies, shape (m, |Z|), in place of those listed."""
        found = self._with(strategies=frozen(rules))
        return found._with(parts=frozen(found._named_parts()))

    @property
    def informed(self) -> RateDistortionEquivocation:
        """The problem with Z at the encoder too: its optimum is no greater (Theorem 3).

        Auxiliaries are left out, as a release may satisfy them only because it does not see Z.
        """
        kept = [c for c in self.criteria if not isinstance(c, LocalPrivacy | MaximalLeakage)]
        return self._remade({**self._typed(), "side_information": "both", "criteria": kept})

    def _outcome(self, options: Mapping[str, Any], model: ConicModel | None = None) -> Outcome:
        return strategies.generated(self, options) if self.cut else super()._outcome(options, model)

    def _explained(self, certificate: Certificate) -> InfeasibleError:
        if isinstance(certificate, strategies.Relaxed):
            return self.informed._explained(certificate.relaxation)
        return super()._explained(certificate)

    # ---- attributes ----------------------------------------------------------------------

    @cached_property
    def equivocation(self) -> Term:
        """H(W | what the user holds) = H(W) − leakage."""
        value, radius = entropy_of(self.masses_of_w(), self.units)
        whole = Term(constant=value, constant_radius=radius)
        latex = self.risk.latex.replace("I(W;", r"H(W \mid").replace(r"\mid  ", r"\mid ")
        return replace(-1 * self.leakage_of(()) + whole, name="equivocation", latex=latex)

    def leakage_of(self, hidden: tuple[str, ...]) -> Term:
        """I(W_j; X̂), or I(W_j; X̂, Z), for some hidden attributes; for all if none is named."""
        if not hidden:
            return replace(self.risk, name="leakage")
        self._part(hidden)
        part = f"W[{', '.join(hidden)}]"
        latex = self.risk.latex.replace("I(W;", rf"I(\text{{{', '.join(hidden)}}};")
        return Term(f"leakage of {', '.join(hidden)}", self.told(part), latex=latex)

    def distortion_of(self, revealed: tuple[str, ...]) -> Term:
        """Σ E d_i for some revealed attributes; E d if none is named."""
        if not revealed:
            return self.distortion
        known = self.measure.parts
        for name in revealed:
            if name not in known:
                remedy = f"use {', '.join(known)}" if known else "make it with per_attribute"
                problem = f"the distortion has no part {name!r}"
                raise InputError("budget", problem, remedy, value=name)
        said = ", ".join(revealed)
        cost = self.per_letter(reduce(plus, [known[name] for name in revealed]))
        return Term(
            f"distortion of {said}", cost=cost, latex=rf"\mathrm{{E}}\, d_{{\text{{{said}}}}}"
        )

    @cached_property
    def hidden(self) -> tuple[tuple[str, ...], ...]:
        """The sets of hidden attributes with a bound of their own."""
        return tuple(key for key in _bounds(self.max_leakage, "max_leakage") if key)

    def views(self) -> dict[str, View]:
        found = super().views()
        for names in self.hidden:
            part = self._part(names)[self.w_of]
            for observer in self.observers:
                own = np.where(observer.here, part, -1)
                found[observer.view(f"W[{', '.join(names)}]")] = View(own, part)
        return found

    def _part(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the number of the letter of some hidden attributes, for each possible w."""
        alive = [self.source.w[w] for w in self.alive_w]
        cells = [w if isinstance(w, tuple) else (w,) for w in alive]
        coding = self.source.coding
        columns = coding.sensitive if coding else tuple(map(str, range(len(cells[0]))))
        for name in names:
            if name not in columns:
                problem, remedy = f"no hidden attribute {name!r}", f"use {', '.join(columns)}"
                raise InputError("max_leakage", problem, remedy, value=name)
        places = [columns.index(name) for name in names]
        letters = [tuple(cell[i] for i in places) for cell in cells]
        numbers = {letter: i for i, letter in enumerate(dict.fromkeys(letters))}
        return np.array([numbers[letter] for letter in letters])

    def priced(self) -> Mapping[str, str]:
        names = self._weights if isinstance(self.minimize, Mapping) else ()
        return {f"minimize[{name}]": name for name in names}


def _weights(minimize: str | Mapping[str, Real]) -> dict[str, float | Fraction]:
    remedy = f"use {', '.join(_QUANTITIES)}, or a mapping of them to weights"
    if not isinstance(minimize, str | Mapping):
        raise InputError("minimize", f"{minimize!r}", remedy)
    given = minimize if isinstance(minimize, Mapping) else {minimize: 1.0}
    for name in given:
        if name not in _QUANTITIES:
            raise InputError("minimize", f"{name!r}", remedy, value=name)
    weights = {name: typed(w, "minimize", where=name) for name, w in given.items()}
    if not any(weights.values()):
        raise InputError("minimize", f"{minimize!r}", "pass at least one weight > 0")
    return weights


def _bounds(given: Any, argument: str) -> dict[tuple[str, ...], float | Fraction]:
    """Return bounds by the attributes that they are on, by () if on all."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return {(): typed(given, argument)}
    if not given:
        raise InputError(argument, "no bound", "pass a number, or one per attribute")
    found: dict[tuple[str, ...], float | Fraction] = {}
    for key, value in given.items():
        said = map(str, key) if isinstance(key, tuple) else str(key).split(", ")
        names = tuple(dict.fromkeys(said))
        if any(set(names) == set(other) for other in found):
            remedy = "bound each set of attributes once"
            raise InputError(argument, f"{', '.join(names)} twice", remedy, where=", ".join(names))
        found[names] = typed(value, argument, where=", ".join(names))
    return found


def _indexed(name: str, key: tuple[str, ...]) -> str:
    return f"{name}[{', '.join(key)}]" if key else name
