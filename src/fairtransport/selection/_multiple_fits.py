"""Many estimators on the same rows, at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.estimator_calls import fit_model, last_step
from fairtransport.linear import SgdSettings
from fairtransport.selection._thread_pool import run_in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from fairtransport.selection._thread_pool import Control

__all__ = ["fit_many"]


def fit_many(
    estimators: Iterable[Any],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Any]:
    """Fit many estimators on the same rows: seeds, strengths, parity weights or batch sizes.

    Parameters
    ----------
    estimators : iterable of estimators
        Each is fitted itself, as ``estimator.fit`` does; no object may come twice. A pipeline hands the groups and
        the weights to its last step.
    X, y, sensitive_features, sample_weight
        As for ``fit``. The runs share them, nothing is copied for another process.
    n_jobs : int, optional
        How many run at once, in threads: the compiled loops release the interpreter lock. As in joblib, None is 1
        unless a ``joblib.parallel_config`` says otherwise, and -1 is all cores.
    verbose : bool, default=False
        Show one progress bar for all. The estimators' own bars are off meanwhile.

    Returns
    -------
    list of estimators
        Those given, in their order, fitted. The models do not depend on ``n_jobs``.

    Raises
    ------
    Exception
        What a run raises, with a note that says which run it was and in what it differs from the others. The rest
        is stopped.
    KeyboardInterrupt
        After Ctrl-C, when all runs have stopped. Estimators that were not done are not to be used.

    Notes
    -----
    Runs that start from the same initial model need not each train it: fit it once and pass it as their
    ``estimator``.

    Warnings are gathered: each comes once, with how many there were like it.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=500)
    >>> X = rng.normal(size=(500, 3)) + group[:, None]
    >>> y = (X.sum(axis=1) + rng.logistic(size=500) > 1.5).astype(int)
    >>> models = [ft.DiscreteTransportClassifier(parity_weight=weight) for weight in (0.0, 0.3, 1.0)]
    >>> models = ft.fit_many(models, X, y, sensitive_features=group, n_jobs=2)
    >>> [model.parity_weight_ for model in models]
    [0.0, 0.3, 1.0]
    """
    models = list(estimators)
    _check_distinct(models)
    loud = [model for model in models if _parameters(model).get(f"{last_step(model)[0]}verbose") is True]

    def task(model: Any) -> Callable[[Control], Any]:
        return lambda _: fit_model(model, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)

    for model in loud:  # a terminal has room for one bar
        model.set_params(**{f"{last_step(model)[0]}verbose": False})
    try:
        return run_in_threads(
            [task(model) for model in models],
            names=_names(models),
            n_jobs=n_jobs,
            title=f"fitting {len(models)} models",
            verbose=verbose,
        )
    finally:
        for model in loud:
            model.set_params(**{f"{last_step(model)[0]}verbose": True})


def _check_distinct(models: Sequence[Any]) -> None:
    if not models:
        raise ValueError("estimators is empty; give at least one.")
    for place, model in enumerate(models):
        if not hasattr(model, "fit"):
            raise TypeError(f"estimators[{place}] is a {type(model).__name__}, which has no fit.")
    if len(set(map(id, models))) < len(models):
        raise ValueError("An estimator object comes twice in estimators; use sklearn.base.clone to make another.")
    shared = Counter(
        id(value)
        for model in models
        for value in {id(v): v for v in _values(model)}.values()
        if isinstance(value, (np.random.RandomState, np.random.Generator))
    )
    if shared and max(shared.values()) > 1:
        raise ValueError(
            "Several estimators share one random number generator, so that the models would depend on which run "
            "comes first; give each a random_state of its own, such as a whole number."
        )


def _values(model: Any) -> list[Any]:
    """Return the parameters of an estimator, and the seed inside the settings of a solver."""
    values = list(_parameters(model).values())
    return [*values, *(value.random_state for value in values if isinstance(value, SgdSettings))]


def _parameters(model: Any) -> dict[str, Any]:
    return dict(model.get_params()) if hasattr(model, "get_params") else {}


def _names(models: Sequence[Any]) -> list[str]:
    """Say of each run which one it is, and in what it differs from the others."""
    settings = [{"": type(model).__name__, **_parameters(model)} for model in models]
    differing = [
        name
        for name in dict.fromkeys(name for one in settings for name in one)
        if len({_show(name, one.get(name)) for one in settings}) > 1
    ]
    names = []
    for place, one in enumerate(settings):
        told = ", ".join(_show(name, one[name]) for name in differing if name in one)
        names.append(f"run {place} of {len(models)} (estimators[{place}]{': ' if told else ''}{told})")
    return names


def _show(name: str, value: Any) -> str:
    """Write a parameter without anyone's data: a target may be a group's value or a list of scores."""
    if not name:
        return str(value)
    plain = value is None or isinstance(value, (bool, int, float, np.number, SgdSettings))
    if plain or (isinstance(value, str) and not name.endswith("target")):
        return f"{name}={value if not isinstance(value, np.number) else value.item()!r}"
    return f"{name}=<{type(value).__name__}>"
