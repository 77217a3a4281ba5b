"""``audit_table``: a table on any engine -> Audit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fairtransport.auditing._audit import audit_counts
from fairtransport.auditing.options import Inference, check_options, requested_nodes
from fairtransport.auditing.provenance import Provenance
from fairtransport.auditing.series import audit_counts_by, by_in_errors
from fairtransport.criteria.criterion import needs_labels
from fairtransport.groups import MATERIALITY, GroupPolicy
from fairtransport.histograms import DEFAULT_BINS, Grid
from fairtransport.tables import Columns, FileTable, count_table, open_files

if TYPE_CHECKING:
    from fairtransport.auditing.result import Audit
    from fairtransport.auditing.series import AuditSeries


def audit_table(
    frame: Any,
    *,
    score: str,
    sensitive_features: str | Sequence[str],
    label: str | None = None,
    strata: str | Sequence[str] | None = None,
    by: str | None = None,
    weight: str | None = None,
    thresholds: ArrayLike | None = None,
    criterion: str = "demographic_parity",
    target: Any = "barycenter",
    inference: Inference | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    groups: GroupPolicy | None = None,
    materiality: float = MATERIALITY,
    task: str | None = None,
    pos_label: Any = None,
    favourable: str = "high",
    reference: Any = None,
) -> Audit | AuditSeries:
    """Audit a table on its engine, without collecting its rows.

    Parameters
    ----------
    frame : table or path
        A table of pandas, polars (eager or lazy), pyarrow, DuckDB, Dask or PySpark; the path of a file, which may be
        larger than memory; or open files, as from `fairtransport.tables.open_files`.
    score : str
        Column of scores: probabilities or any other real numbers.
    sensitive_features : str or list of str
        Sensitive columns; several are crossed.
    label : str, optional
        Column of labels: 0 and 1, or two others, of which ``pos_label`` is the positive class; or real numbers.
    strata : str or list of str, optional
        Columns of a legitimate ground for differences, as in `fairtransport.audit`. Columns with more than 12 different
        numbers are cut at quantiles, which the provenance of the audit lists.
    by : str, optional
        Column whose values, such as regions or months, are audited one by one, in one pass over the rows. Dates, also
        as text such as 2024-03-31, are cut into months. Errors of real-valued labels are those of all rows. Not with
        ``strata`` or another criterion.
    weight : str, optional
        Column of row weights; equal when omitted.
    thresholds, criterion, target, inference, range, groups, materiality, favourable, reference
        As in `fairtransport.audit`; criteria other than demographic parity need ``label``.
    n_bins : int, default 16384
        Number of bins. The error of a distance is at most 1 / n_bins of the range, and 0 for scores on the grid;
        `Reading.resolution` has the bound for each metric. Rates and errors are exact for thresholds on the grid.
        Scores without known bounds are counted in bins between their quantiles, and exactly where few of them differ.
    task : {"classification", "regression"}, optional
        As in `fairtransport.audit`; by default recognised from the first rows.
    pos_label : label, optional
        The positive class; needed unless labels are 0 and 1, false and true, no and yes or -1 and 1. Of files also as
        the text that they have.

    Returns
    -------
    Audit, or AuditSeries with ``by``
        ``settings.set_aside`` has the number of rows without a score (null or NaN), group, label or weight.

    Notes
    -----
    The engine runs one group-by over (group, bin), and over label and stratum where specified, after counting the
    distinct groups in the first 131,072 rows. Only counts are collected; see `fairtransport.tables.count_table`. Scores
    outside [0, 1] take a few more passes over their column, and real-valued labels one for the sums of residuals.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"s": [0.25, 0.5, 0.75, 1.0, None], "sex": ["F", "F", "M", "M", "M"]})
    >>> result = audit_table(table, score="s", sensitive_features="sex")
    >>> result.metrics["strong_pairwise_disparity"], result.settings.set_aside
    (0.5, {'no score': 1})

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex, month = rng.choice(["F", "M"], 3000), rng.integers(1, 4, 3000)
    >>> scores = rng.beta(2, np.where((sex == "F") & (month == 3), 4, 3))
    >>> table = pl.DataFrame({"s": scores, "sex": sex, "month": month})
    >>> series = audit_table(table, by="month", score="s", sensitive_features="sex")
    >>> [point.value for point in series.points if point.outside]
    ['3']
    """
    if by is not None and strata is not None:
        raise ValueError("by and strata cannot be combined; choose the rows of a stratum first.")
    if by is not None and criterion != "demographic_parity":
        raise ValueError("by compares all people; audit the rows of each value for another criterion.")
    options: dict[str, Any] = {
        "thresholds": thresholds,
        "target": target,
        "inference": inference,
        "materiality": materiality,
        "groups": groups,
        "favourable": favourable,
        "reference": reference,
        "criterion": criterion,
    }
    check_options(None if range is None else Grid.over(range, n_bins), **options)  # fail before the engine starts
    if needs_labels(criterion) and label is None:
        raise ValueError(f"criterion={criterion!r} compares people with the same label, so it needs label=.")
    roles: dict[str, Any] = {"score": score, "sensitive_features": sensitive_features, "label": label, "weight": weight}
    roles["strata"] = strata if by is None else by
    counting: dict[str, Any] = {
        "cut_strata": by is None,
        "cut_dates": by is not None,
        "range": range,
        "n_bins": n_bins,
        "groups": groups,
        "pos_label": pos_label,
        "any_range": True,
        "nodes": requested_nodes(thresholds) if by is None else (),
        "task": task,
        "within_labels": needs_labels(criterion),
    }
    with nullcontext() if by is None else by_in_errors(), _opened(frame) as table:
        if isinstance(table, FileTable):
            columns = Columns.named(**roles)
            if pos_label is not None and label is not None:
                counting["pos_label"] = table.read_label(columns, str(pos_label))
            counts = table.run(count_table, columns, **counting)
            seed: Any = getattr(inference or Inference(), "random_state", None)
            known: Any = {"seed": seed if isinstance(seed, int) else None, "strata_cuts": counts.cuts}
            known |= {"rows": counts.rows, "positive": counts.positive_name}
            made = Provenance.of_files(table.paths, columns, **known)
        else:
            counts, made = count_table(table, **roles, **counting), None
    if by is None:
        return audit_counts(counts, **options).with_provenance(made)
    series = audit_counts_by(counts, by=by, **options)
    return replace(series, overall=series.overall.with_provenance(made))


def _opened(frame: Any) -> AbstractContextManager[Any]:
    """Return a context with the table, or with the opened file of a path."""
    return open_files(frame) if isinstance(frame, str | os.PathLike) else nullcontext(frame)
