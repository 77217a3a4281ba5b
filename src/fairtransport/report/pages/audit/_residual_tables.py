"""Errors of real-valued predictions, as tables of the page of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import number_text, score_text
from fairtransport.auditing.errors.regression import REGRESSION_FIGURES
from fairtransport.report.pages.audit._table import EMPTY_CELL, Cell, Row, Table
from fairtransport.report.style.colors import MOST_NAMED

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, Estimate

__all__ = ["collect_residual_tables"]

_TITLES = {"rmse": "RMSE", "mae": "MAE", "r2": "R²", "mean_residual": "Mean residual"}


def collect_residual_tables(audit: Audit) -> list[Table]:
    """Return the errors by group, and the mean residuals by decile of the prediction; none without such labels."""
    if audit.regression is None:
        return []
    return [_figure_table(audit), _decile_table(audit)]


def _figure_table(audit: Audit) -> Table:
    errors = audit.regression
    rows = []
    if errors is not None:
        for index, group in enumerate(errors.groups):
            cells = []
            for name in REGRESSION_FIGURES:
                p_value = group.p_values[name]
                mark = " *" if p_value is not None and p_value <= 1 - audit.settings.confidence else ""
                cells.append(_estimate(group.figures[name], mark))
            rows.append(Row(group.name, tuple(cells), index))
        rows.append(Row("Everyone", tuple(_estimate(errors.overall[name]) for name in REGRESSION_FIGURES)))
    reference = "" if errors is None else errors.reference
    return Table(
        key="residuals",
        title="Errors of the predictions",
        caption="Root mean squared error, mean absolute error, coefficient of determination, and mean residual: label "
        f"minus prediction, positive where predictions are too low. With {audit.settings.confidence:.0%} intervals; * "
        f"marks a difference from {reference} beyond chance, with p-values adjusted for the number of groups (Holm).",
        columns=("Group", *_TITLES.values()),
        rows=tuple(rows),
        wide=frozenset({2}),
    )


def _decile_table(audit: Audit) -> Table:
    errors = audit.regression
    shown = sorted(sorted(range(len(audit.groups)), key=lambda index: -audit.groups[index].rows)[:MOST_NAMED])
    rows = []
    for decile in () if errors is None else errors.deciles:
        cells = (_estimate(decile.overall), *(_estimate(decile.groups[index]) for index in shown))
        rows.append(Row(f"{number_text(decile.low)} to {number_text(decile.high)}", cells))
    return Table(
        key="residual-deciles",
        title="Mean residuals by prediction",
        caption="Tenths of all predictions. Where predictions mean the same in all groups, mean residuals agree.",
        columns=("Prediction", "Everyone", *(audit.groups[index].name for index in shown)),
        rows=tuple(rows),
    )


def _estimate(estimate: Estimate | None, mark: str = "") -> Cell:
    if estimate is None:
        return EMPTY_CELL
    value, low, high = map(score_text, (estimate.value, estimate.low, estimate.high))
    return Cell(f"{value}{mark} ({low} to {high})", estimate.value)
