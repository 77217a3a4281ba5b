"""Checks of values that are read from a model file: functions that return whether a value may be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "FEATURE_NAMES",
    "Check",
    "any_of",
    "dict_of",
    "instance_of",
    "is_bool",
    "is_count",
    "is_finite",
    "is_none",
    "is_number",
    "is_text",
    "label_array",
    "list_of",
    "number_array",
    "tuple_of",
]

Check: TypeAlias = Callable[[Any], bool]


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


def is_bool(value: Any) -> bool:
    """Return whether this is True or False."""
    return isinstance(value, bool)


def is_none(value: Any) -> bool:
    """Return whether this is None."""
    return value is None


def number_array(*n_axes: int, finite: bool = True) -> Check:
    """Return the check of an array of real numbers with one of these numbers of axes."""

    def check(value: Any) -> bool:
        real = isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim in n_axes
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
    return label_array(1)(value) and all(isinstance(item, str) for item in value.tolist())


#: Attributes of every estimator that was fitted on columns.
FEATURE_NAMES: dict[str, Check] = {"n_features_in_": is_count, "feature_names_in_": _is_text_array}
