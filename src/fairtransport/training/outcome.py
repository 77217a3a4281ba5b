"""The outcome of training in words, with what held-out rows show about parity, and warnings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.criteria import Criterion
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import ComparedStrata, criterion_text, needs_labels
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.groups import MATERIALITY, MIN_GROUP_SIZE
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.training.evaluation import ScoreEvaluator, ScoreMetrics, share_kept
from fairtransport.training.responses import ScoredClasses, ScoredResponse
from fairtransport.training.weight_path import MIN_INFORMATION

_CONSTANT = 0.01  # of the initial spread: nearly constant scores
_LOWERED, _FOLLOWED = 0.25, 0.5  # a reduction of the disparity that matters, and the share of it that ranks should show
_ABOVE_CHANCE = 1.3  # times the mean disparity under chance
_MANY_SET_ASIDE = 1 / 3  # of the rows, which are not compared

Figures = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Notice:
    """A remark for ``outcome_`` and the warnings that go with it."""

    text: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()

    def at_full_amount(self, amount: float) -> Notice:
        """Say that all of this is of amount 1, where a model has a smaller one."""
        if amount == 1.0:
            return self
        start = f"At amount 1 (this model has {amount:.3g}): "
        return Notice(f"at amount 1, {self.text}", tuple((start + message, kind) for message, kind in self.warnings))

    def warn(self) -> None:
        """Issue the warnings."""
        for message, category in self.warnings:
            warn_caller(message, category)


def describe_criterion(outcome: Notice, criterion: str | Criterion, strata: ComparedStrata) -> Notice:
    """Add to an outcome which criterion was trained for, and what could not be compared."""
    if strata.is_everywhere:
        return outcome
    has_strata = strata.compared[0].stratum is not None
    of_y = needs_labels(criterion) and strata.compared[0].label is None  # ranges of a real y are strata
    text, warnings = criterion_text(criterion, has_strata=has_strata and not of_y), outcome.warnings
    if has_strata:
        aside = f", {len(strata.set_aside)} set aside" if strata.set_aside else ""
        n = len(strata.compared)
        text += f" ({n} {'stratum' if n == 1 else 'strata'}{' of y' if of_y else ''}{aside})"
    if strata.share_set_aside > _MANY_SET_ASIDE:
        message = (
            f"{strata.share_set_aside:.0%} of the rows have only one group in their stratum and were set aside: "
            f"nothing is compared in {len(strata.set_aside)} of {len(strata.set_aside) + len(strata.compared)} strata. "
            "Use fewer or coarser strata."
        )
        warnings = (*warnings, (message, FairnessWarning))
    return Notice(f"{text}: {outcome.text}", warnings)


def within_chance(ending: str = "nothing was moved") -> str:
    """Return the outcome where groups of the initial model differ no more than by chance."""
    return f"the groups of the initial model differ no more than by chance; {ending}"


def describe_weight(
    ending: Notice,
    losses: Notice,
    *,
    parity_weight: float,
    metrics: ScoreMetrics,
    reason: str,
    reached: bool,
    max_disparity: float | None,
    remedy: str,
    rows: str = "training rows",
    change: HeldOutChange | None = None,
) -> Notice:
    """Describe how training ended, why its weight was chosen, and what parity cost."""
    text, warnings = ending.text, [*ending.warnings, *losses.warnings]
    if reason:
        if change is not None and not change.evidence.shows_parity:
            of_rows = f" on {rows}" if change.is_full and change.is_above_chance else ""
            reason = reason.replace("at its noise floor", f"near its noise floor{of_rows}")
        reason = reason.format(kept=max(metrics.information_kept, 0.0))
        text = f"{reason} (parity_weight {parity_weight:.3g}); {text}"
        if not reached and (change is None or max_disparity is not None):
            warnings += _warnings_of_disparity(metrics, reason, max_disparity, remedy=remedy, rows=rows)
    return Notice(text if losses.text in text else f"{text}; {losses.text}", tuple(warnings))


def notices_of_losses(
    information_kept: float, figures: Figures, excess: float, response: ScoredResponse, already: Collection[str] = ()
) -> Notice:
    """Describe what parity cost: nearly constant scores, lost information, or scores that only shrank.

    What is ``already`` set is not advised.
    """
    spread = figures["spread"]
    if spread[1] < _CONSTANT * spread[0]:
        remark = "the scores are nearly constant"
    elif information_kept < MIN_INFORMATION:
        remark = f"{max(information_kept, 0.0):.0%} of the initial model's information is left"
    else:
        return _notice_of_shrinkage(figures, excess, _allowed(response.shrinkage_remedies, already))
    before, after = figures[response.quality_name]
    remedies = ("a smaller parity_weight or amount", "parity_weight='auto'", *response.aware_remedies)
    message = (
        f"Parity cost most of the model: {remark}; the {response.quality_text} fell from {before:.3f} to {after:.3f}. "
        f"These features allow no more at this weight. Use {_allowed((*remedies, 'another criterion'), already)}."
    )
    return Notice(remark, ((message, FairnessWarning),))


def _allowed(remedies: Sequence[str], already: Collection[str]) -> str:
    """Return remedies that are not yet set, in words."""
    *others, last = (each for each in remedies if not any(setting in each for setting in already))
    return f"{', '.join(others)} or {last}" if others else last


def _notice_of_shrinkage(figures: Figures, excess: float, remedies: str) -> Notice:
    before, after = figures["disparity"]
    lowered = 1.0 - after / before if before > 0.0 else 0.0
    ranks = figures["rank_disparity"]
    ranks_lowered = 1.0 - ranks[1] / max(ranks[0], 1e-300)
    if not (lowered > _LOWERED and ranks_lowered < _FOLLOWED * lowered and excess > _ABOVE_CHANCE):
        return Notice()
    message = (
        f"Scores were squeezed: the disparity fell by {lowered:.0%}, but the order of people is nearly as unequal as "
        f"before (rank disparity {ranks[0]:.3f} to {ranks[1]:.3f}). Use {remedies}."
    )
    return Notice("scores were squeezed more than their order was equalised", ((message, FairnessWarning),))


def _warnings_of_disparity(
    metrics: ScoreMetrics, reason: str, max_disparity: float | None, *, remedy: str, rows: str
) -> list[tuple[str, type[Warning]]]:
    if max_disparity is not None:
        remaining = f"max_disparity={max_disparity:g} was not reached on {rows}: {metrics.disparity:.4g}"
    elif metrics.excess > _ABOVE_CHANCE and metrics.rank_distance > MATERIALITY:
        remaining = (
            f"at equal shares selected, groups still differ by {100 * metrics.rank_distance:.1f} percentage "
            f"points, {metrics.excess:.1f} times what chance shows"
        )
    else:
        return []
    message = f"Parity was not reached: {remaining}; {reason}. {remedy} with the group at hand goes further."
    return [(message, FairnessWarning)]


# What rows can show about parity: a test of the disparity, and an upper confidence limit.

_LEVEL = 0.05  # of the test, and of the upper limit
_CLEAR = 0.01  # level at which groups differ clearly enough to be moved
_SAMPLES = 400  # of the noise
_SLICES, _NOISE_SLICES = 256, 128
_MAX_ENTRIES = 1 << 21  # of the noise, in memory at a time
_FEW_CELLS = 16  # whose noise, 7 MB, is kept

#: Noise of new rows whose model or maps were fitted to as many others, in units of the noise of a sample.
FITTED_NOISE = float(np.sqrt(2.0))


@dataclass(frozen=True)
class ParityEvidence:
    """The disparity (mean over pairs) of rows that a model was not trained on, and what their number can show."""

    disparity: float
    floor: float
    noise: float  # standard deviation of the disparity under chance
    p_value: float
    limit: float
    rate_limit: float
    n_rows: int

    @property
    def text(self) -> str:
        """The limit, in words that follow the disparity."""
        return f" (at most {self.limit:.3f} with 95 % confidence; chance alone shows {self.floor:.3f})"

    @property
    def shows_difference(self) -> bool:
        """True if groups differ by more than chance, and by an amount that may matter."""
        return self.p_value <= _LEVEL and not self.shows_parity

    @property
    def shows_parity(self) -> bool:
        """True if these rows exclude that groups differ by an amount that audits call material."""
        return self.rate_limit <= MATERIALITY


def parity_evidence(
    scores: Floats,
    comparisons: Comparisons,
    *,
    ranked: bool = False,
    excess_noise: float = 1.0,
    fitted: bool = False,
    chance: Floats | None = None,
) -> ParityEvidence:
    r"""Return what the scores of some rows show about parity, where chance shows ``excess_noise`` times their noise.

    Scores that are ``ranked`` are ranks of all rows already. Rows that a model was ``fitted`` to look more alike than
    new ones, by up to their own noise: limits allow for both. ``chance`` is what `shown_by_chance` returns.

    Notes
    -----
    The disparity is a norm of the differences D between the groups' distribution functions. With sampling noise h it is
    observed as :math:`\|D + h\|`, so that

    .. math:: \|D\| \le \|D + h\| + \|h\| .

    The limit adds the 95 % quantile of :math:`\|h\|`. The triangle inequality makes it valid for every direction of the
    differences and every number of groups; it is wide where there are many. With F the distribution function of all
    scores, the noise of a group of n rows is that of a Brownian bridge B, :math:`B(F) / \sqrt{n}`; permuted groups
    differ by the same amount. The limit of selection rates is that of the same mean for ranks.
    """
    exact = DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")
    total = float(comparisons.weights.sum())
    disparity = of_ranks = exact.value(scores, comparisons) / total
    if not ranked:
        of_ranks = exact.value(pooled_ranks(scores, comparisons.row_weights), comparisons) / total
    noise, noise_of_ranks = shown_by_chance(comparisons, scores)[0] if chance is None else chance
    varies = bool(np.ptp(scores) > 0.0)
    margin = FITTED_NOISE if fitted else 1.0
    rates = of_ranks + margin * float(np.quantile(noise_of_ranks, 1.0 - _LEVEL))
    return ParityEvidence(
        disparity=disparity,
        floor=excess_noise * float(noise.mean()),
        noise=excess_noise * float(noise.std()),
        p_value=(1 + int(np.count_nonzero(excess_noise * noise >= disparity))) / (1 + _SAMPLES),
        limit=disparity + margin * float(np.quantile(noise, 1.0 - _LEVEL)),
        rate_limit=rates if varies else 0.0,
        n_rows=comparisons.n_people,
    )


def groups_differ(scores: Floats, comparisons: Comparisons, ranks: Floats | None = None) -> bool:
    """Return whether groups clearly differ by more than chance; their ``ranks`` may be known.

    Pairs count by their precision, so that small groups do not hide what large ones show.
    """
    ranks = _ranks(scores, comparisons) if ranks is None else ranks
    sizes = np.maximum(comparisons.sizes[comparisons.pairs], 1e-300)
    weighed = comparisons.reweighted((comparisons.weights > 0.0) / (1.0 / sizes).sum(axis=1))
    return parity_evidence(ranks, weighed, ranked=not comparisons.strata).p_value <= _CLEAR


def _ranks(scores: Floats, comparisons: Comparisons) -> Floats:
    """Return ranks within each stratum that is compared: chance shows the same in each of them then."""
    weights, strata = comparisons.row_weights, np.array(comparisons.strata)
    if not strata.size:
        return pooled_ranks(scores, weights)
    ranks = np.full(scores.size, 0.5)
    for stratum in np.unique(strata):
        rows = np.unique(np.concatenate([comparisons.cells[cell] for cell in np.flatnonzero(strata == stratum)]))
        ranks[rows] = pooled_ranks(scores[rows], None if weights is None else weights[rows])
    return ranks


def _quantile_steps(scores: Floats, row_weights: Floats | None) -> Floats:
    """Return the differences between equidistant quantiles of all scores."""
    if row_weights is None:
        levels = np.arange(0.5, scores.size) / scores.size
    else:
        mass = row_weights[np.argsort(scores)]
        levels = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return np.diff(np.interp(np.linspace(0.0, 1.0, _NOISE_SLICES + 1), levels, np.sort(scores)))


def shown_by_chance(comparisons: Comparisons, *scores: Floats) -> Floats:
    """Return samples of the disparity, and of that of ranks, under chance: shape (n_scores, 2, n_samples)."""
    errors = 1.0 / np.sqrt(np.maximum(comparisons.sizes, 1e-300))[:, None, None]
    steps = [_quantile_steps(one, comparisons.row_weights) for one in scores]
    widths = np.column_stack((*steps, np.full(_NOISE_SLICES, 1.0 / _NOISE_SLICES)))
    samples = []
    for bridges in (_few_bridges if len(errors) <= _FEW_CELLS else _bridges)(len(errors)):
        total = np.zeros((bridges.shape[1], widths.shape[1]))
        for (a, b), weight in zip(comparisons.pairs, comparisons.weights, strict=True):
            if weight > 0.0:
                gap = errors[a] * bridges[a]
                gap -= errors[b] * bridges[b]
                total += weight * (np.abs(gap, out=gap) @ widths)
        samples.append(total)
    by_scores = np.concatenate(samples).T / float(comparisons.weights.sum())
    return np.stack([np.stack((own, by_scores[-1])) for own in by_scores[:-1]])


def _bridges(n_cells: int) -> Iterator[Floats]:
    """Yield samples of a Brownian bridge for each cell, in blocks of shape (n_cells, n_samples, n_slices)."""
    rng, edges = np.random.default_rng(0), np.linspace(0.0, 1.0, _NOISE_SLICES + 1)
    heights = 0.5 * (edges[1:] + edges[:-1])
    steps = np.sqrt(np.diff(heights, prepend=0.0, append=1.0))
    block = max(1, _MAX_ENTRIES // (n_cells * len(steps)))
    for first in range(0, _SAMPLES, block):
        shape = (n_cells, min(block, _SAMPLES - first), len(steps))
        walks = rng.normal(size=shape)
        walks *= steps
        for walk in walks:  # in place, as there may be many cells
            np.cumsum(walk, axis=1, out=walk)
            walk[:, :-1] -= heights * walk[:, -1:]
        yield walks[:, :, :-1]


@lru_cache(maxsize=2)
def _few_bridges(n_cells: int) -> tuple[Floats, ...]:
    """Return the same, which several tests of the same groups share."""
    return tuple(_bridges(n_cells))


# Do no harm: plain and changed scores of rows that neither model was fitted to.

#: Rows that a model with many rows for each weight is judged by.
TRAINED_ON = "rows that it was fitted to"
_ABOVE_FLOOR = 1.5  # times the disparity that chance shows: what is left is said
_NOTICED = 2.5  # standard deviations of a disparity under chance; of two groups, these are its mean


@dataclass(frozen=True)
class HeldOutChange:
    """Error and mean rank disparity of the plain and the changed scores of the same rows.

    The error is the share of wrong decisions at one half, or the mean squared error as a share of the variance of y.
    """

    error: tuple[float, float]
    error_noise: float  # one standard error of the change
    rank_disparity: tuple[float, float]
    differed: bool  # whether groups of the plain scores clearly do
    plain: ParityEvidence  # of the plain scores, in ranks
    evidence: ParityEvidence  # of the changed scores, or of the plain ones where the change was undone
    information_kept: float
    is_full: bool
    rows: str
    classifies: bool
    has_many_groups: bool = False  # more than two, of which some may be small
    n_models: int = 1
    is_undone: bool = False

    def undone(self) -> HeldOutChange:
        """Return what is known where the plain model is kept."""
        return replace(self, evidence=self.plain, information_kept=1.0, is_undone=True)

    @property
    def kind(self) -> str:
        """Whether the rows are those that the model was fitted to."""
        return "training" if self.rows == TRAINED_ON else "held-out"

    @property
    def _error_rose(self) -> bool:
        """True if the error rose by more than one standard error."""
        return self.error[1] - self.error[0] > self.error_noise

    @property
    def is_harm(self) -> bool:
        """True if groups did not come closer, while the error rose or they parted."""
        before, after = self.rank_disparity
        return after >= before and (self._error_rose or after - before > _NOTICED * self.evidence.noise)

    @property
    def helps(self) -> bool:
        """True if groups that differed came closer; where the error rose, by more than chance alone shows."""
        before, after = self.rank_disparity
        return self.differed and before - after > (_NOTICED * self.evidence.noise if self._error_rose else 0.0)

    @property
    def is_above_chance(self) -> bool:
        """True if the disparity is above 1.5 times its noise floor.

        Rows in n parts, each scored by a model of its own, show n times the squared noise of all rows.
        """
        factor = np.sqrt((_ABOVE_FLOOR**2 - 1.0) / self.n_models + 1.0)
        return self.evidence.shows_difference and self.rank_disparity[1] > factor * self.evidence.floor

    def notice(self, owner: str, advice: str) -> Notice:
        """Say where error and disparity are no better than before, or where more than chance is left."""
        (before, after), found = self.rank_disparity, self.evidence
        shown, kept = ("", f". The plain model is kept{found.text}") if self.is_undone else (found.text, "")
        name, (quality, quality_after) = "the error rate", self.error
        if not self.classifies:
            name, (quality, quality_after) = "R squared", (1.0 - self.error[0], 1.0 - self.error[1])
        figures = (
            f"on {found.n_rows:,} {self.rows}, the mean rank disparity between groups goes from {before:.3f} to "
            f"{after:.3f}{shown}, and {name} from {quality:.3f} to {quality_after:.3f}{kept}"
        )
        where = ""
        if self.is_harm or self.is_undone:
            text = f"{owner} does not help"
        elif self.is_full and self.is_above_chance:
            text = f"After {_in_sentence(owner)}, the groups still differ by more than chance"
            where = f" on {self.kind} rows"
        elif self.information_kept < MIN_INFORMATION:
            text = f"{owner} keeps {max(self.information_kept, 0.0):.0%} of what the plain model explains"
            advice = "An amount below 1 keeps more."
        else:
            return Notice()
        return Notice(f"{_in_sentence(text)}{where}", ((f"{text}: {figures}. {advice}".strip(), FairnessWarning),))


def _in_sentence(text: str) -> str:
    """Return a sentence as a part of another one."""
    return text[:1].lower() + text[1:]


def describe_change(
    outcome: Notice, change: HeldOutChange, owner: str, advice: str, *, states_limit: bool = True
) -> Notice:
    """Add to an outcome what held-out rows show: harm, and where nothing was said of it yet, what is left."""
    is_said = any(category is FairnessWarning for _, category in outcome.warnings)
    notice, found = change.notice(owner, advice), change.evidence
    points = f"{100 * found.rate_limit:.1f} percentage points"
    if is_said and not (change.is_harm or change.is_undone):
        return outcome
    if not notice.text and change.is_full and states_limit:
        notice = Notice(f"groups differ by at most {points} (95 % confidence)")
        if not found.shows_parity:
            pooling = "; so does pooling small groups with groups=GroupPolicy(small='pool')"
            message = (
                f"Parity cannot be shown: the mean rank disparity of {found.n_rows:,} {change.rows} is "
                f"{found.disparity:.3f} (chance alone shows {found.floor:.3f}), and that of new rows may be up to "
                f"{found.limit:.3f} with 95 % confidence. A larger sample narrows this bound"
                f"{pooling if change.has_many_groups else ''}."
            )
            notice = Notice(
                f"{change.kind} rows cannot exclude a difference of {points} in selection rates",
                ((message, FairnessWarning),),
            )
    text = f"{outcome.text}; {notice.text}" if notice.text and not change.is_undone else outcome.text
    return Notice(text, (*outcome.warnings, *notice.warnings))


def repair_outcome(change: HeldOutChange, owner: str, advice: str) -> Notice:
    """Describe what became of the scores of a model that were repaired."""
    outcome = "the scores were repaired"
    if change.is_undone:
        outcome = (
            "the repair did not help on held-out rows; the plain model is kept" if change.differed else within_chance()
        )
    return describe_change(Notice(outcome), change, owner, advice)


def judged_pairs(pairs: Comparisons, min_size: int = MIN_GROUP_SIZE) -> Comparisons:
    """Leave groups with fewer than ``min_size`` rows out where two are larger: audits do not judge them."""
    judged = pairs.weights * (pairs.sizes >= min_size)[pairs.pairs].all(axis=1)
    return pairs.reweighted(judged) if judged.any() else pairs


def held_out_change(
    before: Floats,
    after: Floats,
    outcomes: Floats,
    pairs: Comparisons,
    *,
    classifies: bool,
    is_full: bool = True,
    rows: str = "rows that it was not fitted to",
    min_size: int = MIN_GROUP_SIZE,
    decisions: bool = False,
    parts: Ints | None = None,
    excess_noise: float = 1.0,
) -> HeldOutChange:
    """Compare two scores of the same rows, or their ``decisions`` at one half; ``outcomes`` are 0 and 1, or numbers.

    Disparities are those of the `judged_pairs`. Where each of the ``parts`` is scored by a model that was fitted to the
    others, groups are compared within them: what one part has more of than chance, models of the others have less of,
    so that all rows together look as those that a model was fitted to. Maps of a part's own size add the noise of a
    second sample (``excess_noise``).
    """
    pairs = judged_pairs(pairs, min_size)
    error, error_noise, squared = _error_change(before, after, outcomes, pairs, classifies=classifies)
    ranked, fitted = not pairs.strata, rows == TRAINED_ON  # or ranks are those within strata

    def ranks_of(scores: Floats) -> Floats:
        return _ranks((scores > 0.5).astype(np.float64) if decisions else scores, pairs)

    ranks, changed_ranks = ranks_of(before), ranks_of(after)
    within = pairs if parts is None else pairs.within(parts)
    chance, chance_of_changed = shown_by_chance(within, ranks, changed_ranks)
    start = parity_evidence(ranks, within, ranked=ranked, fitted=fitted and parts is None, chance=chance)
    plain = start if parts is None else parity_evidence(ranks, pairs, ranked=ranked, fitted=fitted)
    differed = groups_differ(before, pairs, ranks)
    changed = parity_evidence(
        changed_ranks, within, ranked=ranked, excess_noise=excess_noise, fitted=fitted, chance=chance_of_changed
    )
    return HeldOutChange(
        error=error,
        error_noise=error_noise,
        rank_disparity=(start.disparity, changed.disparity),
        differed=differed,
        plain=plain,
        evidence=changed,
        information_kept=share_kept(*squared),
        is_full=is_full,
        rows=rows,
        classifies=classifies,
        has_many_groups=_n_groups(pairs) > 2,
        n_models=1 if parts is None else np.unique(parts).size,
    )


def _error_change(
    before: Floats, after: Floats, outcomes: Floats, pairs: Comparisons, *, classifies: bool
) -> tuple[tuple[float, float], float, tuple[float, float]]:
    """Return both errors, the standard error of their difference, and both unexplained shares of the variance."""
    shares = np.ones(outcomes.size) if pairs.row_weights is None else pairs.row_weights
    total = shares.sum()
    shares = shares / total
    variance = float(shares @ (outcomes - shares @ outcomes) ** 2)
    squared = [float(shares @ (scores - outcomes) ** 2) / variance for scores in (before, after)]
    each = [(s > 0.5) != (outcomes > 0.5) if classifies else (s - outcomes) ** 2 / variance for s in (before, after)]
    error = float(shares @ each[0]), float(shares @ each[1])
    change = each[1].astype(float) - each[0]
    mean = float(shares @ change)
    squares = shares**2 if pairs.represented is None else pairs.represented.squares / total**2
    return error, float(np.sqrt(squares @ (change - mean) ** 2)), (squared[0], squared[1])


def _n_groups(pairs: Comparisons) -> int:
    """Return the number of groups that are compared; they have one cell in each stratum and label."""
    named = {name for name in pairs.names if name is not None}  # targets have no name
    return len(named) or len(pairs.cells)


def evaluated_change(evaluator: ScoreEvaluator, scores: Floats, **options: Any) -> HeldOutChange:
    """Compare scores of an evaluator's rows with those of its initial model, as `held_out_change` does."""
    response = evaluator.response
    return held_out_change(
        response.as_outcomes(evaluator.initial_scores), response.as_outcomes(scores), evaluator.outcomes,
        evaluator.comparisons.criterion, classifies=isinstance(response, ScoredClasses), **options,
    )  # fmt: skip
