"""Error against disparity: whole trade-off curves of ours and of peers, on the same splits and features.

Two situations are kept apart. *Aware*: the group is known at prediction, and may be a feature. *Blind*: it is known in
training only, and columns that are functions of the group are no features.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import _fair_peers, _timing
from benchmarks._fair_peers import Task, dense
from fairtransport import ContinuousTransportClassifier, DiscreteTransportClassifier, QuantileRepair, metrics
from fairtransport.paper.splits import adult_split, communities_splits, german_splits

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIM = (
    "Error at equal disparity (SPDD, test rows, linear models): no peer's curve is below ours by more than .001 "
    "anywhere, in its situation, on any of three data sets; training alone comes within .003 of the best."
)
SITUATIONS = ("aware", "blind")
N_BLOCKS = 50  # parts of Adult's test rows, for the standard error; elsewhere splits are resampled
BARS = {("Adult", "aware"): {0.06: 0.168, 0.12: 0.163}, ("Adult", "blind"): {0.08: 0.183, 0.13: 0.173, 0.26: 0.163}}


# ------------------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Method:
    """What gives a curve. Every curve also has the point of logistic regression, where nothing is done."""

    name: str
    run: Callable[..., Any]
    grid: tuple[float, ...]
    parameter: str
    settings: str
    ours: bool = False
    training: bool = True
    situations: tuple[str, ...] = SITUATIONS
    variants: tuple[dict[str, str], ...] = ({},)

    def variants_for(self, task, situation):
        """Variants that are open: weights for each group need the group, a sequence needs several attributes."""
        return [
            variant
            for variant in self.variants
            if (variant.get("model") != "weights for each group" or situation == "aware")
            and (variant.get("attributes") != "in sequence" or len(task.sensitive_train) > 1)
        ]


def repair(task, grid, seed):  # noqa: ARG001 - no chance is involved
    for amount in grid:
        fitted = QuantileRepair("barycenter_w2", amount).fit(task.scores_train, sensitive_features=task.groups_train)
        yield amount, fitted.transform(task.scores_test, sensitive_features=task.groups_test)


def transport(task, grid, seed, *, kind, **options):  # noqa: ARG001 - the solver draws nothing
    known = {"sensitive_features": task.groups_test} if options.get("group_specific") else {}
    fitted = kind(**options).fit_path(task.X_train, task.y_train, sorted(grid), sensitive_features=task.groups_train)
    for weight, model in zip(sorted(grid), fitted, strict=True):
        yield weight, model.predict_proba(task.X_test, **known)[:, 1]


def mixed(task, grid, seed, *, kind, **options):  # noqa: ARG001 - the solver draws nothing
    """Train once with the default weight, then go from the initial model's scores to the trained one's."""
    model = kind(**options).fit(task.X_train, task.y_train, sensitive_features=task.groups_train)
    known = {"sensitive_features": task.groups_test} if options.get("group_specific") else {}
    for amount in grid:
        yield amount, model.set_params(amount=amount).predict_proba(task.X_test, **known)[:, 1]


COT, DOT = (partial(transport, kind=kind) for kind in (ContinuousTransportClassifier, DiscreteTransportClassifier))
COT_AMOUNT, DOT_AMOUNT = (partial(mixed, kind=k) for k in (ContinuousTransportClassifier, DiscreteTransportClassifier))
PARITY_WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
AMOUNTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PENALTIES = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0, 5.0)
TRAINED = (
    f"all rows at once, {_fair_peers.N_STEPS} steps of Adam for each weight, ridge and start of LogisticRegression"
)
SPREADS = ({"spread": "trained"}, {"spread": "initial"})
SHARED, OWN = {"model": "one set of weights"}, {"model": "weights for each group"}

METHODS = (
    Method(
        "QuantileRepair", repair, tuple(1 - epsilon for epsilon in AMOUNTS), "amount", "target barycenter_w2, on LR",
        ours=True, training=False, situations=("aware",),
    ),
    Method("COT", COT, PARITY_WEIGHTS, "parity_weight", "defaults", ours=True),
    Method("DOT", DOT, PARITY_WEIGHTS, "parity_weight", "defaults", ours=True),
    Method(
        "COT, amount", COT_AMOUNT, tuple(1 - e for e in AMOUNTS), "amount", "defaults, spread", ours=True,
        variants=SPREADS,
    ),
    Method(
        "DOT, amount", DOT_AMOUNT, tuple(1 - e for e in AMOUNTS), "amount", "defaults, spread", ours=True,
        variants=SPREADS,
    ),
    Method(
        "COT, group-specific, amount", partial(COT_AMOUNT, group_specific=True), tuple(1 - e for e in AMOUNTS),
        "amount", "defaults, spread", ours=True, situations=("aware",), variants=SPREADS,
    ),
    Method(
        "DOT, group-specific, amount", partial(DOT_AMOUNT, group_specific=True), tuple(1 - e for e in AMOUNTS),
        "amount", "defaults, spread", ours=True, situations=("aware",), variants=SPREADS,
    ),
    Method(
        "COT, group-specific", partial(COT, group_specific=True), PARITY_WEIGHTS, "parity_weight", "defaults",
        ours=True, situations=("aware",),
    ),
    Method(
        "DOT, group-specific", partial(DOT, group_specific=True), PARITY_WEIGHTS, "parity_weight", "defaults",
        ours=True, situations=("aware",),
    ),
    Method(
        "EquiPy", _fair_peers.equipy, AMOUNTS, "epsilon", "on LR, maps made on training rows, sigma 1e-4 (its default)",
        training=False, situations=("aware",), variants=({"attributes": "crossed"}, {"attributes": "in sequence"}),
    ),
    Method(
        "fairlearn", _fair_peers.exponentiated_gradient, (0.001, 0.01, 0.02, 0.04, 0.08, 0.14), "difference_bound",
        "ExponentiatedGradient, DemographicParity of the crossed groups, LR (newton-cholesky), eps .01, until its gap "
        "is below its nu; mean score of the mixture",
    ),
    Method(
        "fairret", _fair_peers.fairret, PENALTIES, "weight", f"PositiveRate; {TRAINED}",
        variants=({"loss": "norm1", **SHARED}, {"loss": "lse", **SHARED}, {"loss": "norm1", **OWN}),
    ),
    Method(
        "Jiang et al.", _fair_peers.jiang, PENALTIES, "weight", f"W1 to the W1 barycenter of the groups; {TRAINED}",
        variants=({"groups": "equal", **SHARED}, {"groups": "by size", **SHARED}, {"groups": "equal", **OWN}),
    ),
    Method(
        "reweighing", _fair_peers.reweighing, (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0), "power",
        "LR with Kamiran and Calders' weights to a power (1: theirs)",
    ),
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- data


def adult():
    return (adult_split(),)


DATA = {
    "Adult": adult,
    "German": partial(german_splits, 30),  # 250 test rows each: ten leave a noise of .005
    "Communities": partial(communities_splits, 10),
}
QUICK = {"Adult": adult, "German": partial(german_splits, 2), "Communities": partial(communities_splits, 1)}


def tasks(name, situation, *, quick):
    """The splits of a data set, as the situation lets a model see them."""
    made = []
    for split in (QUICK if quick else DATA)[name]():
        seen = slice(None) if situation == "aware" else ~told_by_group(split.X_train, split.groups_train)
        task = Task(
            split.X_train[:, seen], split.y_train, split.groups_train, dict(split.sensitive_train),
            split.X_test[:, seen], split.y_test, split.groups_test, dict(split.sensitive_test), short=quick,
        )  # fmt: skip
        made.append(fewer(task, 2000) if quick else task)
    return made


def told_by_group(X, groups):
    """Columns that have one value in each group: race, sex, age group and the like."""
    X = dense(X)
    return np.all([np.ptp(X[rows], axis=0) == 0 for rows in groups.rows], axis=0)


def fewer(task, n_rows):
    """The task with at most so many training rows."""
    rows = np.arange(task.y_train.size)
    if rows.size <= n_rows:
        return task
    return part(task, train_test_split(rows, train_size=n_rows, stratify=task.y_train, random_state=0)[0])


def held_back(task):
    """The training rows only, a quarter of them as test rows: here variants are chosen."""
    rows = np.arange(task.y_train.size)
    train, test = train_test_split(rows, test_size=0.25, stratify=task.y_train, random_state=0)
    return part(task, train, test)


def part(task, train, test=None):
    new = {
        "X_train": task.X_train[train],
        "y_train": task.y_train[train],
        "groups_train": task.groups_train.select(train),
        "sensitive_train": {name: column[train] for name, column in task.sensitive_train.items()},
    }
    if test is not None:
        new |= {
            "X_test": task.X_train[test],
            "y_test": task.y_train[test],
            "groups_test": task.groups_train.select(test),
            "sensitive_test": {name: column[test] for name, column in task.sensitive_train.items()},
        }
    return replace(task, **new)


# ------------------------------------------------------------------------------------------------------ measuring


@dataclass(frozen=True)
class Points:
    """Error and disparity for each value of the parameter (rows) and each split or block of test rows (columns)."""

    parameters: list[float | str]
    errors: np.ndarray
    disparities: np.ndarray

    def with_more(self, other):
        return Points(
            [*self.parameters, *other.parameters],
            np.concatenate((self.errors, other.errors)),
            np.concatenate((self.disparities, other.disparities)),
        )

    def curve(self, units=slice(None)):
        return Curve.through(self.disparities[:, units].mean(axis=1), self.errors[:, units].mean(axis=1))


def spdd(scores, groups):
    # A mixture's scores can leave [0, 1] by rounding.
    return metrics.strong_pairwise_disparity(np.clip(scores, 0.0, 1.0), sensitive_features=groups)


def measure(task, scores, n_blocks):
    """Error, in parts whose mean it is, and disparity."""
    wrong = (scores > 0.5) != task.y_test
    block = np.random.default_rng(0).permutation(wrong.size) % n_blocks
    error = np.bincount(block, wrong, n_blocks) * n_blocks / wrong.size
    return error, np.full(n_blocks, spdd(scores, task.groups_test))


def points(method, found, variant, grid):
    """Errors and disparities of each split, in blocks of rows where there is only one; the seed is its number."""
    n_blocks = N_BLOCKS if len(found) == 1 else 1
    units = []
    for number, task in enumerate(found):
        told = [task.scores_test, *(scores for _, scores in method.run(task, grid, number, **variant))]
        units.append(np.array([measure(task, scores, n_blocks) for scores in told]))
    errors, disparities = np.concatenate(units, axis=2).transpose(1, 0, 2)
    return Points(["LR", *grid], errors, disparities)


def choose(method, found, situation):
    """The variant whose curve dominates most on held-back training rows."""
    variants = method.variants_for(found[0], situation)
    if len(variants) == 1:
        return variants[0], {}
    trials = [held_back(task) for task in found[:3]]
    curves = [points(method, trials, variant, method.grid[::3]).curve() for variant in variants]
    reference = Reference.of(trials)
    volumes = [curve.hypervolume(reference) for curve in curves]
    told = {", ".join(variant.values()): round(volume, 4) for variant, volume in zip(variants, volumes, strict=True)}
    return variants[int(np.argmax(volumes))], told


# ------------------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class Reference:
    """The point from which the dominated area counts, and the noise floor."""

    error: float
    disparity: float
    lr_error: float
    floor: float

    @classmethod
    def of(cls, found):
        floors = [
            metrics.noise_floor(
                metrics.strong_pairwise_disparity, task.scores_test, sensitive_features=task.groups_test, n_shuffles=20,
                random_state=0,
            ).mean
            for task in found
        ]  # fmt: skip
        return cls(
            float(np.mean([min(task.y_test.mean(), 1 - task.y_test.mean()) for task in found])),
            float(np.mean([spdd(task.scores_test, task.groups_test) for task in found])),
            float(np.mean([metrics.error_rate(task.y_test, task.scores_test) for task in found])),
            float(np.mean(floors)),
        )


@dataclass(frozen=True)
class Curve:
    """The least error at or below a disparity: linear between points that no other point of the method dominates."""

    disparities: np.ndarray
    errors: np.ndarray

    @classmethod
    def through(cls, disparities, errors):
        order = np.lexsort((errors, disparities))
        disparities, errors = disparities[order], errors[order]
        kept = np.append(True, errors[1:] < np.minimum.accumulate(errors)[:-1])
        return cls(disparities[kept], errors[kept])

    def at(self, disparity, *, below=np.nan):
        """Constant beyond the last point; ``below`` where the curve does not reach (None: the first point's error)."""
        return np.interp(disparity, self.disparities, self.errors, left=below)

    def hypervolume(self, reference):
        """The area between the curve and the reference point, 1 for LR's error without any disparity."""
        x = np.union1d(np.linspace(0.0, reference.disparity, 20_001), self.disparities)
        x = x[x <= reference.disparity]
        gain = np.clip(np.nan_to_num(reference.error - self.at(x)), 0.0, None)
        return float(np.trapezoid(gain, x) / (reference.disparity * (reference.error - reference.lr_error)))


def least(curves, disparity):
    """The lowest of several curves; NaN where none reaches."""
    value = np.min([curve.at(disparity, below=np.inf) for curve in curves], axis=0)
    return np.where(np.isinf(value), np.nan, value)


def largest_gap(upper, lower, most):
    """How far the second family's lowest curve is below the first's at most, and at which disparity."""
    knots = [curve.disparities for curve in (*upper, *lower)]
    x = np.unique(np.concatenate([np.linspace(0.0, most, 4001), *knots]))
    x = x[x <= most * (1 + 1e-9)]  # all curves reach LR's disparity, up to rounding
    gap = least(upper, x) - least(lower, x)
    place = int(np.nanargmax(gap))
    return float(gap[place]), float(x[place])


def spread(upper, lower, place, n_resamples=200):
    """Standard error of the gap at one disparity, by resampling splits or blocks of test rows."""
    rng = np.random.default_rng(0)
    n_units = upper[0].errors.shape[1]

    def value(family, units):
        # A resampled curve may begin a little later; its first point stands in.
        curves = [own.curve(units) for own in family]
        reaching = [curve for curve in curves if curve.disparities[0] <= place]
        first = min(curves, key=lambda curve: curve.disparities[0])
        return min(float(curve.at(place, below=None)) for curve in reaching or [first])

    drawn = [value(upper, units) - value(lower, units) for units in rng.integers(n_units, size=(n_resamples, n_units))]
    return float(np.std(drawn, ddof=1))


@dataclass(frozen=True)
class Gap:
    """One comparison: how far ``lower`` is below ``upper``, where, and how sure that is."""

    where: str
    upper: str
    lower: str
    gap: float
    disparity: float
    error: float
    bar: float

    @property
    def met(self):
        return self.gap <= self.bar


def judge(where, reference, found):
    """Each peer against our best curve, and our training alone against the best of all."""
    by_name = {method.name: method for method in METHODS}
    ours = [found[name] for name in found if by_name[name].ours]
    trained = [found[name] for name in found if by_name[name].ours and by_name[name].training]
    peers = {name: [found[name]] for name in found if not by_name[name].ours}
    pairs = [("ours", name, ours, peer, 0.001) for name, peer in peers.items() if ours]
    if trained and len(found) > len(trained):
        pairs.append(("our training", "best of all", trained, list(found.values()), 0.003))
    gaps = []
    for upper, lower, above, below, bar in pairs:
        gap, place = largest_gap([p.curve() for p in above], [p.curve() for p in below], reference.disparity)
        gaps.append(Gap(where, upper, lower, gap, place, spread(above, below, place), bar))
    return gaps


# ------------------------------------------------------------------------------------------------------ reporting


def table(where, reference, found):
    """Hypervolume, reach and error at a few disparities of every method, best first."""
    places = sorted({*BARS.get(where, ()), *(round(reference.disparity * part, 3) for part in (0.1, 0.2, 0.35, 0.6))})
    head = ["method", "hypervolume", "least SPDD", *(f"Err at {place:g}" for place in places)]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    rows = []
    for name, own in found.items():
        curve = own.curve()
        shown = ["-" if np.isnan(value) else f"{value:.4f}" for value in map(curve.at, places)]
        rows.append((curve.hypervolume(reference), name, f"{curve.disparities[0]:.3f}", *shown))
    for volume, name, *cells in sorted(rows, reverse=True):
        lines.append("| " + " | ".join((name, f"{volume:.4f}", *cells)) + " |")
    told = (
        f"{where[0]}, {where[1]}: LR errs on {reference.lr_error:.4f} at SPDD {reference.disparity:.3f}; noise floor "
        f"{reference.floor:.3f}; area from (SPDD {reference.disparity:.3f}, Err {reference.error:.4f}), the constant's."
    )
    return "\n".join([told, "", *lines, ""])


def gap_line(gap):
    place = f"at SPDD {gap.disparity:.3f}"
    if gap.error > 0:  # joined results have none
        place += f" (standard error {gap.error:.4f})"
    if gap.gap <= 0:
        least_distance = f"{abs(gap.gap):.4f} above at the closest, {place}"
        return f"{gap.where}: {gap.lower} is nowhere below {gap.upper}; {least_distance}: met"
    told = f"{gap.where}: {gap.lower} is below {gap.upper} by {gap.gap:.4f} at most, {place}; allowed {gap.bar:g}"
    return f"{told}: {'met' if gap.met else 'MISSED'}"


def reaching(where, reference, found):
    """Peers that get to a disparity, above the noise floor, that ours does not get to."""
    first = {name: own.curve().disparities[0] for name, own in found.items()}
    ours = min((first[method.name] for method in METHODS if method.ours and method.name in found), default=0.0)
    for method in METHODS:
        if not method.ours and max(first.get(method.name, np.inf), reference.floor) < ours:
            yield f"{', '.join(where)}: {method.name} reaches SPDD {first[method.name]:.3f}, ours {ours:.3f}: MISSED"


def fixed_points(where, found):
    """What our best curve must reach on Adult."""
    ours = [found[m.name].curve() for m in METHODS if m.ours and m.name in found]
    for disparity, bar in BARS.get(where, {}).items() if ours else ():
        value = float(least(ours, disparity))
        told = "is not reached" if np.isnan(value) else f"is {value:.4f}"
        verdict = "met" if value <= bar else "MISSED"
        yield f"{', '.join(where)}: our best at SPDD {disparity:g} {told}; asked {bar:g}: {verdict}"


def draw(panels, path):
    import matplotlib as mpl  # noqa: PLC0415 - the backend is chosen before pyplot is loaded

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    names = list(dict.fromkeys(name for name, _ in panels))
    figure, axes = plt.subplots(2, len(names), figsize=(5.2 * len(names), 9), layout="constrained", squeeze=False)
    ours, theirs = {"linewidth": 2.4, "marker": "o"}, {"linewidth": 1.3, "marker": "x", "linestyle": "--"}
    styles = {
        method.name: {"color": f"C{number}", "markersize": 4, **(ours if method.ours else theirs)}
        for number, method in enumerate(METHODS)
    }
    handles = {}
    for (name, situation), (reference, found) in panels.items():
        axis = axes[SITUATIONS.index(situation), names.index(name)]
        axis.axvspan(0.0, reference.floor, color="0.9", label="noise floor")
        curves = {name: own.curve() for name, own in found.items()}
        for method, curve in curves.items():
            axis.plot(curve.disparities, curve.errors, label=method, **styles[method])
        low = min(curve.errors[-1] for curve in curves.values())
        high = min(max(curve.errors[0] for curve in curves.values()), reference.error)
        axis.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        axis.set_xlim(0.0, 1.02 * reference.disparity)
        axis.set_title(f"{name}, {situation}")
        axis.set_xlabel("SPDD of the test rows")
        axis.set_ylabel("Err-.5 of the test rows")
        axis.grid(visible=True, alpha=0.3)
        handles.update(dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def run(report, data=tuple(DATA), methods=tuple(m.name for m in METHODS), weights=None):
    peers = ("fairlearn", "fairret", "equipy", "torch")
    report.settings["peers"] = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in peers)
    for method in METHODS:
        if method.name in methods:
            values = ", ".join(f"{value:g}" for value in method.grid)
            report.settings[method.name] = f"{method.settings}; {method.parameter} {values}"
            print(f"  {method.name}: {report.settings[method.name]}", flush=True)
    panels = {}
    for where in ((name, situation) for name in data for situation in SITUATIONS):
        found = tasks(*where, quick=report.quick)
        reference, curves = Reference.of(found), {}
        panels[where] = reference, curves
        told = report.curves[", ".join(where)] = {**vars(reference), "methods": {}}
        for method in METHODS:
            if method.name not in methods or where[1] not in method.situations:
                continue
            began = time.perf_counter()
            variant, trials = choose(method, found, where[1])
            grid = weights if weights and method.parameter == "parity_weight" else method.grid
            own = points(method, found, variant, grid[:: 4 if report.quick else 1])
            curves[method.name] = own
            seconds = time.perf_counter() - began
            told["methods"][method.name] = {
                "variant": variant, "hypervolume on held-back training rows": trials, "seconds": round(seconds, 1),
                "hypervolume": own.curve().hypervolume(reference), method.parameter: own.parameters,
                "error": own.errors.mean(axis=1).tolist(), "disparity": own.disparities.mean(axis=1).tolist(),
            }  # fmt: skip
            chosen = f" ({', '.join(variant.values())})" if variant else ""
            pairs = zip(own.parameters, own.errors.mean(axis=1), own.disparities.mean(axis=1), strict=True)
            line = "  ".join(f"{p}: {e:.4f} at {d:.3f}" for p, e, d in pairs)
            print(f"  {', '.join(where)}: {method.name}{chosen}, {seconds:.0f} s: {line}", flush=True)
            report.save()
    conclude(report, panels)


def join(report, paths):
    """Panels and gaps from the files of several runs.

    Files hold means. The gaps, with their standard errors, are a file's own where each panel is from one file only.
    """
    panels, gaps, seen = {}, [], []
    for path in paths:
        data = json.loads(path.read_text(encoding="utf-8"))
        report.settings.update(data["settings"])
        gaps += [Gap(**{key: gap[key] for key in gap if key != "met"}) for gap in data["curves"].pop("gaps")]
        seen += data["curves"]
        for where, told in data["curves"].items():
            methods, kept = told["methods"], report.curves.setdefault(where, {**told, "methods": {}})["methods"]
            kept.update(methods)
            _, curves = panels.setdefault(
                tuple(where.split(", ")),
                (Reference(*(told[name] for name in ("error", "disparity", "lr_error", "floor"))), {}),
            )
            for method in METHODS:
                if method.name in methods:
                    own, former = methods[method.name], curves.get(method.name)
                    error, disparity = (np.array(own[key])[:, None] for key in ("error", "disparity"))
                    found = Points(own[method.parameter], error, disparity)
                    curves[method.name] = found if former is None else former.with_more(found)
    if len(set(seen)) < len(seen):
        report.note("Panels joined from several runs, which keep means only: the gaps have no standard errors.")
        gaps = None
    return {where: panels[where] for where in ((d, s) for d in DATA for s in SITUATIONS) if where in panels}, gaps


def conclude(report, panels, gaps=None):
    tables = [table(where, *panel) for where, panel in panels.items()]
    print("\n" + "\n".join(tables), flush=True)
    if gaps is None:
        gaps = [gap for where, panel in panels.items() for gap in judge(", ".join(where), *panel)]
    for gap in sorted(gaps, key=lambda gap: gap.bar - gap.gap):
        report.note(gap_line(gap))
    for where, panel in panels.items():
        for line in reaching(where, *panel):
            report.note(line)
    for where, (_, curves) in panels.items():
        for line in fixed_points(where, curves):
            report.note(line)
    report.curves["gaps"] = [{**vars(gap), "met": gap.met} for gap in gaps]
    report.note(
        "Blind means without the columns that are functions of the group; German keeps age in years and Communities "
        "the shares of population, from which a model can tell much of the group."
    )
    report.folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["# Error against disparity", "", *tables, *(f"- {note}" for note in report.notes), ""])
    (report.folder / "frontier.md").write_text(text, encoding="utf-8")
    draw(panels, report.folder / "frontier.png")
    report.settings["more"] = "frontier.md and frontier.png, beside this file"


def main():
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--quick", action="store_true", help="few rows, splits and points, to see that it runs")
    home = _timing.RESULTS / "quality"
    parser.add_argument("--out", type=Path, default=home, help="where the results go")
    parser.add_argument("--weights", nargs="+", type=float, help="parity weights of ours, other than the usual ones")
    parser.add_argument(
        "--join", nargs="+", type=Path, metavar="JSON", help="judge the results of earlier runs together"
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="which data sets")
    names = [method.name for method in METHODS]
    parser.add_argument("--methods", nargs="+", choices=names, default=names, help="which methods")
    options = parser.parse_args()
    whole = options.data == list(DATA) and options.methods == names and not options.weights
    if not whole and options.out == home:
        parser.error("a selection would replace the results of all; name another folder with --out")
    report = _timing.Report("frontier", CLAIM, quick=options.quick, folder=options.out)
    print(f"frontier: {CLAIM}", flush=True)
    if options.join:
        conclude(report, *join(report, options.join))
    else:
        with _timing.threads(1):
            run(report, options.data, options.methods, options.weights)
    report.save()


if __name__ == "__main__":
    main()
