"""Settings of blind repair that are set rarely."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from fairtransport.criteria import Criterion
from fairtransport.groups import GroupPolicy


class BlindRepair(BaseEstimator):
    """Settings of a repair without the group at prediction.

    Parameters
    ----------
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Among whom scores should have the same distribution in all groups: everyone, people with the same label, or
        people with a positive label. For a regressor, people with the same label are those in the same range of y,
        which is cut at quantiles; there is no positive label, and so no equal opportunity.
    loss : {"squared", "log", "zero_one"}, default="squared"
        What the repair keeps as low as it can: the squared or the logarithmic loss of the scores, with groups alike at
        every threshold; or the error of decisions at one half, with groups alike at that threshold only. A regressor
        has the squared loss.
    max_disparity : float, optional
        Choose the largest slack at which the disparity of the criterion between the true groups of out-of-fold rows,
        the mean over pairs of groups, is at most this; for a regressor, in units of y. Leave the ``slack`` of the
        estimator at ``"auto"``.
    groups : GroupPolicy, optional
        How sensitive columns become groups; several must be crossed. Every group needs at least as many rows as there
        are folds.
    random_state : int or None, default=0
        Seed of the folds and of the default ``group_estimator``.

    See Also
    --------
    BlindRepairClassifier, BlindRepairRegressor : The estimators that take these settings as ``repair``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairtransport import BlindRepairClassifier
    >>> from fairtransport.repair import BlindRepair
    >>> model = BlindRepairClassifier(LogisticRegression(), repair=BlindRepair("equalized_odds", loss="log"))
    >>> model.set_params(repair__loss="zero_one").repair.loss
    'zero_one'
    """

    def __init__(
        self,
        criterion: str | Criterion = "demographic_parity",
        *,
        loss: str = "squared",
        max_disparity: float | None = None,
        groups: GroupPolicy | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.criterion = criterion
        self.loss = loss
        self.max_disparity = max_disparity
        self.groups = groups
        self.random_state = random_state
