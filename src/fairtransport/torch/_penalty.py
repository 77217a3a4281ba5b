"""The transport penalty as a torch module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.autograd.function import once_differentiable

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_count, check_flag, check_length, check_real
from fairtransport.criteria import Criterion
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import (
    EACH_OTHER,
    as_criterion,
    compares_each_other,
    needs_labels,
    weigh_by_reliability,
)
from fairtransport.criteria.distance import ContinuousDistance, DiscreteDistance, Distance, as_distance
from fairtransport.criteria.penalty import DiscretePenalty, information_of_features
from fairtransport.groups import Groups
from fairtransport.torch._rows import (
    InvalidRows,
    Layers,
    ScoreScale,
    check_rows,
    check_table,
    group_labels,
    group_samples,
    to_numpy,
)
from fairtransport.torch._transport import Batch, Coupling, Duals, Pairing, SortedRows, cell_offsets
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_SIZE, TARGET_WORDS, pointwise_mean, pointwise_median, resolve_target

_MAX_POINTS = 512  # of a target given as an array


class Target(nn.Module):
    """Target scores of each stratum, in ascending order."""

    points: Tensor
    known: Tensor
    updates: Tensor

    def __init__(
        self,
        target: Any,
        labels: Sequence[Any],
        n_strata: int,
        n_points: int,
        update_interval: int | None,
        *,
        scale: ScoreScale,
    ) -> None:
        super().__init__()
        self.labels, self.n_strata, self.update_interval = tuple(labels), n_strata, update_interval
        self.word = target if isinstance(target, str) and target in TARGET_WORDS else None
        self.group = None if self.word else _group_position(target, self.labels)
        self.is_array = self.word is None and self.group is None
        points = _ascending_scores(target, n_strata, scale) if self.is_array else np.zeros((n_strata, n_points))
        # Kept on the host as well, because reading ``known`` from a device would block.
        self.ready = self.is_array or update_interval is not None
        self.register_buffer("points", torch.tensor(points, dtype=torch.get_default_dtype()))
        self.register_buffer("known", torch.full((n_strata,), self.is_array))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    def resolve(self, stratum: int, samples: Sequence[Sample]) -> Sample:
        """Return the target of a stratum whose groups have these scores."""
        if self.is_array:
            return Sample.from_sorted(self.points[stratum].double().cpu().numpy())
        if self.group is not None:
            return samples[self.group]
        return resolve_target(self.word, samples, [len(sample) for sample in samples])

    def fix(self, samples: Sequence[Sequence[Sample]]) -> None:
        """Compute the target from the scores of every group of every stratum, and keep it, as in the paper."""
        if self.is_array:
            raise ValueError("target is an array of scores; it is fixed already.")
        resolved = [self.resolve(*stratum).equal_mass(self.points.shape[1]) for stratum in enumerate(samples)]
        self.points.copy_(torch.from_numpy(np.array(resolved)))
        self.known.fill_(True)
        self.ready = True

    def update(self, quantiles: Tensor, mass: Tensor) -> None:
        """Recompute the target from the quantiles and rows of the cells, in every ``update_interval``-th batch."""
        if self.update_interval is None or self.is_array:
            return
        by_stratum = mass.reshape(self.n_strata, 1, -1)
        available = by_stratum.sum(-1) if self.group is None else by_stratum[..., self.group]
        due = (available > 0) & (~self.known[:, None] | (self.updates % self.update_interval == 0))
        new = self._from_quantiles(quantiles.reshape(self.n_strata, len(self.labels), -1).mT, by_stratum)
        self.points.copy_(torch.where(due, new, self.points))
        self.known.logical_or_(due[:, 0])
        self.updates += 1

    def _from_quantiles(self, quantiles: Tensor, shares: Tensor) -> Tensor:
        """Return the target of quantiles (n_strata, n, n_groups) of groups with shares (n_strata, 1, n_groups)."""
        if self.group is not None:
            return quantiles[..., self.group]
        total = shares.sum(-1, keepdim=True).clamp(min=torch.finfo(shares.dtype).tiny)
        if self.word == "barycenter_w2":
            return pointwise_mean(quantiles, shares / total)
        if self.word == "barycenter":
            present = (shares > 0).to(quantiles.dtype)
            return pointwise_median(quantiles, present / present.sum(-1, keepdim=True).clamp(min=1.0))
        values, order = quantiles.flatten(1).sort(dim=-1)
        mass = (shares / total).expand_as(quantiles).flatten(1).gather(-1, order).cumsum(-1)
        n = quantiles.shape[1]
        levels = (torch.arange(n, device=mass.device, dtype=mass.dtype) + 0.5) / n
        index = torch.searchsorted(mass, (levels * mass[:, -1:]).contiguous())
        return values.gather(-1, index.clamp(max=values.shape[-1] - 1))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self.ready = self.update_interval is not None or bool(self.known.all())


def _group_position(target: Any, labels: tuple[Any, ...]) -> int | None:
    """Return the position of the group whose label ``target`` is; None for an array of scores."""
    if isinstance(target, (list, tuple, np.ndarray, torch.Tensor)) and not (
        isinstance(target, tuple) and target in labels
    ):
        return None
    if target in labels:
        return labels.index(target)
    words = ", ".join(repr(word) for word in (EACH_OTHER, *TARGET_WORDS))
    raise ValueError(
        f"target must be one of {words}, the label of one of the {len(labels)} groups or an array of scores; the "
        f"{type(target).__name__} given is none of them."
    )


def _ascending_scores(target: Any, n_strata: int, scale: ScoreScale) -> Floats:
    """Return the scores of a target given as an array, ascending, one row for each stratum."""
    nested = isinstance(target, (list, tuple)) and len(target) > 0 and np.ndim(target[0]) == 1
    parts = list(target) if nested else [target]
    if len(parts) != n_strata:
        raise ValueError(
            f"target has scores for {len(parts)} strata, but there are {n_strata}; pass one array for each."
        )
    scores = [np.sort(scale.of_array(to_numpy(part), name="target")) for part in parts]
    sizes = {len(values) for values in scores}
    if len(sizes) == 1 and max(sizes) <= _MAX_POINTS:
        return np.array(scores)
    return np.array([Sample.from_sorted(values).equal_mass(_MAX_POINTS) for values in scores])


# Rows of all ranks of a distributed run, gathered.


def world_size() -> int:
    """Return the number of processes of a distributed run; 1 outside of one."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


@torch.compiler.disable
def gather_rows(scores: Tensor, cells: Tensor, no_cell: int) -> tuple[Tensor, Tensor, slice]:
    """Return scores and cells of all ranks, shorter batches padded with rows in no cell, and the slice of this rank."""
    sizes = torch.cat(_all_gather(torch.tensor([len(scores)], device=scores.device))).tolist()
    rows = torch.stack([scores.double(), cells.double()])  # cell numbers are small integers: exact
    padding = rows.new_tensor([[0.0], [float(no_cell)]]).expand(2, max(sizes) - len(scores))
    gathered = torch.cat(_all_gather(torch.cat([rows, padding], dim=1)), dim=1)
    start = distributed.get_rank() * max(sizes)
    this_rank = slice(start, start + len(scores))
    return gathered[0].to(scores.dtype), gathered[1].to(cells.dtype), this_rank


def _all_gather(tensor: Tensor) -> list[Tensor]:
    parts = [torch.empty_like(tensor) for _ in range(world_size())]
    distributed.all_gather(parts, tensor.contiguous())
    return parts


# A memory of each cell's scores in recent batches.


class SampleMemory(nn.Module):
    """Ring buffers of the newest scores of each cell, and the number of rows seen.

    A small batch has too few rows of a small group to estimate the distribution of its scores; the newest scores of
    earlier batches are added, as constants without a gradient.
    """

    scores: Tensor
    seen: Tensor
    numbers: Tensor
    slots: Tensor

    def __init__(self, n_cells: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("scores", torch.zeros(n_cells + 1, size))
        self.register_buffer("seen", torch.zeros(n_cells + 1, dtype=torch.int64))
        self.seen[-1] = 1
        self.register_buffer("numbers", torch.arange(n_cells + 1), persistent=False)
        self.register_buffer("slots", torch.arange(1, size + 1), persistent=False)

    def extend(self, scores: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of a batch, followed by stored ones that fill each cell up to ``size``; store the batch."""
        running = (cells[:, None] == self.numbers).cumsum(0)
        counts = running[-1] if len(cells) else torch.zeros_like(self.numbers)
        rank = running.gather(1, cells[:, None])[:, 0] - 1  # earlier rows of the same cell
        age = (self.seen[:-1, None] - self.slots) % self.size  # 0 is the newest; slots never filled are older than seen
        used = age < torch.minimum(self.seen, self.size - counts)[:-1, None]
        stored_cells = torch.where(used, self.numbers[:-1, None], self.numbers[-1])
        extended = torch.cat([scores, self.scores[:-1].flatten()]), torch.cat([cells, stored_cells.flatten()])
        self._store(scores, cells, rank, counts)
        return extended

    def _store(self, scores: Tensor, cells: Tensor, rank: Tensor, counts: Tensor) -> None:
        """Store the rows of a batch; of a cell with more rows than ``size``, the last ones."""
        slot, ring = (self.seen[cells] + rank) % self.size, cells
        if len(cells) > self.size:
            ring = torch.where(rank >= counts[cells] - self.size, cells, self.numbers[-1])
        self.scores[ring, slot] = scores
        if len(cells) > self.size:
            self.scores[-1] = 0.0  # repeated indices are written in no fixed order
        self.seen[:-1] += counts[:-1]

    def clear(self) -> None:
        """Remove all rows."""
        self.scores.zero_()
        self.seen[:-1] = 0


# Errors for a ``state_dict`` that was saved with other settings or by another version.


def explain_mismatch(module: nn.Module, state_dict: dict[str, Any], prefix: str, errors: list[str]) -> None:
    """Append an error that says what to do."""
    shapes = {prefix + name: tuple(value.shape) for name, value in module.state_dict().items()}
    missing = [name for name in shapes if name not in state_dict]
    changed = [name for name in shapes if name in state_dict and tuple(state_dict[name].shape) != shapes[name]]
    if not changed and len(missing) in {0, len(shapes)}:  # torch itself reports that all are missing
        return
    sizes = "".join(f"; {name}: {tuple(state_dict[name].shape)} saved, {shapes[name]} here" for name in changed[:3])
    errors.append(
        f"the state_dict is not of this {type(module).__name__}: {len(missing)} of its {len(shapes)} entries are "
        f"missing and {len(changed)} have another shape{sizes}. It was saved with other settings (groups, criterion, "
        "n_strata, distance, target, memory_size) or by another version. Create the penalty with the "
        "settings it was saved with; or leave out all of its entries and load with strict=False: the dual variables "
        "and the memory are rebuilt within a few hundred batches."
    )


# A value whose gradient was computed beside it.


class ValueWithGradient(torch.autograd.Function):
    """A value with a precomputed gradient."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:  # noqa: ARG004
        """Return the value, and save the gradient."""
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        """Return the saved gradient times that of the value."""
        (gradient,) = ctx.saved_tensors
        return outer * gradient, None, None


# Numbers of quantiles and of remembered scores: dual potentials are smooth and carry information between batches, too.
_SIZES = {ContinuousDistance: (64, 32), DiscreteDistance: (256, 128)}
_HALF_PRECISION = (torch.float16, torch.bfloat16)


class TransportPenalty(nn.Module):
    r"""Transport distances between the groups' scores, as a term in the loss of a network.

    Add it to the loss of every training step: ``loss = task_loss + weight * penalty(scores, group_codes)``. Its dual
    potentials and its memory of recent scores are buffers, which each forward pass in training mode updates once.

    Parameters
    ----------
    groups : int, sequence of labels or Groups
        The number of groups, or their labels in the order of their codes; not groups that overlap.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or instance, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with label 1. The last two need
        ``labels`` in every batch.
    distance : {"continuous", "discrete"}, ContinuousDistance or DiscreteDistance, default="continuous"
        Regularized transport through dual potentials (continuous optimal transport, COT), or the exact Wasserstein-1
        distance between sorted scores (discrete optimal transport, DOT).
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, the equal-weight Wasserstein-1 barycenter (the paper's), the
        Wasserstein-2 barycenter weighted by group size, everyone, one group's scores, or given scores (with strata, a
        list of arrays; with equalized odds, those of label 0 first).
    debias : bool, default=True
        Subtract half of each distribution's regularized distance to itself, so that equal ones have distance 0.
    dual_step : float, optional
        Step size of the dual potentials; by default 4 times ``strength`` (L2 with opposite potentials), ``strength``
        (L2) or half of it (entropy).
    n_dual_steps : int, default=1
        Gradient ascent steps of the dual potentials in each forward pass.
    target_update_interval : int, optional
        For a ``target`` that is a word or a label: recompute it from the current scores in every so many batches,
        which may drift and cost accuracy. By default it is fixed, and `set_target` must be called once.
    memory_size : int, optional
        Number of recent scores of each group that complete a batch with fewer rows of it; 0 uses the batch alone. By
        default 32 for the continuous distance and 128 for the discrete one, which is biased between small samples. A
        larger memory has less variance, but lags further behind the network.
    n_strata : int, default=1
        Number of strata within which groups are compared (conditional parity).
    scale : (float, float), optional
        For real-valued outputs: mean and standard deviation of y. Outputs are compared in units of four standard
        deviations, as if they were probabilities.
    sync_distributed : bool, default=True
        In a distributed run, compute the penalty of the rows of all processes.
    random_state : int, default=0
        Seed of the Fourier features.

    Attributes
    ----------
    n_groups : int
        Number of groups.
    labels : tuple
        Labels of the groups, in the order of their codes.
    distance : ContinuousDistance or DiscreteDistance
        The distance.
    criterion, n_strata
        As passed.

    See Also
    --------
    fairtransport.TransportClassifier : The same penalty for linear models.
    fairtransport.boosting.TransportObjective : The same penalty for boosted trees.

    Notes
    -----
    The value is

    .. math:: \sum_{a<b} D(S_a, S_b), \quad\text{or}\quad \sum_a D(S_a, T)

    with a target T, where D is the dual objective at the current potentials ([1]_, Eq. 4) or the Wasserstein-1
    distance; sums within labels or strata are weighted as the criterion says. Without regularization the sum over pairs
    is the strong pairwise demographic disparity (SPDD). With a memory the value is that of the batch and the stored
    scores. In evaluation mode it is that of the batch alone, at potentials that are solved for it and not stored:
    values of validation rows can be compared between states of a network, for instance to stop early.

    The gradient with respect to a score of group a is :math:`u_a(s) / n_a` with the slope
    :math:`u_a(s) = \sum_b [(1-\alpha) f'(s) + \alpha\,\mathrm{sign}(s-t)]`, averaged over the scores t of the others,
    by the formulas of the linear estimators (`fairtransport.transport`). With a memory, :math:`n_a` is the group's
    share of all rows so far times the batch size, which makes the gradient unbiased even if batches lack a group.
    Second derivatives are not available.

    In a distributed run gradients must be averaged over processes, as `DistributedDataParallel` does; batches may
    differ in size.

    Computations are in float32, also under autocast, or in float64 after ``penalty.double()``. Nothing is read back
    from a CUDA device: invalid rows (NaN, outside [0, 1], codes out of range) raise a few calls later there, and at
    once elsewhere.

    ``state_dict`` contains the newest ``memory_size`` scores of each group and nothing else about the rows; `forget`
    removes them.

    References
    ----------
    .. [1] S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021.

    Examples
    --------
    >>> import torch
    >>> from fairtransport.torch import TransportPenalty
    >>> _ = torch.manual_seed(0)
    >>> groups = torch.randint(2, (2000,))
    >>> X = torch.randn(2000, 3) + groups[:, None]
    >>> network = torch.nn.Linear(3, 1)
    >>> penalty = TransportPenalty(2)
    >>> optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    >>> for rows in torch.arange(2000).split(100):
    ...     scores = torch.sigmoid(network(X[rows]))[:, 0]
    ...     loss = penalty(scores, groups[rows])
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    """

    counted: Tensor  # 1 for each cell, 0 for "in no cell"; also carries the device and precision of the computations
    odd: Tensor
    offsets: Tensor

    def __init__(
        self,
        groups: int | Sequence[Any] | Groups,
        *,
        criterion: str | Criterion = "demographic_parity",
        distance: str | Distance = "continuous",
        target: Any = EACH_OTHER,
        debias: bool = True,
        dual_step: float | None = None,
        n_dual_steps: int = 1,
        target_update_interval: int | None = None,
        memory_size: int | None = None,
        n_strata: int = 1,
        scale: tuple[float, float] | None = None,
        sync_distributed: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        self.distance = as_distance(distance)
        n_quantiles, usual_memory = _SIZES[type(self.distance)]
        self.labels = group_labels(groups)
        self.score_scale = ScoreScale.of(scale)
        self.n_groups, self.n_strata = len(self.labels), check_count(n_strata, name="n_strata")
        self.layers = Layers(as_criterion(criterion), self.n_strata, self.n_groups, self.score_scale.is_real)
        self.criterion = self.layers.criterion
        if self.score_scale.is_real and needs_labels(self.criterion):
            raise ValueError(
                f"criterion={self.criterion!r} compares rows with the same label of two. For a regression pass the "
                "ranges of y as strata: codes of fairtransport.strata.make_strata(y), and their number as n_strata."
            )
        self.sync_distributed = check_flag(sync_distributed, name="sync_distributed")
        size = usual_memory if memory_size is None else check_count(memory_size, name="memory_size", least=0)
        interval = target_update_interval
        if interval is not None:
            interval = check_count(interval, name="target_update_interval")
        each_other = compares_each_other(target)
        self.pairing = Pairing(self.layers, each_other=each_other)
        n_cells, n_layers = self.layers.n_cells, self.layers.n_layers
        self.memory = SampleMemory(n_cells, size) if size else None
        self.target = (
            None if each_other else Target(target, self.labels, n_layers, n_quantiles, interval, scale=self.score_scale)
        )
        self.transport: Duals | Coupling = Coupling()
        if isinstance(self.distance, ContinuousDistance):
            self.transport = Duals(
                self.pairing,
                n_targets=0 if each_other else n_layers,
                distance=self.distance,
                debias=check_flag(debias, name="debias"),
                step=None if dual_step is None else check_real(dual_step, name="dual_step", strict=True),
                n_steps=check_count(n_dual_steps, name="n_dual_steps"),
                seed=check_count(random_state, name="random_state", least=0),
            )
        self.invalid_rows = InvalidRows(self.layers)
        counted = torch.ones(n_cells + 1)
        counted[-1] = 0.0
        self.register_buffer("odd", 2 * torch.arange(n_quantiles) + 1, persistent=False)
        self.register_buffer("counted", counted, persistent=False)
        self.register_buffer("offsets", cell_offsets(n_cells), persistent=False)

    def forward(
        self, scores: Tensor, group_codes: Tensor, strata: Tensor | None = None, *, labels: Tensor | None = None
    ) -> Tensor:
        """Return the penalty of a batch.

        Parameters
        ----------
        scores : Tensor of shape (n,) or (n, 1)
            Probabilities of class 1, not logits; with ``scale`` any numbers. They carry the network's gradient.
        group_codes : Tensor of shape (n,)
            Whole numbers from 0 to the number of groups less 1.
        strata : Tensor of shape (n,), optional
            Whole numbers from 0 to ``n_strata`` less 1; required if there are several strata.
        labels : Tensor of shape (n,) or (n, 1), optional
            0 or 1, of any type; required for criteria that compare rows with the same label.

        Returns
        -------
        Tensor of shape ()
        """
        if self.target is not None and not self.target.ready:
            raise RuntimeError(
                "the target is fixed but not known yet: call set_target(scores, group_codes) with the initial "
                "network's scores of the training rows, or pass target_update_interval=."
            )
        columns = (scores, group_codes, strata, labels)
        original, s, cells, invalid = check_rows(*columns, layers=self.layers, like=self.counted)
        self.invalid_rows.add(invalid)
        with torch.no_grad(), torch.autocast(original.device.type, enabled=False):
            value, gradient = self._value_and_gradient(self.score_scale.of_tensor(s), cells)
            gradient = gradient / self.score_scale.unit
        return ValueWithGradient.apply(original, value, gradient)

    def _value_and_gradient(self, scores: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value and its derivative with respect to these scores; in training mode, update the buffers."""
        n_ranks, this_rank = 1, slice(None)
        if self.training and self.sync_distributed and (n_ranks := world_size()) > 1:
            scores, cells, this_rank = gather_rows(scores, cells, self.layers.n_cells)
        memory = self.memory if self.training else None
        all_scores, all_cells = (scores, cells) if memory is None else memory.extend(scores, cells)
        rows = SortedRows.from_scores(all_scores, all_cells, self.offsets)
        seen = rows.counts if memory is None else memory.seen  # proportional to the cells' shares of the rows
        slopes, values = self.transport(self._batch(rows, seen[:-1]), update=self.training)
        share = self._cell_weights(seen[:-1])
        factor = 0.5 * share if self.pairing.each_other else share  # the rows of both sides contribute a pair's value
        value = (values * (factor / rows.counts)[all_cells]).sum()
        n_rows = (cells < self.layers.n_cells).sum().clamp(min=1)  # that are compared
        scale = seen[:-1].sum(dtype=share.dtype) / n_rows
        gradient = slopes[: len(cells)] * (share * scale / seen)[cells]
        return value, gradient if n_ranks == 1 else n_ranks * gradient[this_rank]

    def _batch(self, rows: SortedRows, mass: Tensor) -> Batch:
        quantiles, cells = rows.quantiles(self.odd), rows.cells.clamp(max=len(mass) - 1)
        seen = rows.counts[:-1] > 0
        compared, ready = quantiles, self.pairing.ready(seen)
        if self.target is not None:
            if self.training:
                self.target.update(quantiles, mass.to(quantiles.dtype))
            compared, ready = self.target.points, ready & self.target.known[self.pairing.second]
        return Batch(self.pairing, rows, quantiles, compared, seen, ready, cells)

    def _cell_weights(self, mass: Tensor) -> Tensor:
        """Return the weight of the label and stratum of each cell, and 0 for "in no cell"."""
        if self.layers.n_layers == 1:
            return self.counted
        weights = self.layers.weights(mass, self.counted.dtype)
        return torch.nn.functional.pad(weights.repeat_interleave(self.n_groups), (0, 1))

    def set_target(self, scores: Any, group_codes: Any, strata: Any = None, *, labels: Any = None) -> None:
        """Compute the target from these scores and keep it fixed.

        In the paper they are the initial model's scores of all training rows.

        Parameters
        ----------
        scores, group_codes, strata, labels : Tensor or array-like of shape (n,)
            As in a batch; every group must have rows, of each label and stratum.
        """
        if self.target is None:
            raise ValueError("target='each_other' has no target to set.")
        s = self.score_scale.of_array(to_numpy(scores))
        self.target.fix(group_samples(s, check_table(s, group_codes, strata, labels, self.layers), self.layers))

    def parity_unit(self, scores: Any, y_true: Any, group_codes: Any, strata: Any = None) -> float:
        """Return the factor that turns a ``parity_weight`` into a weight of this penalty.

        In ``log_loss + parity_weight * penalty.parity_unit(...) * penalty(...)`` the weight has the meaning that it has
        for the estimators: at 1 the whole disparity of an initial model counts as much as its whole gain in log-loss
        over a constant. With ``scale`` the loss is the mean squared error.

        Parameters
        ----------
        scores : Tensor or array-like of shape (n,)
            Scores of an initial model that was trained without the penalty, for instance a logistic regression.
        y_true : Tensor or array-like of shape (n,)
            Labels, 0 or 1, or with ``scale`` the numbers to predict.
        group_codes, strata : Tensor or array-like of shape (n,)
            As in a batch; every group must have rows.

        Returns
        -------
        float
            0 if the groups differ no more than by chance.
        """
        s, y = self.score_scale.of_array(to_numpy(scores)), to_numpy(y_true).ravel()
        check_length(y, size=len(s), name="y_true")
        if self.score_scale.is_real:
            constant, squared = float(np.var(y)), float(np.mean((y - to_numpy(scores).ravel()) ** 2))
            information = max(constant - squared, 0.01 * constant)
        elif np.array_equal(np.unique(y), [0, 1]):
            information = information_of_features(y, s)
        else:
            raise ValueError("y_true must hold the labels 0 and 1, both of them.")
        within = y if needs_labels(self.criterion) else None
        pairs = self._comparisons(s, check_table(s, group_codes, strata, within, self.layers))
        distances = DiscretePenalty(huber_width=0.0, scale="score").value_and_gradient(s, pairs).distances
        disparity, reliable = pairs.weights @ distances, weigh_by_reliability(pairs, s).weights @ distances
        return float(information * reliable / disparity**2) if disparity > 0.0 else 0.0

    def _comparisons(self, scores: Floats, cells: Ints) -> Comparisons:
        """Return the pairs of groups within each layer of a table, or of each group and its target."""
        n, counts = self.n_groups, np.bincount(cells, minlength=self.layers.n_cells + 1)[:-1]
        empty = int(np.count_nonzero(counts.reshape(-1, n).sum(axis=0) == 0))
        if empty:
            raise ValueError(f"{empty} of {n} groups have no rows; rows of each are needed here.")
        weights = self._cell_weights(torch.as_tensor(counts, device=self.counted.device)).tolist()
        targets: list[Floats] = []
        if self.target is not None:
            samples = group_samples(scores, cells, self.layers)
            targets = [self.target.resolve(*stratum).equal_mass(TARGET_SIZE) for stratum in enumerate(samples)]
        used = np.flatnonzero(counts)
        position = {int(cell): index for index, cell in enumerate(used)}
        compared = [
            (one, other)
            for one, other in self.pairing.ends.T.tolist()
            if one in position and (targets or other in position) and weights[one]
        ]
        same = [(one // n // self.n_strata, one % n, 0 if targets else other % n) for one, other in compared]
        return Comparisons.of_cells(
            len(scores),
            [np.flatnonzero(cells == cell) for cell in used],
            [(position[one], len(used) + other if targets else position[other]) for one, other in compared],
            weights=[weights[one] for one, _ in compared],
            targets=targets,
            names=(used % n).tolist(),
            strata=(used // n).tolist(),
            families=np.unique(same, axis=0, return_inverse=True)[1].ravel(),
        )

    def forget(self) -> None:
        """Remove all scores from the memory; the dual potentials are kept."""
        if self.memory is not None:
            self.memory.clear()

    def train(self, mode: bool = True) -> Self:
        """Switch between training and evaluation mode; raise for invalid rows that have not raised yet."""
        if mode != self.training:
            self.invalid_rows.raise_if_any()
        return super().train(mode)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def keep_precision(tensor: Tensor) -> Tensor:
            converted = fn(tensor)  # network.half() must not reduce the precision of potentials and memory
            reduced = converted.dtype in _HALF_PRECISION and tensor.dtype not in _HALF_PRECISION
            return tensor.to(converted.device) if reduced else converted

        super()._apply(keep_precision, recurse)
        self.offsets = self.offsets.double()  # in single precision the offset of a late cell would round its scores
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        explain_mismatch(self, state_dict, prefix, errors=rest[-1])
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Return the main settings, without the labels of the groups."""
        strata = f", n_strata={self.n_strata}" if self.n_strata > 1 else ""
        return f"groups={self.n_groups}, criterion={self.criterion!r}, distance={self.distance}{strata}"
