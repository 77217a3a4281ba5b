"""Scores of the rows of a raw table by a `TableModel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairtransport._columns import say_columns
from fairtransport._sklearn.estimator_calls import take_rows
from fairtransport._validation import check_choice
from fairtransport.groups import UNKNOWN_GROUPS
from fairtransport.tabular._table_rows import NEW_STRATUM, RowScores, TableRows
from fairtransport.tabular.value_parsing import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["require_scores", "score_table"]


def score_table(model: Any, table: Any, unknown_group: str, sensitive_features: Sequence[str] | None) -> RowScores:
    """Return a score for each row of a raw table; see `TableModel.score_rows`."""
    check_is_fitted(model)
    check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
    columns = _renamed(model, read_table(table), sensitive_features)
    n_rows = len(columns[model.columns[0]])
    kept = np.ones(n_rows, dtype=bool)
    set_aside: dict[str, NDArray[np.bool_]] = {}
    reader, known = model.reader(), model.known_cells()
    if model.needs_groups_ and unknown_group == "error":
        kept, set_aside = reader.usable(columns, kept, **known)
    else:
        kept, set_aside = reader.in_strata(columns, kept, known["strata"])
    scores = np.full(n_rows, np.nan)
    counts: dict[str, int] = {}
    chosen = np.flatnonzero(kept)
    if chosen.size:
        features = {name: take_rows(columns[name], chosen) for name in model.encoder_.names}
        X, counts = model.encoder_.transform_counted(features)
        groups = reader.groups_of(columns, kept) if model.needs_groups_ else {}
        strata = reader.strata_of(columns, kept) if model.needs_strata else None
        rows = TableRows(kept, X, np.empty(0, np.int64), groups, {}, strata)
        scores[kept] = model.score_encoded(rows, unknown_group=unknown_group)
    return RowScores(scores, _reasons(model, set_aside), counts)


def require_scores(result: RowScores) -> NDArray[np.float64]:
    """Return the scores; raise ValueError unless every row has one."""
    if result.reasons:
        reasons = "; ".join(sorted({*result.reasons.values()}))
        raise ValueError(
            f"{len(result.reasons):,} of {result.scores.size:,} rows cannot be scored: {reasons}. Use score_rows, "
            "which scores the others."
        )
    return result.scores


def _renamed(model: Any, columns: dict[str, Any], sensitive_features: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns under the names of training; raise ValueError where some are absent."""
    if sensitive_features is not None:
        if len(sensitive_features) != len(model.sensitive_features):
            raise ValueError(
                f"The model has {len(model.sensitive_features)} sensitive columns; {len(sensitive_features)} are named."
            )
        renamed = dict(zip(model.sensitive_features, sensitive_features, strict=True))
        columns |= {name: columns[here] for name, here in renamed.items() if here in columns}
    absent = [name for name in model.columns if name not in columns]
    if absent:
        raise ValueError(f"The table has no {say_columns(absent)}, which the model needs.")
    return columns


def _reasons(model: Any, set_aside: dict[str, NDArray[np.bool_]]) -> dict[int, str]:
    """Return why each row has no score."""
    reasons: dict[int, str] = {}
    for reason, rows in set_aside.items():
        where = model.strata if reason == NEW_STRATUM else model.sensitive_features
        text = f"{reason} in {', '.join(map(repr, where))}"
        reasons |= dict.fromkeys(np.flatnonzero(rows).tolist(), text)
    return dict(sorted(reasons.items()))
