"""Groups of single rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fairtransport.stream.input._rows import object_array

if TYPE_CHECKING:
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["GroupParser", "RejectedLineError"]

_SCALARS = frozenset({str, int, float, bool, type(None)})


class RejectedLineError(ValueError):
    """A line that cannot be scored; the message is the reason."""


class GroupParser:
    """Finder of the groups of one row, as `Groups.encode` finds those of a table.

    Parameters
    ----------
    schema : InputSchema
    """

    def __init__(self, schema: InputSchema) -> None:
        self._schema = schema
        self._columns = ", ".join(repr(name) for name in schema.sensitive)
        self._unknown = self._codes_of_unknown()
        self._codes: dict[tuple[Any, ...], tuple[int, ...]] = {}  # of known groups, so it cannot grow without limit

    def parse(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the codes of the row's groups; where new groups are adopted, the values."""
        if not self._schema.sensitive:
            return self._unknown
        try:
            return self._parse(values)
        except RejectedLineError:
            if self._schema.needs_groups and self._schema.unknown_group == "error":
                raise
            return self._unknown

    def _parse(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        scalar = _SCALARS.issuperset(map(type, values))
        if not scalar or any(type(value) is float and not math.isfinite(value) for value in values):
            raise RejectedLineError(f"no group in {self._columns}")
        if self._schema.groups.missing == "error" and None in values:
            raise RejectedLineError(f"no group in {self._columns}")
        if self._schema.adopts_groups:
            return values
        codes = self._codes.get(values)
        if codes is None:
            codes = self._codes[values] = self._encode(values)
        return codes

    def _encode(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        names = self._schema.sensitive
        table = {name: object_array([value]) for name, value in zip(names, values, strict=True)}
        try:
            groups = self._schema.groups.encode(table)
        except (ValueError, TypeError):
            raise RejectedLineError(f"unknown group in {self._columns}") from None
        return tuple(int(codes[0]) for codes in groups.memberships)

    def _codes_of_unknown(self) -> tuple[int | None, ...]:
        """Return the codes of rows of no known group: those of no group, or of the largest.

        Where new groups are adopted, a row has values instead of codes, and these rows have none.
        """
        groups = self._schema.groups
        if self._schema.adopts_groups:
            return (None,) * len(self._schema.sensitive)
        if self._schema.unknown_group != "common" or not len(groups):
            return (len(groups),) * len(groups.memberships)
        missing = {name: object_array([None]) for name in groups.columns}
        found = groups.encode(missing, unknown_group="common", sizes=self._schema.group_sizes)
        return tuple(int(codes[0]) for codes in found.memberships)
