"""Logistic and linear regression, trained towards parity of score distributions by optimal transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._labels import check_classes, two_classes
from fairtransport._sklearn import GroupedClassifierMixin, GroupedRegressorMixin
from fairtransport.linear.base import TransportModel
from fairtransport.training.responses import BinaryResponse, RealResponse
from fairtransport.transport.regularizers import sigmoid

if TYPE_CHECKING:
    from fairtransport.linear._training_data import TrainingOptions


class TransportClassifier(GroupedClassifierMixin, TransportModel):
    r"""Logistic regression with parity of whole score distributions, by optimal transport (the paper's COT and DOT).

    Minimises the log-loss of a linear model, plus its ridge, plus ``parity_weight`` times the regularized transport
    distances between the groups' scores.

    Parameters
    ----------
    estimator : estimator, optional
        Linear logistic model to start from, fitted or not. By default logistic regression on standardized columns, so
        that features need no scaling.
    distance : {"continuous", "discrete"}, ContinuousDistance or DiscreteDistance, default="continuous"
        What the penalty sums: regularized transport distances through dual potentials (continuous optimal transport,
        COT), or exact Wasserstein-1 distances (discrete optimal transport, DOT). Pass a
        :class:`~fairtransport.ContinuousDistance` for another regularization than the default one.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with the positive label. With
        ``strata`` in ``fit``, groups are compared within strata (conditional parity). Instances, such as
        :class:`~fairtransport.criteria.EqualizedOdds`, say how labels and strata are weighted.
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, where the log-loss has weight 1. It has no unit: at 1 the whole disparity of the initial
        model counts as much as its whole gain in log-loss over a constant; at 0 there is no penalty. ``"auto"`` takes
        the smallest weight at which the rank disparity of the training rows is at its noise floor, or beyond which it
        no longer falls, but keeps at least half of the initial model's information; or 0, the initial model, where
        groups come no closer on rows that it was not fitted to. ``outcome_`` says which. With
        ``solver="sgd"``, ``inf`` leaves the loss out, as the paper does, and ``"auto"`` is ``inf``.
    max_disparity : float, optional
        Take the smallest weight at which the criterion's disparity of the training rows is at most this, instead: the
        mean over pairs of groups (`metrics.pairwise_disparity`), with labels or strata within them.
    amount : float, default=1.0
        Position between the scores of the initial model (0) and those of the trained one (1), as their weighted mean.
        It is used at prediction only, so it can be set after ``fit``.
    spread : {"trained", "initial"}, default="trained"
        ``"initial"`` maps the trained scores to the spread of the initial model's scores, by one increasing map for
        all groups. It can be set after ``fit``.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or a distribution that is fixed by the initial model: the
        equal-weight Wasserstein-1 barycenter of the groups (as in the paper), the Wasserstein-2 barycenter weighted by
        group size, the scores of all rows, those of one group, or scores in an array; one for each label or stratum
        that is compared. ``solver="sgd"`` takes ``"each_other"`` as ``"barycenter"``.
    scale : {"standardized", "score"}, default="standardized"
        Compare scores in units of their standard deviation, so that shrinking all of them gains nothing, or as they
        are, as ``solver="sgd"`` always does.
    group_specific : bool, default=False
        Whether each group has its own weights; then the group is needed at prediction.
    solver : {"lbfgs", "sgd"} or SgdSettings, default="lbfgs"
        L-BFGS on all rows, which is deterministic, or the paper's stochastic algorithm, whose settings
        :class:`~fairtransport.linear.SgdSettings` has.
    tol : float, default=3e-4
        L-BFGS has converged when no entry of the gradient, in whitened coordinates, is larger.
    max_iter : int, default=1000
        Maximum number of L-BFGS iterations; reaching it emits a ``ConvergenceWarning``.
    groups : GroupPolicy, optional
        How sensitive columns become groups. Small groups are kept, and count as far as their differences exceed
        chance; are pooled into one group; or are left out of the comparisons and, with ``group_specific``, scored by
        the common weights.
    online : OnlineSettings, optional
        How fast ``partial_fit`` forgets earlier rows.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,)
        The trained weights; with ``group_specific=True`` one row for each group.
    common_coef_, common_intercept_ : ndarray of shape (n_features,), float
        Weights of rows that are in no group.
    initial_estimator_ : estimator
        The initial model.
    parity_weight_ : float
        The weight that was used.
    outcome_ : str
        How training ended, in words.
    information_kept_ : float
        Share of what the initial model explains of the variance of y, on rows that models were not fitted to where
        there are fewer than 200 for each column, that the trained model explains.
    before_after_ : dict
        ``log_loss``, ``auc``, ``spread`` (standard deviation of the scores), ``disparity`` (the criterion's)
        and ``rank_disparity``, both means over pairs of groups, of the training rows by the initial and by the trained
        model.
    path_ : dict of ndarray
        The weights that were tried: ``weight``, ``disparity``, ``rank_disparity``, ``log_loss``,
        ``information_kept``, ``theta`` and ``spread``, out of fold where the model is flexible (weights for each
        group, or more than one column for 20 rows). See `at`.
    history_ : dict of ndarray
        ``update``, ``disparity`` (the penalised sum) and ``loss`` after each iteration.
    n_iter_ : int
        Number of iterations or updates.
    duals_ : Duals
        The dual potentials of every group, with the continuous distance.
    target_ : ndarray of shape (4096,)
        Scores of equal mass that stand for the target of all rows; where groups are compared with each other, their
        Wasserstein-2 barycenter at the initial model.
    compared_with_ : {"each_other", "everyone", "target"}
        What each group is compared with. Beyond 20 groups it is everyone, which is zero for the same models and whose
        cost is linear in the number of groups.
    groups_, group_sizes_, strata_ : Groups, ndarray, Strata or None
        Groups, how many rows each had, and strata, all without rows.
    spread_ : ndarray of shape (2, n_points)
        The map of ``spread="initial"``; its points are means of five rows or more.
    adjusting_ : OnlineMemory
        What ``partial_fit`` continues from; it holds no rows. It and ``path_`` are made when they are first asked for,
        from a copy of the rows that the model keeps until then; no copy or file of a model contains rows.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ContinuousDistance, DiscreteDistance : The two distances.
    TransportRegressor : The same for a real y.
    fairtransport.linear.SgdSettings : Settings of the stochastic solver.
    QuantileRepairClassifier : Repairs the scores of any classifier, with the group at prediction.
    frontier : The whole trade-off, on held-out rows.

    Notes
    -----
    With scores s of the linear model, the objective is

    .. math:: \mathrm{loss}(\theta) + \tfrac{r}{2}|\theta|^2 + w\,u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T the distance of standardized scores: with ``distance="continuous"`` the regularized transport distance (paper,
    Equations 4 and 7), each solved exactly on 32 slice means of the two groups by Newton's method, with the frequencies
    of the Fourier features at the quantiles of their distribution; with ``"discrete"`` the Wasserstein-1 distance on
    200 slice means (paper, Equations 8 and 9). The pair weights :math:`\omega` leave out what chance shows
    for groups of these sizes (`fairtransport.criteria.criterion.weigh_by_reliability`), and
    :math:`u = V / \sum \omega_{ab} T(S^0_a, S^0_b)`, V the gain of the initial model over a constant.

    With ``group_specific=True`` the weights of a group have a Gaussian prior around those of the initial model. With
    ``solver="sgd"`` and the discrete distance, batches should not be small: the expected distance of two batches
    exceeds that of their distributions and favours a group that is too concentrated.

    Leave the sensitive columns out of the features for predictions that do not use the group; it is used in training
    only. ``outcome_`` and a `FairnessWarning` say where such features do not allow parity.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021: Equations 4 and 6 to 9, and
    the algorithm boxes.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import TransportClassifier
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = TransportClassifier().fit(X, y, sensitive_features=group)
    >>> before, after = model.before_after_["disparity"]
    >>> bool(after < before / 3), bool(model.information_kept_ > 0.5)
    (True, True)
    """

    _response_class = BinaryResponse
    _all_of_y = ", with both classes,"

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: ArrayLike | None = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        updates: int | None = None,
    ) -> Self:
        """Adjust the model to one batch of a stream; demographic parity needs no labels.

        Notes
        -----
        Of each group (in each label or stratum that is compared) a sketch is kept: a histogram of its logits, its mean
        features and their covariance with the logit, in which a row counts half after ``online.half_life`` further rows
        of its group. When its last hundred rows or so differ from it by more than chance, what is older is dropped.
        Theta follows the gradient of the penalty on the sketches, not on the batch, so that a batch of one row is as
        good as any, and the sketches move along. The target stays that of ``fit``.

        Unless the loss is left out (``parity_weight=inf``), the second-order expansion of the loss around the model of
        the last ``fit`` keeps theta from drifting along the set of fair models. Labels that are given teach that model
        by a step of online logistic regression, and theta goes along. Nothing is drawn at random: equal batches in
        equal order give equal models to the last bit, also through `fairtransport.save` and `fairtransport.load`.
        """
        if hasattr(self, "coef_"):
            check_classes(classes, self.classes_)
        elif y is not None:
            check_classes(classes, two_classes(y, type(self).__name__)[1])
        return self._adjust(
            X, y, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight, updates=updates
        )

    def decision_function(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> Floats:
        """Return the logit of class 1's probability."""
        return self._predictors(X, sensitive_features, unknown_group, logits=True)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> Floats:
        """Return the probabilities of the two classes; see ``decision_function`` for the parameters."""
        options = {"sensitive_features": sensitive_features, "unknown_group": unknown_group}
        positive = sigmoid(self.decision_function(X, **options))
        return np.column_stack((1.0 - positive, positive))


class TransportRegressor(GroupedRegressorMixin, TransportModel):
    r"""Linear regression with parity of whole distributions of predictions, by optimal transport.

    Minimises the squared error of a linear model, plus its ridge, plus ``parity_weight`` times transport
    distances between the groups' predictions. Predictions are rescaled inside, so that the unit of y does not
    matter: a model of ``1000 * y + 5`` predicts 1000 times as much, plus 5.

    Parameters
    ----------
    estimator : estimator, optional
        Linear regression to start from, such as ``LinearRegression`` or ``Ridge``, fitted or not. By default ridge
        regression on standardized columns, so that features need no scaling.
    criterion : {"demographic_parity", "equalized_odds"}, or an instance, default="demographic_parity"
        Which rows of the groups are compared: all, or those with about the same y, which is cut at quantiles. With
        ``strata`` in ``fit``, groups are compared within strata (conditional parity).
    parity_weight : float or "auto", default="auto"
        Weight of the penalty, where the squared error has weight 1.
    max_disparity : float, optional
        Take the smallest weight at which the criterion's disparity of the training rows (mean over pairs of groups), in
        units of y, is at most this, instead.
    scale : {"standardized", "score"}, default="standardized"
        Compare predictions in units of their own standard deviation, so that shrinking all of them gains nothing, or
        of that of y, as ``solver="sgd"`` always does.
    distance, amount, spread, target, group_specific, solver, tol, max_iter, groups, online, verbose
        As in `TransportClassifier`.

    Attributes
    ----------
    y_mean_, y_std_ : float
        Mean and standard deviation of y in ``fit``, by which it was standardised.
    before_after_ : dict
        ``mean_squared_error``, ``r2``, ``spread`` (standard deviation of the predictions), ``disparity`` (the
        criterion's, in units of y), ``standardized_disparity`` (in standard deviations of y) and ``rank_disparity``,
        all means over pairs of groups, of the training rows by the initial and by the trained model.
    path_ : dict of ndarray
        As that of `TransportClassifier`, with ``mean_squared_error``.
    history_ : dict of ndarray
        ``update``, and ``disparity`` and ``loss`` of standardised predictions after each iteration.
    strata_ : Strata or None
        The strata seen, without their rows. With equalized odds the first column is y.
    coef_, intercept_, information_kept_, outcome_
        As in `TransportClassifier`; so are the other attributes.

    See Also
    --------
    TransportClassifier : The same for two classes.
    QuantileRepairRegressor : Repairs the predictions of any regressor, with the group at prediction.

    Notes
    -----
    With y standardised, and scores s the predictions of the linear model in units in which three standard deviations
    to both sides of the mean of y are [0, 1], the objective is

    .. math:: \tfrac12 \overline{(x\theta - y)^2} + \tfrac r2 |\theta|^2 + w u \sum_{(a,b)} \omega_{ab}\, T(S_a, S_b),

    T, :math:`\omega` and u as for `TransportClassifier`, with the gain in squared error over a constant as V. Its notes
    on weights for each group, the stochastic solver and features without the group hold here, too.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import TransportRegressor
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = 1000.0 * (X @ [0.5, 1.0, 1.0] + rng.normal(size=2000))
    >>> model = TransportRegressor().fit(X, y, sensitive_features=group)
    >>> before, after = model.before_after_["disparity"]  # in units of y
    >>> bool(after < before / 3), bool(model.information_kept_ > 0.5)
    (True, True)
    """

    _response_class = RealResponse

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        strata: Any = None,
        sample_weight: ArrayLike | None = None,
        updates: int | None = None,
    ) -> Self:
        """Adjust the model to one batch of a stream, as `TransportClassifier.partial_fit`; parity needs no y.

        The anchor, the expansion of the squared loss around the model of the last ``fit``, is exact.
        """
        return self._adjust(
            X, y, sensitive_features=sensitive_features, strata=strata, sample_weight=sample_weight, updates=updates
        )

    def predict(self, X: Any, *, sensitive_features: Any = None, unknown_group: str = "error") -> Floats:
        """Return predictions, in units of y."""
        return self._predictors(X, sensitive_features, unknown_group, logits=False)

    def _options(self) -> TrainingOptions:
        options = super()._options()
        if options.criterion.name == "equal_opportunity":
            raise ValueError(
                "criterion='equal_opportunity' compares people with the positive label, and a real y has none. Use "
                "'equalized_odds', which compares people with about the same y, or a classifier."
            )
        return options
