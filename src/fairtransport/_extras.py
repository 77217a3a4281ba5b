"""Libraries that come with an extra, and figures of results: loaded by name when first needed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

# Which extra each library comes with, and the beginning of the sentence that says so.
_EXTRAS = {
    **dict.fromkeys(("matplotlib", "jinja2"), "report"),
    **dict.fromkeys(("duckdb", "pandas", "polars", "pyarrow"), "tables"),
    **dict.fromkeys(("lightgbm", "xgboost"), "boosting"),
    **dict.fromkeys(("onnx", "skl2onnx"), "onnx"),
    **dict.fromkeys(("prometheus_client", "starlette", "uvicorn"), "serve"),
    **dict.fromkeys(("dask", "distributed"), "dask"),
    "confluent_kafka": "kafka",
    "cryptography": "signing",
    "fastexcel": "excel",
    "mlflow": "mlflow",
    "pyspark": "spark",
}
_PURPOSES = {
    "boosting": "Boosted trees need",
    "dask": "Tables of Dask need",
    "excel": "Excel files need",
    "kafka": "Kafka topics need",
    "mlflow": "MLflow models need",
    "onnx": "ONNX export needs",
    "report": "Reports need",
    "serve": "A server needs",
    "signing": "Signatures need",
    "spark": "Tables of Spark need",
    "tables": "Files of tables need",
}


def load_extra(module: str) -> Any:
    """Import a module of a library that comes with an extra."""
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


def make_frame(rows: Iterable[dict[str, Any]], library: str | None = None) -> Any:
    """Return rows as a data frame."""
    if library not in {None, "pandas", "polars", "pyarrow"}:
        raise ValueError(f"library must be 'pandas', 'polars' or 'pyarrow'; got {library!r}.")
    content = list(rows)
    if library is None:
        library = "pandas" if find_spec("pandas") is not None or find_spec("polars") is None else "polars"
    module = load_extra(library)
    if library == "pandas":
        return module.DataFrame(content)
    if library == "polars":
        return module.DataFrame(content, infer_schema_length=None)
    return module.Table.from_pylist(content)


def render(function: str, result: Any, **options: Any) -> Any:
    """Draw or write a result by a function of `fairtransport.report`, which results must not import."""
    return resolve_name(f"fairtransport.report.{function}")(result, **options)
