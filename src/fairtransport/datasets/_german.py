"""German Credit: which applicants for a loan are a good risk."""

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

__all__ = ["INFO", "load_german"]

INFO = DatasetInfo(
    name="german",
    title="Statlog (German Credit Data)",
    rows=1_000,
    columns=20,
    label="good_credit",
    sensitive=("age_group", "sex"),
    licence=LICENCE,
    citation=(
        "Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
        "https://doi.org/10.24432/C5NC77"
    ),
)

_NUMERIC = frozenset(
    {"duration", "amount", "installment_rate", "present_residence", "age", "number_credits", "people_liable"}
)
# Attribute 9 combines sex and marital status. No row has A95, single women.
_FEMALE = ("A92", "A95")


def load_german(*, as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Load the German Credit data set: which applicants for a loan are a good risk.

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
            The 20 features: 7 of int64, 13 of strings that hold UCI's codes (``"A11"``; ``DESCR`` explains
            them). No value is missing. With ``as_frame=False``, an array of objects.
        ``target``
            ``good_credit``: 1 when good, 0 when bad.
        ``sensitive_features``
            ``age_group`` (``"over 30"`` or ``"up to 30"``; the paper's) and ``sex`` (``"male"`` or
            ``"female"``, read from ``personal_status_sex``).
        ``split``
            None: there is no official split.
        ``frame``
            ``data`` and ``target`` together; None with ``as_frame=False``.
        ``feature_names``, ``target_names``, ``sensitive_names``
            Lists of names: of the columns, of the classes 0 and 1, and of the sensitive columns.
        ``DESCR``, ``filename``
            The description, with citation and licence, and the file that was read.

    Examples
    --------
    >>> from fairtransport.datasets import load_german
    >>> german = load_german()
    >>> german.data.shape
    (1000, 20)
    >>> float(german.target.mean())
    0.7
    """
    library = choose_library(as_frame=as_frame)
    columns = read_columns("german")
    label = np.array(columns.pop("label"))
    features = parse_columns(columns, numeric=_NUMERIC)
    female = np.isin(columns["personal_status_sex"], _FEMALE)
    return pack(
        INFO,
        features=features,
        target=(label == "1").astype(np.int64),
        target_names=["bad", "good"],
        sensitive={
            "age_group": np.where(features["age"] > 30, "over 30", "up to 30").astype(object),
            "sex": np.where(female, "female", "male").astype(object),
        },
        library=library,
        return_X_y=return_X_y,
        split=None,
    )
