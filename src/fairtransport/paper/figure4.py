"""Figure 4: COT and DOT keep adjusting while the level of unfairness changes.

Adult with sex as the sensitive attribute and the male outputs at theta* as target, fixed throughout. Training begins
on all training rows (.11 of the women in class 1) and moves every 5,000 updates to a new subset, in which the women
have the next rate of the paper's list; theta and the duals continue from their current values. Wass1 is
measured on test rows drawn at the same rate.

The paper lists twenty rates and says that training began on the original data and had 100,000 updates in all, which
leaves no updates for the last rate. We run all twenty after the original data: 105,000 updates. That the original data
come before the first rate of the list follows from the paper's panel (b): only then is the change at update 30,000 the
one from .1 to .4, as the text says.

Both methods are the paper's algorithm: transport only, constant steps, batches of 100. The paper's panel (b) has
two duals that are close to each other before the change and differ after it, so ours are free; opposite duals are
always mirror images. Free duals draw the outputs together, the more the larger the strength is, hence the small one
here. Steps and strength were chosen on training rows with two seeds. Mean Wass1 over the last 2,000 updates of a
segment, and the worst end of a segment (mean of 500 updates), from the third change on:

============= ======== ========= ============== ==== =====
method        strength dual step parameter step mean worst
============= ======== ========= ============== ==== =====
COT           .003     .1        .005           .015 .020
COT           .003     .1        .003           .015 .028
COT           .003     .03       .005           .014 .024
COT           .003     .03       .003           .014 .025
COT           .01      .1        .005           .015 .027
COT           .03      .1        .005           .024 .037
COT, opposite .1       1         .002           .011 .016
COT, opposite .1       1         .005           .013 .021
DOT                              .01            .013 .018
DOT                              .005           .013 .019
DOT                              .003           .015 .027
============= ======== ========= ============== ==== =====

Opposite duals do a little better, with a smaller step of theta. Free ones have the step that DOT has.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import load_extra
from fairtransport.paper._axes import start_figure
from fairtransport.paper._figure4_claims import figure4_claims, rate_text
from fairtransport.paper._figure4_runs import (
    AFTER,
    EVERY,
    GRID,
    LOW,
    METHODS,
    SHOWN,
    Runs,
    all_rates,
    gather_duals,
    part_name,
    parts,
    seeds,
)
from fairtransport.paper._published import three_digits
from fairtransport.paper.finding import Finding, Table
from fairtransport.report.style.colors import THEMES, GroupStyle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.paper._cached_parts import Result

__all__ = ["assemble", "parts"]

_STYLES = MappingProxyType({"COT": GroupStyle("#0072b2"), "DOT": GroupStyle("#d55e00", (3.0, 1.2))})


# ---------------------------------------------------------------- tables


def _numbers(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 5) for value in (values.mean(), values.min(), values.max()))


def _trace_table(runs: Mapping[str, Runs]) -> Table:
    rows = []
    for method, run in runs.items():
        for segment, rate in enumerate(all_rates()):
            for record, update in enumerate(run.update[segment]):
                wass1, error = run.wass1[:, segment, record], run.error[:, segment, record]
                spread = (*_numbers(wass1), round(float(error.mean()), 5))
                rows.append((method, segment, rate, int(update), *spread))
    head = ("method", "segment", "female_rate", "update", "wass1_mean", "wass1_min", "wass1_max", "error_mean")
    return Table(head, tuple(rows))


def _segment_table(runs: Mapping[str, Runs]) -> Table:
    rows = []
    for method, run in runs.items():
        for segment, rate in enumerate(all_rates()):
            kinds = (run.start, run.end, run.least, run.jitter, run.needed)
            numbers = (round(float(kind[:, segment].mean()), 5) for kind in kinds)
            worst = round(float(run.end[:, segment].max()), 5)
            rows.append((method, segment, rate, int(run.update[segment, 0]), *numbers, worst))
    head = ("start", "end", "least", "standard_deviation", "updates_until_low", "end_worst_seed")
    return Table(("method", "segment", "female_rate", "from_update", *head), tuple(rows))


def _short_table(runs: Mapping[str, Runs]) -> Table:
    rows = []
    for segment, rate in enumerate(all_rates()):
        cells = [f"{int(runs['COT'].update[segment, 0]):,}", rate_text(rate)]
        for method in METHODS:
            run = runs[method]
            cells += [three_digits(float(kind[:, segment].mean())) for kind in (run.start, run.end)]
        rows.append(tuple(cells))
    head = tuple(f"{method}: Wass1 {when}" for method in METHODS for when in ("at the change", "at the end"))
    return Table(("From update", "Female rate", *head), tuple(rows))


def _dual_table(duals: Mapping[str, NDArray[np.float64]]) -> Table:
    rows = []
    for when, pairs in duals.items():
        for seed, (group, target) in enumerate(pairs):
            for point, *values in zip(GRID, group, target, strict=True):
                rows.append((when, seed, round(float(point), 3), *(round(float(value), 5) for value in values)))
    return Table(("when", "seed", "score", "dual_of_women", "dual_of_target"), tuple(rows))


# ---------------------------------------------------------------- the figure


def _figure(runs: Mapping[str, Runs], duals: Mapping[str, NDArray[np.float64]]) -> Any:
    mpl = load_extra("matplotlib")
    figure, ((left, before, after),) = start_figure(1, 3, (11.8, 4.0), width_ratios=(3.5, 1, 1))
    before.sharey(after)
    with mpl.rc_context():
        mpl.rcdefaults()
        _draw_traces(left, runs)
        change = int(runs["COT"].update[SHOWN, 0])
        for axis, pairs in zip((before, after), duals.values(), strict=True):
            _draw_duals(axis, pairs)
            axis.set_xlabel("Model output", fontsize=9)
        before.set_ylabel("Value of the dual variable (women)", fontsize=9)
        before.set_title(f"(b) At update {change:,},\nbefore the change", fontsize=10, loc="left")
        after.set_title(f"{AFTER} updates\nafter the change", fontsize=10, loc="left")
        after.tick_params(labelleft=False)
        handles, labels = after.get_legend_handles_labels()
        options = {"frameon": False, "fontsize": 8.5, "handlelength": 3.0}
        figure.legend(handles, labels, loc="outside lower right", ncols=2, **options)
    return figure


def _draw_traces(axis: Any, runs: Mapping[str, Runs]) -> None:
    theme = THEMES["light"]
    axis.grid(visible=False, axis="x")
    for method, run in runs.items():
        style = _STYLES[method]
        thousands = run.update.ravel() / 1000
        mean, low, high = (pick(run.wass1, axis=0).ravel() for pick in (np.mean, np.min, np.max))
        dashes = (0, style.dashes) if style.dashes else "solid"
        axis.fill_between(thousands, low, high, color=style.colour, alpha=0.18, linewidth=0)
        axis.plot(
            thousands,
            mean,
            color=style.colour,
            linestyle=dashes,
            linewidth=1.3,
            label=method,
            zorder=5 if style.dashes else 4,
        )
    axis.axhline(LOW, color=theme.quiet, linewidth=0.8, linestyle=(0, (1.0, 2.0)), zorder=2)
    changes = runs["COT"].update[:, 0] / 1000
    end = float(runs["COT"].update[-1, -1]) / 1000
    for change in changes[1:]:
        axis.axvline(change, color=theme.line, linewidth=0.8, zorder=1)
    for begin, close, rate in zip(changes, (*changes[1:], end), all_rates(), strict=True):
        anchor = {"transform": axis.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axis.text(0.5 * (begin + close), 1.01, rate_text(rate), fontsize=8.5, color=theme.ink, **anchor)
    axis.set_title("(a) Share of women in class 1, changing:", fontsize=10, loc="left", pad=18)
    axis.set_xlim(0, end)
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_locator(load_extra("matplotlib.ticker").MultipleLocator(0.05))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.2f}".removeprefix("0") if value else "0")
    axis.set_xlabel("Updates, in thousands", fontsize=9)
    axis.set_ylabel("Wasserstein-1 distance to the target\n(Wass1, test rows)", fontsize=9)
    axis.legend(fontsize=9, frameon=False, loc="upper right", ncols=2, handlelength=3.0)


def _draw_duals(axis: Any, pairs: NDArray[np.float64]) -> None:
    theme = THEMES["light"]
    axis.axhline(0.0, color=theme.quiet, linewidth=0.8, zorder=2)
    kinds = (("women's outputs", "#0072b2", "solid", "o"), ("target", "#8c8c8c", (0, (4.0, 1.6)), "s"))
    for number, (label, colour, dashes, marker) in enumerate(kinds):
        curves = pairs[:, number]
        axis.fill_between(GRID, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.25, linewidth=0)
        line = {"color": colour, "linestyle": dashes, "linewidth": 1.7, "marker": marker, "markersize": 4.5}
        axis.plot(
            GRID, curves.mean(axis=0), markevery=(8 + 8 * number, 20), label=f"dual of the {label}", zorder=4, **line
        )
    axis.set_xlim(0, 1)
    axis.set_xticks((0, 0.5, 1), ("0", ".5", "1"))


def assemble(results: Mapping[str, Result], *, quick: bool) -> Finding:
    """Draw Figure 4 and check the paper's claims about it; see `fairtransport.paper.finding.Item`."""
    runs = {
        method: Runs.gather([results[part_name(method, seed)] for seed in seeds(quick=quick)]) for method in METHODS
    }
    duals = gather_duals(results, quick=quick)
    several = len(seeds(quick=quick)) > 1
    spread = f" Lines are means, bands lowest to highest, over {len(seeds(quick=quick))} seeds." if several else ""
    return Finding(
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
        claims=figure4_claims(runs, duals),
    )
