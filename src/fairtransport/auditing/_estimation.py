"""Evidence -> Audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.auditing._coarse_histograms import MOST_NODES, thin
from fairtransport.auditing._confidence_intervals import Block, find_truths
from fairtransport.auditing._disparity_norms import make_yardsticks
from fairtransport.auditing._dkw_bounds import distribution_free_margins
from fairtransport.auditing._evidence import EVERYONE
from fairtransport.auditing._pair_summary import pair_summary
from fairtransport.auditing._permutation_test import noise_floors
from fairtransport.auditing._small_groups import SmallGroups
from fairtransport.auditing.proportions import area_under_curve, difference, ratio, share
from fairtransport.auditing.result import QUANTILE_LEVELS, Audit, GroupSummary, Reading, Settings, ThresholdSummary
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import TARGET_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._disparity_norms import Yardstick
    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing._pair_summary import PairSummary
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.result import StratumSummary
    from fairtransport.histograms import GroupHistograms
    from fairtransport.metrics import NoiseFloor

__all__ = ["assemble", "make_block", "read_blocks"]

_MOST_NUMBERS = 1 << 14  # nodes times groups: many groups get fewer nodes each
_FEWEST_NODES = 16
_WORDS = dict(
    zip(
        TARGET_WORDS,
        ("the groups' Wasserstein-1 barycenter", "the groups' Wasserstein-2 barycenter", "everyone"),
        strict=True,
    )
)


def assemble(
    evidence: Evidence,
    options: Options,
    rng: np.random.Generator,
    *,
    strata: tuple[Sequence[StratumSummary], Mapping[str, Reading]] = ((), {}),
    set_aside: Mapping[str, int] | None = None,
    small_groups: SmallGroups | None = None,
) -> Audit:
    """Read every figure from the evidence.

    Parameters
    ----------
    evidence : Evidence
    options : Options
    rng : numpy.random.Generator
    strata : pair
        Summaries of the strata, and the readings within them.
    set_aside : dict of str to int, optional
        Rows that were not counted, by reason.
    small_groups : SmallGroups, optional
        What was done with groups of few rows.

    Returns
    -------
    Audit
    """
    histograms = evidence.histograms
    unsure = histograms.effective_sizes < options.unsure_below
    block = make_block(histograms, make_yardsticks(histograms, options.target))
    values = evidence.disparities(options.target)
    readings = read_blocks([block], [values], noise_floors([block], options.n_permutations, rng), options, rng)
    resolution = {} if evidence.exact else histograms.bounds()
    margins = distribution_free_margins(
        block.yardsticks, histograms.effective_sizes, histograms.weights, options.confidence
    )
    finished = {
        name: Reading(**{**vars(reading), "margin": margins[name], "resolution": resolution.get(name, 0.0)})
        for name, reading in readings.items()
    }
    if histograms.has_labels:
        finished = {"error_rate": _error_reading(evidence, options), **finished}
    distances = evidence.distances()
    return Audit(
        groups=tuple(_group(evidence, place, options, unsure=bool(unsure[place])) for place in range(len(unsure))),
        readings=finished,
        thresholds=tuple(_threshold(evidence, cut, options, unsure) for cut in options.thresholds),
        distances=distances,
        farthest=_farthest(evidence, distances, unsure),
        auc=_auc(evidence, EVERYONE, options) if histograms.has_labels else None,
        strata=tuple(strata[0]),
        conditional=strata[1],
        histograms=histograms,
        settings=_settings(evidence, options, block, set_aside or {}, small_groups or SmallGroups()),
    )


def make_block(histograms: GroupHistograms, yardsticks: tuple[Yardstick, ...], *, n_blocks: int = 1) -> Block:
    """Return the histograms on few nodes, fewer where there are many groups or blocks, to be measured."""
    most = int(np.clip(_MOST_NUMBERS // (len(histograms.rows) * n_blocks), _FEWEST_NODES, MOST_NODES))
    return Block(thin(histograms, most), yardsticks)


def read_blocks(
    blocks: Sequence[Block],
    values: Sequence[Mapping[str, float]],
    floors: Mapping[str, NoiseFloor],
    options: Options,
    rng: np.random.Generator,
) -> dict[str, Reading]:
    """Return the sum over blocks of each metric, by weight, with interval, floor and p-value.

    Parameters
    ----------
    blocks : sequence of Block
    values : sequence of dict
        The metrics of each block, as exact as they are known.
    floors : dict of str to NoiseFloor
        Of the sums.
    options : Options
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to Reading
        Without distribution-free margins (infinite).
    """
    truths = find_truths(blocks, options.n_bootstrap, rng)
    readings = {}
    for name, found in truths.items():
        low, high = found.interval(options.confidence)
        floor = floors[name]
        value = float(sum(block.weight * value[name] for block, value in zip(blocks, values, strict=True)))
        missed = value - floor.observed  # by the few bins that noise is drawn in
        if floor.p_value > (1 - options.confidence) / 2:  # the permutation test is exact, and sees no difference
            low = 0.0
        readings[name] = Reading(
            value=value,
            low=_shift(low, missed),
            high=_shift(high, missed),
            corrected=_shift(found.middle, missed),
            margin=float("inf"),
            floor=floor.mean,
            p_value=floor.p_value,
        )
    return readings


def _shift(truth: float, missed: float) -> float:
    """Move a truth by what the few bins missed; none stays none."""
    return max(0.0, truth + missed) if truth > 0 else 0.0


def _error_reading(evidence: Evidence, options: Options) -> Reading:
    tally = evidence.wrong(options.unit_thresholds[0], EVERYONE)
    found = share(tally, options.confidence)
    size = tally.total**2 / (tally.inside_squares + tally.outside_squares)
    margin = float(np.sqrt(np.log(2 / (1 - options.confidence)) / (2 * size)))
    return Reading(found.value, found.low, found.high, corrected=found.value, margin=margin)


def _group(evidence: Evidence, place: int, options: Options, *, unsure: bool) -> GroupSummary:
    histograms = evidence.histograms
    sample = evidence.sample(place)
    labelled = histograms.has_labels
    return GroupSummary(
        name=histograms.groups.names[place],
        rows=int(histograms.group_rows[place]),
        weight=float(histograms.weights[place]),
        effective_rows=float(histograms.effective_sizes[place]),
        unsure=unsure,
        mean=float(histograms.grid.from_unit(sample.mean)),
        quantiles=tuple(histograms.grid.from_unit(sample.quantile(QUANTILE_LEVELS)).tolist()),
        distance_to_everyone=wasserstein(sample, evidence.sample(EVERYONE)),
        error=share(evidence.wrong(options.unit_thresholds[0], place), options.confidence) if labelled else None,
        auc=_auc(evidence, place, options) if labelled else None,
    )


def _auc(evidence: Evidence, group: int, options: Options) -> Estimate | None:
    histograms = evidence.histograms
    if group == EVERYONE:
        masses, squares = histograms.masses, histograms.masses if histograms.squares is None else histograms.squares
        held, held_squares = masses.sum(axis=(1, 2)), squares.sum(axis=(1, 2))
    else:
        held = histograms.by_class[:, group].sum(axis=1)
        held_squares = histograms.squares_by_class[:, group].sum(axis=1)
    sizes = np.divide(held**2, held_squares, out=np.zeros(2), where=held_squares > 0)
    classes = evidence.class_sample(0, group), evidence.class_sample(1, group)
    return area_under_curve(*classes, (float(sizes[0]), float(sizes[1])), options.confidence)


def _threshold(evidence: Evidence, cut: float, options: Options, unsure: NDArray[np.bool_]) -> ThresholdSummary:
    at = float(evidence.histograms.grid.to_unit(cut))
    places = range(len(unsure))
    rates = tuple(share(evidence.selected(at, place), options.confidence) for place in places)
    values = np.array([rate.value for rate in rates])
    judged = _judged(unsure)
    lowest, highest = int(judged[np.argmin(values[judged])]), int(judged[np.argmax(values[judged])])
    top = values[highest]
    found = ratio(rates[lowest], rates[highest])
    errors = None
    if evidence.histograms.has_labels:
        errors = tuple(share(evidence.wrong(at, place), options.confidence) for place in places)
    return ThresholdSummary(
        threshold=float(cut),
        rates=rates,
        overall=evidence.selected(at, EVERYONE).value,
        ratios=tuple(float(value / top) if top > 0 else None for value in values),
        lowest=lowest,
        highest=highest,
        difference=difference(rates[highest], rates[lowest]),
        ratio=found,
        four_fifths=bool(found.value >= 0.8) if top > 0 else None,
        sure=bool(top > 0 and (found.low >= 0.8 or found.high < 0.8)),
        errors=errors,
    )


def _judged(unsure: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the groups that are judged: those that are sure, or all where fewer than two are."""
    sure = np.flatnonzero(~unsure)
    return sure if sure.size >= 2 else np.arange(unsure.size)


def _farthest(evidence: Evidence, distances: NDArray[np.float64], unsure: NDArray[np.bool_]) -> PairSummary:
    judged = _judged(unsure)
    among = distances[np.ix_(judged, judged)]
    one, other = (int(judged[place]) for place in np.unravel_index(int(np.argmax(among)), among.shape))
    if one == other:  # all alike
        one, other = int(judged[0]), int(judged[1])
    return pair_summary(evidence.histograms, one, other, float(distances[one, other]))


def _settings(
    evidence: Evidence, options: Options, block: Block, set_aside: Mapping[str, int], small_groups: SmallGroups
) -> Settings:
    histograms = evidence.histograms
    return Settings(
        target=_say_target(options.target, histograms.groups.names, block.yardsticks[0].group),
        confidence=options.confidence,
        n_bootstrap=options.n_bootstrap,
        n_permutations=options.n_permutations,
        exact=evidence.exact,
        n_bins=histograms.grid.n_bins,
        range=(histograms.grid.low, histograms.grid.high),
        columns=histograms.groups.columns,
        weighted=histograms.squares is not None,
        null="shuffled" if block.thinned.can_shuffle else "redrawn",
        n_nodes=block.thinned.nodes.size,
        unsure_below=options.unsure_below,
        set_aside=dict(set_aside),
        small_groups=small_groups,
    )


def _say_target(target: Any, names: Iterable[str], group: int) -> str:
    if isinstance(target, str) and target in _WORDS:
        return _WORDS[target]
    if group >= 0:
        return f"the scores of {list(names)[group]}"
    return f"a distribution of {len(target)} values" if isinstance(target, (Sample, list, np.ndarray)) else "given"
