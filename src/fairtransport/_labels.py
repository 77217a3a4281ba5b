"""Labels of two classes, which of them is positive, and whether labels are classes or real numbers.

As in scikit-learn, the larger label is positive, unless ``pos_label`` names another. Errors never contain a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Bools, Floats
from fairtransport._validation import check_column

#: What the labels of a table are: two classes, or real numbers.
TASKS = ("classification", "regression")
#: Whole numbers with at most so many different values may be classes as well as measurements.
MOST_CLASS_NUMBERS = 20

# Pairs of labels that say which of them is positive.
_PLAIN = (("0", "1"), ("0.0", "1.0"), ("-1", "1"), ("-1.0", "1.0"), ("false", "true"), ("no", "yes"))


def positive_label(labels: Sequence[Any], pos_label: Any = None, *, source: str = "y_true") -> Any:
    """Return the positive one of one or two labels.

    Parameters
    ----------
    labels : sequence
        The different labels.
    pos_label : label, optional
        The positive one; it may be omitted for 0 and 1, -1 and 1, false and true, no and yes.
    source : str, default="y_true"
        Where the labels are from, for messages.
    """
    if len(labels) > 2:
        raise ValueError(f"{source} has {len(labels)} different labels; two are needed.")
    if pos_label is not None:
        if len(labels) == 2 and pos_label not in labels:
            raise ValueError(f"{source} has two labels, and pos_label is neither of them.")
        return pos_label
    words = {str(label).strip().lower() for label in labels}
    for negative, positive in _PLAIN:
        if words <= {negative, positive}:
            known = [label for label in labels if str(label).strip().lower() == positive]
            return known[0] if known else 1
    if len(labels) == 1:
        raise ValueError(
            f"{source} has one label only, neither 0 nor 1; specify which label is positive with pos_label=."
        )
    raise ValueError(
        f"{source} has two labels other than 0 and 1, false and true, no and yes or -1 and 1; specify which of them is "
        "positive with pos_label=."
    )


def is_positive(y_true: ArrayLike, pos_label: Any = None, *, size: int, name: str = "y_true") -> Bools:
    """Return whether each row has the positive label."""
    return find_positive(y_true, pos_label, size=size, name=name)[0]


def find_positive(y_true: ArrayLike, pos_label: Any, *, size: int, name: str = "y_true") -> tuple[Bools, Any]:
    """Return whether each row has the positive label, and that label."""
    labels = check_column(np.asarray(y_true), name=name)
    if labels.size != size:
        raise ValueError(f"{name} has {labels.size} rows, but scores has {size}.")
    if pos_label is None and labels.dtype.kind in "biuf":
        positive = np.asarray(labels == 1, dtype=bool)
        if np.count_nonzero(positive) + np.count_nonzero(labels == 0) == size:
            return positive, labels.dtype.type(1)  # the most usual labels, in two passes
    n_missing = _count_missing(labels)
    if n_missing:
        raise ValueError(f"{name} has {n_missing} missing labels; remove those rows first.")
    positive_one = positive_label(_distinct(labels, name).tolist(), pos_label, source=name)
    return np.asarray(labels == positive_one, dtype=bool), positive_one


def label_text(label: Any) -> str:
    """Return a label for readers: whole numbers without decimals."""
    return f"{label:g}" if isinstance(label, (float, np.floating)) else str(label)


def infer_task(y: ArrayLike, *, name: str = "y_true") -> str:
    """Return whether labels are of two classes or real numbers."""
    labels = check_column(np.asarray(y), name=name)
    if labels.dtype.kind not in "iuf" or not labels.size:
        return "classification"
    known = labels[np.isfinite(labels)] if labels.dtype.kind == "f" else labels
    if not known.size or np.count_nonzero(known == known.min()) + np.count_nonzero(known == known.max()) >= known.size:
        return "classification"
    whole = bool(labels.dtype.kind in "iu" or np.all(known == np.rint(known)))
    return task_of_numbers(np.unique(known).size if whole else known.size, whole=whole, source=name)


def task_of_numbers(n_distinct: int, *, whole: bool, source: str) -> str:
    """Return the task of numeric labels with so many different values; see `infer_task`."""
    if n_distinct <= 2:
        return "classification"
    if whole and n_distinct <= MOST_CLASS_NUMBERS:
        raise ValueError(
            f"{source} has {n_distinct} different whole numbers, which may be classes or measurements. Give "
            'task="regression" if they are measurements; labels of classes must be two.'
        )
    return "regression"


def _distinct(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the distinct labels, sorted; two numbers are found without a sort."""
    if labels.dtype.kind in "biuf":
        ends = np.unique([labels.min(), labels.max()])
        if sum(np.count_nonzero(labels == end) for end in ends) == labels.size:
            return ends
    try:
        return np.unique(labels)
    except TypeError:
        raise ValueError(f"{name} mixes labels of several types; use two labels of one type.") from None


def _count_missing(labels: NDArray[Any]) -> int:
    """Count None, NaN, NaT and pandas.NA; NaN and NaT differ from themselves."""
    if labels.dtype.kind in "biu":
        return 0
    if labels.dtype.kind != "O":
        return int(np.count_nonzero(labels != labels))  # noqa: PLR0124
    return sum(map(_is_missing, labels))


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124
    except TypeError:  # pandas.NA answers neither yes nor no
        return True


# The y of estimators: the labels of binary classifiers, and the numbers of regressors.


def _as_vector(y: Any, owner: str) -> Any:
    from sklearn.utils.validation import column_or_1d  # noqa: PLC0415 - takes a while

    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    return column_or_1d(y, warn=True)


def two_classes(y: Any, owner: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the labels as a vector, and the two classes in ascending order; the second is positive."""
    from sklearn.utils.multiclass import check_classification_targets  # noqa: PLC0415 - takes a while

    labels = _as_vector(y, owner)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"y has {np.count_nonzero(np.isinf(labels))} infinite labels; use two labels.")
    try:
        classes = np.unique(labels)
    except TypeError:  # not sortable
        raise ValueError("y has labels of several types, or missing ones; use two labels of one type.") from None
    n_missing = np.count_nonzero(labels != labels)  # noqa: PLR0124 - NaN differs from itself
    if n_missing:
        raise ValueError(f"y has {n_missing} missing labels; remove those rows first.")
    check_classification_targets(labels)
    if classes.size != 2:
        raise ValueError(
            f"Only binary classification is supported. {owner} needs labels of exactly two classes; y has "
            f"{classes.size} class{'' if classes.size == 1 else 'es'}."
        )
    return labels, classes


def real_targets(y: Any, owner: str, *, constant: bool = False) -> Floats:
    """Return the values that a regressor is to predict."""
    values = _as_vector(y, owner)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be real numbers.")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y has values that are not numbers; {owner} predicts numbers. For two classes, use a classifier."
        ) from None
    for reason, count in (("missing", np.isnan(numbers).sum()), ("infinite", np.isinf(numbers).sum())):
        if count:
            raise ValueError(f"y has {count} {reason} values (NaN or infinity); remove those rows first.")
    if not constant and numbers.size and np.ptp(numbers) == 0.0:
        raise ValueError("y has the same value in every row, so there is nothing to predict.")
    return np.asarray(numbers)


def check_classes(classes: Any, known: NDArray[Any]) -> None:
    """Raise ValueError unless ``classes``, where given, are the two classes of the model."""
    if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
        raise ValueError("classes must be the two classes of the first call's y; leave it out, or pass both.")
