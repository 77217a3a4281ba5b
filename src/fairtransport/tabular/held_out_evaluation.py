"""Evaluation of models of raw tables on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import d2_log_loss_score, r2_score, roc_auc_score

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._sklearn import take_rows
from fairtransport._validation import check_real
from fairtransport.criteria.criterion import criterion_of
from fairtransport.groups import MIN_GROUP_SIZE, MIN_SHOWN_ROWS, Groups, make_groups
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
from fairtransport.tables.column_roles import check_names
from fairtransport.tabular._model import TableModel
from fairtransport.tabular.column_plans import encode_text, read_table

TOO_SMALL = "of groups too small to be compared"
_SHUFFLES, _FEW_SHUFFLES, _MANY_GROUPS = 100, 20, 12
_INSIDE = (1e-6, 1 - 1e-6)  # probabilities whose logarithm is taken


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
    table: Any, share: float, *, label: str | None, sensitive_features: str | Sequence[str], random_state: int = 0
) -> tuple[Any, Any]:
    """Split a table into training and held-out rows, stratified by group and, for two classes, by label.

    Parameters
    ----------
    table : table
        Raw rows, of pandas, polars or pyarrow.
    share : float
        Share of the rows that is held out, at most 0.9; each group keeps a row for training.
    label : str or None
        Column of two labels; None where labels are numbers.
    sensitive_features : str or sequence of str
        Columns of the groups.
    random_state : int, default=0

    Returns
    -------
    train, held_out : table
        Of the same library, rows in their order.
    """
    check_real(share, name="share", strict=True, most=0.9)
    columns = read_table(table)
    groups = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    by = [*([] if label is None else [label]), *groups]
    check_names(by, columns)
    cells: Ints = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
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
    labels, model = rows.labels[compared], models[last]
    regression, strata = model.task == "regression", None
    scored = {name: one.score_encoded(rows)[compared] for name, one in models.items()}
    figures = {name: _errors(scores, labels, regression=regression) for name, scores in scored.items()}
    if rows.strata is not None:
        strata = make_strata(rows.strata) if model.known_strata is None else model.known_strata.encode(rows.strata)
        strata = strata.select(np.flatnonzero(compared))
    weight = criterion_of(getattr(model.estimator_, "criterion", None)).stratum_weight
    held = HeldOutRows(groups, labels, model.criterion, strata, regression=regression, stratum_weight=weight)
    for name, scores in scored.items():
        figures[name] |= held.disparities(scores)
    n_shuffles = _SHUFFLES if len(held.judged) <= _MANY_GROUPS else _FEW_SHUFFLES
    floor = held.floors(scored[last], n_shuffles=n_shuffles, random_state=random_state)
    n_small = int(np.count_nonzero(groups.counts < MIN_GROUP_SIZE))
    return HeldOut(labels.size, len(groups), n_small, set_aside, figures, floor)


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Groups, labels and strata of held-out rows, by which scores are measured.

    The disparities are ``pairwise_disparity``, ``rank_disparity`` and that of the criterion, unless it is demographic
    parity without strata.

    Parameters
    ----------
    groups : Groups
        As returned by `make_groups`.
    labels : array of int or float, optional
        0 and 1, or numbers.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}
    strata : mapping of str to array, optional
        Columns within whose values groups are compared.
    regression : bool, default=False
        Labels are numbers.
    in_units : bool, default=False
        Distances are in units of the scores, which are not compared with labels.
    stratum_weight : {"equal", "share"}, optional
    min_size : int, default=30
        Groups of fewer rows are left out where two are larger.
    """

    groups: Groups
    labels: NDArray[Any] | None = None
    criterion: str = "demographic_parity"
    strata: Any = None
    regression: bool = False
    in_units: bool = False
    stratum_weight: str | None = None
    min_size: int = MIN_GROUP_SIZE

    @cached_property
    def rows(self) -> Ints:
        """The rows of the groups that are compared."""
        large = self.groups.counts >= self.min_size
        everyone = np.arange(self.groups.n_rows)
        return everyone[large[self.groups.codes]] if np.count_nonzero(large) > 1 else everyone

    @cached_property
    def judged(self) -> Groups:
        """The groups that are compared."""
        return make_groups(self.groups.codes[self.rows])

    @cached_property
    def _metrics(self) -> dict[str, tuple[Callable[..., float], NDArray[Any] | None]]:
        """The disparities by name, and the cells within which groups are permuted under chance."""
        unit: dict[str, Any] = {"scale": "score"} if self.regression or self.in_units else {}
        metrics: dict[str, Any] = {
            "pairwise_disparity": (partial(pairwise_disparity, **unit), None),
            "rank_disparity": (rank_disparity, None),
        }
        if self.criterion == "demographic_parity" and self.strata is None:
            return metrics
        labels: Any = None if self.labels is None else np.asarray(self.labels)[self.rows]
        strata = None if self.strata is None else make_strata(self.strata).select(self.rows)
        within = np.zeros(self.rows.size, dtype=np.int64) if strata is None else strata.codes
        odds = self.criterion == "equalized_odds"
        shared = {"strata": strata, "label_weight" if odds else "stratum_weight": self.stratum_weight, **unit}
        if self.criterion == "demographic_parity":
            own = ("conditional_disparity", partial(conditional_disparity, **shared), within)
        elif self.regression:  # equalized odds: people with similar labels
            cells = make_strata(
                {"label": labels} if strata is None else {"label": labels, "stratum": within.astype(str)}
            )
            metric = partial(conditional_disparity, strata=cells, stratum_weight="equal", **unit)
            own = ("separation_disparity", metric, cells.codes)
        else:
            metric = partial(separation_disparity if odds else opportunity_disparity, labels, **shared)
            own = ("separation_disparity" if odds else "opportunity_disparity", metric, 2 * within + labels)
        return {**metrics, own[0]: (own[1], own[2].astype(str))}

    def disparities(self, scores: Floats) -> dict[str, float | None]:
        """Return the disparities of scores by name; None where no two groups have rows that are compared."""
        figures: dict[str, float | None] = {}
        for name, (metric, within) in self._metrics.items():
            try:
                figures[name] = metric(scores[self.rows], sensitive_features=self.judged)
            except ValueError:
                if within is None and len(self.judged) > 1:
                    raise
                figures[name] = None
        return figures

    def floors(self, scores: Floats, *, n_shuffles: int, random_state: int = 0) -> dict[str, float]:
        """Return the disparities that chance shows, by name."""
        options: dict[str, Any] = {"sensitive_features": self.judged, "n_shuffles": n_shuffles}
        options["random_state"] = random_state
        known = [name for name, figure in self.disparities(scores).items() if figure is not None]
        metrics = {name: self._metrics[name] for name in known}
        return {
            name: noise_floor(metric, scores[self.rows], within=within, **options).mean
            for name, (metric, within) in metrics.items()
        }

    def measure(self, scores: Floats, plain: Floats) -> dict[str, Any]:
        """Return error, share of the information of plain scores that is kept, disparities, and rates of each group.

        Without labels, the error is the mean change of a score. Rates of groups of fewer than 5 rows are None.
        """
        everyone, kept = self._rates(scores, np.ones(scores.size, dtype=bool)), None
        if "error" in everyone:
            explained, bounds = (r2_score, (-np.inf, np.inf)) if self.regression else (d2_log_loss_score, _INSIDE)
            after, before = (explained(self.labels, np.clip(one, *bounds)) for one in (scores, plain))
            kept = max(float(after / before), 0.0) if before > 0 else None
        disparities = self.disparities(scores)
        shown = {"disparity": [*disparities.values()][-1], "rank_disparity": disparities["rank_disparity"]}
        groups = [self._rates(scores, self.groups.codes == code) for code in range(len(self.groups))]
        groups = [
            one if one["rows"] >= MIN_SHOWN_ROWS else dict.fromkeys(one) | {"rows": one["rows"]} for one in groups
        ]
        error = everyone.get("error", float(np.abs(scores - plain).mean()))
        return {**shown, "error": error, "kept": kept, "groups": groups}

    def _rates(self, scores: Floats, rows: Bools) -> dict[str, Any]:
        chosen: Floats = scores[rows]
        labels: Any = None if self.labels is None else np.asarray(self.labels)[rows]
        rates: dict[str, Any] = {"rows": chosen.size, "mean": float(chosen.mean())}
        if self.in_units:
            return rates
        if self.regression:
            return {**rates, "error": float(np.sqrt(np.mean((chosen - labels) ** 2)))}
        above = chosen > 0.5
        rates["selected"] = float(above.mean())
        if labels is not None:
            rates["error"] = float(np.mean(above != labels))
            for name, wrong in (("missed", ~above[labels == 1]), ("false_alarm", above[labels == 0])):
                rates[name] = float(wrong.mean()) if wrong.size else None
        return rates


def _errors(scores: Floats, labels: NDArray[Any], *, regression: bool) -> dict[str, float | None]:
    varies = np.ptp(labels) > 0
    if regression:
        rmse = float(np.sqrt(np.mean((scores - labels) ** 2)))
        return {"rmse": rmse, "r2": float(r2_score(labels, scores)) if varies else None}
    return {"error_rate": error_rate(labels, scores), "auc": float(roc_auc_score(labels, scores)) if varies else None}
