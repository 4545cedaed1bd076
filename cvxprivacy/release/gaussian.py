"""The release of a Gaussian problem: linear, with Gaussian noise; of many variables, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb_mat

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.frozen import Frozen, frozen, owned
from cvxprivacy.model.matrices import block, identity, rationals, rounded
from cvxprivacy.release.draws import Draws
from cvxprivacy.tables.engines import finite_numbers, in_memory, is_frame, replace_columns
from cvxprivacy.text import brief, facts_html, matrix_html
from cvxprivacy.validation import array, present

__all__ = ["MOST", "DiagonalRelease", "GaussianRelease", "diagonal"]


class GaussianRelease(Frozen):
    """X̂ = E[X|Z] + (I − A)(X − E[X|Z]) + N', N' Gaussian, with Cov(X − X̂) = Σ.

    A = Σ Σ_X⁻¹ and Cov(N') = Σ − Σ Σ_X⁻¹ Σ (given Z, where Z is known to the encoder), so that
    E[X | X̂] = X̂ and the conditional mean of X loses nothing: Rebollo-Monedero et al. 2010,
    Theorem 2, in a form that inverts no A.  ``solution.release`` of a Gaussian problem is one.

    Attributes
    ----------
    gain : ndarray, shape (n, n)
        I − A, of the n independent encoded variables.
    noise : ndarray, shape (n, n)
        Cov(N').
    inputs, outputs : tuple of str
        Variables that are read, and that are released.

    Examples
    --------
    Half of the variance of X may be error.  The optimum halves X before it adds noise of variance
    Σ − Σ²/σ² = ¼, so that Var X̂ = ½ and the error is ½; plain noise of variance ½ would leave a
    table that is too wide:

    >>> import numpy as np
    >>> import cvxprivacy as cpv
    >>> source = cpv.GaussianSource.scalar(0.8)
    >>> release = cpv.QuadraticGaussian(source, budget=0.5).solve().release
    >>> release.gain.round(6).tolist(), release.noise.round(6).tolist()
    ([[0.5]], [[0.25]])
    >>> x = np.random.default_rng(0).standard_normal((20_000, 1))
    >>> released = release.apply(x, seed=1)
    >>> round(float(np.var(released)), 1), round(float(np.var(x - released)), 1)
    (0.5, 0.5)
    """

    def __init__(
        self,
        sigma: Any,
        *,
        covariance: Any,
        mean: np.ndarray,
        mean_out: np.ndarray,
        side: int,
        expansion: Any,
        inputs: Sequence[str],
        outputs: Sequence[str],
        scale: np.ndarray | None = None,
        scale_out: np.ndarray | None = None,
    ) -> None:
        errors = rationals(sigma)
        size = errors.nrows()
        law, x, z = rationals(covariance), range(size), range(size, size + side)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.scale = frozen(np.ones(len(inputs)) if scale is None else scale)
        self.scale_out = frozen(np.ones(len(outputs)) if scale_out is None else scale_out)
        self.mean, self.mean_out = frozen(mean), frozen(mean_out)
        self.expansion = frozen(np.asarray(expansion, dtype=float))

        def regression() -> Any:
            return arb_mat(block(law, z, z)).solve(arb_mat(block(law, z, x))).transpose()

        def kept() -> Any:
            """Return Σ_X⁻¹ Σ (given Z)."""
            conditional = arb_mat(block(law, x, x))
            if side:
                conditional = conditional - regression() * arb_mat(block(law, z, x))
            return conditional.solve(arb_mat(errors))

        least = min(float(errors[i, i]) for i in x)
        self.regression = frozen(rounded(regression) if side else np.zeros((size, 0)))
        self.gain = frozen(rounded(lambda: arb_mat(identity(size)) - kept().transpose(), 1.0))
        noise = rounded(lambda: arb_mat(errors) - arb_mat(errors) * kept(), least)
        self.noise = frozen((noise + noise.T) / 2)

    def __repr__(self) -> str:
        return f"GaussianRelease({len(self.inputs)} variables → {len(self.outputs)})"

    def _repr_html_(self) -> str:
        names = self.inputs[: len(self.gain)]
        gain = matrix_html("gain I − A", self.gain, names, names, shaded=False)
        noise = matrix_html("covariance of the noise", self.noise, names, names, shaded=False)
        return facts_html(repr(self), [("released", brief(self.outputs))], gain + noise)

    def apply(
        self,
        values: Any,
        *,
        seed: int | np.random.Generator | None = None,
        step: float | Sequence[float] | None = None,
    ) -> Any:
        """Draw a released vector for each record.

        Parameters
        ----------
        values : frame or array_like, shape (N, k)
            Columns ``inputs``: by name in a frame, else in their order; N may be left out.
        seed : int or numpy.random.Generator, optional
            As of :meth:`cvxprivacy.Channel.apply`.  Whoever knows the seed can subtract the noise:
            keep it secret.
        step : float, or one for each of ``outputs``, optional
            Release the nearest multiples of it: 0.01 of a standard deviation of the error costs
            next to nothing.  Without it, the last bits of the sum of a number and its noise may
            tell the number (Mironov 2012).  One that is finer than these bits is refused.

        Returns
        -------
        frame or ndarray
            A frame comes back whole, with the key columns replaced, in its own flavour.

        Notes
        -----
        Rounding to ``step`` looks at the released vector alone, and so tells nothing more than it
        of a record; whoever sees the multiples knows the vector to half a step.  The proof is of
        real numbers: the noise here is the float64 next to a normal number of at most 9.16
        standard deviations (beyond which a normal law has a mass of 2⁻⁶⁴), and how often each
        multiple is drawn is that of the real law but for these roundings.
        """
        draws, steps = Draws(seed), self._steps(step)
        if not is_frame(values):
            remedy = f"pass finite numbers, {len(self.inputs)} in each row"
            if np.shape(values) == (0, len(self.inputs)):
                return np.zeros((0, len(self.outputs)))
            data = array(values, "values", remedy, axes=(1, 2), negative=True)
            if data.shape[-1] != len(self.inputs):
                raise InputError("values", f"shape {data.shape}", remedy)
            released = _stepped(self._released(np.atleast_2d(data), draws), steps)
            return released.reshape(*data.shape[:-1], -1)
        frame = in_memory(values, "values")
        if not len(frame):
            return values
        for name in self.inputs:
            present(name, frame.columns, "values")
        columns = [finite_numbers(frame[name], "values") for name in self.inputs]
        released = _stepped(self._released(np.array(columns).T, draws), steps)
        return replace_columns(values, dict(zip(self.outputs, released.T, strict=True)))

    def _steps(self, step: Any) -> FloatArray | None:
        """Return a step > 0 for each output, or for all."""
        if step is None:
            return None
        remedy = f"pass a number > 0, or {len(self.outputs)} of them, one for each output"
        steps = array(step, "step", remedy, axes=(0, 1))
        if steps.ndim and len(steps) != len(self.outputs):
            raise InputError("step", f"shape {steps.shape}", remedy)
        if not steps.all():
            where = int(steps.argmin()) if steps.ndim else None
            raise InputError("step", "0.0 is no step", remedy, where=where, value=0.0)
        return steps

    def _released(self, data: np.ndarray, draws: Draws) -> np.ndarray:
        size = len(self.gain)
        centred = data / self.scale - self.mean
        expected = centred[:, size:] @ self.regression.T
        values, vectors = np.linalg.eigh(self.noise)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = draws.normals(len(data), size) @ root.T
        independent = expected + (centred[:, :size] - expected) @ self.gain.T + noise
        drawn = independent[:, size - self.expansion.shape[1] :] @ self.expansion.T + self.mean_out
        return drawn * self.scale_out


def _stepped(released: FloatArray, steps: FloatArray | None) -> FloatArray:
    """Return the nearest multiples of the steps, 0 without a sign."""
    if steps is None:
        return released
    with np.errstate(over="ignore"):
        multiples = np.rint(released / steps)
    fine = np.argwhere(np.abs(multiples) >= 2.0**53)  # where floats are no closer: nothing rounds
    if len(fine):
        column = int(fine[0][1])
        step, where = float(np.broadcast_to(steps, released.shape[1])[column]), None
        if steps.ndim:
            where = column
        problem = f"{step:g} is finer than the last bits of what is released"
        raise InputError("step", problem, "pass a wider one", where=where, value=step)
    return multiples * steps + 0.0


# ---- many variables, one by one -----------------------------------------------------------


MOST = 200  # variables of a matrix


def diagonal(values: FloatArray) -> FloatArray:
    """Return a diagonal matrix of at most 200 rows, of more variables its diagonal alone."""
    if len(values) > MOST:
        return owned(np.array(values))
    matrix = np.zeros((len(values),) * 2)
    np.fill_diagonal(matrix, values)
    return owned(matrix)


class DiagonalRelease(GaussianRelease):
    """X̂_i = (1 − a_i) X_i + noise of variance a_i (1 − a_i) σ_i², a_i = D_i/σ_i², for each i alone.

    The :class:`GaussianRelease` of independent variables, in time and memory of their number.

    Attributes
    ----------
    gains, noises : ndarray, shape (n,)
        1 − a_i, and a_i (1 − a_i) σ_i².
    gain, noise : ndarray, shape (n, n) or (n,)
        The same as diagonal matrices; of more than 200 variables their diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxprivacy as cpv
    >>> release = cpv.ReverseWaterFilling([4, 1, 0.25], budget=1.25).solve().release
    >>> release.gains.tolist(), release.noises.tolist()
    ([0.875, 0.5, 0.0], [0.4375, 0.25, 0.0])
    >>> release.apply(np.ones((20_000, 3)), seed=1).mean(axis=0).round(1).tolist()
    [0.9, 0.5, 0.0]
    """

    def __init__(self, errors: FloatArray, left: FloatArray, variances: FloatArray) -> None:
        """State a release of error variances; ``left`` is what they leave of the variances."""
        self.gains = owned(left / variances)
        self.noises = owned(errors * self.gains)
        self._size = len(variances)
        self.mean = self.mean_out = owned(np.zeros(self._size))
        self.scale = self.scale_out = owned(np.ones(self._size))
        self.regression = owned(np.zeros((self._size, 0)))

    @cached_property
    def inputs(self) -> tuple[str, ...]:  # type: ignore[override]  # as others read it, an attribute
        return tuple(f"V{i}" for i in range(self._size))

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inputs

    @cached_property
    def gain(self) -> FloatArray:  # type: ignore[override]
        return diagonal(self.gains)

    @cached_property
    def noise(self) -> FloatArray:  # type: ignore[override]
        return diagonal(self.noises)

    @cached_property
    def expansion(self) -> FloatArray:  # type: ignore[override]
        return diagonal(np.ones(self._size))

    def __repr__(self) -> str:
        return f"GaussianRelease({self._size} variables → {self._size})"

    def _repr_html_(self) -> str:
        if self._size > MOST:
            return repr(self)
        return super()._repr_html_()

    def _released(self, data: np.ndarray, draws: Draws) -> np.ndarray:
        noise = draws.normals(*data.shape)
        return data * self.gains + noise * np.sqrt(self.noises)
