"""What the repair command prints: the distances that its criterion compares, before and after repair."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.auditing import Audit
    from fairtransport.auditing.records import Reading
    from fairtransport.histograms import GroupHistograms
    from fairtransport.repair.file_repair import CountedCells, FileRepair

__all__ = ["measure"]

_PAIRS = "strong_pairwise_disparity"
_REPLICATES = 100  # for the noise floor of the table that is shown
_MIN_ROWS = 30  # of the groups that are compared


def _audit_histograms(histograms: Any, **options: Any) -> Audit:
    from fairtransport.auditing import audit_histograms  # noqa: PLC0415

    return audit_histograms(histograms, n_bootstrap=_REPLICATES, n_permutations=_REPLICATES, random_state=0, **options)


def _figures(audits: list[Audit]) -> dict[str, dict[str, float | None]]:
    """Return each metric and its noise floor, as means over audits."""
    return _mean_readings([audit.readings for audit in audits])


def _mean_readings(parts: Sequence[Mapping[str, Reading]]) -> dict[str, dict[str, float | None]]:
    figures: dict[str, dict[str, float | None]] = {}
    for name in parts[0]:
        readings = [part[name] for part in parts if name in part]
        floors = [reading.floor for reading in readings if reading.floor is not None]
        figures[name] = {
            "value": fmean(reading.value for reading in readings),
            "noise_floor": fmean(floors) if floors else None,
        }
    return figures


def measure(done: FileRepair, criterion: str) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return the figures before and after repair, and those of held-out rows: the mean over folds."""
    figures = {
        name: _criterion_figures([getattr(done, name)], done, criterion, _MIN_ROWS) for name in ("before", "after")
    }
    compared = done.before.settle("drop", _MIN_ROWS).groups  # the groups that the other figures compare
    folds = [fold.regroup(compared) for fold in done.held_out]
    if folds and len(compared) > 1 and all(fold.group_rows.all() for fold in folds):
        figures["held_out"] = _criterion_figures(folds, done, criterion, 1)
    return figures


def _criterion_figures(
    parts: list[GroupHistograms], done: FileRepair, criterion: str, min_rows: int
) -> dict[str, dict[str, float | None]]:
    """Return what a criterion compares, as means over parts of the rows, and the error where there are labels."""
    from fairtransport.criteria import needs_labels  # noqa: PLC0415 - narwhals takes a while

    split = [done.by_stratum(part) for part in parts] if done.strata else None
    pooled = parts if split is None else [one.groups.filled() for one in split]
    figures = _figures([_audit_histograms(part, min_judged_rows=min_rows) for part in pooled])
    if not needs_labels(criterion) or not parts[0].has_labels:
        if split is not None:
            audits = [_audit_within(one, min_rows) for one in split]
            found = _mean_readings(audits)
            figures |= {f"conditional_{name}": found[name] for name in (_PAIRS,) if name in found}
        return figures
    kept = {name: value for name, value in figures.items() if name == "error_rate"}
    for label in (1, 0)[: 2 if criterion == "equalized_odds" else 1]:
        if split is None:
            found = _figures([_audit_histograms(_with_label(part, label), min_judged_rows=min_rows) for part in parts])
        else:
            found = _mean_readings([_audit_within(one, min_rows, label) for one in split])
        kept |= {f"{_PAIRS}_label_{label}": found[_PAIRS]} if _PAIRS in found else {}
    return kept


def _with_label(histograms: GroupHistograms, label: int) -> GroupHistograms:
    """Return the histograms of the rows with one label."""
    squares = None if histograms.squares is None else histograms.squares[label : label + 1]
    one = replace(histograms, masses=histograms.masses[label : label + 1], squares=squares)
    return replace(one, rows=one.effective_sizes.round().astype(int)).filled()


def _audit_within(cells: CountedCells, min_rows: int, label: int | None = None) -> Mapping[str, Reading]:
    """Return the disparities within strata."""
    parts = [cells.groups, *cells.within]
    chosen = [part.filled() if label is None else _with_label(part, label) for part in parts]
    strata = {str(number): part for number, part in enumerate(chosen[1:]) if len(part.groups)}
    return _audit_histograms(chosen[0], min_judged_rows=min_rows, strata=strata).conditional
