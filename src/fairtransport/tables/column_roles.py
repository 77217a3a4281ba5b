"""Tables of any engine, opened and checked before the work begins.

Error texts name columns and counts, never a value.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairtransport._columns import say_columns
from fairtransport.tables._dask_partitions import look_first
from fairtransport.tables._engines import collect, column, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

__all__ = ["PROBED", "Columns", "check_columns", "check_most", "open_table", "refuse_identifiers", "suggest_names"]

#: First rows in which identifiers are looked for, before all rows are grouped.
PROBED = 1 << 17

_MOST_NAMED = 20  # columns that an error text lists


@dataclass(frozen=True)
class Columns:
    """Which column is what.

    Parameters
    ----------
    score : str
    sensitive_features : tuple of str
    label : str or None
    strata : tuple of str
        Columns of the strata.
    weight : str or None
    """

    score: str
    sensitive_features: tuple[str, ...]
    label: str | None = None
    strata: tuple[str, ...] = ()
    weight: str | None = None

    @classmethod
    def named(
        cls,
        *,
        score: str,
        sensitive_features: str | Sequence[str],
        label: str | None = None,
        strata: str | Sequence[str] | None = None,
        weight: str | None = None,
    ) -> Self:
        """Return what users call ``score=``, ``sensitive_features=`` and so on, checked as names."""
        return cls(
            _name(score, "score"),
            _names(sensitive_features, "sensitive_features"),
            None if label is None else _name(label, "label"),
            () if strata is None else _names(strata, "strata"),
            None if weight is None else _name(weight, "weight"),
        )

    def __iter__(self) -> Iterator[str]:
        """Every name once, in the order of the parameters."""
        names = (self.score, *self.sensitive_features, self.label, *self.strata, self.weight)
        return iter(dict.fromkeys(name for name in names if name is not None))

    def keys(self) -> dict[str, str]:
        """Return the columns that rows are grouped by, under the names that the counts have them: g0, b0, label."""
        named = {f"g{number}": name for number, name in enumerate(self.sensitive_features)}
        named |= {f"b{number}": name for number, name in enumerate(self.strata)}
        return named if self.label is None else {**named, "label": self.label}


def _name(value: Any, role: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{role} must be the name of a column; got a {type(value).__name__}.")
    return value


def _names(value: Any, role: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{role} must be the name of a column or a list of names; got a {type(value).__name__}.")
    if not value or len(set(value)) < len(value):
        raise ValueError(f"{role} must name at least one column, and each once; got {len(value)} names.")
    return tuple(value)


def open_table(frame: Any) -> nw.LazyFrame[Any]:
    """Return a table of any engine for narwhals' lazy expressions; nothing is read yet.

    Examples
    --------
    >>> import polars as pl
    >>> open_table(pl.DataFrame({"s": [0.5]})).collect_schema().names()
    ['s']
    """
    try:
        table = nw.from_native(frame)
    except TypeError:
        kind = type(frame).__name__
        raise TypeError(
            f"frame must be a table of pandas, polars, pyarrow, DuckDB, Dask or PySpark; got a {kind}. For arrays "
            "there is fairtransport.audit."
        ) from None
    except nw.exceptions.DuplicateError:
        raise ValueError("Two columns of the table are named alike; rename or drop one.") from None
    return table.lazy()


def check_columns(schema: Mapping[str, nw.dtypes.DType], columns: Columns) -> None:
    """Raise when a column is not there or cannot be what it is said to be."""
    for name in columns:
        if name not in schema:
            raise ValueError(f"The table has no column {name!r}; {suggest_names(name, list(schema))}")
    for name in filter(None, (columns.score, columns.weight)):
        if not schema[name].is_numeric():
            kind = type(schema[name]).__name__
            raise TypeError(
                f"Column {name!r} holds {kind}, not numbers. If its text shows numbers, cast it first; otherwise name "
                "another column."
            )
    for name in filter(None, (*columns.sensitive_features, *columns.strata, columns.label)):
        if schema[name].is_nested():
            kind = type(schema[name]).__name__
            raise TypeError(f"Column {name!r} holds {kind}: lists and structs cannot be compared as groups.")


def suggest_names(name: str, known: list[str]) -> str:
    """Return which names of columns are close to one that is not there, or else which there are."""
    folded = {str(one).casefold(): one for one in known}  # pandas names columns by numbers too
    close = difflib.get_close_matches(name.casefold(), folded, n=3)
    if close:
        return f"close to it: {', '.join(repr(folded[one]) for one in close)}."
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"it has {', '.join(map(repr, known[:_MOST_NAMED]))}{more}." if known else "it has no columns."


def refuse_identifiers(table: nw.LazyFrame[Any], columns: Columns, *, max_groups: int, crossed: bool) -> None:
    """Raise when the first rows alone have too many groups, strata or labels: a group-by would be as long as the table.

    Missing values are no groups here; after the group-by, the number is checked exactly.
    """
    questions: list[tuple[str, tuple[str, ...]]] = []
    for role, chosen in (("sensitive_features", columns.sensitive_features), ("strata", columns.strata)):
        questions += [(role, (name,)) for name in chosen]
        if len(chosen) > 1 and (crossed or role == "strata"):
            questions.append((role, chosen))
    if columns.label is not None:
        questions.append(("label", (columns.label,)))
    names = list(dict.fromkeys(name for _, chosen in questions for name in chosen))
    keys = {name: f"c{place}" for place, name in enumerate(names)}
    count = partial(_count_distinct, questions=[[keys[name] for name in chosen] for _, chosen in questions])
    if table.implementation.is_dask():
        distinct = partial(_find_distinct, keys=keys, n_rows=PROBED)
        answers = look_first(table.select(*names), distinct, count, keys=list(keys.values()), n_rows=PROBED)
    else:
        answers = iter([count(_first(table, keys, PROBED))])
    for found in answers:
        for (role, chosen), n_found in zip(questions, found, strict=True):
            if role != "label":
                check_most(n_found, role, chosen, max_groups, probed=True)
            elif n_found > 2:
                raise ValueError(f"Column {chosen[0]!r} has at least {n_found} different labels; two are needed.")


def _first(table: nw.LazyFrame[Any], keys: Mapping[str, str], n_rows: int) -> nw.LazyFrame[Any]:
    """Return the first rows of some columns under other names; NaN is missing."""
    schema = schema_of(table)
    chosen = {key: _without_nan(column(table, name), schema[name]) for name, key in keys.items()}
    return table.select(**chosen).head(n_rows)


def _find_distinct(table: nw.LazyFrame[Any], *, keys: Mapping[str, str], n_rows: int) -> nw.LazyFrame[Any]:
    return _first(table, keys, n_rows).group_by(*keys.values()).agg(nw.len().alias("rows"))


def _count_distinct(first: nw.LazyFrame[Any], *, questions: Sequence[Sequence[str]]) -> list[int]:
    """Count the values of each column, or of several crossed, but for the missing ones."""
    single = list(dict.fromkeys(key for one in questions for key in one))
    distinct = {key: nw.col(key).n_unique() for key in single}
    missing = {f"{key}_missing": nw.col(key).null_count() for key in single}
    row = collect(first.select(**distinct, **missing)).rows(named=True)[0]
    counts = []
    for one in questions:
        if len(one) == 1:  # of no rows, some engines say None
            counts.append(int((row[one[0]] or 0) - bool(row[f"{one[0]}_missing"])))
        else:
            counts.append(int(collect(first.select(*one).drop_nulls().unique().select(nw.len())).item()))
    return counts


def _without_nan(values: nw.Expr, kind: nw.dtypes.DType) -> nw.Expr:
    return nw.when(~values.is_nan()).then(values) if kind.is_float() else values


def check_most(n_groups: int, role: str, columns: Sequence[str], max_groups: int, *, probed: bool = False) -> None:
    """Raise when there are more groups or strata than ``max_groups``."""
    if n_groups > max_groups:
        told = f"at least {n_groups}" if probed else f"{n_groups}"
        what = "groups" if role == "sensitive_features" else "strata"
        raise ValueError(
            f"{role} has {told} {what} in {say_columns(columns)}; max_groups is {max_groups}. If a column is an "
            "identifier or continuous, drop it or cut it into ranges; if not, raise max_groups=."
        )
