"""Effects along the paths of a causal graph: a figure for each group, and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport._text import one_line, shorten
from fairtransport.report.pages.audit._table import EMPTY_CELL, Cell, Row, Table, number_cell

if TYPE_CHECKING:
    from fairtransport.causal import CounterfactualAudit, GroupEffects, PathEffect

__all__ = ["EffectsFigure", "collect_effect_tables", "collect_effects"]

_WIDTH, _ROW, _TOP = 520, 54, 64  # of the figure, in units of its own
_BOX, _SIDE = 126, 78  # widths of the boxes of mediators, and of the sensitive column and the score
_MOST_STROKE = 9.0


@dataclass(frozen=True)
class NodeBox:
    """A node: its text and the box around it."""

    text: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class EffectArrow:
    """An edge: its path, and for an effect its width, its figure and the share of the gap."""

    path: str
    kind: str
    stroke: float = 1.0
    label: str = ""
    share: str = ""
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True)
class EffectsFigure:
    """The graph of one group's effects.

    Parameters
    ----------
    group : str
        Name of the group.
    description : str
        What the figure shows, for those who do not see it.
    width, height : int
    boxes : tuple of NodeBox
    arrows : tuple of EffectArrow
    """

    group: str
    description: str
    width: int
    height: int
    boxes: tuple[NodeBox, ...]
    arrows: tuple[EffectArrow, ...]


def collect_effects(effects: CounterfactualAudit | None) -> dict[str, object] | None:
    """Return what the page says about effects along paths; None without any.

    Parameters
    ----------
    effects : CounterfactualAudit or None

    Returns
    -------
    dict or None
        Heading, explanation, and a figure for each group.
    """
    if effects is None:
        return None
    edges = ", ".join(f"{one_line(one)} \N{RIGHTWARDS ARROW} {one_line(other)}" for one, other in effects.graph.edges)
    return {
        "title": f"Which paths lead from {one_line(effects.sensitive)} to the score, under this graph",
        "to": one_line(effects.to),
        "graph": edges,
        "figures": [_figure(effects, group) for group in effects.groups],
    }


def collect_effect_tables(effects: CounterfactualAudit | None) -> list[Table]:
    """Return one table for each group: its effects in all units, with intervals and what chance shows."""
    return [] if effects is None else [_table(effects, index, one) for index, one in enumerate(effects.groups)]


# ------------------------------------------------------------------------------------------------------------- figure


def _figure(effects: CounterfactualAudit, one: GroupEffects) -> EffectsFigure:
    through = {effect.name.removeprefix("through "): effect for effect in one.paths if effect.name != "direct"}
    nodes = [node for node in effects.graph.nodes if node in through]
    rows = {node: _TOP + index * _ROW for index, node in enumerate(nodes)}
    middle = _TOP + (len(nodes) - 1) * _ROW / 2
    left, right = _SIDE, _WIDTH - _SIDE
    first, last = (_WIDTH - _BOX) / 2 + 28, (_WIDTH + _BOX) / 2 + 28
    largest = max(abs(effect.mean) for effect in one.paths) or 1.0
    arrows = [
        EffectArrow(f"M{last} {rows[a]}C{last + 26} {rows[a]} {last + 26} {rows[b]} {last + 3} {rows[b]}", "passes")
        for a, b in effects.graph.edges
        if a in rows and b in rows
    ]
    arrows += [EffectArrow(f"M{last} {y}L{right - 3} {middle}", "passes") for y in rows.values()]
    for node, y in rows.items():
        bend = left + 46  # the rest is level, below the figures
        path = f"M{left} {middle}C{left + 26} {middle} {left + 16} {y} {bend} {y}H{first - 5}"
        arrows.append(_effect_arrow(through[node], one, path, largest, ((left + 30 + first) / 2, y)))
    over = f"M{_SIDE / 2} {middle - 15}V20H{_WIDTH - _SIDE / 2}V{middle - 19}"
    arrows.append(_effect_arrow(one.effects["direct"], one, over, largest, (_WIDTH / 2, 20.0)))
    boxes = [
        NodeBox(shorten(one_line(effects.sensitive), 12), 0.0, middle, _SIDE),
        *(NodeBox(shorten(one_line(node), 18), first, y, _BOX) for node, y in rows.items()),
        NodeBox("score", float(right), middle, _SIDE),
    ]
    said = "; ".join(f"{one_line(effect.name)} {_signed(effect.mean)}" for effect in one.paths)
    name = one_line(one.group)
    return EffectsFigure(
        name,
        f"Effects on the mean score if {name} were {one_line(effects.to)}, under this graph: {said}.",
        _WIDTH,
        int(_TOP + max(len(nodes) - 1, 0) * _ROW + 34),
        tuple(boxes),
        tuple(arrows),
    )


def _effect_arrow(
    effect: PathEffect, one: GroupEffects, path: str, largest: float, place: tuple[float, float]
) -> EffectArrow:
    stroke = 1.0 + (_MOST_STROKE - 1.0) * abs(effect.mean) / largest
    return EffectArrow(
        path,
        "direct" if effect.name == "direct" else "effect",
        round(stroke, 2),
        _signed(effect.mean),
        _share(effect.mean, one.gap),
        round(place[0], 1),
        round(place[1] - stroke / 2 - 5.0, 1),
    )


def _share(value: float, gap: float) -> str:
    """Return the share of the gap, where there is a gap to speak of."""
    return f"{value / gap:.0%}".replace("-0%", "0%") if abs(gap) >= 0.001 * max(1.0, abs(value)) else ""


def _signed(value: float) -> str:
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+,.0f}"


# -------------------------------------------------------------------------------------------------------------- table


def _table(effects: CounterfactualAudit, index: int, one: GroupEffects) -> Table:
    name, to = one_line(one.group), one_line(effects.to)
    columns = ["Path", "Mean change", f"{effects.confidence:.0%} interval", "By chance", "Of the gap"]
    columns += ["Distance", "Rank distance", "Per person"]
    if effects.threshold is not None:
        columns.append(f"Above {effects.threshold:g}")
    rows = [_row(effects, one, effect) for effect in one.effects.values()]
    n_empty = len(columns) - 3
    for label, value in (("interaction of paths", one.interaction), ("no effect of the group", one.not_caused)):
        cells = (number_cell(value, _signed), EMPTY_CELL, EMPTY_CELL, Cell(_share(value, one.gap), value / one.gap))
        rows.append(Row(label, (*cells, *[EMPTY_CELL] * (n_empty - 2))))
    caption = (
        f"What scores of {name} ({one.rows:,} rows) would be if they were {to}, minus what they are; the mean score of "
        f"{to} is {_signed(one.gap)} higher. By chance: the mean size in {effects.n_permutations} tables with shuffled "
        "groups. Distances are between the distributions of scores, and of ranks among all people; per person is the "
        f"mean absolute change. {_order_sentence(one)}{_support_sentence(one)}"
    )
    return Table(
        f"effects-{index}", f"Effects of paths: {name}", caption, tuple(columns), tuple(rows), frozenset({5, 6})
    )


def _row(effects: CounterfactualAudit, one: GroupEffects, effect: PathEffect) -> Row:
    low, high = effect.intervals["mean"]
    interval = Cell(f"{_signed(low)} to {_signed(high)}", f"{low} to {high}") if low == low else EMPTY_CELL  # noqa: PLR0124
    cells = [
        number_cell(effect.mean, _signed),
        interval,
        number_cell(effect.floors["mean"], lambda value: f"{value:.4f}"),
        Cell(_share(effect.mean, one.gap), effect.mean / one.gap if one.gap else ""),
        *(number_cell(value, lambda value: f"{value:.4f}") for value in (effect.distance, effect.rank_distance)),
        number_cell(effect.individual, lambda value: f"{value:.4f}"),
    ]
    if effects.threshold is not None:
        cells.append(number_cell(effect.rate, lambda value: f"{100 * value:+.1f} pp"))
    return Row(effect.name, tuple(cells))


def _order_sentence(one: GroupEffects) -> str:
    low, high = one.effects["total"].order_range
    if not high - low >= 0.0005:
        return ""
    return f"With categories in other orders the total is between {_signed(low)} and {_signed(high)}. "


def _support_sentence(one: GroupEffects) -> str:
    return (
        f"{1 - one.support:.0%} of these people have counterfactuals outside what was seen."
        if one.support < 0.99
        else ""
    )
