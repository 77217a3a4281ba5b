"""The error rate of thresholded scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._labels import is_positive
from fairtransport._validation import check_real, check_scores, check_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["error_rate"]


def error_rate(
    y_true: ArrayLike,
    scores: ArrayLike,
    threshold: float = 0.5,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the share of rows that a threshold misclassifies (Err-.5 in the paper).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,)
        Scores within [0, 1].
    threshold : float, default 0.5
        Scores strictly above it are classified as positive.
    pos_label : label, optional
        The positive class. By default 1 for labels 0 and 1 (or False and True), and the larger one in sorted order for
        any other two.
    sample_weight : array-like of shape (n,), optional
        Weights; equal when omitted.

    Returns
    -------
    float

    Notes
    -----
    With weights w that sum to 1,

    .. math:: \sum_n w_n \, 1[\hat y_n \ne y_n], \qquad \hat y_n = 1[s_n > \tau].

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".

    Examples
    --------
    >>> error_rate([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5])
    0.25
    >>> error_rate(["bad", "good"], [0.9, 0.3], pos_label="bad")
    0.0
    """
    values = check_scores(scores)
    cut = check_real(threshold, name="threshold", most=1.0)
    positive = is_positive(y_true, pos_label, size=values.size)
    weights = check_weights(sample_weight, size=values.size)
    wrong = (values > cut) != positive
    return float(np.count_nonzero(wrong) / wrong.size) if weights is None else float(np.average(wrong, weights=weights))
