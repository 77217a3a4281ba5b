"""Libraries that come with an extra, and figures of results: loaded by name when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["check_report", "load_extra", "render"]

# Which extra each library comes with, and the beginning of the sentence that says so.
_EXTRAS = {
    **dict.fromkeys(("matplotlib", "jinja2"), "report"),
    **dict.fromkeys(("duckdb", "pandas", "polars", "pyarrow"), "tables"),
    **dict.fromkeys(("lightgbm", "xgboost"), "boosting"),
    **dict.fromkeys(("onnx", "skl2onnx"), "onnx"),
    "cryptography": "signing",
    "fastexcel": "excel",
}
_PURPOSES = {
    "boosting": "Boosted trees need",
    "excel": "Excel files need",
    "onnx": "ONNX export needs",
    "report": "Reports need",
    "signing": "Signatures need",
    "tables": "Files of tables need",
}


def load_extra(module: str) -> Any:
    """Import a module of a library that comes with an extra.

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

    Examples
    --------
    >>> load_extra("matplotlib.figure").Figure.__name__
    'Figure'
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        extra = _EXTRAS[library]
        raise ImportError(f'{_PURPOSES[extra]} {library}: pip install "fairtransport[{extra}]"') from error


def check_report() -> None:
    """Raise ImportError when the extra ``report`` is not installed, before anything is computed."""
    load_extra("matplotlib.figure")
    load_extra("jinja2")


def render(function: str, result: Any, **options: Any) -> Any:
    """Draw or write a result by a function of `fairtransport.report.rendering`.

    Results lie below the reports and must not import them; users should not have to import either.
    """
    return getattr(import_module("fairtransport.report.rendering"), function)(result, **options)
