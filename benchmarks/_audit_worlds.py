"""Worlds whose true disparities are known, to check the intervals, p-values and verdicts of audits against.

A world has groups, each with a quantile function of its scores, a number of rows, and a way in which rows are weighted.
Weights that depend on the score undo a selection that depends on it, so the weighted rows have the true distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.histograms import count_scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Quantiles = Callable[[NDArray[np.float64]], NDArray[np.float64]]

LEVELS = (np.arange(20_000) + 0.5) / 20_000
POINTS = (np.arange(2_000) + 0.5) / 2_000
THRESHOLD = 0.5


@dataclass(frozen=True)
class World:
    """Quantile functions of the groups' scores, rows of each group before selection, and how rows are weighted.

    Weights are ``"none"``, ``"independent"`` of the score, or ``"dependent"`` on it, ``"steep"`` if much.
    """

    name: str
    quantiles: tuple[Quantiles, ...]
    sizes: tuple[int, ...]
    weights: str = "none"

    @property
    def is_null(self):
        """Whether all groups have the same distribution."""
        return all(np.array_equal(q(LEVELS), self.quantiles[0](LEVELS)) for q in self.quantiles)

    def draw(self, rng):
        """Draw rows: scores, groups and weights (None where all are 1)."""
        parts = [self._draw_group(rng, q, n) for q, n in zip(self.quantiles, self.sizes, strict=True)]
        scores, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
        groups = np.repeat(np.arange(len(parts)), [part[0].size for part in parts])
        return scores, groups, None if self.weights == "none" else weights

    def _draw_group(self, rng, quantiles, size):
        if self.weights == "none":
            return quantiles(rng.random(size)), np.ones(size)
        if self.weights == "independent":
            return quantiles(rng.random(size)), rng.lognormal(0.0, 0.8, size)
        # High scores are kept rarely and count for more; "size" is the number of rows that are kept.
        steepness = {"dependent": 1.4, "steep": 4.2}[self.weights]
        scores = np.empty(0)
        while scores.size < size:
            drawn = quantiles(rng.random(8 * size))
            kept = drawn[rng.random(drawn.size) < np.exp(-steepness * drawn)]
            scores = np.append(scores, kept)
        return scores[:size], np.exp(steepness * scores[:size])

    def count(self, rng, n_bins=2048):
        """Draw rows and count them."""
        scores, groups, weights = self.draw(rng)
        return count_scores(scores, sensitive_features=groups, sample_weight=weights, n_bins=n_bins)

    def truth(self, judged=None):
        """Return the true disparities, distances, means and selection rates of the groups that are judged."""
        indices = range(len(self.sizes)) if judged is None else judged
        samples = [self.quantiles[i](LEVELS) for i in indices]
        sizes = np.array([self.sizes[i] for i in indices], dtype=float)
        curves = np.array([np.searchsorted(sample, POINTS, side="right") / LEVELS.size for sample in samples])
        distances = np.abs(curves[:, None] - curves[None]).mean(axis=-1)
        return {
            "wasserstein_disparity": float(np.abs(curves - np.median(curves, axis=0)).mean(axis=1).sum()),
            "strong_demographic_disparity": float(np.abs(curves - sizes @ curves / sizes.sum()).mean(axis=1).sum()),
            "strong_pairwise_disparity": float(distances[np.triu_indices(len(samples), 1)].sum()),
            "distances": distances,
            "means": np.array([sample.mean() for sample in samples]),
            "rates": np.array([(sample > THRESHOLD).mean() for sample in samples]),
        }


# ------------------------------------------------------------------------------------------------ distributions


def kumaraswamy(a, b):
    """Scores with the distribution function 1 - (1 - s**a)**b."""
    return lambda u: (1 - (1 - u) ** (1 / b)) ** (1 / a)


BASE = kumaraswamy(2.0, 3.0)
WIDE = kumaraswamy(0.8, 1.0)
SKEWED = kumaraswamy(0.25, 3.0)  # most scores near 0, a few near 1


def shifted(base, by):
    return lambda u: np.clip(base(u) + by, 0, 1)


def scaled(base, factor, centre=0.5):
    return lambda u: np.clip(centre + factor * (base(u) - centre), 0, 1)


def in_the_tail(base, share, by):
    """Only the highest scores are moved up."""
    return lambda u: np.clip(base(u) + by * (u > 1 - share), 0, 1)


def with_atom(base, share, at=0.0):
    """A share of the scores lies at one end."""
    if at == 0.0:
        return lambda u: np.where(u < share, 0.0, base(np.clip((u - share) / (1 - share), 0, 1)))
    return lambda u: np.where(u >= 1 - share, 1.0, base(np.clip(u / (1 - share), 0, 1)))


def rounded(base, n_values):
    return lambda u: np.round(base(u) * (n_values - 1)) / (n_values - 1)


def two_values(share):
    return lambda u: (u >= 1 - share) * 1.0


# ------------------------------------------------------------------------------------------------------- worlds


def worlds():
    """Return the worlds: half of them without a difference, a third with weights, tiny groups and atoms among them."""
    six, twelve = (400, 300, 200, 100, 60, 35), (1500, 800, 400, 300, 200, 150, 100, 80, 60, 45, 35, 12)
    moved = [shifted(BASE, by) for by in (0.0, 0.03, 0.06, -0.03, 0.1, 0.0)]
    spread = [shifted(BASE, by) for by in np.linspace(-0.1, 0.1, 12)]
    null = [
        ([BASE] * 2, (30, 30), "null, 30 + 30"),
        ([BASE] * 2, (30, 400), "null, 30 + 400"),
        ([BASE] * 2, (1000, 1000), "null, 1,000 + 1,000"),
        ([BASE] * 2, (5000, 5000), "null, 5,000 + 5,000"),
        ([BASE] * 6, six, "null, six groups"),
        ([BASE] * 12, twelve, "null, twelve groups, one tiny"),
        ([SKEWED] * 2, (150, 250), "null, heavy skew"),
        ([with_atom(BASE, 0.4)] * 2, (150, 250), "null, 40% at 0"),
        ([with_atom(BASE, 0.4, 1.0)] * 3, (60, 150, 250), "null, 40% at 1"),
        ([with_atom(BASE, 0.9)] * 2, (150, 250), "null, 90% at 0"),
        ([rounded(BASE, 5)] * 3, (80, 150, 250), "null, five values"),
        ([two_values(0.3)] * 2, (150, 250), "null, two values"),
        ([BASE] * 2, (150, 250), "null, weights independent", "independent"),
        ([BASE] * 2, (150, 250), "null, weights by score", "dependent"),
        ([WIDE] * 2, (154, 154), "null, weights steep in score", "steep"),
        ([WIDE] * 4, (154, 154, 300, 600), "null, four groups, weights steep", "steep"),
        ([with_atom(BASE, 0.4)] * 3, (150, 250, 400), "null, 40% at 0, weights by score", "dependent"),
        ([BASE] * 6, tuple(2 * n for n in six), "null, six groups, weights independent", "independent"),
    ]
    real = [
        ([BASE, shifted(BASE, 0.1)], (30, 30), "shift .1, 30 + 30"),
        ([BASE, shifted(BASE, 0.1)], (30, 400), "shift .1, 30 + 400"),
        ([BASE, shifted(BASE, 0.05)], (1000, 1000), "shift .05, 1,000 + 1,000"),
        ([BASE, shifted(BASE, 0.01)], (5000, 5000), "shift .01, 5,000 + 5,000"),
        ([BASE, scaled(BASE, 0.7)], (200, 300), "scale .7, 200 + 300"),
        ([BASE, in_the_tail(BASE, 0.2, 0.2)], (300, 400), "tail, 300 + 400"),
        ([BASE, in_the_tail(BASE, 0.05, 0.3)], (1000, 2000), "tail of 5%, 1,000 + 2,000"),
        (moved, six, "six groups shifted"),
        (spread, twelve, "twelve groups shifted, one tiny"),
        ([BASE] * 5 + [shifted(BASE, 0.15)], six, "one of six groups shifted"),
        ([SKEWED, kumaraswamy(0.3, 2.0)], (150, 250), "heavy skew, shapes differ"),
        ([with_atom(BASE, 0.4), with_atom(BASE, 0.5)], (150, 250), "40% and 50% at 0"),
        ([with_atom(BASE, 0.4), with_atom(shifted(BASE, 0.1), 0.4)], (150, 250), "40% at 0, the rest shifted"),
        ([with_atom(BASE, 0.3, 1.0), with_atom(BASE, 0.4, 1.0), BASE], (100, 150, 250), "atoms at 1 differ"),
        ([rounded(BASE, 5), rounded(shifted(BASE, 0.08), 5)], (150, 250), "five values, shifted"),
        ([two_values(0.3), two_values(0.45)], (150, 250), "two values, 30% and 45%"),
        ([BASE, shifted(BASE, 0.08)], (150, 250), "shift .08, weights independent", "independent"),
        ([BASE, shifted(BASE, 0.08)], (150, 250), "shift .08, weights by score", "dependent"),
        ([WIDE, kumaraswamy(1.2, 1.0)], (154, 308), "shapes differ, weights steep", "steep"),
        ([with_atom(BASE, 0.4), with_atom(BASE, 0.5)], (300, 400), "atoms differ, weights by score", "dependent"),
        (moved, tuple(2 * n for n in six), "six groups shifted, weights independent", "independent"),
        ([BASE, scaled(BASE, 0.8), shifted(BASE, 0.05)], (3000, 3000, 4000), "scale and shift, 10,000"),
    ]
    return [World(name, tuple(bases), sizes, *weights) for bases, sizes, name, *weights in (*null, *real)]
