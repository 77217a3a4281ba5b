"""What every model of this package shares with one that was loaded: `needs_groups_` and `score_rows`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fairtransport._sklearn.group_awareness import needs_groups

__all__ = ["RowScoring"]


class RowScoring:
    """Scores of the rows of a table, by the names of its columns; see `fairtransport.tabular.RowScorer`."""

    @property
    def needs_groups_(self) -> bool:
        """Whether the model needs the group of a row to score it."""
        check_is_fitted(self)
        return needs_groups(self)

    def score_rows(self, table: Any, *, unknown_group: str = "error") -> Any:
        """Return a score for each row of a table whose columns are found by name.

        Parameters
        ----------
        table : table
            Of pandas, polars or pyarrow, or a dict of columns; cells may be text, as in a CSV file.
        unknown_group : {"error", "pooled", "common"}, default="error"
            Where the group is needed: whether rows of a group that was not seen in ``fit``, and rows without a group,
            are left without a score, scored as everyone pooled, or scored as members of the largest group.

        Returns
        -------
        fairtransport.tabular.RowScores
            With NaN, and a reason, for each row that cannot be scored.
        """
        # By name: models lie below tables, and users should not have to know that.
        scorer = import_module("fairtransport.tabular").RowScorer(self, unknown_group=unknown_group)
        return scorer.score_rows(table)
