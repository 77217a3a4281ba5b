"""Figure 4: COT and DOT keep adjusting while the level of unfairness changes.

Adult with sex as the sensitive attribute and the male outputs at theta* as target, fixed throughout. Training begins
on all training rows (.11 of the women in class 1) and moves every 5,000 updates to a new subset, in which the women
have the next rate of the paper's list; theta and the duals continue from their current values. Wass1 is
measured on test rows drawn at the same rate. Both methods are the paper's algorithm, with free duals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport.linear import Trainer
from fairtransport.linear.sgd_solver import TrainingProblem
from fairtransport.paper import _drawing as drawing
from fairtransport.paper import finding
from fairtransport.paper._methods import DUALS, Evaluator, averaged_iterates, paper_classifier, three_digits
from fairtransport.paper.splits import Split, adult_by_sex, rows_at_rates
from fairtransport.report.style.figures import GroupStyle

# Shares of women in class 1: of the original data, roughly, and then the paper's list.
ORIGINAL = 0.1
_RATES = (0.2, 0.3, 0.3, 0.4, 0.1, 0.4, 0.3, 0.2, 0.2, 0.3, 0.3, 0.4, 0.1, 0.4, 0.3, 0.2, 0.2, 0.3, 0.3, 0.4)
METHODS = ("COT", "DOT")
_BATCH = 100
_COT = {**DUALS, "strength": 0.003, "opposite_duals": False, "dual_step": 0.1}
SEGMENT, _QUICK_SEGMENT = 5_000, 1_500  # updates
_STEP, _QUICK_STEP = 0.005, 0.012  # of theta
EVERY = 50  # updates between two records
_SEEDS, _QUICK_SEEDS = 3, 1
AFTER = 200  # updates after a change at which the duals are looked at again
GRID = np.linspace(0.0, 1.0, 101)

SETTLED = 3  # the segment that begins with the third change
END = 10  # records that make a segment's end
LOW = 0.03
SHOWN = 6  # the segment that begins at update 30,000
_JUMP = 0.10
_SIMILAR = 0.01
_STYLES = {"COT": GroupStyle("#0072b2"), "DOT": GroupStyle("#d55e00", (3.0, 1.2))}


@lru_cache(maxsize=1)
def _start() -> Any:
    """Return theta*, scikit-learn's logistic regression with its default C."""
    split = adult_by_sex()
    return LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)


def _evaluator(split: Split, rate: float | None, target: Floats) -> Evaluator:
    """Return an evaluator on test rows at a rate, the same rows for the same rate; all rows for the original data."""
    if rate is None:
        return Evaluator.build(split.X_test, split.y_test, split.sensitive_test, target)
    return Evaluator.at_rates(split, {"Female": rate}, target, np.random.default_rng(round(1000 * rate)))


def _problem(split: Split, rate: float, target: Floats, rng: np.random.Generator) -> TrainingProblem:
    """Return the problem of training rows at a rate, with the same columns, groups and target."""
    rows = rows_at_rates(split.y_train, split.sensitive_train["sex"], {"Female": rate}, rng)
    return TrainingProblem.build(
        split.X_train[rows], split.y_train[rows], split.groups_train.select(rows), target, None
    )


def _duals(trainer: Trainer) -> Floats:
    """Tabulate the women's dual variable and the target's in their problem over [0, 1]; DOT has none."""
    if trainer.objective.dual is None:
        return np.zeros((2, GRID.size))
    woman = trainer.problem.groups.index_of("Female")
    return np.array([trainer.duals[woman], trainer.target_duals[woman]]) @ trainer.objective.dual.features(GRID).T


def _adapt(settings: Mapping[str, Any], stop: finding.Stop) -> finding.Result:
    """Train through all segments and measure on test rows."""
    split, parameters = adult_by_sex(), dict(settings)
    method, rates, segment, every = (parameters.pop(key) for key in ("method", "rates", "segment", "every"))
    seed, after = parameters.pop("seed"), parameters.pop("after")
    model = paper_classifier(method, _start(), seed, {"target": "Male", **parameters})
    stop.check()
    trainer = model.make_trainer(split.X_train, split.y_train, sensitive_features=split.sensitive_train)
    evaluators = {rate: _evaluator(split, rate, model.target_) for rate in (None, *dict.fromkeys(rates))}
    records, duals = [], []
    for number, rate in enumerate((None, *rates)):
        stop.check()
        if rate is not None:
            trainer.switch(_problem(split, rate, model.target_, np.random.default_rng([seed, number])))
        begin = trainer.done
        records.append([(begin, *evaluators[rate].measure(trainer.theta))])
        soon = _duals(trainer)
        for _, mean in averaged_iterates(trainer, segment, every, stop):
            records[-1].append((trainer.done, *evaluators[rate].measure(mean)))
            if trainer.done <= begin + after:
                soon = _duals(trainer)
        duals.append((soon, _duals(trainer)))
    update, wass1, error = np.moveaxis(np.array(records), -1, 0)
    return {"update": update, "wass1": wass1, "error": error, "duals": np.array(duals)}


def parts(*, quick: bool) -> list[finding.Part]:
    """Return one training run for each method and seed; fewer and shorter with ``quick``."""
    segment, step, n_seeds = (_QUICK_SEGMENT, _QUICK_STEP, _QUICK_SEEDS) if quick else (SEGMENT, _STEP, _SEEDS)
    cost = 1.5e-4 * segment * (1 + len(_RATES))
    runs = []
    for method in METHODS:
        settings = {
            "method": method,
            "rates": list(_RATES),
            "segment": segment,
            "every": EVERY,
            "after": AFTER,
            "batch_size": _BATCH,
            "parameter_step": step,
            **(_COT if method == "COT" else {}),
        }
        runs += finding.seeded_parts(f"figure4-{method}", settings, _adapt, n_seeds=n_seeds, cost=cost)
    return runs


class _Runs(NamedTuple):
    """All seeds of one method: updates by segment and record, Wass1 and error by seed, segment and record.

    The others are by seed and segment: Wass1 just after a change, the mean of the last records, the minimum, the
    standard deviation over the second half, and the updates until Wass1 is low, all of them where it never is.
    """

    update: Floats
    wass1: Floats
    error: Floats
    start: Floats
    end: Floats
    least: Floats
    jitter: Floats
    needed: Floats

    @classmethod
    def of(cls, results: finding.Result) -> _Runs:
        update, wass1 = results["update"][0], results["wass1"]
        low = wass1 <= LOW
        needed = (update - update[:, :1])[0][np.where(low.any(axis=2), low.argmax(axis=2), low.shape[2] - 1)]
        end, late = wass1[:, :, -END:].mean(axis=2), wass1[:, :, wass1.shape[2] // 2 :]
        spread = (wass1.min(axis=2), late.std(axis=2))
        return cls(update, wass1, results["error"], wass1[:, :, 0], end, *spread, needed)


_AllRuns = dict[str, _Runs]


def all_rates() -> tuple[float, ...]:
    """Return the share of women in class 1 of each segment: the original data, then the paper's list."""
    return (ORIGINAL, *_RATES)


def _segments_at(rate: float) -> list[int]:
    """Return the segments with a rate, in order."""
    return [segment for segment, other in enumerate(all_rates()) if other == rate]


def jumps() -> list[int]:
    """Return the segments that begin with the change from .1 to .4."""
    return [before + 1 for before, change in enumerate(pairwise(all_rates())) if change == (0.1, 0.4)]


def _shown_duals(duals: Floats) -> dict[str, Floats]:
    """Return the duals at the change that the paper shows; arrays of shape (seeds, 2, grid).

    A constant moved from one dual to the other changes nothing, so both are shifted to the same mean over [0, 1].
    """
    shifted = duals + (duals.mean(axis=(3, 4), keepdims=True) - duals.mean(axis=4, keepdims=True))
    return {"before": shifted[:, SHOWN - 1, 1], "after": shifted[:, SHOWN, 0]}


def _rate_text(rate: float) -> str:
    """Return a rate as the paper prints it."""
    return f"{rate:.1f}".removeprefix("0")


def _run_claims(runs: _AllRuns) -> Iterator[finding.Claim]:
    """Check the claims about Wass1 along the updates."""
    for method, run in runs.items():
        end, last = run.end[:, SETTLED:], run.wass1[:, SETTLED:, -1]
        yield finding.check(
            f"{method} adapts to every new level of unfairness.",
            f"from the third change on, segments end at Wass1 {three_digits(end.mean())} on average and "
            f"{three_digits(end.max())} at most; single last records at {three_digits(last.max())} at most",
            f"Decided by {three_digits(LOW)} or less at the end of every such segment with every seed, the mean of the "
            f"last {END} records.",
            holds=end.max() <= LOW,
        )
    starts = {method: run.start[:, jumps()] for method, run in runs.items()}
    least = min(start.min() for start in starts.values())
    yield finding.check(
        "The change from .1 to .4 makes a fair model unfair.",
        "Wass1 just after it: " + ", ".join(f"{name} {three_digits(start.mean())}" for name, start in starts.items()),
        f"Decided by Wass1 above {three_digits(_JUMP)} each time with every seed; the least is {three_digits(least)}.",
        holds=least > _JUMP,
    )
    cot, dot = (runs[method] for method in METHODS)
    gap = np.abs(cot.wass1.mean(axis=0) - dot.wass1.mean(axis=0))[SETTLED:].mean()
    yield finding.check(
        "COT and DOT behave very similarly.",
        f"from the third change on their Wass1 differ by {three_digits(gap)} on average",
        f"Decided by {three_digits(_SIMILAR)} or less.",
        holds=gap <= _SIMILAR,
    )
    of_cot, of_dot = (run.jitter[:, SETTLED:].mean() for run in (cot, dot))
    deviations = f"DOT {of_dot:.4f}, COT {of_cot:.4f}".replace("0.", ".")
    yield finding.check(
        "DOT is more stable than COT.",
        f"standard deviation of Wass1 over the second half of a segment: {deviations}",
        "Decided by the means over all segments from the third change on; both have the same step and batch size.",
        holds=of_dot < of_cot,
    )


def _progress_claims(runs: _AllRuns) -> Iterator[finding.Claim]:
    """Check the claims that compare early segments with later ones at the same rate."""
    first, *later = _segments_at(ORIGINAL)
    lines, holds = [], True
    for method, run in runs.items():
        mean, needed = run.wass1.mean(axis=(0, 2)), run.needed.mean(axis=0)
        holds &= bool(mean[first] > max(mean[later]) and needed[first] > max(needed[later]))
        updates = ", ".join(f"{needed[segment]:,.0f}" for segment in (first, *later))
        means = ", ".join(three_digits(mean[segment]) for segment in (first, *later))
        lines.append(f"{method} {updates} updates (mean Wass1 of the segment {means})")
    yield finding.check(
        "At rate .1 Wass1 is higher early in training than later, and needs more updates to become low.",
        f"until Wass1 is {three_digits(LOW)}, the first time and later: {'; '.join(lines)}",
        "Decided by both figures, the first segment against each later one, for both methods.",
        holds=holds,
    )
    rates = sorted(set(all_rates()))
    lines, holds, lower = [], True, 0
    for method, run in runs.items():
        least = run.least.mean(axis=0)
        ends = np.array([[least[_segments_at(rate)[end]] for end in (0, -1)] for rate in rates])
        holds &= bool(ends[:, 1].mean() < ends[:, 0].mean())
        lower += int((ends[:, 1] < ends[:, 0]).sum())
        pairs = zip(map(_rate_text, rates), ends, strict=True)
        lines.append(f"{method} " + ", ".join(f"{r}: {three_digits(a)} to {three_digits(b)}" for r, (a, b) in pairs))
    yield finding.check(
        "The minimum of Wass1 decreases with progress.",
        f"the first and the last segment of each rate: {'; '.join(lines)}",
        f"Decided by the mean over the rates, for both methods; it is lower at {lower} of {len(runs) * len(rates)} "
        "single ones.",
        holds=holds,
    )


def _dual_claims(duals: Mapping[str, Floats], change: int) -> Iterator[finding.Claim]:
    """Check the claims about the duals before and after the change."""
    size = {when: np.abs(pairs).max(axis=(1, 2)) for when, pairs in duals.items()}
    gaps = {when: np.abs(pairs[:, 0] - pairs[:, 1]) for when, pairs in duals.items()}
    gap = {when: gaps[when].max(axis=1) for when in duals}
    yield finding.check(
        "Just before a change from .1 to .4 the two duals are small and close to each other, soon after it they are "
        "larger.",
        f"at update {change:,}: largest value {size['before'].mean():.2f} before, {size['after'].mean():.2f} after; "
        f"largest distance of the two {gap['before'].mean():.2f} before, {gap['after'].mean():.2f} after",
        "Decided by more of both with every seed, and twice as much on average; rounding, which differs between "
        "processors, moves single runs.",
        holds=all(
            (two["after"] > two["before"]).all() and two["after"].mean() >= 2.0 * two["before"].mean()
            for two in (size, gap)
        ),
        paper="shown at update 30,000",
    )
    outer = np.abs(GRID - 0.5) >= 0.3
    ends, middle = gaps["after"][:, outer].mean(axis=1), gaps["after"][:, ~outer].mean(axis=1)
    yield finding.check(
        "After the change the two duals differ mostly at the extremes of [0, 1].",
        f"mean distance of the two {ends.mean():.2f} below .2 and above .8, {middle.mean():.2f} in between",
        "Decided with every seed.",
        holds=(ends > middle).all(),
    )


def _trace_table(runs: _AllRuns) -> finding.Table:
    rows = []
    for (method, run), (segment, rate) in product(runs.items(), enumerate(all_rates())):
        for record, update in enumerate(run.update[segment]):
            wass1, error = run.wass1[:, segment, record], run.error[:, segment, record]
            rows.append((method, segment, rate, int(update), *finding.spread_of(wass1), *finding.rounded(error.mean())))
    head = ("method", "segment", "female_rate", "update", "wass1_mean", "wass1_min", "wass1_max", "error_mean")
    return finding.Table(head, tuple(rows))


def _segment_table(runs: _AllRuns) -> finding.Table:
    rows = []
    for (method, run), (segment, rate) in product(runs.items(), enumerate(all_rates())):
        means = (kind[:, segment].mean() for kind in (run.start, run.end, run.least, run.jitter, run.needed))
        begin = int(run.update[segment, 0])
        rows.append((method, segment, rate, begin, *finding.rounded(*means, run.end[:, segment].max())))
    head = ("start", "end", "least", "standard_deviation", "updates_until_low", "end_worst_seed")
    return finding.Table(("method", "segment", "female_rate", "from_update", *head), tuple(rows))


def _short_table(runs: _AllRuns) -> finding.Table:
    rows = []
    for segment, rate in enumerate(all_rates()):
        means = (kind[:, segment].mean() for method in METHODS for kind in (runs[method].start, runs[method].end))
        begin = f"{int(runs['COT'].update[segment, 0]):,}"
        rows.append((begin, _rate_text(rate), *map(three_digits, means)))
    head = tuple(f"{method}: Wass1 {when}" for method in METHODS for when in ("at the change", "at the end"))
    return finding.Table(("From update", "Female rate", *head), tuple(rows))


def _dual_table(duals: Mapping[str, Floats]) -> finding.Table:
    rows = [
        (when, seed, round(float(point), 3), *finding.rounded(*values))
        for when, pairs in duals.items()
        for seed, pair in enumerate(pairs)
        for point, *values in zip(GRID, *pair, strict=True)
    ]
    return finding.Table(("when", "seed", "score", "dual_of_women", "dual_of_target"), tuple(rows))


@drawing.default_style()
def _figure(runs: _AllRuns, duals: Mapping[str, Floats]) -> Any:
    figure, ((left, before, after),) = drawing.start_figure(1, 3, (11.8, 4.0), width_ratios=(3.5, 1, 1))
    before.sharey(after)
    _draw_traces(left, runs)
    change = int(runs["COT"].update[SHOWN, 0])
    for axis, pairs in zip((before, after), duals.values(), strict=True):
        _draw_duals(axis, pairs)
        drawing.label(axis, x="Model output")
    title = f"(b) At update {change:,},\nbefore the change"
    drawing.label(before, title=title, y="Value of the dual variable (women)")
    drawing.label(after, title=f"{AFTER} updates\nafter the change")
    after.tick_params(labelleft=False)
    entries = after.get_legend_handles_labels()
    drawing.add_legend(figure, "outside lower right", entries=entries, ncols=2, handlelength=3.0)
    return figure


def _draw_traces(axis: Any, runs: _AllRuns) -> None:
    theme, update = drawing.THEME, runs["COT"].update / 1000
    axis.grid(visible=False, axis="x")
    for method, run in runs.items():
        wass1, style = run.wass1.reshape(len(run.wass1), -1), _STYLES[method]
        line = {"linewidth": 1.3, "label": method, "zorder": 5 if style.dashes else 4}
        drawing.draw_seeds(axis, run.update.ravel() / 1000, wass1, style, alpha=0.18, **line)
    axis.axhline(LOW, color=theme.quiet, linewidth=0.8, linestyle=(0, (1.0, 2.0)), zorder=2)
    changes = [*update[:, 0], update[-1, -1]]
    for change in changes[1:-1]:
        axis.axvline(change, color=theme.line, linewidth=0.8, zorder=1)
    for (begin, close), rate in zip(pairwise(changes), all_rates(), strict=True):
        anchor = {"transform": axis.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axis.text(0.5 * (begin + close), 1.01, _rate_text(rate), fontsize=8.5, color=theme.ink, **anchor)
    axis.set_title("(a) Share of women in class 1, changing:", fontsize=10, loc="left", pad=18)
    axis.set_xlim(0, changes[-1])
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_locator(load_extra("matplotlib.ticker").MultipleLocator(0.05))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.2f}".removeprefix("0") if value else "0")
    drawing.label(axis, x="Updates, in thousands", y="Wasserstein-1 distance to the target\n(Wass1, test rows)")
    drawing.add_legend(axis, "upper right", size=9, ncols=2, handlelength=3.0)


def _draw_duals(axis: Any, pairs: Floats) -> None:
    axis.axhline(0.0, color=drawing.THEME.quiet, linewidth=0.8, zorder=2)
    kinds = (("women's outputs", GroupStyle("#0072b2"), "o"), ("target", GroupStyle("#8c8c8c", (4.0, 1.6)), "s"))
    for number, (name, style, marker) in enumerate(kinds):
        line = {"linewidth": 1.7, "marker": marker, "markersize": 4.5, "markevery": (8 + 8 * number, 20), "zorder": 4}
        label = f"dual of the {name}"
        drawing.draw_seeds(axis, GRID, pairs[:, number], style, alpha=0.25, label=label, **line)
    axis.set_xlim(0, 1)
    axis.set_xticks((0, 0.5, 1), ("0", ".5", "1"))


def assemble(results: Mapping[str, finding.Result], *, quick: bool) -> finding.Finding:
    """Draw Figure 4 and check the paper's claims about it."""
    stacked = {method: finding.stack_seeds(results, f"figure4-{method}") for method in METHODS}
    runs = {method: _Runs.of(run) for method, run in stacked.items()}
    duals = _shown_duals(stacked["COT"]["duals"])
    n_seeds = _QUICK_SEEDS if quick else _SEEDS
    spread = f" Lines are means, bands lowest to highest, over {n_seeds} seeds." if n_seeds > 1 else ""
    return finding.Finding(
        "figure4",
        "Figure 4: continual adjustment",
        "Adult, test rows at the rate that training has. (a) Wass1 to the fixed target (male outputs at theta*) every "
        f"{EVERY} updates; the share of women in class 1 changes every {int(runs['COT'].update[1, 0]):,} updates and "
        "is written above; the first segment is the original data, the twenty others the paper's list. Dotted: Wass1 "
        f"{three_digits(LOW)}. (b) COT's dual variables for women just before the change from .1 to .4 and "
        f"{AFTER} updates later, drawn with equal means, because a constant moved from one to the other changes "
        f"nothing.{spread}",
        figures={"figure4": _figure(runs, duals)},
        tables={
            "figure4": _trace_table(runs),
            "figure4-segments": _segment_table(runs),
            "figure4-duals": _dual_table(duals),
        },
        shown={"figure4": _short_table(runs)},
        claims=(*_run_claims(runs), *_progress_claims(runs), *_dual_claims(duals, int(runs["COT"].update[SHOWN, 0]))),
    )
