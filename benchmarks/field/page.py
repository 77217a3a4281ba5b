"""The page of the field: tables from the stored lines, frontiers with bands, and the critical-difference diagram."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks._report import RESULTS
from benchmarks.field import methods
from benchmarks.field.analysis import BASE, MEASURES, by_cell, critical_difference, gaps, is_ours, volumes

DOCS = Path(__file__).parents[2] / "docs"
PAGE, IMAGES = DOCS / "field.md", DOCS / "images"
START, END = "<!-- results: python -m benchmarks field --minutes 0 -->", "<!-- end of results -->"
JUDGED = {
    methods.PARITY: ("rank", "spdd", "parity_difference"),
    methods.ODDS: ("separation", "separation_ranks", "odds_difference"),
}
PUBLISHED = {  # Han et al., The Fair Fairness Benchmark (ICLR 2024), Adult by sex: accuracy, AUC, ABCC in percent
    "published, no penalty": ("85.35", "91.06", "18.36"),
    "published, HSIC": ("about 84.1", "", "about 1.8"),  # .985 of the accuracy at a tenth of the ABCC
}
RANKS = ("rank", "separation_ranks")
CRITERIA = {methods.PARITY: "demographic parity", methods.ODDS: "equalized odds"}
NAMES = {"linear": "linear models", "trees": "boosted trees", "network": "networks"}


def write(records, report):
    """Store the notes of the run; with the stored results, write the tables and pictures of the page."""
    records = list(records)
    cells = comparable(records)
    if not cells:
        return
    judged = judge(cells)
    report.notes += [*notes(cells, judged), *failures(records)]
    report.save()
    if report.folder.resolve() == RESULTS and PAGE.exists():
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        PAGE.write_text(f"{before}{START}\n\n{tables(cells, judged)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
        draw_frontiers(cells, IMAGES / "field_frontiers.png")
        draw_ranks(cells, IMAGES / "field_ranks.png")


def comparable(records):
    """Cells of two splits or more, which have standard errors, and that of published figures, which have none."""
    found = by_cell(records).items()
    return {cell: own for cell, own in found if len(own[BASE].figures["error"]) > 1 or cell.data == methods.ANCHORS}


def judge(cells):
    """Return {(cell, measure): (gaps of the best of ours, gaps of the recommended one)}."""
    found = {}
    for cell, points in cells.items():
        for measure in JUDGED[cell.criterion] if len(points[BASE].figures["error"]) > 1 else ():
            best = gaps(cell, points, measure)
            if best:
                found[cell, measure] = best, gaps(cell, points, measure, {methods.recommended(cell)})
    return found


def notes(cells, judged):
    """Yield one sentence for each measure, over all cells."""
    n_splits = {len(points[BASE].figures["error"]) for points in cells.values()}
    yield f"{len(cells)} of {len(list(methods.cells()))} cells have run, on {max(n_splits)} splits at most."
    for measure, name in MEASURES.items():
        best = [gap for (_, own), (found, _) in judged.items() if own == measure for gap in found]
        if best:
            losses = sum(gap.is_loss for gap in best)
            text = f"By {name}, the best of ours is above {losses} of {len(best)} points of peers"
            yield f"{text} by more than one standard error."


def failures(records):
    """Yield one sentence for each method that ended with an error or ran too long."""
    found = {}
    for record in records:
        if "failed" in record:
            found.setdefault((record["method"], record["failed"]), set()).add(record["data"])
    for (method, reason), data in found.items():
        yield f"{method} failed ({reason}) on {'; '.join(sorted(data))}."


# ------------------------------------------------------------------------------------------------------------ tables


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def figure(value, digits=3):
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def tables(cells, judged):
    parts = {"What has run": counts(cells, judged), "Where a peer is better": losses(judged)}
    parts |= {"Hypervolume and cost": hypervolumes(cells), "Published figures": anchors(cells)}
    return "\n".join(f"### {title}\n\n{text}" for title, text in parts.items() if text)


def counts(cells, judged):
    """Points of peers at which the best (and the recommended) of ours is at most a standard error above."""
    kinds = {}
    for cell, points in cells.items():
        if any(own == cell for own, _ in judged):
            kind = cell.regime, cell.base, cell.criterion, cell.regression
            kinds.setdefault(kind, {})[cell] = len(points[BASE].figures["error"])
    parts = []
    for criterion, title in CRITERIA.items():
        measures = [name for name in JUDGED[criterion] if any(own == name for _, own in judged)]
        rows = []
        for (regime, base, own, regression), splits in sorted(kinds.items(), key=lambda one: _order_of_kind(*one[0])):
            if own != criterion:
                continue
            task = "regression" if regression else "classification"
            row = [f"{regime}, {NAMES[base]}, {task}", str(len(splits)), _range(splits.values())]
            for measure in measures:
                found = [judged[cell, measure] for cell in splits if (cell, measure) in judged]
                best, first = ([gap for part in found for gap in part[which]] for which in (0, 1))
                held = [sum(not gap.is_loss for gap in gaps_) for gaps_ in (best, first)]
                row.append(f"{held[0]} ({held[1]}) of {len(best)}" if best else "")
            rows.append(row)
        if rows:
            parts.append(table([title, "data sets", "splits", *(MEASURES[name] for name in measures)], rows))
    return "\n".join(parts)


def _order_of_kind(regime, base, criterion, regression):
    return criterion, list(NAMES).index(base), regression, regime == "aware"


def _range(numbers):
    return " to ".join(map(str, sorted({min(numbers), max(numbers)})))


def losses(judged):
    """The worst point of each peer in each cell and measure where a test confirms the loss, and how many others."""
    worst = {}
    for (cell, measure), (best, _) in judged.items():
        for gap in best:
            key = cell, measure, gap.peer
            if gap.is_loss and (key not in worst or _order(gap) > _order(worst[key])):
                worst[key] = gap
    by_rank = {(gap.cell, gap.peer, gap.setting): "" if gap.is_loss else "level"
               for (_, measure), (best, _) in judged.items() if measure in RANKS for gap in best}  # fmt: skip
    ordered = sorted(worst.values(), key=_order, reverse=True)
    rows = [
        [str(gap.cell), gap.peer, MEASURES[gap.measure], f"{figure(gap.peer_error)} at {figure(gap.disparity)}",
         f"{figure(gap.peer_error + gap.excess)} ({gap.ours})",
         f"{figure(gap.excess, 4)} ± {figure(gap.standard_error, 4)}",
         f"{figure(gap.least[1])} at {figure(gap.least[0])}" if gap.is_interpolated else "",
         by_rank.get((gap.cell, gap.peer, gap.setting), "") if gap.measure in ("spdd", "separation") else ""]
        for gap in ordered if gap.is_clear
    ]  # fmt: skip
    head = ["cell", "peer", "by", "peer's error", "ours there", "difference", "our least disparity", "by ranks"]
    text = table(head, rows) if rows else "Nowhere beyond noise, in the cells that have run.\n"
    within = Counter(gap.peer for gap in ordered if not gap.is_clear)
    if within:
        named = ", ".join(f"{peer} {number}" for peer, number in within.most_common())
        text += f"\nPairs of cell and measure with losses within noise only, by peer: {named}.\n"
    return text


def _order(gap):
    return gap.is_clear, gap.excess


def hypervolumes(cells):
    """Linear models: hypervolume by rank disparity for each data set, and seconds and memory of a whole curve."""
    chosen = {c: p for c, p in cells.items() if c.base == "linear" and c.criterion == methods.PARITY}
    names = list(dict.fromkeys(cell.data for cell in chosen))
    found = {cell: volumes(points, "rank") for cell, points in chosen.items()}
    rows = []
    for regime in ("blind", "aware"):
        own = {cell.data: (cell, found[cell]) for cell in chosen if cell.regime == regime}
        listed = list(dict.fromkeys(name for _, values in own.values() for name in values))
        mean = {name: np.mean([values[name].mean() for _, values in own.values() if name in values]) for name in listed}
        for name in sorted(listed, key=lambda one: -mean[one]):
            values = [figure(own[data][1][name].mean(), 2) if data in own and name in own[data][1] else ""
                      for data in names]  # fmt: skip
            costs = [chosen[cell][name].figures for cell, found_here in own.values() if name in found_here]
            seconds = np.median([figures["seconds"].sum(axis=1).mean() for figures in costs])
            memory = max(float(figures["memory"].max()) if "memory" in figures else np.nan for figures in costs)
            ours = any(is_ours(cell, name) for cell, _ in own.values())
            label = f"**{name}**" if ours else name
            rows.append([f"{regime}: {label}", *values, f"{seconds:.2g}", f"{memory:.0f}"])
    return table(["method", *names, "seconds", "MiB"], rows) if rows else ""


def anchors(cells):
    """Accuracy, AUC and the area between the two groups' distribution functions (ABCC, here SPDD), in percent."""
    points = next((own for cell, own in cells.items() if cell.data == methods.ANCHORS), None)
    rows = [[name, *values, ""] for name, values in PUBLISHED.items()]
    for name, own in (points or {}).items():
        if not {"auc", "spdd"} <= set(own.figures):
            continue
        means = {figure: own.figures[figure].mean(axis=0) for figure in ("error", "auc", "spdd")}
        base = points[BASE].figures["spdd"].mean()
        number = int(np.argmin(np.abs(means["spdd"] - base / 10))) if name != BASE else 0
        values = 1 - means["error"][number], means["auc"][number], means["spdd"][number]
        rows.append([name, *(f"{100 * value:.2f}" for value in values), own.settings[number] if name != BASE else ""])
    return table(["Adult by sex, network", "accuracy", "AUC", "ABCC", "setting"], rows)


# ---------------------------------------------------------------------------------------------------------- pictures


PALETTE = {
    True: ("#08306b", "#2171b5", "#6baed6", "#41b6c4", "#6a51a3", "#9e9ac8", "#3f007d", "#000000", "#02818a"),
    False: ("#d95f02", "#1b9e77", "#e7298a", "#66a61e", "#a6761d", "#666666", "#7570b3", "#e6ab02", "#e31a1c"),
}


def band(points, measure, n=60):
    """Disparities, mean error and its standard error along a method's curve, without the constant."""
    curve = points.curve(measure)
    ends = curve.disparities[[1, -1]] if len(curve.disparities) > 1 else []
    x = np.linspace(*ends, n if ends[0] < ends[1] else 1) if len(ends) else curve.disparities[1:]
    each = [points.curve(measure, split).at(x) for split in range(len(points.figures["error"]))]
    return x, curve.at(x), np.std(each, axis=0, ddof=1) / np.sqrt(len(each))


def draw_frontiers(cells, path):
    """Linear models and parity: a row for each data set, a column for each regime and measure; ours are solid."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    chosen = {c: p for c, p in cells.items() if c.base == "linear" and c.criterion == methods.PARITY}
    names = list(dict.fromkeys(cell.data for cell in chosen))
    regimes = [regime for regime in ("blind", "aware") if any(cell.regime == regime for cell in chosen)]
    columns = [(regime, measure) for regime in regimes for measure in ("rank", "parity_difference")]
    size = (3.2 * len(columns), 2.4 * len(names) + 0.8)
    figure_ = Figure(size, layout="constrained")
    axes = figure_.subplots(len(names), len(columns), squeeze=False)
    colors, handles = {}, {}
    for axis, (data, (regime, measure)) in zip(axes.ravel(), ((n, c) for n in names for c in columns), strict=True):
        cell = methods.Cell(data, regime, "linear", methods.PARITY)
        known = {name: own for name, own in chosen.get(cell, {}).items() if measure in own.figures}
        axis.set_visible(bool(known))
        axis.set_title(f"{data}, {regime}", fontsize=9)
        axis.set_xlabel(MEASURES[measure], fontsize=8)
        axis.set_ylabel("1 - R2" if cell.regression else "error", fontsize=8)
        axis.tick_params(labelsize=7)
        for name, own in known.items():
            if name == BASE:
                axis.plot(own.figures[measure].mean(), own.figures["error"].mean(), "k*", markersize=8, zorder=5)
                continue
            ours = is_ours(cell, name)
            used = sum(1 for other in colors.values() if other in PALETTE[ours])
            color = colors.setdefault(name, PALETTE[ours][used % len(PALETTE[ours])])
            x, y, error = band(own, measure)
            style = {"linewidth": 2.0 if ours else 1.2, "linestyle": "-" if ours else "--", "color": color}
            handles[name] = axis.plot(x, y, marker="o" if len(x) == 1 else None, markersize=3, **style)[0]
            axis.fill_between(x, y - error, y + error, color=color, alpha=0.07, linewidth=0)
    options = {"loc": "outside lower center", "ncols": 5, "fontsize": 7, "frameon": False}
    figure_.legend(list(handles.values()), list(handles), **options)
    figure_.savefig(path, dpi=80)


def draw_ranks(cells, path):
    """Mean ranks by hypervolume over data sets, linear models; a line is as long as the critical difference."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = []
    for regime, measure in ((r, m) for r in ("blind", "aware") for m in ("rank", "parity_difference")):
        own = {c: p for c, p in cells.items() if c == methods.Cell(c.data, regime, "linear", methods.PARITY)}
        kept = [(cell, volumes(points, measure)) for cell, points in own.items() if not cell.regression]
        names = sorted(set.intersection(*(set(values) for _, values in kept))) if len(kept) > 1 else []
        if len(names) > 2:
            panels.append((regime, measure, kept, names))
    heights = [len(names) + 1 for *_, names in panels] or [1]
    figure_ = Figure((7.5, 0.32 * sum(heights) + 0.6), layout="constrained")
    axes = figure_.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for axis, (regime, measure, kept, names) in zip(axes[:, 0], panels, strict=False):
        ranks, difference, p_value = critical_difference([[v[n].mean() for n in names] for _, v in kept])
        text = f"{regime}, {len(kept)} data sets, by {MEASURES[measure]}"
        axis.set_title(f"{text}: critical difference {difference:.1f}, Friedman p = {p_value:.2f}", fontsize=9)
        order = np.argsort(ranks)
        for height, number in enumerate(order):
            color = PALETTE[is_ours(kept[0][0], names[number])][0]
            axis.plot([ranks[number], ranks[number] + difference], [-height, -height], color=color, alpha=0.3)
            axis.plot(ranks[number], -height, "o", color=color)
        axis.set_yticks(-np.arange(len(names)), [names[number] for number in order], fontsize=8)
        axis.set(xlim=(0.8, len(names) + 0.5), ylim=(0.7 - len(names), 0.7))
        axis.tick_params(axis="x", labelsize=8)
    figure_.savefig(path, dpi=100)
