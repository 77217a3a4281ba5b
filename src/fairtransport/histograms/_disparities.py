"""Disparities of distributions on the nodes of a grid, and how far they may be from those of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.histograms._grid import Grid

__all__ = ["Disparities", "distances_between", "error_bounds", "measure_disparities"]


class Disparities(NamedTuple):
    """Sums of Wasserstein-1 distances, as shares of the range.

    Attributes
    ----------
    to_barycenter, to_everyone : float
        Distances of the groups to their barycenter, the pointwise median of quantile functions, and to all rows.
    pairwise : float
        Distances between all pairs of groups.
    """

    to_barycenter: float
    to_everyone: float
    pairwise: float


def distances_between(cdf: NDArray[np.float64], widths: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return the Wasserstein-1 distances between groups, from distribution functions of shape (n_groups, n_nodes)."""
    steps = cdf[:, :-1]
    distances = np.array([(np.abs(steps - one) * widths).sum(axis=1) for one in steps])
    return (distances + distances.T) / 2


def measure_disparities(
    cdf: NDArray[np.float64], cdf_of_everyone: NDArray[np.float64], widths: NDArray[np.float64] | float
) -> Disparities:
    """Return the disparities from one sort of the distribution functions at each node.

    Parameters
    ----------
    cdf : ndarray of shape (n_groups, n_nodes)
    cdf_of_everyone : ndarray of shape (n_nodes,)
    widths : ndarray of shape (n_nodes - 1,), or float
        Widths of the bins, as shares of the range.

    Returns
    -------
    Disparities
    """
    steps = np.sort(cdf[:, :-1], axis=0)
    n_groups, half = len(steps), len(steps) // 2
    spread = ((steps[::-1][:half] - steps[:half]) * widths).sum(axis=1)
    return Disparities(
        to_barycenter=float(spread.sum()),
        to_everyone=float((np.abs(steps - cdf_of_everyone[:-1]) * widths).sum()),
        pairwise=float((n_groups - 1 - 2 * np.arange(half)) @ spread),
    )


def error_bounds(
    grid: Grid, by_group: NDArray[np.float64], everyone: NDArray[np.float64], *, weighted: bool
) -> dict[str, float]:
    """Return the bounds of `GroupHistograms.bounds`.

    Parameters
    ----------
    grid : Grid
    by_group : ndarray of shape (n_groups, n_nodes)
        Weight of each group at each node.
    everyone : ndarray of shape (n_nodes,)
        Weight of all rows.
    weighted : bool
        Whether weights other than 1 occur.

    Returns
    -------
    dict of str to float
    """
    n_groups, step = len(by_group), grid.resolution
    if not grid.positions:
        return {
            "wasserstein_disparity": n_groups * step,
            "strong_demographic_disparity": n_groups * step,
            "strong_pairwise_disparity": n_groups * (n_groups - 1) // 2 * step,
        }
    widths = np.append(0.0, grid.unit_widths)
    if not weighted:
        widths[everyone <= 1] = 0.0  # the only score in its bin is its node
    shares = by_group / by_group.sum(axis=1)[:, None]
    means, mean_of_everyone = shares @ widths, everyone @ widths / everyone.sum()
    return {
        "wasserstein_disparity": float(means.sum() + n_groups * means.max()),
        "strong_demographic_disparity": float(means.sum() + n_groups * mean_of_everyone),
        "strong_pairwise_disparity": float((n_groups - 1) * means.sum()),
    }
