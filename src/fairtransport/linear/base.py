"""What the two transport classifiers share: a linear logistic model moved towards parity."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fairtransport._sklearn.error_redaction import redacted_errors
from fairtransport._sklearn.fitted_summary import fitted_summary_html
from fairtransport._sklearn.labels import two_classes
from fairtransport._sklearn.streaming import check_stream_parameters
from fairtransport._validation import check_choice, check_count, check_flag, check_length, check_real, check_weights
from fairtransport._warnings import FairnessWarning
from fairtransport.criteria import EACH_OTHER, demographic_parity, weigh_by_reliability
from fairtransport.groups import Groups, make_groups
from fairtransport.linear._information import (
    MATERIAL,
    Judge,
    before_and_after,
    warn_of_losses,
    warn_of_own_weights,
)
from fairtransport.linear._initial_model import starting_point
from fairtransport.linear._spread_map import spread_logits, spread_points
from fairtransport.linear._training import LinearFit, LinearFitter
from fairtransport.linear._training_data import TrainingData
from fairtransport.linear.online._partial_fit import AdjustsLinearModel
from fairtransport.linear.online.state import widened_weights
from fairtransport.linear.solvers._sgd import Objective, Result, Trainer
from fairtransport.linear.solvers._step_sizes import automatic_steps, plain_steps
from fairtransport.linear.solvers.settings import SgdSettings, sgd_settings
from fairtransport.linear.solvers.sgd_problem import TrainingProblem, as_copies
from fairtransport.linear.weight_path import PATH_COLUMNS, AutomaticWeight
from fairtransport.penalties import DiscretePenalty
from fairtransport.penalties.base import SCALES
from fairtransport.transport.line import Sample
from fairtransport.transport.logistic import sigmoid
from fairtransport.transport.targets import TARGET_SIZE, resolve_target, w2_barycenter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.penalties import TransportPenalty
    from fairtransport.transport.dual import DualProblem

__all__ = ["LinearTransportClassifier"]


#: Whose spread the scores have.
SPREADS = ("trained", "initial")


class LinearTransportClassifier(AdjustsLinearModel, ClassifierMixin, BaseEstimator):
    """Base of the transport classifiers; subclasses say which distance is penalised."""

    _short = ""
    _batch_size = 100

    # ---------------------------------------------------------------- what subclasses say

    @abstractmethod
    def _penalty(self, *, n_slices: int | None = None) -> TransportPenalty:
        """Return a new penalty."""

    @abstractmethod
    def _dual_problem(self, settings: SgdSettings, rng: np.random.Generator) -> DualProblem | None:
        """Return the paper's dual problem with drawn features, or None for discrete transport."""

    @abstractmethod
    def _resolved_dual_step(self, settings: SgdSettings, problem: DualProblem | None) -> float: ...

    def _summary(self) -> list[str]:
        """Return how training went, and what was gained and kept."""
        figures = vars(self).get("before_after_")
        if figures is None:
            return [str(self.outcome_)]
        kept = f"{self.information_kept_:.0%} of the information kept"
        read = [f"{name.replace('_', ' ')} {figures[name][0]:.3f} to {figures[name][1]:.3f}" for name in _SHOWN]
        return [f"{', '.join(read)} on training rows; {kept}", str(self.outcome_)]

    def _html_repr(self) -> str:
        return str(super()._html_repr()) + fitted_summary_html(vars(self).get("groups_"), self._summary)

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
            Weight k equals k copies of a row.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        data = self._validated(X, y, sensitive_features, sample_weight)
        if self._sgd is not None:
            return self._fit_sgd(data, self._sgd)
        fitter = self._fitter(data)
        title = f"{self._short} training"
        if self._is_automatic:
            limit = None if self.max_disparity is None else float(self.max_disparity)
            found = fitter.fit_automatic(AutomaticWeight(limit), verbose=self.verbose, title=title)
        else:
            found = fitter.fit(float(self.parity_weight), verbose=self.verbose, title=title)
        self._take(found, data)
        return self

    def fit_path(
        self,
        X: Any,
        y: Any,
        parity_weights: Sequence[float],
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Train with each of several weights, each fit begun at the one before.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As for ``fit``.
        parity_weights : sequence of float
            Ascending.

        Returns
        -------
        list of estimators
            Fitted copies, one for each weight. It costs less than as many calls of ``fit``.
        """
        weights = [check_real(weight, name="parity_weights") for weight in parity_weights]
        if weights != sorted(weights):
            raise ValueError("parity_weights must ascend: each fit begins at the one before.")
        if self._sgd is not None:
            raise ValueError("fit_path needs solver='lbfgs'.")
        model = copy(self).set_params(parity_weight="auto", max_disparity=None)
        model._check_parameters()  # noqa: SLF001
        data, models = self._validated(X, y, sensitive_features, sample_weight), []
        for found in self._fitter(data).fit_path(weights):
            model = copy(self).set_params(parity_weight=found.weight, max_disparity=None)
            model._take(found, data)  # noqa: SLF001
            models.append(model)
        return models

    def at(
        self,
        *,
        max_disparity: float | None = None,
        max_rank_disparity: float | None = None,
        weight: float | None = None,
    ) -> Self:
        """Return the model of another point of ``path_``, without training again.

        Parameters
        ----------
        max_disparity, max_rank_disparity : float, optional
            The smallest weight at which the disparity (SPDD), or the rank disparity, is at most this.
        weight : float, optional
            The nearest weight of the path. Exactly one of the three is given.

        Returns
        -------
        LinearTransportClassifier
            A copy. It begins anew with a stream.
        """
        check_is_fitted(self)
        given = {"disparity": max_disparity, "rank_disparity": max_rank_disparity, "weight": weight}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise ValueError("Give exactly one of max_disparity, max_rank_disparity and weight.")
        limit = check_real(given[named[0]], name=named[0] if weight is not None else f"max_{named[0]}")
        if not self.path_["weight"].size:
            raise ValueError("This model has no path: solver='sgd' trains with one weight.")
        if weight is not None:
            index = int(np.abs(np.log1p(self.path_["weight"]) - np.log1p(limit)).argmin())
        else:
            below = np.flatnonzero(self.path_[named[0]] <= limit)
            if not below.size:
                raise ValueError(
                    f"No point of the path has a {named[0].replace('_', ' ')} of {limit:g} or less; the lowest is "
                    f"{self.path_[named[0]].min():.4g}."
                )
            index = int(below[0])
        model = copy(self)
        theta = self.path_["theta"][index]
        own = widened_weights(theta[:-1], len(self.groups_))  # groups that a stream has brought since
        model.coef_, model.intercept_ = own[:, :-1].copy(), own[:, -1].copy()
        model.common_coef_, model.common_intercept_ = theta[-1, :-1].copy(), float(theta[-1, -1])
        model.parity_weight_ = float(self.path_["weight"][index])
        model.information_kept_ = float(self.path_["information_kept"][index])
        model.spread_ = self.path_["spread"][index]
        model.outcome_ = f"weight {model.parity_weight_:g} of the path"
        for name in ("adjusting_", "before_after_"):
            if hasattr(model, name):
                delattr(model, name)
        return model

    def _fitter(self, data: TrainingData) -> LinearFitter:
        return LinearFitter(
            data,
            self.estimator,
            make_penalty=self._penalty,
            make_target=lambda scores, rows: (
                None if self._each_other else self._target(self._resolved_target, scores, rows.groups, rows.weights)
            ),
            own_weights=bool(self.group_specific),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            names=getattr(self, "feature_names_in_", None),
        )

    def _take(self, found: LinearFit, data: TrainingData) -> None:
        """Keep what training left."""
        point, measures = found.point, found.point.measures
        self.classes_, self.initial_estimator_ = data.classes, found.start.model
        self.groups_, self.group_sizes_ = Groups.from_spec(data.groups.to_spec()), data.groups.counts
        self.coef_, self.intercept_ = found.theta[:, :-1].copy(), found.theta[:, -1].copy()
        self.common_coef_, self.common_intercept_ = found.common[:-1].copy(), float(found.common[-1])
        shown = self._target(EACH_OTHER, found.initial_scores, data.groups, data.weights)
        self.target_ = shown if found.target is None else found.target
        # Looking at the initial model, where it is the answer, counts as one: scikit-learn's contract.
        self.parity_weight_, self.n_iter_ = found.weight, max(1, point.result.n_iter)
        self.information_kept_ = measures.information_kept
        self.before_after_ = found.figures
        records = np.array(point.result.records, dtype=np.float64).reshape(-1, 2)
        self.history_ = {
            "update": np.arange(1.0, len(records) + 1.0), "disparity": records[:, 0], "loss": records[:, 1],
        }  # fmt: skip
        self.spread_ = spread_points(found.scores, found.initial_scores, data.groups.rows, data.weights)
        self.path_ = found.path.table()
        self.path_["theta"] = np.array([np.vstack((theta, common)) for theta, common in found.path_weights])
        self.path_["spread"] = np.array([self._path_spread(*weights, found, data) for weights in found.path_weights])
        self.outcome_ = self._outcome(found)
        self._keep_penalty(found)
        self._remember_fit(found, data)

    def _path_spread(
        self, theta: NDArray[np.float64], common: NDArray[np.float64], found: LinearFit, data: TrainingData
    ) -> NDArray[np.float64]:
        scores = sigmoid(_logits(data.X, theta, common, data.groups))
        points = spread_points(scores, found.initial_scores, data.groups.rows, data.weights)
        # Every point of the path has as many knots, for one array.
        levels = np.linspace(0.0, 1.0, _PATH_KNOTS)
        knots = np.interp(levels, np.linspace(0.0, 1.0, points.shape[1]), points[0])
        return np.vstack((knots, np.interp(knots, *points)))

    def _outcome(self, found: LinearFit) -> str:
        """Say in words what happened, and warn where it has to be said aloud."""
        result, measures = found.point.result, found.point.measures
        if not found.comparisons.active.size and (self._is_automatic or self.parity_weight > 0):
            return "the groups of the initial model differ no more than by chance; nothing was moved"
        ended = f"converged after {result.n_iter} iterations"
        if not result.converged:
            ended = f"stopped after max_iter={self.max_iter} iterations, before convergence"
            warnings.warn(
                f"The solver {ended}. Raise max_iter or tol; the model so far is kept.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if found.weight > 0.0:
            remark = warn_of_losses(measures.information_kept, found.figures, measures.excess, stacklevel=5)
        else:
            remark = warn_of_own_weights(measures.information_kept, stacklevel=5)
        if found.reason:
            ended = f"{found.reason} (parity_weight {found.weight:.3g}); {ended}"
            if not found.reached:
                self._warn_unreached(found)
        return f"{ended}; {remark}" if remark else ended

    def _warn_unreached(self, found: LinearFit) -> None:
        measures = found.point.measures
        if self.max_disparity is not None:
            text = f"max_disparity={self.max_disparity:g} was not reached on training rows: {measures.disparity:.4g}"
        elif measures.excess > 1.3 and measures.rank_distance > MATERIAL:
            text = (
                f"at equal shares selected, groups still differ by {100 * measures.rank_distance:.1f} percentage "
                f"points, {measures.excess:.1f} times what chance shows"
            )
        else:
            return
        further = "Repair (QuantileRepairClassifier)"
        if not self.group_specific:
            further = "Own weights for each group (group_specific=True) or repair (QuantileRepairClassifier)"
        warnings.warn(
            f"Parity was not reached: {text}; {found.reason}. {further} with the group at hand goes further.",
            FairnessWarning,
            stacklevel=5,
        )

    def _keep_penalty(self, found: LinearFit) -> None:
        """Keep what only a subclass has."""

    # ---------------------------------------------------------------- the paper's algorithm

    def make_trainer(
        self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: ArrayLike | None = None
    ) -> Trainer:
        """Do everything that ``fit`` with ``solver="sgd"`` does before the first update, to follow every step.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As for ``fit``.

        Returns
        -------
        Trainer
            ``advance(n)`` runs n updates, ``theta`` and ``averaged()`` read the parameters, ``switch(...)`` goes on
            with other rows.
        """
        self._check_parameters()
        settings = self._sgd
        if settings is None:
            raise ValueError("make_trainer is for solver='sgd', which moves in small steps.")
        return self._trainer(self._validated(X, y, sensitive_features, sample_weight), settings)

    def _trainer(self, data: TrainingData, settings: SgdSettings) -> Trainer:
        rng = np.random.default_rng(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))
        start = starting_point(
            self.estimator, data.X, data.y, data.weights, names=getattr(self, "feature_names_in_", None)
        )
        scores = sigmoid(np.asarray(data.X @ start.theta[:-1], dtype=np.float64) + start.theta[-1])
        if np.ptp(scores) == 0.0:
            raise ValueError(
                "The initial model gives every row the same score, so there is nothing to transport: "
                "check that the features vary and that the model was able to learn."
            )
        self.classes_, self.initial_estimator_ = data.classes, start.model
        self.groups_, self.group_sizes_ = Groups.from_spec(data.groups.to_spec()), data.groups.counts
        self.target_ = self._target(self._resolved_target, scores, data.groups, data.weights)
        problem = TrainingProblem.build(data.X, data.positive, data.groups, self.target_, data.weights)
        objective = self._objective(data, scores, start.ridge, settings, rng)
        theta = np.tile(start.theta, (len(data.groups) if self.group_specific else 1, 1))
        batch_size = settings.batch_size or self._batch_size
        if settings.parameter_step is not None:
            steps = plain_steps(float(settings.parameter_step), problem.n_columns)
        else:
            steps = automatic_steps(
                problem.X,
                problem.groups.rows,
                batch_size=batch_size,
                n_updates=settings.n_updates,
                weight=objective.anchor + objective.parity,
                ridge=objective.anchor * objective.ridge,
                rng=rng,
            )
        steps = steps if start.has_intercept else steps.without_intercept()
        seed = int(rng.integers(2**62))
        return Trainer(
            problem, objective, steps, theta=theta, batch_size=batch_size, seed=seed, budget=settings.n_updates
        )

    def _objective(
        self,
        data: TrainingData,
        scores: NDArray[np.float64],
        ridge: float,
        settings: SgdSettings,
        rng: np.random.Generator,
    ) -> Objective:
        dual, paper = self._dual_problem(settings, rng), np.isinf(self._sgd_weight)
        weight, unit = 1.0, 1.0
        if not paper:
            weight, unit = self._sgd_weight, self._sgd_unit(data, scores)
        return Objective(
            parity=weight * unit,
            anchor=0.0 if paper else 1.0,
            ridge=ridge,
            dual=dual,
            dual_step=self._resolved_dual_step(settings, dual),
        )

    def _sgd_unit(self, data: TrainingData, scores: NDArray[np.float64]) -> float:
        """Return the factor of the sum of distances to the target at weight 1."""
        comparisons = demographic_parity(data.groups, target=self.target_, row_weights=data.weights)
        weighed = weigh_by_reliability(comparisons, scores)
        judge = Judge(data.positive, data.shares, comparisons, scores)
        measured = DiscretePenalty(huber_width=0.0, scale="score").value_and_gradient(scores, comparisons)
        reliable = float(weighed.weights @ measured.distances)
        return judge.information * reliable / measured.value**2 if measured.value > 0.0 else 0.0

    def _fit_sgd(self, data: TrainingData, settings: SgdSettings) -> Self:
        trainer = self._trainer(data, settings)
        result = trainer.run(
            trainer.budget, average=settings.average, verbose=self.verbose, title=f"{self._short} training"
        )
        self.coef_, self.intercept_ = result.theta[:, :-1].copy(), result.theta[:, -1].copy()
        common = result.theta.mean(axis=0)
        self.common_coef_, self.common_intercept_ = common[:-1].copy(), float(common[-1])
        self.history_, self.n_iter_, self.parity_weight_ = result.history, result.n_updates, self._sgd_weight
        self.path_ = {name: np.zeros(0) for name in PATH_COLUMNS}
        initial = self._initial_scores(data.X)
        trained = sigmoid(_logits(data.X, result.theta, common, data.groups))
        self.spread_ = spread_points(trained, initial, data.groups.rows, data.weights)
        shares = data.shares
        pairwise = weigh_by_reliability(demographic_parity(data.groups, row_weights=data.weights), initial)
        judge = Judge(data.positive, shares, pairwise, initial)
        measures = judge.measure(trained)
        self.information_kept_, self.before_after_ = measures.information_kept, before_and_after(judge, trained)
        remark = warn_of_losses(self.information_kept_, self.before_after_, measures.excess, stacklevel=4)
        self.outcome_ = f"{result.outcome}; {remark}" if remark else result.outcome
        if trainer.objective.parity == 0.0 < self._sgd_weight:
            self.outcome_ = f"the groups of the initial model differ no more than by chance; {result.outcome}"
        self._keep(result)
        self._remember_training(trainer, data, judge.information)
        return self

    def _keep(self, result: Result) -> None:
        """Keep what only a subclass has."""

    @property
    def _sgd_weight(self) -> float:
        return np.inf if isinstance(self.parity_weight, str) else float(self.parity_weight)

    @property
    def _sgd(self) -> SgdSettings | None:
        return sgd_settings(self.solver)

    # ---------------------------------------------------------------- what is given

    def _validated(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> TrainingData:
        """Check what ``fit`` was given."""
        y, classes = two_classes(y, type(self).__name__)
        X, y = self._features(X, y)
        weights = check_weights(sample_weight, size=X.shape[0])
        if weights is not None and not all(weights[y == label].any() for label in classes):
            raise ValueError("One of the two classes has total sample_weight 0; give rows of both classes weight.")
        groups = self._groups(sensitive_features, X.shape[0], weights)
        self._check_target(groups, weights)
        groups.to_spec()  # raises for labels that no model could keep
        data = TrainingData(X, y, classes, groups, weights)
        copies = as_copies(weights)
        if copies is not None:
            data = TrainingData(X[copies], y[copies], classes, groups.select(copies))
        return data

    @property
    def _is_automatic(self) -> bool:
        return self.max_disparity is not None or isinstance(self.parity_weight, str)

    @property
    def _resolved_target(self) -> Any:
        """What groups are compared with; the stochastic solver needs a fixed distribution."""
        if self._sgd is not None and isinstance(self.target, str) and self.target == EACH_OTHER:
            return "barycenter"
        return self.target

    @property
    def _resolved_scale(self) -> str:
        return str(self.scale) if self._sgd is None else "score"

    @property
    def _each_other(self) -> bool:
        return isinstance(self._resolved_target, str) and self._resolved_target == EACH_OTHER

    def _features(self, X: Any, y: Any) -> tuple[Any, Any]:
        with redacted_errors():
            return validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)

    # ---------------------------------------------------------------- checks

    def _check_parameters(self) -> None:
        self._check_solver()
        check_count(self.min_group_size, name="min_group_size")
        check_real(self.amount, name="amount", most=1.0)
        check_choice(self.spread, SPREADS, name="spread")
        for name in ("group_specific", "verbose"):
            check_flag(getattr(self, name), name=name)
        check_stream_parameters(self.half_life, self.new_groups)

    def _check_solver(self) -> None:
        settings = self._sgd
        if isinstance(self.parity_weight, str):
            check_choice(self.parity_weight, ("auto",), name="parity_weight")
        else:
            check_real(self.parity_weight, name="parity_weight", finite=settings is None)
        if self.max_disparity is not None:
            check_real(self.max_disparity, name="max_disparity")
            if not isinstance(self.parity_weight, str):
                raise ValueError("max_disparity chooses the weight: leave parity_weight at 'auto', or it at None.")
            if settings is not None:
                raise ValueError("max_disparity needs the path of solver='lbfgs'.")
        check_real(self.tol, name="tol", strict=True)
        check_count(self.max_iter, name="max_iter")
        check_choice(self.scale, SCALES, name="scale")

    def _groups(self, sensitive_features: Any, n_rows: int, weights: NDArray[np.float64] | None = None) -> Groups:
        if sensitive_features is None:
            raise ValueError(
                f"{type(self).__name__} needs sensitive_features: the column or columns that define groups."
            )
        groups = make_groups(sensitive_features, grouping=self.grouping, missing=self.missing)
        if groups.n_rows != n_rows:
            raise ValueError(f"sensitive_features has {groups.n_rows} rows, but X has {n_rows}.")
        sizes = None if weights is None else [np.count_nonzero(weights[rows]) for rows in groups.rows]
        groups = groups.settle(self.small_groups, self.min_group_size, sizes)
        groups.require(min_size=1, at_least=2)
        if self.group_specific and groups.overlapping:
            raise ValueError("group_specific=True needs groups that do not overlap: use grouping='crossed'.")
        return groups

    def _check_target(self, groups: Groups, weights: NDArray[np.float64] | None) -> None:
        """Raise for a target or weights that cannot work, before anything is trained."""
        if weights is not None and not all(weights[rows].sum() > 0 for rows in groups.rows):
            raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
        if self._each_other:
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
        sizes = [len(r) if weights is None else weights[r].sum() for r in groups.rows]
        if isinstance(target, str) and target == EACH_OTHER:
            # Nobody is moved to it; it stands beside the groups in displays and streams.
            return w2_barycenter(samples, sizes).equal_mass(TARGET_SIZE)
        resolved = resolve_target(
            target, samples, sizes, labels=groups.labels, names=groups.names, everyone=sample(slice(None))
        )
        return resolved.equal_mass(TARGET_SIZE)

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
        with redacted_errors():
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        moved = self._moved_logits(X, sensitive_features)
        if check_choice(self.spread, SPREADS, name="spread") == "initial":
            moved = spread_logits(moved, self.spread_)
        if amount == 1.0:
            return moved
        model = self.initial_estimator_
        initial = np.asarray(X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0], dtype=np.float64)
        return _mixed_logits(initial, moved, amount)

    def _moved_logits(self, X: Any, sensitive_features: Any) -> NDArray[np.float64]:
        if len(self.coef_) == 1:
            return np.asarray(X @ self.coef_[0] + self.intercept_[0], dtype=np.float64)
        if sensitive_features is None:
            raise ValueError("This model has weights for each group (group_specific=True): pass sensitive_features.")
        groups = self.groups_.encode(sensitive_features)
        check_length(range(groups.n_rows), size=X.shape[0], name="sensitive_features")
        theta = np.column_stack((self.coef_, self.intercept_))
        return _logits(X, theta, np.append(self.common_coef_, self.common_intercept_), groups)

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
        with redacted_errors():
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


_SHOWN = ("disparity", "rank_disparity", "auc")
_PATH_KNOTS = 129


def _logits(X: Any, theta: NDArray[np.float64], common: NDArray[np.float64], groups: Groups) -> NDArray[np.float64]:
    """Return the logit of each row by its group's weights, or by the common ones where it is in no group."""
    if len(theta) == 1:
        return np.asarray(X @ theta[0, :-1] + theta[0, -1], dtype=np.float64)
    logits = np.asarray(X @ common[:-1] + common[-1], dtype=np.float64)
    for own, rows in zip(theta, groups.rows, strict=True):
        logits[rows] = X[rows] @ own[:-1] + own[-1]
    return logits


def _mixed_logits(initial: NDArray[np.float64], moved: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
    """Return the logit of the mean of two probabilities, exact also where both are near 0 or 1."""
    with np.errstate(divide="ignore"):  # log of 0: the other one has all the weight
        less, more = np.log1p(-amount), np.log(amount)
    yes = np.logaddexp(less - np.logaddexp(0.0, -initial), more - np.logaddexp(0.0, -moved))
    no = np.logaddexp(less - np.logaddexp(0.0, initial), more - np.logaddexp(0.0, moved))
    return np.asarray(yes - no)
