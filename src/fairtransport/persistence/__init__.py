"""Models as files: no pickle, checksummed, written atomically, and without anybody's score."""

from fairtransport.persistence._files import (
    PEOPLE_PER_POINT,
    ModelFileWarning,
    describe,
    load,
    pack_model,
    save,
    unpack_model,
)
from fairtransport.persistence._values import add_value_type
from fairtransport.persistence.recipes._registry import Recipe, add_recipe
from fairtransport.storage import ModelFileError

__all__ = [
    "PEOPLE_PER_POINT",
    "ModelFileError",
    "ModelFileWarning",
    "Recipe",
    "add_recipe",
    "add_value_type",
    "describe",
    "load",
    "pack_model",
    "save",
    "unpack_model",
]
