"""Boosted trees as checked arrays, and the formats of LightGBM and XGBoost rebuilt from them.

Both libraries read their formats in compiled code that does not validate its input. A model file therefore contains no
text of theirs, but arrays of numbers, which are checked before anything is rebuilt from them.
"""

from fairtransport.persistence.trees._checks import MAX_CATEGORIES, ColumnCategories, InvalidTreesError
from fairtransport.persistence.trees._lightgbm import LightGBMTrees
from fairtransport.persistence.trees._xgboost import XGBoostTrees

__all__ = [
    "MAX_CATEGORIES",
    "ColumnCategories",
    "InvalidTreesError",
    "LightGBMTrees",
    "XGBoostTrees",
]
