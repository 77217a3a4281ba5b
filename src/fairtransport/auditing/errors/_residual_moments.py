"""Sums of residuals by group and decile of the prediction, from which all errors of a regression are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms

__all__ = ["N_TERMS", "ResidualMoments", "decile_edges", "moments_of_rows", "residual_terms"]

#: Number of terms whose means the errors are functions of: 1, r, \|r\|, r**2, d and d**2.
N_TERMS = 6
_N_DECILES = 10


@dataclass(frozen=True, eq=False)
class ResidualMoments:
    r"""Sums over rows of the terms that errors are functions of.

    Parameters
    ----------
    centre, scale : float
        Of the labels y: residuals :math:`r = (y - s) / scale` of predictions s, and :math:`d = (y - centre) / scale`.
    sums : array of shape (n_groups + 1, n_deciles, 6)
        Sums of the weights times 1, r, \|r\|, :math:`r^2`, d and :math:`d^2`. The last group is everyone.
    products : array of shape (n_groups + 1, n_deciles, 6, 6)
        Sums of the squared weights times the products of every two terms.
    edges : array of shape (n_deciles - 1,)
        Predictions up to the first edge are in the first decile.

    Notes
    -----
    The means of the terms and their covariance, which the sums determine, give every error with its standard error by
    the delta method. Sums of several parts of a table can be added.
    """

    centre: float
    scale: float
    sums: NDArray[np.float64]
    products: NDArray[np.float64]
    edges: NDArray[np.float64]


def residual_terms(
    y: NDArray[np.float64], scores: NDArray[np.float64], centre: float, scale: float
) -> list[NDArray[np.float64]]:
    """Return the six terms of each row; see `ResidualMoments`."""
    residuals, deviations = (y - scores) / scale, (y - centre) / scale
    return [np.ones(y.size), residuals, np.abs(residuals), residuals**2, deviations, deviations**2]


def decile_edges(histograms: GroupHistograms) -> NDArray[np.float64]:
    """Return the distinct scores that divide all rows into ten parts of about equal weight, or fewer."""
    levels = np.arange(1, _N_DECILES) / _N_DECILES
    places = np.searchsorted(histograms.cdf_of_everyone, levels * (1 - 1e-12))
    last = np.flatnonzero(histograms.everyone)[-1]
    return np.unique(histograms.grid.nodes[places[places < last]])


def moments_of_rows(
    y: NDArray[np.float64],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    groups: Groups,
    edges: NDArray[np.float64],
) -> ResidualMoments:
    """Return the sums over rows, by group and decile of the score."""
    masses = np.ones(y.size) if weights is None else weights
    centre = float(np.average(y, weights=masses))
    scale = float(np.sqrt(np.average((y - centre) ** 2, weights=masses))) or 1.0
    deciles = np.searchsorted(edges, scores)
    terms = np.array(residual_terms(y, scores, centre, scale))
    rows: Sequence[NDArray[np.int64]] = [*groups.rows, np.arange(y.size)]
    n_deciles = edges.size + 1
    sums = np.zeros((len(rows), n_deciles, N_TERMS))
    products = np.zeros((len(rows), n_deciles, N_TERMS, N_TERMS))
    for group, members in enumerate(rows):
        for decile in range(n_deciles):
            at = members[deciles[members] == decile]
            part, mass = terms[:, at], masses[at]
            sums[group, decile] = part @ mass
            products[group, decile] = (part * mass**2) @ part.T
    return ResidualMoments(centre, scale, sums, products, edges)
