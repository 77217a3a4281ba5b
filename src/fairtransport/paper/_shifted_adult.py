"""Adult with other class rates of the two sexes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import Bunch

from fairtransport.datasets import shift_class_rate
from fairtransport.paper.splits import adult_split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.paper.splits import Split

__all__ = ["adult_by_sex", "rows_at_rates"]


@lru_cache(maxsize=1)
def adult_by_sex() -> Split:
    """Return Adult with the features of Table 1 and two groups, women and men.

    Returns
    -------
    Split
    """
    split = adult_split()
    train, test = ({"sex": columns["sex"]} for columns in (split.sensitive_train, split.sensitive_test))
    return replace(split, sensitive_train=train, sensitive_test=test)


def rows_at_rates(
    labels: NDArray[np.int64], sex: NDArray[np.object_], rates: Mapping[str, float], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw rows so that each sex has a given share in class 1.

    Parameters
    ----------
    labels, sex : ndarray of shape (n,)
        Of all rows.
    rates : mapping
        Sex -> share in class 1. One that is not named keeps all its rows.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray
        Positions, ascending; see `fairtransport.datasets.shift_class_rate`.

    Examples
    --------
    >>> labels, sex = np.array([0, 0, 0, 1, 1]), np.array(["F", "F", "F", "F", "M"], dtype=object)
    >>> labels[rows_at_rates(labels, sex, {"F": 0.5}, np.random.default_rng(0))]
    array([0, 1, 1])
    """
    table = Bunch(data=labels[:, None], target=labels, sensitive_features=sex[:, None], sensitive_names=["sex"])
    return np.sort(shift_class_rate(table, rates, by="sex", random_state=rng).indices)
