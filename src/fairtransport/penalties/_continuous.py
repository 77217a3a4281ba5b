"""The continuous penalty: regularized transport by its dual, with potentials in Fourier features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.penalties.base import SampleTerms, TransportPenalty
from fairtransport.transport.dual_optimum import DUAL_RIDGE, maximize_dual
from fairtransport.transport.kernels.dual_newton import FREE, OPPOSITE, SAME, Newton, Pairs, Samples, newton_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.transport.dual import DualProblem

__all__ = ["ContinuousPenalty"]

_TOLERANCE, _MAX_ITER = 1e-9, 60
_NEGLIGIBLE = 1e-4  # of the largest singular value: directions of the features that scores cannot tell apart


class ContinuousPenalty(TransportPenalty):
    r"""Regularized transport distances, by their dual in Fourier features.

    Parameters
    ----------
    problem : DualProblem
        Features, regularizer, strength, and whether the two duals are opposite.
    ridge : float, default=0.03
        Ridge of the dual coefficients, which makes the distance smooth where two samples agree.
    n_slices : int or None, default=64
        Represent each sample by this many slice means; None: by its rows, whose pairs are all compared.
    scale : {"standardized", "score"}, default="standardized"
        Compare scores divided by their standard deviation, or as they are.

    Notes
    -----
    For each pair the dual objective (`fairtransport.transport.dual_optimum`) is maximised by Newton's method from the
    last solution, and the gradient follows by the envelope theorem. The regularized distance of a sample to itself is
    not zero; half of it is subtracted for both samples (the debiased divergence). With the L2 regularizer and opposite
    duals it is zero.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, Eq. 4 and 7.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.penalties import Comparisons, ContinuousPenalty
    >>> from fairtransport.transport.dual import DualProblem
    >>> from fairtransport.transport.fourier import draw_features
    >>> from fairtransport.transport.regularizers import get_regularizer
    >>> rng = np.random.default_rng(0)
    >>> problem = DualProblem(draw_features(50, 0.1, rng), get_regularizer("l2"), 0.1, opposite=True)
    >>> pairs = Comparisons.of_cells(400, [np.arange(200), np.arange(200, 400)], [(0, 1)])
    >>> scores = np.concatenate((rng.beta(2, 5, 200), rng.beta(5, 2, 200)))
    >>> terms = ContinuousPenalty(problem, scale="score").value_and_gradient(scores, pairs)
    >>> bool(terms.value > 0.4), bool(terms.gradient[:200].mean() < 0 < terms.gradient[200:].mean())
    (True, True)
    """

    def __init__(
        self,
        problem: DualProblem,
        *,
        ridge: float = DUAL_RIDGE,
        n_slices: int | None = 64,
        scale: str = "standardized",
    ) -> None:
        super().__init__(n_slices=n_slices, scale=scale)
        self.problem, self.ridge = problem, ridge
        self.pairs: NDArray[np.int64] = np.zeros((0, 2), np.int64)
        self.coefficients: NDArray[np.float64] = np.zeros((0, 0))
        self._own: NDArray[np.float64] = np.zeros((0, 0))
        self._basis: NDArray[np.float64] | None = None

    @property
    def debiased(self) -> bool:
        """Whether the distance of a sample to itself is not zero by construction."""
        return not (self.problem.opposite and self.problem.regularizer.name == "l2")

    @property
    def _own_ridge(self) -> float:
        # The free potentials of a sample and itself are equal, and the ridge applies to both.
        return self.ridge if self.problem.opposite else 2.0 * self.ridge

    def compare(
        self,
        points: Sequence[NDArray[np.float64]],
        masses: Sequence[NDArray[np.float64]] | None,
        pairs: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> SampleTerms:
        """Compare samples; see `TransportPenalty.compare`."""
        if masses is None:
            return self._compare_slices(np.array(points), pairs, weights)
        slopes = [np.zeros(sample.size) for sample in points]
        distances = np.zeros(len(pairs))
        alone = {}
        if self.debiased:
            for a in np.unique(pairs):
                x, p = points[a][None], masses[a][None]
                alone[a] = maximize_dual(
                    self.problem, x, x, x_mass=p, y_mass=p, ridge=self._own_ridge, same=not self.problem.opposite
                )
        for number, (a, b) in enumerate(pairs):
            joint = maximize_dual(
                self.problem, points[a][None], points[b][None], x_mass=masses[a][None], y_mass=masses[b][None],
                ridge=self.ridge,
            )  # fmt: skip
            distances[number] = joint.values[0]
            for sample, joint_slopes in ((a, joint.x_slopes[0]), (b, joint.y_slopes[0])):
                slopes[sample] += weights[number] * joint_slopes
                if self.debiased:
                    distances[number] -= 0.5 * alone[sample].values[0]
                    slopes[sample] -= 0.5 * weights[number] * (alone[sample].x_slopes[0] + alone[sample].y_slopes[0])
        return SampleTerms(float(weights @ distances), slopes, distances)

    def _compare_slices(
        self, table: NDArray[np.float64], pairs: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> SampleTerms:
        features, tie = self.problem.features, OPPOSITE if self.problem.opposite else FREE
        psi, rise = features.value_and_slope(table)
        if self._basis is None:
            self._basis = _directions(psi.reshape(-1, psi.shape[-1]))
        psi, rise = psi @ self._basis, rise @ self._basis
        width = self._basis.shape[1] * (1 if self.problem.opposite else 2)
        if not np.array_equal(pairs, self.pairs) or self.coefficients.shape[1] != width:
            self.pairs, self.coefficients = pairs.copy(), np.zeros((len(pairs), width))
            self._own = np.zeros((len(table), self._basis.shape[1]))
        masses = np.full(table.shape, 1.0 / table.shape[1])
        slopes, distances = np.zeros_like(table), np.zeros(len(pairs))
        samples = Samples(table, masses, psi, rise)
        newton = Newton(self.problem.strength, self.problem.regularizer.code, tie, self.ridge, _TOLERANCE, _MAX_ITER)
        first, second = np.ascontiguousarray(pairs.T)
        newton_pairs(samples, Pairs(first, second, weights), newton, self.coefficients, distances, slopes)
        if self.debiased:
            index = np.arange(len(table))
            total = np.asarray(np.bincount(pairs.ravel(), np.repeat(weights, 2), len(table)), dtype=np.float64)
            alone = np.zeros(len(table))
            newton = newton._replace(tie=OPPOSITE if self.problem.opposite else SAME, ridge=self._own_ridge)
            newton_pairs(samples, Pairs(index, index, -0.5 * total), newton, self._own, alone, slopes)
            distances -= 0.5 * alone[pairs].sum(axis=1)
        return SampleTerms(float(weights @ distances), list(slopes), distances)

    def dual_coefficients(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the coefficients of the two potentials f and h of each pair, in the Fourier features."""
        if self._basis is None:
            empty = np.zeros((0, len(self.problem.features)))
            return empty, empty
        if self.problem.opposite:
            f = self.coefficients @ self._basis.T
            return f, -f
        half = self.coefficients.shape[1] // 2
        return self.coefficients[:, :half] @ self._basis.T, self.coefficients[:, half:] @ self._basis.T


def _directions(psi: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthonormal basis of the coefficients that matter at these points.

    Fifty smooth cosines on an interval span about ten dimensions up to rounding. The ridge alone determines the others,
    so leaving them out changes nothing and saves most of the work.
    """
    _, sizes, directions = np.linalg.svd(psi, full_matrices=False)
    return np.ascontiguousarray(directions[sizes > _NEGLIGIBLE * sizes[0]].T)
