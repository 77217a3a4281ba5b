"""Communities and Crime: which communities of the United States have much violent crime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairtransport._validation import check_choice
from fairtransport.datasets._base import (
    LICENCE,
    DatasetInfo,
    as_column,
    as_table,
    choose_library,
    decimals,
    integers,
    pack,
    read_columns,
    strings,
)

__all__ = ["INFO", "load_communities"]

INFO = DatasetInfo(
    name="communities",
    title="Communities and Crime",
    rows=1_994,
    columns=122,
    label="high_violent_crime",
    sensitive=("black", "white", "asian", "hispanic"),
    licence=LICENCE,
    citation=(
        "Redmond, M. (2002). Communities and Crime. UCI Machine Learning Repository. https://doi.org/10.24432/C53W3X"
    ),
)

_RATE = "ViolentCrimesPerPop"
_CODES = ("state", "county", "community", "communityname")
_SHARES = {
    "black": "racepctblack",
    "white": "racePctWhite",
    "asian": "racePctAsian",
    "hispanic": "racePctHisp",
}


def load_communities(*, task: str = "classification", as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Load the Communities and Crime data set: where violent crime is frequent.

    Parameters
    ----------
    task : {"classification", "regression"}, default="classification"
        Whether the target is frequent violent crime, or its rate.
    as_frame : bool, default=True
        Return pandas data frames, or polars ones where pandas is not installed; False for NumPy arrays.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a ``Bunch``.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the entries

        ``data``
            The 122 predictors, float64, normalised by UCI to [0, 1]; NaN where missing (23 of the columns).
        ``target``
            ``high_violent_crime``: 1 when ``rate`` is above its 70th percentile (0.28), else 0. For regression the
            rate itself, ``ViolentCrimesPerPop``.
        ``sensitive_features``
            ``black``, ``white``, ``asian`` and ``hispanic``: ``"high"`` when that share of the population is
            above its median over the 1,994 communities, else ``"low"``.
        ``rate``
            ``ViolentCrimesPerPop``, normalised by UCI to [0, 1].
        ``identifiers``
            ``state``, ``county``, ``community`` (codes, as strings), ``communityname`` and ``fold`` (UCI's
            ten folds). Not meant as predictors.
        ``split``
            None: there is no official split into two.
        ``frame``
            ``data`` and ``target`` together; None with ``as_frame=False``.
        ``feature_names``, ``target_names``, ``sensitive_names``
            Lists of names: of the columns, of the classes 0 and 1 (of the target for regression), and of the
            sensitive columns.
        ``DESCR``, ``filename``
            The description, with citation and licence, and the file that was read.

    Notes
    -----
    The medians and the percentile are taken over all rows, as the paper ("Fixed Level of Unfairness") seems
    to do. Values come in steps of 0.01, so many communities lie exactly at a median; they count as ``"low"``.

    Examples
    --------
    >>> from fairtransport.datasets import load_communities
    >>> communities = load_communities()
    >>> communities.data.shape
    (1994, 122)
    >>> int(communities.target.sum())
    583
    """
    check_choice(task, ("classification", "regression"), name="task")
    library = choose_library(as_frame=as_frame)
    columns = read_columns("communities")
    codes = {name: strings(columns.pop(name)) for name in _CODES}
    fold = integers(columns.pop("fold"))
    rate = decimals(columns.pop(_RATE))
    features = {name: decimals(values) for name, values in columns.items()}
    shares = {name: features[column] for name, column in _SHARES.items()}
    regression = task == "regression"
    return pack(
        replace(INFO, label=_RATE) if regression else INFO,
        features=features,
        target=rate if regression else (rate > np.percentile(rate, 70)).astype(np.int64),
        target_names=[_RATE] if regression else ["up to the 70th percentile", "above the 70th percentile"],
        sensitive={
            name: np.where(share > np.median(share), "high", "low").astype(object) for name, share in shares.items()
        },
        library=library,
        return_X_y=return_X_y,
        split=None,
        rate=as_column(_RATE, rate, library),
        identifiers=as_table({**codes, "fold": fold}, library),
    )
