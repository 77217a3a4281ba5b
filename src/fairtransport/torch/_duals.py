"""Regularized transport through dual variables that learn along: the continuous penalty's part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from fairtransport.transport.dual import (
    DualProblem,
    DualState,
    ascend_all_pairs,
    dual_values,
    evaluate,
    point_slope,
    tension,
)
from fairtransport.transport.fourier import FourierFeatures, draw_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    from torch import Tensor

    from fairtransport.torch._pairs import Pairing, Scene

__all__ = ["Duals"]

# Numbers computed at a time: on a CPU as many as fit its cache, elsewhere as many as surely fit its memory.
_BLOCKS, _BLOCK = {"cpu": 1 << 16}, 1 << 26
_LONG = 4.0


class Duals(nn.Module):
    """Dual variables of all problems, and of every distribution with itself where that is needed.

    The regularized distance of a distribution to itself is not zero, nor least where two agree. Half of each one's
    distance to itself is taken away ("debiased"), which mends both. With L2 and opposite duals it is zero anyway.

    Attributes
    ----------
    x, y : Tensor of shape (n_problems, n_fourier_features)
        Coefficients of the first and the second side.
    own : Tensor of shape (n_cells + n_targets, n_fourier_features)
        Those of each distribution with itself; zero is the best one where duals are opposite.
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
        drawn = draw_features(n_features, kernel_variance, np.random.default_rng(seed))
        self.regularizer, self.strength, self.opposite = get_regularizer(regularizer), strength, opposite
        self.debias = debias and not (opposite and regularizer == "l2")
        self.n_steps = n_steps
        n_problems, n_own = len(pairing.first), len(pairing.partner) + n_targets
        self.register_buffer("frequency", torch.tensor(drawn.frequency, dtype=torch.get_default_dtype()))
        self.register_buffer("phase", torch.tensor(drawn.phase, dtype=torch.get_default_dtype()))
        for name, size in {"x": n_problems, "y": n_problems, "own": n_own}.items():
            self.register_buffer(name, torch.zeros(size, n_features))
        # The pictures hold little noise, and opposite duals with L2 bear a long step: one a batch is enough.
        long = _LONG if opposite and regularizer == "l2" else 1.0
        self.step = long * self.problem.default_step if step is None else step

    @property
    def problem(self) -> DualProblem:
        """The formulas' view of it."""
        features = FourierFeatures(self.frequency, self.phase)
        return DualProblem(features, self.regularizer, self.strength, self.opposite, "all")

    def forward(self, scene: Scene, *, learn: bool) -> tuple[Tensor, Tensor]:
        """Return, for each row, the slope of its cell's part of the penalty, and its share in the value.

        With ``learn``, the duals move uphill before.
        """
        pairing, features = scene.pairing, self.problem.features
        psi = features.value(scene.pictures)
        psi_other = psi if pairing.each_other else features.value(scene.other)
        if learn:
            self._climb(scene, psi, psi_other)
        side, x, y = pairing.is_second[..., None], self.x[pairing.problem], self.y[pairing.problem]
        ours, theirs = torch.where(side, y, x), torch.where(side, x, y)
        h = dual_values(psi_other[pairing.partner], theirs)
        slopes, values = self._against(scene, scene.other[pairing.partner], ours, h)
        if self.debias:
            own = self.own[: len(psi), None]
            slope, value = self._against(scene, scene.pictures[:, None], own, dual_values(psi[:, None], own))
            slopes = slopes - slope
            # A pair's value is halved later, and half of each cell's distance to itself with it; a target has no rows.
            values = values - (value if pairing.each_other else 0.5 * (value + self._targets_alone(scene)))
        return scene.total(slopes, values)

    def _climb(self, scene: Scene, psi: Tensor, psi_other: Tensor) -> None:
        """Move the duals uphill, over all pairs of points of the pictures."""
        first, second = scene.pairing.first, scene.pairing.second
        step, state = self.step * scene.ready[:, None].to(self.x.dtype), DualState(self.x, self.y)
        sides = _all_costs(scene.pictures[first], scene.other[second]), psi[first], psi_other[second]
        for _ in range(self.n_steps):
            state = ascend_all_pairs(self.problem, state, *sides, step=step)
        self.x.copy_(state.x)
        self.y.copy_(state.y)
        if self.debias and not self.opposite:
            n_cells = len(psi)
            self.own[:n_cells] = self._climb_alone(self.own[:n_cells], scene.pictures, psi, scene.seen)
            if not scene.pairing.each_other:
                always = torch.ones_like(scene.other[:, 0])
                self.own[n_cells:] = self._climb_alone(self.own[n_cells:], scene.other, psi_other, always)

    def _climb_alone(self, own: Tensor, points: Tensor, psi: Tensor, ready: Tensor) -> Tensor:
        """Move the duals of distributions with themselves, where both sides have the same one."""
        step, cost = self.step * ready[:, None].to(own.dtype), _all_costs(points, points)
        for _ in range(self.n_steps):
            state = ascend_all_pairs(self.problem, DualState(own, own), cost, psi, psi, step=step)
            own = state.x + state.y - own
        return own

    def _targets_alone(self, scene: Scene) -> Tensor:
        """Distances of the targets to themselves, for each row."""
        own = self.own[len(scene.pictures) :]
        alone = evaluate(self.problem, DualState(own, own), scene.other, scene.other).value
        return alone[scene.pairing.partner][scene.inside]

    def _against(self, scene: Scene, other: Tensor, ours: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return slopes and values of rows against what their cells are compared with: (n_rows, n_partners).

        ``other`` is (n_cells, n_partners, n), ``h`` its duals there, and ``ours`` the coefficients of the cells' own,
        (n_cells, n_partners, D).
        """
        points, inside, mean = scene.rows.scores, scene.inside, h.mean(-1)
        size = max(1, _BLOCKS.get(points.device.type, _BLOCK) // other[0].numel())
        if len(points) <= size or torch.compiler.is_compiling():
            slopes, values = self._of_points(points, other[inside], ours[inside], h[inside])
            return slopes, values + mean[inside]
        blocks = zip(points.split(size), inside.split(size), strict=True)
        parts = [self._of_points(s, other[cells], ours[cells], h[cells]) for s, cells in blocks]
        return torch.cat([slopes for slopes, _ in parts]), torch.cat([values for _, values in parts]) + mean[inside]

    def _of_points(self, points: Tensor, other: Tensor, ours: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return slopes and values of points with their own partners; the mean of h is missing in the values."""
        problem = self.problem
        f, rise = (dual_values(ours, psi) for psi in problem.features.value_and_slope(points))
        gap = points[:, None, None] - other
        v = tension(problem.strength, torch.abs(gap), f[..., None], h)
        alpha, price = problem.regularizer.alpha_and_conjugate(v)
        slopes = point_slope(alpha.mean(-1), rise, (alpha * torch.sign(gap)).mean(-1))
        return slopes, f - problem.strength * price.mean(-1)


def _all_costs(x: Tensor, y: Tensor) -> Tensor:
    """abs(x - y) of every x with every y: (..., n, m)."""
    return torch.abs(x[..., None] - y[..., None, :])
