"""``partial_fit`` of the transport classifiers: go on from the current theta, with or without labels.

What is remembered and how theta moves: `adjustment` and `sketches`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fairtransport._sklearn.error_redaction import redacted_errors
from fairtransport._sklearn.streaming import encode_batch_groups
from fairtransport._validation import check_count, check_length, check_weights
from fairtransport.groups import Groups
from fairtransport.linear._initial_model import starting_point
from fairtransport.linear._scaling import Scaling
from fairtransport.linear._spread_map import spread_points
from fairtransport.linear.online.sketches import POINTS, Sketches
from fairtransport.linear.online.state import Adjustment, Batch, Rule, adjust, widened_weights
from fairtransport.linear.solvers._step_sizes import ParameterSteps, automatic_steps, plain_steps, whitened_steps
from fairtransport.linear.weight_path import PATH_COLUMNS
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.linear._training import LinearFit
    from fairtransport.linear._training_data import TrainingData
    from fairtransport.penalties import TransportPenalty

__all__ = ["AdjustsLinearModel"]

_UPDATES = 3
_ROWS_OF_A_GROUP = 1000
_MOST_WHITENED = 800  # columns, as in training
_PEOPLE = 10  # whose scores a point of the target is the mean of, where the groups have so many
_PLAIN_DISPARITY = 0.1  # a distance that matters, where training saw none
_PLAIN_WEIGHT = 3.0  # of parity, where no path has chosen one


class AdjustsLinearModel:
    """What a transport classifier does with a stream."""

    def partial_fit(
        self: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        updates: int | None = None,
    ) -> Any:
        """Adjust the model to one batch of a stream; no labels are needed.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            One batch, from a single row on; columns as in ``fit``.
        y : array-like of shape (n_samples,), optional
            Labels, where they are known: they teach the model that the anchor holds to (see Notes). With
            ``parity_weight=inf`` there is no anchor, and labels are checked but not used.
        sensitive_features : array-like, Series or frame
            The columns of ``fit``. Groups may be absent. One that was not seen before raises, or is adopted: see
            ``new_groups``.
        sample_weight : array-like of shape (n_samples,), optional
            Weight k equals k copies.
        updates : int, optional
            Updates of theta for this batch, 3 by default. 0 only observes: the sketches move, theta does not.

        Returns
        -------
        self
            Without a ``fit`` before, the first call is a ``fit`` where labels are given, of both classes. Otherwise it
            starts from ``estimator``, which must then be fitted.

        Notes
        -----
        Of each group a sketch is kept: a histogram of its logits, its mean features and their covariance with the
        logit, in which a row of ``half_life`` rows of its group ago counts half. When the scores of its last hundred
        rows or so differ from it by more than chance, what is older is dropped. A batch enters the sketches; then
        theta follows the gradient of the penalty on their quantiles, not on the batch, so that a batch of one row is as
        good as any; the sketches move along with theta. The target stays that of ``fit``; groups that are compared with
        each other go on to be.

        Unless the loss is left out (``parity_weight=inf``, the paper's rule), an anchor keeps theta from drifting along
        the set of fair models: the second-order expansion of the logistic loss around the model of the last ``fit``. It
        has no noise and needs no labels. Labels that are given teach that model by a step of online logistic
        regression, and theta goes along.

        No chance is involved: equal batches in equal order give equal models to the last bit, whether in one
        process or through `fairtransport.save` and `fairtransport.load`.
        """
        self._check_parameters()
        spent = _UPDATES if updates is None else check_count(updates, name="updates", least=0)
        if not hasattr(self, "coef_"):
            if y is not None:
                return self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
            return self._start_without_labels(X, sensitive_features, sample_weight)
        X = self._batch_features(X, reset=False)
        mass = _mass(sample_weight, X.shape[0])
        groups = encode_batch_groups(self.groups_, sensitive_features, self.new_groups)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        labels = None if y is None else self._zeros_and_ones(y, X.shape[0])
        theta = np.column_stack((self.coef_, self.intercept_))
        state = vars(self).get("adjusting_")
        if state is None:
            state = self._remembered(X, groups, mass, theta)
        n_new = len(groups) - len(self.groups_)
        state = state.widened(len(groups), each_other=self._each_other)
        theta = widened_weights(theta, len(groups))
        rule = Rule(self._penalty(n_slices=POINTS), self._each_other, float(self.half_life), spent)
        state, theta = adjust(state, theta, Batch(X, groups, mass, labels), rule)
        self._take_over(state, theta, groups, n_new)
        if spent:
            self._show_duals(rule.penalty, rule.comparisons(len(groups), state.target))
        self.n_iter_ += spent
        return self

    def _take_over(self: Any, state: Adjustment, theta: NDArray[np.float64], groups: Groups, n_new: int) -> None:
        if n_new > 0:
            self.groups_ = Groups.from_spec(groups.to_spec())
            self.group_sizes_ = np.append(self.group_sizes_, np.zeros(n_new, dtype=self.group_sizes_.dtype))
        self.coef_, self.intercept_ = theta[:, :-1].copy(), theta[:, -1].copy()
        self.adjusting_ = state
        common = theta.mean(axis=0)
        if len(theta) > 1:  # rows of no group go along with the others
            self.common_coef_, self.common_intercept_ = common[:-1].copy(), float(common[-1])
        else:
            self.common_coef_, self.common_intercept_ = self.coef_[0], float(self.intercept_[0])

    def _show_duals(self, penalty: TransportPenalty, comparisons: Any) -> None:
        """Keep the dual variables for displays; only the continuous distance has some."""

    # ---------------------------------------------------------------- what a batch is

    def _batch_features(self: Any, X: Any, *, reset: bool) -> Any:
        with redacted_errors():
            return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)

    def _initial_scores(self: Any, X: Any) -> NDArray[np.float64]:
        model = self.initial_estimator_
        logits = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
        return sigmoid(np.asarray(logits, dtype=np.float64))

    def _zeros_and_ones(self: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
        labels = column_or_1d(y)
        check_length(labels, size=n_rows, name="y")
        strange = int(np.count_nonzero(~np.isin(labels, self.classes_)))
        if strange:
            raise ValueError(
                f"y has {strange} of {n_rows} labels that are none of the two classes of the first fit. Leave y out "
                "where labels are not known."
            )
        return np.asarray(labels == self.classes_[1], dtype=np.float64)

    # ---------------------------------------------------------------- how it begins

    def _start_without_labels(self: Any, X: Any, sensitive_features: Any, sample_weight: Any) -> Any:
        try:
            check_is_fitted(self.estimator)
        except (NotFittedError, TypeError):
            raise ValueError(
                f"{type(self).__name__} has no model yet: pass y, with both classes, in the first call of partial_fit, "
                "call fit before it, or give a fitted linear model as estimator."
            ) from None
        X = self._batch_features(X, reset=True)
        mass, groups = _mass(sample_weight, X.shape[0]), self._groups(sensitive_features, X.shape[0])
        self._check_target(groups, mass)
        classes = np.asarray(self.estimator.classes_)
        start = starting_point(self.estimator, X, classes, None, names=getattr(self, "feature_names_in_", None))
        self.classes_, self.initial_estimator_ = classes, start.model
        self.groups_, self.group_sizes_ = Groups.from_spec(groups.to_spec()), groups.counts
        self.target_ = self._target(self._resolved_target, self._initial_scores(X), groups, mass)
        theta = np.tile(start.theta, (len(groups) if self.group_specific else 1, 1))
        self.history_ = {name: np.zeros(0) for name in ("update", "disparity", "loss")}
        self.outcome_, self.n_iter_ = "started from the estimator as it was given, without labels", 0
        self.parity_weight_, self.information_kept_ = self._stream_weight, 1.0
        self.path_ = {name: np.zeros(0) for name in PATH_COLUMNS}
        initial = self._initial_scores(X)
        self.spread_ = spread_points(initial, initial, groups.rows, mass)
        self._take_over(self._remembered(X, groups, mass, theta), theta, groups, 0)
        return self

    def _remember_fit(self: Any, found: LinearFit, data: TrainingData) -> None:
        """Keep what a stream goes on from after ``fit``."""
        parity = found.weight * found.unit
        if found.unit == 0.0 < found.weight or (found.weight == 0.0 and self._is_automatic):
            weight = found.weight or _PLAIN_WEIGHT
            parity = weight * found.information / (_PLAIN_DISPARITY * self._n_pairs())
        self._remember(data, parity=parity, anchor=1.0)

    def _remember_training(self: Any, trainer: Any, data: TrainingData, information: float) -> None:
        """Keep what a stream goes on from after the paper's algorithm."""
        parity = trainer.objective.parity
        if parity == 0.0 < self._sgd_weight:
            parity = self._sgd_weight * information / (_PLAIN_DISPARITY * self._n_pairs())
        self._remember(data, parity=parity, anchor=trainer.objective.anchor)

    def _remember(self: Any, data: TrainingData, *, parity: float, anchor: float) -> None:
        theta = np.column_stack((self.coef_, self.intercept_))
        mass = _mass(data.weights, data.X.shape[0])
        self.adjusting_ = self._adjustment(data.X, data.groups, mass, theta, parity=parity, anchor=anchor)

    def _remembered(
        self: Any, X: Any, groups: Groups, mass: NDArray[np.float64], theta: NDArray[np.float64]
    ) -> Adjustment:
        """Begin with the rows of one batch, where nothing was kept of the training."""
        weight, scores = self._stream_weight, self._initial_scores(X)
        inside, rate = np.clip(scores, 1e-12, 1.0 - 1e-12), np.clip(np.average(scores, weights=mass), 1e-12, 1 - 1e-12)
        # The information that the initial model expects to have: the entropy of a constant less that of the scores.
        information = float(_entropy(rate) - np.average(_entropy(inside), weights=mass))
        unit = max(information, 0.01 * float(_entropy(rate))) / (_PLAIN_DISPARITY * self._n_pairs())
        return self._adjustment(
            X,
            groups,
            mass,
            theta,
            parity=1.0 if np.isinf(weight) else weight * unit,
            anchor=0.0 if np.isinf(weight) else 1.0,
        )

    @property
    def _stream_weight(self: Any) -> float:
        """Weight of parity where no training has found one."""
        if not isinstance(self.parity_weight, str):
            return float(self.parity_weight)
        return _PLAIN_WEIGHT if self._sgd is None else np.inf

    @property
    def _parameter_step(self: Any) -> float | None:
        return None if self._sgd is None else self._sgd.parameter_step

    def _n_pairs(self: Any) -> int:
        n_groups = len(self.groups_)
        return max(1, n_groups * (n_groups - 1) // 2 if self._each_other else n_groups)

    def _adjustment(
        self: Any,
        X: Any,
        groups: Groups,
        mass: NDArray[np.float64],
        theta: NDArray[np.float64],
        *,
        parity: float,
        anchor: float,
    ) -> Adjustment:
        scaling, steps, trace = self._units_and_steps(X, groups)
        logits = Batch(X, groups, mass, None).logits(theta)
        scores = sigmoid(logits)
        half_life, target = float(self.half_life), _few_points(self.target_, int(np.min(self.group_sizes_)))
        sketches = Sketches.empty(len(groups), X.shape[1]).seen(X, logits, groups, mass, np.inf)
        return Adjustment(
            parity=parity,
            anchor=anchor,
            curvature=float(np.average(scores * (1.0 - scores), weights=mass)),
            size=steps.size if self._parameter_step is not None else 0.0,
            trace=trace,
            origin=scaling.origin,
            unit=scaling.unit,
            scale=steps.scale,
            matrix=steps.matrix[0] if len(steps.matrix) else np.zeros((0, 0)),
            centre=theta,
            target=target,
            sketches=sketches.shortened(half_life).filled(target),
        )

    def _units_and_steps(self: Any, X: Any, groups: Groups) -> tuple[Scaling, ParameterSteps, float]:
        """Units of the columns, what gradients are multiplied with, and what drawing one row adds to the curvature."""
        n_columns, has_intercept = X.shape[1], bool(getattr(self.initial_estimator_, "fit_intercept", True))
        named = self._parameter_step is not None
        scaling = Scaling.none(n_columns) if named else Scaling.of(X, centred=has_intercept)
        # A few rows of each group are enough, at even distances: nothing is drawn.
        picked = [r[:: max(1, len(r) // _ROWS_OF_A_GROUP)] for r in groups.rows if len(r)]
        ends, rng = np.cumsum([len(r) for r in picked]), np.random.default_rng(0)
        rows = [np.arange(end - len(r), end) for r, end in zip(picked, ends, strict=True)]
        few = X[np.concatenate(picked)]
        if named:
            steps, trace = plain_steps(float(self._parameter_step), n_columns), 0.0
        elif n_columns <= _MOST_WHITENED:
            # As if one row for each column said that columns are not correlated: few rows may not say that they are.
            ridge = np.full(n_columns, n_columns / X.shape[0])
            how: dict[str, Any] = {"batch_size": 1, "weight": 1.0}
            steps = whitened_steps(scaling.apply(few), rows, ridge=ridge, rng=rng, **how)
            trace = steps.noise
        else:
            scaled, how = scaling.apply(few), {"n_updates": 1, "weight": 1.0, "ridge": 0.0}
            wide = automatic_steps(scaled, rows, batch_size=2**62, rng=np.random.default_rng(0), **how)
            one = automatic_steps(scaled, rows, batch_size=1, rng=np.random.default_rng(0), **how)
            # Sizes are a constant over L and over L + trace; with L in the scale both are as for whitened columns.
            steps, trace = ParameterSteps(0.0, wide.scale * 2.0 * wide.size), wide.size / one.size - 1.0
        return scaling, steps if has_intercept else steps.without_intercept(), trace


def _mass(weights: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    checked = check_weights(weights, size=n_rows)
    return np.ones(n_rows) if checked is None else checked


def _entropy(p: Any) -> Any:
    return -(p * np.log(p) + (1.0 - p) * np.log1p(-p))


def _few_points(target: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Means of equal parts of the target, few enough for several people to be behind each."""
    n_points = POINTS
    while n_points > 1 and n_points * _PEOPLE > n_rows:
        n_points //= 2
    parts = np.sort(target).reshape(n_points, -1).mean(axis=1)
    if n_points == 1:
        return np.repeat(parts, POINTS)
    # Evenly between the means: the same spread as far as they tell.
    return np.interp((np.arange(POINTS) + 0.5) / POINTS, (np.arange(n_points) + 0.5) / n_points, parts)
