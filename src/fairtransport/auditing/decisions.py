"""Decisions at a threshold, by label, and the rates that are shares of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport.auditing.proportions import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RATES", "Decisions"]

# Cells of the table of decisions: (label, whether selected).
_TN, _FP, _FN, _TP = (0, 0), (0, 1), (1, 0), (1, 1)

_CELLS = {
    "selection_rate": ((_FP, _TP), (_TN, _FN)),
    "true_positive_rate": ((_TP,), (_FN,)),
    "false_positive_rate": ((_FP,), (_TN,)),
    "false_negative_rate": ((_FN,), (_TP,)),
    "positive_predictive_value": ((_TP,), (_FP,)),
    "negative_predictive_value": ((_TN,), (_FN,)),
    "accuracy": ((_TN, _TP), (_FP, _FN)),
    "error_rate": ((_FP, _FN), (_TN, _TP)),
}

#: Names of the rates.
RATES = tuple(_CELLS)


@dataclass(frozen=True, eq=False)
class Decisions:
    """The weight of the rows with each label and decision.

    Parameters
    ----------
    weights, squares : array of shape (n_classes, 2)
        Sum of the weights and of the squared weights, by label and by whether the score is above the threshold. One
        class without labels.

    Examples
    --------
    >>> import numpy as np
    >>> decisions = Decisions(*(np.array([[50.0, 10.0], [15.0, 25.0]]),) * 2)
    >>> decisions.tally("false_positive_rate").value, decisions.tally("true_positive_rate").value
    (0.16666666666666666, 0.625)
    """

    weights: NDArray[np.float64]
    squares: NDArray[np.float64]

    def tally(self, rate: str) -> Tally:
        """Return the weight that a rate counts, and the rest of its denominator."""
        if len(self.weights) == 1:
            if rate != "selection_rate":
                raise ValueError("The audit has no labels.")
            (outside, inside), (outside_squares, inside_squares) = self.weights[0], self.squares[0]
            return Tally(float(inside), float(outside), float(inside_squares), float(outside_squares))
        inside_cells, outside_cells = _CELLS[rate]
        sums = (
            sum(float(table[cell]) for cell in cells)
            for table in (self.weights, self.squares)
            for cells in (inside_cells, outside_cells)
        )
        return Tally(*sums)
