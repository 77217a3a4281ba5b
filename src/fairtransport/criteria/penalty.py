"""Penalties, continuous and discrete, on rows, slices or histograms: their value and gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_choice, check_count, check_real, check_vector
from fairtransport.criteria.comparisons import Comparisons, sums_over_pairs
from fairtransport.groups import Groups
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import FeatureDirections, FourierFeatures, TabulatedDirections
from fairtransport.transport.kernels.dual_newton import (
    FREE,
    OPPOSITE,
    SAME,
    Newton,
    Pairs,
    Samples,
    newton_pairs,
    newton_pairs_plainly,
)
from fairtransport.transport.kernels.line import add_row_slopes, write_slice_means
from fairtransport.transport.line import FEW_SCORES, ascending_order, row_slopes, slice_means

#: Scores are compared in units of their standard deviation, or as they are.
SCALES = ("standardized", "score")

#: Standard deviation of standardized scores: that of typical probabilities, so that a strength, a kernel variance and
#: a Huber width mean the same on both scales.
UNIT_DEVIATION = 0.25

_FEW_CELLS = 3  # of few scores, for which nothing is compiled

_NO_WEIGHTS = np.zeros(0)
_CURVATURE_ROWS, _CURVATURE_SLICES = 2_000, 32  # of each sample, for a preconditioner


class SampleTerms(NamedTuple):
    """Distances between samples: their weighted sum, its slope at every point for unit mass, and each one."""

    value: float
    slopes: list[Floats] | Floats
    distances: Floats


class PenaltyTerms(NamedTuple):
    """A penalty, its derivative with respect to each score, and the distances; zero for pairs of weight zero."""

    value: float
    gradient: Floats
    distances: Floats


class TransportPenalty(ABC):
    r"""Weighted sum of the distances between the pairs of some `Comparisons`.

    Samples are ``n_slices`` slice means each, or their rows where that is None. On the standardized scale, with mean m
    and deviation d of all rows, :math:`t = (s - m) / (4 d)` is compared. Moving all scores together towards their mean
    then changes nothing, so shrinking them does not reduce the penalty. With :math:`\omega_i` the share of a row and g
    the gradient with respect to t,

    .. math:: \frac{\partial}{\partial s_j} = \frac{1}{4d}\Big(g_j - \omega_j \sum_i g_i\Big)
              - \frac{4\,\omega_j t_j}{d} \sum_i g_i t_i .
    """

    def __init__(self, *, n_slices: int | None, scale: str) -> None:
        self.n_slices = None if n_slices is None else check_count(n_slices, name="n_slices")
        self.scale = check_choice(scale, SCALES, name="scale")
        #: Subtracted from scores, and their divisor, when they were last compared.
        self.center, self.unit = 0.0, 1.0
        self._few = False  # whether nothing is compiled for them

    @abstractmethod
    def _compare_rows(
        self, points: Sequence[Floats], masses: Sequence[Floats], pairs: Ints, weights: Floats
    ) -> SampleTerms:
        """Compare samples of ascending points, with masses that sum to 1."""

    @abstractmethod
    def _compare_slices(self, table: Floats, pairs: Ints, weights: Floats) -> SampleTerms:
        """Compare samples of ascending points of equal mass, in the rows of a table."""

    def value(self, scores: ArrayLike, comparisons: Comparisons) -> float:
        """Compare scores, one for each row, without the gradient."""
        return self._compare_scores(scores, comparisons)[0].value

    def value_and_gradient(self, scores: ArrayLike, comparisons: Comparisons) -> PenaltyTerms:
        """Compare scores, one for each row."""
        terms, values, orders, points = self._compare_scores(scores, comparisons)
        weights = comparisons.row_weights
        gradient = np.zeros(values.size)
        for order, slopes in zip(orders, terms.slopes, strict=False):
            if self.n_slices is None:
                gradient[order] += slopes * _shares(order, weights)
            elif order.size:
                self._add_slopes(slopes, order, weights, gradient)
        fixed = [slopes / slopes.size for slopes in terms.slopes[len(orders) :]]  # targets have equal masses
        if self.scale == "standardized":
            total = gradient.sum() + sum(float(g.sum()) for g in fixed)
            moment = gradient @ values + sum(float(g @ p) for g, p in zip(fixed, points[len(orders) :], strict=True))
            share = 1.0 / values.size if weights is None else weights / weights.sum()
            values *= moment  # in place: new arrays of many rows cost more than the arithmetic
            values /= UNIT_DEVIATION**2
            values += total
            values *= share
            gradient -= values
            gradient /= self.unit
        distances = np.zeros(len(comparisons.pairs))
        distances[comparisons.active] = terms.distances
        return PenaltyTerms(terms.value, gradient, distances)

    def _compare_scores(
        self, scores: ArrayLike, comparisons: Comparisons
    ) -> tuple[SampleTerms, Floats, list[Ints], list[Floats]]:
        """Compare scores; return also the rescaled scores, the order of those of each cell, and all samples."""
        s = check_vector(scores, name="scores")
        if s.size != comparisons.n_rows:
            raise ValueError(f"There are {s.size} scores for comparisons of {comparisons.n_rows} rows.")
        self._few = s.size <= FEW_SCORES and len(comparisons.cells) <= _FEW_CELLS
        values, targets = self._rescaled(s, comparisons)
        active, weights = comparisons.active, comparisons.row_weights
        orders = [rows[ascending_order(values[rows])] if rows.size else rows for rows in comparisons.cells]
        points: list[Floats]
        chosen = comparisons.pairs[active], comparisons.weights[active]
        if self.n_slices is None:
            points = [values[order] for order in orders] + targets
            masses = [_shares(order, weights) for order in orders] + [np.full(t.size, 1.0 / t.size) for t in targets]
            return self._compare_rows(points, masses, *chosen), values, orders, points
        table = np.zeros((len(orders), self.n_slices))
        for order, row in zip(orders, table, strict=True):
            if order.size:
                self._write_means(values, order, weights, row)
        points = [*table, *(slice_means(t, np.ones(t.size), self.n_slices) for t in targets)]
        return self._compare_slices(np.array(points), *chosen), values, orders, points

    def _write_means(self, values: Floats, order: Ints, weights: Floats | None, means: Floats) -> None:
        if self._few:
            means[:] = slice_means(values[order], _shares(order, weights), means.size)
        else:
            write_slice_means(values, order, _NO_WEIGHTS if weights is None else weights, means)

    def _add_slopes(self, slopes: Floats, order: Ints, weights: Floats | None, gradient: Floats) -> None:
        if self._few:
            gradient[order] += row_slopes(slopes, _shares(order, weights))
        else:
            add_row_slopes(slopes, order, _NO_WEIGHTS if weights is None else weights, 1.0, gradient)

    def slice_terms(self, table: Floats, masses: Floats, comparisons: Comparisons) -> SampleTerms:
        """Compare samples represented by slice means, of shape (n_cells, n_slices), and total masses."""
        n = table.shape[1]
        relative = (masses / masses.sum())[:, None]
        if self.scale == "standardized":
            share = relative / n
            self.center = float(np.vdot(share, table.sum(axis=1)))
            self.unit = _unit(float(np.sqrt(np.vdot(share, ((table - self.center) ** 2).sum(axis=1)))))
        targets = [slice_means(t, np.ones(t.size), n) for t in comparisons.targets]
        values = (np.array([*table, *targets]) if targets else table) - self.center
        values /= self.unit
        active = comparisons.active
        terms = self._compare_slices(values, comparisons.pairs[active], comparisons.weights[active])
        slopes = np.asarray(terms.slopes)
        if self.scale == "standardized":
            total, moment = slopes.sum() / n, float(np.vdot(slopes, values)) / (n * UNIT_DEVIATION**2)
            # Convert a share within a cell to a share of all rows.
            slopes = slopes[: len(table)] - relative * (total + values[: len(table)] * moment)
        distances = np.zeros(len(comparisons.pairs))
        distances[active] = terms.distances
        return SampleTerms(terms.value, slopes[: len(table)] / self.unit, distances)

    def curvature(
        self, scores: Floats, comparisons: Comparisons, jacobian: Callable[[Ints, Floats, Ints, int], Floats]
    ) -> Floats:
        r"""Return B with B'B about the largest curvature of the penalty, as a function of the parameters.

        The distance of two slices that are g apart is at most :math:`g^2 / 2 |g_0| + |g_0| / 2`, which equals it at
        the present :math:`g_0`. ``jacobian`` takes rows, their weights and the number of the sum that each is part
        of, to the derivatives of these sums of scores with respect to the parameters.
        """
        values, targets = self._rescaled(scores, comparisons)
        weights, cells, n = comparisons.row_weights, comparisons.cells, _CURVATURE_SLICES
        sampled, shares, slices = [], [], []
        for number, cell in enumerate(cells):
            if not cell.size:
                continue
            rows = cell[ascending_order(values[cell])]
            if cell.size < n:  # each slice has one row
                rows, share = rows[np.arange(n) * cell.size // n], np.full(n, 1.0 / n)
            else:
                rows = rows[:: max(1, cell.size // _CURVATURE_ROWS)]
                share = _shares(rows, weights)
            at = np.minimum((np.cumsum(share) - 0.5 * share) * n, n - 1).astype(np.int64)
            sampled.append(rows)
            shares.append(share / np.maximum(np.bincount(at, share, n)[at], 1e-300))
            slices.append(at + n * number)
        rows, share, sums = np.concatenate(sampled), np.concatenate(shares), np.concatenate(slices)
        means = np.bincount(sums, share * values[rows], n * len(cells)).reshape(-1, n)
        table = np.array([*means, *(slice_means(t, np.ones(t.size), n) for t in targets)])
        inside = jacobian(rows, share, sums, n * len(cells)).reshape(len(cells), n, -1)
        moved = np.concatenate((inside, np.zeros((len(targets), *inside.shape[1:]))))
        if self.scale == "standardized":
            sizes = np.array([cell.size if weights is None else weights[cell].sum() for cell in cells])
            share = np.repeat(sizes / (n * sizes.sum()), n)
            flat = inside.reshape(share.size, -1)
            center, stretch = share @ flat, (share * means.ravel() / UNIT_DEVIATION**2) @ flat
            moved = (moved - center - table[:, :, None] * stretch) / self.unit
        pairs = comparisons.pairs[comparisons.active]
        gap = np.maximum(np.abs(table[pairs[:, 0]] - table[pairs[:, 1]]), HUBER_WIDTH)
        factor = comparisons.weights[comparisons.active][:, None] / gap / n
        differences = np.sqrt(factor)[:, :, None] * (moved[pairs[:, 0]] - moved[pairs[:, 1]])
        return np.asarray(differences.reshape(factor.size, -1))

    def _rescaled(self, s: Floats, comparisons: Comparisons) -> tuple[Floats, list[Floats]]:
        if self.scale == "score":
            return s, list(comparisons.targets)
        weights = comparisons.row_weights
        total = float(s.size if weights is None else weights.sum())
        self.center = float(s.sum() if weights is None else weights @ s) / total
        values = s - self.center
        squares = float(values @ values if weights is None else (weights * values) @ values)
        self.unit = _unit(float(np.sqrt(squares / total)))
        values /= self.unit
        return values, [(t - self.center) / self.unit for t in comparisons.targets]


def _unit(deviation: float) -> float:
    """Return the divisor of the scores; 1 where they are constant."""
    return deviation / UNIT_DEVIATION if deviation > 1e-12 else 1.0


def _shares(order: Ints, weights: Floats | None) -> Floats:
    if weights is None:
        return np.full(order.size, 1.0 / order.size)
    return np.asarray(weights[order] / weights[order].sum())


# The continuous penalty: regularized transport by its dual, with potentials in Fourier features.

#: Ridge of the coefficients: smooths the distance below about this value.
DUAL_RIDGE = 0.03

#: Gradient of a dual objective at which its optimum is called exact.
EXACT = 1e-9

_MAX_ITER = 60
_MOST_TABULATED = 250.0  # frequency: beyond, a table would need too much memory
_NEGLIGIBLE = 1e-4  # of the largest singular value: directions of the features that scores cannot tell apart


class ContinuousPenalty(TransportPenalty):
    """Regularized transport distances, by their dual in Fourier features.

    For each pair the dual objective (`transport.kernels.dual_newton`) is maximised by Newton's method from the
    last solution, and the gradient follows by the envelope theorem. ``ridge``, of the dual coefficients, makes the
    distance smooth where two samples agree. The regularized distance of a sample to itself is not zero; half of it is
    subtracted for both samples (the debiased divergence). With the L2 regularizer and opposite duals it is zero.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, Eq. 4 and 7.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.criteria.comparisons import Comparisons
    >>> from fairtransport.criteria.distance import ContinuousDistance
    >>> rng = np.random.default_rng(0)
    >>> pairs = Comparisons.of_cells(400, [np.arange(200), np.arange(200, 400)], [(0, 1)])
    >>> scores = np.concatenate((rng.beta(2, 5, 200), rng.beta(5, 2, 200)))
    >>> terms = ContinuousDistance().penalty("score").value_and_gradient(scores, pairs)
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
        tolerance: float = EXACT,
    ) -> None:
        super().__init__(n_slices=n_slices, scale=scale)
        self.problem, self.ridge, self.tolerance = problem, ridge, tolerance
        self.pairs: Ints = np.zeros((0, 2), np.int64)
        self.coefficients: Floats = np.zeros((0, 0))
        self._own: Floats = np.zeros((0, 0))
        self._basis: Floats | None = None
        self._features: FeatureDirections | TabulatedDirections

    @property
    def debiased(self) -> bool:
        """True if the distance of a sample to itself is not zero by construction."""
        return not (self.problem.opposite and self.problem.regularizer.name == "l2")

    @property
    def _own_ridge(self) -> float:
        # The free potentials of a sample and itself are equal, and the ridge applies to both.
        return self.ridge if self.problem.opposite else 2.0 * self.ridge

    def _compare_rows(
        self, points: Sequence[Floats], masses: Sequence[Floats], pairs: Ints, weights: Floats
    ) -> SampleTerms:
        size = max(sample.size for sample in points)  # shorter ones are filled up with points that have no mass
        table, shares = (np.zeros((len(points), size)) for _ in range(2))
        for row, share, sample, mass in zip(table, shares, points, masses, strict=True):
            row[: sample.size], share[: sample.size] = sample, mass
        terms = self._compare(table, shares, pairs, weights)
        return terms._replace(slopes=[row[: p.size] for row, p in zip(terms.slopes, points, strict=True)])

    def _compare_slices(self, table: Floats, pairs: Ints, weights: Floats) -> SampleTerms:
        return self._compare(table, np.full(table.shape, 1.0 / table.shape[1]), pairs, weights)

    def _compare(self, table: Floats, masses: Floats, pairs: Ints, weights: Floats) -> SampleTerms:
        features, tie = self.problem.features, OPPOSITE if self.problem.opposite else FREE
        if self._basis is None:
            self._basis = _directions(features(table)[masses > 0.0], max(_NEGLIGIBLE, 10.0 * self.tolerance))
            along = features.along(self._basis)
            is_exact = self.tolerance <= EXACT or along.frequency.max() > _MOST_TABULATED
            self._features = along if is_exact else TabulatedDirections(along)
        psi, rise = self._features.value_and_slope(table)
        width = self._basis.shape[1] * (1 if self.problem.opposite else 2)
        if not np.array_equal(pairs, self.pairs) or self.coefficients.shape[1] != width:
            self.pairs, self.coefficients = pairs.copy(), np.zeros((len(pairs), width))
            self._own = np.zeros((len(table), self._basis.shape[1]))
        slopes, distances = np.zeros_like(table), np.zeros(len(pairs))
        samples = Samples(table, masses, psi, rise)
        newton = Newton(
            self.problem.strength, self.problem.regularizer.code, tie, self.ridge, self.tolerance, _MAX_ITER
        )
        first, second = np.ascontiguousarray(pairs.T)
        solve = newton_pairs_plainly if self._few else newton_pairs
        solve(samples, Pairs(first, second, weights), newton, self.coefficients, distances, slopes)
        if self.debiased:
            index = np.arange(len(table))
            total = np.asarray(np.bincount(pairs.ravel(), np.repeat(weights, 2), len(table)), dtype=np.float64)
            alone = np.zeros(len(table))
            newton = newton._replace(tie=OPPOSITE if self.problem.opposite else SAME, ridge=self._own_ridge)
            solve(samples, Pairs(index, index, -0.5 * total), newton, self._own, alone, slopes)
            distances -= 0.5 * alone[pairs].sum(axis=1)
        return SampleTerms(float(weights @ distances), slopes, distances)

    def dual_coefficients(self) -> tuple[Floats, Floats]:
        """Return the coefficients of the two potentials f and h of each pair, in the Fourier features."""
        if self._basis is None:
            empty = np.zeros((0, len(self.problem.features)))
            return empty, empty
        if self.problem.opposite:
            f = self.coefficients @ self._basis.T
            return f, -f
        half = self.coefficients.shape[1] // 2
        return self.coefficients[:, :half] @ self._basis.T, self.coefficients[:, half:] @ self._basis.T


def _directions(psi: Floats, negligible: float) -> Floats:
    """Return an orthonormal basis of the coefficients that matter at these points.

    Fifty smooth cosines on an interval span about ten dimensions up to rounding. The ridge alone determines the others,
    so leaving them out changes nothing and saves most of the work.
    """
    _, sizes, directions = np.linalg.svd(psi, full_matrices=False)
    return np.ascontiguousarray(directions[sizes > negligible * sizes[0]].T)


# The discrete penalty: exact transport between samples of scores.

#: Distances below it count quadratically: a twentieth of a standard deviation on the standardized scale.
HUBER_WIDTH = 0.0125


class DiscretePenalty(TransportPenalty):
    r"""Wasserstein-1 distances by the optimal coupling, smoothed where scores are close.

    On the line the optimal coupling joins equal levels of the two quantile functions. With the Huber function
    :math:`\rho`, whose width 0 is the plain distance with a subgradient,

    .. math:: \int_0^1 \rho\big(F_a^{-1}(u) - F_b^{-1}(u)\big)\,du, \qquad
              \rho(g) = |g| - \epsilon/2 \text{ or } g^2 / 2\epsilon \text{ where } |g| < \epsilon .

    The derivative with respect to a score is the mean of :math:`\rho'` over its levels, times its mass (the paper's
    discrete optimal transport, Eq. 9, where :math:`\epsilon = 0`).

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.criteria.comparisons import Comparisons
    >>> from fairtransport.criteria.penalty import DiscretePenalty
    >>> pairs = Comparisons.of_cells(4, [np.array([0, 1]), np.array([2, 3])], [(0, 1)])
    >>> penalty = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")
    >>> terms = penalty.value_and_gradient([0.1, 0.3, 0.5, 0.9], pairs)
    >>> round(terms.value, 3), terms.gradient.tolist()
    (0.5, [-0.5, -0.5, 0.5, 0.5])
    """

    def __init__(
        self, *, huber_width: float = HUBER_WIDTH, n_slices: int | None = 200, scale: str = "standardized"
    ) -> None:
        super().__init__(n_slices=n_slices, scale=scale)
        self.huber_width = check_real(huber_width, name="huber_width")

    def _compare_rows(
        self, points: Sequence[Floats], masses: Sequence[Floats], pairs: Ints, weights: Floats
    ) -> SampleTerms:
        slopes = [np.zeros(sample.size) for sample in points]
        distances = np.zeros(len(pairs))
        for number, (a, b) in enumerate(pairs):
            one, other, length = coupling(masses[a], masses[b])
            value, force = self._huber(points[a][one] - points[b][other])
            distances[number] = value @ length
            moved = weights[number] * force * length
            # Rows of weight zero have no levels, and no slope.
            slopes[a] += np.bincount(one, moved, points[a].size) / np.maximum(masses[a], 1e-300)
            slopes[b] -= np.bincount(other, moved, points[b].size) / np.maximum(masses[b], 1e-300)
        return SampleTerms(float(weights @ distances), slopes, distances)

    def _compare_slices(self, table: Floats, pairs: Ints, weights: Floats) -> SampleTerms:
        value, force = self._huber(table[pairs[:, 0]] - table[pairs[:, 1]])
        distances = value.mean(axis=1)
        slopes = sums_over_pairs(pairs, (weights, -weights), len(table)) @ force
        return SampleTerms(float(weights @ distances), slopes, distances)

    def _huber(self, gap: Floats) -> tuple[Floats, Floats]:
        width, size = self.huber_width, np.abs(gap)
        if width == 0.0:
            return size, np.sign(gap)
        force = np.clip(gap / width, -1.0, 1.0)
        return force * (gap - 0.5 * width * force), force


def coupling(mass: Floats, other: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the optimal coupling of two ascending samples: indices into both, and the mass of each pair."""
    ends, others = np.cumsum(mass), np.cumsum(other)
    ends[-1] = others[-1] = 1.0
    levels = np.union1d(ends, others)
    length = np.diff(np.concatenate(([0.0], levels)))
    middle = levels - 0.5 * length
    return np.searchsorted(ends, middle), np.searchsorted(others, middle), length


# What chance adds to distances between small samples, so that a penalty need not be lowered by shrinking them.


@dataclass(frozen=True, eq=False)
class ChanceTerm:
    r"""A weighted sum of the spreads :math:`\int \sqrt{F (1 - F)}` of scores within strata.

    ``rows``, ``masses`` (which sum to 1, or None where they are equal) and ``factors`` are those of each stratum,
    ``shares`` those of each row for the standard deviation (None where they are equal), and ``noise`` is what chance
    adds to the penalty beyond the sum.
    """

    rows: tuple[Ints | slice, ...]
    masses: tuple[Floats | None, ...]
    factors: Floats
    shares: Floats | None
    scale: str
    noise: float = 0.0

    @classmethod
    def of(cls, comparisons: Comparisons, factors: Floats, scale: str) -> ChanceTerm:
        """Return the term of comparisons within strata, with a factor for each pair."""
        strata = np.array(comparisons.strata)
        by_stratum = np.bincount(
            strata[comparisons.pairs[:, 0]], factors * comparisons.weights, minlength=int(strata.max()) + 1
        )
        rows: list[Ints | slice] = []
        masses: list[Floats | None] = []
        kept, row_weights = [], comparisons.row_weights
        members_of = {
            number: np.unique(np.concatenate([comparisons.cells[cell] for cell in np.flatnonzero(strata == number)]))
            for number in np.flatnonzero(by_stratum > 0.0)
        }
        # Sums of floating-point numbers depend on their order, which must not depend on the names of strata.
        for number, members in sorted(members_of.items(), key=lambda item: (item[1].size, int(item[1][0]))):
            if members.size > 1:
                rows.append(members if members.size < comparisons.n_rows else slice(None))
                masses.append(None if row_weights is None else row_weights[members] / row_weights[members].sum())
                kept.append(by_stratum[number])
        shares = None if row_weights is None else row_weights / row_weights.sum()
        return cls(tuple(rows), tuple(masses), np.array(kept), shares, scale)

    def subtracted(self, value: float, gradient: Floats, scores: Floats) -> tuple[float, Any]:
        r"""Return a penalty and its gradient without what chance explains.

        With x the penalty less this sum and :math:`\epsilon` the remaining noise, the result is
        :math:`x - \epsilon / 2`, continued as :math:`x^2 / 2 \epsilon` below :math:`\epsilon` and 0 below 0, so that
        groups that differ less than by chance are left alone.
        """
        chance, chance_gradient = self.value_and_gradient(scores)
        net = value - chance
        slope = 1.0 if net >= self.noise else max(net, 0.0) / self.noise
        np.subtract(gradient, chance_gradient, out=chance_gradient)  # in place, as tables may be large
        chance_gradient *= slope
        return (net - 0.5 * self.noise if slope == 1.0 else 0.5 * slope * net), chance_gradient

    def value_and_gradient(self, scores: Floats) -> tuple[float, Floats]:
        """Return the sum, and its derivative with respect to each score."""
        value, gradient = 0.0, np.zeros(scores.size)
        for factor, rows, masses in zip(self.factors, self.rows, self.masses, strict=True):
            ordered = np.argsort(scores[rows], kind="stable")
            heights = np.arange(1.0, ordered.size) if masses is None else np.cumsum(masses[ordered])[:-1]
            heights /= ordered.size if masses is None else 1.0
            heights *= 1.0 - heights
            np.sqrt(np.maximum(heights, 0.0, out=heights), out=heights)
            heights *= factor
            ordered = ordered if isinstance(rows, slice) else rows[ordered]
            value += float(heights @ np.diff(scores[ordered]))
            gradient[ordered[1:]] += heights
            gradient[ordered[:-1]] -= heights
        if self.scale != "standardized":
            return value, gradient
        shares = 1.0 / scores.size if self.shares is None else self.shares
        centred = scores - float(np.sum(shares * scores))
        deviation = max(float(np.sqrt(np.sum(shares * centred**2))), 1e-300)
        unit = deviation / UNIT_DEVIATION
        centred *= shares
        centred *= value / deviation**2
        gradient -= centred
        gradient /= unit
        return value / unit, gradient


# The unit of a parity weight: the information of an initial model, in log-loss.


def information_of_features(labels: NDArray[Any], scores: Floats, weights: Floats | None = None) -> float:
    """Return the log-loss of the best constant minus that of the scores, at least 1 % of the former."""
    labels = labels.astype(np.float64)
    inside = np.clip(scores, 1e-12, 1.0 - 1e-12)
    losses = -np.where(labels > 0, np.log(inside), np.log1p(-inside))
    rate = float(np.average(labels, weights=weights))
    constant = -(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate))
    return float(max(constant - float(np.average(losses, weights=weights)), 0.01 * constant))


# Dual potentials of the regularized transport problem, as functions of the score.


@dataclass(frozen=True, eq=False)
class Duals:
    """The dual potentials of every group, as functions on [0, 1].

    Attributes
    ----------
    features : FourierFeatures
        The basis.
    group_weights, target_weights : ndarray of shape (n_groups, n_fourier_features)
        Coefficients of the dual potentials of the group and of what it is compared with, summed over the pairs that
        the group is in.
    groups : Groups
        Names the rows of the two arrays.
    center, unit : float
        Scores enter the features as ``(score - center) / unit``.
    """

    features: FourierFeatures
    group_weights: Floats
    target_weights: Floats
    groups: Groups
    center: float = 0.0
    unit: float = 1.0

    def __call__(self, points: ArrayLike) -> Floats:
        """Return the dual potential of every group at these scores: shape (n_groups, n_points)."""
        return np.asarray(self._psi(points) @ self.group_weights.T).T

    def of_group(self, label: Any, points: ArrayLike) -> Floats:
        """Return the dual potential of a group's scores: large where the group has too much mass."""
        return self._psi(points) @ self.group_weights[self.groups.index_of(label)]

    def of_target(self, label: Any, points: ArrayLike) -> Floats:
        """Return the dual potential of what the group is compared with: the target, or the other groups."""
        return self._psi(points) @ self.target_weights[self.groups.index_of(label)]

    def _psi(self, points: ArrayLike) -> Any:
        return self.features((np.asarray(points, dtype=np.float64) - self.center) / self.unit)


def duals_by_group(penalty: ContinuousPenalty, comparisons: Comparisons, groups: Groups) -> Duals:
    """Return the dual potentials that a penalty found last, summed over the pairs of each group."""
    n_groups, width = len(groups), len(penalty.problem.features)
    group_weights, target_weights = np.zeros((n_groups, width)), np.zeros((n_groups, width))
    names = comparisons.names or tuple(range(n_groups))
    for (a, b), first, second in zip(penalty.pairs, *penalty.dual_coefficients(), strict=True):
        for cell, coefficients, others in ((a, first, second), (b, second, first)):
            group = names[cell] if cell < len(names) else None
            if group is not None:
                group_weights[group] += coefficients
                target_weights[group] += others
    return Duals(penalty.problem.features, group_weights, target_weights, groups, penalty.center, penalty.unit)
