"""Dual potentials of blind repair: a function of the score for each cell, and the map that they define."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from fairtransport._arrays import Floats, Ints

#: What a repaired score costs: squared or logarithmic loss, or the error of the decision at one half.
LOSSES = ("squared", "log", "zero_one")

N_NODES = 65
_TEMPERATURE = {"squared": 1e-3, "log": 1e-3, "zero_one": 1e-2}  # relative to the loss of a constant
_SMOOTHING = 0.02  # slopes below it cost quadratically, relative to their unit
_RIDGE = 1e-6
_CHUNK = 1024  # rows at a time: their costs stay in the processor's cache
_TOL, _MANY_ROWS = (1e-10, 3e-8), 10_000  # relative change of the dual that ends it; with fewer rows each counts more
_NEGLIGIBLE = -36.0  # logarithm of a share that rounding would lose beside the largest
_EDGE = 1e-3  # nearest a node comes to 0 or 1 where the loss is logarithmic


@dataclass(frozen=True, eq=False)
class Potentials:
    r"""Piecewise linear potentials on a grid of scores, one for each cell.

    Notes
    -----
    With the contrasts :math:`d_c(x)` of the cells, a prediction is moved to

    .. math:: \mathrm{argmin}_s \ell(\eta(x), s) + \sum_c d_c(x) \phi_c(s),

    exactly: between two nodes the potentials are linear, and the minimiser has a closed form.
    """

    nodes: Floats
    slopes: Floats
    loss: str

    @cached_property
    def values(self) -> Floats:
        """Potentials at the nodes, 0 at the first."""
        return _integrate(self.slopes, np.diff(self.nodes))

    def move(self, predictions: Floats, contrasts: Floats) -> Floats:
        """Return the repaired predictions."""
        moved = np.empty(predictions.size)
        left, right = self.nodes[:-1], self.nodes[1:]
        for part in _chunks(predictions.size):
            score = np.clip(predictions[part], self.nodes[0], self.nodes[-1])[:, None]
            slope = contrasts[part] @ self.slopes
            best = np.clip(_minimizer(score, slope, self.loss), left, right)
            total = _loss(score, best, self.loss) + contrasts[part] @ self.values[:, :-1] + slope * (best - left)
            chosen = total.argmin(axis=1)[:, None]
            moved[part] = np.take_along_axis(best, chosen, axis=1)[:, 0] + predictions[part] - score[:, 0]
        return moved


def score_nodes(
    predictions: Floats, weights: Floats | None = None, *, loss: str = "squared", low: float, high: float
) -> Floats:
    """Return the nodes of potentials: half of them spread evenly over the range, half where predictions are."""
    if loss == "zero_one":
        return np.array([low, high])
    if loss == "log":
        low, high = low + _EDGE, high - _EDGE
    # A histogram in between, so that no node is the score of a person.
    counts, edges = np.histogram(np.clip(predictions, low, high), bins=512, range=(low, high), weights=weights)
    shares = 0.5 * counts / counts.sum() + 0.5 / counts.size
    n_nodes = int(np.clip(counts.sum() // 10, 9, N_NODES))
    return np.interp(np.linspace(0.0, 1.0, n_nodes), np.append(0.0, np.cumsum(shares) / shares.sum()), edges)


def solve_potentials(
    predictions: Floats,
    contrasts: Floats,
    nodes: Floats,
    *,
    slack: Floats,
    centering: Floats,
    loss: str = "squared",
    weights: Floats | None = None,
    start: Potentials | None = None,
    max_iter: int = 300,
    tol: float | None = None,
) -> Potentials:
    r"""Return the potentials at which the loss is least and cells are alike up to a slack.

    Notes
    -----
    The dual problem is

    .. math:: \max_\phi \; E \min_s \big[\ell(\eta(x), s) + \sum_c d_c(x) \phi_c(s)\big]
              - \sum_c \epsilon_c \int |\phi_c'(s)| ds

    over potentials whose sum over the cells that are compared is 0, and concave. Its optimum is the least expected loss
    subject to :math:`|E[d_c(x) 1(f(x) > s)] - q(s)| \le \epsilon_c` for all cells and scores s, with q free: two cells
    differ by the sum of their slacks at most. The minimum and the absolute value are smoothed, and L-BFGS maximises
    over the slopes.
    """
    masses = np.full(predictions.size, 1.0 / predictions.size) if weights is None else weights / weights.sum()
    score = np.clip(predictions, nodes[0], nodes[-1])
    has_many_rows = predictions.size > _MANY_ROWS
    if has_many_rows:
        score, contrasts, masses = _merge_rows(score, contrasts, masses)
    kind: Any = np.float32 if has_many_rows else np.float64  # of exponents, whose rounding many rows average out
    widths = np.diff(nodes)
    mean = float(masses @ score)
    spread = max(float(np.sqrt(masses @ (score - mean) ** 2)), 1e-12)
    unit = spread**2 if loss != "log" else max(float(masses @ _loss(score, np.full(1, mean), loss)), 1e-12)
    temperature = _TEMPERATURE[loss]
    # A loss is linear in the prediction, but for a term that no score changes; squares are those of differences to the
    # mean, so that units of y do not matter.
    if loss == "log":
        center, constant, (steepness, fixed) = 0.0, 0.0, _log_loss(nodes)
    else:
        center, constant, steepness, fixed = mean, spread**2, -2.0 * (nodes - mean), (nodes - mean) ** 2
    costs = np.vstack((steepness, fixed)) / unit
    if nodes.size > 2:  # nodes count by the range that they stand for
        stands_for = 0.5 * (np.append(widths, 0.0) + np.append(0.0, widths))
        costs[1] -= temperature * np.log(stands_for / stands_for.mean())
    lengths = widths / spread
    shape = (contrasts.shape[1], widths.size)
    step = 1.0 / np.sqrt(lengths.mean())  # of the unknowns, so that their curvature is about 1
    chunks = [
        (np.vstack((of_cells.T, level, np.ones(level.size))).astype(kind), of_cells.astype(kind), masses[part])
        for part in _chunks(score.size)
        for of_cells, level in ((contrasts[part], score[part] - center),)
    ]

    def negative_dual(unknowns: Floats) -> tuple[float, Floats]:
        slopes = centering @ (step * unknowns.reshape(shape))
        table = (np.vstack((_integrate(slopes, lengths), costs)).T / -temperature).astype(kind)
        value, gradient = constant / unit, np.zeros((shape[0], nodes.size))
        for columns, of_cells, mass in chunks:
            total = table @ columns
            most = total.max(axis=0)
            total -= most
            near = np.flatnonzero(total > _NEGLIGIBLE)
            shares = np.zeros(total.size, dtype=kind)
            shares[near] = np.exp(total.ravel()[near])
            total = shares.reshape(total.shape)
            sums = total.sum(axis=0)
            value -= temperature * float(mass @ (most + np.log(sums)))
            gradient += (total @ (of_cells * (mass / sums).astype(kind)[:, None])).T
        above = np.cumsum(gradient[:, ::-1], axis=1)[:, -2::-1]  # differences between shares above each node
        rounded = np.sqrt(slopes**2 + _SMOOTHING**2)
        left = slack[:, None] * lengths
        value -= float((left * (rounded - _SMOOTHING)).sum() + 0.5 * _RIDGE * (lengths * slopes**2).sum())
        uphill = lengths * above - left * slopes / rounded - _RIDGE * lengths * slopes
        return -value, -step * (centering @ uphill).ravel()

    first = np.zeros(shape) if start is None else start.slopes * (spread / unit)
    found = minimize(
        negative_dual, first.ravel() / step, jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": 20, "ftol": tol or _TOL[has_many_rows], "gtol": 1e-6},
    )  # fmt: skip
    return Potentials(nodes, centering @ (step * found.x.reshape(shape)) * (unit / spread), loss)


def _merge_rows(score: Floats, contrasts: Floats, masses: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the means of rows that are nearly equal, where these are most: of groups that features tell."""
    table = np.column_stack((score, contrasts))
    steps = np.append(np.ptp(score) / 1024.0, 0.02 * np.sqrt(masses @ contrasts**2))
    # Rounded rows are equal where their sums with random coefficients are.
    keys = np.round(table / np.maximum(steps, 1e-300)) @ np.random.default_rng(0).random(table.shape[1])
    _, rows = np.unique(keys, return_inverse=True)
    mass = np.bincount(rows, masses).astype(np.float64)
    if mass.size > 0.5 * score.size:
        return score, contrasts, masses
    means = np.column_stack([np.bincount(rows, masses * column) / mass for column in table.T])
    return means[:, 0], means[:, 1:], mass


def _integrate(slopes: Floats, widths: Floats) -> Floats:
    return np.hstack((np.zeros((len(slopes), 1)), np.cumsum(slopes * widths, axis=1)))


def _loss(prediction: Floats, score: Floats, loss: str) -> Floats:
    """Return the expected loss of a score where the label has this expectation, up to a constant."""
    if loss != "log":
        return (prediction - score) ** 2
    steepness, fixed = _log_loss(score)
    return prediction * steepness + fixed


def _log_loss(score: Floats) -> tuple[Floats, Floats]:
    """Return the logarithmic loss of a score as a linear function of the prediction."""
    return np.log1p(-score) - np.log(score), -np.log1p(-score)


def _minimizer(prediction: Floats, slope: Floats, loss: str) -> Floats:
    """Return the score at which the loss plus a linear function is least."""
    if loss != "log":
        return prediction - 0.5 * slope
    # The root of slope * s^2 - (1 + slope) * s + prediction = 0 between 0 and 1, without cancellation.
    middle = 1.0 + slope
    root = np.sqrt(np.maximum(middle**2 - 4.0 * slope * prediction, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(middle >= 0.0, 2.0 * prediction / (middle + root), (middle - root) / (2.0 * slope))


def _chunks(size: int) -> Iterator[slice]:
    return (slice(first, first + _CHUNK) for first in range(0, size, _CHUNK))


# Cells of blind repair: what each row adds to the difference between a group and everyone, by its probabilities.

_MEAN_BRIDGE = 0.313  # mean over all levels of the absolute value of a Brownian bridge
_SHARE_OF_CHANCE = 0.5  # of the mean difference that chance shows


@dataclass(frozen=True, eq=False)
class Cells:
    r"""Groups that are compared with everyone: all people, those with a label, those of a stratum, or both.

    Notes
    -----
    A function f has the same distribution in a cell and among everyone with its label if and only if for all s

    .. math:: E\Big[\Big(\frac{P(a, y \mid x)}{P(a, y)} - \frac{P(y \mid x)}{P(y)}\Big) 1(f(x) > s)\Big] = 0,

    and the bracket is the cell's contrast. A cell of all
    strata has the contrast of each row's own stratum, so that it compares people of the same stratum, as well: groups
    that differ in their strata may differ in their scores.
    """

    groups: Ints
    labels: Ints
    strata: Ints
    shares: Floats
    totals: Floats
    priors: Floats
    stratum_shares: Floats

    def __len__(self) -> int:
        return self.groups.size

    @property
    def centering(self) -> Floats:
        """The matrix that subtracts from each cell the mean of the cells that are compared with it."""
        compared = (self.labels[:, None] == self.labels) & (self.strata[:, None] == self.strata)
        return np.eye(len(self)) - compared / compared.sum(axis=1)

    def contrasts(self, probabilities: Floats, codes: Ints | None = None) -> Floats:
        """Return the contrasts of rows."""
        within = probabilities if codes is None else _apply_priors(probabilities, self.priors, codes)
        table = within[:, self.labels, self.groups] / self.shares
        table -= within.sum(axis=2)[:, self.labels] / self.totals
        if codes is not None:
            table *= self.strata == codes[:, None]
            for cell in np.flatnonzero(self.strata < 0):
                label, group = self.labels[cell], self.groups[cell]
                share = self.stratum_shares[codes, label, group]
                total = self.stratum_shares[codes, label].sum(axis=1)
                compared = (share > 0.0) & (share < total)
                ratio = within[:, label, group] / np.where(compared, share, 1.0)
                table[:, cell] = compared * (ratio - within[:, label].sum(axis=1) / np.where(compared, total, 1.0))
        return table


def make_cells(
    probabilities: Floats,
    *,
    groups: Ints,
    labels: Ints | None,
    compared: tuple[int, ...],
    codes: Ints | None = None,
    n_strata: int = 0,
    weights: Floats | None = None,
) -> tuple[Cells, Floats]:
    """Return the cells of a criterion, and the difference that chance leaves to each."""
    masses = np.ones(groups.size) if weights is None else weights
    n_groups = probabilities.shape[2]
    given = np.zeros(groups.size, dtype=np.int64) if labels is None else labels
    priors = np.ones((max(n_strata, 1), *probabilities.shape[1:]))
    if codes is not None:
        priors = _stratum_priors(
            probabilities, groups=groups, labels=given, codes=codes, n_strata=n_strata, masses=masses
        )
        probabilities = _apply_priors(probabilities, priors, codes)
    found: list[tuple[int, int, int, float, float, float]] = []
    stratum_shares = np.zeros_like(priors)
    for stratum in range(-1, n_strata):
        inside = np.ones(groups.size, dtype=bool) if stratum < 0 or codes is None else codes == stratum
        part = masses * inside
        share_of_stratum = part.sum() / masses.sum()
        for label in compared:
            sizes = np.bincount(groups, weights=part * (given == label), minlength=n_groups)
            present = np.flatnonzero(sizes > 0)
            if present.size < 2:
                continue
            mean = part @ probabilities[:, label] / part.sum()
            if stratum >= 0 or codes is None:
                stratum_shares[max(stratum, 0), label, present] = mean[present]
            for group in present:
                others = sizes.sum() - sizes[group]
                noise = (
                    _SHARE_OF_CHANCE * _MEAN_BRIDGE * np.sqrt(1.0 / sizes[group] + 1.0 / others) * others / sizes.sum()
                )
                found.append((int(group), label, stratum, mean[group], mean.sum(), noise * share_of_stratum))
    if not found:
        raise ValueError("There is nothing to compare: no stratum, or no label, has rows of two groups.")
    columns = list(zip(*found, strict=True))
    indices = [np.array(column, dtype=np.int64) for column in columns[:3]]
    shares, totals, chance = (np.maximum(np.array(column), 1e-12) for column in columns[3:])
    return Cells(indices[0], indices[1], indices[2], shares, totals, priors, stratum_shares), chance


def _stratum_priors(
    probabilities: Floats, *, groups: Ints, labels: Ints, codes: Ints, n_strata: int, masses: Floats
) -> Floats:
    """Return the ratio of what a stratum has of a group, given the label, to what the features say; shrunk to 1.

    Strata need not be features: who is in a stratum is then likelier of a group that is frequent there.
    """
    priors = np.ones((n_strata, *probabilities.shape[1:]))
    for stratum in range(n_strata):
        for label in range(probabilities.shape[1]):
            inside = masses * (codes == stratum) * (labels == label)
            counted = np.bincount(groups, weights=inside, minlength=probabilities.shape[2])
            given = probabilities[:, label] / np.maximum(probabilities[:, label].sum(axis=1, keepdims=True), 1e-12)
            expected = inside @ given
            priors[stratum, label] = (counted + 10.0) / (expected + 10.0)
    return priors


def _apply_priors(probabilities: Floats, priors: Floats, codes: Ints) -> Floats:
    tilted = probabilities * priors[codes]
    sums = tilted.sum(axis=2, keepdims=True)
    return tilted / np.maximum(sums, 1e-12) * probabilities.sum(axis=2, keepdims=True)
