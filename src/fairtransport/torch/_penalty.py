"""The transport penalty as a torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from fairtransport._validation import check_choice, check_count, check_flag, check_length, check_real
from fairtransport.criteria import EACH_OTHER, compares_each_other, needs_labels
from fairtransport.penalties.unit import information_of_features
from fairtransport.torch._cells import SortedRows, cell_offsets, odd_numbers
from fairtransport.torch._coupling import Coupling
from fairtransport.torch._distributed import gather_rows, world_size
from fairtransport.torch._duals import Duals
from fairtransport.torch._input_checks import InvalidRows, check_rows
from fairtransport.torch._layers import Layers
from fairtransport.torch._pairs import Batch, make_pairing
from fairtransport.torch._parity_unit import compare_cells, count_cells, parity_factor, squared_error_information
from fairtransport.torch._sample_memory import SampleMemory
from fairtransport.torch._score_scale import ScoreScale
from fairtransport.torch._score_tables import check_table, group_labels, group_samples, to_numpy
from fairtransport.torch._state_dicts import explain_mismatch
from fairtransport.torch._target import Target
from fairtransport.torch._value_with_gradient import ValueWithGradient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from torch import Tensor

    from fairtransport.groups import Groups

__all__ = ["TransportPenalty"]

_N_QUANTILES = {"continuous": 64, "discrete": 256}  # dual potentials are smooth, couplings are not
_MEMORY_SIZES = {"continuous": 32, "discrete": 128}  # the potentials carry information between batches, too
_HALF_PRECISION = (torch.float16, torch.bfloat16)


class TransportPenalty(nn.Module):
    r"""Transport distances between the groups' scores, as a term in the loss of a network.

    Add it to the loss of every training step: ``loss = task_loss + weight * penalty(scores, group_codes)``. The
    coefficients of its dual potentials and its memory of recent scores are buffers of the module, which each forward
    pass in training mode updates once; in evaluation mode nothing changes.

    Parameters
    ----------
    groups : int, sequence of labels or Groups
        The number of groups, or their labels in the order of their codes. `Groups` that overlap (``grouping="each"``)
        are not supported.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}, default="demographic_parity"
        Which rows of the groups are compared: all, those with the same label, or those with label 1. The last two need
        ``labels`` in every batch.
    stratum_weight : {"equal", "share"}, optional
        Whether labels and strata count the same or by their share of the rows. By default labels count the same and
        strata by share.
    kind : {"continuous", "discrete"}, default="continuous"
        Regularized transport through dual potentials (continuous optimal transport, COT), or the exact Wasserstein-1
        distance between sorted scores (discrete optimal transport, DOT).
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, default="each_other"
        What groups are compared with: each other, or one distribution: the equal-weight Wasserstein-1 barycenter (the
        paper's), the Wasserstein-2 barycenter weighted by group size, everyone, one group's scores, or given scores
        (with strata, a list of arrays; with equalized odds, those of label 0 first).
    strength : float, default=0.1
        Strength of the regularization, lambda in the paper.
    regularizer : {"l2", "entropy"}, default="l2"
        Regularization of the transport problem.
    opposite_duals : bool, default=True
        Keep the two dual potentials of a pair opposite at every score.
    debias : bool, default=True
        Subtract half of each distribution's regularized distance to itself, so that equal distributions have distance
        0. With L2 and opposite potentials there is nothing to subtract.
    n_fourier_features, kernel_variance : int and float, default=50 and 0.1
        Size and width of the space of dual potentials.
    dual_step : float, optional
        Step size of the dual potentials; by default 4 times ``strength`` (L2 with opposite potentials), ``strength``
        (L2) or half of it (entropy).
    n_dual_steps : int, default=1
        Gradient ascent steps of the dual potentials in each forward pass.
    target_update_interval : int, optional
        For a ``target`` that is a word or a label: recompute it from the current scores in every so many batches. By
        default it is fixed, and `set_target` must be called once. A target that is recomputed may drift and cost
        accuracy; groups that are compared with each other do not drift.
    memory_size : int, optional
        Number of recent scores of each group that are kept: a group with fewer rows in a batch is completed with the
        newest scores of earlier batches. 0 uses the batch alone. By default 32 for ``kind="continuous"`` and 128 for
        ``"discrete"``, whose distance is biased between small samples. A larger memory has less variance, but lags
        further behind the network.
    n_strata : int, default=1
        Number of strata within which groups are compared (conditional parity).
    scale : (float, float), optional
        For real-valued outputs: mean and standard deviation of y. Outputs are compared in units of four standard
        deviations, so that all settings mean the same for prices and for probabilities. By default scores are
        probabilities.
    sync_distributed : bool, default=True
        In a distributed run, gather the rows of all processes, so that N processes compute the penalty of the whole
        batch.
    random_state : int, default=0
        Seed of the Fourier features.

    Attributes
    ----------
    n_groups : int
        Number of groups.
    labels : tuple
        Labels of the groups, in the order of their codes.
    kind, criterion, n_strata
        As passed.

    See Also
    --------
    fairtransport.ContinuousTransportClassifier : The same penalty for linear models.
    fairtransport.boosting.TransportObjective : The same penalty for boosted trees.

    Notes
    -----
    The value is

    .. math:: \sum_{a<b} D(S_a, S_b), \quad\text{or}\quad \sum_a D(S_a, T)

    with a target T, where D is the dual objective at the current potentials ([1]_, Eq. 4) or the Wasserstein-1
    distance; sums within labels or strata are weighted by ``stratum_weight``. Without regularization the sum over pairs
    is the strong pairwise demographic disparity (SPDD). With a memory the value is that of the batch and the stored
    scores.

    The gradient with respect to a score of group a is :math:`u_a(s) / n_a` with the slope
    :math:`u_a(s) = \sum_b [(1-\alpha) f'(s) + \alpha\,\mathrm{sign}(s-t)]`, averaged over the scores t of the others,
    by the formulas of the linear estimators (`fairtransport.transport`). With a memory, :math:`n_a` is the group's
    share of all rows so far times the batch size, which makes the gradient unbiased even if batches lack a group.
    Second derivatives are not available.

    With gradient accumulation each forward pass updates potentials and memory once, as one large batch would. In a
    distributed run gradients must be averaged over processes, as `DistributedDataParallel` does; batches may differ in
    size.

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
        criterion: str = "demographic_parity",
        stratum_weight: str | None = None,
        kind: str = "continuous",
        target: Any = EACH_OTHER,
        strength: float = 0.1,
        regularizer: str = "l2",
        opposite_duals: bool = True,
        debias: bool = True,
        n_fourier_features: int = 50,
        kernel_variance: float = 0.1,
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
        self.kind = check_choice(kind, _N_QUANTILES, name="kind")
        self.labels = group_labels(groups)
        self.layers = Layers(criterion, n_strata, stratum_weight, len(self.labels))
        self.score_scale = ScoreScale.of(scale)
        if self.score_scale.is_real and needs_labels(criterion):
            raise ValueError(
                f"criterion={criterion!r} compares rows with the same label of two. For a regression pass the ranges "
                "of y as strata: codes of fairtransport.strata.make_strata(y), and their number as n_strata."
            )
        self.sync_distributed = check_flag(sync_distributed, name="sync_distributed")
        size = _MEMORY_SIZES[kind] if memory_size is None else check_count(memory_size, name="memory_size", least=0)
        interval = target_update_interval
        if interval is not None:
            interval = check_count(interval, name="target_update_interval")
        each_other = compares_each_other(target)
        self.pairing = make_pairing(self.layers, each_other=each_other)
        n_cells, n_layers = self.layers.n_cells, self.layers.n_layers
        self.memory = SampleMemory(n_cells, size) if size else None
        self.target = (
            None
            if each_other
            else Target(target, self.labels, n_layers, _N_QUANTILES[kind], interval, scale=self.score_scale)
        )
        self.transport: Duals | Coupling = Coupling()
        if kind == "continuous":
            self.transport = Duals(
                self.pairing,
                n_targets=0 if each_other else n_layers,
                regularizer=regularizer,
                strength=check_real(strength, name="strength", strict=True),
                opposite=check_flag(opposite_duals, name="opposite_duals"),
                debias=check_flag(debias, name="debias"),
                n_features=n_fourier_features,
                kernel_variance=kernel_variance,
                step=None if dual_step is None else check_real(dual_step, name="dual_step", strict=True),
                n_steps=check_count(n_dual_steps, name="n_dual_steps"),
                seed=check_count(random_state, name="random_state", least=0),
            )
        self.invalid_rows = InvalidRows()
        counted = torch.ones(n_cells + 1)
        counted[-1] = 0.0
        self.register_buffer("odd", odd_numbers(_N_QUANTILES[kind]), persistent=False)
        self.register_buffer("counted", counted, persistent=False)
        self.register_buffer("offsets", cell_offsets(n_cells), persistent=False)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.layers.n_groups

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return self.layers.n_strata

    @property
    def criterion(self) -> str:
        """The criterion."""
        return self.layers.criterion

    # ---------------------------------------------------------------- the loss

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
        rows = check_rows(
            scores,
            group_codes,
            strata,
            labels,
            layers=self.layers,
            device=self.counted.device,
            dtype=self.counted.dtype,
            is_real=self.score_scale.is_real,
        )
        self.invalid_rows.add(rows.invalid, self.layers)
        with torch.no_grad(), torch.autocast(rows.original.device.type, enabled=False):
            value, gradient = self._value_and_gradient(self.score_scale.of_tensor(rows.scores), rows.cells)
            gradient = gradient / self.score_scale.unit
        return ValueWithGradient.apply(rows.original, value, gradient)

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

    # ---------------------------------------------------------------- target, unit and memory

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
        self.target.fix(group_samples(*check_table(s, group_codes, strata, labels, self.layers), self.layers))

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
            information = squared_error_information(y, to_numpy(scores).ravel())
        elif np.array_equal(np.unique(y), [0, 1]):
            information = information_of_features(y, s)
        else:
            raise ValueError("y_true must hold the labels 0 and 1, both of them.")
        within = y if needs_labels(self.criterion) else None
        table = check_table(s, group_codes, strata, within, self.layers)
        counts = count_cells(*table[1:], self.layers)
        weights = self._cell_weights(torch.as_tensor(counts, device=self.counted.device)).tolist()
        pairs = compare_cells(table, counts, weights, self.pairing, layers=self.layers, target=self.target)
        return parity_factor(table[0], pairs, information)

    def forget(self) -> None:
        """Remove all scores from the memory; the dual potentials are kept."""
        if self.memory is not None:
            self.memory.clear()

    def train(self, mode: bool = True) -> Self:
        """Switch between training and evaluation mode; raise for invalid rows that have not raised yet."""
        if mode != self.training:
            self.invalid_rows.raise_if_any(self.layers)
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
        explain_mismatch(self, state_dict, prefix, *rest)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Return the main settings, without the labels of the groups."""
        strata = f", n_strata={self.n_strata}" if self.n_strata > 1 else ""
        return f"groups={self.n_groups}, criterion={self.criterion!r}, kind={self.kind!r}{strata}"
