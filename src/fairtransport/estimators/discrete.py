"""DOT: the same with exact transport between samples, the paper's discrete counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.estimators._linear import LinearTransportClassifier

if TYPE_CHECKING:
    import numpy as np

    from fairtransport.transport.dual import DualProblem

__all__ = ["DiscreteTransportClassifier"]


class DiscreteTransportClassifier(LinearTransportClassifier):
    r"""Logistic regression with strong demographic parity by discrete optimal transport (DOT).

    Parameters
    ----------
    estimator : estimator, optional
        The linear logistic model that starts theta, fitted or not; by default ``LogisticRegression``.
    parity_weight : float, default=3.0
        Weight of the transport term against weight 1 of the logistic loss, without a unit: see
        :class:`ContinuousTransportClassifier`. ``inf`` is the paper's method, which has no memory.
    amount : float, default=1.0
        How far the scores go from those of the initial model (0) to those of the trained one (1); at prediction only.
    spread : {"trained", "initial"}, default="trained"
        Whether the trained scores are stretched to the spread of the initial model's, by one map for everyone.
    target : {"each_other", "barycenter", "barycenter_w2", "pooled"}, group label or array, optional
        Where the groups are moved: to each other (the default with memory) or to a distribution; see
        :class:`ContinuousTransportClassifier`.
    group_specific : bool, default=False
        Weights for each group; then the group is needed at prediction.
    parameter_step : float, optional
        Update size of theta; by default steps set themselves, as in :class:`ContinuousTransportClassifier`.
    n_updates : int, optional
        The most updates there are. By default as many as 1,000 pictures take, and without memory 20,000. With memory a
        run ends before that when nothing more is gained.
    batch_size : int, default=200
        Rows of each group drawn for each update. With memory the result hardly depends on it. Without, small batches
        bias the coupling: each group is drawn towards the middle of the target (see Notes).
    memory : bool, default=True
        Couple pictures of whole groups. False, or ``parity_weight=inf``: couple the rows of each batch, as in the
        paper.
    average : bool, default=True
        Use the mean of the second half of the iterates; with memory, of each cycle's.
    grouping, missing, min_size, warm_start, half_life, new_groups, random_state, verbose
        As in :class:`ContinuousTransportClassifier`.

    Attributes
    ----------
    coef_, intercept_, target_, groups_, group_sizes_, initial_estimator_, history_, outcome_, n_iter_
        As in :class:`ContinuousTransportClassifier`.
    spread_, adjusting_
        As in :class:`ContinuousTransportClassifier`; there are no dual variables.

    Notes
    -----
    The paper's method draws for each update N scores of a group and N of the target, joins the i-th smallest with the
    i-th smallest (the optimal coupling on the line) and follows the gradient of the mean distance (paper, Eq. 9
    and the update below it). The expected distance between two batches is larger than the distance of the
    distributions and is least for a group that is too concentrated, which is why batches of 10 fail.

    With memory a picture is 256 quantiles of the scores of up to 2,048 rows of a group, and pictures are coupled
    instead of batches. A quantile is drawn to its partner with force 1, and in proportion where they are closer than
    0.02. The forces that theta follows are a running mean, a tenth of it from the newest picture. The objective, the
    unit of ``parity_weight``, steps, cycles, outcomes and the two situations, aware and blind, are those of
    :class:`ContinuousTransportClassifier`, with the plain distance in place of the regularized one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import DiscreteTransportClassifier
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = DiscreteTransportClassifier(n_updates=2000, random_state=0).fit(X, y, sensitive_features=group)
    >>> bool(model.history_["disparity"][-1] < model.history_["disparity"][0] / 3)
    True
    """

    _short = "DOT"

    def __init__(
        self,
        estimator: Any = None,
        *,
        parity_weight: float = 3.0,
        amount: float = 1.0,
        spread: str = "trained",
        target: Any = None,
        group_specific: bool = False,
        parameter_step: float | None = None,
        n_updates: int | None = None,
        batch_size: int = 200,
        memory: bool = True,
        average: bool = True,
        grouping: str = "crossed",
        missing: str = "error",
        min_size: int = 2,
        warm_start: bool = False,
        half_life: float = 1000.0,
        new_groups: str = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.parity_weight = parity_weight
        self.amount = amount
        self.spread = spread
        self.target = target
        self.group_specific = group_specific
        self.parameter_step = parameter_step
        self.n_updates = n_updates
        self.batch_size = batch_size
        self.memory = memory
        self.average = average
        self.grouping = grouping
        self.missing = missing
        self.min_size = min_size
        self.warm_start = warm_start
        self.half_life = half_life
        self.new_groups = new_groups
        self.random_state = random_state
        self.verbose = verbose

    def _dual_problem(self, rng: np.random.Generator) -> DualProblem | None:  # noqa: ARG002
        return None

    def _resolved_dual_step(self, problem: DualProblem | None) -> float:  # noqa: ARG002
        return 0.0
