"""Sensitive columns of any table library -> groups: labels, names and row lists.

A group value is a column's value; several columns are crossed (``grouping="crossed"``) or taken one by one
(``grouping="each"``, where a row belongs to one group of every column). No error text holds a group's value.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from fairtransport._columns import (
    Coded,
    check_number,
    code_column,
    count_codes,
    cross_codes,
    default_names,
    plain_value,
    read_columns,
    recode,
    say_columns,
    short_type,
)
from fairtransport._validation import check_choice, check_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["GroupLabel", "Groups", "make_groups"]

GroupLabel: TypeAlias = Hashable
"""A column's value (str, int, float, bool; None when missing) or a tuple of such values."""


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """The groups of a table's rows, as :func:`make_groups` builds them.

    Parameters
    ----------
    labels : tuple
        The value of the column; a tuple of values when several columns are crossed; ``(column, value)`` when
        ``grouping="each"``. Sorted by the first column's values, then the second's, and so on: numbers and
        booleans by size, then text, then anything else by its text, missing last.
    names : tuple of str
        The labels for people: ``"Female"``, ``"Black, Female"`` or ``"race=Black"``; all different.
    memberships : tuple of arrays of unsigned integers
        Each row's position in ``labels``, or ``len(labels)`` where it is in none: one array, or, with
        ``grouping="each"``, one for each column.
    columns : tuple of str
        Names of the sensitive columns; ``"sensitive_feature_0"`` and so on when they have none.
    grouping, missing : str
        As given to :func:`make_groups`.

    Notes
    -----
    Values are the same when Python says that they are equal: ``1``, ``1.0`` and ``True`` are one group.

    Examples
    --------
    >>> groups = make_groups({"race": ["B", "W", "W"], "sex": ["F", "F", "M"]})
    >>> groups
    Groups(3 groups of 3 rows, columns=('race', 'sex'), grouping='crossed')
    >>> groups.names, groups.counts.tolist(), groups.codes.tolist()
    (('B, F', 'W, F', 'W, M'), [1, 1, 1], [0, 1, 2])
    """

    labels: tuple[GroupLabel, ...]
    names: tuple[str, ...]
    memberships: tuple[NDArray[Any], ...]
    columns: tuple[str, ...]
    grouping: str
    missing: str

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:  # sizes and columns only: a repr ends up in logs
        told = f"{len(self)} groups of {self.n_rows} rows"
        return f"Groups({told}, columns={self.columns}, grouping={self.grouping!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        ours = (self.labels, self.n_rows, self.columns, self.grouping, self.missing)
        theirs = (other.labels, other.n_rows, other.columns, other.grouping, other.missing)
        return ours == theirs and all(map(np.array_equal, self.memberships, other.memberships))

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return self.memberships[0].size

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each group: ``make_groups(["F", "M", "F"]).counts`` is ``[2, 1]``."""
        counts: NDArray[np.int64] = sum(count_codes(codes, len(self) + 1) for codes in self.memberships)[:-1]
        counts.flags.writeable = False
        return counts

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], ...]:
        """The ascending row positions of each group, made when they are first asked for."""
        parts = [_rows_of(codes, len(self)) for codes in self.memberships]
        if len(parts) == 1:
            return tuple(parts[0])
        return tuple(np.sort(np.concatenate(members)) for members in zip(*parts, strict=True))

    @property
    def overlapping(self) -> bool:
        """Whether a row belongs to several groups: ``grouping="each"`` with more than one column."""
        return self.grouping == "each" and len(self.columns) > 1

    @property
    def codes(self) -> NDArray[np.int64]:
        """Each row's position in ``labels``; overlapping groups have no such thing and raise."""
        if self.overlapping:
            raise ValueError("With grouping='each' a row belongs to several groups and has no one code; use rows.")
        return self.memberships[0].astype(np.int64)

    def index_of(self, label: GroupLabel) -> int:
        """Return the position of a group, given its label or its name.

        Examples
        --------
        >>> groups = make_groups([("B", "F"), ("W", "F"), ("W", "M")])
        >>> groups.index_of(("W", "F")), groups.index_of("W, F")
        (1, 1)
        """
        key: Any = tuple(map(plain_value, label)) if isinstance(label, (list, tuple)) else plain_value(label)
        for known in (self.labels, self.names):
            if key in known:
                return known.index(key)
        raise ValueError(
            f"None of the {len(self)} groups of {say_columns(self.columns)} has that label; see Groups.labels."
        )

    def encode(self, sensitive_features: Any) -> Groups:
        """Return the same groups for new rows; a group without new rows keeps its place, with no rows.

        Columns are matched by name where both tables have names (others are ignored), by position where not.
        A value, or in crossed groups a combination, that these groups do not know raises ValueError.

        Examples
        --------
        >>> make_groups(["F", "M", "F"]).encode(["M", "M"]).counts.tolist()
        [0, 2]
        """
        given = self._read(sensitive_features)
        own, memberships = {label: place for place, label in enumerate(self.labels)}, given.memberships
        if given.labels != self.labels:
            places = [own.get(label, len(self)) for label in given.labels]
            table = np.array([*places, len(self)], dtype=short_type(len(self)))
            memberships = tuple(recode(codes, table) for codes in given.memberships)
        unseen = int(np.count_nonzero(np.any([codes == len(self) for codes in memberships], axis=0)))
        if unseen:
            owners = self._owners(label for label in given.labels if label not in own)
            raise ValueError(
                f"sensitive_features has {unseen} of {given.n_rows} rows whose value, or combination of "
                f"values, in {say_columns(owners)} is none of the {len(self)} known groups. Drop them, "
                "write values as the known ones are (spelling, type), or make groups from data that has them."
            )
        return replace(self, memberships=memberships)

    def adopt(self, sensitive_features: Any, *, max_groups: int = 1000) -> Groups:
        """Return these groups for new rows, as `encode` does, and behind them those that only the new rows have.

        Examples
        --------
        >>> wider = make_groups(["F", "M"]).adopt(["M", "A"])
        >>> wider.labels, wider.counts.tolist()
        (('F', 'M', 'A'), [0, 1, 1])
        """
        given = self._read(sensitive_features)
        known = set(self.labels)
        labels = (*self.labels, *(label for label in given.labels if label not in known))
        if labels == self.labels:
            return self.encode(given)
        check_number(len(labels), self.columns, max_groups)
        return replace(self, labels=labels, names=_names(labels, self.grouping)).encode(given)

    def _read(self, sensitive_features: Any) -> Groups:
        """Make groups of new rows in the way that these were made."""
        given = sensitive_features
        if not isinstance(given, Groups):
            columns = self._match(read_columns(given))
            return _build(columns, grouping=self.grouping, missing=self.missing, max_groups=math.inf)
        if (given.columns, given.grouping) != (self.columns, self.grouping):
            raise ValueError(f"The groups given are {given!r}; they cannot be matched with {self!r}.")
        return given

    def _match(self, given: dict[str, Any]) -> dict[str, Any]:
        """Put the columns given into the order of ``self.columns``, under these names."""
        nameless = any(tuple(names) == default_names(len(names)) for names in (self.columns, given))
        if nameless and len(given) == len(self.columns):
            return dict(zip(self.columns, given.values(), strict=True))
        if nameless or not set(self.columns) <= set(given):
            raise ValueError(f"sensitive_features must have {say_columns(self.columns)}; it has {say_columns(given)}.")
        return {name: given[name] for name in self.columns}

    def _owners(self, labels: Iterable[Any]) -> list[str]:
        """Name the columns that make these labels."""
        owners = {label[0] for label in labels} if self.grouping == "each" else set(self.columns)
        return [name for name in self.columns if name in owners]

    def select(self, mask_or_rows: ArrayLike) -> Groups:
        """Return the groups of some rows, renumbered: new row i is old row ``mask_or_rows[i]``; labels stay.

        A boolean mask keeps rows in their order; row positions may come in any order, and repeat (bootstrap).

        Examples
        --------
        >>> groups = make_groups(["F", "M", "F"])
        >>> groups.select([False, True, True]).codes.tolist(), groups.select([2, 2, 1]).codes.tolist()
        ([1, 0], [0, 0, 1])
        """
        chosen = np.asarray(mask_or_rows)
        if chosen.ndim != 1 or (chosen.dtype.kind not in "biu" and chosen.size):
            raise TypeError("mask_or_rows must be a vector of booleans or of row positions (whole numbers).")
        if chosen.dtype.kind == "b":
            if chosen.size != self.n_rows:
                raise ValueError(f"The mask has {chosen.size} entries, but there are {self.n_rows} rows.")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64, copy=False)
        return replace(self, memberships=tuple(codes[chosen] for codes in self.memberships))

    def shuffled(self, rng: np.random.Generator) -> Groups:
        """Return groups of the same sizes and overlaps whose rows are drawn by chance, for noise floors.

        Examples
        --------
        >>> groups = make_groups(["F", "M", "F", "M", "M"])
        >>> groups.shuffled(np.random.default_rng(0)).counts.tolist()
        [2, 3]
        """
        return self.select(rng.permutation(self.n_rows))

    def require(self, *, min_size: int, at_least: int = 2) -> None:
        """Raise ValueError when fewer than ``at_least`` groups have rows, or one has fewer than ``min_size``.

        Examples
        --------
        >>> make_groups(["F", "M", "F"]).require(min_size=2)
        Traceback (most recent call last):
        ValueError: A group of column 'sensitive_feature_0' has size 1, below min_size=2; 1 of 2 groups...
        """
        check_count(min_size, name="min_size")
        check_count(at_least, name="at_least")
        counts = self.counts
        filled, small = np.count_nonzero(counts), np.count_nonzero(counts < min_size)
        if filled < at_least:
            raise ValueError(
                f"The rows fall into {filled} group(s) of {say_columns(self.columns)}; at least {at_least} needed. "
                "Give rows of more groups, or another column."
            )
        if small:
            owners = self._owners([self.labels[int(counts.argmin())]])
            raise ValueError(
                f"A group of {say_columns(owners)} has size {counts.min()}, below min_size={min_size}; {small} of "
                f"{len(self)} groups are so small. Merge them into larger groups, set a smaller min_size=, "
                "or drop their rows."
            )

    def to_spec(self) -> dict[str, Any]:
        """Return what :meth:`encode` needs, and no row, as a dict that JSON can hold.

        Examples
        --------
        >>> make_groups({"sex": ["F", "M"]}).to_spec()
        {'labels': ['F', 'M'], 'columns': ['sex'], 'grouping': 'crossed', 'missing': 'error'}
        """
        labels = [list(label) if isinstance(label, tuple) else label for label in self.labels]
        for value in (value for label in labels for value in (label if isinstance(label, list) else [label])):
            finite = math.isfinite(value) if isinstance(value, float) else isinstance(value, (str, int))
            if not finite and value is not None:
                raise TypeError(
                    f"Groups of {say_columns(self.columns)} cannot be stored: among the values is a "
                    f"{type(value).__name__}, not text, finite number or boolean; turn it into text first."
                )
        spec = {"labels": labels, "columns": list(self.columns)}
        return {**spec, "grouping": self.grouping, "missing": self.missing}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Return groups without rows from what :meth:`to_spec` gave; :meth:`encode` gives them rows.

        Examples
        --------
        >>> spec = make_groups({"sex": ["F", "M"]}).to_spec()
        >>> Groups.from_spec(spec).encode(["M"]).counts.tolist()
        [0, 1]
        """
        try:
            labels = tuple(tuple(label) if isinstance(label, list) else label for label in spec["labels"])
            columns, grouping, missing = tuple(map(str, spec["columns"])), spec["grouping"], spec["missing"]
            n_distinct = len(set(labels))
        except (KeyError, TypeError):
            raise ValueError("A spec of groups has labels and columns (lists), grouping and missing.") from None
        _check_options(grouping, missing)
        width = 2 if grouping == "each" else len(columns) if len(columns) > 1 else 0
        widths = {len(label) if isinstance(label, tuple) else 0 for label in labels}
        if not columns or widths != {width} or n_distinct < len(labels):
            raise ValueError(f"The {len(labels)} labels of this spec do not fit its {len(columns)} column(s).")
        n_parts = len(columns) if grouping == "each" else 1
        nobody = (np.empty(0, dtype=short_type(len(labels))),) * n_parts
        return cls(labels, _names(labels, grouping), nobody, columns, grouping, missing)


def make_groups(
    sensitive_features: Any,
    *,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
    at_least: int = 1,
    max_groups: int = 1000,
) -> Groups:
    """Turn one or more sensitive columns into groups.

    Parameters
    ----------
    sensitive_features : column or table
        A pandas, polars or pyarrow column or table; a NumPy vector or matrix; a list of values or of rows;
        a dict of columns. A :class:`Groups` comes back as it is, whatever ``grouping`` and ``missing`` say.
    grouping : {"crossed", "each"}, default="crossed"
        Cross several columns, or make every value of every column a group of its own, so that groups overlap.
    missing : {"error", "group"}, default="error"
        Refuse missing values (None, NaN, NaT, NA), or make them a group: label None, name "missing".
    min_size : int, default=1
        The fewest rows that a group may have.
    at_least : int, default=1
        The fewest groups that there may be.
    max_groups : int, default=1000
        The most groups that there may be; more are the mark of an identifier or of a continuous column.

    Returns
    -------
    Groups
        Labels, names and row lists. Unused categories of a categorical column are no groups.

    Examples
    --------
    >>> table = {"race": ["B", "W", "W"], "sex": ["F", "F", "M"]}
    >>> make_groups(table).names
    ('B, F', 'W, F', 'W, M')
    >>> make_groups(table, grouping="each").names
    ('race=B', 'race=W', 'sex=F', 'sex=M')
    >>> make_groups(["F", None, "M"], missing="group").labels
    ('F', 'M', None)
    """
    _check_options(grouping, missing)
    check_count(max_groups, name="max_groups")
    groups = sensitive_features
    if not isinstance(groups, Groups):
        groups = _build(read_columns(groups), grouping=grouping, missing=missing, max_groups=max_groups)
    groups.require(min_size=min_size, at_least=at_least)
    return groups


def _check_options(grouping: Any, missing: Any) -> None:
    check_choice(grouping, ("crossed", "each"), name="grouping")
    check_choice(missing, ("error", "group"), name="missing")


def _build(columns: dict[str, Any], *, grouping: str, missing: str, max_groups: float) -> Groups:
    coded = {name: code_column(column, name, max_groups) for name, column in columns.items()}
    gaps = {
        name: int(np.count_nonzero(codes == len(values) - 1))
        for name, (values, codes) in coded.items()
        if None in values
    }
    if gaps and missing == "error":
        told = " and ".join(f"{size} rows of column {name!r}" for name, size in gaps.items())
        raise ValueError(
            f"sensitive_features has missing values in {told}. Drop these rows, fill the values, or make "
            'them a group of their own with missing="group".'
        )
    if grouping == "crossed":
        labels, codes = _cross(list(coded.values()))
        memberships = [codes]
    else:
        labels = [(name, value) for name, (values, _) in coded.items() for value in values]
        before = np.cumsum([0, *(len(values) for values, _ in coded.values())])
        kind = short_type(len(labels))
        memberships = [codes + start.astype(kind) for (_, codes), start in zip(coded.values(), before, strict=False)]
    check_number(len(labels), columns, max_groups)
    return Groups(tuple(labels), _names(labels, grouping), tuple(memberships), tuple(columns), grouping, missing)


def _cross(coded: list[Coded]) -> Coded:
    """Cross the columns: the combinations that occur, in the order of their values, and each row's place."""
    if len(coded) == 1:
        return coded[0]
    values, codes = coded[0]
    labels: list[Any] = [(value,) for value in values]
    for values, column_codes in coded[1:]:
        size = len(values)
        present, codes = cross_codes(codes, column_codes, size)
        labels = [(*labels[pair // size], values[pair % size]) for pair in present.tolist()]
    return labels, codes


def _rows_of(codes: NDArray[Any], n_groups: int) -> list[NDArray[np.int64]]:
    order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)  # NumPy sorts short integers by radix
    return np.split(order, np.cumsum(count_codes(codes, n_groups + 1))[:-1])[:-1]


def _names(labels: Sequence[Any], grouping: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for label in labels:
        if grouping == "each":
            name = f"{label[0]}={_show(label[1])}"
        else:
            name = ", ".join(map(_show, label)) if isinstance(label, tuple) else _show(label)
        tries = (name if number == 1 else f"{name} ({number})" for number in count(1))  # 1 and "1" look alike
        names[next(attempt for attempt in tries if attempt not in names)] = None
    return tuple(names)


def _show(value: Any) -> str:
    if value is None:
        return "missing"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value) or "(empty)"
