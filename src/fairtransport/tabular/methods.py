"""The estimators of methods by name, as the command line and the workbench train them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fairtransport._validation import check_choice


def make_estimator(
    method: str,
    task: str,
    *,
    base: str = "linear",
    aware: bool = False,
    target: str | None = None,
    max_disparity: float | None = None,
    random_state: int = 0,
    verbose: bool = False,
    **shared: Any,
) -> Any:
    """Return an unfitted classifier or regressor.

    Parameters
    ----------
    method : {"cot", "dot", "trees", "dpp", "blind-repair"}
        Training with continuous or discrete optimal transport, boosted trees with such a penalty, or a model with
        quantile post-processing or blind repair of its scores.
    task : {"classification", "regression"}
    base : {"linear", "trees"}
        The model that is repaired.
    aware : bool, default=False
        With separate weights for each group (cot and dot).
    target, max_disparity, random_state, verbose
        As in the estimators, where they have such a parameter.
    **shared
        Parameters of all of them: ``criterion`` and ``groups``; ``amount`` and ``parity_weight``, where they have it.
    """
    check_choice(method, ("cot", "dot", "trees", "dpp", "blind-repair"), name="method")
    check_choice(task, ("classification", "regression"), name="task")
    check_choice(base, ("linear", "trees"), name="base")
    kind = "Regressor" if task == "regression" else "Classifier"
    if method in {"dpp", "blind-repair"}:
        repair: Any = import_module("fairtransport.repair")
        plain, amount = plain_estimator(base, task, random_state), {"amount": shared.pop("amount", 1.0)}
        if method == "dpp":
            quantile = repair.QuantileRepair(target or "barycenter_w2", **shared)
            return getattr(repair, f"QuantileRepair{kind}")(plain, quantile, **amount)
        blind = repair.BlindRepair(max_disparity=max_disparity, random_state=random_state, **shared)
        return getattr(repair, f"BlindRepair{kind}")(plain, repair=blind, **amount)
    shared["target"] = target or "each_other"
    if method == "trees":
        boosting = import_module("fairtransport.boosting")
        return getattr(boosting, f"TransportBoosting{kind}")(random_state=random_state, **shared)
    distance = "continuous" if method == "cot" else "discrete"
    trained = getattr(import_module("fairtransport.linear"), f"Transport{kind}")
    return trained(distance=distance, group_specific=aware, verbose=verbose, **shared)


def plain_estimator(base: str, task: str, random_state: int = 0) -> Any:
    """Return a model without parity: linear, or scikit-learn's gradient boosting with early stopping."""
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415

    if base == "linear":
        return Ridge() if task == "regression" else LogisticRegression(max_iter=1000)
    from fairtransport.repair.blind import group_model  # noqa: PLC0415

    kind = group_model.DenseBoostingRegressor if task == "regression" else group_model.DenseBoostingClassifier
    stopping = {"early_stopping": True, "n_iter_no_change": 20, "random_state": random_state}
    return kind(max_iter=300, max_leaf_nodes=15, max_features=0.5, **stopping)
