"""Warnings about an input without groups: its rows are scored, but the model cannot be adjusted to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._columns import say_columns
from fairtransport.tables.column_roles import suggest_names

if TYPE_CHECKING:
    from fairtransport.stream._report import AdjustmentReport
    from fairtransport.stream.input import BatchReader, InputSchema

__all__ = ["MissingGroups"]


class MissingGroups:
    """Check that the rows of an input have groups; each input is warned of once.

    Parameters
    ----------
    schema : InputSchema
    reader : BatchReader
        Opened before the first check.
    """

    def __init__(self, schema: InputSchema, reader: BatchReader) -> None:
        self._schema, self._reader = schema, reader
        self._checked = False

    def check_header(self, *, frozen: bool) -> str | None:
        """Return a warning if the header lacks a column of the groups; None if it has all, or if there is no header.

        Parameters
        ----------
        frozen : bool
            Whether adjusting is suspended.

        Returns
        -------
        str or None

        Raises
        ------
        ValueError
            If the model is to be adjusted, and nothing says what happens to rows without a group.
        """
        absent = self._reader.absent_columns
        if not absent:
            return None
        self._checked = True
        lacking = f"input has no {say_columns(absent)}{self._hint(absent)}"
        if self._schema.learns and not frozen and self._schema.unknown_group == "error":
            raise ValueError(
                f"The {lacking}, so the model cannot be adjusted to its groups. Correct the header, or use --freeze to "
                "score the rows without adjusting the model."
            )
        return f"the {lacking}. {self._consequence(frozen=frozen)}"

    def check_first_batch(self, report: AdjustmentReport) -> str | None:
        """Return a warning if no row of the first batch has a known group; None if one has, and for later batches."""
        if self._checked:
            return None
        self._checked = True
        absent, known = self._reader.absent_columns, self._schema.sensitive if len(self._schema.groups) else ()
        none, consequence = (
            f"none of the first {len(report.scores)} rows has a",
            self._consequence(frozen=report.frozen),
        )
        if absent:
            return f"{none} {say_columns(absent)}{self._hint(absent)}. {consequence}"
        if known and not any(group.rows for group in report.groups):
            return f"{none} group that the model knows: check the values of {say_columns(known)}. {consequence}"
        return None

    def _hint(self, absent: tuple[str, ...]) -> str:
        """Return the names that are similar, where there are any."""
        hint = suggest_names(absent[0], list(self._reader.unused_columns or ()))
        return f" ({hint.removesuffix('.')})" if hint.startswith("close") else ""

    def _consequence(self, *, frozen: bool) -> str:
        if self._schema.unknown_group == "common":
            return "Rows without a group count as rows of the largest group."
        if self._schema.learns and not frozen:
            return "Rows without a group are scored; the model is not adjusted to them."
        return "Rows without a group are scored; they are not monitored."
