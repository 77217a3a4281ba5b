"""What differs between LightGBM and XGBoost: how to train with an objective of one's own, and how to read margins."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fairtransport._extras import load_extra
from fairtransport._validation import check_real

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.boosting._early_stopping import Stopping

__all__ = ["Library", "Training", "Watched", "default_estimator", "library_of"]

_ROUNDS, _COLUMNS = 200, 0.5  # of the default estimator; seeing all columns costs .002 on Adult's training rows


class Relay:
    """A call that libraries may copy as they like: every copy is this one, until it is cut.

    LightGBM copies its objective and metric before training, and fitted estimators keep theirs. What is behind a relay
    holds the training rows' groups; once cut, nothing of them is left in the fitted model.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call: Callable[..., Any] | None = call

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def cut(self) -> None:
        """Let go of what is behind."""
        self.call = None

    def __call__(self, labels: Any, margins: Any, sample_weight: Any = None) -> Any:
        """Hand the call on."""
        if self.call is None:
            raise RuntimeError("This model was trained by TransportBoostingClassifier; fit that again instead.")
        return self.call(labels, margins, sample_weight)


class Watched:
    """Rows beside the training rows, on which a run is followed.

    Parameters
    ----------
    X, y
        As for ``fit``; y is 0 and 1.
    stopping : Stopping
        ``measure`` takes the margins of these rows after a round; ``done`` returns None to go on, or the number of the
        best round (from 1) to stop.
    """

    def __init__(self, X: Any, y: Any, stopping: Stopping) -> None:
        self.X, self.y, self.stopping = X, y, stopping
        self.measure, self.done = stopping.measure, stopping.done


class Training:
    """One training: rows, objective, and the rows it is watched on.

    Parameters
    ----------
    X, y, sample_weight
        As for ``fit``; y is 0 and 1.
    rate : float
        Share of class 1, where margins begin.
    objective : callable
        Takes labels, margins and weights.
    watched : Watched, optional
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: NDArray[np.float64] | None,
        *,
        rate: float,
        objective: Callable[..., Any],
        watched: Watched | None = None,
    ) -> None:
        self.X, self.y, self.sample_weight, self.rate, self.objective = X, y, sample_weight, rate, objective
        self.watched = watched

    @property
    def offset(self) -> float:
        """The margin of the rate."""
        return math.log(self.rate / (1.0 - self.rate))


class Library(ABC):
    """A boosting library, as the classifier needs it."""

    #: What trees of a quick model are limited by, what must not reach a model of something else than y, and the own
    #: objective.
    small: dict[str, Any]
    neutral: dict[str, Any]
    own: dict[str, Any]

    def quick(self, estimator: Any, n_rounds: int, **settings: Any) -> Any:
        """Return an unfitted estimator of few rounds with the library's own objective, for any labels."""
        known = estimator.get_params()
        wanted = {"n_estimators": n_rounds, **self.neutral, **settings}
        return clone(estimator).set_params(**{name: value for name, value in wanted.items() if name in known})

    def n_rounds(self, estimator: Any) -> int:
        """Count the rounds that an estimator is to be trained for."""
        n_rounds = estimator.get_params().get("n_estimators")
        return 100 if n_rounds is None else int(n_rounds)

    def adapt(
        self,
        estimator: Any,
        classes: NDArray[Any],  # noqa: ARG002 - for those who name them
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """Let an estimator take 0 and 1 for the two classes, and return the weights of its rows.

        ``scale_pos_weight`` is a setting of the libraries' own objectives; here it goes into the weights.
        """
        scale = estimator.get_params().get("scale_pos_weight")
        if scale is None or scale == 1:
            return weights
        estimator.set_params(scale_pos_weight=1)
        ones = np.ones(len(labels)) if weights is None else weights
        return np.asarray(ones * np.where(labels > 0, check_real(scale, name="scale_pos_weight", strict=True), 1.0))

    def plain(self, estimator: Any, training: Training) -> Any:
        """Fit an estimator with the library's own logistic objective."""
        own = {name: value for name, value in self.own.items() if name in estimator.get_params()}
        return estimator.set_params(**own).fit(training.X, training.y, sample_weight=training.sample_weight)

    @abstractmethod
    def train(self, estimator: Any, training: Training) -> Any:
        """Fit an estimator with the objective; the result is one of the library's logistic models."""

    @abstractmethod
    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the logit of class 1."""


class LightGBM(Library):
    """`lightgbm.LGBMClassifier`."""

    small = {"num_leaves": 15}  # noqa: RUF012 - constant
    neutral = {"objective": None, "class_weight": None}  # noqa: RUF012 - constant
    own = {"objective": "binary"}  # noqa: RUF012 - constant

    def adapt(
        self,
        estimator: Any,
        classes: NDArray[Any],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """Let ``class_weight`` go into the weights, too, by the user's own labels."""
        given = estimator.get_params()
        if given.get("boosting", given["boosting_type"]) in {"rf", "random_forest"}:
            raise ValueError("LightGBM's forests (boosting_type='rf') take no objective; use 'gbdt' or 'dart'.")
        if any(given.get(name) for name in ("is_unbalance", "unbalance", "unbalanced_sets")):
            raise ValueError("is_unbalance is a setting of LightGBM's own objective; use class_weight='balanced'.")
        if given["class_weight"] is not None:
            own = compute_sample_weight(given["class_weight"], classes[labels])
            weights = own if weights is None else own * weights
            estimator.set_params(class_weight=None)
        return super().adapt(estimator, classes, labels, weights)

    def train(self, estimator: Any, training: Training) -> Any:
        """Fit; then give the booster the offset and LightGBM's own logistic objective, as it now is complete."""
        objective = Relay(training.objective)
        metric = Relay(lambda _, margins, __: ("objective", watched.measure(margins), False) if watched else None)
        options: dict[str, Any] = {}
        watched = training.watched
        if watched is not None:
            # LightGBM 4.7 took eval_set apart.
            apart = "eval_X" in inspect.signature(estimator.fit).parameters
            rows = {"eval_X": (watched.X,), "eval_y": (watched.y,)} if apart else {"eval_set": [(watched.X, watched.y)]}
            options = {
                **rows,
                "eval_init_score": [np.full(len(watched.y), training.offset)],
                "eval_metric": metric,
                "callbacks": [_lightgbm_stop(watched)],
            }
        estimator.set_params(objective=objective)
        try:
            estimator.fit(
                training.X,
                training.y,
                sample_weight=training.sample_weight,
                init_score=np.full(len(training.y), training.offset),
                **options,
            )
        except load_extra("lightgbm").basic.LightGBMError as error:
            if "num_features()) > (0)" not in str(error):
                raise
            raise ValueError(
                f"LightGBM finds no column to split {len(training.y)} rows by: all are constant, or there are fewer "
                "rows than two leaves of min_child_samples need. Give more rows, or lower min_child_samples."
            ) from None
        finally:
            objective.cut()
            metric.cut()
        booster = estimator.booster_
        for leaf in range(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]):
            booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + training.offset)
        text = booster.model_to_string()
        booster.model_from_string(text.replace("\nfeature_names=", "\nobjective=binary sigmoid:1\nfeature_names=", 1))
        return estimator.set_params(objective="binary")

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the raw score."""
        return np.asarray(estimator.predict(X, raw_score=True), dtype=np.float64)


class XGBoost(Library):
    """`xgboost.XGBClassifier`."""

    small = {"max_depth": 4}  # noqa: RUF012 - constant
    neutral = {  # noqa: RUF012 - constant
        "objective": "binary:logistic",  # becomes "multi:softprob" where there are more than two
        "scale_pos_weight": None,
        "base_score": None,
        "eval_metric": None,
        "early_stopping_rounds": None,
        "callbacks": None,
        "monotone_constraints": None,
    }
    own = {"objective": "binary:logistic", "early_stopping_rounds": None}  # noqa: RUF012 - constant

    def train(self, estimator: Any, training: Training) -> Any:
        """Fit; margins begin at the rate, which the booster keeps."""
        objective = Relay(training.objective)
        given = {name: estimator.get_params()[name] for name in ("callbacks", "eval_metric", "early_stopping_rounds")}
        watched, options = training.watched, {}
        settings: dict[str, Any] = {"eval_metric": None, "early_stopping_rounds": None}
        if watched is not None:
            options = {"eval_set": [(watched.X, watched.y)], "verbose": False}
            settings["eval_metric"] = _named(Relay(lambda _, margins, __: watched.measure(margins)))
            settings["callbacks"] = [*(given["callbacks"] or []), _xgboost_stop(watched)]
        estimator.set_params(objective=objective, base_score=training.rate, **settings)
        try:
            estimator.fit(training.X, training.y, sample_weight=training.sample_weight, **options)
        finally:
            objective.cut()
            estimator.set_params(**given)
        best = None if watched is None else watched.done()
        if best is not None:
            estimator.load_model(bytearray(estimator.get_booster()[:best].save_raw()))
        return estimator.set_params(objective="binary:logistic")

    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the margin."""
        return np.asarray(estimator.predict(X, output_margin=True), dtype=np.float64)


def default_estimator(random_state: int | None) -> Any:
    """Return LightGBM's classifier of 200 rounds, each of which sees half of the columns."""
    return load_extra("lightgbm").LGBMClassifier(
        n_estimators=_ROUNDS, colsample_bytree=_COLUMNS, random_state=random_state, verbose=-1
    )


def library_of(estimator: Any) -> Library:
    """Return the library of an estimator, which must be a classifier of LightGBM or XGBoost."""
    for kind in type(estimator).__mro__:  # the first that is no user's own: forests and Dask's are other things
        module = kind.__module__.partition(".")[0]
        if module in _LIBRARIES:
            name, library = _LIBRARIES[module]
            if kind.__name__ == name:
                return library()
            break
    what = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
    raise TypeError(
        f"estimator must be a lightgbm.LGBMClassifier or an xgboost.XGBClassifier; got {what}. Other models can be "
        "wrapped in QuantileRepairClassifier."
    )


_LIBRARIES: dict[str, tuple[str, type[Library]]] = {
    "lightgbm": ("LGBMClassifier", LightGBM),
    "xgboost": ("XGBClassifier", XGBoost),
}


def _lightgbm_stop(watched: Watched) -> Callable[[Any], None]:
    exception = load_extra("lightgbm").callback.EarlyStopException

    def stop(env: Any) -> None:
        best = watched.done()
        if best is not None:
            raise exception(best - 1, env.evaluation_result_list)

    return stop


def _xgboost_stop(watched: Watched) -> Any:
    base = load_extra("xgboost").callback.TrainingCallback

    class Stop(base):  # type: ignore[misc, valid-type]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
            return watched.done() is not None

    return Stop()


def _named(relay: Relay) -> Any:
    """XGBoost shows a metric under its name."""
    relay.__name__ = "objective"  # type: ignore[attr-defined]
    return relay
