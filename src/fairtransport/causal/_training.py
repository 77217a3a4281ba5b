"""Training towards counterfactual fairness: each person is compared with what they would be in another group."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Floats
from fairtransport._sklearn import RowScoring, fit_model, last_step, model_scores, needs_groups, take_rows
from fairtransport._validation import check_length, check_real, check_weights
from fairtransport.causal.conditional_distributions import NodeColumn, Table

if TYPE_CHECKING:
    from fairtransport.causal._transport import CounterfactualTransport


#: Weight of a counterfactual row relative to a row: the penalty compares both; the effect on the loss is negligible.
_LIGHT = 1e-6
#: The individual term has converged when the mean distance between people and their counterfactuals changes by less.
_TOLERANCE = 0.02
_MAX_ITERATIONS = 20


class _CounterfactuallyFair(RowScoring, BaseEstimator):
    """Base of the classifier and the regressor."""

    def __init__(self, estimator: Any, transport: CounterfactualTransport, *, individual_weight: float = 0.0) -> None:
        self.estimator = estimator
        self.transport = transport
        self.individual_weight = individual_weight

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Move the rows along the unfair paths, and train the model to score both alike."""
        check_real(self.individual_weight, name="individual_weight")
        names, sensitive, outcome = Table(X).names, self.transport.sensitive, self.transport.outcome
        frame = _with_column(X, sensitive, sensitive_features)
        labels, n_rows = np.asarray(y), Table(frame).n_rows
        check_length(labels, size=n_rows, name="y")
        weights = check_weights(sample_weight, size=n_rows)
        weights = np.ones(n_rows) if weights is None else weights
        if outcome is not None:
            frame = _with_column(frame, outcome, labels)
        column = NodeColumn.of(sensitive, Table(frame)[sensitive])
        codes = column.encode(Table(frame)[sensitive]).astype(np.int64)
        transport = clone(self.transport)
        moves = []
        for code, group in enumerate(column.levels or ()):
            moved = _select(transport.fit_transform(frame, to=group, sample_weight=weights), names)
            for own in range(len(column.levels or ())):
                members = np.flatnonzero(codes == own)
                if own != code:
                    pair = take_rows(X, members), take_rows(moved, members)
                    moves.append(_Move(*pair, labels[members], weights[members], f"{own} to {code}"))
        self.estimator_ = self._fit_parts([part for move in moves for part in move.parts()])
        self.n_iter_ = self._draw_together(moves) if self.individual_weight > 0.0 else 0
        if needs_groups(self.estimator_):
            raise ValueError(
                "The estimator needs the group to predict, and here its groups are people as they are and as they "
                "would be; leave group_specific at False, or make the group a feature."
            )
        self.graph_ = transport.graph_
        self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable class of each row, or the predicted number."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def _fit_parts(self, parts: list[_Part]) -> Any:
        """Return the estimator, trained for parity between people as they are and as they would be."""
        return fit_model(
            _with_plain_groups(clone(self.estimator)),
            _stack([part.table for part in parts]),
            np.concatenate([part.labels for part in parts]),
            sensitive_features=np.concatenate([np.full(part.labels.size, part.kind) for part in parts]),
            strata=np.concatenate([np.full(part.labels.size, part.stratum) for part in parts]),
            sample_weight=np.concatenate([part.weights for part in parts]),
        )

    def _draw_together(self, moves: list[_Move]) -> int:
        """Train again with the score of each person as a label of their counterfactual, and the reverse.

        A fixed point minimises the loss and the individual term: each label is right where the two scores agree.
        """
        last = np.inf
        for iteration in range(1, _MAX_ITERATIONS + 1):
            parts, distance = [], 0.0
            for move in moves:
                own, moved = (model_scores(self.estimator_, table) for table in (move.factual, move.moved))
                parts += move.parts()[:1]
                for table, kind, target in ((move.factual, "factual", moved), (move.moved, "moved", own)):
                    for label, share in self._soft_labels(target):
                        weights = self.individual_weight * share * move.weights
                        parts.append(_Part(table, label, weights, kind, move.stratum))
                distance += float(move.weights @ np.abs(own - moved))
            if abs(last - distance) <= _TOLERANCE * distance:
                return iteration - 1
            last = distance
            self.estimator_ = self._fit_parts(parts)
        return _MAX_ITERATIONS

    @abstractmethod
    def _soft_labels(self, scores: Floats) -> list[tuple[NDArray[Any], Floats]]:
        """Return labels that have these scores as their mean, with the share of each."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


class _Part(NamedTuple):
    """Rows, as they are or moved, of one group and towards another."""

    table: Any
    labels: NDArray[Any]
    weights: Floats
    kind: str
    stratum: str


class _Move(NamedTuple):
    """People of one group, as they are and as they would be in another."""

    factual: Any
    moved: Any
    labels: NDArray[Any]
    weights: Floats
    stratum: str

    def parts(self) -> list[_Part]:
        """Return both; counterfactual rows have a negligible weight in the loss."""
        return [
            _Part(self.factual, self.labels, self.weights, "factual", self.stratum),
            _Part(self.moved, self.labels, _LIGHT * self.weights, "moved", self.stratum),
        ]


class CounterfactuallyFairClassifier(ClassifierMixin, _CounterfactuallyFair):
    """Classifier that scores people as they are and as they would be in another group alike, along unfair paths.

    Parameters
    ----------
    estimator : classifier
        `fairtransport.TransportClassifier`,
        `fairtransport.boosting.TransportBoostingClassifier`, or a pipeline that ends in one. Its ``parity_weight`` is
        the weight of the unfair effect.
    transport : CounterfactualTransport
        Its ``unfair_edges`` and ``resolving`` say which paths are unfair. It is cloned and fitted.
    individual_weight : float, default=0.0
        Weight of the individual term: how far each person's score is from the one they would have. Parity asks that
        the distribution of scores stays, this asks it of every single score.

    Attributes
    ----------
    estimator_ : classifier
        Fitted; it needs neither the graph nor the group to predict, unless the group is a feature.
    n_iter_ : int
        How often the model was trained again for the individual term.
    graph_ : CausalGraph
        What the model was trained under, as a record.
    feature_names_in_ : ndarray of str
    classes_ : ndarray of shape (2,)

    Notes
    -----
    The training rows are followed by themselves as they would be in each other group, cross-fitted, and the estimator
    is trained for conditional parity between the two kinds within each group. Counterfactual rows have no say in the
    loss. Boosted trees are trained with ``smooth_groups=False``: probabilities of the kinds would hide the difference.

    For the individual term the model is trained again with the score of each person as the label of their
    counterfactual, and the reverse, until the mean absolute difference no longer changes.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fairtransport import TransportClassifier
    >>> from fairtransport.causal import CounterfactualTransport, CounterfactuallyFairClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 1000)
    >>> X = pd.DataFrame({"hours": rng.normal(35, 5, 1000) + 4 * sex, "skill": rng.normal(size=1000)})
    >>> hired = (0.2 * (X["hours"] - 37) + X["skill"] + rng.normal(size=1000) > 0).astype(int)
    >>> transport = CounterfactualTransport({"sex": ["hours"]}, sensitive="sex", quantiles="linear")
    >>> model = CounterfactuallyFairClassifier(TransportClassifier(distance="discrete", parity_weight=3), transport)
    >>> model.fit(X, hired, sensitive_features=sex).predict_proba(X).shape
    (1000, 2)
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.classes_)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both classes."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def _soft_labels(self, scores: Floats) -> list[tuple[NDArray[Any], Floats]]:
        first, second = self.estimator_.classes_
        return [(np.full(scores.size, second), scores), (np.full(scores.size, first), 1.0 - scores)]


class CounterfactuallyFairRegressor(RegressorMixin, _CounterfactuallyFair):
    """Regressor that predicts the same for people as they are and as they would be in another group.

    Parameters
    ----------
    estimator : regressor
        A transport regressor of this package, or a pipeline that ends in one.
    transport : CounterfactualTransport
        As for `CounterfactuallyFairClassifier`, which has notes.
    individual_weight : float, default=0.0
        Weight of the mean squared difference between each person's prediction and the one they would have.

    Attributes
    ----------
    estimator_, n_iter_, graph_, feature_names_in_
        As of `CounterfactuallyFairClassifier`.
    """

    def _soft_labels(self, scores: Floats) -> list[tuple[NDArray[Any], Floats]]:
        return [(scores, np.ones(scores.size))]


def _with_plain_groups(estimator: Any) -> Any:
    """Return boosted trees that compare rows as they are: who is a counterfactual is known, not estimated."""
    prefix, last = last_step(estimator)
    if "smooth_groups" in last.get_params(deep=False):
        estimator.set_params(**{f"{prefix}smooth_groups": False})
    return estimator


def _with_column(table: Any, name: str, column: Any) -> Any:
    """Return a data frame with one more column, or with another one of that name."""
    values = np.asarray(column).ravel()
    check_length(values, size=Table(table).n_rows, name="sensitive_features")
    if hasattr(table, "assign"):  # pandas: rows keep their index
        return table.assign(**{name: values})
    frame = nw.from_native(table, eager_only=True)
    return frame.with_columns(nw.new_series(name, values.tolist(), backend=frame.implementation)).to_native()


def _select(table: Any, names: list[str]) -> Any:
    return nw.from_native(table, eager_only=True).select(*names).to_native()


def _stack(tables: list[Any]) -> Any:
    return nw.concat([nw.from_native(table, eager_only=True) for table in tables]).to_native()
