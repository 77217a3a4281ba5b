"""Distances between the cells of a batch: which cells are compared, the exact coupling, and dual potentials."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from fairtransport.criteria.distance import ContinuousDistance
from fairtransport.torch._rows import Layers
from fairtransport.transport import dual
from fairtransport.transport.fourier import FourierFeatures

_MAX_PROBLEMS = 2_500


class Pairing(nn.Module):
    """The transport problems of all cells (layer * n_groups + group): pairs of groups, or each group and a target."""

    first: Tensor
    second: Tensor
    partner: Tensor
    problem: Tensor
    is_second: Tensor
    ends: Tensor

    def __init__(self, layers: Layers, *, each_other: bool) -> None:
        super().__init__()
        self.each_other = each_other
        n_groups, n_layers, n_cells = layers.n_groups, layers.n_layers, layers.n_cells
        if each_other and n_groups < 2:
            raise ValueError(f"Groups that are compared with each other must be at least 2; got {n_groups}.")
        n_problems = n_layers * n_groups * (n_groups - 1) // 2
        if each_other and n_problems > _MAX_PROBLEMS:
            raise ValueError(
                f"{n_groups} groups in {n_layers} strata make {n_problems} pairs, too many to compare; compare them "
                "with a fixed target instead, for instance target='pooled' and set_target."
            )
        pairs = [(cell, cell // n_groups) for cell in range(n_cells)]
        if each_other:
            starts = range(0, n_cells, n_groups)
            pairs = [(start + a, start + b) for start in starts for a, b in combinations(range(n_groups), 2)]
        problems: list[list[tuple[int, int, bool]]] = [[] for _ in range(n_cells)]
        for number, (first, second) in enumerate(pairs):
            problems[first].append((second, number, False))
            if each_other:
                problems[second].append((first, number, True))
        table, ends = torch.tensor(problems), torch.tensor(pairs)
        layout = {"first": ends[:, 0], "second": ends[:, 1], "ends": ends.T}
        layout |= {"partner": table[..., 0], "problem": table[..., 1], "is_second": table[..., 2].bool()}
        for name, value in layout.items():
            self.register_buffer(name, value.contiguous(), persistent=False)

    def ready(self, seen: Tensor) -> Tensor:
        """Return whether both sides of each problem have rows, (n_problems,); ``seen`` is True for cells with rows."""
        return seen[self.ends].all(0) if self.each_other else seen


# Scores sorted by cell.

#: Distance between the offsets of two cells, larger than that of any two scores.
SPACING = 16.0


def cell_offsets(n_cells: int) -> Tensor:
    """Return what maps the scores of cells to disjoint intervals: 0, 16, ..., then of rows in no cell, and the end."""
    return SPACING * (torch.arange(n_cells + 2, dtype=torch.float64) - 0.5)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Scores and their cells, with the order of the rows by cell and score."""

    scores: Tensor
    cells: Tensor
    counts: Tensor
    starts: Tensor
    order: Tensor

    @classmethod
    def from_scores(cls, scores: Tensor, cells: Tensor, offsets: Tensor) -> SortedRows:
        """Sort rows with scores that differ by less than half of `SPACING`; ``offsets`` are those of `cell_offsets`."""
        # With disjoint intervals for the cells, one sort orders all of them.
        ascending, order = torch.sort(offsets[cells] + 0.5 * SPACING + scores, stable=True)
        starts = torch.searchsorted(ascending, offsets)
        return cls(scores, cells, starts.diff(), starts[:-1], order)

    def ranks(self) -> Tensor:
        """Return the rank of each row among the scores of its cell, from 0."""
        numbers = torch.arange(len(self.order), device=self.order.device)
        return torch.empty_like(self.order).scatter(0, self.order, numbers) - self.starts[self.cells]

    def quantiles(self, odd: Tensor) -> Tensor:
        """Return each cell's quantiles at the levels ``odd / (2 * len(odd))``; arbitrary scores of empty cells."""
        if len(self.scores) == 0:
            return self.scores.new_zeros(len(self.counts) - 1, len(odd))
        # The quantile is the first value whose cumulative share reaches the level; integers make that exact.
        rank = torch.div(odd * self.counts[:-1, None] - 1, 2 * len(odd), rounding_mode="floor")
        return self.scores[self.order[self.starts[:-1, None] + rank]]  # rank -1, of an empty cell, is a valid index


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch, as the transport problems see it."""

    pairing: Pairing
    rows: SortedRows
    quantiles: Tensor
    compared: Tensor
    seen: Tensor
    ready: Tensor
    cells: Tensor

    def sum_over_partners(self, slopes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Sum slopes and values of the rows, (n_rows, n_partners), over the problems whose two sides have rows."""
        weight = self.ready[self.pairing.problem].to(slopes.dtype)[self.cells]
        return (slopes * weight).sum(-1), (values * weight).sum(-1)


# Exact transport between sorted scores: the discrete distance.


class Coupling(nn.Module):
    """Optimal couplings of the cells' scores with the distributions they are compared with; it has no state."""

    def forward(self, batch: Batch, *, update: bool) -> tuple[Tensor, Tensor]:  # noqa: ARG002 - shared with `Duals`
        """Return, for each row, the slope of the penalty at its score, and its contribution to the value."""
        rows, dtype, size = batch.rows, batch.rows.scores.dtype, batch.compared.shape[-1]
        count, rank = rows.counts[batch.cells].clamp(min=1).to(dtype)[:, None], rows.ranks().to(dtype)[:, None]
        low, high = rank / count, (rank + 1.0) / count  # the levels that a row covers
        points, partner = rows.scores[:, None], batch.pairing.partner[batch.cells]
        below, upto = _cumulative_shares(batch.compared, points, partner)
        middle = torch.clip(upto, low, high)  # where the partner's quantile function passes the point
        slope = torch.clip(below, low, high) - low - (high - middle)
        # Areas below the partner's quantile function, up to each of the three levels.
        levels = torch.stack(torch.broadcast_tensors(low, high, middle))
        index = torch.clip(torch.floor(levels * size), 0, size - 1).long()
        flat_index = partner * size + index
        before = ((batch.compared.cumsum(-1) - batch.compared) / size).flatten()[flat_index]
        areas = before + (levels * size - index) / size * batch.compared.flatten()[flat_index]
        distance = points * (2.0 * middle - low - high) + areas[0] + areas[1] - 2.0 * areas[2]
        return batch.sum_over_partners(slope * count, distance * count)


def _cumulative_shares(ascending: Tensor, points: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """Return the shares of ``ascending[which]`` strictly below each point, and at or below it."""
    n, size = ascending.shape
    # Offsets map the distributions to disjoint intervals, so that one search serves all of them.
    offset = SPACING * torch.arange(n, device=ascending.device, dtype=torch.float64)
    shifted = ascending.double().flatten() + offset.repeat_interleave(size)
    queries, start = points.double() + offset[which], which * size
    ranks = (torch.searchsorted(shifted, queries, right=right) - start for right in (False, True))
    below, upto = (rank.to(points.dtype) / size for rank in ranks)
    return below, upto


# Regularized transport through dual potentials that are updated in training: the continuous distance.

# Numbers per block: on a CPU as many as fit in its cache, elsewhere as many as surely fit in memory.
_BLOCK_SIZES, _DEFAULT_BLOCK_SIZE = {"cpu": 1 << 16}, 1 << 26
_OPPOSITE_L2_STEP = 4.0  # multiple of the default step size
#: Ascent steps before an evaluation: from zero they reach the optimum of scores in [0, 1] up to 3 %.
_EVALUATION_STEPS = 50


class Duals(nn.Module):
    """Coefficients of the dual potentials of all problems.

    The regularized distance of a distribution to itself is not zero, nor is the distance of two distributions minimal
    where they agree. Subtracting half of each one's distance to itself corrects both ("debiasing"). With L2 and
    opposite potentials that distance is zero.

    In training the potentials lag behind the network. Their objective is a lower bound of the distance, too low after a
    large step of the network, even negative. An evaluation therefore continues the ascent for its own rows, without
    storing the result, so that values of different states of a network can be compared.
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
        distance: ContinuousDistance,
        debias: bool,
        step: float | None,
        n_steps: int,
        seed: int,
    ) -> None:
        super().__init__()
        problem = distance.dual_problem(rng=np.random.default_rng(seed))
        self.regularizer, self.strength, self.opposite = problem.regularizer, problem.strength, problem.opposite
        is_simple = problem.opposite and distance.regularizer == "l2"
        self.debias = debias and not is_simple
        self.n_steps, self.n_evaluation_steps = n_steps, _EVALUATION_STEPS
        n_problems, n_distributions = len(pairing.first), len(pairing.partner) + n_targets
        self.register_buffer("frequency", torch.tensor(problem.features.frequency, dtype=torch.get_default_dtype()))
        self.register_buffer("phase", torch.tensor(problem.features.phase, dtype=torch.get_default_dtype()))
        for name, size in {"x": n_problems, "y": n_problems, "own": n_distributions}.items():
            self.register_buffer(name, torch.zeros(size, distance.n_fourier_features))
        # Opposite potentials with L2 remain stable at a larger step size, so that one step per batch is enough.
        factor = _OPPOSITE_L2_STEP if is_simple else 1.0
        self.step = factor * self.problem.default_step if step is None else step

    @property
    def problem(self) -> dual.DualProblem:
        """The dual problem, for the formulas in `fairtransport.transport.dual`."""
        features = FourierFeatures(self.frequency, self.phase)
        return dual.DualProblem(features, self.regularizer, self.strength, self.opposite, "all")

    def forward(self, batch: Batch, *, update: bool) -> tuple[Tensor, Tensor]:
        """Return what `Coupling` does, after gradient ascent of the potentials, which ``update`` stores."""
        pairing, features = batch.pairing, self.problem.features
        psi = features.value(batch.quantiles)
        psi_compared = psi if pairing.each_other else features.value(batch.compared)
        n_steps = self.n_steps if update else self.n_evaluation_steps
        state, own_potentials = self._ascend(batch, psi, psi_compared, n_steps)
        if update:
            self.x.copy_(state.x)
            self.y.copy_(state.y)
            self.own.copy_(own_potentials)
        side, x, y = pairing.is_second[..., None], state.x[pairing.problem], state.y[pairing.problem]
        row_side, partner_side = torch.where(side, y, x), torch.where(side, x, y)
        h = dual.dual_values(psi_compared[pairing.partner], partner_side)
        slopes, values = self._compare(batch, batch.compared[pairing.partner], row_side, h)
        if self.debias:
            own = own_potentials[: len(psi), None]
            slope, value = self._compare(batch, batch.quantiles[:, None], own, dual.dual_values(psi[:, None], own))
            slopes = slopes - slope
            if not pairing.each_other:
                value = 0.5 * (value + self._target_self_distances(batch, own_potentials[len(psi) :]))
            # The value of a pair is halved later, and with it that of each cell with itself; a target has no rows.
            values = values - value
        return batch.sum_over_partners(slopes, values)

    def _ascend(self, batch: Batch, psi: Tensor, psi_compared: Tensor, n_steps: int) -> tuple[dual.DualState, Tensor]:
        """Return the potentials, and those of each distribution with itself, after ascent over pairs of quantiles."""
        first, second = batch.pairing.first, batch.pairing.second
        step, state = self.step * batch.ready[:, None].to(self.x.dtype), dual.DualState(self.x, self.y)
        sides = _pairwise_costs(batch.quantiles[first], batch.compared[second]), psi[first], psi_compared[second]
        for _ in range(n_steps):
            state = dual.ascend_all_pairs(self.problem, state, *sides, step=step)
        if not self.debias or self.opposite:
            return state, self.own
        n_cells = len(psi)
        own = self._ascend_self(self.own[:n_cells], batch.quantiles, psi, batch.seen, n_steps)
        if batch.pairing.each_other:
            return state, own
        ready = torch.ones_like(batch.compared[:, 0])
        of_targets = self._ascend_self(self.own[n_cells:], batch.compared, psi_compared, ready, n_steps)
        return state, torch.cat([own, of_targets])

    def _ascend_self(self, own: Tensor, points: Tensor, psi: Tensor, ready: Tensor, n_steps: int) -> Tensor:
        """Return updated potentials of distributions with themselves, where both sides share one potential."""
        step, cost = self.step * ready[:, None].to(own.dtype), _pairwise_costs(points, points)
        for _ in range(n_steps):
            state = dual.ascend_all_pairs(self.problem, dual.DualState(own, own), cost, psi, psi, step=step)
            own = state.x + state.y - own
        return own

    def _target_self_distances(self, batch: Batch, own: Tensor) -> Tensor:
        """Return the distance of each row's target to itself."""
        distances = dual.evaluate(self.problem, dual.DualState(own, own), batch.compared, batch.compared).value
        return distances[batch.pairing.partner][batch.cells]

    def _compare(self, batch: Batch, other: Tensor, coefficients: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return slopes and values of the rows, by partner, whose points are ``other`` and their potentials ``h``."""
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
        f, f_slope = (dual.dual_values(coefficients, psi) for psi in problem.features.value_and_slope(points))
        difference = points[:, None, None] - other
        v = dual.conjugate_argument(problem.strength, torch.abs(difference), f[..., None], h)
        alpha, conjugate = problem.regularizer.alpha_and_conjugate(v)
        slopes = dual.point_slope(alpha.mean(-1), f_slope, (alpha * torch.sign(difference)).mean(-1))
        return slopes, f - problem.strength * conjugate.mean(-1)


def _pairwise_costs(x: Tensor, y: Tensor) -> Tensor:
    """Return abs(x - y) of every x with every y, (..., n, m)."""
    return torch.abs(x[..., None] - y[..., None, :])
