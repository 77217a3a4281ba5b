"""Models of raw tables: an encoder of columns and a classifier or regressor, from raw rows or files to scores."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular._model import TableModel
from fairtransport.tabular._row_scorer import RowScorer
from fairtransport.tabular.input_columns import InputColumn
from fairtransport.tabular.rows import RowScores, TableRows

if TYPE_CHECKING:
    from fairtransport._labels import positive_label
    from fairtransport.tabular.file_scoring import FileScores, collect_file, score_file
    from fairtransport.tabular.held_out_evaluation import HeldOutRows, split_table
    from fairtransport.tabular.label_columns import infer_task
    from fairtransport.tabular.methods import make_estimator
    from fairtransport.tabular.proxies import describe_columns, find_proxies, guess_roles

__all__ = [
    "FileScores",
    "HeldOutRows",
    "InputColumn",
    "RowScorer",
    "RowScores",
    "TableEncoder",
    "TableModel",
    "TableRows",
    "collect_file",
    "describe_columns",
    "find_proxies",
    "guess_roles",
    "infer_task",
    "make_estimator",
    "positive_label",
    "score_file",
    "split_table",
]

_NAMES = {
    "file_scoring": ("FileScores", "collect_file", "score_file"),
    "held_out_evaluation": ("HeldOutRows", "split_table"),
    "label_columns": ("infer_task", "positive_label"),
    "methods": ("make_estimator",),
    "proxies": ("describe_columns", "find_proxies", "guess_roles"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:  # servers need the models, and not the evaluation
    if name in _MODULES:
        return getattr(importlib.import_module(f"fairtransport.tabular.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'fairtransport.tabular' has no attribute {name!r}")
