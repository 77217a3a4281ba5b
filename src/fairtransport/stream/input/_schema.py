"""What a model needs of a row of text: which columns, and how they become what it scores."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.repair import QuantileRepair
from fairtransport.stream.scorers import scorer_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.scorers import Scorer

__all__ = ["InputSchema", "input_schema_for"]


@dataclass(frozen=True)
class InputSchema:
    """Columns that are read, and what is made of them.

    Attributes
    ----------
    model : estimator
        What `ContinualAdjuster` takes.
    numbers, texts : tuple of str
        Columns that are read as finite numbers, and as text.
    sensitive : tuple of str
        Columns of the groups, in the order of the model's.
    groups : Groups
        That the model knows.
    make : callable
        Takes the columns by name and returns what the model scores.
    low, high : float
        The numbers' range.
    cells : tuple of str
        Columns that are read as they are, missing or not, for a preprocessing.
    word : callable, optional
        Turns a value of a sensitive column into a part of the group's label, where labels are words.
    """

    model: Any
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    sensitive: tuple[str, ...]
    groups: Groups
    make: Callable[[Mapping[str, NDArray[Any]]], Any]
    low: float = -np.inf
    high: float = np.inf
    cells: tuple[str, ...] = ()
    word: Callable[[Any], Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read, each once."""
        return tuple(dict.fromkeys((*self.numbers, *self.texts, *self.cells, *self.sensitive)))

    @property
    def adopts(self) -> bool:
        """Whether a group that is new is taken up."""
        return str(self.model.new_groups) == "adopt"


def input_schema_for(
    model: Any, *, sensitive: Sequence[str], score: str | None = None, features: Sequence[str] | None = None
) -> InputSchema:
    """Say how a loaded model takes its rows. Models that bring their own preprocessing have their place here.

    Parameters
    ----------
    model : estimator
        As `fairtransport.load` returns it.
    sensitive : sequence of str
        Columns of the groups, in any order if the model knows their names.
    score : str, optional
        Column of the scores, for a `QuantileRepair`.
    features : sequence of str, optional
        Columns of the features in the order of ``fit``, for a model that does not know their names.

    Returns
    -------
    InputSchema
        Of a model with a preprocessing, which has ``encoder_`` and ``estimator_``: raw columns are ``cells``, and
        ``make`` lets the encoder turn them into features.
    """
    if hasattr(model, "encoder_") and hasattr(model, "estimator_"):
        return _feeding_of_raw_tables(model, sensitive)
    scorer = scorer_for(model)
    known = _sensitive_columns(scorer, sensitive)
    if isinstance(model, QuantileRepair):
        if score is None:
            raise ValueError("The model repairs scores of any origin: name their column with --score.")
        grid = scorer.grid
        return InputSchema(model, (score,), (), known, scorer.groups, lambda held: held[score], grid.low, grid.high)
    if score is not None:
        raise ValueError("--score is for a QuantileRepair; this model computes its scores from features.")
    names = _feature_names(model, features)
    return InputSchema(
        model, names, (), known, scorer.groups, lambda held: np.column_stack([held[name] for name in names])
    )


def _feeding_of_raw_tables(model: Any, sensitive: Sequence[str]) -> InputSchema:
    """Feed what `fairtransport train` made: an encoder of raw columns, a classifier, and groups that are words."""
    scorer, encoder = scorer_for(model.estimator_), model.encoder_
    names = tuple(encoder.names)
    word_of = importlib.import_module("fairtransport.tabular.cells").word_of  # comes with such models
    return InputSchema(
        model.estimator_,
        (),
        (),
        _sensitive_columns(scorer, sensitive),
        scorer.groups,
        lambda held: encoder.transform({name: held[name] for name in names}),
        cells=names,
        word=lambda value: word_of(value) or "missing",
    )


def _sensitive_columns(scorer: Scorer, given: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the groups in the model's order; what is given must be the same."""
    known = tuple(scorer.groups.columns)
    if known == tuple(f"sensitive_feature_{place}" for place in range(len(known))) and len(given) == len(known):
        known = tuple(given)
    if set(known) != set(given):
        raise ValueError(
            f"The model's groups are made of {_say(known)}, but --sensitive names {_say(given)}. Name the same."
        )
    return known


def _feature_names(model: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    found = getattr(model, "feature_names_in_", None)
    own = None if found is None else tuple(map(str, found))
    if given is not None:
        if own is not None and own != tuple(given):
            raise ValueError("--features differs from the names that the model was fitted with; leave it out.")
        if len(given) != model.n_features_in_:
            raise ValueError(f"--features names {len(given)} columns; the model has {model.n_features_in_} features.")
        return tuple(given)
    if own is None:
        raise ValueError(
            f"The model was fitted without names of columns. Name its {model.n_features_in_} features, in their order, "
            "with --features, or fit it on a table."
        )
    return own


def _say(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
