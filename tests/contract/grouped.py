"""The public classes, called by checks that know nothing of groups.

Scikit-learn's checks pass no ``sensitive_features``. Within `groups_from_rows` the classes' own methods are called with
the group of each row where they need one and none is given; every other argument is passed on as it came, so that a
method that does not take it fails. The group of a row is a function of its values, as good as by chance, so that it has
nothing to do with the labels and a copy of the row has the same one. Where X is no matrix, rows take turns: then it is
for the estimator to say what is wrong.
"""

import contextlib
import functools
import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

import fairtransport as ft


def row_groups(X):
    """Return 0 or 1 for each row."""
    with contextlib.suppress(TypeError, ValueError):
        array = np.asarray(X.toarray() if sparse.issparse(X) else X)
        if array.ndim == 2 and array.shape[1] > 0 and array.dtype.kind in "fiuO":
            sums = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0).sum(axis=1)
            return np.floor(np.minimum(np.abs(sums), 1e9) * 101.7).astype(np.int64) % 2
    return np.arange(np.shape(X)[0] if hasattr(X, "shape") else len(X)) % 2


@contextlib.contextmanager
def groups_from_rows(*kinds):
    """Let the methods of these classes take the groups of rows from X, where none are given."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in kinds:
            for name in ("fit", "partial_fit", "predict", "predict_proba", "decision_function", "score"):
                method = getattr(kind, name, None)
                if method is not None and "sensitive_features" in inspect.signature(method).parameters:
                    patch.setattr(kind, name, _with_groups(method))
        yield


def _with_groups(method):
    trains = method.__name__ in {"fit", "partial_fit"}

    @functools.wraps(method)
    def call(self, X, *args, **options):
        aware = isinstance(self, (ft.QuantileRepairClassifier, ft.QuantileRepairRegressor)) or getattr(
            self, "group_specific", False
        )
        if "sensitive_features" not in options and (trains or aware):
            options["sensitive_features"] = row_groups(X)
        return method(self, X, *args, **options)

    return call


class MatrixRepair(ft.QuantileRepair):
    """Repair of scores as a transformer of a matrix: the first column, squeezed into [0, 1], is the score.

    Scikit-learn has no checks of transformers of vectors, which the class itself is.
    """

    def fit(self, X, y=None, sample_weight=None):
        return self._learn_from(super().fit, X, y, sample_weight, reset=True)

    def partial_fit(self, X, y=None, sample_weight=None):
        return self._learn_from(super().partial_fit, X, y, sample_weight, reset=not hasattr(self, "maps_"))

    def _learn_from(self, learn, X, y, sample_weight, *, reset):
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, reset=reset)
        width, names = X.shape[1], getattr(self, "feature_names_in_", None)
        learn(self._scores(X), y, sensitive_features=row_groups(X), sample_weight=sample_weight)
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = names
        return self

    def transform(self, X):
        check_is_fitted(self)
        given, X = X, validate_data(self, X, dtype=np.float64, reset=False)
        scores = self._scores(X)
        if hasattr(given, "iloc"):  # of pandas: rows keep their names
            scores = type(given)({"score": scores}, index=given.index)["score"]
        made = super().transform(scores, sensitive_features=row_groups(X))
        return made if hasattr(made, "columns") else made.reshape(-1, 1)

    def fit_transform(self, X, y=None, **options):
        return self.fit(X, y, **options).transform(X)

    @staticmethod
    def _scores(X):
        return 0.5 + np.arctan(X[:, 0] / 50.0) / np.pi

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags
