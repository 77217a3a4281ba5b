"""Audits of files: rows are counted where they are, then figures are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import fairtransport as ft
from fairtransport.cli import _options as shared
from fairtransport.cli._output import progress_bar, spinner, stderr_is_terminal

if TYPE_CHECKING:
    from fairtransport.auditing import Provenance
    from fairtransport.tables import Columns, TableCounts


@dataclass(frozen=True)
class AuditPlan:
    """The columns that are audited, and options of `count_table` and `audit_counts`."""

    names: dict[str, Any]
    positive: str | None
    reading: shared.ReadingOptions
    counting: dict[str, Any]
    drawing: dict[str, Any]

    @property
    def all_counting(self) -> dict[str, Any]:
        """The options of counting that the audit needs."""
        from fairtransport.auditing.options import requested_nodes  # noqa: PLC0415 - numba takes a while

        nodes = requested_nodes(self.drawing["thresholds"])
        return {"task": None, **self.counting, "any_range": True, "nodes": nodes}

    def count(self, files: list[str]) -> tuple[TableCounts, Provenance]:

        def load_and_check() -> None:
            from fairtransport.auditing.options import check_options  # noqa: PLC0415

            bounds = self.counting["range"]
            n_bins = self.counting.get("n_bins", ft.histograms.DEFAULT_BINS)
            grid = None if bounds is None else ft.histograms.Grid.over(bounds, n_bins)
            check_options(grid, **self.drawing)

        counting, show = self.all_counting, stderr_is_terminal()
        with self.reading.open(files) as table:
            columns, paths = shared.name_columns(table, **self.names), table.paths
            if self.positive is not None:
                counting["pos_label"] = table.read_label(columns, self.positive)
            counts = table.run(ft.tables.count_table, columns, show=show, meanwhile=load_and_check, **counting)
        return counts, self.provenance(counts, columns, paths)

    def provenance(self, counts: TableCounts, columns: Columns, paths: Sequence[Any]) -> Provenance:
        seed = self.drawing["inference"].random_state
        known = {"rows": counts.rows, "positive": counts.positive_name, "strata_cuts": counts.cuts, "seed": seed}
        with progress_bar("Hashing the files") as tell:
            return ft.auditing.Provenance.of_files(paths, columns, tell, **known)

    def audit(self, counts: TableCounts, provenance: Provenance, *, by: str | None = None) -> Any:
        """Return the audit of counts or, with a column ``by``, the series of audits."""
        with spinner("Intervals and noise floor"):
            if by is None:
                return ft.auditing.audit_counts(counts, **self.drawing).with_provenance(provenance)
            series = ft.auditing.audit_counts_by(counts, by=by, **self.drawing)
            return replace(series, overall=series.overall.with_provenance(provenance))
