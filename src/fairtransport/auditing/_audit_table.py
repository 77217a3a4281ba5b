"""``audit_table``: a table on any engine -> Audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport.auditing._audit import audit_histograms
from fairtransport.auditing.options import check_options
from fairtransport.groups import MIN_GROUP_SIZE
from fairtransport.histograms import DEFAULT_BINS, Grid
from fairtransport.tables import count_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from fairtransport.auditing.result import Audit
    from fairtransport.tables import TableCounts

__all__ = ["audit_counts", "audit_table"]


def audit_table(
    frame: Any,
    *,
    score: str,
    sensitive: str | Sequence[str],
    label: str | None = None,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    thresholds: ArrayLike | None = None,
    target: Any = "barycenter",
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 1000,
    random_state: int | np.random.Generator | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    grouping: str = "crossed",
    missing: str = "set_aside",
    max_groups: int = 200,
    unsure_below: int = 30,
    small_groups: str = "keep",
    min_group_size: int = MIN_GROUP_SIZE,
    pos_label: Any = None,
) -> Audit:
    """Audit a table where it is, on the engine that holds it, without collecting its rows.

    Parameters
    ----------
    frame : table
        Of pandas, polars (eager or lazy), pyarrow, DuckDB, Dask or PySpark.
    score : str
        Column of the scores, within [0, 1] or within ``range``.
    sensitive : str or list of str
        Columns of the groups; several are crossed.
    label : str, optional
        Column of two labels: 0 and 1, or two others, of which the larger (in the order of text, the later) is the
        positive one. With it the audit has errors and areas under the ROC curve.
    by : str or list of str, optional
        Columns of something that may count, such as a region: the disparities are measured within each stratum as
        well. A missing value is a stratum of its own.
    weight : str, optional
        Column of the rows' weights; equal when omitted.
    thresholds, target, confidence, n_bootstrap, n_permutations, random_state
        As in `fairtransport.audit`.
    unsure_below, small_groups, min_group_size
        As in `fairtransport.audit`.
    range : pair of float, optional
        Lowest and highest score that there may be; [0, 1] when omitted. Distances are shares of this range.
    n_bins : int, default 16384
        Resolution. Each distance is off by at most 1 / n_bins, and exact for scores on the grid; `Reading.resolution`
        says what that makes for each metric. Rates and errors are exact for thresholds on the grid.
    grouping : {"crossed", "each"}, default "crossed"
        As in `fairtransport.make_groups`.
    missing : {"set_aside", "group"}, default "set_aside"
        What a missing sensitive value is: a reason to set the row aside, or a group.
    max_groups : int, default 200
        More groups, or strata, are refused: they are the mark of an identifier.
    pos_label : label, optional
        The positive one, where it is not the larger.

    Returns
    -------
    Audit
        Rows without score (null or NaN), group, label or weight are in ``settings.set_aside``, by reason.

    See Also
    --------
    fairtransport.audit : The same for arrays, exact.

    Notes
    -----
    The engine runs one group-by over (group, bin), with label and stratum where they are named, and before it a count
    of the distinct groups in the first 131,072 rows. Only counts come back; see `fairtransport.tables.count_table`.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"s": [0.25, 0.5, 0.75, 1.0, None], "sex": ["F", "F", "M", "M", "M"]})
    >>> found = audit_table(table, score="s", sensitive="sex", random_state=0)
    >>> found.metrics["strong_pairwise_disparity"], found.settings.set_aside
    (0.5, {'no score': 1})
    """
    options: dict[str, Any] = {
        "thresholds": thresholds,
        "target": target,
        "confidence": confidence,
        "n_bootstrap": n_bootstrap,
        "n_permutations": n_permutations,
        "unsure_below": unsure_below,
        "small_groups": small_groups,
        "min_group_size": min_group_size,
    }
    check_options(Grid.over(range, n_bins), **options)  # before the engine works
    counts = count_table(
        frame,
        score=score,
        sensitive=sensitive,
        label=label,
        by=by,
        weight=weight,
        range=range,
        n_bins=n_bins,
        grouping=grouping,
        missing=missing,
        max_groups=max_groups,
        pos_label=pos_label,
    )
    return audit_counts(counts, random_state=random_state, **options)


def audit_counts(counts: TableCounts, **options: Any) -> Audit:
    """Audit what `fairtransport.tables.count_table` found: the second half of `audit_table`.

    Parameters
    ----------
    counts : TableCounts
    **options
        ``thresholds``, ``target``, ``confidence``, ``n_bootstrap``, ``n_permutations``, ``random_state``,
        ``unsure_below``, ``small_groups`` and ``min_group_size``, as in `audit_table`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.LazyFrame({"s": [0.25, 0.5, 0.75, 1.0], "sex": ["F", "F", "M", "M"]})
    >>> audit_counts(count_table(table, score="s", sensitive="sex")).metrics["strong_pairwise_disparity"]
    0.5
    """
    _check_groups(counts)
    return audit_histograms(counts.histograms, strata=counts.strata, set_aside=counts.set_aside, **options)


def _check_groups(counts: TableCounts) -> None:
    groups = counts.histograms.groups
    if len(groups) < 2:
        aside = "".join(f"; {n_rows} rows are set aside with {reason}" for reason, n_rows in counts.set_aside.items())
        raise ValueError(
            f"The rows fall into {len(groups)} group(s) of {say_columns(groups.columns)}; at least 2 are needed{aside}."
        )
    without = int(np.count_nonzero(~(counts.histograms.weights > 0)))
    if without:
        raise ValueError(f"Column {counts.weight!r} is zero in all rows of {without} of {len(groups)} groups.")
