"""Guesses about the columns of a table, each with its reason: score, label, groups; identifiers, leaks and proxies."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.app.texts import TEXTS
from fairtransport.tabular import TableEncoder
from fairtransport.tabular.column_plans import encode_text, parse_numbers

_SCORES = re.compile(r"score|prob|risk|pred|rating|y_?hat|logit", re.IGNORECASE)
_LABELS = re.compile(
    r"label|target|outcome|class|hired|default|approved|income|admitted|good_|high_|^y$|recid|repaid", re.IGNORECASE
)
_GROUPS = re.compile(
    r"^(sex|gender|race|ethnic\w*|age_?(group|band|class)|religion|nationality|disab\w*|origin|colou?r|black|white|asian|"
    r"hispanic)$|_(sex|gender|race)$",
    re.IGNORECASE,
)
_MOST_GROUPS = 20  # values of a column that is proposed as a sensitive one
_BINS = 50  # of numbers, and categories, whose association is measured
# Areas under the ROC curve of one column: from 0.8 on, discrimination is called excellent (Hosmer and Lemeshow,
# "Applied Logistic Regression", section 5.2.4). Features that are known before the outcome hardly ever reach 0.98.
_PROXY, _LEAK = 0.8, 0.98
_FEW = 30  # rows with a value, and without it, that an area is measured for
_POSITIVE = {"1", "1.0", "true", "yes", "y", "t"}


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
        numbers = _numbers(table[name], name)
        known = numbers[np.isfinite(numbers)]
        columns.append(
            {
                "name": name,
                "kind": kinds.get(name) or ("number" if known.size else "words"),
                "missing": int(np.count_nonzero(codes < 0)),
                "distinct": len(words),
                "values": sorted(words) if len(words) <= 2 else [],
                "unit": bool(known.size and known.min() >= 0.0 and known.max() <= 1.0),
                "left_out": left_out.get(name, ""),
            }
        )
    return columns


def _numbers(column: Any, name: str) -> Floats:
    values, unreadable = parse_numbers(column, name, ".")
    return values if np.count_nonzero(unreadable) <= 0.05 * unreadable.size else np.full(values.size, np.nan)


def guess_roles(columns: list[dict[str, Any]], table: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the proposed role of columns, and the reason of each role."""
    roles: dict[str, Any] = {"score": "", "label": "", "pos_label": "", "sensitive": [], "drop": []}
    why = dict.fromkeys(roles, TEXTS["why_none"])
    numbers = [one for one in columns if one["kind"] == "number" and one["distinct"] > 2]
    named = [one for one in numbers if _SCORES.search(one["name"])]
    units = [
        one for one in numbers if one["unit"] and one["distinct"] > _MOST_GROUPS and not _LABELS.search(one["name"])
    ]
    if named or len(units) == 1:
        roles["score"] = (named or units)[-1]["name"]
        why["score"] = TEXTS["why_score_name" if named else "why_score_unit"]
    roles["sensitive"] = [
        o["name"] for o in columns if _GROUPS.search(o["name"]) and 2 <= o["distinct"] <= _MOST_GROUPS
    ]
    if roles["sensitive"]:
        why["sensitive"] = TEXTS["why_sensitive"]
    pairs = [one for one in columns if one["distinct"] == 2 and one["name"] not in roles["sensitive"]]
    named = [one for one in pairs if _LABELS.search(one["name"])]
    if pairs:
        label = (named or pairs)[-1]
        roles["label"], why["label"] = label["name"], TEXTS["why_label_name" if named else "why_label_two"]
        usual = [value for value in label["values"] if value.strip().lower() in _POSITIVE]
        words, codes = encode_text(table[label["name"]], label["name"])
        rarer = words[int(np.argmin(np.bincount(codes[codes >= 0], minlength=2)))]
        roles["pos_label"], why["pos_label"] = (
            (usual[0], TEXTS["why_positive_usual"]) if usual else (rarer, TEXTS["why_positive_rare"])
        )
    roles["drop"] = [one["name"] for one in columns if one["left_out"] and one["name"] != roles["score"]]
    return roles, why


def find_warnings(columns: list[dict[str, Any]], table: Any, roles: dict[str, Any]) -> list[str]:
    """Return warnings about identifiers, columns that give the label away, and proxies of sensitive columns."""
    found = [TEXTS["warn_left_out"].format(name=o["name"], why=o["left_out"]) for o in columns if o["left_out"]]
    targets = [(roles["label"], _LEAK, "warn_leak")] + [(name, _PROXY, "warn_proxy") for name in roles["sensitive"]]
    named = {roles["label"], roles["score"], *roles["sensitive"], *roles["drop"]}
    codes = {one["name"]: _codes(table[one["name"]], one) for one in columns if not one["left_out"]}
    for target, limit, message in targets:
        words, values = encode_text(table[target], target) if target in codes else ([], np.zeros(0, dtype=int))
        if len(words) > _MOST_GROUPS and np.isfinite(numbers := _numbers(table[target], target)).any():
            middle = np.nanmedian(numbers)
            words, values = [f"up to {middle:g}", f"above {middle:g}"], np.where(values < 0, -1, numbers > middle)
        for name in [name for name in codes if name not in named] if 2 <= len(words) <= _MOST_GROUPS else ():
            areas = tell_apart(codes[name], values)
            if areas.max() >= limit:
                about = {"name": name, "target": target, "value": words[areas.argmax()], "share": f"{areas.max():.0%}"}
                found.append(TEXTS[message].format(**about))
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


def _codes(column: Any, one: dict[str, Any]) -> Ints:
    """Return codes of categories, the most frequent ones apart, or of quantiles of numbers; missing values are one."""
    if one["kind"] == "number" and one["distinct"] > _BINS:
        numbers = _numbers(column, one["name"])
        cuts = np.unique(np.nanquantile(numbers, np.linspace(0.0, 1.0, _BINS)))
        binned: Ints = np.where(np.isnan(numbers), cuts.size + 1, np.searchsorted(cuts, numbers)).astype(np.int64)
        return binned
    codes: Ints = encode_text(column, one["name"])[1] + 1
    order = np.argsort(np.argsort(-np.bincount(codes), kind="stable"))
    return np.minimum(order[codes], _BINS)
