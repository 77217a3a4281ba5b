"""Adult: income above $50,000, from the US census of 1994."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtransport.datasets._base import (
    LICENCE,
    DatasetInfo,
    choose_library,
    pack,
    parse_columns,
    read_columns,
)

__all__ = ["INFO", "load_adult"]

INFO = DatasetInfo(
    name="adult",
    title="Adult",
    rows=48_842,
    columns=14,
    label="income_over_50k",
    sensitive=("race", "sex"),
    licence=LICENCE,
    citation=(
        "Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. https://doi.org/10.24432/C5XW20"
    ),
)

_NUMERIC = frozenset({"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"})


def load_adult(*, as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Load the Adult data set: who earns more than $50,000 a year.

    Parameters
    ----------
    as_frame : bool, default=True
        Return pandas data frames, or polars ones where pandas is not installed; False for NumPy arrays.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a ``Bunch``.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the entries

        ``data``
            The 14 features, race and sex among them. Numbers are int64 and the rest strings; a missing value
            (only in ``workclass``, ``occupation`` and ``native_country``) is NaN, or null in polars. With
            ``as_frame=False``, an array of objects.
        ``target``
            ``income_over_50k``: 1 when above $50,000, else 0.
        ``sensitive_features``
            ``race`` and ``sex``.
        ``split``
            Array of ``"train"`` and ``"test"``: the official split.
        ``frame``
            ``data`` and ``target`` together; None with ``as_frame=False``.
        ``feature_names``, ``target_names``, ``sensitive_names``
            Lists of names: of the columns, of the classes 0 and 1, and of the sensitive columns.
        ``DESCR``, ``filename``
            The description, with citation and licence, and the file that was read.

    Notes
    -----
    The paper ("Fixed Level of Unfairness") keeps the rows whose race is Black or White, and crosses race with
    sex.

    Examples
    --------
    >>> from fairtransport.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.data.shape
    (48842, 14)
    >>> round(float(adult.target.mean()), 4)
    0.2393
    """
    library = choose_library(as_frame=as_frame)
    columns = read_columns("adult")
    split, income = np.array(columns.pop("split")), np.array(columns.pop("income"))
    features = parse_columns(columns, numeric=_NUMERIC)
    return pack(
        INFO,
        features=features,
        target=(income == ">50K").astype(np.int64),
        target_names=["<=50K", ">50K"],
        sensitive={name: features[name] for name in INFO.sensitive},
        library=library,
        return_X_y=return_X_y,
        split=split,
    )
