"""Quantile repair of tables: fitted to counts and applied by a join, on the engine that holds the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport.criteria.criterion import needs_labels
from fairtransport.histograms import DEFAULT_BINS
from fairtransport.repair.quantile import QuantileRepair
from fairtransport.tables import RepairLookup, check_rows, count_table, repair_rows


class TableRepair(BaseEstimator):
    """Quantile repair of a column of scores, on whatever engine holds the table.

    Rows stay where they are: ``fit`` asks the engine for histograms, and ``transform`` adds the repaired scores by a
    join with a small table and one linear interpolation. Tables are those of pandas, polars (eager or lazy), pyarrow,
    DuckDB, Dask and PySpark.

    Parameters
    ----------
    repair : QuantileRepair, optional
        What to repair to, and how much; ``QuantileRepair()`` when omitted. ``fit`` fits a clone of it. A repair that
        was fitted to a table before, such as one from a file, is used as it is where ``fit`` is not called.
    score : str
        Column of the scores, within [0, 1] or within ``range``.
    sensitive_features : str or list of str
        Columns of the groups; several are crossed.
    label : str, optional
        Column of two labels, for a repair whose criterion compares people with the same label; used by ``fit``.
    strata : str or list of str, optional
        Columns of the strata within which groups are compared (conditional parity), by their values; several are
        crossed. A column of numbers with more than 12 values has to be cut into ranges before.
    weight : str, optional
        Column of the weights of the rows; used by ``fit``.
    range : pair of float, optional
        Lowest and highest score that there may be; [0, 1] when omitted.
    n_bins : int, default=16384
        Resolution of the histograms that the maps are computed from.

    Attributes
    ----------
    repair_ : QuantileRepair
        The fitted repair. It repairs arrays too (``transform``), follows streams (``partial_fit``), and can be saved;
        its ``amount`` may be changed.
    set_aside_ : dict of str to int
        Rows that ``fit`` could not count, by reason.

    Notes
    -----
    Scores are counted at the first node of a grid that is not below them. With T the map that `QuantileRepair.fit`
    would compute from the rows and h the width of a bin, the map T' of the counts has

        T(a - h) <= T'(s) <= T(b) + h,

    where a < s <= b are the nearest nodes with rows of the group. For scores on the grid T' is T.

    Examples
    --------
    >>> import polars as pl
    >>> from fairtransport import GroupPolicy
    >>> from fairtransport.repair import QuantileRepair, TableRepair
    >>> table = pl.DataFrame({"s": [0.1, 0.3, 0.5, 0.7], "sex": ["F", "F", "M", "M"]})
    >>> repair = QuantileRepair(groups=GroupPolicy(min_size=1))
    >>> repair = TableRepair(repair, score="s", sensitive_features="sex").fit(table)
    >>> repair.transform(table)["repaired"].round(3).to_list()
    [0.3, 0.5, 0.3, 0.5]
    >>> repair.check(table)["unknown group"]
    0
    """

    def __init__(
        self,
        repair: QuantileRepair | None = None,
        *,
        score: str,
        sensitive_features: str | Sequence[str],
        label: str | None = None,
        strata: str | Sequence[str] | None = None,
        weight: str | None = None,
        range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
        n_bins: int = DEFAULT_BINS,
    ) -> None:
        self.repair = repair
        self.score = score
        self.sensitive_features = sensitive_features
        self.label = label
        self.strata = strata
        self.weight = weight
        self.range = range
        self.n_bins = n_bins

    def fit(self, table: Any) -> Self:
        """Find the target and the map of each group, without collecting the rows."""
        repair = QuantileRepair() if self.repair is None else clone(self.repair)
        strata, keys = _names(self.strata), self._columns(None, None, None)[1]
        counts = count_table(
            table,
            score=self.score,
            sensitive_features=keys,
            label=self.label if needs_labels(repair.criterion) else None,
            weight=self.weight,
            range=self.range,
            n_bins=self.n_bins,
            groups=repair.groups,
        )
        self.repair_ = repair.fit_counts(counts, strata=strata)
        self.set_aside_ = dict(counts.set_aside)
        return self

    def transform(
        self,
        table: Any,
        *,
        score: str | None = None,
        sensitive_features: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        output: str = "repaired",
    ) -> Any:
        """Return the table with the repaired scores in one more column.

        Parameters
        ----------
        table : table
            It need not be of the engine of ``fit``. Scores outside the fitted range are clamped. A group or stratum
            that was not seen in ``fit``, a missing group and a missing score give a missing result; `check` counts
            these rows.
        score, sensitive_features, strata : str or list of str, optional
            Columns, in the order of ``fit``, where they have other names in this table.
        output : str, default="repaired"
            Name of the new column.

        Returns
        -------
        table
            Of the same library. A lazy table stays lazy, and its rows may come in another order. Other tables keep
            the order of the rows; Dask keeps its partitions and index, too.
        """
        score, columns = self._columns(score, sensitive_features, strata)
        return repair_rows(self.lookup(), table, score=score, sensitive_features=columns, output=output)

    def check(
        self,
        table: Any,
        *,
        score: str | None = None,
        sensitive_features: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
    ) -> dict[str, int]:
        """Count the rows that `transform` clamps and those that it leaves without a repaired score.

        Parameters
        ----------
        table, score, sensitive_features, strata
            As in `transform`.

        Returns
        -------
        dict of str to int
            ``rows``, all of them; ``clamped``; and ``no score``, ``no group`` and ``unknown group`` (or stratum),
            which get no repaired score.
        """
        score, columns = self._columns(score, sensitive_features, strata)
        return check_rows(self.lookup(), table, score=score, sensitive_features=columns)

    def lookup(self) -> RepairLookup:
        """Return the repair as a small table, with ``to_frame``, ``to_sql`` and ``to_parquet``."""
        repair = vars(self).get("repair_", self.repair)
        if repair is None:
            raise NotFittedError("This TableRepair is not fitted yet: call fit, or give a fitted QuantileRepair.")
        check_is_fitted(repair)
        return repair.lookup()

    def _columns(
        self, score: str | None, sensitive_features: str | Sequence[str] | None, strata: str | Sequence[str] | None
    ) -> tuple[str, str | Sequence[str]]:
        """Return the column of the scores, and those of strata and groups together, by which rows are joined."""
        columns = self.sensitive_features if sensitive_features is None else sensitive_features
        layers = _names(self.strata if strata is None else strata)
        return (self.score if score is None else score), [*layers, *_names(columns)] if layers else columns

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "repair_") or hasattr(self.repair, "maps_")


def _names(columns: str | Sequence[str] | None) -> list[str]:
    return [] if columns is None else [columns] if isinstance(columns, str) else list(columns)
