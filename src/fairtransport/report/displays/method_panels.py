"""The picture: each group's scores against the target, one panel for each method."""

from __future__ import annotations

import io
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import load_extra
from fairtransport._text import shorten
from fairtransport._validation import check_choice
from fairtransport.report.displays._legend import add_legend, legend_columns, legend_entries, line_options
from fairtransport.report.style.colors import THEMES, Theme, group_styles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.report.pages.comparison import Comparison, MethodOutcome

__all__ = ["distribution_figure", "draw"]

# Scores pile up near 0, so thresholds stand closer there.
_THRESHOLDS = np.linspace(0.0, 1.0, 161) ** 1.6
_WIDE_METHODS = 5  # more would not fit side by side
_LINE = 0.21  # height of a line of the legend, in inches
_RC = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a group may be called "$5,000 to $9,000"
    "svg.fonttype": "path",
    "svg.hashsalt": "fairtransport",
}


def distribution_figure(comparison: Comparison, *, layout: str = "wide", theme: str = "light") -> Any:
    """Draw every group's score distribution over the target, method by method.

    Parameters
    ----------
    comparison : Comparison
        What to draw.
    layout : {"wide", "tall"}, default="wide"
        Methods side by side, or one below the other for narrow screens.
    theme : {"light", "dark"}, default="light"
        Colours of paper and text; a group's colour is the same in both.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels for each method: the share of each group scored above every threshold, with the target
        shaded, and the gap between that share and the target's.

    Notes
    -----
    Under strong demographic parity all lines are one line. The area between a group's line and the target's
    is the Wasserstein-1 distance between them, so the lower panels show what `wasserstein_disparity` adds up.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import make_groups
    >>> from fairtransport.report import METRICS, Comparison, MethodOutcome
    >>> groups, scores = make_groups(["a", "a", "b"]), np.array([0.1, 0.4, 0.8])
    >>> outcome = MethodOutcome("LR", "Logistic regression", dict.fromkeys(METRICS, 0.25), 0.5, scores)
    >>> comparison = Comparison("toy", groups, np.array([0, 0, 1]), scores, (outcome,), {}, {})
    >>> len(distribution_figure(comparison).axes)
    2
    """
    check_choice(layout, ("wide", "tall"), name="layout")
    check_choice(theme, tuple(THEMES), name="theme")
    mpl = load_extra("matplotlib")
    wide = layout == "wide" and len(comparison.outcomes) <= _WIDE_METHODS
    width, height = _panel_size(len(comparison.outcomes), wide=wide)
    entries = legend_entries(comparison.groups, THEMES[theme])
    columns = legend_columns([entry.label for entry in entries], width)
    height += _LINE * math.ceil(len(entries) / columns)
    with mpl.rc_context():
        mpl.rcdefaults()  # a style that the caller has set for other pictures must not reach this one
        mpl.rcParams.update({**_RC, **_theme_rc(THEMES[theme])})
        figure = load_extra("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
        panels = _panels(figure, len(comparison.outcomes), wide=wide)
        for outcome, (above, gap) in zip(comparison.outcomes, panels, strict=True):
            _draw_method(comparison, outcome, above, gap, THEMES[theme])
        _label(panels, comparison, THEMES[theme], wide=wide)
        add_legend(figure, entries, columns)
    return figure


def draw(figure: Any, kind: str, *, dpi: int = 160) -> bytes:
    """Return a figure as an image file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    kind : {"png", "svg"}
    dpi : int, default=160
        Dots per inch of a PNG.

    Returns
    -------
    bytes
        The same for equal figures: no date is stored.
    """
    mpl = load_extra("matplotlib")
    metadata = {"Software": "fairtransport"} if kind == "png" else {"Date": None, "Creator": "fairtransport"}
    file = io.BytesIO()
    with mpl.rc_context(_RC), warnings.catch_warnings():
        # A group's name may need a sign that the font lacks; a box in its place is no reason to fail.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return file.getvalue()


def _panel_size(methods: int, *, wide: bool) -> tuple[float, float]:
    """Width and height in inches, without the legend."""
    return (max(6.4, 2.85 * methods + 0.6), 5.3) if wide else (4.4, 1.95 * methods + 0.6)


def _panels(figure: Any, methods: int, *, wide: bool) -> list[tuple[Any, Any]]:
    """Make the two panels of every method; panels of a kind share their axes."""
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


def _share_above(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per cent of the scores above each threshold."""
    at_most = np.searchsorted(np.sort(scores), _THRESHOLDS, side="right")
    return 100.0 * (1.0 - at_most / scores.size)


def _label(panels: list[tuple[Any, Any]], comparison: Comparison, theme: Theme, *, wide: bool) -> None:
    """Write in words what the axes show, once for panels that share them."""
    ticker = load_extra("matplotlib.ticker")
    short = all(len(outcome.name) <= 8 for outcome in comparison.outcomes)
    for place, ((above, gap), outcome) in enumerate(zip(panels, comparison.outcomes, strict=True)):
        above.set_title(shorten(outcome.name, 20 if wide else 14), loc="left", fontweight="bold", fontsize=11)
        told = f"pairwise disparity {outcome.metrics['strong_pairwise_disparity']:.2f}"
        beside = above if wide and short else gap  # a long name needs the line for itself
        beside.set_title(told, loc="right", fontsize=8.5, color=theme.quiet)
        above.set(xlim=(0, 1), ylim=(0, 100), xticks=(0, 0.25, 0.5, 0.75, 1))
        above.set_xticklabels(("0", ".25", ".5", ".75", "1"))
        above.yaxis.set_major_formatter(ticker.FormatStrFormatter("%d%%"))
        gap.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
        gap.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f}".replace("-", "\N{MINUS SIGN}") if value else "0")
        if place == 0 or not wide:
            above.set_ylabel("Share of group\nabove threshold" if wide else "Share above threshold")
            gap.set_ylabel("Gap to target,\npercentage points" if wide else "Gap to target, points")
        for axis in (above, gap):
            axis.grid(visible=True, color=theme.line, linewidth=0.6, zorder=0)
            axis.set_axisbelow(True)
            if axis is gap if wide else place == len(panels) - 1:
                axis.set_xlabel("Threshold on the score")


def _theme_rc(theme: Theme) -> dict[str, Any]:
    return {
        "figure.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "text.color": theme.ink,
        "axes.labelcolor": theme.quiet,
        "axes.edgecolor": theme.line,
        "axes.titlecolor": theme.ink,
        "xtick.color": theme.line,
        "ytick.color": theme.line,
        "xtick.labelcolor": theme.quiet,
        "ytick.labelcolor": theme.quiet,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.labelsize": 9,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
    }
