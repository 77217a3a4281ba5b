"""Errors of real-valued predictions: by group, compared with a reference group, and by decile of the prediction."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairtransport._arrays import Bools, Floats
from fairtransport.auditing.proportions import Estimate, agreeing, holm, student_quantile
from fairtransport.groups import Groups
from fairtransport.tables.table_counts import PRODUCTS, ResidualSums

if TYPE_CHECKING:
    from fairtransport.auditing._evidence import Rows

#: The errors of a regression: root mean squared and mean absolute error, coefficient of determination, mean residual.
REGRESSION_FIGURES = ("rmse", "mae", "r2", "mean_residual")

_FOURTH = 4.0  # rows for each degree of freedom of a variance of squares; by simulation
_EQUAL = 1e-12  # variance of labels that are equal but for rounding, relative to all labels


@dataclass(frozen=True)
class GroupResiduals:
    """The errors of the predictions of one group.

    Parameters
    ----------
    name : str
    figures : dict of str to (Estimate or None)
        ``rmse``, ``mae`` and ``mean_residual`` (label minus prediction) in units of the label, and ``r2``, which is
        None where all labels of the group are equal.
    differences, p_values : dict of str to (Estimate or None), dict of str to (float or None)
        The figures minus those of the reference group, and two-sided p-values of no difference, adjusted for the number
        of groups (Holm). None for the reference; p-values also for groups that are not judged.
    """

    name: str
    figures: Mapping[str, Estimate | None]
    differences: Mapping[str, Estimate | None]
    p_values: Mapping[str, float | None]


@dataclass(frozen=True)
class ResidualDecile:
    """Mean residuals of the rows with predictions in one tenth of all predictions: above ``low`` and up to ``high``.

    Parameters
    ----------
    low, high : float
    overall, groups : Estimate, tuple of (Estimate or None)
        Mean residual (label minus prediction) of all rows, and of each group; None where it has no such rows.
    """

    low: float
    high: float
    overall: Estimate
    groups: tuple[Estimate | None, ...]


@dataclass(frozen=True)
class RegressionErrors:
    """Errors of real-valued predictions.

    Parameters
    ----------
    reference : str
        Name of the group that the others are compared with.
    overall : dict of str to (Estimate or None)
        The figures of all rows; see `GroupResiduals`.
    groups : tuple of GroupResiduals
    deciles : tuple of ResidualDecile
        Mean residuals by prediction. Groups whose predictions mean the same have the same mean residuals.
    label_mean, label_deviation : float
        Mean and standard deviation of the labels.

    Notes
    -----
    Standard errors are those of the delta method, from the fourth moments of residuals and labels. Intervals are
    Student's, on a logarithmic scale for errors and for :math:`1 - R^2`. Groups are taken to be independent.
    """

    reference: str
    overall: Mapping[str, Estimate | None]
    groups: tuple[GroupResiduals, ...]
    deciles: tuple[ResidualDecile, ...]
    label_mean: float
    label_deviation: float


def estimate_regression(
    moments: ResidualMoments,
    names: Sequence[str],
    judged: Bools,
    reference: int,
    *,
    confidence: float,
    score_range: tuple[float, float],
) -> RegressionErrors:
    """Estimate the errors of predictions."""
    sums, products = moments.sums.sum(axis=1), moments.products.sum(axis=1)
    figures = [_figures(one, product, moments.scale) for one, product in zip(sums, products, strict=True)]
    base = figures[reference]
    others = [group for group in range(len(names)) if group != reference]
    p_values: dict[str, list[float | None]] = {}
    for name in REGRESSION_FIGURES:
        raw = {group: _p_value(figures[group][name], base[name]) for group in others if judged[group]}
        known = {group: p for group, p in raw.items() if p is not None}
        adjusted = dict(zip(known, holm(list(known.values())).tolist(), strict=True)) if known else {}
        p_values[name] = [adjusted.get(group) for group in range(len(names))]
    deviation = sums[-1, 5] / sums[-1, 0] - (sums[-1, 4] / sums[-1, 0]) ** 2
    return RegressionErrors(
        reference=names[reference],
        overall={name: _estimate(name, figure, confidence) for name, figure in figures[-1].items()},
        groups=tuple(
            GroupResiduals(
                name,
                {figure: _estimate(figure, one, confidence) for figure, one in figures[group].items()},
                {
                    figure: None
                    if group == reference
                    else _difference(one, base[figure], confidence, p_values[figure][group])
                    for figure, one in figures[group].items()
                },
                {figure: values[group] for figure, values in p_values.items()},
            )
            for group, name in enumerate(names)
        ),
        deciles=tuple(_deciles(moments, confidence, score_range)),
        label_mean=moments.centre + moments.scale * float(sums[-1, 4] / sums[-1, 0]),
        label_deviation=moments.scale * math.sqrt(max(float(deviation), 0.0)),
    )


class _Figure(NamedTuple):
    """A figure with its standard error and degrees of freedom, in units of the label."""

    value: float
    error: float
    freedom: float


def _figures(sums: Floats, products: Floats, scale: float) -> dict[str, _Figure | None]:
    """Return the errors of some rows, with standard errors by the delta method."""
    weight, squares = float(sums[0]), float(products[0, 0])
    if not weight > 0:
        return dict.fromkeys(REGRESSION_FIGURES)
    means = sums / weight
    size = weight**2 / squares
    covariance = products - np.outer(means, products[0]) - np.outer(products[0], means)
    covariance = (covariance + squares * np.outer(means, means)) / weight**2 * (size / max(size - 1, 1.0))

    def figure(value: float, gradient: Mapping[int, float], *, order: int = 2) -> _Figure:
        slope = np.zeros(means.size)
        for index, derivative in gradient.items():
            slope[index] = derivative
        error = math.sqrt(max(float(slope @ covariance @ slope), 0.0))
        # Fourth moments are known less precisely than second ones.
        freedom = (size - 1) / (1 if order == 2 else _FOURTH)
        return _Figure(value, error if size > 1 + 1e-9 else math.inf, max(freedom, 1.0))

    _, residual, absolute, square, deviation, squared_deviation = means.tolist()
    variance = squared_deviation - deviation**2
    root = math.sqrt(square)
    r2 = None
    if variance > _EQUAL and size > 1 + 1e-9:
        share = square / variance
        r2 = figure(1 - share, {3: -1 / variance, 4: -2 * deviation * share / variance, 5: share / variance}, order=4)
    return {
        "rmse": figure(scale * root, {3: scale / (2 * root) if root > 0 else 0.0}, order=4),
        "mae": figure(scale * absolute, {2: scale}),
        "r2": r2,
        "mean_residual": figure(scale * residual, {1: scale}),
    }


def _estimate(name: str, figure: _Figure | None, confidence: float) -> Estimate | None:
    if figure is None:
        return None
    value, error, freedom = figure
    quantile = student_quantile(freedom, (1 + confidence) / 2)
    if name == "mean_residual":
        return Estimate(value, value - quantile * error, value + quantile * error)
    positive = 1 - value if name == "r2" else value
    factor = _growth(quantile, error, positive)
    low, high = positive / factor, positive * factor
    return Estimate(value, 1 - high, 1 - low) if name == "r2" else Estimate(value, low, high)


def _growth(quantile: float, error: float, positive: float) -> float:
    """Return the factor from a positive value to its upper limit, on a logarithmic scale."""
    if not positive > 0:
        return 1.0
    exponent = quantile * error / positive
    return math.exp(exponent) if exponent < 700 else math.inf


def _difference(
    one: _Figure | None, other: _Figure | None, confidence: float, p_value: float | None
) -> Estimate | None:
    if one is None or other is None:
        return None
    value, error, freedom = one.value - other.value, *_welch(one, other)
    half = student_quantile(freedom, (1 + confidence) / 2) * error
    estimate = Estimate(value, value - half, value + half)
    return estimate if p_value is None else agreeing(estimate, 0.0, rejected=p_value <= 1 - confidence)


def _p_value(one: _Figure | None, other: _Figure | None) -> float | None:
    if one is None or other is None:
        return None
    error, freedom = _welch(one, other)
    if not 0 < error < math.inf:
        return 1.0 if one.value == other.value or error > 0 else 0.0
    from scipy.special import stdtr  # noqa: PLC0415 - audits without predictions of numbers do not need it

    return float(2 * stdtr(freedom, -abs(one.value - other.value) / error))


def _welch(one: _Figure, other: _Figure) -> tuple[float, float]:
    """Return the standard error of a difference and its degrees of freedom (Welch and Satterthwaite)."""
    variances = one.error**2, other.error**2
    total = sum(variances)
    if not 0 < total < math.inf:
        return math.sqrt(total), 1.0
    shares = [variance / total for variance in variances]
    return math.sqrt(total), 1 / sum(s**2 / each.freedom for s, each in zip(shares, (one, other), strict=True))


def _deciles(moments: ResidualMoments, confidence: float, score_range: tuple[float, float]) -> list[ResidualDecile]:
    ends = [score_range[0], *moments.edges.tolist(), score_range[1]]
    deciles = []
    for index, (low, high) in enumerate(pairwise(ends)):
        *groups, overall = (
            _estimate(
                "mean_residual",
                _figures(moments.sums[group, index], moments.products[group, index], moments.scale)["mean_residual"],
                confidence,
            )
            for group in range(len(moments.sums))
        )
        if overall is not None:
            deciles.append(ResidualDecile(low, high, overall, tuple(groups)))
    return deciles


# Sums of residuals by group and decile of the prediction, from which all errors of a regression are computed.

#: Number of terms whose means the errors are functions of: 1, r, \|r\|, r**2, d and d**2.
N_TERMS = 6


@dataclass(frozen=True, eq=False)
class ResidualMoments:
    """Sums over rows of the terms that errors are functions of; their covariance gives standard errors."""

    centre: float
    scale: float
    sums: Floats
    products: Floats
    edges: Floats


def moments_of_rows(rows: Rows, edges: Floats) -> ResidualMoments:
    """Return the sums over rows with real-valued labels, by group and decile of the score."""
    y, scores = np.asarray(rows.labels), rows.scores
    masses = np.ones(y.size) if rows.weights is None else rows.weights
    centre = float(np.average(y, weights=masses))
    scale = float(np.sqrt(np.average((y - centre) ** 2, weights=masses))) or 1.0
    deciles = np.searchsorted(edges, scores)
    residuals, deviations = (y - scores) / scale, (y - centre) / scale
    terms = np.array([np.ones(y.size), residuals, np.abs(residuals), residuals**2, deviations, deviations**2])
    n_deciles = edges.size + 1
    sums = np.zeros((len(rows.groups) + 1, n_deciles, N_TERMS))
    products = np.zeros((*sums.shape, N_TERMS))
    for group, members in enumerate([*rows.groups.rows, np.arange(y.size)]):
        for decile in range(n_deciles):
            at = members[deciles[members] == decile]
            part, mass = terms[:, at], masses[at]
            sums[group, decile] = part @ mass
            products[group, decile] = (part * mass**2) @ part.T
    return ResidualMoments(centre, scale, sums, products, edges)


def moments_of_sums(sums: ResidualSums, groups: Groups, *, without: Collection[int] = ()) -> ResidualMoments:
    """Return the sums that an engine computed, by the groups of an audit; rows of no group are left out.

    So are the rows of the groups with the indices in ``without``.
    """
    encoded = groups.encode(sums.groups)
    left_out = np.concatenate([np.empty(0, np.int64), *(encoded.rows[group] for group in without)])
    by_group = [np.setdiff1d(rows, left_out) for rows in encoded.rows]
    members = [*by_group, np.unique(np.concatenate(by_group))]
    n_deciles = sums.edges.size + 1
    totals = np.zeros((len(members), n_deciles, N_TERMS))
    products = np.zeros((len(members), n_deciles, N_TERMS, N_TERMS))
    for group, rows in enumerate(members):
        np.add.at(totals[group], sums.deciles[rows], sums.sums[rows])
        for number, (one, other) in enumerate(PRODUCTS):
            np.add.at(products[group, :, one, other], sums.deciles[rows], sums.products[rows, number])
            products[group, :, other, one] = products[group, :, one, other]
    return ResidualMoments(sums.centre, sums.scale, totals, products, sums.edges)
