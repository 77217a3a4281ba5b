"""The paper's three data sets, which come with the package, and subsampling to other class rates.

Nothing is downloaded. Each call of a loader returns new objects.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairtransport._validation import check_choice, check_count, check_real

__all__ = ["DatasetInfo", "list_datasets", "load_adult", "load_communities", "load_german", "shift_class_rate"]

# The library of the tables to return; None for NumPy arrays.
Library = Literal["pandas", "polars"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """Name, size, columns and source of a data set.

    Attributes
    ----------
    name, title : str
        Name in file names and commands, and UCI's name.
    rows, columns : int
        Size of ``data``, which has neither the label nor the identifiers.
    label : str
        Name of ``target``.
    sensitive : tuple of str
        Columns of ``sensitive_features``.
    licence, citation : str
        The licence under which UCI publishes the data, and how it asks them to be cited.
    """

    name: str
    title: str
    rows: int
    columns: int
    label: str
    sensitive: tuple[str, ...]
    licence: str = "CC BY 4.0"
    citation: str


_UCI = "UCI Machine Learning Repository. https://doi.org/10.24432"
ADULT = DatasetInfo(
    name="adult",
    title="Adult",
    rows=48_842,
    columns=14,
    label="income_over_50k",
    sensitive=("race", "sex"),
    citation=f"Becker, B. and Kohavi, R. (1996). Adult. {_UCI}/C5XW20",
)
GERMAN = DatasetInfo(
    name="german",
    title="Statlog (German Credit Data)",
    rows=1_000,
    columns=20,
    label="good_credit",
    sensitive=("age_group", "sex"),
    citation=f"Hofmann, H. (1994). Statlog (German Credit Data). {_UCI}/C5NC77",
)
COMMUNITIES = DatasetInfo(
    name="communities",
    title="Communities and Crime",
    rows=1_994,
    columns=122,
    label="high_violent_crime",
    sensitive=("black", "white", "asian", "hispanic"),
    citation=f"Redmond, M. (2002). Communities and Crime. {_UCI}/C53W3X",
)


def list_datasets() -> tuple[DatasetInfo, ...]:
    """Describe the data sets that come with the package, without reading them.

    Returns
    -------
    tuple of DatasetInfo
        In the order of the paper's Table 1.

    Examples
    --------
    >>> [(entry.name, entry.rows, entry.columns) for entry in list_datasets()]
    [('adult', 48842, 14), ('german', 1000, 20), ('communities', 1994, 122)]
    """
    return (ADULT, GERMAN, COMMUNITIES)


def load_adult(*, as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Load the Adult data set: who earns more than $50,000 a year.

    Parameters
    ----------
    as_frame : bool, default=True
        Return pandas data frames, or polars ones where pandas is not installed; False for NumPy arrays.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a ``Bunch``.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the entries

        ``data``
            The 14 features, race and sex among them. Numbers are int64 and the rest strings; a missing value
            (only in ``workclass``, ``occupation`` and ``native_country``) is NaN, or null in polars. With
            ``as_frame=False``, an array of objects.
        ``target``
            ``income_over_50k``: 1 when above $50,000, else 0.
        ``sensitive_features``
            ``race`` and ``sex``.
        ``split``
            Array of ``"train"`` and ``"test"``: the official split.
        ``frame``, ``feature_names``, ``target_names``, ``sensitive_names``, ``DESCR``, ``filename``
            As in scikit-learn's loaders: ``data`` and ``target`` together (None with ``as_frame=False``), lists of
            names, the description with citation and licence, and the file that was read.

    Notes
    -----
    The paper ("Fixed Level of Unfairness") keeps the rows whose race is Black or White, and crosses race with
    sex.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.data.shape
    (48842, 14)
    >>> round(float(adult.target.mean()), 4)
    0.2393
    """
    library, columns = _choose_library(as_frame=as_frame), _read_columns("adult")
    split, income = np.array(columns.pop("split")), np.array(columns.pop("income"))
    features = {name: _parsed(cells) for name, cells in columns.items()}
    return _pack(
        ADULT,
        library,
        features,
        target=(income == ">50K").astype(np.int64),
        target_names=["<=50K", ">50K"],
        sensitive={name: features[name] for name in ADULT.sensitive},
        return_X_y=return_X_y,
        split=split,
    )


def load_german(*, as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Load the German Credit data set: which applicants for a loan are a good risk.

    Parameters
    ----------
    as_frame, return_X_y : bool
        See `load_adult`.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the entries of `load_adult`, without an official ``split`` (None)

        ``data``
            The 20 features: 7 of int64, 13 of strings that hold UCI's codes (``"A11"``; ``DESCR`` explains
            them). No value is missing. With ``as_frame=False``, an array of objects.
        ``target``
            ``good_credit``: 1 when good, 0 when bad.
        ``sensitive_features``
            ``age_group`` (``"over 30"`` or ``"up to 30"``; the paper's) and ``sex`` (``"male"`` or
            ``"female"``, read from ``personal_status_sex``).

    Examples
    --------
    >>> german = load_german()
    >>> german.data.shape
    (1000, 20)
    >>> float(german.target.mean())
    0.7
    """
    library, columns = _choose_library(as_frame=as_frame), _read_columns("german")
    label = np.array(columns.pop("label"))
    features = {name: _parsed(cells) for name, cells in columns.items()}
    # Attribute 9 combines sex and marital status. No row has A95, single women.
    female = np.isin(columns["personal_status_sex"], ("A92", "A95"))
    return _pack(
        GERMAN,
        library,
        features,
        target=(label == "1").astype(np.int64),
        target_names=["bad", "good"],
        sensitive={
            "age_group": np.where(features["age"] > 30, "over 30", "up to 30").astype(object),
            "sex": np.where(female, "female", "male").astype(object),
        },
        return_X_y=return_X_y,
        split=None,
    )


def load_communities(*, task: str = "classification", as_frame: bool = True, return_X_y: bool = False) -> Any:
    """Load the Communities and Crime data set: where violent crime is frequent.

    Parameters
    ----------
    task : {"classification", "regression"}, default="classification"
        Whether the target is frequent violent crime, or its rate.
    as_frame, return_X_y : bool
        See `load_adult`.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        With the entries of `load_adult`, without an official ``split`` (None), and two more

        ``data``
            The 122 predictors, float64, normalised by UCI to [0, 1]; NaN where missing (23 of the columns).
        ``target``
            ``high_violent_crime``: 1 when ``rate`` is above its 70th percentile (0.28), else 0. For regression the
            rate itself, ``ViolentCrimesPerPop``.
        ``sensitive_features``
            ``black``, ``white``, ``asian`` and ``hispanic``: ``"high"`` when that share of the population is
            above its median over the 1,994 communities, else ``"low"``.
        ``rate``
            ``ViolentCrimesPerPop``, normalised by UCI to [0, 1].
        ``identifiers``
            ``state``, ``county``, ``community`` (codes, as strings), ``communityname`` and ``fold`` (UCI's
            ten folds). Not meant as predictors.

    Notes
    -----
    The medians and the percentile are those of all rows, as the paper ("Fixed Level of Unfairness") seems to take
    them. Values come in steps of 0.01; communities exactly at a median count as ``"low"``.

    Examples
    --------
    >>> communities = load_communities()
    >>> communities.data.shape
    (1994, 122)
    >>> int(communities.target.sum())
    583
    """
    check_choice(task, ("classification", "regression"), name="task")
    library, columns = _choose_library(as_frame=as_frame), _read_columns("communities")
    codes = {name: _strings(columns.pop(name)) for name in ("state", "county", "community", "communityname")}
    codes["fold"] = _parsed(columns.pop("fold"))
    features = {name: np.array([float(cell or "nan") for cell in cells]) for name, cells in columns.items()}
    rate = features.pop("ViolentCrimesPerPop")
    shares = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
    regression = task == "regression"
    return _pack(
        replace(COMMUNITIES, label="ViolentCrimesPerPop") if regression else COMMUNITIES,
        library,
        features,
        target=rate if regression else (rate > np.percentile(rate, 70)).astype(np.int64),
        target_names=["ViolentCrimesPerPop"]
        if regression
        else ["up to the 70th percentile", "above the 70th percentile"],
        sensitive={
            name: np.where(features[share] > np.median(features[share]), "high", "low").astype(object)
            for name, share in zip(COMMUNITIES.sensitive, shares, strict=True)
        },
        return_X_y=return_X_y,
        split=None,
        rate=_as_column("ViolentCrimesPerPop", rate, library),
        identifiers=_as_table(codes, library),
    )


# Reading the package's files, and packing frames or arrays as a ``Bunch``.


def _read_columns(name: str) -> dict[str, list[str]]:
    """Read a file of the package: each line is a column, its name first; an empty field is a missing value."""
    compressed = files(__name__).joinpath("data", f"{name}.csv.gz").read_bytes()
    lines = [line.split(",") for line in gzip.decompress(compressed).decode("utf-8").splitlines()]
    return {heading: values for heading, *values in lines}


def _strings(cells: list[str]) -> NDArray[Any]:
    return np.array([cell or None for cell in cells], dtype=object)


def _parsed(cells: list[str]) -> NDArray[Any]:
    """Return whole numbers, or strings."""
    return np.array(cells, dtype=np.int64) if all(map(str.isdigit, cells)) else _strings(cells)


def _choose_library(*, as_frame: bool) -> Library:
    """Return pandas if it is installed and polars otherwise; None for arrays."""
    if not isinstance(as_frame, bool):
        raise TypeError(f"as_frame must be True or False; got {type(as_frame).__name__}.")
    if not as_frame:
        return None
    library: Literal["pandas", "polars"]
    for library in ("pandas", "polars"):
        with contextlib.suppress(ImportError):
            import_module(library)
            return library
    raise ImportError(
        "A data frame needs pandas or polars, and neither is installed. "
        'Run pip install "fairtransport[tables]", or pass as_frame=False for NumPy arrays.'
    )


def _as_table(columns: Mapping[str, NDArray[Any]], library: Library) -> Any:
    """Return a data frame, or a matrix: of floats if every column is, otherwise of objects."""
    if library is not None:
        cells = {name: _cells(values, library) for name, values in columns.items()}
        return nw.from_dict(cells, backend=library).to_native()
    if all(values.dtype == np.float64 for values in columns.values()):
        return np.column_stack(list(columns.values()))
    return np.array([_cells(values, library) for values in columns.values()], dtype=object).T


def _as_column(name: str, values: NDArray[Any], library: Library) -> Any:
    """Return a named series, or a vector."""
    if library is None:
        return values
    return nw.new_series(name, values, backend=library).to_native()


def _cells(values: NDArray[Any], library: Library) -> Any:
    """Represent missing strings as null in polars, as NaN in pandas and in arrays, as scikit-learn's imputers do."""
    if values.dtype != object:
        return values if library else values.tolist()
    if library == "polars":
        return values.tolist()
    return [np.nan if value is None else value for value in values]


def _pack(
    info: DatasetInfo,
    library: Library,
    features: Mapping[str, NDArray[Any]],
    *,
    target: NDArray[Any],
    target_names: list[str],
    sensitive: Mapping[str, NDArray[Any]],
    return_X_y: bool,
    **extra: Any,
) -> Any:
    """Return a data set as scikit-learn's loaders do; ``extra`` entries are added as they are."""
    if library is None:
        frame, data = None, _as_table(features, library)
    else:
        frame = _as_table({**features, info.label: target}, library)
        data = nw.from_native(frame, eager_only=True).select(*features).to_native()
    folder = files(__name__)
    labels = _as_column(info.label, target, library)
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        sensitive_features=_as_table(sensitive, library),
        frame=frame,
        feature_names=list(features),
        target_names=target_names,
        sensitive_names=list(sensitive),
        DESCR=folder.joinpath("descr", f"{info.name}.rst").read_text(encoding="utf-8"),
        filename=str(folder.joinpath("data", f"{info.name}.csv.gz")),
        **extra,
    )


# Subsampling of a data set to given class rates of its groups.

_NAME_LISTS = frozenset({"feature_names", "target_names", "sensitive_names"})


def shift_class_rate(
    dataset: Bunch,
    rates: Mapping[Any, float],
    *,
    by: str,
    size: int | Mapping[Any, int] | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Bunch:
    """Subsample a data set so that groups have given rates of positive labels.

    Parameters
    ----------
    dataset : sklearn.utils.Bunch
        As returned by a loader of this package, with frames or arrays; ``target`` holds 0 and 1.
    rates : mapping of group to float
        P(target = 1 | group) to reach, in [0, 1]. Groups that are not named keep all their rows.
    by : str
        The column of ``sensitive_features`` whose values are the groups.
    size : int or mapping of group to int, default=None
        Number of rows to keep of each named group. None, or a group that is not in the mapping, keeps as many as
        the rate allows.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Determines the choice and the order of the rows.

    Returns
    -------
    sklearn.utils.Bunch
        A new one with the same entries, each with the kept rows only, and ``indices``: their different positions in
        ``dataset``, in random order. Pandas frames keep their row labels.

    Raises
    ------
    ValueError
        If a column or group is unknown, or a rate or size cannot be reached with the rows of a group.

    Notes
    -----
    A group that is brought to rate r keeps all rows of the class that is too rare, and as many of the other class as
    come closest to r; with a size n, floor(r n + 1/2) rows are positive. Within group and class the rows are a uniform
    sample without replacement, so that p(X | A, Y) is unchanged, as in the paper's "Changing Level of Unfairness".

    Examples
    --------
    >>> adult = load_adult()
    >>> shifted = shift_class_rate(adult, {"Female": 0.4, "Male": 0.3}, by="sex", random_state=0)
    >>> female = (shifted.sensitive_features["sex"] == "Female").to_numpy()
    >>> round(float(shifted.target[female].mean()), 3)
    0.4
    """
    target = _labels(dataset)
    groups = _column(dataset, by, rows=len(target))
    known = sorted(set(groups.tolist()), key=str)
    _check_groups(rates, known, by=by)
    sizes = _sizes(size, rates)
    if isinstance(random_state, np.random.RandomState):  # it seeds a generator
        random_state = random_state.randint(2**31)
    generator = np.random.default_rng(random_state)

    kept = [np.flatnonzero([group not in rates for group in groups.tolist()])]
    for group in filter(rates.__contains__, known):  # sorted, so that the order of the mapping does not matter
        member = groups == group
        positives, negatives = np.flatnonzero(member & (target == 1)), np.flatnonzero(member & (target == 0))
        rate = check_real(rates[group], name=f"the rate of {group!r}", most=1.0)
        n_positive, n_negative = _counts(group, rate, positives.size, negatives.size, size=sizes.get(group))
        kept.append(generator.choice(positives, n_positive, replace=False))
        kept.append(generator.choice(negatives, n_negative, replace=False))
    return _take(dataset, generator.permutation(np.concatenate(kept)), rows=len(target))


def _counts(group: Any, rate: float, positives: int, negatives: int, *, size: int | None) -> tuple[int, int]:
    """Return how many positive and negative rows to keep."""
    for lacking, label in ((rate > 0 and not positives, "positive"), (rate < 1 and not negatives, "negative")):
        if lacking:
            raise ValueError(f"the rate of {group!r} cannot become {rate:g}: the group has no {label} label.")
    totals = np.arange(1, positives + negatives + 1)
    n_positives = np.floor(rate * totals + 0.5).astype(np.int64)
    # Both counts grow with the total, so that every total up to the largest is possible.
    possible = (n_positives <= positives) & (totals - n_positives <= negatives)
    most = int(totals[possible][-1])
    if size is None:
        whole = possible & ((n_positives == positives) | (totals - n_positives == negatives))
        miss = np.where(whole, np.abs(n_positives / totals - rate), np.inf)
        size = int(totals[miss <= miss.min() + 1e-12][-1])
    elif size > most:
        raise ValueError(f"size asks for {size} rows of {group!r}; at a rate of {rate:g} at most {most} are possible.")
    chosen = int(n_positives[size - 1])
    return chosen, size - chosen


def _labels(dataset: Bunch) -> NDArray[Any]:
    """Return the labels, all of them 0 or 1."""
    if not isinstance(dataset, Bunch) or not {"data", "target", "sensitive_features"} <= set(dataset):
        raise TypeError(
            "dataset must be a Bunch with data, target and sensitive_features, as load_adult returns it; "
            f"got {type(dataset).__name__}."
        )
    target = np.asarray(dataset.target)
    if target.ndim != 1 or not np.isin(target, (0, 1)).all():
        raise ValueError("dataset.target must be one column of labels 0 and 1.")
    return target


def _column(dataset: Bunch, by: str, *, rows: int) -> NDArray[np.object_]:
    """Return a sensitive column as an array of objects."""
    table = dataset.sensitive_features
    if isinstance(table, np.ndarray):
        if "sensitive_names" not in dataset:
            raise ValueError("dataset.sensitive_features is an array; dataset.sensitive_names must name its columns.")
        names = list(dataset.sensitive_names)
        values = table[:, names.index(check_choice(by, names, name="by"))].tolist()
    else:
        frame = nw.from_native(table, eager_only=True)
        values = frame.get_column(check_choice(by, frame.columns, name="by")).to_list()
    if len(values) != rows:
        raise ValueError(f"dataset.sensitive_features has {len(values)} rows, but dataset.target has {rows}.")
    return np.fromiter(values, dtype=object, count=rows)


def _check_groups(rates: Mapping[Any, float], known: list[Any], *, by: str) -> None:
    """Raise an error unless every named group is a value of the column."""
    if not isinstance(rates, Mapping):
        raise TypeError(f"rates must map groups to rates, such as {{'Female': 0.4}}; got {type(rates).__name__}.")
    if not rates:
        raise ValueError("rates is empty; give the rate of at least one group, such as {'Female': 0.4}.")
    for group in rates:
        if group not in known:
            raise ValueError(
                f"rates has the group {group!r}, which is none of the {len(known)} groups of column {by!r}."
            )


def _sizes(size: int | Mapping[Any, int] | None, rates: Mapping[Any, float]) -> dict[Any, int]:
    """Return the number of rows of each group that has one."""
    if size is None:
        return {}
    if not isinstance(size, Mapping):
        return dict.fromkeys(rates, check_count(size, name="size"))
    for group in size:
        if group not in rates:
            raise ValueError(f"size has the group {group!r}, which is not in rates.")
    return {group: check_count(rows, name=f"the size of {group!r}") for group, rows in size.items()}


def _take(dataset: Bunch, indices: NDArray[np.intp], *, rows: int) -> Bunch:
    """Select rows of every entry that has as many as the target; the other entries stay as they are."""

    def select(name: str, value: Any) -> Any:
        if name in _NAME_LISTS or getattr(value, "shape", ())[:1] != (rows,):
            return value
        if isinstance(value, np.ndarray):
            return value[indices]
        return nw.from_native(value, eager_only=True, allow_series=True)[indices].to_native()

    return Bunch(**{name: select(name, value) for name, value in dataset.items()} | {"indices": indices})
