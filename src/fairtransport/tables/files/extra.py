"""DuckDB and pyarrow come with an extra and are loaded when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["load_extra"]


def load_extra(module: str) -> Any:
    """Import a module of the extra ``tables``, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"Files of tables need {package}: pip install 'fairtransport[tables]'") from error
