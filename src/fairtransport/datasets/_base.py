"""Functions that the three loaders share: reading the package's files, and packing frames or arrays as a ``Bunch``."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
from sklearn.utils import Bunch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray


LICENCE = "CC BY 4.0"

# The library of the tables to return; None for NumPy arrays.
Library = Literal["pandas", "polars"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """Name, size, columns and source of a data set.

    Attributes
    ----------
    name : str
        Name in file names and commands.
    title : str
        UCI's name for it.
    rows, columns : int
        Size of ``data``, which has neither the label nor the identifiers.
    label : str
        Name of ``target``.
    sensitive : tuple of str
        Columns of ``sensitive_features``.
    licence : str
        The licence under which UCI publishes the data.
    citation : str
        How UCI asks the data to be cited.
    """

    name: str
    title: str
    rows: int
    columns: int
    label: str
    sensitive: tuple[str, ...]
    licence: str
    citation: str


def read_columns(name: str) -> dict[str, list[str]]:
    """Read a file of the package: each line is a column, its name first; an empty field is a missing value."""
    compressed = files(__package__).joinpath("data", f"{name}.csv.gz").read_bytes()
    columns = {}
    for line in gzip.decompress(compressed).decode("utf-8").splitlines():
        heading, *values = line.split(",")
        columns[heading] = values
    return columns


def strings(values: Iterable[str]) -> NDArray[np.object_]:
    """Return fields as an array of strings, with None where a value is missing."""
    return np.array([value or None for value in values], dtype=object)


def integers(values: Iterable[str]) -> NDArray[np.int64]:
    """Return fields as an array of integers; none may be missing."""
    return np.array([int(value) for value in values], dtype=np.int64)


def decimals(values: Iterable[str]) -> NDArray[np.float64]:
    """Return fields as an array of floats, with NaN where a value is missing."""
    return np.array([float(value) if value else np.nan for value in values], dtype=np.float64)


def parse_columns(columns: Mapping[str, Iterable[str]], *, numeric: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the columns named in ``numeric`` as integers and the others as strings."""
    return {name: integers(values) if name in numeric else strings(values) for name, values in columns.items()}


def choose_library(*, as_frame: bool) -> Library:
    """Return pandas if it is installed and polars otherwise; None for arrays."""
    if not isinstance(as_frame, bool):
        raise TypeError(f"as_frame must be True or False; got {type(as_frame).__name__}.")
    if not as_frame:
        return None
    libraries: tuple[Literal["pandas", "polars"], ...] = ("pandas", "polars")
    for library in libraries:
        try:
            import_module(library)
        except ImportError:
            continue
        return library
    raise ImportError(
        "A data frame needs pandas or polars, and neither is installed. "
        'Run pip install "fairtransport[tables]", or pass as_frame=False for NumPy arrays.'
    )


def as_table(columns: Mapping[str, NDArray[Any]], library: Library) -> Any:
    """Return a data frame, or a matrix: of floats if every column is, otherwise of objects."""
    if library is not None:
        cells = {name: _cells(values, library) for name, values in columns.items()}
        return nw.from_dict(cells, backend=library).to_native()
    if all(values.dtype == np.float64 for values in columns.values()):
        return np.column_stack(list(columns.values()))
    rows = len(next(iter(columns.values())))
    matrix = np.empty((rows, len(columns)), dtype=object)
    for position, values in enumerate(columns.values()):
        matrix[:, position] = _cells(values, library)
    return matrix


def as_column(name: str, values: NDArray[Any], library: Library) -> Any:
    """Return a named series, or a vector."""
    if library is None:
        return values
    return nw.new_series(name, values, backend=library).to_native()


def _cells(values: NDArray[Any], library: Library) -> Any:
    """Represent missing strings as ``library`` does: null in polars, NaN in pandas.

    In arrays they are NaN as well, which scikit-learn's imputers look for.
    """
    if values.dtype != object:
        return values if library else values.tolist()
    if library == "polars":
        return values.tolist()
    return [np.nan if value is None else value for value in values]


def pack(
    info: DatasetInfo,
    *,
    features: Mapping[str, NDArray[Any]],
    target: NDArray[Any],
    target_names: list[str],
    sensitive: Mapping[str, NDArray[Any]],
    library: Library,
    return_X_y: bool,
    **extra: Any,
) -> Any:
    """Return a data set as scikit-learn's loaders do; ``extra`` entries are added as they are."""
    if library is None:
        frame, data = None, as_table(features, library)
    else:
        frame = as_table({**features, info.label: target}, library)
        data = nw.from_native(frame, eager_only=True).select(*features).to_native()
    folder = files(__package__)
    labels = as_column(info.label, target, library)
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        sensitive_features=as_table(sensitive, library),
        frame=frame,
        feature_names=list(features),
        target_names=target_names,
        sensitive_names=list(sensitive),
        DESCR=folder.joinpath("descr", f"{info.name}.rst").read_text(encoding="utf-8"),
        filename=str(folder.joinpath("data", f"{info.name}.csv.gz")),
        **extra,
    )
