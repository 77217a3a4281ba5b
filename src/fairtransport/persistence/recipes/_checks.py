"""Checks of values that are read from a model file: functions that return whether a value may be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fairtransport.criteria import DemographicParity, EqualizedOdds, EqualOpportunity
from fairtransport.criteria.criterion import CRITERIA
from fairtransport.groups import GroupPolicy, Groups
from fairtransport.repair import OnlineSettings, QuantileRepair
from fairtransport.strata import Strata

Check: TypeAlias = Callable[[Any], bool]

MAX_COLUMNS = 1 << 20
"""Columns, or categories of a column: what a use of the model allocates for each row."""

MOST = 1e300
"""Largest number: sums of such numbers, and products with those of usual rows, are finite."""

_MAX_WORD = 1000


def any_of(*checks: Check) -> Check:
    """Return the check of a value that passes at least one of these."""
    return lambda value: any(check(value) for check in checks)


def or_none(*checks: Check) -> Check:
    """Return the check of None, or of a value that passes one of these."""
    return any_of(none, *checks)


def instance_of(kind: type | tuple[type, ...]) -> Check:
    """Return the check of an instance of a class."""
    return lambda value: isinstance(value, kind)


def class_named(*names: str) -> Check:
    """Return the check of an instance of a class with one of these names, which need not be imported."""
    return lambda value: type(value).__name__ in names


def having(*attributes: str) -> Check:
    """Return the check of an object with these attributes."""
    return lambda value: all(hasattr(value, name) for name in attributes)


def one_of(*values: Any) -> Check:
    """Return the check of one of these values, of the same type."""
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def list_of(check: Check) -> Check:
    """Return the check of a list whose items pass a check."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def tuple_of(check: Check, size: int | None = None) -> Check:
    """Return the check of a tuple, perhaps of a given length, whose items pass a check."""
    return lambda value: isinstance(value, tuple) and size in {None, len(value)} and all(map(check, value))


def dict_of(check: Check) -> Check:
    """Return the check of a dict with text keys whose values pass a check."""
    return lambda value: isinstance(value, dict) and all(text(key) and check(item) for key, item in value.items())


def none(value: Any) -> bool:
    """Return whether this is None."""
    return value is None


def count_up_to(most: float) -> Check:
    """Return the check of an integer that is not negative and not larger than a limit."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def number_in(low: float, high: float) -> Check:
    """Return the check of an integer or float between two limits; NaN is none."""
    return lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and bool(low <= value <= high)


def finite(value: Any) -> bool:
    """Return whether this is a finite float, and not too large to be used."""
    return isinstance(value, float) and abs(value) <= MOST


def weight(value: Any) -> bool:
    """Return whether this is a finite float that is not negative."""
    return finite(value) and value >= 0.0


def word(value: Any) -> bool:
    """Return whether this is a short text, such as the name of an option."""
    return isinstance(value, str) and len(value) <= _MAX_WORD


def estimator(value: Any) -> bool:
    """Return whether this is an estimator, which has a recipe of its own."""
    return hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type)


text = instance_of(str)
boolean = instance_of(bool)
plain = instance_of((bool, int, float, str, type(None)))
count = count_up_to(np.inf)
share = number_in(0.0, 1.0)
amount = number_in(0.0, MOST)
number = number_in(-MOST, MOST)
seed = or_none(count_up_to((1 << 32) - 1))
names = any_of(list_of(text), tuple_of(text))


def array(
    *n_axes: int, dtype: Any = None, kinds: str = "fiu", finite: bool = True, least: float | None = None
) -> Check:
    """Return the check of an array of real numbers with one of these numbers of axes, none below ``least``.

    The numbers have at least 32 bits, so that a use that converts them to 64 bits allocates little more.
    """

    def check(value: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim not in n_axes or value.dtype.kind not in kinds:
            return False
        if value.dtype.itemsize < 4 or (dtype is not None and value.dtype != dtype):
            return False
        return bool(
            (not finite or (np.abs(value) <= np.float64(MOST)).all()) and (least is None or (value >= least).all())
        )

    return check


def labels(*n_axes: int) -> Check:
    """Return the check of an array of numbers, booleans, text or objects (text, numbers and None)."""
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "biufUO" and value.ndim in n_axes


def column_names(value: Any) -> bool:
    """Return whether these are names of columns."""
    if not labels(1)(value) or value.size > MAX_COLUMNS:
        return False
    return value.dtype.kind == "U" or all(isinstance(item, str) for item in value.tolist())


floats = partial(array, dtype=np.float64)
integers = partial(array, kinds="i")
reals_or_none = or_none(array(1, finite=False))


def criterion(value: Any) -> bool:
    """Return whether this is a criterion, or its name."""
    known = (DemographicParity, EqualizedOdds, EqualOpportunity)
    return isinstance(value, known) or (isinstance(value, str) and value in CRITERIA)


def increasing_map(value: Any) -> bool:
    """Return whether an array has knots, which ascend, and their images."""
    return array(2)(value) and value.shape[0] == 2 and value.shape[1] >= 2 and bool((np.diff(value) >= 0.0).all())


def by_name(names: Mapping[Check, str]) -> dict[str, Check]:
    """Return the check of each name, from the names of each check."""
    return {name: check for check, several in names.items() for name in several.split()}


#: Parameters and attributes that have the same meaning in every class of this package, or of all.
SHARED = by_name(
    {
        any_of(plain, tuple_of(plain), list_of(plain), array(1)): "target",  # a word, the label of a group, or scores
        array(1): "group_sizes_",
        column_names: "feature_names_in_",
        count: "n_iter_",
        count_up_to(MAX_COLUMNS): "n_features_in_",
        criterion: "criterion",
        estimator: "estimator estimator_",
        instance_of(Groups): "groups_",
        labels(1): "classes_",
        or_none(amount): "max_disparity",
        or_none(instance_of(GroupPolicy)): "groups",
        or_none(instance_of(OnlineSettings)): "online",
        or_none(instance_of(QuantileRepair)): "repair",
        or_none(instance_of(Strata)): "strata_",
        seed: "random_state",
        share: "amount",
    }
)
