"""Sums of residuals by group and decile of the prediction, from which all errors of a regression are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.tables.residual_sums import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.tables.residual_sums import ResidualSums

__all__ = ["N_TERMS", "ResidualMoments", "moments_of_rows", "moments_of_sums"]

#: Number of terms whose means the errors are functions of: 1, r, \|r\|, r**2, d and d**2.
N_TERMS = 6


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


def _terms(
    y: NDArray[np.float64], scores: NDArray[np.float64], centre: float, scale: float
) -> list[NDArray[np.float64]]:
    """Return the six terms of each row; see `ResidualMoments`."""
    residuals, deviations = (y - scores) / scale, (y - centre) / scale
    return [np.ones(y.size), residuals, np.abs(residuals), residuals**2, deviations, deviations**2]


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
    terms = np.array(_terms(y, scores, centre, scale))
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


def moments_of_sums(sums: ResidualSums, groups: Groups) -> ResidualMoments:
    """Return the sums that an engine computed, by the groups of an audit; rows of no group are left out."""
    encoded = groups.encode(sums.groups)
    members = [*encoded.rows, np.unique(np.concatenate(encoded.rows))]
    n_deciles = sums.edges.size + 1
    totals = np.zeros((len(members), n_deciles, N_TERMS))
    products = np.zeros((len(members), n_deciles, N_TERMS, N_TERMS))
    for group, rows in enumerate(members):
        np.add.at(totals[group], sums.deciles[rows], sums.sums[rows])
        for number, (one, other) in enumerate(PRODUCTS):
            np.add.at(products[group, :, one, other], sums.deciles[rows], sums.products[rows, number])
            products[group, :, other, one] = products[group, :, one, other]
    return ResidualMoments(sums.centre, sums.scale, totals, products, sums.edges)
