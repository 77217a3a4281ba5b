"""Saving and loading of model files, and the objects in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._validation import check_count
from fairtransport._warnings import warn_caller
from fairtransport.persistence._summaries import Change
from fairtransport.persistence._values import Reader, Writer
from fairtransport.persistence.recipes._trees import THRESHOLDS
from fairtransport.storage import (
    MAX_BYTES,
    Container,
    ModelFileError,
    pack_container,
    read_container,
    read_file,
    sign_container,
    unpack_container,
    write_atomically,
)
from fairtransport.tabular import RowScorer

if TYPE_CHECKING:
    import os
    from pathlib import Path

PEOPLE_PER_POINT = 5
_KIND = "model"
_MAX_CHANGE = 0.01  # of the range: mean change of the repaired scores of a group without a warning

_REVEALS = (
    "Weights of the model, which were learned from people's data. Names of columns; labels of the groups, and how many "
    "training rows each had; the categories that occurred, and means, deviations, extremes, quantiles and imputed "
    "values of columns. Points of the distributions of scores, each the mean of at least {people} training rows' "
    "scores or a score that as many share. No row, and no single person's score. It is no guarantee: a category or a "
    "group that only one person has is in the file, and weights can tell about people with rare features. Keep it as "
    "you keep aggregate statistics."
)
_REVEALS_TREES = (
    " Of trees: the values of columns at which they split, and the value of each leaf. In a random forest or a deep "
    "tree a leaf may be that of one training row, whose label it then has."
)
_REVEALS_SCORES = (
    "Saved with people_per_point=1: the scores of single training rows, group by group, are in the file as they were. "
    "Weights of the model. Names of columns, labels and sizes of groups, categories, means, deviations and imputed "
    "values of columns. Keep it as you keep the training data."
)


class ModelFileWarning(UserWarning):
    """A model may behave slightly differently after saving or loading."""


def save(model: Any, path: str | os.PathLike[str], *, people_per_point: int = PEOPLE_PER_POINT) -> Path:
    """Write a fitted model to one file, without pickle.

    Parameters
    ----------
    model : estimator
        `TransportClassifier`, `QuantileRepair`, or `QuantileRepairClassifier`
        and `QuantileRepairRegressor` around one of these or of scikit-learn's `LogisticRegression`, `LinearRegression`
        and `Ridge`, alone or in a `Pipeline` with `ColumnTransformer`, `StandardScaler`, `OneHotEncoder`,
        `OrdinalEncoder` and `SimpleImputer`. These can be saved by themselves, too. Of trees of LightGBM, XGBoost and
        scikit-learn (boosted ones, forests and single trees) the nodes are stored, not the parameters: they come back
        as a `TreeClassifier` or `TreeRegressor`, which is scored but not trained. Or
        `fairtransport.tabular.TableModel`, a classifier of raw tables.
    path : path
        The file, for instance ``"model.ft"``. An existing file is replaced atomically: after a crash, a kill or on a
        full disk, either the old or the new file is complete.
    people_per_point : int, default=5
        Scores of individual training rows are not stored. The maps of a repair and the target distribution are
        reduced to points that each represent at least so many rows: the mean of their scores, or a score that they
        share. 1 stores them exactly.

    Returns
    -------
    Path
        The path of the file.

    Warns
    -----
    ModelFileWarning
        If the reduction changes the repaired scores of a group by more than 0.01 of their range on average, as it may
        in a group of a few dozen rows. `describe` returns the exact change, in units of the score.

    Notes
    -----
    Predictions of a loaded linear model are equal to the last bit. Those of a loaded repair differ by at most the
    change that the file states, which is small if each group has many rows. A loaded model that is saved again gives
    the same file, byte for byte, with the same libraries.

    **What the file reveals about people.** Weights, names of columns, labels and sizes of groups, categories that
    occurred, means and deviations of columns, and points of distributions of scores. No row and no score of an
    individual, unless ``people_per_point=1``. A category or group with a single person is in the file.

    Examples
    --------
    >>> import tempfile, numpy as np, fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = ft.TransportClassifier().fit(X, y, sensitive_features=group)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ft.load(ft.save(model, f"{folder}/model.ft"))
    >>> bool(np.all(again.predict_proba(X) == model.predict_proba(X)))
    True
    """
    content, changes = pack_model(model, people_per_point)
    largest = max((change.mean for name, change in changes.items() if name.endswith(".maps_")), default=0.0)
    if largest > _MAX_CHANGE * _score_width(model):
        warn_caller(
            f"The file stores one point for every {people_per_point} scores, which changes the repaired scores of a "
            f"small group by {largest:.3g} on average. Merge small groups, or pass people_per_point=1 if the file may "
            "contain scores of individuals.",
            ModelFileWarning,
        )
    return write_atomically(path, content)


def _score_width(model: Any) -> float:
    """Return the width of the range of a repair's scores: as given, or, where it was learned, of 98 % of them."""
    while not hasattr(model, "extrapolates"):
        inner = getattr(model, "repair_", getattr(model, "estimator_", None))
        if inner is None:
            return 1.0
        model = inner
    low, high = np.quantile(model.target_, [0.01, 0.99]) if model.extrapolates else model.range_
    return float(high - low)


def pack_model(model: Any, people_per_point: int = PEOPLE_PER_POINT) -> tuple[bytes, dict[str, Change]]:
    """Return the content that `save` writes, and the change that each summary makes."""
    people = check_count(people_per_point, name="people_per_point")
    if isinstance(model, RowScorer):
        model = model.estimator_
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; fit it before saving it.") from None
    except TypeError:  # not an estimator; the writer raises a clear error
        pass
    writer = Writer(people)
    content = writer.write(model)
    if not hasattr(model, "get_params") or isinstance(model, type):
        raise TypeError(f"save needs a fitted model; got a {type(model).__name__}.")
    changes = {name: writer.changes[name] for name in sorted(writer.changes)}
    schema = {
        "model": content,
        "people_per_point": people,
        "changes": {name: list(change) for name, change in changes.items()},
    }
    reveals = _REVEALS_SCORES if people == 1 else _REVEALS.format(people=people)
    if any(name.endswith(f".{THRESHOLDS}") for name in writer.arrays):
        reveals += _REVEALS_TREES
    versions = {"scikit-learn": sklearn.__version__} if writer.uses_sklearn else {}
    return pack_container(_KIND, schema, writer.arrays, reveals=reveals, versions=versions), changes


def unpack_model(content: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the model of the content that `pack_model` returned; raises as `load` does."""
    return _model_of(unpack_container(content, kind=_KIND, max_bytes=max_bytes))


def sign(path: str | os.PathLike[str], key: Any, *, password: bytes | None = None, max_bytes: int = MAX_BYTES) -> Path:
    """Sign a model file, so that ``load(path, verify=...)`` can tell who wrote it.

    Parameters
    ----------
    path : path
        A model file, which is replaced atomically by the same file with a signature. An earlier signature is replaced.
    key : path, bytes or key
        Ed25519 private key, in PEM; `fairtransport.persistence.make_keys` writes one, and its public key.
    password : bytes, optional
        Password of the private key.
    max_bytes : int, default=256 MiB
        See `load`.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    ModelFileError
        If this is not an intact model file. Its model is not loaded: sign files that you have written or checked.
    ImportError
        If the extra ``signing`` is not installed.

    Notes
    -----
    The signature covers every byte of the file. It says who signed the file, not when, and not which of several signed
    files is the latest: a file that was signed once stays valid until the key is replaced.

    Examples
    --------
    >>> import tempfile, numpy as np, fairtransport as ft
    >>> from fairtransport.persistence import make_keys
    >>> repair = ft.QuantileRepair().fit(np.arange(100) / 99, sensitive_features=np.arange(100) % 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     private, public = make_keys(f"{folder}/signing.key")
    ...     path = ft.persistence.sign(ft.save(repair, f"{folder}/repair.ft"), private)
    ...     ft.load(path, verify=public)
    QuantileRepair()
    """
    content = read_file(path, max_bytes=max_bytes)
    unpack_container(content, kind=_KIND, max_bytes=max_bytes)
    return write_atomically(path, sign_container(content, key, password=password))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, verify: Any = None) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path
    max_bytes : int, default=256 MiB
        Largest size of the file. Reading needs up to three times its size, and 100 MiB, of memory.
    verify : path, bytes or key, or list of these, optional
        Ed25519 public key, in PEM. The file must have been signed with the private key of this one, or of one of these;
        that is checked before anything else in it is read. See `sign`.

    Returns
    -------
    estimator
        The fitted model, with its parameters: one of this package as it was saved, a classifier of two classes or a
        regressor of another library, or a pipeline, within a `fairtransport.tabular.RowScorer`, as whose ``estimator_``
        it is as it was saved. So everything that predicts has ``predict``, ``predict_proba`` (classifiers),
        ``feature_names_in_``, ``needs_groups_`` and ``score_rows``. Transformers are returned as they were saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or has an unknown version. A subclass of ValueError. No file can
        run code: classes are looked up in a fixed list, and arrays are read without pickle.
    SignatureError
        If ``verify`` is given and the file has no valid signature. A subclass of ModelFileError.

    Warns
    -----
    ModelFileWarning
        If the file contains estimators of another minor version of scikit-learn than the installed one.
    """
    model = _model_of(read_container(path, kind=_KIND, max_bytes=max_bytes, verify=verify))
    return RowScorer(model) if _is_foreign_model(model) else model


def _is_foreign_model(model: Any) -> bool:
    """Return whether a model has scores, and no `score_rows` of its own."""
    if hasattr(model, "score_rows"):
        return False
    return is_regressor(model) or (hasattr(model, "predict_proba") and np.size(getattr(model, "classes_", ())) == 2)


def describe(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return a description of a model file without loading the model.

    Parameters
    ----------
    path, max_bytes
        See `load`.

    Returns
    -------
    dict
        ``class``, ``made_by`` (versions), ``format_version``, ``is_signed`` (whether there is a signature, which is not
        checked), ``reveals`` (what the file reveals about people), ``people_per_point``, and ``changes``. For each
        summary, that is the ``largest`` change of a repaired score and the ``mean`` change over the training rows of
        the group where it is largest (``maps_``); or of a quantile, where the mean is the Wasserstein-1 distance
        (``target_``, ``target``).
    """
    container = read_container(path, kind=_KIND, max_bytes=max_bytes)
    people, changes = _summary_of(container)
    model = container.schema.get("model")
    return {
        "class": model.get("class") if isinstance(model, dict) else None,
        "made_by": container.made_by,
        "format_version": container.format_version,
        "is_signed": container.is_signed,
        "reveals": container.reveals,
        "people_per_point": people,
        "changes": {name: change._asdict() for name, change in changes.items() if not name.endswith("rows_at_knots_")},
    }


def _model_of(container: Container) -> Any:
    people, changes = _summary_of(container)
    _warn_of_versions(container.made_by)
    try:
        model = Reader(container.arrays, people=people, changes=changes).read_model(container.schema["model"])
    except ModelFileError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile content may raise anything in a class
        raise ModelFileError(
            f"The file is intact, but its model cannot be restored ({type(error).__name__}): it was changed, or "
            "written by another version. Save the model again."
        ) from None
    if not hasattr(model, "get_params"):
        raise ModelFileError("The file does not contain a model; do not trust it.")
    return model


def _summary_of(container: Container) -> tuple[int, dict[str, Change]]:
    people, changes = (container.schema.get(key, 0) for key in ("people_per_point", "changes"))
    try:
        parsed = {name: Change(float(largest), float(mean)) for name, (largest, mean) in changes.items()}
        return check_count(people, name="people_per_point"), parsed
    except (AttributeError, TypeError, ValueError):
        raise ModelFileError("The file does not state how its scores were summarized; do not trust it.") from None


def _warn_of_versions(made_by: dict[str, str]) -> None:
    theirs, ours = made_by.get("scikit-learn"), sklearn.__version__
    if theirs is not None and theirs.split(".")[:2] != ours.split(".")[:2]:
        warn_caller(
            f"The file contains estimators of another version of scikit-learn than {ours}, which is installed; "
            "fairtransport.persistence.describe names it. Check some predictions, or save the model again.",
            ModelFileWarning,
        )
