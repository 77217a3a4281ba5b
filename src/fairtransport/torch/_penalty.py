"""The transport penalty as a torch module."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fairtransport._validation import check_choice, check_count, check_flag, check_length, check_real
from fairtransport.criteria import weigh_by_reliability
from fairtransport.penalties import Comparisons, DiscretePenalty
from fairtransport.penalties.unit import information_of_features
from fairtransport.torch._cells import Rows, odd_numbers, shelf_numbers
from fairtransport.torch._coupling import Coupling
from fairtransport.torch._distributed import join_ranks, world_size
from fairtransport.torch._duals import Duals
from fairtransport.torch._input_checks import Faults, check_rows
from fairtransport.torch._pairs import Pairing, Scene
from fairtransport.torch._sample_memory import Memory
from fairtransport.torch._score_tables import check_table, labels_of, samples_of, to_numpy
from fairtransport.torch._state_dicts import check_loaded
from fairtransport.torch._target import EACH_OTHER, Target
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import NDArray
    from torch import Tensor

    from fairtransport.groups import Groups
    from fairtransport.transport.line import Sample

__all__ = ["TransportPenalty"]

_POINTS = {"continuous": 64, "discrete": 256}  # of a picture: duals are smooth, couplings are not
_MEMORY = {"continuous": 32, "discrete": 128}  # duals remember by themselves
_HALVES = (torch.float16, torch.bfloat16)
_MOST_PROBLEMS = 2_500


class TransportPenalty(nn.Module):
    r"""How far apart the groups' scores are, as a loss for any network.

    ``loss = task_loss + weight * penalty(scores, group_codes)`` in every training step; that is all. The penalty learns
    along: its dual variables, and what it remembers of recent scores, are buffers of the module. A forward pass in
    training mode moves them once; in evaluation mode nothing moves.

    Parameters
    ----------
    groups : int, sequence of labels or Groups
        How many groups there are, or what they are called, in the order of their codes. `Groups` that overlap
        (``grouping="each"``) have no codes.
    kind : {"continuous", "discrete"}, default="continuous"
        Regularized transport through dual variables (the paper's COT), or exact transport between sorted scores (DOT).
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, label or array, default="each_other"
        What groups are moved to. Each other: the penalty is the sum over pairs of groups. Otherwise it is the sum
        over groups of the distance to a target: the Wasserstein-1 barycenter with equal weights (the paper's), the
        Wasserstein-2 barycenter by size, everyone, one group, or given scores (with strata, a list of arrays).
    strength : float, default=0.1
        Regularization strength.
    regularizer : {"l2", "entropy"}, default="l2"
        The divergence.
    opposite_duals : bool, default=True
        Keep the two duals of a problem opposite at every point.
    debias : bool, default=True
        Take half of each distribution's regularized distance to itself away, so that equal ones are at distance 0.
        With L2 and opposite duals there is nothing to take away.
    n_fourier_features, kernel_variance : int and float, default=50 and 0.1
        Size and width of the duals' function space.
    dual_step : float, optional
        Step of the duals' ascent; by default 4 times ``strength`` (L2 with opposite duals), ``strength`` (L2) or half
        of it (entropy).
    n_dual_steps : int, default=1
        Steps in each forward pass.
    refresh : int, optional
        Where the target is a word or a label: take it from the present scores in every so many-th batch; 1 is the
        current barycenter. By default it is fixed, and `set_target` must be called once. Nothing holds a target that
        moves along: it drifts, and costs accuracy. Groups that are moved to each other do not.
    memory : int, optional
        The fewest scores of a group that are looked at: where a batch has fewer, the newest of earlier batches join
        them. 0: the batch alone. By default 32 where duals learn along, which are a memory, too, and 128 for exact
        transport, which is biased between small samples. More would be steadier, and further behind the network.
    n_strata : int, default=1
        Number of strata, within each of which groups are compared: strata = label gives strong equalized odds.
    across_ranks : bool, default=True
        Join the rows of all processes of a distributed run, so that N ranks do what one would do with the whole batch.
    random_state : int, default=0
        Seed of the Fourier features.

    Attributes
    ----------
    n_groups, n_strata, kind, labels
        As given.

    Notes
    -----
    The value is :math:`\sum_{a<b} D(S_a, S_b)`, or :math:`\sum_a D(S_a, T)` with a target, D the dual objective at the
    present duals (paper, Eq. 4) or the Wasserstein-1 distance; with strata, weighted by their share of rows. Without
    regularization the sum over pairs is the strong pairwise disparity (SPDD). With memory the value is that of the
    batch and what is remembered, a steady figure to log.

    The gradient with respect to a score of group a is :math:`u_a(s) / n_a` with the slope
    :math:`u_a(s) = \sum_b [(1-\alpha) f'(s) + \alpha\,\mathrm{sign}(s-t)]`, averaged over the others' t, from the
    formulas that the linear estimators use (`fairtransport.transport`). With memory, :math:`n_a` is the group's running
    share of the rows times the batch size: a batch that lacks a group is no loss, and the mean over batches is right.
    The gradient is handed on as it is; there is no second derivative.

    Accumulated gradients need nothing special: each forward pass moves the duals and the memory once, and the small
    batches of one step fill the memory as one large batch would. In a distributed run gradients are expected to be
    averaged over ranks, as `DistributedDataParallel` does. Batches of unequal size are fine.

    Computed in float32, or float64 after ``penalty.double()``, under autocast, too. Nothing is read back from a CUDA
    device; bad rows (NaN, outside [0, 1], codes out of range) are told one call late there, at once elsewhere.

    ``state_dict`` holds the newest ``memory`` scores of each group, without anything else about the rows; `forget`
    empties them.

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

    counted: Tensor  # 1 for each cell, 0 for "in none"; it also says where and how precisely to compute
    odd: Tensor
    shelves: Tensor

    def __init__(
        self,
        groups: int | Sequence[Any] | Groups,
        *,
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
        refresh: int | None = None,
        memory: int | None = None,
        n_strata: int = 1,
        across_ranks: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        self.kind = check_choice(kind, _POINTS, name="kind")
        self.labels = labels_of(groups)
        self.n_groups, self.n_strata = len(self.labels), check_count(n_strata, name="n_strata")
        self.across_ranks = check_flag(across_ranks, name="across_ranks")
        size = _MEMORY[kind] if memory is None else check_count(memory, name="memory", least=0)
        each_other = isinstance(target, str) and target == EACH_OTHER
        self.pairing = self._paired(each_other=each_other)
        self.memory = Memory(self.n_groups * self.n_strata, size) if size else None
        every = None if refresh is None else check_count(refresh, name="refresh")
        self.target = None if each_other else Target(target, self.labels, self.n_strata, _POINTS[kind], every)
        self.transport: Duals | Coupling = Coupling()
        if kind == "continuous":
            self.transport = Duals(
                self.pairing,
                n_targets=0 if each_other else self.n_strata,
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
        self.faults = Faults()
        self.register_buffer("odd", odd_numbers(_POINTS[kind]), persistent=False)
        counted = torch.ones(self.n_groups * self.n_strata + 1)
        counted[-1] = 0.0
        self.register_buffer("counted", counted, persistent=False)
        self.register_buffer("shelves", shelf_numbers(self.n_groups * self.n_strata), persistent=False)

    def _paired(self, *, each_other: bool) -> Pairing:
        if each_other and self.n_groups < 2:
            raise ValueError(f"Groups that are moved to each other must be at least 2; got {self.n_groups}.")
        n_problems = self.n_strata * self.n_groups * (self.n_groups - 1) // 2
        if each_other and n_problems > _MOST_PROBLEMS:
            raise ValueError(
                f"{self.n_groups} groups in {self.n_strata} strata make {n_problems} pairs, too many to compare; "
                "move them to a fixed target instead, for instance target='pooled' and set_target."
            )
        return Pairing(self.n_groups, self.n_strata, each_other=each_other)

    # ---------------------------------------------------------------- the loss

    def forward(self, scores: Tensor, group_codes: Tensor, strata: Tensor | None = None) -> Tensor:
        """Return the penalty of a batch.

        Parameters
        ----------
        scores : Tensor of shape (n,) or (n, 1)
            Probabilities of class 1, with the network's gradient; not logits.
        group_codes : Tensor of shape (n,)
            Whole numbers from 0 to the number of groups less 1.
        strata : Tensor of shape (n,), optional
            Whole numbers from 0 to ``n_strata`` less 1; needed when there are several.

        Returns
        -------
        Tensor of shape ()
        """
        if self.target is not None and not self.target.ready:
            raise RuntimeError(
                "the target is fixed but not known yet: call set_target(scores, group_codes) with the initial "
                "network's scores of the training rows, or give refresh=."
            )
        rows = check_rows(self, scores, group_codes, strata)
        self.faults.watch(rows.bad, self.n_groups, self.n_strata)
        with torch.no_grad(), torch.autocast(rows.given.device.type, enabled=False):
            value, gradient = self._look(rows.scores, rows.cells)
        return WithGradient.apply(rows.given, value, gradient)

    def _look(self, scores: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value, and its derivative with respect to these scores; move what learns along."""
        n_ranks, own, n_rows = 1, slice(None), len(scores)
        if self.training and self.across_ranks and (n_ranks := world_size()) > 1:
            scores, cells, own, n_rows = join_ranks(scores, cells, self.n_groups * self.n_strata)
        memory = self.memory if self.training else None
        points, homes = (scores, cells) if memory is None else memory.join(scores, cells)
        rows = Rows.of(points, homes, self.shelves)
        seen = rows.counts if memory is None else memory.seen  # says the cells' shares; "in none" is last
        scene = self._scene(rows, seen[:-1])
        slopes, values = self.transport(scene, learn=self.training)
        share = self._share_of_stratum(seen[:-1])
        part = 0.5 * share if self.pairing.each_other else share  # a pair's value comes from the rows of both
        value = (values * (part / rows.counts)[homes]).sum()
        scale = seen[:-1].sum(dtype=share.dtype) / max(n_rows, 1)
        gradient = slopes[: len(cells)] * (share * scale / seen)[cells]
        return value, gradient if n_ranks == 1 else n_ranks * gradient[own]

    def _scene(self, rows: Rows, mass: Tensor) -> Scene:
        pictures, inside = rows.pictures(self.odd), rows.cells.clamp(max=len(mass) - 1)
        seen = rows.counts[:-1] > 0
        other, ready = pictures, self.pairing.ready(seen)
        if self.target is not None:
            if self.training:
                self.target.follow(pictures, mass.to(pictures.dtype))
            other, ready = self.target.points, ready & self.target.known[self.pairing.second]
        return Scene(self.pairing, rows, pictures, other, seen, ready, inside)

    def _share_of_stratum(self, mass: Tensor) -> Tensor:
        """Return each cell's stratum's share of the rows, and 0 for "in none"."""
        if self.n_strata == 1:
            return self.counted
        by_stratum = mass.reshape(self.n_strata, -1).sum(-1)
        shares = by_stratum.to(self.counted.dtype) / by_stratum.sum()
        return torch.nn.functional.pad(shares.repeat_interleave(self.n_groups), (0, 1))

    # ---------------------------------------------------------------- care

    def set_target(self, scores: Any, group_codes: Any, strata: Any = None) -> None:
        """Fix the target at these scores: those of the initial network for all training rows (the paper's theta*).

        Parameters
        ----------
        scores, group_codes, strata : Tensor or array-like of shape (n,)
            As in a batch; every group must have rows.
        """
        if self.target is None:
            raise ValueError("target='each_other' has no target to set.")
        table = check_table(scores, group_codes, strata, self.n_groups, self.n_strata)
        self.target.set(samples_of(*table, self.n_groups, self.n_strata))

    def parity_unit(self, scores: Any, y_true: Any, group_codes: Any, strata: Any = None) -> float:
        """Return the factor that makes a weight free of units.

        In ``log_loss + parity_weight * penalty.parity_unit(...) * penalty(...)`` the weight means what it does for the
        estimators: at 1 the whole disparity of an initial model counts as much as all that the features are worth to
        it, the log-loss of a constant less its own.

        Parameters
        ----------
        scores : Tensor or array-like of shape (n,)
            Of an initial model, trained without the penalty; a logistic regression will do.
        y_true : Tensor or array-like of shape (n,)
            Labels, 0 or 1.
        group_codes, strata : Tensor or array-like of shape (n,)
            As in a batch; every group must have rows.

        Returns
        -------
        float
            0 where the groups differ no more than by chance.
        """
        labels, table = to_numpy(y_true).ravel(), check_table(scores, group_codes, strata, self.n_groups, self.n_strata)
        check_length(labels, size=len(table[0]), name="y_true")
        if not np.array_equal(np.unique(labels), [0, 1]):
            raise ValueError("y_true must hold the labels 0 and 1, both of them.")
        disparity = reliable = 0.0
        exact = DiscretePenalty(huber_width=0.0, scale="score")
        for stratum, samples in enumerate(samples_of(*table, self.n_groups, self.n_strata)):
            inside = table[2] == stratum
            pairs = self._comparisons(table[1][inside], stratum, samples)
            distances = exact.value_and_gradient(table[0][inside], pairs).distances
            disparity += inside.mean() * distances.sum()
            reliable += inside.mean() * weigh_by_reliability(pairs, table[0][inside]).weights @ distances
        return float(information_of_features(labels, table[0]) * reliable / disparity**2) if disparity > 0.0 else 0.0

    def _comparisons(self, codes: NDArray[np.int64], stratum: int, samples: list[Sample]) -> Comparisons:
        """Return the pairs of groups of one stratum, or of each group and the target."""
        cells = [np.flatnonzero(codes == group) for group in range(self.n_groups)]
        if self.target is None:
            return Comparisons.of_cells(len(codes), cells, list(combinations(range(self.n_groups), 2)))
        aim = self.target.of_samples(stratum, samples).equal_mass(TARGET_SIZE)
        to_target = [(group, self.n_groups) for group in range(self.n_groups)]
        return Comparisons.of_cells(len(codes), cells, to_target, targets=[aim])

    def forget(self) -> None:
        """Empty the memory of recent scores; the duals stay."""
        if self.memory is not None:
            self.memory.forget()

    def train(self, mode: bool = True) -> Self:
        """Switch between training and evaluation, and tell of bad rows that no one was told of."""
        if mode != self.training:
            self.faults.tell(self.n_groups, self.n_strata)
        return super().train(mode)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def carefully(tensor: Tensor) -> Tensor:
            moved = fn(tensor)  # network.half() must not make the duals and the memory coarse
            return tensor.to(moved.device) if moved.dtype in _HALVES and tensor.dtype not in _HALVES else moved

        super()._apply(carefully, recurse)
        self.shelves = self.shelves.double()  # always: they keep scores of many cells apart
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        check_loaded(self, state_dict, prefix, *rest)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Say the settings that matter, without a label."""
        strata = f", n_strata={self.n_strata}" if self.n_strata > 1 else ""
        return f"groups={self.n_groups}, kind={self.kind!r}{strata}"


class WithGradient(torch.autograd.Function):
    """A value whose derivative with respect to some scores is known already."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:  # noqa: ARG004
        """Return the value, and keep the gradient."""
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        """Hand the gradient on."""
        (gradient,) = ctx.saved_tensors
        return outer * gradient, None, None
