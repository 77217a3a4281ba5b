"""Curves of error against disparity, hypervolumes, critical differences, and where a peer is better."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from scipy.stats import t as student

from benchmarks.field import methods
from benchmarks.field.tasks import TEST_SHARE

MEASURES = {
    "rank": "mean rank disparity", "spdd": "SPDD", "parity_difference": "difference at .5",
    "separation": "separation", "separation_ranks": "separation of ranks", "odds_difference": "odds difference at .5",
}  # fmt: skip
BASE = "base model"
ROUNDING = 1e-5  # of stored errors, which have five digits: two constant predictions differ by no more


@dataclass(frozen=True)
class Curve:
    """The least error at or below a disparity: linear between points that no other point of the method dominates."""

    disparities: np.ndarray
    errors: np.ndarray

    @classmethod
    def through(cls, disparities, errors):
        order = np.lexsort((errors, disparities))
        disparities, errors = np.asarray(disparities)[order], np.asarray(errors)[order]
        kept = np.append(True, errors[1:] < np.minimum.accumulate(errors)[:-1])
        return cls(disparities[kept], errors[kept])

    def at(self, disparity):
        """Constant beyond the last point, NaN where the curve does not reach."""
        return np.interp(disparity, self.disparities, self.errors, left=np.nan)


def hypervolume(disparities, errors, reference):
    """Area of what the points dominate, up to the reference (disparity, error)."""
    curve = Curve.through(np.append(disparities, reference[0]), np.append(errors, reference[1]))
    inside = curve.disparities < reference[0]
    x = np.append(curve.disparities[inside], reference[0])
    return float(np.sum(np.diff(x) * np.maximum(reference[1] - curve.errors[inside], 0.0)))


def critical_difference(values, alpha=0.05):
    """Mean ranks of methods (columns, 1 is the largest value), the critical difference, and Friedman's p-value.

    References
    ----------
    J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
    """
    values = np.asarray(values, dtype=float)
    n, k = values.shape
    ranks = rankdata(-values, axis=1).mean(axis=0)
    quantile = studentized_range.ppf(1 - alpha, k, np.inf) / sqrt(2)
    p_value = float(friedmanchisquare(*values.T).pvalue) if n > 1 and k > 2 else float("nan")
    return ranks, quantile * sqrt(k * (k + 1) / (6 * n)), p_value


# ------------------------------------------------------------------------------------------------------------- cells


@dataclass(frozen=True)
class Points:
    """Figures of one method: arrays (splits, settings) by the name of the figure.

    ``base`` has those of the base model, where that is the method with amount 0.
    """

    settings: tuple[str, ...]
    figures: dict[str, np.ndarray]
    base: dict[str, np.ndarray] | None = None

    def curve(self, measure, split=None):
        """From the constant prediction, which has no disparity and is open to everyone, through the method's points."""
        chosen = slice(None) if split is None else [split]
        known = [self.figures] if self.base is None else [self.figures, self.base]
        disparities, errors = (
            np.concatenate([figures[name][chosen].mean(axis=0) for figures in known]) for name in (measure, "error")
        )
        return Curve.through(np.append(disparities, 0.0), np.append(errors, self.figures["constant"][chosen].mean()))

    def least(self, measure):
        """The least disparity of a setting that is better than the constant prediction, and the error there."""
        disparities, errors = (self.figures[name].mean(axis=0) for name in (measure, "error"))
        useful = errors < self.figures["constant"].mean()
        disparities = np.where(useful, disparities, np.inf)
        number = int(np.argmin(disparities))
        return float(disparities[number]), float(errors[number])


def by_cell(records):
    """Return {cell: {method: Points}}, of splits on which all ran that ran on the first."""
    grouped = defaultdict(lambda: defaultdict(dict))
    for record in records:
        cell = methods.Cell(*(record[name] for name in ("data", "regime", "base", "criterion")))
        grouped[cell][record["method"]][str(record["setting"]), record["split"]] = record
    return {cell: _complete(found) for cell, found in grouped.items() if BASE in found}


def _complete(found):
    first, *others = sorted({split for _, split in found[BASE]})
    wanted = {(method, setting) for method, own in found.items() for setting, split in own if split == first}
    have = {s: {(method, setting) for method, own in found.items() for setting, at in own if at == s} for s in others}
    splits = [first, *(split for split in others if wanted <= have[split])]
    points = {}
    for method, own in found.items():
        settings = list(dict.fromkeys(setting for setting, _ in own))
        kept = [s for s in settings if all("error" in own.get((s, split), ()) for split in splits)]
        if not kept:
            continue
        names = set.intersection(*(set(own[s, split]) for s in kept for split in splits)) - {"setting", "split"}
        numeric = [n for n in names if isinstance(own[kept[0], splits[0]][n], int | float)]
        figures = {n: np.array([[own[s, split][n] for s in kept] for split in splits]) for n in numeric}
        base = points[BASE].figures if method in methods.FROM_BASE else None
        points[method] = Points(tuple(kept), figures, base)
    return points


def is_ours(cell, name):
    return name != BASE and any(method.ours for method in methods.methods(cell) if method.name == name)


# ----------------------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class Gap:
    """The error of ours above a peer's at one of the peer's points, with the standard error over splits.

    ``least`` has the least disparity of our method, and its error there. Splits share rows: ``is_clear`` is a test at
    5 % with the variance of Nadeau and Bengio (Machine Learning 52, 2003).
    """

    cell: methods.Cell
    measure: str
    ours: str
    peer: str
    setting: str
    disparity: float
    peer_error: float
    excess: float
    standard_error: float
    n_splits: int
    least: tuple[float, float]

    @property
    def is_interpolated(self):
        """True where our curve is between its point of least disparity and the constant prediction."""
        return self.least[0] > self.disparity

    @property
    def is_loss(self):
        return self.excess > max(self.standard_error, ROUNDING)

    @property
    def is_clear(self):
        larger = sqrt(1 + self.n_splits * TEST_SHARE / (1 - TEST_SHARE))
        return self.n_splits > 1 and self.excess > student.ppf(0.95, self.n_splits - 1) * larger * self.standard_error


def compare(own, peer, measure):
    """Yield (setting, disparity, error, excess, standard error, number of splits) at each point of a peer."""
    n = len(peer.figures["error"])
    curve, curves = own.curve(measure), [own.curve(measure, split) for split in range(n)]
    for number, setting in enumerate(peer.settings):
        disparities, errors = (peer.figures[name][:, number] for name in (measure, "error"))
        differences = [one.at(x) - e for one, x, e in zip(curves, disparities, errors, strict=True)]
        spread = float(np.std(differences, ddof=1)) / sqrt(n) if n > 1 else 0.0  # one split: any excess is a loss
        place, error = float(disparities.mean()), float(errors.mean())
        yield setting, place, error, float(curve.at(place)) - error, spread, n


def gaps(cell, points, measure, names=None):
    """The best of our methods (or of ``names``) at each point of each peer."""
    known = {name: own for name, own in points.items() if measure in own.figures and name != BASE}
    ours = {name: own for name, own in known.items() if (name in names if names else is_ours(cell, name))}
    best = {}
    for peer in (name for name in known if not is_ours(cell, name)):
        for name, own in ours.items():
            for setting, *figures in compare(own, known[peer], measure):
                gap = Gap(cell, measure, name, peer, setting, *figures, least=own.least(measure))
                rank = gap.excess - gap.standard_error
                if (peer, setting) not in best or rank < best[peer, setting][0]:
                    best[peer, setting] = rank, gap
    return [gap for _, gap in best.values()]


def volumes(points, measure):
    """Hypervolume of each method, mean over splits, with the base model added to each.

    1 is a model without disparity and with the base model's error; 0 is the base model. The reference is the base
    model's disparity and the error of a constant.
    """
    base, found = points[BASE].figures, {}
    if measure not in base:
        return {}
    for name, own in points.items():
        if measure not in own.figures or name == BASE:
            continue
        values = []
        for split in range(len(base["error"])):
            disparity, error = (float(base[n][split, 0]) for n in (measure, "error"))
            reference = disparity, max(float(base["constant"][split, 0]), 1.05 * error)
            x, y = (np.append(own.figures[n][split], base[n][split, 0]) for n in (measure, "error"))
            values.append(hypervolume(x, y, reference) / (disparity * (reference[1] - error)))
        found[name] = np.array(values)
    return found
