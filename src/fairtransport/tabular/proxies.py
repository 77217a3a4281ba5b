"""Columns of a raw table: what they contain, and how well one tells the values of another (leaks and proxies)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.tables.column_roles import check_names
from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular.column_plans import encode_text, parse_numbers, read_table

_MOST_VALUES = 20  # of a column that is told
_BINS = 50  # of numbers, and categories, that tell
_SCORES = re.compile(r"(?i)score|prob|risk|pred|rating|y_?hat|logit")
_LABELS = re.compile("(?i)label|target|outcome|class|hired|default|approved|income|admit|good_|high_|^y$|recid|repaid")
_GROUPS = r"sex|gender|race|ethnic[a-z]*|religion|nationality|disab[a-z]*|age_?(?:group|band|class)"
_EXACT = re.compile(rf"(?i)({_GROUPS}|origin|colou?r|black|white|asian|hispanic)")
_WITHIN = re.compile(rf"(?i)(^|[^a-z])({_GROUPS})([^a-z]|$)")
_MOST_GROUPS = 20  # values of a column that is proposed as a sensitive one
_POSITIVE = {"1", "1.0", "true", "yes", "y", "t"}
_FEW = 30  # rows with a value, and without it, that an area is measured for


def describe_columns(table: Any) -> list[dict[str, Any]]:
    """Describe the columns of a table of people, without showing a person's values.

    Parameters
    ----------
    table : table
        Raw rows, of pandas, polars or pyarrow.

    Returns
    -------
    list of dict
        For each column ``name``, ``kind`` ("number", "words" or "date"), the number of ``missing`` and of
        ``distinct`` values, ``values`` with their counts where there are at most two, ``unit`` (all numbers are within
        [0, 1]) and ``left_out``: why an encoder does not use the column as a feature, or an empty text.
    """
    encoder = TableEncoder()
    try:
        left_out = encoder.fit(table).left_out_
    except ValueError:  # no column can be used as a feature; a table of scores is audited nevertheless
        left_out = {}
    kinds = {plan.name: plan.kind for plan in getattr(encoder, "plans_", [])}
    columns = []
    for name, values in read_table(table).items():
        words, codes = encode_text(values, name)
        counts = dict(zip(words, np.bincount(codes[codes >= 0], minlength=len(words)).tolist(), strict=True))
        numbers = _numbers(values, name)
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


def guess_roles(columns: list[dict[str, Any]], table: Any = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Propose the columns of score, label and groups, by their names and values.

    Parameters
    ----------
    columns : list of dict
        As from `describe_columns`.
    table : table, optional
        The rows: where names do not say which label is positive, it is the one whose people have the higher scores.

    Returns
    -------
    roles : dict
        ``score``, ``label`` and ``pos_label``, or empty texts; lists of ``sensitive`` columns and of those to ``drop``.
    why : dict of str to str
        The reason of each, as a code such as ``"score_name"``: its name says so; ``"none"``: there is no proposal.
    """
    roles: dict[str, Any] = {"score": "", "label": "", "pos_label": "", "sensitive": [], "drop": []}
    why = dict.fromkeys(roles, "none")
    numbers = [one for one in columns if one["kind"] == "number" and one["distinct"] > 2]
    named = [one for one in numbers if _SCORES.search(one["name"])]
    units = [o for o in numbers if o["unit"] and o["distinct"] > _MOST_GROUPS and not _LABELS.search(o["name"])]
    if named or len(units) == 1:
        roles["score"] = (named or units)[-1]["name"]
        why["score"] = "score_name" if named else "score_unit"
    few = [one["name"] for one in columns if 2 <= one["distinct"] <= _MOST_GROUPS]
    roles["sensitive"] = [*filter(_EXACT.fullmatch, few)] or [*filter(_WITHIN.search, few)]
    why["sensitive"] = "sensitive" if roles["sensitive"] else "none"
    pairs = [one for one in columns if one["distinct"] == 2 and one["name"] not in roles["sensitive"]]
    named = [one for one in pairs if _LABELS.search(one["name"])]
    if pairs:
        label, kind = (named or pairs)[-1], "name" if named else "two"
        usual = [value for value in label["values"] if value.strip().lower() in _POSITIVE]
        roles |= {"label": label["name"], "pos_label": (usual or sorted(label["values"], key=label["values"].get))[0]}
        why |= {"label": f"label_{kind}", "pos_label": f"positive_{'usual' if usual else 'rare'}"}
        if table is not None and roles["score"] and not usual:
            roles["pos_label"], why["pos_label"] = _higher_label(table, label["name"], roles["score"]), "positive_high"
    roles["drop"] = [one["name"] for one in columns if one["left_out"] and one["name"] != (roles["score"] or None)]
    return roles, why


def _higher_label(table: Any, label: str, score: str) -> str:
    """Return the label whose people have the higher mean score."""
    columns = read_table(table)
    words, codes = encode_text(columns[label], label)
    numbers = _numbers(columns[score], score)
    known = np.isfinite(numbers) & (codes >= 0)
    centred = numbers[known] - numbers[known].mean() if known.any() else numbers[known]
    return words[int(np.argmax(np.bincount(codes[known], weights=centred, minlength=len(words))))]


def find_proxies(
    table: Any, targets: Sequence[str], columns: Sequence[str]
) -> dict[tuple[str, str], tuple[str, float]]:
    """Measure how well each column alone tells the people with one value of another column from all others.

    Parameters
    ----------
    table : table
        Rows of people, of pandas, polars or pyarrow.
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
    table = read_table(table)
    check_names([*targets, *columns], table)
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
