"""Columns of a raw table: what they contain, and how well one tells the values of another (leaks and proxies)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular.column_plans import encode_text, parse_numbers

_MOST_VALUES = 20  # of a column that is told
_BINS = 50  # of numbers, and categories, that tell
_FEW = 30  # rows with a value, and without it, that an area is measured for


def describe_columns(table: Any) -> list[dict[str, Any]]:
    """Return name, kind, missing and distinct values of each column, and why it cannot be a feature."""
    encoder = TableEncoder()
    try:
        left_out = encoder.fit(table).left_out_
    except ValueError:  # no column can be used as a feature; a table of scores is audited nevertheless
        left_out = {}
    kinds = {plan.name: plan.kind for plan in getattr(encoder, "plans_", [])}
    columns = []
    for name in table.column_names:
        words, codes = encode_text(table[name], name)
        counts = dict(zip(words, np.bincount(codes[codes >= 0], minlength=len(words)).tolist(), strict=True))
        numbers = _numbers(table[name], name)
        known = numbers[np.isfinite(numbers)]
        columns.append(
            {
                "name": name,
                "kind": kinds.get(name) or ("number" if known.size else "words"),
                "missing": int(np.count_nonzero(codes < 0)),
                "distinct": len(words),
                "values": dict(sorted(counts.items())) if len(words) <= 2 else {},
                "unit": bool(known.size and known.min() >= 0.0 and known.max() <= 1.0),
                "left_out": left_out.get(name, ""),
            }
        )
    return columns


def _numbers(column: Any, name: str) -> Floats:
    values, unreadable = parse_numbers(column, name, ".")
    return values if np.count_nonzero(unreadable) <= 0.05 * unreadable.size else np.full(values.size, np.nan)


def find_proxies(
    table: Any, targets: Sequence[str], columns: Sequence[str]
) -> dict[tuple[str, str], tuple[str, float]]:
    """Measure how well each column alone tells the people with one value of another column from all others.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of people.
    targets : sequence of str
        Columns to be told, such as sensitive ones. Many different numbers are split at their median; columns with more
        than 20 other values are passed over.
    columns : sequence of str
        Columns that may tell them, such as features.

    Returns
    -------
    dict
        For each target and column, the value that is told best, and the area under the ROC curve (see `tell_apart`).
    """
    codes, found = {name: _codes(table[name], name) for name in columns}, {}
    for target in targets:
        words, values = encode_text(table[target], target)
        if len(words) > _MOST_VALUES and np.isfinite(numbers := _numbers(table[target], target)).any():
            middle = np.nanmedian(numbers)
            words, values = [f"up to {middle:g}", f"above {middle:g}"], np.where(values < 0, -1, numbers > middle)
        for name in columns if 2 <= len(words) <= _MOST_VALUES else ():
            areas = tell_apart(codes[name], values)
            found[target, name] = words[areas.argmax()], float(areas.max())
    return found


def tell_apart(column: Ints, values: Ints) -> Floats:
    """Return how well a column of codes tells the people with each value from others: areas under the ROC curve.

    An area is the probability that of two people, one with the value, the column tells who that is. Codes are ordered
    by their shares of the value in the other half of the rows: by chance it is 0.5, also with many codes and few rows.
    """
    halves, known = np.random.default_rng([2, column.size]).integers(2, size=column.size), values >= 0
    shape = (2, int(column.max()) + 1, int(values.max()) + 1)
    cells = np.ravel_multi_index((halves[known], column[known], values[known]), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)
    rows, sizes = counts.sum(axis=2, keepdims=True), counts.sum(axis=(0, 1))
    shares = ((counts + sizes / sizes.sum()) / (rows + 1))[::-1]
    areas = np.full(sizes.size, 0.5)
    for value in np.flatnonzero(np.minimum(sizes, sizes.sum() - sizes) >= _FEW):
        share, inside, outside = (one[..., value].ravel() for one in (shares, counts, rows - counts))
        above = (share[:, None] > share) + 0.5 * (share[:, None] == share)
        areas[value] = inside @ above @ outside / (inside.sum() * outside.sum())
    return areas


def _codes(column: Any, name: str) -> Ints:
    """Return codes of categories, the most frequent ones apart, or of quantiles of numbers; missing values are one."""
    words, codes = encode_text(column, name)
    if len(words) > _BINS and np.isfinite(numbers := _numbers(column, name)).any():
        cuts = np.unique(np.nanquantile(numbers, np.linspace(0.0, 1.0, _BINS)))
        binned: Ints = np.where(np.isnan(numbers), cuts.size + 1, np.searchsorted(cuts, numbers)).astype(np.int64)
        return binned
    order = np.argsort(np.argsort(-np.bincount(codes + 1), kind="stable"))
    return np.minimum(order[codes + 1], _BINS)
