"""Model files: without pickle, with checksums, written atomically, and without scores of individuals."""

from fairtransport.persistence._files import (
    PEOPLE_PER_POINT,
    ModelFileWarning,
    describe,
    load,
    pack_model,
    save,
    sign,
    unpack_model,
)
from fairtransport.persistence.recipes import Recipe, add_recipe, add_value_type
from fairtransport.persistence.trees import TreeClassifier, TreeRegressor
from fairtransport.storage import ModelFileError, SignatureError, make_keys

__all__ = [
    "PEOPLE_PER_POINT",
    "ModelFileError",
    "ModelFileWarning",
    "Recipe",
    "SignatureError",
    "TreeClassifier",
    "TreeRegressor",
    "add_recipe",
    "add_value_type",
    "describe",
    "load",
    "make_keys",
    "pack_model",
    "save",
    "sign",
    "unpack_model",
]
