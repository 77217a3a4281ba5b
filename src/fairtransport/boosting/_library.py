"""Interface of a boosting library: training with a custom objective, and reading margins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from fairtransport._extras import load_extra
from fairtransport._validation import check_real

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


class DetachableCallback:
    """A callable that copies share, until its function is detached.

    LightGBM copies its objective before training, and fitted estimators keep theirs. It holds the groups of the
    training rows, of which nothing may remain in the fitted model: `detach` removes the function from all copies.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] | None = function

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def detach(self) -> None:
        """Remove the function."""
        self.function = None

    def __call__(self, labels: Any, margins: Any, sample_weight: Any = None) -> Any:
        """Call the function; raise RuntimeError after `detach`."""
        if self.function is None:
            raise RuntimeError("This model was trained by fairtransport.boosting; fit that estimator again instead.")
        return self.function(labels, margins, sample_weight)


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """What a library needs to train a model."""

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    initial_margin: float


class BoosterRun(ABC):
    """A booster that is trained one round at a time, with margins of its training rows and of held-out rows."""

    @abstractmethod
    def update(self, objective: Callable[..., Any]) -> None:
        """Train one round with an objective of labels, margins and weights."""

    @abstractmethod
    def training_margins(self) -> NDArray[np.float64]:
        """Return the margins of the training rows."""

    @abstractmethod
    def held_out_margins(self) -> NDArray[np.float64]:
        """Return the margins of the held-out rows."""


class BinnedTable(ABC):
    """Training and held-out rows in a library's own format, binned once for any number of boosters."""

    @abstractmethod
    def start(self) -> BoosterRun:
        """Return a booster without any rounds."""


class Library(ABC):
    """A boosting library, as the estimators use it."""

    module: ClassVar[str]
    class_names: ClassVar[dict[str, str]]
    tree_size: ClassVar[tuple[str, int]]
    size_params: ClassVar[set[str]]
    default_rate: ClassVar[float]
    neutral_params: ClassVar[dict[str, Any]]
    logistic_params: ClassVar[dict[str, Any]]
    losses: ClassVar[Mapping[str | None, str]]

    def __init__(self, task: str) -> None:
        self.is_regression = task == "regression"

    def loss_name(self, estimator: Any) -> str:
        """Return the loss that an estimator's objective names."""
        if not self.is_regression:
            return "log_loss"
        objective = self.objective_of(estimator)
        if not (objective is None or isinstance(objective, str)) or objective not in self.losses:
            known = dict.fromkeys(self.losses.values())
            names = [next(name for name, loss in self.losses.items() if loss == one and name) for one in known]
            raise ValueError(
                f"The objective of the estimator must be one of {', '.join(map(repr, names))}, which are the losses "
                "that predictions of groups are compared for."
            )
        return self.losses[objective]

    def objective_of(self, estimator: Any) -> Any:
        """Return the objective among an estimator's settings."""
        return estimator.get_params().get("objective")

    def group_model(self, estimator: Any, n_rounds: int, **settings: Any) -> Any:
        """Return an unfitted classifier with the settings of the estimator and few rounds, for any labels."""
        params = {"n_estimators": n_rounds, **self.neutral_params, **settings}
        if not self.is_regression:
            return _with_params(clone(estimator), params)
        classifier = getattr(load_extra(self.module), self.class_names["classification"])
        return _with_params(classifier(**clone(estimator).get_params()), params)

    def small_trees(self, estimator: Any) -> dict[str, Any]:
        """Return the setting for small trees, no larger than those of the estimator."""
        name, size = self.tree_size
        given = estimator.get_params().get(name)
        return {name: min(size, given) if isinstance(given, int) and given > 0 else size}

    def n_rounds(self, estimator: Any) -> int:
        """Return the number of rounds of an estimator."""
        n_rounds = estimator.get_params().get("n_estimators")
        return 100 if n_rounds is None else int(n_rounds)

    def learning_rate(self, estimator: Any) -> float:
        """Return the learning rate of an estimator."""
        rate = estimator.get_params().get("learning_rate")
        return self.default_rate if rate is None else float(rate)

    def unset_params(self, estimator: Any) -> set[str]:
        """Return the names of settings that an estimator has at the library's default."""
        default = getattr(
            load_extra(self.module), self.class_names["regression" if self.is_regression else "classification"]
        )
        known = default().get_params()
        return {name for name, value in estimator.get_params().items() if name in known and _same(value, known[name])}

    def check_features(self, X: Any) -> None:  # noqa: B027 - most libraries check them
        """Raise TypeError for features that the library cannot read and does not refuse."""

    def check_settings(self, estimator: Any) -> None:  # noqa: B027 - most are possible
        """Raise ValueError for settings with which no custom objective is possible."""

    def absorb_class_weights(
        self,
        estimator: Any,
        classes: NDArray[Any],  # noqa: ARG002 - used by LightGBM
        labels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64] | None:
        """Move the class weights among an estimator's settings into the weights of the rows, and return these.

        The libraries apply ``scale_pos_weight`` only with their built-in objectives.
        """
        scale = estimator.get_params().get("scale_pos_weight")
        if scale is None or scale == 1:
            return weights
        estimator.set_params(scale_pos_weight=1)
        ones = np.ones(len(labels)) if weights is None else weights
        return np.asarray(ones * np.where(labels > 0, check_real(scale, name="scale_pos_weight", strict=True), 1.0))

    def fit_plain(self, estimator: Any, run: TrainingRun) -> Any:
        """Fit an estimator with the library's built-in objective; the result predicts as that of `fit_objective`."""
        params = dict(self.logistic_params)
        if self.is_regression:
            del params["objective"]
        return _with_params(estimator, params).fit(run.X, run.y, sample_weight=run.sample_weight)

    @abstractmethod
    def fit_objective(self, estimator: Any, run: TrainingRun, objective: Callable[..., Any]) -> Any:
        """Fit an estimator with a custom objective; the result is a model of the library that predicts by itself."""

    @abstractmethod
    def open_table(self, estimator: Any, run: TrainingRun, held_out: Any) -> BinnedTable:
        """Return training rows and the features of held-out rows, for boosters with the settings of an estimator."""

    @abstractmethod
    def settings_by_size(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        """Return settings of the trees for a table of this size."""

    @abstractmethod
    def margins(self, estimator: Any, X: Any) -> NDArray[np.float64]:
        """Return the margins: logits of class 1, or what the link maps to predictions."""


def _with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return the estimator with those of the settings that it has."""
    known = estimator.get_params()
    return estimator.set_params(**{name: value for name, value in params.items() if name in known})


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, (bool, int, float, str)) and one == other)
