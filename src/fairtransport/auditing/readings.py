"""A disparity with its interval, and the pair of groups that is farthest apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtransport.auditing.proportions import Estimate

__all__ = ["PairSummary", "Reading"]


@dataclass(frozen=True)
class Reading:
    """A metric with its confidence interval.

    Parameters
    ----------
    value : float
        The metric of the data, as observed.
    low, high : float
        Confidence interval. The disparity of samples is biased upward, the more so the smaller the groups. The interval
        corrects for this, so the observed value may lie in its upper part or even above it.
    corrected : float
        The value after correction for that bias.
    margin : float
        Distribution-free bound on the difference between the observed and the true value, with the same confidence
        (Dvoretzky-Kiefer-Wolfowitz; Hoeffding for the error). Wide, but valid for samples of any size.
    floor : float or None
        Noise floor: the mean of the metric when group membership is permuted. None for the error.
    p_value : float or None
        P-value of the test of no difference between the groups. It is the same for all disparities, which are 0 under
        the same hypothesis, except for the distance to a fixed distribution. The interval includes 0 if and only if it
        exceeds 1 - confidence. None for the error.
    resolution : float
        Largest error of the value due to binning; 0 where it was computed from rows.
    """

    value: float
    low: float
    high: float
    corrected: float
    margin: float
    floor: float | None = None
    p_value: float | None = None
    resolution: float = 0.0


@dataclass(frozen=True)
class PairSummary:
    """The distance between two groups, and the scores at which they differ.

    Parameters
    ----------
    lower, higher : str
        Names of the groups; ``higher`` has the higher mean score.
    distance : float
        Wasserstein-1 distance, as a share of the range of scores; of scores without known bounds, the distance between
        ranks.
    most_between : pair of float
        The shortest interval of scores that accounts for half of the distance.
    threshold : float
        The threshold at which the groups' selection rates differ most.
    shares_above : pair of float
        The selection rates of ``lower`` and ``higher`` at that threshold.
    p_value : float or None
        Of no difference between the two, adjusted for the number of pairs (Holm); None for a group that is not judged.
    estimate : Estimate or None
        The distance, corrected for its upward bias, with an interval that accounts for the selection of the pair. Only
        for `Audit.farthest`.
    mean_difference : Estimate or None
        Mean score of ``higher`` minus that of ``lower``, as a share of the range of scores, or mean rank. Only for
        `Audit.farthest`.
    score_distance : float or None
        Wasserstein-1 distance in units of the score; None where scores have known bounds.
    """

    lower: str
    higher: str
    distance: float
    most_between: tuple[float, float]
    threshold: float
    shares_above: tuple[float, float]
    p_value: float | None = None
    estimate: Estimate | None = None
    mean_difference: Estimate | None = None
    score_distance: float | None = None
