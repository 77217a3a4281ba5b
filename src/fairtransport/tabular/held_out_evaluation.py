"""Evaluation of models of raw tables on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score

from fairtransport._arrays import Floats, Ints
from fairtransport._sklearn import take_rows
from fairtransport._validation import check_real
from fairtransport.criteria.criterion import criterion_of
from fairtransport.groups import MIN_GROUP_SIZE, Groups, make_groups
from fairtransport.metrics import (
    conditional_disparity,
    error_rate,
    noise_floor,
    opportunity_disparity,
    pairwise_disparity,
    rank_disparity,
    separation_disparity,
)
from fairtransport.strata import make_strata
from fairtransport.tabular._model import TableModel
from fairtransport.tabular.column_plans import encode_text, read_table
from fairtransport.tabular.rows import TableRows

TOO_SMALL = "of groups too small to be compared"
_SHUFFLES, _FEW_SHUFFLES, _MANY_GROUPS = 100, 20, 12
_DISPARITIES: dict[str, Callable[..., float]] = {
    "pairwise_disparity": pairwise_disparity,
    "rank_disparity": rank_disparity,
}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors and disparities of models on held-out rows."""

    rows: int
    groups: int
    small_groups: int
    set_aside: dict[str, int]
    figures: dict[str, dict[str, float | None]]
    floor: dict[str, float]


def split_table(
    table: Any, share: float, *, label: str | None, sensitive_features: Sequence[str], random_state: int = 0
) -> tuple[Any, Any]:
    """Split a table into training and held-out rows, stratified by group and, for two classes, by label."""
    check_real(share, name="share", strict=True, most=0.9)
    columns = read_table(table)
    by = [*([] if label is None else [label]), *sensitive_features]
    cells: Ints = np.zeros(len(columns[by[0]]), dtype=np.int64)
    for name in by:
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
    """Evaluate models of one table on held-out rows."""
    last = list(models)[-1]
    rows = models[last].read_rows(table)
    if not rows.labels.size:
        raise ValueError("No held-out row has a label and a group that the training rows have.")
    sensitive, set_aside = rows.sensitive_features, dict(rows.set_aside)
    compared = np.ones(rows.labels.size, dtype=bool)
    known = models[last].known_groups
    groups = make_groups(sensitive)
    if known is not None and (known.pooled or known.dropped):  # small groups are treated as in training
        codes = known.encode(sensitive).codes
        compared = codes < len(known)
        groups = make_groups(codes[compared])
        if not compared.all():
            set_aside[TOO_SMALL] = int(np.count_nonzero(~compared))
    labels = rows.labels[compared]
    regression = models[last].task == "regression"
    scored = {name: model.score_encoded(rows)[compared] for name, model in models.items()}
    figures = {name: _errors(scores, labels, regression=regression) for name, scores in scored.items()}
    metrics = _DISPARITIES
    if regression:  # in units of the predictions
        metrics = {n: m if m is rank_disparity else partial(m, scale="score") for n, m in metrics.items()}
    large = groups.counts >= MIN_GROUP_SIZE
    if np.count_nonzero(large) > 1 and not large.all():
        judged = np.flatnonzero(large[groups.codes])
        compared = np.flatnonzero(compared)[judged]
        scored = {name: scores[judged] for name, scores in scored.items()}
        judged_groups = make_groups(groups.codes[judged])
    else:
        judged_groups, compared = groups, np.flatnonzero(compared)
    own = _criterion_disparity(models[last], rows, compared)
    for name, scores in scored.items():
        figures[name] |= _disparities(metrics, scores, judged_groups, own)
    n_shuffles = _SHUFFLES if len(judged_groups) <= _MANY_GROUPS else _FEW_SHUFFLES
    floor: dict[str, float] = {}
    if len(judged_groups) > 1:
        options: dict[str, Any] = {
            "sensitive_features": judged_groups, "n_shuffles": n_shuffles, "random_state": random_state
        }  # fmt: skip
        for name, metric in metrics.items():
            floor[name] = noise_floor(metric, scored[last], **options).mean
        if own is not None and figures[last][own.name] is not None:
            floor[own.name] = noise_floor(own.metric, scored[last], within=own.within, **options).mean
    return HeldOut(labels.size, len(groups), int(np.count_nonzero(~large)), set_aside, figures, floor)


@dataclass(frozen=True, eq=False)
class _CriterionDisparity:
    """The disparity of a criterion other than demographic parity, and where groups are permuted under chance."""

    name: str
    metric: Callable[..., float]
    within: NDArray[Any]


def _criterion_disparity(model: TableModel, rows: TableRows, compared: Ints) -> _CriterionDisparity | None:
    if model.criterion == "demographic_parity" and rows.strata is None:
        return None
    labels, strata = rows.labels[compared], None
    within: NDArray[Any] = np.zeros(labels.size, dtype=np.int64)
    if rows.strata is not None:
        known = model.known_strata
        strata = make_strata(rows.strata) if known is None else known.encode(rows.strata)
        strata = strata.select(compared)
        within = strata.codes
    odds = model.criterion == "equalized_odds"
    weight = criterion_of(getattr(model.estimator_, "criterion", None)).stratum_weight
    shared: dict[str, Any] = {"strata": strata, "label_weight" if odds else "stratum_weight": weight}
    if model.task == "regression":
        shared["scale"] = "score"
    if model.criterion == "demographic_parity":
        return _CriterionDisparity(
            "conditional_disparity", partial(conditional_disparity, **shared), within.astype(str)
        )
    if model.task == "regression":  # equalized odds: people with similar labels
        cells = make_strata({"label": labels} if strata is None else {"label": labels, "stratum": within.astype(str)})
        metric = partial(conditional_disparity, strata=cells, stratum_weight="equal", scale="score")
        return _CriterionDisparity("separation_disparity", metric, cells.codes.astype(str))
    metric = partial(separation_disparity if odds else opportunity_disparity, labels, **shared)
    name = "separation_disparity" if odds else "opportunity_disparity"
    return _CriterionDisparity(name, metric, (2 * within + labels).astype(str))


def _errors(scores: Floats, labels: NDArray[Any], *, regression: bool) -> dict[str, float | None]:
    varies = np.ptp(labels) > 0
    if regression:
        rmse = float(np.sqrt(np.mean((scores - labels) ** 2)))
        return {"rmse": rmse, "r2": float(r2_score(labels, scores)) if varies else None}
    return {"error_rate": error_rate(labels, scores), "auc": float(roc_auc_score(labels, scores)) if varies else None}


def _disparities(
    metrics: dict[str, Callable[..., float]], scores: Floats, groups: Groups, own: _CriterionDisparity | None
) -> dict[str, float | None]:
    figures: dict[str, float | None] = {
        name: metric(scores, sensitive_features=groups) if len(groups) > 1 else None for name, metric in metrics.items()
    }
    if own is not None:
        try:
            figures[own.name] = own.metric(scores, sensitive_features=groups)
        except ValueError:  # no two groups with rows of one label and stratum
            figures[own.name] = None
    return figures
