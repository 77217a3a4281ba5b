"""Checks of values that are read from a model file: functions that return whether a value may be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "FEATURE_NAMES",
    "GROUP_PARAMS",
    "MAX_COLUMNS",
    "Check",
    "any_of",
    "count_up_to",
    "dict_of",
    "instance_of",
    "is_bool",
    "is_count",
    "is_estimator",
    "is_finite",
    "is_none",
    "is_number",
    "is_plain",
    "is_seed",
    "is_target",
    "is_text",
    "is_word",
    "label_array",
    "list_of",
    "number_array",
    "number_in",
    "one_of",
    "tuple_of",
]

Check: TypeAlias = Callable[[Any], bool]

MAX_COLUMNS = 1 << 20
"""Columns, or categories of a column: what a use of the model allocates for each row."""

_MAX_WORD = 1000


def is_count(value: Any) -> bool:
    """Return whether this is an integer that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_finite(value: Any) -> bool:
    """Return whether this is a finite float."""
    return isinstance(value, float) and bool(np.isfinite(value))


def is_number(value: Any) -> bool:
    """Return whether this is a number or a vector of numbers."""
    return isinstance(value, (int, float)) or number_array(0, 1)(value)


def is_text(value: Any) -> bool:
    """Return whether this is a string."""
    return isinstance(value, str)


def is_word(value: Any) -> bool:
    """Return whether this is a short text, such as the name of an option."""
    return isinstance(value, str) and len(value) <= _MAX_WORD


def is_plain(value: Any) -> bool:
    """Return whether this is None, a boolean, a number or a text."""
    return value is None or isinstance(value, (bool, int, float, str))


def one_of(*values: Any) -> Check:
    """Return the check of one of these values, of the same type."""
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def count_up_to(most: int) -> Check:
    """Return the check of an integer that is not negative and not larger than a limit."""
    return lambda value: is_count(value) and value <= most


def number_in(low: float, high: float) -> Check:
    """Return the check of an integer or float between two limits; NaN is none."""
    return lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and bool(low <= value <= high)


def is_seed(value: Any) -> bool:
    """Return whether this is None or the seed of a random number generator."""
    return value is None or count_up_to((1 << 32) - 1)(value)


def is_estimator(value: Any) -> bool:
    """Return whether this is an estimator, which has a recipe of its own."""
    return hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type)


def is_bool(value: Any) -> bool:
    """Return whether this is True or False."""
    return isinstance(value, bool)


def is_none(value: Any) -> bool:
    """Return whether this is None."""
    return value is None


def number_array(*n_axes: int, finite: bool = True) -> Check:
    """Return the check of an array of real numbers with one of these numbers of axes.

    The numbers have at least 32 bits, so that a use that converts them to 64 bits allocates little more.
    """

    def check(value: Any) -> bool:
        real = isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim in n_axes
        real = real and value.dtype.itemsize >= 4
        return bool(real and (not finite or np.all(np.isfinite(value))))

    return check


def label_array(*n_axes: int) -> Check:
    """Return the check of an array of numbers, booleans, text or objects (text, numbers and None)."""
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "biufUO" and value.ndim in n_axes


def instance_of(kind: type | tuple[type, ...]) -> Check:
    """Return the check of an instance of a class."""
    return lambda value: isinstance(value, kind)


def list_of(check: Check) -> Check:
    """Return the check of a list whose items pass a check."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def tuple_of(check: Check) -> Check:
    """Return the check of a tuple whose items pass a check."""
    return lambda value: isinstance(value, tuple) and all(map(check, value))


def dict_of(check: Check) -> Check:
    """Return the check of a dict with text keys whose values pass a check."""
    return lambda value: isinstance(value, dict) and all(is_text(key) and check(item) for key, item in value.items())


def any_of(*checks: Check) -> Check:
    """Return the check of a value that passes at least one of these."""
    return lambda value: any(check(value) for check in checks)


def _is_text_array(value: Any) -> bool:
    if not label_array(1)(value) or value.size > MAX_COLUMNS:
        return False
    return value.dtype.kind == "U" or all(isinstance(item, str) for item in value.tolist())


#: Attributes of every estimator that was fitted on columns.
FEATURE_NAMES: dict[str, Check] = {"n_features_in_": count_up_to(MAX_COLUMNS), "feature_names_in_": _is_text_array}


def is_target(value: Any) -> bool:
    """Return whether this is a target distribution: a word, the label of a group, or scores."""
    return is_plain(value) or tuple_of(is_plain)(value) or list_of(is_plain)(value) or number_array(1)(value)


#: Parameters of every estimator that compares groups.
GROUP_PARAMS: dict[str, Check] = {
    "grouping": is_word,
    "min_group_size": is_count,
    "missing": is_word,
    "small_groups": is_word,
    "target": is_target,
}
