"""One model, one file: `save` and `load`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._validation import check_count
from fairtransport.persistence._objects import ObjectReader, ObjectWriter
from fairtransport.persistence._summaries import Change
from fairtransport.persistence.recipes import (  # noqa: F401 - they add their recipes
    _boosted_trees,
    _repairs,
    _sklearn_models,
    _table_models,
    _transport_models,
)
from fairtransport.storage import (
    MAX_BYTES,
    Container,
    ModelFileError,
    pack_container,
    read_container,
    unpack_container,
    write_atomically,
)

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["PEOPLE_PER_POINT", "ModelFileWarning", "describe", "load", "pack_model", "save", "unpack_model"]

PEOPLE_PER_POINT = 5
_KIND = "model"
_LOUD = 0.01  # a mean change of a group's repaired scores that the user should hear of

_REVEALS = (
    "Weights of the model, which were learned from people's data. Names of columns; labels of the groups, and how many "
    "training rows each had; the categories that occurred, and means, deviations and imputed values of columns. Points "
    "of the distributions of scores, each the mean of at least {people} training rows' scores or a score that as many "
    "share. No row, and no single person's score. It is no guarantee: a category or a group that only one person has "
    "is in the file, and weights can tell about people with rare features. Keep it as you keep aggregate statistics."
)
_REVEALS_TREES = (
    " Of boosted trees: the values of columns at which they split, and how many training rows, or what weight, came to "
    "each leaf."
)
_REVEALS_SCORES = (
    "Saved with people_per_point=1: the scores of single training rows, group by group, are in the file as they were. "
    "Weights of the model. Names of columns, labels and sizes of groups, categories, means, deviations and imputed "
    "values of columns. Keep it as you keep the training data."
)


class ModelFileWarning(UserWarning):
    """What is loaded or saved may behave a little differently."""


def save(model: Any, path: str | os.PathLike[str], *, people_per_point: int = PEOPLE_PER_POINT) -> Path:
    """Write a fitted model to one file, without pickle.

    Parameters
    ----------
    model : estimator
        `ContinuousTransportClassifier`, `DiscreteTransportClassifier`, `QuantileRepair`, or `QuantileRepairClassifier`
        around one of these or of scikit-learn's `LogisticRegression`, alone or in a `Pipeline` with
        `ColumnTransformer`, `StandardScaler`, `OneHotEncoder`, `OrdinalEncoder` and `SimpleImputer`. These can be saved
        by themselves, too. `TransportBoostingClassifier`, and `LGBMClassifier` or `XGBClassifier` inside a
        `QuantileRepairClassifier`, are held as settings and the library's own text of the trees. Or
        `fairtransport.tabular.TableModel`, a classifier of raw tables.
    path : path
        The file, for instance ``"model.ft"``. One that is there is replaced: after a crash, a kill or on a full disk
        the old file is there in full, or the new one.
    people_per_point : int, default=5
        Scores of training rows are not written. The maps of a repair, and the target distribution, become points that
        each stand for at least so many rows: the mean of their scores, or a score that they share. 1 writes them
        exactly.

    Returns
    -------
    Path
        The same path.

    Warns
    -----
    ModelFileWarning
        When summing up changes the repaired scores of a group by more than 0.01 on average: one of a few dozen rows.
        `describe` says by how much exactly.

    Notes
    -----
    Predictions of a loaded COT, DOT or logistic model are equal to the last bit. Those of a loaded repair differ by no
    more than the change that the file states; with many rows in each group, by little. A loaded model that is saved
    again gives the same file, byte for byte, with the same libraries.

    **What the file tells about people.** Weights, names of columns, labels and sizes of groups, categories that
    occurred, means and deviations of columns, and points of distributions of scores. No row and no single person's
    score, unless ``people_per_point=1``. A category or group that one person alone has is in the file.

    Examples
    --------
    >>> import tempfile, numpy as np, fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = ft.DiscreteTransportClassifier().fit(X, y, sensitive_features=group)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ft.load(ft.save(model, f"{folder}/model.ft"))
    >>> bool(np.all(again.predict_proba(X) == model.predict_proba(X)))
    True
    """
    content, changes = pack_model(model, people_per_point)
    loud = max((change.mean for name, change in changes.items() if name.endswith(".maps_")), default=0.0)
    if loud > _LOUD:
        warnings.warn(
            f"The file sums up {people_per_point} people's scores to a point, which changes the repaired scores of a "
            f"group by {loud:.3f} on average: it is small. Merge small groups, or pass people_per_point=1 if the file "
            "may hold people's scores.",
            ModelFileWarning,
            stacklevel=2,
        )
    return write_atomically(path, content)


def pack_model(model: Any, people_per_point: int = PEOPLE_PER_POINT) -> tuple[bytes, dict[str, Change]]:
    """Return the bytes that `save` writes, and by how much summing up changed what."""
    people = check_count(people_per_point, name="people_per_point")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; fit it before saving it.") from None
    except TypeError:  # no estimator; the writer says what can be saved
        pass
    writer = ObjectWriter(people)
    told = writer.write(model)
    if not isinstance(told, dict) or told.get("$") != "object":
        raise TypeError(f"save needs a fitted model; got a {type(model).__name__}.")
    changes = {name: writer.changes[name] for name in sorted(writer.changes)}
    schema = {
        "model": told,
        "people_per_point": people,
        "changes": {name: list(change) for name, change in changes.items()},
    }
    reveals = _REVEALS_SCORES if people == 1 else _REVEALS.format(people=people)
    if any(name.endswith(f".{_boosted_trees.BOOSTER}") for name in writer.arrays):
        reveals += _REVEALS_TREES
    versions = {"scikit-learn": sklearn.__version__} if writer.uses_sklearn else {}
    return pack_container(_KIND, schema, writer.arrays, reveals=reveals, versions=versions), changes


def unpack_model(content: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the model of bytes that `pack_model` made; see `load` for what may be wrong with them."""
    return _model_of(unpack_container(content, kind=_KIND, max_bytes=max_bytes))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path
    max_bytes : int, default 256 MiB
        A longer file is refused. Reading takes up to three times its bytes of memory, and 100 MiB.

    Returns
    -------
    estimator
        Fitted, with the parameters it had.

    Raises
    ------
    ModelFileError
        A ValueError: when the file is damaged, not one of ours, or of a version that this one does not know. No
        file can run code: it names classes from a fixed list, and arrays are read without pickle. Texts of boosted
        trees are looked through before their library reads them.

    Warns
    -----
    ModelFileWarning
        When parts of scikit-learn were written by another minor version than the one installed.
    """
    held = read_container(path, kind=_KIND, max_bytes=max_bytes)
    return _model_of(held)


def describe(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Say what a model file is without making the model.

    Parameters
    ----------
    path, max_bytes
        As for `load`.

    Returns
    -------
    dict
        ``class``, ``made_by`` (versions), ``format_version``, ``reveals`` (what it tells about people),
        ``people_per_point``, and ``changes``: for each summary the ``largest`` change of a repaired score, and the
        ``mean`` over the training rows of the group where it is largest (``maps_``); or of a quantile, where the mean
        is the Wasserstein-1 distance (``target_``, ``target``).
    """
    held = read_container(path, kind=_KIND, max_bytes=max_bytes)
    people, changes = _summary_of(held)
    model = held.schema.get("model")
    return {
        "class": model.get("class") if isinstance(model, dict) else None,
        "made_by": held.made_by,
        "format_version": held.format_version,
        "reveals": held.reveals,
        "people_per_point": people,
        "changes": {name: change._asdict() for name, change in changes.items() if not name.endswith("rows_at_knots_")},
    }


def _model_of(held: Container) -> Any:
    people, changes = _summary_of(held)
    _warn_of_versions(held.made_by)
    try:
        reader = ObjectReader(held.arrays, people=people, changes=changes)
        model = reader.read(held.schema["model"])
    except ModelFileError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile content: whatever a class says to it, the file is no good
        raise ModelFileError(
            f"The file is whole, but its model cannot be made ({type(error).__name__}): it was changed, or written by "
            "another version. Save the model again."
        ) from None
    if not hasattr(model, "get_params"):
        raise ModelFileError("The file holds something that is no model; do not trust it.")
    return model


def _summary_of(held: Container) -> tuple[int, dict[str, Change]]:
    people, changes = (held.schema.get(key, 0) for key in ("people_per_point", "changes"))
    try:
        told = {name: Change(float(largest), float(mean)) for name, (largest, mean) in changes.items()}
        return check_count(people, name="people_per_point"), told
    except (AttributeError, TypeError, ValueError):
        raise ModelFileError("The file does not say how its scores were summed up; do not trust it.") from None


def _warn_of_versions(made_by: dict[str, str]) -> None:
    theirs, ours = made_by.get("scikit-learn"), sklearn.__version__
    if theirs is not None and theirs.split(".")[:2] != ours.split(".")[:2]:
        warnings.warn(
            f"Parts of this model were written by another version of scikit-learn than {ours}, which is installed; "
            "fairtransport.persistence.describe names it. Check some predictions, or save the model again.",
            ModelFileWarning,
            stacklevel=4,
        )
