"""matplotlib and jinja2 come with an extra and are loaded when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["check_extra", "load_extra"]


def load_extra(module: str) -> Any:
    """Import a module of the extra ``report``.

    Parameters
    ----------
    module : str
        Its full name.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        Says what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'Reports need {package}: pip install "fairtransport[report]"') from error


def check_extra() -> None:
    """Raise ImportError when the extra ``report`` is not installed, before anything is computed."""
    load_extra("matplotlib.figure")
    load_extra("jinja2")
