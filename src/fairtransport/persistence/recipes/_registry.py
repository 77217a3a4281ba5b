"""Registry of the classes that a model file may contain."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairtransport.persistence._summaries import Change
    from fairtransport.persistence.recipes._checks import Check


__all__ = ["Recipe", "add_recipe", "known_classes", "recipe_for", "recipe_named"]


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
