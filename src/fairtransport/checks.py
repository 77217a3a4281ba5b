"""What a fair estimator owes its users, as checks that anybody can run on theirs.

scikit-learn's checks know nothing of groups. These do: they train on made-up people of two groups, one of which scores
higher, and look at what the estimator does with them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport._validation import check_real
from fairtransport.metrics import strong_pairwise_disparity

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["FAIR_CHECKS", "check_fair_estimator"]

_SECRET = "a-group-that-nobody-has-seen"  # noqa: S105 - no password: a text that must not come up in an error


@dataclass(frozen=True, eq=False)
class _People:
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    group: NDArray[Any]

    @classmethod
    def make(cls, n: int, seed: int) -> _People:
        rng = np.random.default_rng(seed)
        group = np.array(["a", "b"])[rng.integers(2, size=n)]
        X = rng.normal(size=(n, 3)) + (group == "b")[:, None] * [1.2, 0.0, 0.0]
        return cls(X, (X @ [1.0, 1.0, 0.5] + rng.logistic(size=n) > 0.6).astype(np.int64), group)


class _Fitted:
    """A clone, fitted, with the groups passed at prediction where the estimator wants them."""

    def __init__(self, estimator: Any, people: _People, **options: Any) -> None:
        self.model = clone(estimator)
        if "random_state" in self.model.get_params():
            self.model.set_params(random_state=0)
        self.model.fit(people.X, people.y, **{"sensitive_features": people.group, **options})
        self.needs_groups = needs_groups(self.model, people.X, sensitive_features=people.group)

    def scores(self, X: NDArray[np.float64], group: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities of class 1."""
        given = {"sensitive_features": group} if self.needs_groups else {}
        return np.asarray(self.model.predict_proba(X, **given))[:, 1]


def check_fair_estimator(estimator: Any, *, tolerance: float = 0.02, seed: int = 0) -> dict[str, str]:
    """Check that a fair classifier does what people may expect of one.

    Parameters
    ----------
    estimator : classifier
        Not fitted, with ``fit(X, y, sensitive_features=, sample_weight=)`` and
        ``predict_proba(X)`` or ``predict_proba(X, sensitive_features=)``.
    tolerance : float, default=0.02
        Mean change of scores that an estimator which draws rows by chance may show where nothing should change: under
        other names of the groups, and with weights in place of copies.
    seed : int, default=0
        Of the made-up people.

    Returns
    -------
    dict of str to str
        Each check and what was seen.

    Raises
    ------
    AssertionError
        At the first check that fails; the text says what was expected.

    Notes
    -----
    *Row independence*: a row's score does not depend on who else is in the batch. *Purity*: equal calls give equal
    results, and neither data nor model are changed by predicting. *Unseen groups*: where groups are needed at
    prediction, an unknown one raises ValueError, and its value is not in the text. *Names*: other names of the groups
    change nothing. *Weights*: weight 2 is two copies. *Parity*: groups are closer on new rows than those of a logistic
    regression.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import fairtransport as ft
    >>> told = check_fair_estimator(ft.QuantileRepairClassifier(LogisticRegression()))
    >>> sorted(told)
    ['names of groups', 'parity', 'purity', 'row independence', 'unseen groups', 'weights']
    """
    allowed = check_real(tolerance, name="tolerance")
    return {name: check(estimator, allowed, seed) for name, check in FAIR_CHECKS.items()}


def _row_independence(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001 - one call for all checks
    people, new = _People.make(800, seed), _People.make(200, seed + 1)
    fitted = _Fitted(estimator, people)
    together = fitted.scores(new.X, new.group)
    order = np.random.default_rng(seed).permutation(200)
    _demand(
        np.allclose(fitted.scores(new.X[order], new.group[order]), together[order], rtol=0, atol=1e-10),
        "scores change with the order of the rows",
    )
    alone = np.concatenate([fitted.scores(new.X[i : i + 1], new.group[i : i + 1]) for i in range(25)])
    _demand(np.allclose(alone, together[:25], rtol=0, atol=1e-10), "a row's score depends on who else is in the batch")
    return "25 rows alone, and 200 in another order, score as in one batch"


def _purity(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001
    people = _People.make(800, seed)
    before = copy.deepcopy(people)
    fitted = _Fitted(estimator, people)
    state = joblib.hash(vars(fitted.model))
    first, second = fitted.scores(people.X, people.group), fitted.scores(people.X, people.group)
    _demand(np.array_equal(first, second), "two equal calls of predict_proba give different scores")
    for name in ("X", "y", "group"):
        _demand(np.array_equal(getattr(people, name), getattr(before, name)), f"{name} was changed")
    _demand(joblib.hash(vars(fitted.model)) == state, "predicting changes the model")
    again = _Fitted(estimator, people).scores(people.X, people.group)
    _demand(np.array_equal(first, again), "two equal fits (random_state=0 where there is one) give different scores")
    return "equal calls and equal fits give equal scores; data and model stay as they are"


def _unseen_groups(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001
    people = _People.make(800, seed)
    fitted = _Fitted(estimator, people)
    if not fitted.needs_groups:
        return "groups are not needed at prediction"
    strange = np.array([_SECRET] * len(people.X), dtype=object)
    try:
        fitted.scores(people.X, strange)
    except ValueError as error:
        _demand(_SECRET not in str(error), "the error about an unknown group tells its value")
        return "an unknown group raises ValueError, without its value"
    raise AssertionError("A group that was not seen in fit is scored in silence; it must raise ValueError.")


def _names_of_groups(estimator: Any, tolerance: float, seed: int) -> str:
    people = _People.make(800, seed)
    other = np.where(people.group == "a", "z", "m")  # other names, and in another order
    plain = _Fitted(estimator, people).scores(people.X, people.group)
    renamed = _Fitted(estimator, people, sensitive_features=other).scores(people.X, other)
    return _close(plain, renamed, tolerance, "other names of the groups change scores")


def _weights(estimator: Any, tolerance: float, seed: int) -> str:
    people = _People.make(500, seed)
    times = np.random.default_rng(seed).integers(1, 3, size=len(people.y))
    copies = np.repeat(np.arange(len(people.y)), times)
    repeated = _People(people.X[copies], people.y[copies], people.group[copies])
    weighted = _Fitted(estimator, people, sample_weight=times.astype(np.float64)).scores(people.X, people.group)
    copied = _Fitted(estimator, repeated).scores(people.X, people.group)
    return _close(weighted, copied, tolerance, "weight 2 is not two copies")


def _parity(estimator: Any, tolerance: float, seed: int) -> str:  # noqa: ARG001
    people, new = _People.make(2000, seed), _People.make(4000, seed + 1)
    plain = LogisticRegression().fit(people.X, people.y).predict_proba(new.X)[:, 1]
    fair = _Fitted(estimator, people).scores(new.X, new.group)
    before, after = (strong_pairwise_disparity(s, sensitive_features=new.group) for s in (plain, fair))
    _demand(after < 0.7 * before, f"disparity of new rows is {after:.3f}; a logistic regression has {before:.3f}")
    return f"disparity of new rows {after:.3f}; logistic regression {before:.3f}"


def _close(one: NDArray[np.float64], other: NDArray[np.float64], tolerance: float, told: str) -> str:
    change = float(np.abs(one - other).mean())
    _demand(change <= tolerance, f"{told}, by {change:.3f} on average; {tolerance:g} is allowed")
    return f"mean change of scores {change:.1e}"


def _demand(holds: Any, told: str) -> None:
    if not holds:
        raise AssertionError(f"{told[0].upper()}{told[1:]}.")


#: The checks by name; each takes the estimator, the tolerance and a seed, and returns what was seen.
FAIR_CHECKS: dict[str, Callable[[Any, float, int], str]] = {
    "row independence": _row_independence,
    "purity": _purity,
    "unseen groups": _unseen_groups,
    "names of groups": _names_of_groups,
    "weights": _weights,
    "parity": _parity,
}
