"""Labels and strata within which groups are compared, as one number for each row: its layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from fairtransport._validation import check_count
from fairtransport.criteria.criterion import needs_labels

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.criteria import Criterion


@dataclass(frozen=True)
class Layers:
    """The layers of a criterion: layer = index of the label * n_strata + stratum."""

    rule: Criterion
    n_strata: int
    n_groups: int

    def __post_init__(self) -> None:
        check_count(self.n_strata, name="n_strata")

    @property
    def criterion(self) -> str:
        """Name of the criterion."""
        return self.rule.name

    @property
    def n_labels(self) -> int:
        """Number of labels whose rows are compared; 1 where labels do not matter."""
        return 2 if self.criterion == "equalized_odds" else 1

    @property
    def n_layers(self) -> int:
        """Number of labels times strata."""
        return self.n_labels * self.n_strata

    @property
    def n_cells(self) -> int:
        """Number of layers times groups."""
        return self.n_layers * self.n_groups

    def check_given(self, labels: Any, strata: Any) -> None:
        """Raise ValueError where labels or strata lack that the criterion needs, or are given that it does not use."""
        if strata is None and self.n_strata > 1:
            raise ValueError(f"this penalty was made for {self.n_strata} strata; strata= is needed.")
        if needs_labels(self.criterion) and labels is None:
            raise ValueError(
                f"criterion={self.criterion!r} compares people with the same label, so every batch needs labels=. "
                "Leave the penalty out of the loss of batches without labels."
            )
        if labels is not None and not needs_labels(self.criterion):
            raise ValueError(
                f"criterion={self.criterion!r} does not use labels; leave labels= out, or use 'equalized_odds'."
            )

    def of_rows(self, labels: Any, strata: Any) -> Any:
        """Return the layers of rows, tensors or arrays, and ``n_layers`` for rows that are not compared.

        0 stands for all rows in one layer.
        """
        layer = 0 if strata is None else strata
        if self.criterion == "equalized_odds":
            return layer + labels * self.n_strata
        if self.criterion == "equal_opportunity":
            return layer * labels + self.n_layers * (1 - labels)
        return layer

    def weights(self, mass: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the weight of each layer, whose cells have these numbers of rows; they sum to 1.

        Layers in which fewer than two groups have rows have weight 0.
        """
        by_group = mass.reshape(self.n_layers, self.n_groups)
        compared = (by_group > 0).sum(-1) >= min(2, self.n_groups)
        weights = by_group.sum(-1).to(dtype) * compared
        if self.rule.stratum_weight == "equal":
            weights = compared.to(dtype)
        elif self.rule.stratum_weight is None and self.n_labels > 1:  # labels count the same; their strata by share
            by_label = weights.reshape(self.n_labels, -1)
            weights = (by_label / by_label.sum(-1, keepdim=True).clamp(min=1.0)).flatten()
        return weights / weights.sum().clamp(min=torch.finfo(dtype).tiny)
