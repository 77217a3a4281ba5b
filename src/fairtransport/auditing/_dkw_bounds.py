"""A bound that no distribution can break: Dvoretzky, Kiefer and Wolfowitz, with Massart's constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._disparity_norms import Yardstick

__all__ = ["distribution_free_margins"]


def distribution_free_margins(
    yardsticks: Sequence[Yardstick],
    sizes: NDArray[np.float64],
    weights: NDArray[np.float64],
    confidence: float,
) -> dict[str, float]:
    r"""By how much each disparity may differ from the truth, whatever the distributions are.

    Parameters
    ----------
    yardsticks : sequence of Yardstick
    sizes : array of shape (n_groups,)
        Effective numbers of rows. Rows of unequal weight make the bound approximate.
    weights : array of shape (n_groups,)
        Total weights, for everyone's distribution.
    confidence : float
        For all groups at once.

    Returns
    -------
    dict of str to float

    Notes
    -----
    With confidence :math:`1 - \alpha` each of G distribution functions is within

    .. math:: \varepsilon_a = \min\!\left(1, \sqrt{\frac{\log(2 G / \alpha)}{2 n_a}}\right)

    of the truth everywhere, so a distance on [0, 1] is off by no more than the sum of its two. The distance to the
    Wasserstein-1 barycenter is the smallest sum of distances to any distribution, so its margin is the sum over groups.

    Examples
    --------
    >>> from fairtransport.auditing._disparity_norms import Yardstick
    >>> pairs = Yardstick("spdd", "pairs")
    >>> found = distribution_free_margins([pairs], np.array([1e4, 1e4]), np.array([1.0, 1.0]), 0.95)
    >>> round(found["spdd"], 4)
    0.0296
    """
    n_groups = sizes.size
    radius = np.minimum(1.0, np.sqrt(np.log(2 * n_groups / (1 - confidence)) / (2 * np.maximum(sizes, 1e-9))))
    total, pooled = float(radius.sum()), float(weights @ radius / weights.sum())
    margins = {}
    for yardstick in yardsticks:
        if yardstick.kind == "pairs":
            margin = (n_groups - 1) * total
        elif yardstick.kind in {"everyone", "mean"}:
            margin = total + n_groups * pooled
        elif yardstick.kind == "group":
            margin = total + (n_groups - 2) * float(radius[yardstick.group])
        else:
            margin = total
        margins[yardstick.name] = margin
    return margins
