"""What the two transport classifiers share: a linear logistic model moved towards parity."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fairtransport._validation import check_count, check_flag, check_length, check_real, check_weights
from fairtransport.estimators.labels import two_classes
from fairtransport.estimators.problem import TrainingProblem, sigmoid
from fairtransport.estimators.start import Start, starting_point
from fairtransport.estimators.steps import ParameterSteps, automatic_steps, plain_steps
from fairtransport.estimators.trainer import Objective, Result, Trainer
from fairtransport.groups import Groups, make_groups
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.transport.dual import DualProblem

__all__ = ["LinearTransportClassifier"]

# The target distribution is kept as this many scores of equal mass: fine enough (W1 error below
# 1 / 4096), cheap to draw from, and no list of people's scores.
_TARGET_SIZE = 4096


class LinearTransportClassifier(ClassifierMixin, BaseEstimator):
    """Base of COT and DOT; subclasses say what the dual problem is."""

    _short = ""

    # ---------------------------------------------------------------- what subclasses say

    @abstractmethod
    def _dual_problem(self, rng: np.random.Generator) -> DualProblem | None:
        """Return the continuous dual problem, or None for discrete transport."""

    @abstractmethod
    def _resolved_dual_step(self, problem: DualProblem | None) -> float: ...

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
            Rows are drawn in proportion to their weight; weight k equals k copies.

        Returns
        -------
        self
            The fitted estimator. Ctrl-C stops training cleanly and keeps the best model so far.
        """
        trainer = self.make_trainer(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        result = trainer.run(
            self.n_updates, average=self.average, verbose=self.verbose, title=f"{self._short} training"
        )
        self.coef_ = result.theta[:, :-1].copy()
        self.intercept_ = result.theta[:, -1].copy()
        self.history_ = result.history
        self.outcome_ = result.outcome
        self.n_iter_ = result.n_updates
        self._keep(result)
        return self

    def make_trainer(
        self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: ArrayLike | None = None
    ) -> Trainer:
        """Do everything that ``fit`` does before the first update, for people who want to watch every step.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As for ``fit``.

        Returns
        -------
        Trainer
            ``advance(n)`` runs n updates, ``theta`` and ``averaged()`` read the parameters, ``switch(...)``
            goes on with other rows.
        """
        self._check_parameters()
        y, self.classes_ = two_classes(y, type(self).__name__)
        X, y = self._features(X, y)
        weights = check_weights(sample_weight, size=X.shape[0])
        groups = self._groups(sensitive_features, X.shape[0])
        spec = groups.to_spec()
        self._check_target(groups, weights)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

        start = starting_point(self.estimator, X, y, weights)
        scores = sigmoid(np.asarray(X @ start.theta[:-1], dtype=np.float64) + start.theta[-1])
        if np.ptp(scores) == 0.0:
            raise ValueError(
                "The initial model gives every row the same score, so there is nothing to transport: "
                "check that the features vary and that the model was able to learn."
            )
        self.initial_estimator_ = start.model
        self.groups_ = Groups.from_spec(spec)
        self.target_ = self._target(scores, groups, weights)
        problem = TrainingProblem.build(X, (y == self.classes_[1]).astype(np.float64), groups, self.target_, weights)
        return self._trainer(problem, start, rng)

    def _features(self, X: Any, y: Any) -> tuple[Any, Any]:
        try:
            return validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
        # scikit-learn's text would quote the cell, which may be somebody's name.
        raise ValueError("X has text; encode it as numbers first, for instance with OneHotEncoder.")

    def _trainer(self, problem: TrainingProblem, start: Start, rng: np.random.Generator) -> Trainer:
        paper = np.isinf(self.parity_weight)
        dual = self._dual_problem(rng)
        objective = Objective(
            parity=1.0 if paper else float(self.parity_weight),
            anchor=0.0 if paper else 1.0,
            ridge=start.ridge,
            dual=dual,
            dual_step=self._resolved_dual_step(dual),
        )
        steps = self._steps(problem, objective, rng)
        if not start.has_intercept:
            steps.scale[-1] = 0.0
        return Trainer(
            problem,
            objective,
            steps,
            theta=np.tile(start.theta, (len(problem.groups) if self.group_specific else 1, 1)),
            batch_size=self.batch_size,
            seed=int(rng.integers(2**62)),
        )

    def _steps(self, problem: TrainingProblem, objective: Objective, rng: np.random.Generator) -> ParameterSteps:
        if self.parameter_step is not None:
            return plain_steps(float(self.parameter_step), problem.n_columns)
        return automatic_steps(
            problem.X,
            problem.groups.rows,
            batch_size=self.batch_size,
            n_updates=self.n_updates,
            weight=objective.anchor + objective.parity,
            ridge=objective.anchor * objective.ridge,
            rng=rng,
        )

    def _keep(self, result: Result) -> None:
        """Keep what only a subclass has."""

    # ---------------------------------------------------------------- checks

    def _check_parameters(self) -> None:
        check_real(self.parity_weight, name="parity_weight", finite=False)
        check_count(self.n_updates, name="n_updates")
        check_count(self.batch_size, name="batch_size")
        check_count(self.min_size, name="min_size")
        for name in ("average", "group_specific", "verbose"):
            check_flag(getattr(self, name), name=name)
        if self.parameter_step is not None:
            check_real(self.parameter_step, name="parameter_step", strict=True)

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
        stand_ins = [Sample.from_values([0.5])] * len(groups)
        resolve_target(self.target, stand_ins, groups.counts, labels=groups.labels, names=groups.names)

    def _target(
        self, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        def sample(rows: Any) -> Sample:
            return Sample.from_values(scores[rows], None if weights is None else weights[rows])

        target = resolve_target(
            self.target,
            [sample(r) for r in groups.rows],
            [len(r) if weights is None else weights[r].sum() for r in groups.rows],
            labels=groups.labels,
            names=groups.names,
            everyone=sample(slice(None)),
        )
        return target.equal_mass(_TARGET_SIZE)

    # ---------------------------------------------------------------- predicting

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the logit of class 1.

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
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
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
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
