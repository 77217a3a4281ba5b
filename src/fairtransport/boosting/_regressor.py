"""A LightGBM or XGBoost regressor, trained towards demographic parity, equalized odds or conditional parity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from fairtransport._validation import check_weights
from fairtransport.boosting._base import TransportBoosting
from fairtransport.boosting._objective import TargetScale, make_loss
from fairtransport.boosting._settings import BoostedNumbers
from fairtransport.criteria import DemographicParity
from fairtransport.criteria.criterion import as_criterion, criterion_name, needs_labels
from fairtransport.strata import make_strata

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.boosting._objective import Loss
    from fairtransport.boosting._settings import Settings
    from fairtransport.boosting._training_data import TrainingData
    from fairtransport.criteria import Criterion


class TransportBoostingRegressor(RegressorMixin, TransportBoosting):
    r"""Boosted trees whose predictions have the same distribution for all groups: LightGBM or XGBoost with a penalty.

    Minimises the loss plus ``parity_weight`` times the transport distances between the groups' predictions.

    Parameters
    ----------
    estimator : LGBMRegressor or XGBRegressor, optional
        The unfitted model, which is cloned, with all of its settings. Its objective is the loss: squared error (the
        default of both libraries), absolute error, Poisson or Tweedie. By default LightGBM. Features may be whatever it
        accepts: data frames, categorical columns, missing values. Where the number of rounds and the learning rate, or
        the size of trees, are at the library's defaults, they are chosen by the number of rows; without an estimator,
        each tree also sees half of the columns.
    distance : {"auto", "continuous", "discrete"}, ContinuousDistance or DiscreteDistance, default="auto"
        Regularized transport through dual potentials (continuous optimal transport, COT), or the Wasserstein-1
        distance between sorted predictions (discrete optimal transport, DOT). ``"auto"`` is the former, and the latter
        where groups are compared within strata: differences are small there, and the regularized distance is flat
        between samples that differ by little.
    criterion : {"demographic_parity", "equalized_odds"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, or those with a similar y, which is cut at quantiles. With
        ``strata`` in ``fit``, groups are compared within strata (conditional parity).
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, where the loss has weight 1. It has no unit: at 1 the whole disparity of a plain model
        counts as much as its whole gain in loss over a constant; at 0 there is no penalty. ``"auto"`` takes the
        smallest weight at which the rank disparity of held-out rows is at its noise floor, or beyond which it no longer
        falls, but keeps at least half of the plain model's information; ``outcome_`` says which.
    max_disparity : float, optional
        Take the smallest weight at which the criterion's disparity of held-out rows is at most this, instead: the
        mean over pairs of groups (`metrics.pairwise_disparity`) in units of y, with strata within them.
    amount : float, default=1.0
        Position between the predictions of the plain model (0) and those of the trained one (1), as their weighted
        mean. It is used at prediction only, so it can be set after ``fit``.
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` maps the trained predictions to the spread of the plain model's predictions, by one increasing map
        for all groups. It can be set after ``fit``.
    repair : QuantileRepair, optional
        Repair the predictions of the trained model with the group at hand; ``QuantileRepair(amount=0.5)`` goes half
        of the way. Then the group is needed at prediction. Its criterion must be demographic parity, and so must that
        of the training. By default there is no repair.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"} or group label, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed at the plain model: the equal-weight
        Wasserstein-1 barycenter (the paper's), the Wasserstein-2 barycenter weighted by group size, everyone, or one
        group's predictions.
    scale : {"standardized", "score"}, default="standardized"
        Compare predictions in units of their standard deviation, so that shrinking all of them gains nothing, or as
        they are.
    smooth_groups : bool, default=True
        Let a row count for each group with the probability of the group given the row's features, which two small
        models estimate by cross-fitting. If the group is not among the features, this prevents overfitting to the
        groups of the training rows.
    n_iter_no_change : int, "auto" or None, default="auto"
        Stop when loss plus penalty on held-out rows has not improved for this many rounds, and train on all rows with
        the best number of rounds. Rounds before the penalty has its full weight do not count. ``"auto"`` is 2 divided
        by the learning rate, and None, all rounds, where ``estimator`` says how many.
    validation_fraction : float, optional
        Share of the rows on which rounds and weight are chosen, unless ``fit`` is passed an ``eval_set``. By default
        each row is held out once, in three folds; of more than 10,000 rows, a fifth.
    groups : GroupPolicy, optional
        How sensitive columns become groups, as in `TransportClassifier`.
    random_state : int, RandomState or None
        Seed of the cross-fitting of ``smooth_groups``, of the held-out rows, and of ``estimator`` if it has no seed.

    Attributes
    ----------
    estimator_ : LGBMRegressor or XGBRegressor
        The fitted model of y less ``y_center_``, divided by ``y_scale_``. It contains nothing about the groups.
    y_center_, y_scale_ : float
        Mean and standard deviation of y; 0 and the mean for the Poisson and the Tweedie loss.
    loss_ : {"squared_error", "absolute_error", "poisson", "tweedie"}
        The loss.
    initial_estimator_ : LGBMRegressor or XGBRegressor
        The plain model, trained without a penalty.
    parity_weight_ : float
        The weight that was used.
    information_kept_ : float
        Share of the plain model's gain in loss over a constant that the trained model has.
    before_after_ : dict
        ``loss``, ``r2``, ``spread`` (standard deviation of the predictions), ``disparity`` (the criterion's, in units
        of y), ``standardized_disparity`` (in standard deviations of y) and ``rank_disparity``, all means over pairs of
        groups, by the plain and by the trained model: on held-out rows, where there are any, or on training rows.
    path_ : dict of ndarray
        The weights that were tried: ``weight``, ``disparity``, ``rank_disparity``, ``information_kept`` and
        ``loss``, on the same rows.
    spread_ : ndarray of shape (2, n_points)
        The map of ``spread="initial"``; its points are means of five rows or more.
    repair_ : QuantileRepair or None
        The fitted repair of the predictions, if there is one.
    groups_ : Groups
        The groups seen, without their rows.
    group_sizes_ : ndarray of shape (n_groups,)
        How many rows each group had.
    strata_ : Strata or None
        The strata seen, without their rows.
    unit_ : float
        Factor of the sum of distances at ``parity_weight`` 1.
    n_iter_ : int
        Number of rounds of the fitted model.
    history_ : dict of ndarray
        ``round``, ``disparity`` and ``loss`` on the validation rows, both in the units of the penalty; empty without
        any.
    outcome_ : str
        What happened, in words.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    TransportBoostingClassifier : The same for two classes.
    TransportObjective : The same penalty for ``xgboost.train`` and ``lightgbm.train``.

    Notes
    -----
    The objective is that of `TransportBoostingClassifier` with another loss and predictions in place of scores. Trees
    are trained on y less its mean, divided by its standard deviation, so that nothing depends on the unit of y: fits
    on y and on 1000 y + 5 give the same model up to that map (for the Poisson and the Tweedie loss, on y and on
    1000 y).

    With a logarithmic link (Poisson, Tweedie) the exponentials of the margins are compared, not the margins.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMRegressor
    >>> from fairtransport.boosting import TransportBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> price = 1000.0 * (X @ [1.0, 1.0, 0.5] + rng.normal(size=2000))
    >>> trees = LGBMRegressor(n_estimators=60, num_leaves=8, verbose=-1)
    >>> plain, fair = (
    ...     TransportBoostingRegressor(trees, parity_weight=w, random_state=0).fit(X, price, sensitive_features=group)
    ...     for w in (0.0, 10.0)
    ... )
    >>> bool(fair.before_after_["disparity"][1] < plain.before_after_["disparity"][1] / 2)
    True
    """

    task = "regression"
    _range = "learned"

    # ---------------------------------------------------------------- fitting

    def _check_parameters(self, strata: Any) -> None:
        super()._check_parameters(strata)
        if criterion_name(self.criterion) == "equal_opportunity":
            raise ValueError(
                "equal_opportunity compares people with the positive label, and a regression has none. Use "
                "criterion='equalized_odds', which compares people with a similar y."
            )

    def _read_y(self, y: Any, weights: ArrayLike | None, loss: Loss) -> TargetScale:
        known = None if weights is None else check_weights(weights, size=len(np.asarray(weights)))
        return TargetScale.of(y, known, loss, type(self).__name__)

    def _compare_by_y(self, rows: TrainingData, eval_rows: TrainingData | None) -> None:
        if not needs_labels(self.criterion):
            return
        rows.strata = make_strata(_with_y(rows), n_groups=len(rows.groups))
        if eval_rows is not None:
            eval_rows.strata = rows.strata.encode(_with_y(eval_rows))

    def _criterion_in_training(self) -> Criterion:
        return DemographicParity(as_criterion(self.criterion).stratum_weight)  # strata contain ranges of y

    def _store_y(self, encoding: TargetScale, settings: Settings) -> None:
        self.y_center_, self.y_scale_, self.loss_ = encoding.center, encoding.scale, settings.loss_name

    def _predictions(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.y_center_ + self.y_scale_ * make_loss(self.loss_).predictions(margins))

    def _make_response(self, encoding: TargetScale, settings: Settings, rows: TrainingData) -> BoostedNumbers:
        deviation = encoding.scale * float(np.sqrt(np.cov(rows.labels, aweights=rows.weights, bias=True)))
        return BoostedNumbers(settings.loss, encoding.scale, deviation)

    # ---------------------------------------------------------------- predicting

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> NDArray[np.float64]:
        """Return the predictions, in units of y.

        Parameters
        ----------
        X : table or matrix with n rows
        sensitive_features : column, table or Groups, optional
            Required with a ``repair``, ignored otherwise.
        unknown_group : {"error", "pooled", "common"}, default="error"
            What to do with rows of a group that was not seen in ``fit``, and with rows without a group: raise
            ValueError, predict as for everyone pooled, or as for the largest group.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._scores(X, sensitive_features, unknown_group)

    def score(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the coefficient of determination of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))


def _with_y(rows: TrainingData) -> dict[str, Any]:
    """Return the strata of the rows and y, as columns to cross."""
    if rows.strata is None:
        return {"y": rows.labels}
    return {"strata": rows.strata.codes.astype(str), "y": rows.labels}
