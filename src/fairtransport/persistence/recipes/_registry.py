"""Registry of the classes that a model file may contain."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairtransport._validation import check_vector
from fairtransport.criteria import CRITERIA, DemographicParity, EqualizedOdds, EqualOpportunity
from fairtransport.groups import GroupPolicy
from fairtransport.persistence._summaries import Change, summarise_quantiles
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.groups import Groups


@dataclass(frozen=True)
class Recipe:
    """How the objects of one class are stored.

    A file stores the parameters of an object that differ from their defaults, and its fitted attributes. Reading checks
    each parameter, calls the class with them, checks each attribute, sets it, and checks the whole object.

    Attributes
    ----------
    class_name : str
        Full name of the class, ``"sklearn.preprocessing.StandardScaler"``. Subclasses are not accepted.
    attributes : dict of str to callable
        Check of each attribute that ``fit`` sets. An object with another attribute is not written; one without some of
        them is.
    required : tuple of str
        Attributes that a fitted object always has; in a file, either all or none are present.
    params : dict of str to callable
        Check of each parameter, when an object is written and when it is read. A parameter that is not listed can only
        have its default. Allow no value that names a file, a module or a function, and limit those by which a use of
        the object allocates memory.
    not_stored : tuple of str
        Parameters of the machine rather than of the model, such as ``n_jobs``: they are left out when an object is
        written, so that a loaded one has the defaults.
    stored : callable, optional
        Takes the object and returns values to store instead of those that it has: columns, for instance, instead of the
        function that selected them.
    is_consistent : callable, optional
        Returns whether the attributes of an object that was read agree with each other.
    summarize : callable, optional
        Takes the object and the least number of people per point. Returns the values to store instead of the scores of
        individuals, and how much each differs: ``{parameter or attribute: (value, change)}``.
    """

    class_name: str
    attributes: Mapping[str, Check] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    params: Mapping[str, Check] = field(default_factory=dict)
    not_stored: tuple[str, ...] = ()
    stored: Callable[[Any], dict[str, Any]] | None = None
    is_consistent: Check | None = None
    summarize: Callable[[Any, int], dict[str, tuple[Any, Change]]] | None = None

    @property
    def short_name(self) -> str:
        """Name of the class without its module."""
        return self.class_name.rpartition(".")[2]

    def load_class(self) -> type:
        """Import the class."""
        module, _, name = self.class_name.rpartition(".")
        loaded: type = getattr(importlib.import_module(module), name)
        return loaded


_recipes: dict[str, Recipe] = {}


def add_recipe(recipe: Recipe) -> None:
    """Allow objects of one more class in model files."""
    _recipes[recipe.class_name] = recipe


def recipe_named(class_name: Any) -> Recipe | None:
    """Return the recipe of a class name that was read from a file; None if there is none."""
    return _recipes.get(class_name) if isinstance(class_name, str) else None


def recipe_for(value: Any) -> Recipe | None:
    """Return the recipe of an object's class; None if there is none."""
    name = type(value).__name__
    for recipe in _recipes.values():
        if recipe.short_name == name and recipe.load_class() is type(value):
            return recipe
    return None


def known_classes() -> list[str]:
    """Return the names of the classes that model files may contain."""
    return sorted(recipe.short_name for recipe in _recipes.values())


# Checks of values that are read from a model file: functions that return whether a value may be used.

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


def is_criterion(value: Any) -> bool:
    """Return whether this is a criterion, or its name."""
    known = (DemographicParity, EqualizedOdds, EqualOpportunity)
    return isinstance(value, known) or (isinstance(value, str) and value in CRITERIA)


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
GROUP_PARAMS: dict[str, Check] = {"groups": any_of(is_none, instance_of(GroupPolicy)), "target": is_target}


# Summaries of target distributions, which every family of models has.


def summarize_target(model: Any, people: int) -> dict[str, tuple[Any, Change]]:
    """Return summaries of the attribute ``target_`` and of the parameter ``target``, if that is an array of scores."""
    summaries: dict[str, tuple[Any, Change]] = {}
    if hasattr(model, "target_"):
        sizes = getattr(model, "group_sizes_", None)
        n_rows = 0.0 if sizes is None else float(np.min(sizes))
        summaries["target_"] = summarise_quantiles(model.target_, people, n_rows)
    if _is_array_of_scores(model.target, getattr(model, "groups_", None)):
        scores = _ascending(model.target)
        if scores.size <= TARGET_SIZE:  # distinct scores may be of one person each
            summaries["target"] = summarise_quantiles(scores, people, float(scores.size))
        else:
            points = Sample.from_values(scores).equal_mass(TARGET_SIZE)
            summaries["target"] = summarise_quantiles(points, people, 0.0)
    return summaries


def _is_array_of_scores(target: Any, groups: Groups | None) -> bool:
    """Return whether a parameter ``target`` contains scores, and is not a word or the label of a group."""
    if isinstance(target, Sample):
        return True
    if isinstance(target, tuple) and groups is not None and target in groups.labels:
        return False
    if isinstance(target, (list, tuple)):
        return not any(isinstance(part, str) or part is None for part in target)
    return np.ndim(target) > 0


def _ascending(target: Any) -> NDArray[np.float64]:
    if isinstance(target, Sample):
        return target.equal_mass(TARGET_SIZE)
    return np.sort(check_vector(target, name="target"))
