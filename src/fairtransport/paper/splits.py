"""The paper's three data sets, split into training and test rows: features, labels and groups.

Every preprocessor is fitted on training rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.utils import Bunch

from fairtransport._arrays import Ints
from fairtransport._validation import check_choice, check_count
from fairtransport.datasets import load_adult, load_communities, load_german, shift_class_rate
from fairtransport.groups import GroupPolicy, Groups, make_groups

_Rows = tuple[Ints, Ints]

_ADULT_NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
_GERMAN_NUMERIC = (
    "duration", "amount", "installment_rate", "present_residence", "age", "number_credits", "people_liable",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Split:
    """One division of a data set into training and test rows."""

    name: str
    X_train: Any
    y_train: Ints
    sensitive_train: Mapping[str, NDArray[np.object_]]
    X_test: Any
    y_test: Ints
    sensitive_test: Mapping[str, NDArray[np.object_]]
    crossed: bool = True

    @cached_property
    def groups_train(self) -> Groups:
        """The groups of the training rows."""
        return make_groups(self.sensitive_train, GroupPolicy(self.crossed))

    @cached_property
    def groups_test(self) -> Groups:
        """The same groups, in the same order, of the test rows."""
        return self.groups_train.encode(self.sensitive_test)


def adult_split(encoding: str = "standard") -> Split:
    """Return Adult with the official split and four groups, race (Black or White) crossed with sex.

    ``"standard"`` has numbers standardised and words one-hot encoded, 104 columns; ``"binned"`` has age and hours in
    bins and indicators of frequent capital gains and losses, 214 columns.
    """
    check_choice(encoding, ("standard", "binned"), name="encoding")
    adult = load_adult(as_frame=False)
    column = {name: position for position, name in enumerate(adult.feature_names)}
    kept = np.isin(adult.data[:, column["race"]].astype(str), ("Black", "White"))
    data, split = adult.data[kept], adult.split[kept]
    categorical = [column[name] for name in column if name not in _ADULT_NUMERIC]
    words = data[:, categorical]
    data[:, categorical] = np.where(words == words, words, "?")  # noqa: PLR0124 - NaN differs from itself
    one_hot = (OneHotEncoder(handle_unknown="ignore"), categorical)
    if encoding == "standard":
        steps = [(StandardScaler(), [column[name] for name in _ADULT_NUMERIC]), one_hot]
    else:
        amounts = [column["capital_gain"], column["capital_loss"]]
        steps = [
            (StandardScaler(), [column["fnlwgt"], column["education_num"], *amounts]),
            (KBinsDiscretizer(12, strategy="uniform"), [column["age"], column["hours_per_week"]]),
            (OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=10), amounts),
            one_hot,
        ]
    return _split(
        "Adult" if encoding == "standard" else "Adult (binned)",
        data,
        adult.target[kept],
        {name: data[:, column[name]] for name in adult.sensitive_names},
        rows=(np.flatnonzero(split == "train"), np.flatnonzero(split == "test")),
        encoder=make_column_transformer(*steps, sparse_threshold=1.0),
    )


def german_splits(n_splits: int = 20, random_state: int = 0) -> tuple[Split, ...]:
    """Return German Credit, with applicants over 30 and the others as groups, in random splits of 75 % and 25 %."""
    german = load_german(as_frame=False)
    numeric = [position for position, name in enumerate(german.feature_names) if name in _GERMAN_NUMERIC]
    categorical = [position for position in range(len(german.feature_names)) if position not in numeric]
    age_group = german.sensitive_features[:, german.sensitive_names.index("age_group")]
    data = np.column_stack((german.data, age_group))
    categorical.append(data.shape[1] - 1)
    encoder = make_column_transformer(
        (StandardScaler(), numeric), (OneHotEncoder(handle_unknown="ignore"), categorical), sparse_threshold=0.0
    )
    return tuple(
        _split("German", data, german.target, {"age_group": age_group}, rows=rows, encoder=encoder)
        for rows in _random_rows(german.target, n_splits, random_state)
    )


def communities_splits(n_splits: int = 10, random_state: int = 0, *, crossed: bool = True) -> tuple[Split, ...]:
    """Return Communities and Crime with eight groups, in random splits of 75 % and 25 %.

    Groups are the crossed shares of three minorities, or each of four shares below and above its median (overlapping).
    """
    communities = load_communities(as_frame=False)
    sensitive = dict(zip(communities.sensitive_names, communities.sensitive_features.T, strict=True))
    complete = communities.data[:, ~np.isnan(communities.data).any(axis=0)]
    indicators = np.column_stack([share == "high" for share in sensitive.values()]).astype(np.float64)
    if crossed:
        del sensitive["white"]
    encoder = make_column_transformer(
        (StandardScaler(), slice(complete.shape[1])), remainder="passthrough", sparse_threshold=0.0
    )
    data = np.hstack((complete, indicators))
    name = f"Communities ({'crossed' if crossed else 'each'})"
    return tuple(
        _split(name, data, communities.target, sensitive, rows=rows, encoder=encoder, crossed=crossed)
        for rows in _random_rows(communities.target, n_splits, random_state)
    )


def _random_rows(target: Ints, n_splits: int, random_state: int) -> Iterator[_Rows]:
    """Yield training and test rows with three quarters and one quarter of each class."""
    check_count(n_splits, name="n_splits")
    for seed in range(random_state, random_state + n_splits):
        yield train_test_split(np.arange(len(target)), test_size=0.25, stratify=target, random_state=seed)


def _split(
    name: str,
    data: NDArray[Any],
    target: Ints,
    sensitive: Mapping[str, NDArray[np.object_]],
    *,
    rows: _Rows,
    encoder: Any,
    crossed: bool = True,
) -> Split:
    encoder.fit(data[rows[0]])
    train, test = (
        (encoder.transform(data[part]), target[part], {column: values[part] for column, values in sensitive.items()})
        for part in rows
    )
    return Split(name, *train, *test, crossed)


@lru_cache(maxsize=1)
def adult_by_sex() -> Split:
    """Return Adult with the features of Table 1 and two groups, women and men."""
    split = adult_split()
    train, test = ({"sex": columns["sex"]} for columns in (split.sensitive_train, split.sensitive_test))
    return replace(split, sensitive_train=train, sensitive_test=test)


def rows_at_rates(
    labels: Ints, sex: NDArray[np.object_], rates: Mapping[str, float], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw rows so that each sex has a given share in class 1."""
    table = Bunch(data=labels[:, None], target=labels, sensitive_features=sex[:, None], sensitive_names=["sex"])
    return np.sort(shift_class_rate(table, rates, by="sex", random_state=rng).indices)
