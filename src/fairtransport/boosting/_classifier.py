"""A LightGBM or XGBoost classifier, trained towards demographic parity, equalized odds or conditional parity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score

from fairtransport._sklearn import BinaryClassifierMixin
from fairtransport._validation import check_choice, check_real
from fairtransport.boosting._base import SPREADS, TransportBoosting
from fairtransport.boosting._objective import ClassLabels
from fairtransport.boosting._settings import BoostedClasses
from fairtransport.training.evaluation import spread_logits
from fairtransport.transport.regularizers import mixed_logits, sigmoid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.boosting._objective import Loss
    from fairtransport.boosting._settings import Settings
    from fairtransport.boosting._training_data import TrainingData


class TransportBoostingClassifier(BinaryClassifierMixin, TransportBoosting):
    r"""Boosted trees whose scores have the same distribution for all groups: LightGBM or XGBoost with a penalty.

    Minimises the log-loss plus ``parity_weight`` times the transport distances between the groups' scores.

    Parameters
    ----------
    estimator : LGBMClassifier or XGBClassifier, optional
        The unfitted model, which is cloned; all of its settings but the objective are used. By default LightGBM.
        Features may be whatever it accepts: data frames, categorical columns, missing values. Where the number of
        rounds and the learning rate, or the size of trees, are at the library's defaults, they are chosen by the number
        of rows; without an estimator, each tree also sees half of the columns.
    distance : {"auto", "continuous", "discrete"}, ContinuousDistance or DiscreteDistance, default="auto"
        Regularized transport through dual potentials (continuous optimal transport, COT), or the Wasserstein-1
        distance between sorted scores (discrete optimal transport, DOT). ``"auto"`` is the former, and the latter where
        groups are compared within labels or strata: differences are small there, and the regularized distance is flat
        between samples that differ by little.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with the positive label. With
        ``strata`` in ``fit``, groups are compared within strata (conditional parity).
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, where the log-loss has weight 1. It has no unit: at 1 the whole disparity of a plain
        model counts as much as its whole gain in log-loss over a constant; at 0 there is no penalty. ``"auto"`` takes
        the smallest weight at which the rank disparity of held-out rows is at its noise floor, or beyond which it no
        longer falls, but keeps at least half of the plain model's information; ``outcome_`` says which.
    max_disparity : float, optional
        Take the smallest weight at which the criterion's disparity of held-out rows is at most this, instead: the
        mean over pairs of groups (`metrics.pairwise_disparity`), with labels or strata within them.
    amount : float, default=1.0
        Position between the scores of the plain model (0) and those of the trained one (1), as their weighted mean.
        It is used at prediction only, so it can be set after ``fit``.
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` maps the trained scores to the spread of the plain model's scores, by one increasing map for
        all groups. It can be set after ``fit``.
    repair : QuantileRepair, optional
        Repair the scores of the trained model with the group at hand; ``QuantileRepair(amount=0.5)`` goes half of the
        way. Then the group is needed at prediction. Its criterion must be demographic parity, and so must that of the
        training. By default there is no repair.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed at the plain model: the equal-weight
        Wasserstein-1 barycenter (the paper's), the Wasserstein-2 barycenter weighted by group size, everyone, one
        group's scores, or given scores.
    scale : {"standardized", "score"}, default="standardized"
        Compare scores in units of their standard deviation, so that shrinking all of them gains nothing, or as they
        are.
    smooth_groups : bool, default=True
        Let a row count for each group with the probability of the group given the row's features, which two small
        models estimate by cross-fitting; two for each label if the criterion compares rows with the same label. If the
        group is not among the features, this prevents overfitting to the groups of the training rows.
    n_iter_no_change : int, "auto" or None, default="auto"
        Stop when log-loss plus penalty on held-out rows has not improved for this many rounds, and train on all rows
        with the best number of rounds. Rounds before the penalty has its full weight do not count. ``"auto"`` is 2
        divided by the learning rate, and None, all rounds, where ``estimator`` says how many.
    validation_fraction : float, optional
        Share of the rows on which rounds and weight are chosen, unless ``fit`` is passed an ``eval_set``. By default
        each row is held out once, in three folds; of more than 10,000 rows, a fifth.
    groups : GroupPolicy, optional
        How sensitive columns become groups, as in `TransportClassifier`.
    random_state : int, RandomState or None
        Seed of the cross-fitting of ``smooth_groups``, of the held-out rows, and of ``estimator`` if it has no seed.

    Attributes
    ----------
    estimator_ : LGBMClassifier or XGBClassifier
        The fitted model of classes 0 and 1. Its ``predict_proba`` is that of this classifier before any repair, and
        its booster can be saved and served like any other. It contains nothing about the groups.
    initial_estimator_ : LGBMClassifier or XGBClassifier
        The plain model, trained without a penalty.
    parity_weight_ : float
        The weight that was used.
    information_kept_ : float
        Share of the plain model's gain in log-loss over a constant that the trained model has.
    before_after_ : dict
        ``log_loss``, ``auc``, ``spread`` (standard deviation of the scores), ``disparity`` (the criterion's)
        and ``rank_disparity``, both means over pairs of groups, by the plain and by the trained model: on held-out
        rows, where there are any, or on training rows.
    path_ : dict of ndarray
        The weights that were tried: ``weight``, ``disparity``, ``rank_disparity``, ``information_kept`` and
        ``log_loss``, on the same rows.
    spread_ : ndarray of shape (2, n_points)
        The map of ``spread="initial"``; its points are means of five rows or more.
    repair_ : QuantileRepair or None
        The fitted repair of the scores, if there is one.
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
        ``round``, ``disparity`` (sum over pairs of Wasserstein-1 distances, weighted over labels and strata) and
        ``loss`` (log-loss) on the validation rows; empty without any.
    outcome_ : str
        What happened, in words.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    TransportObjective : The same penalty for ``xgboost.train`` and ``lightgbm.train``.
    fairtransport.TransportClassifier : The same penalty for linear models.
    fairtransport.QuantileRepairClassifier : Repairs the scores of any classifier.

    Notes
    -----
    With margins z, scores :math:`s = \sigma(z)`, labels y and n rows, the objective is

    .. math:: \frac{1}{n} \sum_i \mathrm{logloss}(z_i, y_i) + w u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T a transport distance ([1]_, Eq. 4) between the scores of two groups, or of their rows within each label or
    stratum, :math:`\omega` the weights of the pairs by reliability, and u the unit, as in
    `TransportClassifier`. A plain model is trained first, which measures u. Then a booster is trained from
    the start with `TransportObjective`: a quarter of its rounds without the penalty (a twentieth on more than 10,000
    rows), whose weight w then increases up to three quarters of them.

    **Rounds and weight** are chosen on held-out rows: each part of the rows is binned once, boosters with different
    weights have the same seeds, and the chosen model is trained anew on all rows.

    If the group is unknown at prediction, leave the sensitive columns out of the features and use no ``repair``.
    If it is known, combine a small ``parity_weight`` with a repair of amount 0.5 to 1.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from fairtransport.boosting import TransportBoostingClassifier
    >>> from fairtransport.metrics import pairwise_disparity
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> trees = LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1)
    >>> plain, fair = (
    ...     TransportBoostingClassifier(trees, parity_weight=w, random_state=0).fit(X, y, sensitive_features=group)
    ...     for w in (0.0, 1.0)
    ... )
    >>> before, after = (
    ...     pairwise_disparity(model.predict_proba(X)[:, 1], sensitive_features=group) for model in (plain, fair)
    ... )
    >>> bool(after < before / 2)
    True
    """

    task = "classification"

    # ---------------------------------------------------------------- fitting

    def _read_y(self, y: Any, weights: ArrayLike | None, loss: Loss) -> ClassLabels:  # noqa: ARG002
        return ClassLabels.of(y, type(self).__name__)

    def _row_weights(self, settings: Settings, encoding: ClassLabels, rows: TrainingData) -> NDArray[np.float64] | None:
        if rows.weights is not None and not all(rows.weights[rows.labels == label].any() for label in (0, 1)):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
        return settings.library.absorb_class_weights(settings.estimator, encoding.classes, rows.labels, rows.weights)

    def _store_y(self, encoding: ClassLabels, settings: Settings) -> None:  # noqa: ARG002
        self.classes_ = encoding.classes

    def _make_response(self, encoding: ClassLabels, settings: Settings, rows: TrainingData) -> BoostedClasses:  # noqa: ARG002
        return BoostedClasses(settings.loss)

    def _predictions(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        return sigmoid(margins)

    # ---------------------------------------------------------------- predicting

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the logit of class 1, before any repair.

        Parameters
        ----------
        X : table or matrix with n rows

        Returns
        -------
        ndarray of shape (n,)
        """
        amount = check_real(self.amount, name="amount", most=1.0)
        trained = self._margins(X)
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            trained = spread_logits(trained, self.spread_)
        return trained if amount == 1.0 else mixed_logits(self._margins(X, plain=True), trained, amount)

    def predict_proba(
        self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error"
    ) -> NDArray[np.float64]:
        """Return the probabilities of the two classes.

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
        ndarray of shape (n, 2)
        """
        positive = self._scores(X, sensitive_features, unknown_group)
        return np.column_stack((1.0 - positive, positive))

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> NDArray[Any]:
        """Return the predicted classes: class 1 if its probability is above one half; see `predict_proba`."""
        options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
        above = self.predict_proba(X, **options)[:, 1] > 0.5
        return np.asarray(self.classes_[above.astype(int)])

    def score(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
