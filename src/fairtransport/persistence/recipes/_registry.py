"""Which classes a model file may hold, and which attributes of each: an explicit list."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from fairtransport.persistence._summaries import Change


__all__ = ["Check", "Recipe", "add_recipe", "known_classes", "recipe_for", "recipe_named"]

Check: TypeAlias = Callable[[Any], bool]


@dataclass(frozen=True)
class Recipe:
    """How objects of one class are stored.

    Attributes
    ----------
    name : str
        Where the class is imported from, ``"sklearn.preprocessing.StandardScaler"``. The class must be that one, not
        one that inherits from it.
    fitted : dict of str to check
        The attributes that fitting sets, and what each must be to be believed. Those that an object does not have are
        left out.
    needed : tuple of str
        Without these it is not fitted, and with some but not all of them not to be believed.
    check : callable, optional
        Whether the attributes of a loaded object fit together.
    before_saving : callable, optional
        Takes the object and how many people a point must stand for, and returns values to store instead of some of
        its own, with the changes this makes: ``{attribute or parameter: (value, change)}``.
    stored_names : dict of str to str
        Parameters that have another name in model files than in the class.
    """

    name: str
    fitted: Mapping[str, Check] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    check: Check | None = None
    before_saving: Callable[[Any, int], dict[str, tuple[Any, Change]]] | None = None
    stored_names: Mapping[str, str] = field(default_factory=dict)

    def load_class(self) -> type:
        """Import the class."""
        module, _, name = self.name.rpartition(".")
        kind: type = getattr(importlib.import_module(module), name)
        return kind


_recipes: dict[str, Recipe] = {}


def add_recipe(recipe: Recipe) -> None:
    """Let model files hold objects of one more class."""
    _recipes[recipe.name] = recipe


def recipe_named(name: Any) -> Recipe | None:
    """Return the recipe that a file asks for, if there is one."""
    return _recipes.get(name) if isinstance(name, str) else None


def recipe_for(value: Any) -> Recipe | None:
    """Return the recipe of an object's class, if there is one."""
    short = type(value).__name__
    for name, recipe in _recipes.items():
        if name.rpartition(".")[2] == short and recipe.load_class() is type(value):
            return recipe
    return None


def known_classes() -> list[str]:
    """Name the classes that model files may hold."""
    return sorted(name.rpartition(".")[2] for name in _recipes)


# -------------------------------------------------------------------------------------------- what an attribute must be


def numbers(*axes: int, finite: bool = True) -> Check:
    """Return the check for an array of real numbers with one of these numbers of axes."""

    def check(value: Any) -> bool:
        real = isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim in axes
        return bool(real and (not finite or np.all(np.isfinite(value))))

    return check


def labels(*axes: int) -> Check:
    """Return the check for an array of numbers, booleans, text or objects (text, numbers and None)."""
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "biufUO" and value.ndim in axes


def count(value: Any) -> bool:
    """Check for a whole number that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def number(value: Any) -> bool:
    """Check for a number, or an array of them."""
    return isinstance(value, (int, float)) or numbers(0, 1)(value)


def text(value: Any) -> bool:
    """Check for a string."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Check for True or False."""
    return isinstance(value, bool)


def names(value: Any) -> bool:
    """Check for a vector of text."""
    return labels(1)(value) and all(isinstance(item, str) for item in value.tolist())


def of_type(kind: type | tuple[type, ...], *, or_none: bool = False) -> Check:
    """Return the check for a value of that type."""
    return lambda value: (or_none and value is None) or isinstance(value, kind)


def list_of(check: Check) -> Check:
    """Return the check for a list of such values."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def either(*checks: Check) -> Check:
    """Return the check for one of these."""
    return lambda value: any(check(value) for check in checks)


def nothing(value: Any) -> bool:
    """Check for None."""
    return value is None


COLUMNS: dict[str, Check] = {"n_features_in_": count, "feature_names_in_": names}
