"""Areas under ROC curves between the positive rows of one group and the negative rows of another."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing.errors._norm_intervals import N_DRAWS, interval_of_norm
from fairtransport.auditing.proportions import area_under_curve, difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.errors._norm_intervals import CorrectedEstimate
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.proportions import Estimate

__all__ = ["MAX_CROSSED", "CrossAuc", "estimate_cross_auc"]

#: Number of groups, the largest ones, whose areas are crossed.
MAX_CROSSED = 20


@dataclass(frozen=True)
class CrossAuc:
    r"""Cross-group areas under the ROC curve (xAUC).

    Parameters
    ----------
    groups : tuple of int
        Indices of the groups: at most the `MAX_CROSSED` largest.
    areas : tuple of tuple of Estimate or None
        ``areas[i][j]`` is the probability that a positive row of the i-th of these groups scores above a negative row
        of the j-th, ties counting half. None where there are no such rows. The diagonal has the groups' own areas.
    disparity : CorrectedEstimate or None
        The largest difference ``areas[i][j] - areas[j][i]`` between two groups with enough rows of both labels to be
        judged; None where fewer than two have enough.
    pair : pair of int, or None
        Indices of these groups: the positive rows of the first are ranked above the negative rows of the second more
        often than the other way round.

    Notes
    -----
    Variances are DeLong's; the interval of the largest difference accounts for the selection of the pair.

    References
    ----------
    Kallus and Zhou (2019), "The Fairness of Risk Scores Beyond Classification: Bipartite Ranking and the xAUC Metric".
    """

    groups: tuple[int, ...]
    areas: tuple[tuple[Estimate | None, ...], ...]
    disparity: CorrectedEstimate | None
    pair: tuple[int, int] | None


def estimate_cross_auc(evidence: Evidence, options: Options, rng: np.random.Generator) -> CrossAuc:
    """Estimate the cross-group areas of evidence with labels.

    Parameters
    ----------
    evidence : Evidence
    options : Options
    rng : numpy.random.Generator

    Returns
    -------
    CrossAuc
    """
    histograms = evidence.histograms
    weights, squares = (sums.sum(axis=2) for sums in (histograms.by_class, histograms.squares_by_class))
    sizes = np.divide(weights**2, squares, out=np.zeros_like(weights), where=squares > 0)
    largest = np.argsort(-histograms.effective_sizes, kind="stable")[:MAX_CROSSED]
    groups = tuple(sorted(largest.tolist()))
    areas = tuple(
        tuple(
            area_under_curve(
                evidence.class_sample(0, other),
                evidence.class_sample(1, one),
                (float(sizes[0, other]), float(sizes[1, one])),
                options.confidence,
            )
            for other in groups
        )
        for one in groups
    )
    judged = [at for at, group in enumerate(groups) if sizes[:, group].min() >= options.min_judged_rows]
    disparity, pair = _largest_difference(areas, judged, options, rng)
    return CrossAuc(groups, areas, disparity, None if pair is None else (groups[pair[0]], groups[pair[1]]))


def _largest_difference(
    areas: tuple[tuple[Estimate | None, ...], ...], judged: list[int], options: Options, rng: np.random.Generator
) -> tuple[CorrectedEstimate | None, tuple[int, int] | None]:
    differences = {
        (one, other): difference(above, below)
        for at, one in enumerate(judged)
        for other in judged[:at]
        if (above := areas[one][other]) is not None and (below := areas[other][one]) is not None
    }
    if not differences:
        return None, None
    pairs, estimates = list(differences), list(differences.values())
    values = np.array([each.value for each in estimates])
    z = NormalDist().inv_cdf((1 + options.confidence) / 2)
    deviations = np.array([(each.high - each.low) / (2 * z) for each in estimates])
    noise = rng.normal(size=(N_DRAWS, values.size)) * deviations

    def largest(array: NDArray[np.float64]) -> NDArray[np.float64]:
        maximum: NDArray[np.float64] = np.abs(array).max(axis=-1)
        return maximum

    widest = int(np.argmax(np.abs(values)))
    one, other = pairs[widest] if values[widest] >= 0 else pairs[widest][::-1]
    return interval_of_norm(values, noise, largest, options.confidence), (one, other)
