"""Audits of the rows of files: counted where they are, then estimated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairtransport.cli import _options as shared
from fairtransport.cli._console import progress_bar, spinner, stderr_is_terminal

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, Provenance
    from fairtransport.tables import TableCounts

__all__ = ["audit_counted", "audit_files", "count_files"]


def audit_files(
    files: list[str],
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> Audit:
    """Audit the rows of files; parameters as in `count_files`."""
    counts, provenance = count_files(
        files, names, positive, reading=reading, counting=counting, drawing=drawing, seed=seed
    )
    audit: Audit = audit_counted(counts, provenance, random_state=seed, **drawing)
    return audit


def count_files(
    files: list[str],
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> tuple[TableCounts, Provenance]:
    """Count the scores in files, and describe the files and the columns.

    Parameters
    ----------
    files : list of str
    names : dict of str to str
        Columns by role, as the options name them.
    positive : str or None
        The positive label as text.
    reading, counting, drawing : dict
        Options of `open_files`, `count_table` and `audit_counts`.
    seed : int

    Returns
    -------
    tuple of TableCounts and Provenance
    """
    from fairtransport.tables import count_table, open_files  # noqa: PLC0415 - numba takes a while

    def load_and_check() -> None:
        from fairtransport.auditing.options import check_options  # noqa: PLC0415
        from fairtransport.histograms import DEFAULT_BINS, Grid  # noqa: PLC0415

        score_range = counting["range"]
        grid = None if score_range is None else Grid.over(score_range, counting.get("n_bins", DEFAULT_BINS))
        check_options(grid, **drawing)

    from fairtransport.auditing.options import requested_nodes  # noqa: PLC0415

    counting = {"task": None, **counting, "any_range": True, "nodes": requested_nodes(drawing["thresholds"])}
    with open_files(files, **reading) as table:
        columns, paths = shared.name_columns(table, **names), table.paths
        if positive is not None:
            counting["pos_label"] = table.read_label(columns, positive)
        counts = table.run(count_table, columns, show=stderr_is_terminal(), meanwhile=load_and_check, **counting)
    from fairtransport.auditing.provenance import Provenance, describe_files  # noqa: PLC0415 - loaded by now

    with progress_bar("Hashing the files") as tell:
        sources = describe_files(paths, tell)
    roles = {role: (name,) if isinstance(name, str) else tuple(name) for role, name in vars(columns).items() if name}
    return counts, Provenance.now(
        files=sources, rows=counts.rows, columns=roles, positive=positive, seed=seed, strata_cuts=counts.cuts
    )


def audit_counted(counts: TableCounts, provenance: Provenance, *, by: str | None = None, **options: Any) -> Any:
    """Return the audit of counts or, with a column ``by``, the series of audits; ``options`` are of `audit_counts`."""
    from fairtransport.auditing import audit_counts, audit_counts_by  # noqa: PLC0415 - loaded by now

    with spinner("Intervals and noise floor"):
        if by is None:
            return audit_counts(counts, **options).with_provenance(provenance)
        series = audit_counts_by(counts, by=by, **options)
        return replace(series, overall=series.overall.with_provenance(provenance))
