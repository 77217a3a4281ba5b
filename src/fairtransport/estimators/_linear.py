"""What the two transport classifiers share: a linear logistic model moved towards parity."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fairtransport._validation import check_choice, check_count, check_flag, check_length, check_real, check_weights
from fairtransport.estimators.adjusting import AdjustsLinearModel, check_stream_parameters
from fairtransport.estimators.course import Course, Objective, Result
from fairtransport.estimators.holding import hold_own_weights
from fairtransport.estimators.labels import two_classes
from fairtransport.estimators.notebook import ShowsFit
from fairtransport.estimators.pictures import PictureTrainer
from fairtransport.estimators.problem import TrainingProblem, as_copies, sigmoid
from fairtransport.estimators.scaling import Scaling
from fairtransport.estimators.spreading import spread_logits, spread_points
from fairtransport.estimators.start import Start, default_start, starting_point
from fairtransport.estimators.steps import ParameterSteps, automatic_steps, plain_steps, whitened_steps
from fairtransport.estimators.trainer import Trainer
from fairtransport.estimators.unit import parity_unit
from fairtransport.estimators.unquoted import unquoted
from fairtransport.groups import Groups, make_groups
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target, w2_barycenter

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.transport.dual import DualProblem

__all__ = ["EACH_OTHER", "LinearTransportClassifier"]

# The target distribution is kept as this many scores of equal mass: fine enough (W1 error below
# 1 / 4096), cheap to draw from, and no list of people's scores.
_TARGET_SIZE = 4096
_PLAIN_UPDATES = 20_000
_MOST_WHITENED = 800  # columns; a matrix of more does not stay in the cache

#: Whose spread the scores have.
SPREADS = ("trained", "initial")

#: The target that is none: groups are moved to each other.
EACH_OTHER = "each_other"


class LinearTransportClassifier(AdjustsLinearModel, ShowsFit, ClassifierMixin, BaseEstimator):
    """Base of COT and DOT; subclasses say what the dual problem is."""

    _short = ""

    # ---------------------------------------------------------------- what subclasses say

    @abstractmethod
    def _dual_problem(self, rng: np.random.Generator) -> DualProblem | None:
        """Return the continuous dual problem, or None for discrete transport."""

    @abstractmethod
    def _resolved_dual_step(self, problem: DualProblem | None) -> float: ...

    def _told(self) -> list[str]:
        """Say how training went, and what it gained on its watched rows."""
        disparity = self.history_["disparity"]
        gain = (
            [f"disparity {disparity[0]:.3f} to {disparity[-1]:.3f} on watched training rows"] if disparity.size else []
        )
        return [*gain, str(self.outcome_)]

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train the initial model, then move it towards strong demographic parity.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features; finite numbers.
        y : array-like of shape (n_samples,)
            Two classes; the larger label is class 1.
        sensitive_features : array-like, Series or frame
            One or more sensitive columns; several are crossed. They need not be among the features.
        sample_weight : array-like of shape (n_samples,), optional
            Weight k equals k copies. Whole numbers that are not large are taken so; otherwise rows are drawn in
            proportion to their weight.

        Returns
        -------
        self
            The fitted estimator. Ctrl-C stops training cleanly and keeps the best model so far.
        """
        trainer = self.make_trainer(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        result = trainer.run(
            trainer.budget, average=self.average, verbose=self.verbose, title=f"{self._short} training"
        )
        self.coef_ = result.theta[:, :-1].copy()
        self.intercept_ = result.theta[:, -1].copy()
        self.history_ = result.history
        self.outcome_ = result.outcome
        if trainer.objective.parity == 0.0 < self.parity_weight:
            self.outcome_ = f"the groups of the initial model differ no more than by chance; {result.outcome}"
        self.n_iter_ = result.n_updates
        self._keep(result)
        self._keep_spread(trainer.problem)
        self._remember_training(trainer)
        return self

    def make_trainer(
        self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: ArrayLike | None = None
    ) -> Course:
        """Do everything that ``fit`` does before the first update, for people who want to watch every step.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As for ``fit``.

        Returns
        -------
        Course
            ``advance(n)`` runs n updates, ``theta`` and ``averaged()`` read the parameters. The paper's algorithm
            can also ``switch(...)`` to other rows.
        """
        self._check_parameters()
        went_before = self._former_theta()
        y, classes = two_classes(y, type(self).__name__)
        X, y = self._features(X, y, reset=went_before is None)
        weights = check_weights(sample_weight, size=X.shape[0])
        if weights is not None and not all(weights[y == label].any() for label in classes):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
        groups = self._groups(sensitive_features, X.shape[0])
        spec = groups.to_spec()
        self._check_target(groups, weights)
        if went_before is not None and self.group_specific and groups.labels != vars(self)["groups_"].labels:
            raise ValueError(
                "warm_start with group_specific=True needs the groups of the last fit, in which each has its weights; "
                f"there are {len(went_before)} of those and {len(groups)} groups now. Fit a new estimator."
            )
        sizes, copies = groups.counts, as_copies(weights)
        if copies is not None:
            X, y, groups, weights = X[copies], y[copies], groups.select(copies), None
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

        scaling, scaled, names = Scaling.none(X.shape[1]), X, getattr(self, "feature_names_in_", None)
        if self._uses_memory:
            scaling = Scaling.of(X, weights, centred=getattr(self.estimator, "fit_intercept", True))
            scaled = scaling.apply(X)
        if went_before is not None:
            start = starting_point(vars(self)["initial_estimator_"], X, y, weights, names=names)
        elif self.estimator is None and self._uses_memory:
            start = default_start(scaled, scaling, y, weights)
        else:
            start = starting_point(self.estimator, X, y, weights, names=names)
        scores = sigmoid(np.asarray(X @ start.theta[:-1], dtype=np.float64) + start.theta[-1])
        if np.ptp(scores) == 0.0:
            raise ValueError(
                "The initial model gives every row the same score, so there is nothing to transport: "
                "check that the features vary and that the model was able to learn."
            )
        positive = (y == classes[1]).astype(np.float64)
        self.classes_, self.initial_estimator_ = classes, start.model
        self.groups_, self.group_sizes_ = Groups.from_spec(spec), sizes
        self.target_ = self._target(self._resolved_target, scores, groups, weights)
        problem = TrainingProblem.build(X, positive, groups, self.target_, weights, scaled=scaled)
        objective = self._objective(problem, start, scores, rng)
        if went_before is None:
            went_before = np.tile(start.theta, (len(groups) if self.group_specific else 1, 1))
        return self._trainer(problem, objective, start, went_before, scaling=scaling, scaled=scaled, rng=rng)

    @property
    def _uses_memory(self) -> bool:
        return bool(self.memory) and not np.isinf(self.parity_weight)

    @property
    def _budget(self) -> int:
        return _PLAIN_UPDATES if self.n_updates is None else int(self.n_updates)

    @property
    def _resolved_target(self) -> Any:
        if self.target is not None:
            return self.target
        return EACH_OTHER if self._uses_memory else "barycenter"

    @property
    def _each_other(self) -> bool:
        return isinstance(self._resolved_target, str) and self._resolved_target == EACH_OTHER

    def _former_theta(self) -> NDArray[np.float64] | None:
        """Where a warm start begins, if there was a fit to go on from."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if self.group_specific != (len(self.coef_) > 1):
            raise ValueError("warm_start cannot change group_specific; fit a new estimator.")
        return np.column_stack((self.coef_, self.intercept_))

    def _features(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        with unquoted():
            return validate_data(
                self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2, reset=reset
            )

    def _objective(
        self, problem: TrainingProblem, start: Start, scores: NDArray[np.float64], rng: np.random.Generator
    ) -> Objective:
        dual = self._dual_problem(rng)
        worth, unit = parity_unit(problem, scores, each_other=self._each_other)
        paper = np.isinf(self.parity_weight)
        return Objective(
            parity=1.0 if paper else float(self.parity_weight) * unit,
            anchor=0.0 if paper else 1.0,
            ridge=start.ridge,
            dual=dual,
            dual_step=self._resolved_dual_step(dual),
            each_other=self._each_other,
            worth=worth,
        )

    def _trainer(
        self,
        problem: TrainingProblem,
        objective: Objective,
        start: Start,
        theta: NDArray[np.float64],
        *,
        scaling: Scaling,
        scaled: Any,
        rng: np.random.Generator,
    ) -> Course:
        if not self._uses_memory:
            steps = self._steps(problem, objective, rng)
            seed = int(rng.integers(2**62))
            steps = steps if start.has_intercept else steps.without_intercept()
            return Trainer(
                problem, objective, steps, theta=theta, batch_size=self.batch_size, seed=seed, budget=self._budget
            )
        ridge = np.full(problem.n_columns, start.ridge)
        if self.estimator is not None:
            ridge /= scaling.unit**2
        hold = None
        if self.group_specific and problem.n_columns <= _MOST_WHITENED:
            shared = scaling.to_scaled(start.theta)
            scores = sigmoid(np.asarray(scaled @ shared[:-1], dtype=np.float64) + shared[-1])
            hold = hold_own_weights(scaled, scores, shared, rng)
        steps = self._scaled_steps(problem, objective, scaled, ridge, rng, hold=hold)
        return PictureTrainer(
            problem,
            objective,
            steps if start.has_intercept else steps.without_intercept(),
            theta=theta,
            batch_size=self.batch_size,
            seed=int(rng.integers(2**62)),
            n_updates=self.n_updates,
            scaling=scaling,
            ridge=ridge,
            origin=start.theta,
            hold=hold,
        )

    def _steps(self, problem: TrainingProblem, objective: Objective, rng: np.random.Generator) -> ParameterSteps:
        if self.parameter_step is not None:
            return plain_steps(float(self.parameter_step), problem.n_columns)
        return automatic_steps(
            problem.X,
            problem.groups.rows,
            batch_size=self.batch_size,
            n_updates=self._budget,
            weight=objective.anchor + objective.parity,
            ridge=objective.anchor * objective.ridge,
            rng=rng,
        )

    def _scaled_steps(
        self,
        problem: TrainingProblem,
        objective: Objective,
        scaled: Any,
        ridge: NDArray[np.float64],
        rng: np.random.Generator,
        *,
        hold: NDArray[np.float64] | None,
    ) -> ParameterSteps:
        if self.parameter_step is not None:
            return plain_steps(float(self.parameter_step), problem.n_columns)
        weight = objective.weight(len(problem.groups))
        if problem.n_columns <= _MOST_WHITENED:
            return whitened_steps(
                scaled,
                problem.groups.rows,
                batch_size=self.batch_size,
                weight=weight,
                ridge=ridge,
                own_weights=self.group_specific,
                rng=rng,
                hold=hold,
            )
        return automatic_steps(
            scaled,
            problem.groups.rows,
            batch_size=self.batch_size,
            n_updates=self._budget,
            weight=weight,
            ridge=ridge,
            rng=rng,
        )

    def _keep_spread(self, problem: TrainingProblem) -> None:
        """Keep the map that gives trained scores the initial spread, for `spread` to be set after ``fit``, too."""
        trained = np.empty(len(problem.labels))
        own = len(self.coef_) > 1
        for a, rows in enumerate(problem.groups.rows if own else [np.arange(len(trained))]):
            trained[rows] = problem.X[rows] @ self.coef_[a] + self.intercept_[a]
        start = self.initial_estimator_
        initial = np.asarray(problem.X @ np.ravel(start.coef_) + np.ravel(start.intercept_)[0], dtype=np.float64)
        self.spread_ = spread_points(sigmoid(trained), sigmoid(initial), problem.groups.rows, problem.weights)

    def _keep(self, result: Result) -> None:
        """Keep what only a subclass has."""

    # ---------------------------------------------------------------- checks

    def _check_parameters(self) -> None:
        check_real(self.parity_weight, name="parity_weight", finite=False)
        if self.n_updates is not None:
            check_count(self.n_updates, name="n_updates")
        check_count(self.batch_size, name="batch_size")
        check_count(self.min_size, name="min_size")
        check_real(self.amount, name="amount", most=1.0)
        check_choice(self.spread, SPREADS, name="spread")
        for name in ("average", "group_specific", "memory", "verbose", "warm_start"):
            check_flag(getattr(self, name), name=name)
        if self.parameter_step is not None:
            check_real(self.parameter_step, name="parameter_step", strict=True)
        check_stream_parameters(self.half_life, self.new_groups)

    def _groups(self, sensitive_features: Any, n_rows: int) -> Groups:
        if sensitive_features is None:
            raise ValueError(
                f"{type(self).__name__} needs sensitive_features: the column or columns that define groups."
            )
        groups = make_groups(sensitive_features, grouping=self.grouping, missing=self.missing)
        if groups.n_rows != n_rows:
            raise ValueError(f"sensitive_features has {groups.n_rows} rows, but X has {n_rows}.")
        groups.require(min_size=self.min_size, at_least=2)
        if self.group_specific and groups.overlapping:
            raise ValueError("group_specific=True needs groups that do not overlap: use grouping='crossed'.")
        return groups

    def _check_target(self, groups: Groups, weights: NDArray[np.float64] | None) -> None:
        """Raise for a target or weights that cannot work, before anything is trained."""
        if weights is not None and not all(weights[rows].sum() > 0 for rows in groups.rows):
            raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
        if self._each_other:
            if not self._uses_memory:
                raise ValueError(
                    f"target={EACH_OTHER!r} needs memory=True and a finite parity_weight; name a fixed target."
                )
            return
        stand_ins = [Sample.from_values([0.5])] * len(groups)
        resolve_target(self._resolved_target, stand_ins, groups.counts, labels=groups.labels, names=groups.names)

    @staticmethod
    def _target(
        target: Any, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        def sample(rows: Any) -> Sample:
            return Sample.from_values(scores[rows], None if weights is None else weights[rows])

        samples = [sample(r) for r in groups.rows]
        if isinstance(target, str) and target == EACH_OTHER:
            # What every group is as near to as to any other: nobody is moved to it, but pictures need it.
            return w2_barycenter(samples).equal_mass(_TARGET_SIZE)
        resolved = resolve_target(
            target,
            samples,
            [len(r) if weights is None else weights[r].sum() for r in groups.rows],
            labels=groups.labels,
            names=groups.names,
            everyone=sample(slice(None)),
        )
        return resolved.equal_mass(_TARGET_SIZE)

    # ---------------------------------------------------------------- predicting

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the logit of class 1's probability.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        sensitive_features : array-like, optional
            Needed when ``group_specific=True``, unused otherwise. A group not seen in ``fit`` raises.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        amount = check_real(self.amount, name="amount", most=1.0)
        with unquoted():
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        moved = self._moved_logits(X, sensitive_features)
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            moved = spread_logits(moved, self._spread_points)
        if amount == 1.0:
            return moved
        model = self.initial_estimator_
        initial = np.asarray(X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0], dtype=np.float64)
        return _mixed_logits(initial, moved, amount)

    @property
    def _spread_points(self) -> NDArray[np.float64]:
        points = getattr(self, "spread_", None)
        if points is None:
            raise ValueError("This model was fitted before spread='initial' was known; fit it again.")
        return np.asarray(points)

    def _moved_logits(self, X: Any, sensitive_features: Any) -> NDArray[np.float64]:
        if len(self.coef_) == 1:
            return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)
        if sensitive_features is None:
            raise ValueError("This model has weights for each group (group_specific=True): pass sensitive_features.")
        groups = self.groups_.encode(sensitive_features)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        logits = np.empty(X.shape[0])
        for a, rows in enumerate(groups.rows):
            logits[rows] = X[rows] @ self.coef_[a] + self.intercept_[a]
        return logits

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the probabilities of the two classes; see ``decision_function`` for the parameters."""
        positive = sigmoid(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack((1.0 - positive, positive))

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return class 1 where its probability is above one half."""
        above = self.decision_function(X, sensitive_features=sensitive_features) > 0.0
        return np.asarray(self.classes_[above.astype(int)])

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        with unquoted():
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _mixed_logits(initial: NDArray[np.float64], moved: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
    """Return the logit of the mean of two probabilities, exact also where both are near 0 or 1."""
    with np.errstate(divide="ignore"):  # log of 0: the other one has all the weight
        less, more = np.log1p(-amount), np.log(amount)
    yes = np.logaddexp(less - np.logaddexp(0.0, -initial), more - np.logaddexp(0.0, -moved))
    no = np.logaddexp(less - np.logaddexp(0.0, initial), more - np.logaddexp(0.0, moved))
    return np.asarray(yes - no)
