"""Recipes of the classes that a model file may contain, one module for each family."""

from fairtransport.persistence import trees
from fairtransport.persistence.recipes import _counterfactuals, _repairs, _sklearn, _transport_models
from fairtransport.persistence.recipes._registry import Recipe, add_recipe, add_value_type

__all__ = ["Recipe", "add_recipe", "add_value_type"]

for _family in (_transport_models, _repairs, _counterfactuals, trees, _sklearn):
    for _value_type in _family.VALUE_TYPES:
        add_value_type(*_value_type)
    for _recipe in _family.RECIPES:
        add_recipe(_recipe)
