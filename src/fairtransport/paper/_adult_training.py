"""The paper's algorithms on Adult, measured on test rows during training, for Figure 2 and the ablation."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairtransport.groups import make_groups
from fairtransport.linear import ContinuousTransportClassifier, DiscreteTransportClassifier, SgdSettings
from fairtransport.paper._training_curves import Evaluator, record_training
from fairtransport.paper.splits import adult_split
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairtransport.paper._cached_parts import Result, Stop
    from fairtransport.paper.splits import Split

__all__ = ["train_on_adult"]


@lru_cache(maxsize=1)
def _adult() -> tuple[Split, Any]:
    """Return Adult's split and theta*, scikit-learn's logistic regression with its default C."""
    split = adult_split()
    return split, LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)


def paper_classifier(method: str, estimator: Any, seed: int, parameters: Mapping[str, Any]) -> Any:
    """Return the paper's COT or DOT, which leaves the loss out.

    Parameters
    ----------
    method : {"COT", "DOT"}
    estimator : estimator or None
        The initial model.
    seed : int
    parameters : mapping
        Parameters of the classifier and fields of `fairtransport.linear.SgdSettings`.
    """
    solver_fields = {field.name for field in fields(SgdSettings)}
    solver = {name: value for name, value in parameters.items() if name in solver_fields}
    others = {name: value for name, value in parameters.items() if name not in solver_fields}
    kind = ContinuousTransportClassifier if method == "COT" else DiscreteTransportClassifier
    return kind(estimator, solver=SgdSettings(random_state=seed, **solver), parity_weight=np.inf, **others)


def train_on_adult(settings: Mapping[str, Any], stop: Stop) -> Result:
    """Train the paper's COT or DOT on Adult and measure it on test rows.

    Parameters
    ----------
    settings : mapping
        ``method`` ("COT" or "DOT"), ``columns`` (the sensitive ones), ``target``, ``batch_size``, ``n_updates``,
        ``every`` (updates between records), ``parameter_step``, ``seed`` and, for COT, the parameters of
        `fairtransport.ContinuousTransportClassifier` that concern its duals. The result depends on nothing else.
    stop : Stop
        Checked between two records.

    Returns
    -------
    dict of ndarray
        See `fairtransport.paper._training_curves.record_training`.
    """
    split, start = _adult()
    parameters = dict(settings)
    method, columns = parameters.pop("method"), parameters.pop("columns")
    every, seed = parameters.pop("every"), parameters.pop("seed")
    model = paper_classifier(method, start, seed, parameters)
    sensitive = [{name: column[name] for name in columns} for column in (split.sensitive_train, split.sensitive_test)]
    stop.check()
    trainer = model.make_trainer(split.X_train, split.y_train, sensitive_features=sensitive[0])
    evaluator = Evaluator.build(
        split.X_test, split.y_test, sensitive[1], _test_target(start, sensitive[1], parameters["target"])
    )
    return record_training(trainer, evaluator, n_updates=parameters["n_updates"], every=every, stop=stop)


def _test_target(start: Any, sensitive: Mapping[str, Any], target: str) -> Sample:
    """Return the target that Wass1 is measured to, as in Table 1: at theta*, of the test rows."""
    groups = make_groups(sensitive)
    scores = start.predict_proba(_adult()[0].X_test)[:, 1]
    samples = [Sample.from_values(scores[rows]) for rows in groups.rows]
    return resolve_target(target, samples, groups.counts, labels=groups.labels)
