"""Evaluation of models of raw tables on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from fairtransport._sklearn.estimator_calls import model_scores, take_rows
from fairtransport._validation import check_real
from fairtransport.groups import make_groups
from fairtransport.metrics import (
    error_rate,
    noise_floor,
    rank_disparity,
    strong_demographic_disparity,
    strong_pairwise_disparity,
)
from fairtransport.tabular.value_parsing import encode_text, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.tabular._model import TableModel

__all__ = ["HeldOut", "measure_models", "split_table"]

UNSURE_BELOW = 30
TOO_SMALL = "of groups too small to be compared"
_SHUFFLES, _FEW_SHUFFLES, _MANY_GROUPS = 100, 20, 12
_DISPARITIES = {
    "strong_demographic_disparity": strong_demographic_disparity,
    "strong_pairwise_disparity": strong_pairwise_disparity,
    "rank_disparity": rank_disparity,
}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors and disparities of models on held-out rows.

    Parameters
    ----------
    rows, groups : int
        Numbers of rows and of groups.
    unsure : int
        Groups with fewer than 30 of the rows, whose disparities are mostly noise.
    set_aside : dict of str to int
        Rows that are not evaluated, by reason.
    figures : dict of str to dict
        For each model: ``error_rate`` at the threshold 0.5, ``auc`` (None where only one label occurs), strong
        demographic disparity (SDD), strong pairwise demographic disparity (SPDD) and rank disparity.
    floor : dict of str to float
        Noise floor of the disparities of the last model: their mean when group membership is permuted.
    """

    rows: int
    groups: int
    unsure: int
    set_aside: dict[str, int]
    figures: dict[str, dict[str, float | None]]
    floor: dict[str, float]


def split_table(
    table: Any, share: float, *, label: str, sensitive_features: Sequence[str], random_state: int = 0
) -> tuple[Any, Any]:
    """Split a table into training and held-out rows, stratified by group and label.

    Parameters
    ----------
    table : table
        Of pandas, polars or pyarrow, or a dict of columns.
    share : float
        Share of the rows that are held out, above 0 and at most 0.9.
    label, sensitive_features : str and sequence of str
        Column of the labels, and columns of the groups.
    random_state : int, default 0

    Returns
    -------
    tuple of table
        Training and held-out rows; each group keeps at least one training row of each of its labels.
    """
    check_real(share, name="share", strict=True, most=0.9)
    columns = read_table(table)
    cells: NDArray[np.int64] = np.zeros(len(columns[label]), dtype=np.int64)
    for name in (label, *sensitive_features):
        words, codes = encode_text(columns[name], name)
        cells = np.unique(cells * (len(words) + 1) + codes + 1, return_inverse=True)[1].astype(np.int64)
    rng = np.random.default_rng(random_state)
    order = rng.permutation(cells.size)
    by_cell = order[np.argsort(cells[order], kind="stable")]
    sizes = np.bincount(cells)
    rank = np.arange(cells.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    taken = np.minimum(np.floor(share * sizes + rng.random(sizes.size)), sizes - 1)
    held_out = np.sort(by_cell[rank < np.repeat(taken, sizes)])
    kept = np.setdiff1d(np.arange(cells.size), held_out)
    if held_out.size == 0:
        raise ValueError(
            f"A share of {share:g} of {cells.size} rows is less than one row; give more rows, or a larger share."
        )
    return take_rows(table, kept), take_rows(table, held_out)


def measure_models(models: dict[str, TableModel], table: Any, *, random_state: int = 0) -> HeldOut:
    """Evaluate models of one table on held-out rows.

    Parameters
    ----------
    models : dict of str to TableModel
        Trained with the same columns and on the same rows; the noise floor is that of the last.
    table : table
        Raw rows with labels and groups.
    random_state : int, default 0
        Seed of the permutations.

    Returns
    -------
    HeldOut
    """
    last = list(models)[-1]
    rows = models[last].read_rows(table)
    if not rows.positive.size:
        raise ValueError("No held-out row has a label and a group that the training rows have.")
    sensitive, set_aside, compared = (
        rows.sensitive_features,
        dict(rows.set_aside),
        np.ones(rows.positive.size, dtype=bool),
    )
    known = models[last].known_groups
    groups = make_groups(sensitive)
    if known is not None and (known.pooled or known.dropped):  # small groups are treated as in training
        codes = known.encode(sensitive).codes
        compared = codes < len(known)
        groups = make_groups(codes[compared])
        if not compared.all():
            set_aside[TOO_SMALL] = int(np.count_nonzero(~compared))
    positive, scored = rows.positive[compared], {}
    for name, model in models.items():
        options = {"sensitive_features": rows.sensitive_features} if model.needs_groups else {}
        scored[name] = model_scores(model.estimator_, rows.X, **options)[compared]
    figures = {name: _figures(scores, positive, groups) for name, scores in scored.items()}
    n_shuffles, floor = _SHUFFLES if len(groups) <= _MANY_GROUPS else _FEW_SHUFFLES, {}
    if len(groups) > 1:
        for name, metric in _DISPARITIES.items():
            noise = noise_floor(
                metric, scored[last], sensitive_features=groups, n_shuffles=n_shuffles, random_state=random_state
            )
            floor[name] = noise.mean
    unsure = int(np.count_nonzero(groups.counts < UNSURE_BELOW))
    return HeldOut(positive.size, len(groups), unsure, set_aside, figures, floor)


def _figures(scores: NDArray[np.float64], positive: NDArray[np.int64], groups: Any) -> dict[str, float | None]:
    both = 0 < int(positive.sum()) < positive.size
    figures: dict[str, float | None] = {
        "error_rate": error_rate(positive, scores),
        "auc": float(roc_auc_score(positive, scores)) if both else None,
    }
    for name, metric in _DISPARITIES.items():
        figures[name] = metric(scores, sensitive_features=groups) if len(groups) > 1 else None
    return figures
