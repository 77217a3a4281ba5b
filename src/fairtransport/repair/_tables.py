"""What `QuantileRepair` does with tables: learn from counts, repair by a join, hand the lookup table on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairtransport._columns import say_columns
from fairtransport._validation import check_choice, check_real
from fairtransport.histograms import DEFAULT_BINS
from fairtransport.tables import RepairLookup, check_rows, count_table, repair_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import Grid, GroupHistograms
    from fairtransport.tables import TableCounts
    from fairtransport.transport.line import QuantileMap, Sample

__all__ = ["RepairsTables"]


class RepairsTables:
    """The methods for tables of any engine; `QuantileRepair` has the parameters and learns the maps."""

    amount: float
    grouping: str
    missing: str
    small_groups: str
    min_group_size: int
    maps_: tuple[QuantileMap, ...]
    rows_at_knots_: tuple[NDArray[np.int64], ...]
    group_sizes_: NDArray[np.int64]
    groups_: Groups
    grid_: Grid | None
    set_aside_: dict[str, int]

    def _learn(
        self,
        sample_of: Callable[[tuple[int, ...]], Sample],
        rows_at_knots: Callable[[tuple[int, ...], Sample], NDArray[np.int64]],
        sizes: Any,
        counts: NDArray[np.int64],
        groups: Groups,
    ) -> None:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _warn_if_all_small(self) -> None:
        raise NotImplementedError

    def _learn_counts(self, histograms: GroupHistograms) -> None:
        """Make the target and the maps from counts."""
        self._learn(
            histograms.pooled_sample,
            lambda members, sample: _rows_at(histograms, members, sample.values),
            histograms.weights,
            histograms.rows,
            histograms.groups,
        )

    def fit_table(
        self,
        frame: Any,
        *,
        score: str,
        sensitive: str | Sequence[str],
        weight: str | None = None,
        range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
        n_bins: int = DEFAULT_BINS,
        max_groups: int = 1000,
    ) -> Self:
        """Find the target and the map of each group from a table of any engine, without collecting its rows.

        Parameters
        ----------
        frame : table
            Of pandas, polars (eager or lazy), pyarrow, DuckDB, Dask or PySpark.
        score : str
            Column of the scores, within [0, 1] or within ``range``. Rows without one are set aside: ``set_aside_``.
        sensitive : str or list of str
            Columns of the groups; several are crossed.
        weight : str, optional
            Column of the rows' weights.
        range : pair of float, optional
            Lowest and highest score that there may be; [0, 1] when omitted.
        n_bins : int, default 16384
            Resolution of the histograms that the maps are learned from.
        max_groups : int, default 1000
            More groups are refused: they are the mark of an identifier.

        Returns
        -------
        self
            Fitted for arrays (`transform`) and tables (`transform_table`).

        Notes
        -----
        Scores are counted at the first node of a grid that is not below them. With T the map that `fit` would learn
        from the rows and h the width of a bin, the map T' of the counts has

            T(a - h) <= T'(s) <= T(b) + h,

        where a < s <= b are the nearest nodes with rows of the group: where every bin has some, the score and its image
        move by no more than two bins and one. For scores on the grid T' is T.
        """
        self._check_parameters()
        check_choice(self.missing, ("error", "group"), name="missing")
        counts = count_table(
            frame,
            score=score,
            sensitive=sensitive,
            weight=weight,
            range=range,
            n_bins=n_bins,
            grouping=self.grouping,
            missing="group" if self.missing == "group" else "set_aside",
            max_groups=max_groups,
        )
        if counts.set_aside.get("no group"):
            named = say_columns(counts.histograms.groups.columns)
            raise ValueError(
                f"{counts.set_aside['no group']} rows have missing values in {named}. Drop these rows, fill them, "
                'or make them a group of their own with missing="group".'
            )
        return self.fit_counts(counts)

    def fit_counts(self, counts: TableCounts) -> Self:
        """Find the target and the map of each group from what `fairtransport.tables.count_table` found.

        Parameters
        ----------
        counts : TableCounts
            Rows without a group may be set aside: they had no part in the counts and will get no repaired score.

        Returns
        -------
        self
        """
        self._check_parameters()
        histograms = counts.histograms
        _check_counted(histograms)
        self._learn_counts(histograms)
        self._warn_if_all_small()
        self.grid_, self.set_aside_ = histograms.grid, counts.set_aside
        return self

    def transform_table(
        self, frame: Any, *, score: str, sensitive: str | Sequence[str], output: str = "repaired"
    ) -> Any:
        """Return the table with the repaired scores: a join with a small table and one linear interpolation.

        Parameters
        ----------
        frame : table
            Of any engine; it need not be that of `fit_table`.
        score : str
            Column of the scores; those outside the fitted range are clamped. `check_table` counts them.
        sensitive : str or list of str
            Columns of the groups, in the order of `fit_table`. A group that was not seen there, a missing group and a
            missing score give a missing result, and `check_table` counts them.
        output : str, default "repaired"
            Name of the new column.

        Returns
        -------
        table
            Of the same library. A lazy table stays lazy, and its rows may come in another order; others keep it, and
            so does Dask, with its partitions and index.
        """
        return repair_rows(self._lookup(), frame, score=score, sensitive=sensitive, output=output)

    def check_table(self, frame: Any, *, score: str, sensitive: str | Sequence[str]) -> dict[str, int]:
        """Count what `transform_table` clamps and what it leaves without a repaired score.

        Parameters
        ----------
        frame, score, sensitive
            As in `transform_table`.

        Returns
        -------
        dict of str to int
            ``rows``, all of them; ``clamped``; and ``no score``, ``no group`` and ``unknown group``, which get none.
        """
        return check_rows(self._lookup(), frame, score=score, sensitive=sensitive)

    def to_sql(
        self,
        *,
        score: str,
        sensitive: str | Sequence[str] | None = None,
        rows: str = "scores",
        table: str = "repair",
        output: str = "repaired",
    ) -> str:
        """Return the repair as standard SQL, for those who score in a database.

        Parameters
        ----------
        score : str
            Column of the scores in the table ``rows``.
        sensitive : str or list of str, optional
            Columns of the groups there; those of `fit_table` when omitted.
        rows : str, default "scores"
            Table that holds the scores.
        table : str, default "repair"
            Table to make: one row for each group and bin.
        output : str, default "repaired"
            Name of the new column.

        Returns
        -------
        str
            Statements that make and fill the table, and last the query that uses it. Where score or group are NULL, or
            the group was not seen, the result is NULL; scores outside the fitted range are clamped.
        """
        own = (sensitive,) if isinstance(sensitive, str) else sensitive
        lookup = self._lookup()
        chosen = lookup.groups.columns if own is None else own
        return lookup.to_sql(table=table, rows=rows, score=score, sensitive=chosen, output=output)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the table of `to_sql` as a Parquet file; its metadata say how to find the bin."""
        return self._lookup().to_parquet(path)

    def _lookup(self) -> RepairLookup:
        check_is_fitted(self)
        if self.grid_ is None:
            raise ValueError("This repair was fitted to arrays; tables need the maps that fit_table learns.")
        amount = check_real(self.amount, name="amount", most=1.0)
        return RepairLookup.of_maps(self.grid_, self.groups_, self.maps_, amount)


def _rows_at(histograms: GroupHistograms, members: Sequence[int], knots: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of some groups counted at each knot; where rows have weights, the certain number (sum w)^2 / sum w^2."""
    at = np.searchsorted(histograms.grid.nodes, knots)
    mass = histograms.by_group[list(members)].sum(axis=0)[at]
    squares = histograms.squares_by_class[:, list(members)].sum(axis=(0, 1))[at]
    certain = np.divide(mass**2, squares, out=np.ones_like(mass), where=squares > 0)
    return np.maximum(1, np.floor(certain * (1 + 1e-9))).astype(np.int64)


def _check_counted(histograms: GroupHistograms) -> None:
    """Check that each group of a table can be repaired from its rows with weight."""
    groups = histograms.groups
    named = say_columns(groups.columns)
    if groups.overlapping:
        raise ValueError("Quantile repair needs groups that do not overlap; use grouping='crossed'.")
    if len(groups) < 2:
        raise ValueError(f"The rows fall into {len(groups)} group(s) of {named}; at least 2 needed.")
    n_empty = int(np.count_nonzero(histograms.weights <= 0))
    if n_empty:
        raise ValueError(f"{n_empty} of {len(groups)} groups have total weight 0; drop their rows or weigh them.")
    if np.count_nonzero(histograms.everyone) == 1:
        raise ValueError(
            f"All {histograms.rows.sum()} scores fall into one bin, so there is nothing to repair: check the column, "
            "range= and n_bins=."
        )
