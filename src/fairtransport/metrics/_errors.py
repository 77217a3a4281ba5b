"""How often a thresholded score is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_column, check_real, check_scores, check_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["error_rate"]


def error_rate(
    y_true: ArrayLike,
    scores: ArrayLike,
    threshold: float = 0.5,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of wrong decisions when scores above a threshold are decided positively (Err-.5 in the paper).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,)
        Scores within [0, 1].
    threshold : float, default 0.5
        A score is decided positively when it lies strictly above.
    pos_label : label, optional
        The positive class. By default 1 for labels 0 and 1 (or False and True), and the second in sorted
        order for any other two.
    sample_weight : array-like of shape (n,), optional
        Weights; equal when omitted.

    Returns
    -------
    float

    Notes
    -----
    With weights w that sum to 1 (section Experiments of the paper, where they are equal),

    .. math:: \sum_n w_n \, 1[\hat y_n \ne y_n], \qquad \hat y_n = 1[s_n > \tau].

    Examples
    --------
    >>> error_rate([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5])
    0.25
    >>> error_rate(["bad", "good"], [0.9, 0.3], pos_label="bad")
    0.0
    """
    values = check_scores(scores)
    cut = check_real(threshold, name="threshold", most=1.0)
    positive = _positives(y_true, pos_label, size=values.size)
    weights = check_weights(sample_weight, size=values.size)
    wrong = (values > cut) != positive
    return float(np.count_nonzero(wrong) / wrong.size) if weights is None else float(np.average(wrong, weights=weights))


def _positives(y_true: ArrayLike, pos_label: Any, *, size: int) -> NDArray[np.bool_]:
    """Rows of the positive class."""
    labels = _check_labels(y_true, size=size)
    if pos_label is None and labels.dtype.kind in "biuf":
        positive = np.asarray(labels == 1, dtype=bool)
        if np.count_nonzero(positive) + np.count_nonzero(labels == 0) == size:
            return positive  # by far the most usual labels, in two passes
    classes = _classes(labels)
    if classes.size > 2:
        raise ValueError(f"y_true has {classes.size} classes; error_rate needs two, such as 0 and 1.")
    if pos_label is not None:
        positive = np.asarray(labels == pos_label, dtype=bool)
        if classes.size == 2 and not positive.any():
            raise ValueError("pos_label is not among the two labels of y_true.")
        return positive
    if all(label in (0, 1) for label in classes.tolist()):
        return np.asarray(labels == 1, dtype=bool)  # objects
    if classes.size == 1:
        raise ValueError("y_true has one class only; say with pos_label which class is the positive one.")
    return np.asarray(labels == classes[1], dtype=bool)


def _classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels, sorted; two numbers are found without a sort."""
    if labels.dtype.kind in "biuf":
        ends = np.unique([labels.min(), labels.max()])
        if sum(np.count_nonzero(labels == end) for end in ends) == labels.size:
            return ends
    try:
        return np.unique(labels)
    except TypeError:
        raise ValueError("y_true mixes labels of several types; use two labels of one type.") from None


def _check_labels(y_true: ArrayLike, *, size: int) -> NDArray[Any]:
    labels = check_column(np.asarray(y_true), name="y_true")
    if labels.size != size:
        raise ValueError(f"y_true has {labels.size} rows, but scores has {size}.")
    missing = _count_missing(labels)
    if missing:
        raise ValueError(f"y_true has {missing} missing labels; remove those rows first.")
    return labels


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
