"""Recipes of the classes that a model file may contain, one module for each family."""

from fairtransport.persistence._values import add_value_type
from fairtransport.persistence.recipes import (
    _blind_repairs,
    _boosted_trees,
    _counterfactuals,
    _repairs,
    _sklearn_models,
    _sklearn_transformers,
    _table_models,
    _transport_models,
    _trees,
)
from fairtransport.persistence.recipes._registry import Recipe, add_recipe, known_classes, recipe_for, recipe_named
from fairtransport.persistence.recipes._trees import THRESHOLDS, is_tree_model, read_trees

__all__ = [
    "THRESHOLDS",
    "Recipe",
    "add_recipe",
    "is_tree_model",
    "known_classes",
    "read_trees",
    "recipe_for",
    "recipe_named",
]

for _family in (
    _transport_models,
    _repairs,
    _blind_repairs,
    _counterfactuals,
    _trees,
    _boosted_trees,
    _table_models,
    _sklearn_models,
    _sklearn_transformers,
):
    for _value_type in _family.VALUE_TYPES:
        add_value_type(*_value_type)
    for _recipe in _family.RECIPES:
        add_recipe(_recipe)
