"""Sketches of groups: histograms and moments that follow a change of theta without any rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.groups import NEW_GROUP_ROWS
from fairtransport.linear._constants import SHORT_HALF_LIFE, SIGNIFICANT
from fairtransport.training.responses import Loss

#: Number of quantiles that represent a group.
POINTS = 64

_LEVELS = (np.arange(POINTS) + 0.5) / POINTS
_NODES = np.linspace(-16.0, 16.0, 513)  # of the histograms of predictors
_SPACING = _NODES[1] - _NODES[0]
_EDGES = np.append(_NODES, _NODES[-1] + _SPACING) - 0.5 * _SPACING
_MAX_OFFSET = 4.0  # that a histogram may have moved before it is binned again
_MAX_STRETCH = 1.5  # factor by which it may have been stretched
_MIN_VARIANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Sketches:
    """Histograms of linear predictors and moments of features, one of each for every group; old rows count less."""

    masses: Floats
    recent: Floats
    offsets: Floats
    stretches: Floats
    weights: Floats
    centers: Floats
    variances: Floats
    means: Floats
    slants: Floats

    def __len__(self) -> int:
        return len(self.masses)

    @classmethod
    def empty(cls, n_groups: int, n_features: int) -> Sketches:
        """Return sketches of groups without rows."""
        each, wide = np.zeros(n_groups), np.zeros((n_groups, n_features))
        masses = np.zeros((n_groups, len(_NODES)))
        return cls(masses, masses, each, np.ones(n_groups), each, each, each, wide, wide)

    @property
    def memory(self) -> float:
        """Effective number of rows of all groups."""
        return float(self.weights.sum())

    def seen(
        self, X: Any, predictors: Floats, cells: Sequence[Ints], mass: Floats, half_life: float, *, loss: Loss
    ) -> Sketches:
        """Return the sketches after a batch; the memory of a group decays only with rows of that group."""
        masses, recent, weights, centres, variances = (
            part.copy() for part in (self.masses, self.recent, self.weights, self.centers, self.variances)
        )
        means, slants = self.means.copy(), self.slants.copy()
        for a, rows in enumerate(cells):
            new = float(mass[rows].sum())
            if new <= 0.0:
                continue
            share_of_rows, level, part = mass[rows] / new, predictors[rows], X[rows]
            counted = new * _bin((level - self.offsets[a]) / self.stretches[a], share_of_rows)
            masses[a] = 0.5 ** (new / half_life) * masses[a] + counted
            recent[a] = 0.5 ** (new / min(half_life, SHORT_HALF_LIFE)) * recent[a] + counted
            if _differ_significantly(masses[a], recent[a], loss.scores(self.offsets[a] + self.stretches[a] * _NODES)):
                masses[a], weights[a] = recent[a], min(weights[a], recent[a].sum())
            before = 0.5 ** (new / half_life) * weights[a]
            weights[a] = before + new
            share = new / weights[a]
            mean, centre = np.asarray(part.T @ share_of_rows, dtype=np.float64), float(level @ share_of_rows)
            around = share_of_rows * (level - centre)
            gap, drift = mean - means[a], centre - centres[a]
            slant = np.asarray(part.T @ around, dtype=np.float64)
            slants[a] = (1.0 - share) * slants[a] + share * slant + share * (1.0 - share) * drift * gap
            spread = float(around @ (level - centre))
            variances[a] = (1.0 - share) * variances[a] + share * spread + share * (1.0 - share) * drift**2
            means[a] = means[a] + share * gap
            centres[a] += share * drift
        return replace(
            self,
            masses=masses,
            recent=recent,
            weights=weights,
            centers=centres,
            variances=variances,
            means=means,
            slants=slants,
        )

    def shortened(self, half_life: float) -> Sketches:
        """Return sketches in which no group counts for more rows than an infinite stream would leave."""
        rows = np.maximum(self.masses.sum(axis=1, keepdims=True), 1.0)
        limits = np.array([half_life, min(half_life, SHORT_HALF_LIFE)]) / np.log(2.0)
        masses, recent = (self.masses * np.minimum(1.0, limit / rows) for limit in limits)
        return replace(self, masses=masses, recent=recent, weights=np.minimum(self.weights, limits[0]))

    def widened(self, n_groups: int, like: Floats) -> Sketches:
        """Return sketches of more groups, the new ones as in `filled`."""
        n_new = n_groups - len(self)

        def extended(array: Floats, value: float) -> Floats:
            return np.concatenate((array, np.full((n_new, *array.shape[1:]), value)))

        parts = {name: extended(array, float(name == "stretches")) for name, array in vars(self).items()}
        return Sketches(**parts).filled(like)

    def filled(self, like: Floats) -> Sketches:
        """Return sketches in which groups without rows have a prior: a few rows with these predictors, mean moments."""
        unseen, known = self.weights <= 0.0, self.weights > 0.0
        if not unseen.any():
            return self
        counted = NEW_GROUP_ROWS * _bin(like, np.full(len(like), 1.0 / len(like)))
        prior = {
            "masses": counted,
            "recent": counted,
            "weights": NEW_GROUP_ROWS,
            "centers": like.mean(),
            "variances": like.var(),
            "means": self.means[known].mean(axis=0),
            "slants": self.slants[known].mean(axis=0),
        }
        parts = dict(vars(self))
        for name, value in prior.items():
            parts[name] = parts[name].copy()
            parts[name][unseen] = value
        return Sketches(**parts)

    def split(self, n_parts: int) -> list[Sketches]:
        """Return equal parts, in order."""
        parts = {name: np.split(array, n_parts) for name, array in vars(self).items()}
        return [Sketches(**{name: arrays[k] for name, arrays in parts.items()}) for k in range(n_parts)]

    @classmethod
    def joined(cls, parts: Sequence[Sketches]) -> Sketches:
        """Return the sketches of all parts."""
        return cls(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})

    def points(self) -> Floats:
        """Return the quantiles of each group's predictors under the current model: shape (n_groups, 64)."""
        quantiles = np.array([_quantiles(masses) for masses in self.masses])
        return self.offsets[:, None] + self.stretches[:, None] * quantiles

    def mean_gradients(self, predictors: Floats, slopes: Floats) -> Floats:
        """Return the mean of slope times features (and a one) for slopes at these predictors, for each group."""
        flat = slopes.mean(axis=1)
        tilted = (slopes * (predictors - self.centers[:, None])).mean(axis=1)
        return np.column_stack((flat[:, None] * self.means + tilted[:, None] * self._regression(), flat))

    def mean_moves(self, step: Floats) -> Floats:
        """Return how far a step of theta moves the mean predictor of each group."""
        return np.asarray((self.means * step[:, :-1]).sum(axis=1) + step[:, -1])

    def _regression(self) -> Floats:
        return self.slants / (self.variances[:, None] + _MIN_VARIANCE)

    def moved(self, step: Floats) -> Sketches:
        """Return the sketches after a step of theta."""
        shift = self.mean_moves(step)
        grow = np.clip(1.0 + (self._regression() * step[:, :-1]).sum(axis=1), 0.5, 2.0)
        offsets = grow * (self.offsets - self.centers) + self.centers + shift
        stretches, masses, recent = grow * self.stretches, self.masses, self.recent
        far = (np.abs(offsets) > _MAX_OFFSET) | (np.abs(np.log(stretches)) > np.log(_MAX_STRETCH))
        if far.any():
            masses, recent = masses.copy(), recent.copy()
            for a in np.flatnonzero(far):
                nodes = offsets[a] + stretches[a] * _NODES
                masses[a], recent[a] = _bin(nodes, masses[a]), _bin(nodes, recent[a])
                offsets[a], stretches[a] = 0.0, 1.0
        return replace(
            self,
            masses=masses,
            recent=recent,
            offsets=offsets,
            stretches=stretches,
            centers=self.centers + shift,
            variances=grow**2 * self.variances,
            slants=grow[:, None] * self.slants,
        )


def _bin(predictors: Floats, mass: Floats) -> Floats:
    """Divide each predictor's mass between the two nodes next to it, which preserves the mean."""
    position = np.clip((predictors - _NODES[0]) / _SPACING, 0.0, len(_NODES) - 1.0)
    cell = np.minimum(position.astype(np.int64), len(_NODES) - 2)
    above, size = mass * (position - cell), len(_NODES)
    return np.asarray(np.bincount(cell, mass - above, size) + np.bincount(cell + 1, above, size))


def _differ_significantly(long: Floats, short: Floats, scores: Floats) -> bool:
    """Return whether two histograms at these scores are farther apart (in W1) than samples of one distribution."""
    sizes = long.sum(), short.sum()
    one, other = (np.cumsum(masses)[:-1] / size for masses, size in zip((long, short), sizes, strict=True))
    widths = np.diff(scores)
    chance = 0.8 * float(np.sqrt(one * np.maximum(1.0 - one, 0.0)) @ widths) * np.sqrt(1.0 / sizes[0] + 1.0 / sizes[1])
    return bool(np.abs(one - other) @ widths > SIGNIFICANT * chance)


def _quantiles(masses: Floats) -> Floats:
    """Return quantiles of masses at the nodes, each spread evenly around its node."""
    levels = np.concatenate(([0.0], np.cumsum(masses)))
    return np.interp(_LEVELS * levels[-1], levels, _EDGES)
