"""Parallel fits of several estimators on the same rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn import fit_model, last_step
from fairtransport.linear import SgdSettings
from fairtransport.selection._thread_pool import run_in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from fairtransport.selection._thread_pool import Control


def fit_many(
    estimators: Iterable[Any],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    strata: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Any]:
    """Fit several estimators on the same rows, in parallel threads.

    Parameters
    ----------
    estimators : iterable of estimators
        Each is fitted in place, as by ``estimator.fit``; no object may occur twice. A pipeline passes the groups and
        the weights to its last step.
    X, y, sensitive_features, strata, sample_weight
        As for ``fit``. The threads share them.
    n_jobs : int, optional
        Number of threads; the compiled loops release the global interpreter lock. As in joblib, None is 1 unless in a
        ``joblib.parallel_config`` context, and -1 means all cores.
    verbose : bool, default=False
        Show one progress bar for all fits, and none of the individual estimators.

    Returns
    -------
    list of estimators
        The fitted estimators, in their order. They do not depend on ``n_jobs``.

    Raises
    ------
    Exception
        The exception of the first fit that fails, with a note that names the fit and the parameters in which it differs
        from the others. The other fits are stopped.
    KeyboardInterrupt
        After Ctrl-C, when all fits have stopped. Estimators whose fit was not complete must not be used.

    Notes
    -----
    Fits that start from the same initial model need not each train it: fit it once and pass it as ``estimator``.

    Warnings are collected and issued once each, with their number.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=500)
    >>> X = rng.normal(size=(500, 3)) + group[:, None]
    >>> y = (X.sum(axis=1) + rng.logistic(size=500) > 1.5).astype(int)
    >>> models = [ft.TransportClassifier(parity_weight=weight) for weight in (0.0, 0.3, 1.0)]
    >>> models = ft.fit_many(models, X, y, sensitive_features=group, n_jobs=2)
    >>> [model.parity_weight_ for model in models]
    [0.0, 0.3, 1.0]
    """
    models = list(estimators)
    _check_distinct(models)
    verbose_models = [model for model in models if _parameters(model).get(f"{last_step(model)[0]}verbose") is True]

    def task(model: Any) -> Callable[[Control], Any]:
        columns = {"sensitive_features": sensitive_features, "strata": strata, "sample_weight": sample_weight}
        return lambda _: fit_model(model, X, y, **columns)

    for model in verbose_models:  # only the common bar is shown
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
        for model in verbose_models:
            model.set_params(**{f"{last_step(model)[0]}verbose": True})


def _check_distinct(models: Sequence[Any]) -> None:
    if not models:
        raise ValueError("estimators is empty; at least one is needed.")
    for index, model in enumerate(models):
        if not hasattr(model, "fit"):
            raise TypeError(f"estimators[{index}] is a {type(model).__name__}, which has no fit.")
    if len(set(map(id, models))) < len(models):
        raise ValueError("An estimator object occurs twice in estimators; use sklearn.base.clone to copy it.")
    shared = Counter(
        id(value)
        for model in models
        for value in {id(v): v for v in _values(model)}.values()
        if isinstance(value, (np.random.RandomState, np.random.Generator))
    )
    if shared and max(shared.values()) > 1:
        raise ValueError(
            "Several estimators share one random number generator, so the models would depend on the order of the "
            "fits; give each a different random_state, such as an integer."
        )


def _values(model: Any) -> list[Any]:
    """Return the parameters of an estimator, and the seed inside the settings of a solver."""
    values = list(_parameters(model).values())
    return [*values, *(value.random_state for value in values if isinstance(value, SgdSettings))]


def _parameters(model: Any) -> dict[str, Any]:
    return dict(model.get_params()) if hasattr(model, "get_params") else {}


def _names(models: Sequence[Any]) -> list[str]:
    """Return a name for each fit, with the parameters in which it differs from the others."""
    settings = [{"": type(model).__name__, **_parameters(model)} for model in models]
    differing = [
        name
        for name in dict.fromkeys(name for parameters in settings for name in parameters)
        if len({_show(name, parameters.get(name)) for parameters in settings}) > 1
    ]
    names = []
    for index, parameters in enumerate(settings):
        shown = ", ".join(_show(name, parameters[name]) for name in differing if name in parameters)
        names.append(f"fit {index + 1} of {len(models)} (estimators[{index}]{': ' if shown else ''}{shown})")
    return names


def _show(name: str, value: Any) -> str:
    """Return a parameter as text without personal data: a target may be a group value or a list of scores."""
    if not name:
        return str(value)
    plain = value is None or isinstance(value, (bool, int, float, np.number, SgdSettings))
    if plain or (isinstance(value, str) and not name.endswith("target")):
        return f"{name}={value if not isinstance(value, np.number) else value.item()!r}"
    return f"{name}=<{type(value).__name__}>"
