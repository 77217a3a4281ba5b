"""Groups of people: sensitive columns of any table library -> labels, names and rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Bools, Ints
from fairtransport._columns import (
    Coded,
    check_number,
    code_column,
    cross_codes,
    default_names,
    plain_value,
    read_columns,
    say_columns,
    short_type,
)
from fairtransport._validation import check_choice, check_count, check_flag

#: Differences below this share of the range of scores are small, unless users say otherwise.
MATERIALITY = 0.02

_FEW_GROUPS = 8  # whose rows are counted as quickly one after the other

# Columns -> codes: which groups the rows of a table form, and which of them each row belongs to.


def build_groups(
    columns: Mapping[str, Any],
    *,
    grouping: str = "crossed",
    missing: str = "group",
    max_groups: float,
    of: str = "sensitive_features",
    owner: str | None = None,
) -> Groups:
    """Return the groups, or strata, that the rows of a table form; see `GroupPolicy` for ``missing``."""
    coded = {name: code_column(column, name, max_groups, of=of) for name, column in columns.items()}
    gaps = {name: codes == len(values) - 1 for name, (values, codes) in coded.items() if None in values}
    if gaps and missing == "error":
        raise missing_values_error({name: int(np.count_nonzero(rows)) for name, rows in gaps.items()}, owner)
    labels: list[GroupLabel]
    if grouping == "crossed":
        labels, codes = _cross(list(coded.values()))
        memberships = [codes]
    else:
        labels = [(name, value) for name, (values, _) in coded.items() for value in values]
        before = np.cumsum([0, *(len(values) for values, _ in coded.values())])
        kind = short_type(len(labels))
        memberships = [codes + start.astype(kind) for (_, codes), start in zip(coded.values(), before, strict=False)]
    if gaps and missing == "set_aside":
        labels, memberships = _set_aside(labels, memberships, np.logical_or.reduce([*gaps.values()]))
    check_number(len(labels), columns, max_groups, of=of)
    names, of_new = name_groups(labels, grouping), "group" if missing == "group" else "error"
    return Groups(tuple(labels), names, tuple(memberships), tuple(columns), grouping, of_new)


def missing_values_error(counts: Mapping[str, int], owner: str | None = None) -> ValueError:
    """Return the error for the columns that have missing values, with the number of their rows.

    ``owner`` is the class that has the parameter ``groups``, where callers have it inside another one.
    """
    rows = " and ".join(
        f"{count:,} row{'' if count == 1 else 's'} of column {name!r}" for name, count in counts.items() if count
    )
    return ValueError(
        f"sensitive_features has missing values in {rows}. Drop these rows, fill the values, leave the rows out with "
        f'groups=ft.GroupPolicy(missing="set_aside"){f" of {owner}" if owner else ""}, or make them a group of their '
        'own with missing="group".'
    )


def _set_aside(
    labels: Sequence[GroupLabel], memberships: Sequence[NDArray[Any]], aside: Bools
) -> tuple[list[GroupLabel], list[NDArray[Any]]]:
    """Return the labels of the other rows, and memberships in which these rows have ``len(labels)``."""
    used = np.unique(np.concatenate([codes[~aside] for codes in memberships]))
    table = np.full(len(labels), used.size)
    table[used] = np.arange(used.size)
    kind = short_type(used.size)
    moved = [np.where(aside, used.size, table[codes]).astype(kind) for codes in memberships]
    return [labels[code] for code in used], moved


def _cross(coded: list[Coded]) -> Coded:
    """Return the combinations of values that occur, in the order of the values, and the code of each row."""
    if len(coded) == 1:
        return coded[0]
    values, codes = coded[0]
    labels: list[Any] = [(value,) for value in values]
    for values, column_codes in coded[1:]:
        size = len(values)
        present, codes = cross_codes(codes, column_codes, size)
        labels = [(*labels[pair // size], values[pair % size]) for pair in present.tolist()]
    return labels, codes


# Labels of groups: what they are, how they are shown, and which pool contains them.

GroupLabel: TypeAlias = Hashable
"""A column's value (str, int, float, bool; None when missing) or a tuple of such values."""

SMALL_GROUPS = "(small groups)"
"""Label and name of the group into which small groups are pooled."""


def name_groups(labels: Sequence[Any], grouping: str, pools: Collection[Any] = ()) -> tuple[str, ...]:
    """Return the names of groups: their labels as text, all different."""
    names: dict[str, None] = {}
    for label in labels:
        if label in pools:
            name = f"{label[0]}={SMALL_GROUPS}" if grouping == "each" else SMALL_GROUPS
        elif grouping == "each":
            name = f"{label[0]}={_show(label[1])}"
        else:
            name = ", ".join(map(_show, label)) if isinstance(label, tuple) else _show(label)
        candidates = (name if number == 1 else f"{name} ({number})" for number in count(1))  # 1 and "1" look alike
        names[next(text for text in candidates if text not in names)] = None
    return tuple(names)


def _show(value: Any) -> str:
    if value is None:
        return "missing"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value) or "(empty)"


def pool_of(label: Any, pools: Sequence[Any], grouping: str) -> Any:
    """Return the label of the pool that holds a pooled label."""
    return pools[0] if grouping == "crossed" else next(pool for pool in pools if pool[0] == label[0])


# Groups of few rows: pooled into one group, or dropped.

MIN_GROUP_SIZE = 30
"""The default size below which a group is small."""
MIN_SHOWN_ROWS = 5
"""Rows of the smallest group whose figures audits and servers show: those of fewer are those of single people."""
NEW_GROUP_ROWS = 10.0
"""Weight, in rows, of the prior of a group that a stream has not seen before."""


@dataclass(frozen=True)
class GroupPolicy:
    """The rule by which sensitive columns become groups: ``groups=`` of estimators, repairs, audits and metrics.

    Parameters
    ----------
    crossed : bool, default=True
        Whether to cross several columns, or to make every value of every column a group, so that groups overlap.
    missing : {"error", "group", "set_aside"}, default="error"
        Whether missing values (None, NaN, NaT, NA) raise ValueError, form a group (label None, name "missing"), or
        have their rows left out.
    small : {"keep", "pool", "drop"}, default="keep"
        Whether small groups are kept, pooled into one group called "(small groups)", or have their rows left out.
        A repair computes no map from the rows of a small group alone, whether it is kept or not; an audit shows small
        groups and does not judge them.
    min_size : int, default=30
        A group with fewer rows (of positive weight) is small. 1 treats all groups alike.
    new : {"error", "adopt"}, default="error"
        For ``partial_fit``: whether a group that was not seen before raises ValueError or is added.
    max_groups : int, default=1000
        Largest number of groups. More usually mean that a column is an identifier or continuous.

    See Also
    --------
    make_groups : Make groups from sensitive columns.

    Examples
    --------
    >>> make_groups(["F", None, "M"], GroupPolicy(missing="group")).names
    ('F', 'M', 'missing')
    """

    crossed: bool = True
    missing: str = "error"
    small: str = "keep"
    min_size: int = MIN_GROUP_SIZE
    new: str = "error"
    max_groups: int = 1000

    def __post_init__(self) -> None:
        check_flag(self.crossed, name="crossed")
        check_choice(self.missing, ("error", "group", "set_aside"), name="missing")
        check_choice(self.small, ("keep", "pool", "drop"), name="small")
        check_count(self.min_size, name="min_size")
        check_choice(self.new, ("error", "adopt"), name="new")
        check_count(self.max_groups, name="max_groups")

    @property
    def grouping(self) -> str:
        """``Groups.grouping`` of the groups."""
        return "crossed" if self.crossed else "each"


def check_policy(groups: Any) -> GroupPolicy:
    """Return a ``groups`` parameter: a policy, or the default one for None."""
    if groups is None:
        return GroupPolicy()
    if not isinstance(groups, GroupPolicy):
        raise TypeError(f"groups must be a GroupPolicy or None; got a {type(groups).__name__}.")
    return groups


def _with_pool(groups: Groups, few: Collection[GroupLabel]) -> dict[str, tuple[GroupLabel, ...]]:
    """Return the labels with those of small groups in a pool, which comes last; one for each column of ``"each"``."""
    joined = [label for label in groups.labels if label in few and label not in groups.pools]
    labels = [label for label in groups.labels if label not in few]
    pools = _pools_for(groups, joined)
    labels += [pool for pool in pools if pool not in labels]
    return {"labels": tuple(labels), "pooled": (*groups.pooled, *joined), "pools": pools}


def _without(groups: Groups, few: Collection[GroupLabel]) -> dict[str, tuple[GroupLabel, ...]]:
    """Return the labels without those of small groups; a small pool releases what it contains."""
    joined = [label for label in groups.labels if label in few and label not in groups.pools]
    released = [label for label in groups.pooled if pool_of(label, groups.pools, groups.grouping) in few]
    return {
        "labels": tuple(label for label in groups.labels if label not in few),
        "pooled": tuple(label for label in groups.pooled if label not in released),
        "dropped": (*groups.dropped, *released, *joined),
        "pools": tuple(pool for pool in groups.pools if pool not in few),
    }


def _pools_for(groups: Groups, joined: Sequence[Any]) -> tuple[GroupLabel, ...]:
    """Return the labels of the pools, existing ones first, each different from the label of any group."""
    taken = {*groups.labels, *groups.pooled, *groups.dropped}
    candidates = [SMALL_GROUPS, *(f"{SMALL_GROUPS} ({number})" for number in range(2, len(taken) + 2))]
    if groups.grouping == "each":
        existing = {pool[0] for pool in groups.pools}  # type: ignore[index]
        needed = {label[0] for label in joined} - existing
        options: list[list[GroupLabel]] = [
            [(name, text) for text in candidates] for name in groups.columns if name in needed
        ]
    elif groups.pools:
        options = []
    else:
        width = len(groups.columns)
        options = [[(text,) * width if width > 1 else text for text in candidates]]
    return (*groups.pools, *(next(label for label in labels if label not in taken) for labels in options))


_SETTLED = ("pooled", "dropped", "pools")  # left out where they are empty


UNKNOWN_GROUPS = ("error", "pooled", "common")
"""The treatments, at prediction, of groups that were not seen in ``fit``, and of missing ones."""


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """The groups of the rows of a table, as returned by :func:`make_groups`.

    Parameters
    ----------
    labels : tuple
        The value of the column; a tuple of values when several columns are crossed; ``(column, value)`` when
        ``grouping="each"``. Sorted by the first column's values, then the second's, and so on: numbers and
        booleans by size, then text, then anything else by its text, missing last.
    names : tuple of str
        The labels as text: ``"Female"``, ``"Black, Female"`` or ``"race=Black"``; all different.
    memberships : tuple of arrays of unsigned integers
        The index in ``labels`` of each row's group, or ``len(labels)`` where it belongs to none: one array, or, with
        ``grouping="each"``, one for each column.
    columns : tuple of str
        Names of the sensitive columns; ``"sensitive_feature_0"`` and so on when they have none.
    grouping : {"crossed", "each"}
        Whether several columns are crossed.
    missing : {"error", "group"}
        Whether :meth:`encode` raises for missing values or they are a group.
    pooled, dropped, pools : tuple, default=()
        Labels of the groups that :meth:`settle` has pooled or dropped, and of those that contain the pooled ones: one,
        or one for each column where ``grouping="each"``.

    Notes
    -----
    Values that compare equal in Python belong to the same group: ``1``, ``1.0`` and ``True`` are one group.

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
    pooled: tuple[GroupLabel, ...] = ()
    dropped: tuple[GroupLabel, ...] = ()
    pools: tuple[GroupLabel, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:  # may appear in logs, so without values
        sizes = f"{len(self)} groups of {self.n_rows} rows"
        return f"Groups({sizes}, columns={self.columns}, grouping={self.grouping!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        fields = ("labels", "columns", "grouping", "missing", *_SETTLED)
        same = all(getattr(self, name) == getattr(other, name) for name in fields)
        return same and all(map(np.array_equal, self.memberships, other.memberships))

    __hash__ = None  # type: ignore[assignment]  # contains arrays

    @property
    def n_rows(self) -> int:
        """Number of rows of the table."""
        return self.memberships[0].size

    @cached_property
    def counts(self) -> Ints:
        """Number of rows of each group: ``make_groups(["F", "M", "F"]).counts`` is ``[2, 1]``."""
        if len(self) <= _FEW_GROUPS:
            found = [[np.count_nonzero(codes == code) for code in range(len(self))] for codes in self.memberships]
            counts: Ints = np.sum(found, axis=0, dtype=np.int64)
        else:
            counts = np.sum([np.bincount(codes, minlength=len(self) + 1) for codes in self.memberships], axis=0)[:-1]
        counts.flags.writeable = False
        return counts

    @cached_property
    def rows(self) -> tuple[Ints, ...]:
        """The ascending row indices of each group, computed on first access."""
        parts = [_rows_of(codes, len(self)) for codes in self.memberships]
        if len(parts) == 1:
            return tuple(parts[0])
        return tuple(np.sort(np.concatenate(members)) for members in zip(*parts, strict=True))

    @property
    def overlapping(self) -> bool:
        """True if a row belongs to several groups: ``grouping="each"`` with more than one column."""
        return self.grouping == "each" and len(self.columns) > 1

    @property
    def has_group(self) -> Bools:
        """True if each row belongs to a group, of each column where groups overlap."""
        return np.logical_and.reduce([codes < len(self) for codes in self.memberships])

    @property
    def codes(self) -> Ints:
        """The index in ``labels`` of each row's group; overlapping groups raise ValueError."""
        if self.overlapping:
            raise ValueError("With crossed=False a row belongs to several groups and has no single code; use rows.")
        return self.memberships[0].astype(np.int64)

    def index_of(self, label: GroupLabel) -> int:
        """Return the index of a group with this label or name."""
        key: Any = tuple(map(plain_value, label)) if isinstance(label, (list, tuple)) else plain_value(label)
        for known in (self.labels, self.names):
            if key in known:
                return known.index(key)
        raise ValueError(
            f"None of the {len(self)} groups of {say_columns(self.columns)} has that label; see Groups.labels."
        )

    def encode(
        self, sensitive_features: Any, *, unknown_group: str = "error", sizes: ArrayLike | None = None
    ) -> Groups:
        """Return the same groups for new rows; groups without new rows are kept, with no rows.

        Columns are matched by name where both tables have names (further columns are ignored), otherwise by position.

        Parameters
        ----------
        sensitive_features : column, table or Groups
        unknown_group : {"error", "pooled", "common"}, default="error"
            Whether unknown values (or combinations), and missing ones where they are no group, raise ValueError, belong
            to no group (membership ``len(labels)``), or to the largest of ``sizes``.
        sizes : array-like of shape (n_groups,), optional
            Sizes of the groups; needed for ``"common"``.

        Examples
        --------
        >>> groups = make_groups(["F", "M", "F"])
        >>> groups.encode(["M", "M"]).counts.tolist()
        [0, 2]
        >>> groups.encode(["M", "D", None], unknown_group="pooled").codes.tolist()
        [1, 2, 2]
        """
        check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        new = self._read(sensitive_features, missing=self.missing if unknown_group == "error" else "group")
        memberships, strays = self._locate(new)
        if unknown_group == "common":
            memberships = self._as_largest(memberships, strays, sizes)
        elif unknown_group == "error":
            self._check_known(new, strays)
        return replace(self, memberships=memberships)

    def is_known(self, sensitive_features: Any) -> Bools:
        """Return which rows have values, or a combination of values, that `encode` knows."""
        strays = self._locate(self._read(sensitive_features, missing="group"))[1]
        return ~np.any(strays, axis=0)

    def _locate(self, new: Groups) -> tuple[tuple[NDArray[Any], ...], list[Bools]]:
        """Return the memberships of new rows in these groups, and which of them are unknown."""
        known, memberships = self._known(new), new.memberships
        if new.labels != self.labels or new.pools != self.pools:
            codes_of_labels = [known.get(label, len(self)) for label in new.labels]
            table = np.array([*codes_of_labels, len(self)], dtype=short_type(len(self)))
            memberships = tuple(table.take(codes) for codes in new.memberships)
        unknown = [label not in known for label in new.labels]
        strays = np.array([*unknown, not new.dropped or new.dropped != self.dropped])
        return memberships, [strays[codes] for codes in new.memberships]

    def _check_known(self, new: Groups, strays: list[Bools]) -> None:
        unseen = int(np.count_nonzero(np.any(strays, axis=0)))
        if unseen:
            known = self._known(new)
            owners = self._owners(label for label in new.labels if label not in known)
            raise ValueError(
                f"sensitive_features has {unseen} of {new.n_rows} rows whose value, or combination of "
                f"values, in {say_columns(owners)} is none of the {len(self)} known groups. Drop these rows, correct "
                "the spelling or type of their values, make groups from data that includes them, or, at prediction, "
                "pass unknown_group='pooled' or 'common'."
            )

    def _as_largest(
        self, memberships: tuple[NDArray[Any], ...], strays: list[Bools], sizes: ArrayLike | None
    ) -> tuple[NDArray[Any], ...]:
        """Return the memberships with unknown rows in the largest group, of each column where groups overlap."""
        if sizes is None:
            raise ValueError("unknown_group='common' needs the sizes of the groups.")
        sizes = np.asarray(sizes)
        columns: Sequence[Any] = self.columns if self.grouping == "each" else [None]
        moved = []
        for column, codes, stray in zip(columns, memberships, strays, strict=True):
            of_column = [column is None or label[0] == column for label in self.labels]  # type: ignore[index]
            moved.append(np.where(stray, np.where(of_column, sizes, -1).argmax(), codes).astype(codes.dtype))
        return tuple(moved)

    def _known(self, new: Groups) -> dict[GroupLabel, int]:
        """Return the code of every label that new rows may have; a value spelled like a pool is not the pool."""
        code_of = {label: code for code, label in enumerate(self.labels)}
        known = {label: code for label, code in code_of.items() if label not in self.pools or label in new.pools}
        for label in self.pooled:
            known[label] = code_of.get(pool_of(label, self.pools, self.grouping), len(self))
        return known | dict.fromkeys(self.dropped, len(self))

    def settle(self, small: str, min_size: int = MIN_GROUP_SIZE, sizes: ArrayLike | None = None) -> Groups:
        """Return the groups with those of few rows kept, pooled into one group, or dropped.

        Parameters
        ----------
        small : {"keep", "pool", "drop"}
            ``"pool"`` merges the small groups, even a single one, into one group called "(small groups)", which comes
            last; with ``grouping="each"``, into one for each column. Rows of dropped groups have no group.
        min_size : int, default=30
            Groups with fewer rows are small.
        sizes : array-like of shape (n_groups,), optional
            Sizes to compare with ``min_size``, such as rows of positive weight; ``counts`` when omitted.

        Examples
        --------
        >>> groups = make_groups(["a"] * 40 + ["b"] * 35 + ["c"] * 3 + ["d"] * 2)
        >>> pooled = groups.settle("pool")
        >>> pooled.names, pooled.counts.tolist(), pooled.pooled
        (('a', 'b', '(small groups)'), [40, 35, 5], ('c', 'd'))
        >>> pooled.encode(["d", "a"]).codes.tolist()
        [2, 0]
        >>> dropped = groups.settle("drop")
        >>> dropped.names, dropped.counts.tolist(), dropped.encode(["d", "a"]).codes.tolist()
        (('a', 'b'), [40, 35], [2, 0])
        """
        policy = GroupPolicy(small=small, min_size=min_size)
        counts = self.counts if sizes is None else np.asarray(sizes, dtype=np.float64)
        if counts.shape != (len(self),):
            raise ValueError(f"sizes has shape {counts.shape}, but there are {len(self)} groups.")
        few = {label for label, size in zip(self.labels, counts, strict=True) if size < policy.min_size}
        if small == "keep" or not few:
            return self
        fields = (_with_pool if small == "pool" else _without)(self, few)
        settled = replace(self, **fields, memberships=())  # type: ignore[arg-type]
        known = settled._known(settled)  # noqa: SLF001
        table = np.array([*(known.get(label, len(settled)) for label in self.labels), len(settled)])
        return replace(
            settled,
            names=name_groups(settled.labels, self.grouping, settled.pools),
            memberships=tuple(table.astype(short_type(len(settled))).take(codes) for codes in self.memberships),
        )

    def adopt(
        self,
        sensitive_features: Any,
        *,
        unknown_group: str = "error",
        sizes: ArrayLike | None = None,
        max_groups: int = 1000,
    ) -> Groups:
        """Return these groups for new rows, as `encode` does, followed by groups that only the new rows have.

        ``unknown_group`` applies to missing values where they are no group.

        Examples
        --------
        >>> wider = make_groups(["F", "M"]).adopt(["M", "A"])
        >>> wider.labels, wider.counts.tolist()
        (('F', 'M', 'A'), [0, 1, 1])
        """
        new = self._read(sensitive_features, missing=self.missing if unknown_group == "error" else "group")
        known = self._known(new)
        unknown = [label for label in new.labels if label not in known and not self._lacks_value(label)]
        if not unknown:
            return self.encode(new, unknown_group=unknown_group, sizes=sizes)
        if not {*unknown}.isdisjoint(self.pools):
            raise ValueError(
                f"A new value of {say_columns(self.columns)} is spelled like the name of the pooled small groups; "
                "rename it."
            )
        labels = (*self.labels, *unknown)
        check_number(len(labels), self.columns, max_groups)
        wider = replace(self, labels=labels, names=name_groups(labels, self.grouping, self.pools))
        of_all = None if sizes is None else np.pad(np.asarray(sizes), (0, len(unknown)))
        return wider.encode(new, unknown_group=unknown_group, sizes=of_all)

    def _lacks_value(self, label: Any) -> bool:
        """Return whether a label has a missing value, and missing values are no group."""
        values = label[1:] if self.grouping == "each" else label if isinstance(label, tuple) else (label,)
        return self.missing == "error" and None in values

    def _read(self, sensitive_features: Any, *, missing: str | None = None) -> Groups:
        """Return the groups of new rows, made with the same options, or with another treatment of missing values."""
        new = sensitive_features
        if not isinstance(new, Groups):
            columns = self._match(read_columns(new))
            return build_groups(columns, grouping=self.grouping, missing=missing or self.missing, max_groups=math.inf)
        if (new.columns, new.grouping) != (self.columns, self.grouping):
            raise ValueError(f"sensitive_features is {new!r}, which cannot be matched with {self!r}.")
        return new

    def _match(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Return columns in the order of ``self.columns``, with these names."""
        nameless = any(tuple(names) == default_names(len(names)) for names in (self.columns, columns))
        if nameless and len(columns) == len(self.columns):
            return dict(zip(self.columns, columns.values(), strict=True))
        if nameless or not set(self.columns) <= set(columns):
            raise ValueError(
                f"sensitive_features must have {say_columns(self.columns)}; it has {say_columns(columns)}."
            )
        return {name: columns[name] for name in self.columns}

    def _owners(self, labels: Iterable[Any]) -> list[str]:
        """Return the names of the columns of these labels."""
        owners = {label[0] for label in labels} if self.grouping == "each" else set(self.columns)
        return [name for name in self.columns if name in owners]

    def select(self, mask_or_rows: ArrayLike) -> Groups:
        """Return the groups of some rows, given as a mask or as indices, which may repeat; the labels stay the same."""
        chosen = np.asarray(mask_or_rows)
        if chosen.ndim != 1 or (chosen.dtype.kind not in "biu" and chosen.size):
            raise TypeError("mask_or_rows must be a vector of booleans or of row indices (integers).")
        if chosen.dtype.kind == "b":
            if chosen.size != self.n_rows:
                raise ValueError(f"The mask has {chosen.size} entries, but there are {self.n_rows} rows.")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64, copy=False)
        return replace(self, memberships=tuple(codes[chosen] for codes in self.memberships))

    def shuffled(self, rng: np.random.Generator) -> Groups:
        """Return the groups with their rows permuted, which keeps sizes and overlaps."""
        return self.select(rng.permutation(self.n_rows))

    def require(self, at_least: int = 2) -> None:
        """Raise ValueError when fewer than ``at_least`` groups have rows."""
        filled = np.count_nonzero(self.counts)
        if filled < check_count(at_least, name="at_least"):
            raise ValueError(
                f"The rows fall into {filled} group(s) of {say_columns(self.columns)}; at least {at_least} needed. "
                "Use rows of more groups, or another column."
            )

    def to_spec(self) -> dict[str, Any]:
        """Return the definition of the groups, without rows, as a dict that JSON can represent."""
        lists = {
            name: [list(label) if isinstance(label, tuple) else label for label in getattr(self, name)]
            for name in ("labels", *_SETTLED)
        }
        every = [label for labels in lists.values() for label in labels]
        for value in (value for label in every for value in (label if isinstance(label, list) else [label])):
            finite = math.isfinite(value) if isinstance(value, float) else isinstance(value, (str, int))
            if not finite and value is not None:
                raise TypeError(
                    f"Groups of {say_columns(self.columns)} cannot be stored: a value is of type "
                    f"{type(value).__name__}, not text, a finite number or a boolean; convert it to text first."
                )
        spec = {"labels": lists["labels"], "columns": list(self.columns)}
        stored = {name: lists[name] for name in _SETTLED if lists[name]}
        return {**spec, "grouping": self.grouping, "missing": self.missing, **stored}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Return groups without rows from the dict of :meth:`to_spec`; ValueError if its parts do not fit."""
        try:
            labels, pooled, dropped, pools = (
                tuple(tuple(label) if isinstance(label, list) else label for label in spec.get(name, ()))
                for name in ("labels", *_SETTLED)
            )
            columns, grouping, missing = tuple(map(str, spec["columns"])), spec["grouping"], spec["missing"]
            every = (*labels, *pooled, *dropped)
            n_distinct = len(set(every))
            stray_pools = len(set(pools).difference(labels))
        except (KeyError, TypeError, AttributeError):
            raise ValueError("A spec of groups has labels and columns (lists), grouping and missing.") from None
        check_choice(grouping, ("crossed", "each"), name="grouping")
        check_choice(missing, ("error", "group"), name="missing")
        width = 2 if grouping == "each" else len(columns) if len(columns) > 1 else 0
        widths = {len(label) if isinstance(label, tuple) else 0 for label in every}
        if not columns or widths != {width} or n_distinct < len(every):
            raise ValueError(f"The {len(labels)} labels of this spec do not fit its {len(columns)} column(s).")
        owners = [{label[0] if grouping == "each" else None for label in part} for part in (pooled, pools)]
        if stray_pools or owners[0] != owners[1]:
            raise ValueError("The pooled labels of this spec do not fit its pools.")
        names = name_groups(labels, grouping, pools)
        no_rows = (np.empty(0, dtype=short_type(len(labels))),) * (len(columns) if grouping == "each" else 1)
        return cls(labels, names, no_rows, columns, grouping, missing, pooled, dropped, pools)


def make_groups(sensitive_features: Any, groups: GroupPolicy | None = None, *, at_least: int = 1) -> Groups:
    """Turn one or more sensitive columns into groups.

    Parameters
    ----------
    sensitive_features : column or table
        A pandas, polars or pyarrow column or table; a NumPy vector or matrix; a list of values or of rows;
        a dict of columns. A :class:`Groups` is taken as it is, and only its small groups are pooled or dropped.
    groups : GroupPolicy, optional
        Whether columns are crossed, missing values form a group, small groups are pooled.
    at_least : int, default=1
        Smallest number of groups.

    Returns
    -------
    Groups
        Labels, names and rows. Unused categories of a categorical column are not groups.

    See Also
    --------
    Groups.encode : The same groups for new rows.
    Groups.settle : Pool or drop small groups.

    Examples
    --------
    >>> table = {"race": ["B", "W", "W"], "sex": ["F", "F", "M"]}
    >>> make_groups(table).names
    ('B, F', 'W, F', 'W, M')
    >>> make_groups(table, GroupPolicy(crossed=False)).names
    ('race=B', 'race=W', 'sex=F', 'sex=M')
    >>> make_groups(["F", None, "M"], GroupPolicy(missing="group")).labels
    ('F', 'M', None)
    """
    policy = check_policy(groups)
    made = read_groups(sensitive_features, policy).settle(policy.small, policy.min_size)
    made.require(at_least)
    return made


def read_groups(sensitive_features: Any, policy: GroupPolicy, *, at_least: int = 1, owner: str | None = None) -> Groups:
    """Return the groups before small ones are pooled or dropped; see `missing_values_error` for ``owner``."""
    made = sensitive_features
    if not isinstance(made, Groups):
        made = build_groups(
            read_columns(made), grouping=policy.grouping, missing=policy.missing, max_groups=policy.max_groups,
            owner=owner,
        )  # fmt: skip
    made.require(at_least)
    return made


def rows_of_groups(
    sensitive_features: Any, policy: GroupPolicy | None, *vectors: Any, at_least: int = 2
) -> tuple[Groups, Any]:
    """Return the groups and the vectors, without the rows that the policy leaves out; `Groups` leave none out."""
    made = make_groups(sensitive_features, policy, at_least=at_least)
    fitting = all(np.size(each) == made.n_rows for each in vectors if each is not None)  # callers report the others
    inside = np.logical_or.reduce([codes < len(made) for codes in made.memberships])
    if isinstance(sensitive_features, Groups) or not fitting or inside.all():
        return made, vectors
    rows = np.flatnonzero(inside)
    return made.select(rows), tuple(None if each is None else np.asarray(each)[rows] for each in vectors)


def _rows_of(codes: NDArray[Any], n_groups: int) -> list[Ints]:
    order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)  # NumPy uses a radix sort for short integers
    return np.split(order, np.cumsum(np.bincount(codes, minlength=n_groups + 1))[:-1])[:-1]
