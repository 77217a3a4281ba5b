"""Regularized transport through dual potentials that are updated in training: the distance of ``kind="continuous"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from fairtransport.transport.dual import (
    DualProblem,
    DualState,
    ascend_all_pairs,
    conjugate_argument,
    dual_values,
    evaluate,
    point_slope,
)
from fairtransport.transport.fourier import FourierFeatures, draw_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._pairs import Batch, Pairing

__all__ = ["Duals"]

# Numbers per block: on a CPU as many as fit in its cache, elsewhere as many as surely fit in memory.
_BLOCK_SIZES, _DEFAULT_BLOCK_SIZE = {"cpu": 1 << 16}, 1 << 26
_OPPOSITE_L2_STEP = 4.0  # multiple of the default step size


class Duals(nn.Module):
    """Coefficients of the dual potentials of all problems.

    The regularized distance of a distribution to itself is not zero, nor is the distance of two distributions minimal
    where they agree. Subtracting half of each one's distance to itself corrects both ("debiasing"). With L2 and
    opposite potentials that distance is zero.

    Attributes
    ----------
    x, y : Tensor of shape (n_problems, n_fourier_features)
        Coefficients of the potentials of the first and the second side.
    own : Tensor of shape (n_cells + n_targets, n_fourier_features)
        Coefficients of the potential of each distribution with itself; zero is optimal for opposite potentials.
    """

    frequency: Tensor
    phase: Tensor
    x: Tensor
    y: Tensor
    own: Tensor

    def __init__(
        self,
        pairing: Pairing,
        n_targets: int,
        *,
        regularizer: str,
        strength: float,
        opposite: bool,
        debias: bool,
        n_features: int,
        kernel_variance: float,
        step: float | None,
        n_steps: int,
        seed: int,
    ) -> None:
        super().__init__()
        features = draw_features(n_features, kernel_variance, np.random.default_rng(seed))
        self.regularizer, self.strength, self.opposite = get_regularizer(regularizer), strength, opposite
        self.debias = debias and not (opposite and regularizer == "l2")
        self.n_steps = n_steps
        n_problems, n_distributions = len(pairing.first), len(pairing.partner) + n_targets
        self.register_buffer("frequency", torch.tensor(features.frequency, dtype=torch.get_default_dtype()))
        self.register_buffer("phase", torch.tensor(features.phase, dtype=torch.get_default_dtype()))
        for name, size in {"x": n_problems, "y": n_problems, "own": n_distributions}.items():
            self.register_buffer(name, torch.zeros(size, n_features))
        # Opposite potentials with L2 remain stable at a larger step size, so that one step per batch is enough.
        factor = _OPPOSITE_L2_STEP if opposite and regularizer == "l2" else 1.0
        self.step = factor * self.problem.default_step if step is None else step

    @property
    def problem(self) -> DualProblem:
        """The dual problem, for the formulas in `fairtransport.transport.dual`."""
        features = FourierFeatures(self.frequency, self.phase)
        return DualProblem(features, self.regularizer, self.strength, self.opposite, "all")

    def forward(self, batch: Batch, *, update: bool) -> tuple[Tensor, Tensor]:
        """Return, for each row, the slope of the penalty at its score, and its contribution to the value.

        With ``update``, the potentials take gradient ascent steps before.
        """
        pairing, features = batch.pairing, self.problem.features
        psi = features.value(batch.quantiles)
        psi_compared = psi if pairing.each_other else features.value(batch.compared)
        if update:
            self._ascend(batch, psi, psi_compared)
        side, x, y = pairing.is_second[..., None], self.x[pairing.problem], self.y[pairing.problem]
        row_side, partner_side = torch.where(side, y, x), torch.where(side, x, y)
        h = dual_values(psi_compared[pairing.partner], partner_side)
        slopes, values = self._compare(batch, batch.compared[pairing.partner], row_side, h)
        if self.debias:
            own = self.own[: len(psi), None]
            slope, value = self._compare(batch, batch.quantiles[:, None], own, dual_values(psi[:, None], own))
            slopes = slopes - slope
            # The value of a pair is halved later, and with it that of each cell with itself; a target has no rows.
            values = values - (value if pairing.each_other else 0.5 * (value + self._target_self_distances(batch)))
        return batch.sum_over_partners(slopes, values)

    def _ascend(self, batch: Batch, psi: Tensor, psi_compared: Tensor) -> None:
        """Update the potentials by gradient ascent, over all pairs of quantiles."""
        first, second = batch.pairing.first, batch.pairing.second
        step, state = self.step * batch.ready[:, None].to(self.x.dtype), DualState(self.x, self.y)
        sides = _pairwise_costs(batch.quantiles[first], batch.compared[second]), psi[first], psi_compared[second]
        for _ in range(self.n_steps):
            state = ascend_all_pairs(self.problem, state, *sides, step=step)
        self.x.copy_(state.x)
        self.y.copy_(state.y)
        if self.debias and not self.opposite:
            n_cells = len(psi)
            self.own[:n_cells] = self._ascend_self(self.own[:n_cells], batch.quantiles, psi, batch.seen)
            if not batch.pairing.each_other:
                ready = torch.ones_like(batch.compared[:, 0])
                self.own[n_cells:] = self._ascend_self(self.own[n_cells:], batch.compared, psi_compared, ready)

    def _ascend_self(self, own: Tensor, points: Tensor, psi: Tensor, ready: Tensor) -> Tensor:
        """Return updated potentials of distributions with themselves, where both sides share one potential."""
        step, cost = self.step * ready[:, None].to(own.dtype), _pairwise_costs(points, points)
        for _ in range(self.n_steps):
            state = ascend_all_pairs(self.problem, DualState(own, own), cost, psi, psi, step=step)
            own = state.x + state.y - own
        return own

    def _target_self_distances(self, batch: Batch) -> Tensor:
        """Return the distance of each row's target to itself."""
        own = self.own[len(batch.quantiles) :]
        distances = evaluate(self.problem, DualState(own, own), batch.compared, batch.compared).value
        return distances[batch.pairing.partner][batch.cells]

    def _compare(self, batch: Batch, other: Tensor, coefficients: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return slopes and values of the rows with respect to each partner, (n_rows, n_partners).

        ``other`` is (n_cells, n_partners, n), ``h`` its potential, and ``coefficients`` are those of the cells'
        potentials, (n_cells, n_partners, n_fourier_features).
        """
        points, cells, mean = batch.rows.scores, batch.cells, h.mean(-1)
        size = max(1, _BLOCK_SIZES.get(points.device.type, _DEFAULT_BLOCK_SIZE) // other[0].numel())
        if len(points) <= size or torch.compiler.is_compiling():
            slopes, values = self._compare_block(points, other[cells], coefficients[cells], h[cells])
            return slopes, values + mean[cells]
        blocks = zip(points.split(size), cells.split(size), strict=True)
        parts = [self._compare_block(s, other[c], coefficients[c], h[c]) for s, c in blocks]
        return torch.cat([slopes for slopes, _ in parts]), torch.cat([values for _, values in parts]) + mean[cells]

    def _compare_block(self, points: Tensor, other: Tensor, coefficients: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return slopes and values of some points; the mean of ``h`` is not part of the values."""
        problem = self.problem
        f, f_slope = (dual_values(coefficients, psi) for psi in problem.features.value_and_slope(points))
        difference = points[:, None, None] - other
        v = conjugate_argument(problem.strength, torch.abs(difference), f[..., None], h)
        alpha, conjugate = problem.regularizer.alpha_and_conjugate(v)
        slopes = point_slope(alpha.mean(-1), f_slope, (alpha * torch.sign(difference)).mean(-1))
        return slopes, f - problem.strength * conjugate.mean(-1)


def _pairwise_costs(x: Tensor, y: Tensor) -> Tensor:
    """Return abs(x - y) of every x with every y, (..., n, m)."""
    return torch.abs(x[..., None] - y[..., None, :])
