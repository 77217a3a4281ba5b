"""Figure of the score distributions of groups: one column of panels for each method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport._validation import check_choice
from fairtransport.groups import Groups
from fairtransport.report._comparison import Comparison, MethodOutcome
from fairtransport.report.displays._base import GroupLines, line_options, plain_legend
from fairtransport.report.style.figures import RC_PARAMS, THEMES, Theme, add_grid, group_styles

# Legend above the panels of methods: groups with their numbers of rows, and the target.

_CHAR_WIDTH, _HANDLE_WIDTH, _COLUMN_GAP = 0.075, 0.42, 0.175  # inches


def _legend_entries(groups: Groups, theme: Theme) -> list[tuple[Any, str]]:
    """List the groups with a style of their own, the others as one, and the target."""
    drawn = GroupLines(groups, groups.counts)
    drawn.lines = [load_extra("matplotlib.lines").Line2D([], [], **line_options(style)) for style in drawn.styles]
    target = load_extra("matplotlib.patches").Patch(facecolor=theme.target, edgecolor=theme.line)
    return [*drawn.entries(40), (target, "Target")]


def legend_columns(labels: Sequence[str], width: float) -> int:
    """Return the largest number of columns, at most five, that fit side by side."""
    sizes = np.array([len(label) + 0.25 * sum(map(str.isupper, label)) for label in labels])
    for columns in range(min(5, sizes.size), 1, -1):
        chars = sum(float(column.max()) for column in np.array_split(sizes, columns))
        if _CHAR_WIDTH * chars + _HANDLE_WIDTH * columns + _COLUMN_GAP * (columns - 1) <= width:
            return columns
    return 1


# Closer near 0, where most scores are.
_THRESHOLDS = np.linspace(0.0, 1.0, 161) ** 1.6
_MAX_WIDE_METHODS = 5  # more do not fit side by side
_LEGEND_LINE = 0.21  # height of a line of the legend, in inches


def distribution_figure(comparison: Comparison, *, layout: str = "wide", theme: str = "light") -> Any:
    """Draw the score distribution of each group over the target, for each method.

    Notes
    -----
    Under strong demographic parity all lines coincide. The area between the line of a group and that of the target is
    their Wasserstein-1 distance, so the lower panels show the terms of
    `fairtransport.metrics.wasserstein_disparity`.
    """
    check_choice(layout, ("wide", "tall"), name="layout")
    check_choice(theme, tuple(THEMES), name="theme")
    mpl = load_extra("matplotlib")
    n_methods = len(comparison.outcomes)
    wide = layout == "wide" and n_methods <= _MAX_WIDE_METHODS
    width, height = (max(6.4, 2.85 * n_methods + 0.6), 5.3) if wide else (4.4, 1.95 * n_methods + 0.6)
    with mpl.rc_context():
        mpl.rcdefaults()  # the style of the caller must not change this figure
        mpl.rcParams.update({**RC_PARAMS, **_theme_rc(THEMES[theme])})
        entries = _legend_entries(comparison.groups, THEMES[theme])
        columns = legend_columns([label for _, label in entries], width)
        height += _LEGEND_LINE * math.ceil(len(entries) / columns)
        figure = load_extra("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
        panels = _panels(figure, n_methods, wide=wide)
        for outcome, (above, gap) in zip(comparison.outcomes, panels, strict=True):
            _draw_method(comparison, outcome, above, gap, THEMES[theme])
        _label(panels, comparison, THEMES[theme], wide=wide)
        options = {"ncols": columns, "fontsize": 9.0, "handlelength": 2.4, "columnspacing": 1.4}
        plain_legend(figure, entries, loc="outside upper left", **options)
    return figure


def _panels(figure: Any, methods: int, *, wide: bool) -> list[tuple[Any, Any]]:
    """Create the two panels of each method; panels of a kind share their axes."""
    if wide:
        axes = figure.subplots(2, methods, sharex=True, sharey="row", squeeze=False, height_ratios=(1.25, 1))
        return list(zip(axes[0], axes[1], strict=True))
    axes = figure.subplots(methods, 2, sharex=True, sharey="col", squeeze=False)
    return [(row[0], row[1]) for row in axes]


def _draw_method(comparison: Comparison, outcome: MethodOutcome, above: Any, gap: Any, theme: Theme) -> None:
    target = _share_above(comparison.target)
    above.fill_between(_THRESHOLDS, target, color=theme.target, linewidth=0, zorder=1)
    gap.axhline(0.0, color=theme.quiet, linewidth=0.8, zorder=2)
    styles = group_styles(comparison.groups)
    for rows, style in zip(comparison.groups.rows, styles, strict=True):
        share = _share_above(outcome.scores[rows])
        for axis, line in ((above, share), (gap, share - target)):
            axis.plot(_THRESHOLDS, line, **line_options(style))


def _share_above(scores: Floats) -> Floats:
    """Return the percentage of the scores above each threshold."""
    n_below = np.searchsorted(np.sort(scores), _THRESHOLDS, side="right")
    return 100.0 * (1.0 - n_below / scores.size)


def _label(panels: list[tuple[Any, Any]], comparison: Comparison, theme: Theme, *, wide: bool) -> None:
    """Write titles and labels, once for panels that share an axis."""
    ticker = load_extra("matplotlib.ticker")
    short = all(len(outcome.name) <= 8 for outcome in comparison.outcomes)
    for index, ((above, gap), outcome) in enumerate(zip(panels, comparison.outcomes, strict=True)):
        above.set_title(shorten(outcome.name, 20 if wide else 14), loc="left", fontweight="bold", fontsize=11)
        disparity = f"mean disparity {comparison.mean_disparity(outcome.metrics):.3f}"
        titled = above if wide and short else gap  # a long name needs the whole line
        titled.set_title(disparity, loc="right", fontsize=8.5, color=theme.quiet)
        above.set(xlim=(0, 1), ylim=(0, 100), xticks=(0, 0.25, 0.5, 0.75, 1))
        above.set_xticklabels(("0", ".25", ".5", ".75", "1"))
        above.yaxis.set_major_formatter(ticker.FormatStrFormatter("%d%%"))
        gap.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
        gap.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f}".replace("-", "\N{MINUS SIGN}") if value else "0")
        if index == 0 or not wide:
            above.set_ylabel("Share of group\nabove threshold" if wide else "Share above threshold")
            gap.set_ylabel("Gap to target,\npercentage points" if wide else "Gap to target, points")
        for axis in (above, gap):
            add_grid(axis, theme, width=0.6)
            if axis is gap if wide else index == len(panels) - 1:
                axis.set_xlabel("Threshold on the score")


def _theme_rc(theme: Theme) -> dict[str, Any]:
    return {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), theme.paper),
        **dict.fromkeys(("text.color", "axes.titlecolor"), theme.ink),
        **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), theme.quiet),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), theme.line),
        "axes.labelsize": 9,
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 8.5),
    }
