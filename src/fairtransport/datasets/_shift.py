"""Subsampling of a data set to given class rates of its groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from sklearn.utils import Bunch

from fairtransport._validation import check_choice, check_count, check_real

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["shift_class_rate"]

_NAME_LISTS = frozenset({"feature_names", "target_names", "sensitive_names"})


def shift_class_rate(
    dataset: Bunch,
    rates: Mapping[Any, float],
    *,
    by: str,
    size: int | Mapping[Any, int] | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Bunch:
    """Subsample a data set so that groups have given rates of positive labels.

    Parameters
    ----------
    dataset : sklearn.utils.Bunch
        As returned by a loader of this package, with frames or arrays; ``target`` holds 0 and 1.
    rates : mapping of group to float
        P(target = 1 | group) to reach, in [0, 1]. Groups that are not named keep all their rows.
    by : str
        The column of ``sensitive_features`` whose values are the groups.
    size : int or mapping of group to int, default=None
        Number of rows to keep of each named group. None, or a group that is not in the mapping, keeps as many as
        the rate allows.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Determines the choice and the order of the rows.

    Returns
    -------
    sklearn.utils.Bunch
        A new one with the same entries, each with the kept rows only, and ``indices``: the positions of the kept
        rows in ``dataset``, in random order. No row appears twice. Pandas frames keep their row labels.

    Raises
    ------
    ValueError
        If a column or a group is unknown, a rate is outside [0, 1], a rate requires a class that the group
        does not have, or a size is larger than the rate allows.

    Notes
    -----
    A group that is brought to rate r keeps all rows of the class that is too rare, and as many of the other
    class as come closest to r. With a size n, floor(r n + 1/2) of the n rows are positive. Either way the rate
    is met to within half a row. Within group and class the rows are a uniform sample without replacement, so
    that p(X | A, Y) is unchanged. The paper changes the level of unfairness in this way (section "Changing
    Level of Unfairness").

    Examples
    --------
    >>> from fairtransport.datasets import load_adult, shift_class_rate
    >>> adult = load_adult()
    >>> shifted = shift_class_rate(adult, {"Female": 0.4, "Male": 0.3}, by="sex", random_state=0)
    >>> female = (shifted.sensitive_features["sex"] == "Female").to_numpy()
    >>> round(float(shifted.target[female].mean()), 3)
    0.4
    """
    target = _labels(dataset)
    groups = _column(dataset, by, rows=len(target))
    known = sorted(set(groups.tolist()), key=str)
    _check_groups(rates, known, by=by)
    sizes = _sizes(size, rates)
    generator = _generator(random_state)

    kept = [np.flatnonzero([group not in rates for group in groups.tolist()])]
    for group in filter(rates.__contains__, known):  # sorted, so that the order of the mapping does not matter
        member = groups == group
        positives, negatives = np.flatnonzero(member & (target == 1)), np.flatnonzero(member & (target == 0))
        rate = check_real(rates[group], name=f"the rate of {group!r}", most=1.0)
        n_positive, n_negative = _counts(group, rate, positives.size, negatives.size, size=sizes.get(group))
        kept.append(generator.choice(positives, n_positive, replace=False))
        kept.append(generator.choice(negatives, n_negative, replace=False))
    return _take(dataset, generator.permutation(np.concatenate(kept)), rows=len(target))


def _counts(group: Any, rate: float, positives: int, negatives: int, *, size: int | None) -> tuple[int, int]:
    """Return how many positive and negative rows to keep."""
    for lacking, label in ((rate > 0 and not positives, "positive"), (rate < 1 and not negatives, "negative")):
        if lacking:
            raise ValueError(f"the rate of {group!r} cannot become {rate:g}: the group has no {label} label.")
    totals = np.arange(1, positives + negatives + 1)
    n_positives = np.floor(rate * totals + 0.5).astype(np.int64)
    # Both counts grow with the total, so that every total up to the largest is possible.
    possible = (n_positives <= positives) & (totals - n_positives <= negatives)
    most = int(totals[possible][-1])
    if size is None:
        whole = possible & ((n_positives == positives) | (totals - n_positives == negatives))
        miss = np.where(whole, np.abs(n_positives / totals - rate), np.inf)
        size = int(totals[miss <= miss.min() + 1e-12][-1])
    elif size > most:
        raise ValueError(f"size asks for {size} rows of {group!r}; at a rate of {rate:g} at most {most} are possible.")
    chosen = int(n_positives[size - 1])
    return chosen, size - chosen


def _labels(dataset: Bunch) -> NDArray[Any]:
    """Return the labels, all of them 0 or 1."""
    if not isinstance(dataset, Bunch) or not {"data", "target", "sensitive_features"} <= set(dataset):
        raise TypeError(
            "dataset must be a Bunch with data, target and sensitive_features, as load_adult returns it; "
            f"got {type(dataset).__name__}."
        )
    target = np.asarray(dataset.target)
    if target.ndim != 1 or not np.isin(target, (0, 1)).all():
        raise ValueError("dataset.target must be one column of labels 0 and 1.")
    return target


def _column(dataset: Bunch, by: str, *, rows: int) -> NDArray[np.object_]:
    """Return a sensitive column as an array of objects."""
    table = dataset.sensitive_features
    if isinstance(table, np.ndarray):
        if "sensitive_names" not in dataset:
            raise ValueError("dataset.sensitive_features is an array; dataset.sensitive_names must name its columns.")
        names = list(dataset.sensitive_names)
        values = table[:, names.index(check_choice(by, names, name="by"))].tolist()
    else:
        frame = nw.from_native(table, eager_only=True)
        values = frame.get_column(check_choice(by, frame.columns, name="by")).to_list()
    if len(values) != rows:
        raise ValueError(f"dataset.sensitive_features has {len(values)} rows, but dataset.target has {rows}.")
    column = np.empty(rows, dtype=object)
    column[:] = values
    return column


def _check_groups(rates: Mapping[Any, float], known: list[Any], *, by: str) -> None:
    """Raise an error unless every named group is a value of the column."""
    if not isinstance(rates, Mapping):
        raise TypeError(f"rates must map groups to rates, such as {{'Female': 0.4}}; got {type(rates).__name__}.")
    if not rates:
        raise ValueError("rates is empty; give the rate of at least one group, such as {'Female': 0.4}.")
    for group in rates:
        if group not in known:
            raise ValueError(
                f"rates has the group {group!r}, which is none of the {len(known)} groups of column {by!r}."
            )


def _sizes(size: int | Mapping[Any, int] | None, rates: Mapping[Any, float]) -> dict[Any, int]:
    """Return the number of rows of each group that has one."""
    if size is None:
        return {}
    if not isinstance(size, Mapping):
        return dict.fromkeys(rates, check_count(size, name="size"))
    for group in size:
        if group not in rates:
            raise ValueError(f"size has the group {group!r}, which is not in rates.")
    return {group: check_count(rows, name=f"the size of {group!r}") for group, rows in size.items()}


def _generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy generator; a ``RandomState`` seeds a new one."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _take(dataset: Bunch, indices: NDArray[np.intp], *, rows: int) -> Bunch:
    """Select rows of every entry that has as many as the target; the other entries stay as they are."""

    def select(name: str, value: Any) -> Any:
        if name in _NAME_LISTS or getattr(value, "shape", ())[:1] != (rows,):
            return value
        if isinstance(value, np.ndarray):
            return value[indices]
        return nw.from_native(value, eager_only=True, allow_series=True)[indices].to_native()

    return Bunch(**{name: select(name, value) for name, value in dataset.items()} | {"indices": indices})
