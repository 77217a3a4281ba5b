"""Checks of fair classifiers and regressors, in addition to scikit-learn's estimator checks.

Every check trains the estimator on synthetic rows of two groups, one of which has higher scores.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from fairtransport._arrays import Floats
from fairtransport._sklearn import last_step, model_scores, needs_groups
from fairtransport._validation import check_real
from fairtransport.metrics import pairwise_disparity

_UNSEEN = "a-group-not-seen-in-fit"  # must not appear in an error message


@dataclass(frozen=True, eq=False)
class _Rows:
    X: Floats
    y: NDArray[Any]
    group: NDArray[Any]

    @classmethod
    def make(cls, n: int, seed: int, estimator: Any) -> _Rows:
        """Return rows with labels or, for a regressor, with a y whose standard deviation is about 1."""
        rng = np.random.default_rng(seed)
        group = np.array(["a", "b"])[rng.integers(2, size=n)]
        X = rng.normal(size=(n, 3)) + (group == "b")[:, None] * [1.2, 0.0, 0.0]
        y = X @ [1.0, 1.0, 0.5] + rng.logistic(size=n)
        return cls(X, y / 2.4 if _is_regressor(estimator) else (y > 0.6).astype(np.int64), group)


class _Fitted:
    """A fitted clone of an estimator, called with groups at prediction if it needs them."""

    def __init__(self, estimator: Any, rows: _Rows, **options: Any) -> None:
        self.model = clone(estimator)
        seeds = {"random_state", "repair__random_state"} & {*self.model.get_params()}
        self.model.set_params(**dict.fromkeys(seeds, 0))
        options = {"sensitive_features": rows.group, **options}
        self.model.fit(rows.X, rows.y, **options)
        self.needs_groups = needs_groups(self.model, rows.X, sensitive_features=options["sensitive_features"])

    def scores(self, X: Floats, group: NDArray[Any]) -> Floats:
        """Return the probabilities of class 1, or the predictions of a regressor."""
        return model_scores(self.model, X, sensitive_features=group if self.needs_groups else None)


def check_fair_estimator(estimator: Any, *, tolerance: float = 0.02, seed: int = 0) -> dict[str, str]:
    """Check that a fair classifier or regressor behaves as users expect.

    Parameters
    ----------
    estimator : classifier or regressor
        Unfitted, with ``fit(X, y, sensitive_features=, sample_weight=)`` and ``predict_proba(X)`` (of a regressor
        ``predict(X)``), which may take ``sensitive_features=``.
    tolerance : float, default=0.02
        Largest mean change of scores of a randomised estimator where nothing should change: when groups are renamed,
        and when copies of rows are replaced by weights. The y of regressors has a standard deviation of about 1.
    seed : int, default=0
        Seed of the synthetic rows.

    Returns
    -------
    dict of str to str
        The result of each check.

    Raises
    ------
    AssertionError
        At the first check that fails.

    See Also
    --------
    sklearn.utils.estimator_checks.check_estimator : Checks of any estimator.

    Notes
    -----
    - *Row independence*: the score of a row does not depend on the other rows of the batch.
    - *Purity*: equal calls return equal results, and prediction changes neither data nor model.
    - *Unseen groups*: where groups are needed at prediction, an unknown one raises ValueError, whose message does not
      contain its value.
    - *Names of groups*: renaming the groups does not change scores.
    - *Weights*: a weight of 2 is equivalent to two copies of a row.
    - *Parity*: the disparity of new rows is below that of a logistic or ridge regression.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import fairtransport as ft
    >>> results = check_fair_estimator(ft.QuantileRepairClassifier(LogisticRegression()))
    >>> sorted(results)
    ['names of groups', 'parity', 'purity', 'row independence', 'unseen groups', 'weights']
    """
    allowed = check_real(tolerance, name="tolerance")
    return {name: check(estimator, allowed, seed) for name, check in FAIR_CHECKS.items()}


def _row_independence(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001 - one call for all checks
    rows, new = _Rows.make(800, seed, estimator), _Rows.make(200, seed + 1, estimator)
    fitted = _Fitted(estimator, rows)
    together = fitted.scores(new.X, new.group)
    order = np.random.default_rng(seed).permutation(200)
    _require(
        np.allclose(fitted.scores(new.X[order], new.group[order]), together[order], rtol=0, atol=1e-10),
        "scores change with the order of the rows",
    )
    alone = np.concatenate([fitted.scores(new.X[i : i + 1], new.group[i : i + 1]) for i in range(25)])
    _require(
        np.allclose(alone, together[:25], rtol=0, atol=1e-10),
        "the score of a row depends on the other rows of the batch",
    )
    return "scores of 25 single rows and of 200 reordered rows are those of one batch"


def _purity(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001
    rows = _Rows.make(800, seed, estimator)
    before = copy.deepcopy(rows)
    fitted = _Fitted(estimator, rows)
    state = joblib.hash(vars(fitted.model))
    first, second = fitted.scores(rows.X, rows.group), fitted.scores(rows.X, rows.group)
    _require(np.array_equal(first, second), "two equal calls give different scores")
    for name in ("X", "y", "group"):
        _require(np.array_equal(getattr(rows, name), getattr(before, name)), f"{name} was changed")
    _require(joblib.hash(vars(fitted.model)) == state, "predicting changes the model")
    again = _Fitted(estimator, rows).scores(rows.X, rows.group)
    _require(np.array_equal(first, again), "two equal fits (random_state=0 where there is one) give different scores")
    return "equal calls and equal fits give equal scores; data and model do not change"


def _unseen_groups(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001
    rows = _Rows.make(800, seed, estimator)
    fitted = _Fitted(estimator, rows)
    if not fitted.needs_groups:
        return "groups are not needed at prediction"
    unseen = np.array([_UNSEEN] * len(rows.X), dtype=object)
    try:
        fitted.scores(rows.X, unseen)
    except ValueError as error:
        _require(_UNSEEN not in str(error), "the error about an unknown group contains its value")
        return "an unknown group raises ValueError, without its value"
    raise AssertionError("A group that was not seen in fit is scored without an error; it must raise ValueError.")


def _names_of_groups(estimator: Any, tolerance: float, seed: int) -> str:
    rows = _Rows.make(800, seed, estimator)
    other = np.where(rows.group == "a", "z", "m")  # renamed, with the order reversed
    plain = _Fitted(estimator, rows).scores(rows.X, rows.group)
    renamed = _Fitted(estimator, rows, sensitive_features=other).scores(rows.X, other)
    return _close(plain, renamed, tolerance, "renaming the groups changes scores")


def _weights(estimator: Any, tolerance: float, seed: int) -> str:
    rows = _Rows.make(500, seed, estimator)
    times = np.random.default_rng(seed).integers(1, 3, size=len(rows.y))
    copies = np.repeat(np.arange(len(rows.y)), times)
    repeated = _Rows(rows.X[copies], rows.y[copies], rows.group[copies])
    weighted = _Fitted(estimator, rows, sample_weight=times.astype(np.float64)).scores(rows.X, rows.group)
    copied = _Fitted(estimator, repeated).scores(rows.X, rows.group)
    return _close(weighted, copied, tolerance, "a weight of 2 is not equivalent to two copies")


def _parity(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001
    rows, new = _Rows.make(2000, seed, estimator), _Rows.make(4000, seed + 1, estimator)
    plain, name = (Ridge(), "ridge") if _is_regressor(estimator) else (LogisticRegression(), "logistic")
    before, after = (
        pairwise_disparity(scores, sensitive_features=new.group, scale="score")
        for scores in (
            model_scores(plain.fit(rows.X, rows.y), new.X),
            _Fitted(estimator, rows).scores(new.X, new.group),
        )
    )
    _require(after < 0.7 * before, f"disparity of new rows is {after:.3f}; a {name} regression has {before:.3f}")
    return f"disparity of new rows {after:.3f}; {name} regression {before:.3f}"


def _is_regressor(estimator: Any) -> bool:
    return bool(is_regressor(last_step(estimator)[1]))


def _close(one: Floats, other: Floats, tolerance: float, message: str) -> str:
    change = float(np.abs(one - other).mean())
    _require(change <= tolerance, f"{message}, by {change:.3f} on average; {tolerance:g} is allowed")
    return f"mean change of scores {change:.1e}"


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(f"{message[0].upper()}{message[1:]}.")


#: The checks by name: functions of the estimator, the tolerance and a seed that return the result as text.
FAIR_CHECKS: dict[str, Callable[[Any, float, int], str]] = {
    "row independence": _row_independence,
    "purity": _purity,
    "unseen groups": _unseen_groups,
    "names of groups": _names_of_groups,
    "weights": _weights,
    "parity": _parity,
}


__all__ = ["FAIR_CHECKS", "check_fair_estimator"]
