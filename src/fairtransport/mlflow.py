"""Models in MLflow: save, log and load them, and score tables with them through ``mlflow.pyfunc``.

The artifact is the model file that `fairtransport.save` writes; nothing is pickled. Columns of groups are columns of
the table like the others.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport._validation import check_choice
from fairtransport.groups import UNKNOWN_GROUPS
from fairtransport.persistence import load, save
from fairtransport.tabular import InputColumn, RowScorer

_FLAVOR = "fairtransport"  # its name in an MLmodel file
_FILE = "model.ft"


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    unknown_group: str = "error",
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Save a fitted model as an MLflow model.

    Parameters
    ----------
    model : estimator
        Fitted; any model that `fairtransport.save` can store and `fairtransport.tabular.RowScorer` can score with.
    path : path
        Folder to create.
    unknown_group : {"error", "pooled", "common"}, default="error"
        What ``mlflow.pyfunc`` does with rows whose group the model has not seen; see `RowScorer`. A loaded model may
        have another: ``mlflow.pyfunc.load_model(uri, model_config={"unknown_group": "pooled"})``.
    signature : mlflow.models.ModelSignature, optional
        By default derived from the columns that the model needs.
    input_example : DataFrame, optional
        By default one row with the first known category in each column of text, and 0 in each column of numbers.
    pip_requirements : list of str, optional
        By default fairtransport and the libraries that scoring needs, in the versions that are installed.
    metadata, mlflow_model : dict and mlflow.models.Model, optional
        Passed on to MLflow.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> import fairtransport as ft
    >>> people = pd.DataFrame({"hours": np.arange(100.0) % 40, "sex": ["F", "M"] * 50})
    >>> model = ft.QuantileRepairClassifier(LogisticRegression())
    >>> model = model.fit(people[["hours"]], people["hours"] > 20, sensitive_features=people[["sex"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model")
    ...     loaded = load_model(f"{folder}/model")
    >>> type(loaded).__name__
    'QuantileRepairClassifier'
    """
    pyfunc, models = _load("mlflow.pyfunc"), _load("mlflow.models")
    check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
    columns = RowScorer(model).columns
    described = models.Model() if mlflow_model is None else mlflow_model
    described.add_flavor(_FLAVOR, fairtransport_version=version("fairtransport"), data=f"data/{_FILE}")
    with tempfile.TemporaryDirectory() as folder, _without_deprecations():
        save(model, Path(folder) / _FILE)
        pyfunc.save_model(
            path=str(path),
            loader_module=__name__,
            data_path=str(Path(folder) / _FILE),
            mlflow_model=described,
            signature=_signature(columns) if signature is None else signature,
            input_example=_example(columns) if input_example is None else input_example,
            pip_requirements=get_default_pip_requirements() if pip_requirements is None else pip_requirements,
            metadata=metadata,
            model_config={"unknown_group": unknown_group},
        )


def log_model(model: Any, name: str, *, registered_model_name: str | None = None, **options: Any) -> Any:
    """Log a fitted model to the active run of MLflow, or to a new one.

    Parameters
    ----------
    model : estimator
        As in `save_model`.
    name : str
        Name of the model in the run.
    registered_model_name : str, optional
        Also register it as a version of this model.
    **options
        Those of `save_model`, and further ones of ``mlflow.models.Model.log``, such as ``tags``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what `load_model` and ``mlflow.pyfunc.load_model`` take.
    """
    models, flavor = _load("mlflow.models"), load_extra("fairtransport.mlflow")
    return models.Model.log(
        artifact_path=None,
        name=name,
        flavor=flavor,
        model=model,
        registered_model_name=registered_model_name,
        **options,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Load a model as `fairtransport.load` returns it.

    Parameters
    ----------
    model_uri : str
        Of a model that `save_model` or `log_model` stored: a folder, or a URI such as ``models:/name/1``.
    dst_path : str, optional
        Folder for the files that are downloaded.

    Returns
    -------
    estimator
    """
    download = _load("mlflow.artifacts").download_artifacts
    folder = Path(download(artifact_uri=str(model_uri), dst_path=dst_path))
    flavors = _load("mlflow.models").Model.load(str(folder)).flavors
    if _FLAVOR not in flavors:
        raise ValueError("The MLflow model was not stored by fairtransport.mlflow; load it with mlflow.pyfunc.")
    return load(folder / flavors[_FLAVOR]["data"])


def get_default_pip_requirements() -> list[str]:
    """Return what a saved model needs to be scored elsewhere, in the versions that are installed here."""
    names = ("fairtransport", "numpy", "pandas", "scikit-learn")
    return [f"{name}=={version(name)}" for name in names]


class _ScoringModel:
    """The model that ``mlflow.pyfunc`` predicts with: tables in, scores out."""

    def __init__(self, model: Any, unknown_group: str) -> None:
        self._scorer = RowScorer(model, unknown_group=unknown_group)

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Floats:  # noqa: ARG002
        """Return a score for each row; NaN, and one warning for all, where a row cannot be scored."""
        result = self._scorer.score_rows(model_input)
        if result.reasons:
            counts = Counter(result.reasons.values()).most_common()
            named = "; ".join(f"{reason} ({count})" for reason, count in counts[:5]) + ("; ..." if counts[5:] else "")
            warnings.warn(
                f"{len(result.reasons)} of {len(result.scores)} rows have no score: {named}.", UserWarning, stacklevel=2
            )
        return result.scores


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> _ScoringModel:
    """Load the model for ``mlflow.pyfunc``, which calls this function by its name."""
    return _ScoringModel(load(path), (model_config or {}).get("unknown_group", "error"))


def _signature(columns: tuple[InputColumn, ...]) -> Any:
    types, models = _load("mlflow.types"), _load("mlflow.models")
    number = _load("mlflow.types.schema").AnyType()  # MLflow would refuse integers as doubles; the model checks cells
    inputs = types.Schema(
        [types.ColSpec(number if column.kind == "number" else "string", column.name) for column in columns]
    )
    return models.ModelSignature(inputs=inputs, outputs=types.Schema([types.ColSpec("double")]))


def _example(columns: tuple[InputColumn, ...]) -> Any:
    row = {column.name: [_example_value(column)] for column in columns}
    return load_extra("pandas").DataFrame(row)


def _example_value(column: InputColumn) -> Any:
    if column.kind == "number":
        known = [float(value) for value in column.categories or () if not isinstance(value, str)]
        return known[0] if known else 0.0
    return str((column.categories or ("2020-01-01" if column.kind == "date" else "text",))[0])


def _load(module: str) -> Any:
    """Import a module of MLflow without the warnings of its own code, about which its users can do nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_extra(module)


@contextlib.contextmanager
def _without_deprecations() -> Iterator[None]:
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield


__all__ = ["load_model", "log_model", "save_model"]
