"""Registry of the classes and types that a model file may contain."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, cast

import numpy as np

from fairtransport._validation import check_vector
from fairtransport.groups import Groups
from fairtransport.persistence._summaries import Change, summarise_quantiles
from fairtransport.persistence.recipes._checks import Check
from fairtransport.storage import ModelFileError
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_SIZE


@dataclass(frozen=True)
class Recipe:
    """A description of how the objects of one class are stored.

    A file stores the parameters of an object that differ from their defaults, and its fitted attributes. Reading checks
    each parameter, calls the class with them, checks each attribute, sets it, and checks the whole object.

    Attributes
    ----------
    class_name : str
        Full name of the class, ``"sklearn.preprocessing.StandardScaler"``. Subclasses are not accepted.
    fitted, optional : dict of str to callable
        Check of each attribute that a fitted object always has, all or none in a file, and of those that it may have.
        An object with another one is not written.
    params : dict of str to callable
        Check of each parameter; one that is not listed can only have its default. Allow no value that names a file, a
        module or a function, and limit those by which a use of the object allocates memory.
    not_stored : tuple of str
        Parameters of the machine, such as ``n_jobs``, which are left out: a loaded object has their defaults.
    stored : callable, optional
        Takes the object and returns values to store instead of those that it has, such as columns of a selector.
    is_consistent : callable, optional
        Returns whether the attributes of an object that was read agree with each other.
    summarize : callable, optional
        Takes the object and the least number of people per point. Returns the values to store instead of the scores of
        individuals, and how much each differs: ``{parameter or attribute: (value, change)}``.
    """

    class_name: str
    fitted: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, Check] = field(default_factory=dict)
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
        return cast("type", getattr(importlib.import_module(module), name))

    def check(self, params: Mapping[str, Any], fitted: Mapping[str, Any]) -> None:
        """Raise ModelFileError unless the parameters and attributes of an object in a file may be used."""
        for checks, values in ((self.params, params), ({**self.fitted, **self.optional}, fitted)):
            invalid = {name for name, value in values.items() if name not in checks or not checks[name](value)}
            if invalid or (values is fitted and 0 < len(self.fitted.keys() & fitted) < len(self.fitted)):
                which = ", ".join(sorted(invalid & checks.keys())) or "its parameters or fitted attributes"
                raise ModelFileError(f"{self.class_name} in the file is not valid in {which}; do not trust it.")


def named_recipe(
    checks: Mapping[str, Check],
    class_name: str,
    fitted: str = "",
    optional: str = "",
    params: str = "",
    *,
    other: Mapping[str, Check] | None = None,
    **others: Any,
) -> Recipe:
    """Return the recipe of a class with parameters and attributes of these names, whose checks a table has."""
    known = {**checks, **(other or {})}
    listed = [{name: known[name] for name in names.split()} for names in (fitted, optional, params)]
    return Recipe(class_name, listed[0], listed[1], listed[2], **others)


_recipes: dict[str, Recipe] = {}


def add_recipe(recipe: Recipe) -> None:
    """Allow objects of one more class in model files."""
    _recipes[recipe.class_name] = recipe


def recipe_named(class_name: Any) -> Recipe | None:
    """Return the recipe of a class name that was read from a file; None if there is none."""
    return _recipes.get(class_name) if isinstance(class_name, str) else None


def recipe_for(value: Any) -> Recipe | None:
    """Return the recipe of an object's class; None if there is none."""
    named = (recipe for recipe in _recipes.values() if recipe.short_name == type(value).__name__)
    return next((recipe for recipe in named if recipe.load_class() is type(value)), None)


def known_classes() -> list[str]:
    """Return the names of the classes that model files may contain."""
    return sorted(recipe.short_name for recipe in _recipes.values())


# Values other than estimators.


class ValueType(NamedTuple):
    """A description of how values of one type are stored, other than estimators; see `add_value_type`."""

    tag: str
    kind: type | str
    to_parts: Callable[[Any], dict[str, Any]]
    from_parts: Callable[[dict[str, Any]], Any]


types_by_kind: dict[type | str, ValueType] = {}
types_by_tag: dict[str, ValueType] = {}


def add_value_type(
    tag: str, kind: type | str, to_parts: Callable[[Any], dict[str, Any]], from_parts: Callable[[dict[str, Any]], Any]
) -> None:
    """Allow values of one more type in model files.

    Parameters
    ----------
    tag : str
        Name of the type in files.
    kind : type or str
        The type, or its full name, ``"module.Name"``, if its library need not be installed.
    to_parts, from_parts : callable
        From a value to a dict of values of types that files may already contain, and back; raises if it is not valid.
    """
    types_by_kind[kind] = types_by_tag[tag] = ValueType(tag, kind, to_parts, from_parts)


def record(
    tag: str, kind: Any, is_consistent: Check | None = None, /, *, make: Any = None, **checks: Check
) -> ValueType:
    """Return the type of a dataclass whose fields pass their checks; ``kind`` or ``make`` checks those without one."""
    names = [one.name for one in fields(kind)]

    def from_parts(parts: dict[str, Any]) -> Any:
        if all(name in parts and check(parts[name]) for name, check in checks.items()):
            value = (make or kind)(**parts)
            if is_consistent is None or is_consistent(value):
                return value
        raise ModelFileError(f"The file has a {kind.__name__} that is not valid; do not trust it.")

    return ValueType(tag, kind, lambda value: {name: getattr(value, name) for name in names}, from_parts)


# Summaries of target distributions, which every family of models has.


def summarize_target(model: Any, people: int) -> dict[str, tuple[Any, Change]]:
    """Return summaries of the attribute ``target_`` and of the parameter ``target``, if that is an array of scores."""
    summaries: dict[str, tuple[Any, Change]] = {}
    if hasattr(model, "target_"):
        n_rows = float(np.min(getattr(model, "group_sizes_", 0.0)))
        summaries["target_"] = summarise_quantiles(model.target_, people, n_rows)
    target = model.target
    if _is_array_of_scores(target, getattr(model, "groups_", None)):
        if isinstance(target, Sample):
            scores = target.equal_mass(TARGET_SIZE)
        else:
            scores = np.sort(check_vector(target, name="target"))
        n_rows = float(scores.size)  # distinct scores may be of one person each
        if scores.size > TARGET_SIZE:
            scores, n_rows = Sample.from_values(scores).equal_mass(TARGET_SIZE), 0.0
        summaries["target"] = summarise_quantiles(scores, people, n_rows)
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
