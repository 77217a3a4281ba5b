"""Figure 1: the optimal dual variables of N(-1, 1) and N(1, 1), free and with opposite duals.

Both regularizations, with fresh samples of the two Gaussians in every update. Their Wasserstein-1 distance is 2; a
regularized distance is at least 2 + strength * phi(1), with phi(1) = 1 for L2 and -1 for the entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import norm

from fairtransport._arrays import Floats
from fairtransport.paper import _drawing as drawing
from fairtransport.paper import finding
from fairtransport.transport.dual import solve_dual

_MEANS = {"X": -1.0, "Y": 1.0}
_W1 = 2.0
# phi(1) of each regularizer: what an independent coupling costs.
_REGULARIZERS: Mapping[str, float] = {"l2": 1.0, "entropy": -1.0}
_WORDS = {"l2": "L2", "entropy": "entropy"}
_CONSTRAINTS = {"free": False, "opposite": True}
_SETTINGS = {"strength": 0.2, "dual_step": 0.2, "n_fourier_features": 50, "kernel_variance": 4.0, "batch_size": 100}
_UPDATES, _QUICK_UPDATES = 10_000, 3_000
_SEEDS, _QUICK_SEEDS = 3, 1
_GRID = np.linspace(-4.0, 4.0, 161)
_BINS = np.linspace(-5.0, 5.0, 51)
_DRAWN = 10_000  # samples in each histogram
_NEAR = 0.1

_COLOURS = {"X": "#0072b2", "Y": "#d55e00"}
_MARKERS = {"X": "o", "Y": "s"}
_DASHES: Mapping[str, Any] = {"l2": "solid", "entropy": (0, (4.0, 1.6))}


def _sampler(mean: float, n: int, rng: np.random.Generator) -> Floats:
    return rng.normal(mean, 1.0, n)


def _solve(settings: Mapping[str, Any], stop: finding.Stop) -> finding.Result:
    """Solve one dual problem and tabulate both duals."""
    stop.check()
    parameters = dict(settings)
    seed = parameters.pop("seed")
    x, y = (partial(_sampler, mean) for mean in _MEANS.values())
    solution = solve_dual(x, y, random_state=seed, **parameters)
    stop.check()
    return {
        "x_dual": solution.x_dual(_GRID),
        "y_dual": solution.y_dual(_GRID),
        "value": np.array(solution.value),
        "outcome": np.array(solution.outcome),
    }


def parts(*, quick: bool) -> list[finding.Part]:
    """Return one dual problem for each regularizer, with and without the constraint, and seed."""
    n_updates, n_seeds = (_QUICK_UPDATES, _QUICK_SEEDS) if quick else (_UPDATES, _SEEDS)
    runs = []
    for regularizer, (constraint, opposite) in product(_REGULARIZERS, _CONSTRAINTS.items()):
        settings = {"regularizer": regularizer, "opposite_duals": opposite, "n_updates": n_updates, **_SETTINGS}
        name = f"figure1-{regularizer}-{constraint}"
        runs += finding.seeded_parts(name, settings, _solve, n_seeds=n_seeds, cost=3e-4 * n_updates)
    return runs


@dataclass(frozen=True, eq=False)
class _Curves:
    """All seeds of one regularizer, free or opposite; duals are of shape (seeds, grid)."""

    x_dual: Floats
    y_dual: Floats
    value: Floats

    @classmethod
    def gather(cls, runs: finding.Result) -> _Curves:
        x, y = runs["x_dual"], runs["y_dual"]
        # A constant moved from one dual to the other changes nothing, so both are shifted to the same mean.
        shift = 0.5 * (y @ _mass("Y") - x @ _mass("X"))[:, None]
        return cls(x + shift, y - shift, runs["value"])

    @property
    def surplus(self) -> tuple[float, float]:
        """Mean of each dual under its own distribution minus its mean under the other, the lowest over seeds."""
        gap = _mass("X") - _mass("Y")
        return float((self.x_dual @ gap).min()), float(-(self.y_dual @ gap).max())

    @property
    def sum(self) -> float:
        """Largest absolute sum of the two duals at a point."""
        return float(np.abs(self.x_dual + self.y_dual).max())


def _mass(which: str) -> Floats:
    """Return the probabilities of the grid points, with sum 1."""
    density = np.asarray(norm.pdf(_GRID, loc=_MEANS[which]), dtype=np.float64)
    return density / density.sum()


_AllCurves = dict[tuple[str, str], _Curves]


def _bound(regularizer: str) -> float:
    """Return the least value of the regularized distance."""
    return _W1 + _SETTINGS["strength"] * _REGULARIZERS[regularizer]


def _curve_table(curves: _AllCurves) -> finding.Table:
    rows = [
        (regularizer, constraint, seed, round(float(point), 3), *finding.rounded(*values))
        for (regularizer, constraint), solved in curves.items()
        for seed, duals in enumerate(zip(solved.x_dual, solved.y_dual, strict=True))
        for point, *values in zip(_GRID, *duals, strict=True)
    ]
    return finding.Table(("regularizer", "duals", "seed", "point", "x_dual", "y_dual"), tuple(rows))


def _value_table(curves: _AllCurves) -> finding.Table:
    rows = []
    for (regularizer, constraint), solved in curves.items():
        numbers = (solved.value.mean(), np.ptp(solved.value), _bound(regularizer), *solved.surplus)
        rows.append((_WORDS[regularizer], constraint, *map(_two_digits, numbers)))
    head = ("Regularization", "Duals", "Dual value", "Range over seeds", "W1 and bias", "Surplus of X", "Surplus of Y")
    return finding.Table(head, tuple(rows))


def _two_digits(value: float | np.floating[Any]) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _list(curves: _AllCurves, describe: Callable[[_Curves], str]) -> str:
    return "; ".join(f"{_WORDS[r]}, {constraint}: {describe(solved)}" for (r, constraint), solved in curves.items())


def _claims(curves: _AllCurves) -> tuple[finding.Claim, ...]:
    opposite, free = (
        max(solved.sum for (_, constraint), solved in curves.items() if constraint == which)
        for which in ("opposite", "free")
    )
    strength = _SETTINGS["strength"]
    miss = max(abs(solved.value.mean() - _bound(regularizer)) for (regularizer, _), solved in curves.items())
    return (
        finding.check(
            "The dual variable of a distribution is large where that distribution has more mass than the other.",
            "mean of each dual under its own distribution minus that under the other (X, Y): "
            + _list(curves, lambda solved: ", ".join(map(_two_digits, solved.surplus))),
            "Decided by the signs, the lowest seed of each.",
            holds=min(min(solved.surplus) for solved in curves.values()) > 0,
        ),
        finding.check(
            "With the constraint the two dual variables sum to zero at every point.",
            f"largest absolute sum {opposite:.1e}; without the constraint {_two_digits(free)}",
            "Decided by a sum of 1e-9 or less. Without the constraint nothing ties a dual down where its own "
            "distribution has no mass.",
            holds=opposite <= 1e-9,
            paper="0",
        ),
        finding.check(
            "The dual objective is the distance of the two distributions.",
            _list(curves, lambda solved: _two_digits(solved.value.mean())),
            f"Regularization of strength {strength:g} makes of it at least {_two_digits(_bound('l2'))} (L2) or "
            f"{_two_digits(_bound('entropy'))} (entropy); the constraint lowers it again. Decided by a difference of "
            f"{_NEAR:g} or less from these; the largest is {_two_digits(miss)}.",
            holds=miss <= _NEAR,
            paper="W1 = 2",
        ),
    )


@drawing.default_style()
def _figure(curves: _AllCurves, shares: Mapping[str, Floats]) -> Any:
    figure, ((left, center, right),) = drawing.start_figure(1, 3, (10.2, 3.7))
    center.sharey(right)
    for name, share in shares.items():
        left.stairs(share, _BINS, fill=True, linewidth=0, facecolor=_COLOURS[name], alpha=0.35)
        dashes = "solid" if name == "X" else (0, (2.0, 1.0))
        text = f"{name} from N({_MEANS[name]:.0f}, 1)".replace("-", "\N{MINUS SIGN}")
        left.stairs(share, _BINS, color=_COLOURS[name], linewidth=1.6, linestyle=dashes, label=text)
    drawing.label(left, title="Samples", y=f"Share of samples (%) in bins of {_BINS[1] - _BINS[0]:.1f}")
    left.set_yticks(np.arange(0, 9, 2))
    left.set_ylim(0, 1.22 * max(float(share.max()) for share in shares.values()))
    drawing.add_legend(left, "upper center", ncols=2, handlelength=2.0, columnspacing=1.2)
    _draw_duals(center, curves, "free")
    _draw_duals(right, curves, "opposite")
    drawing.label(center, title="Optimal dual variables", y="Value of the dual variable")
    drawing.label(right, title="The same, held opposite")
    for axis in (left, center, right):
        drawing.label(axis, x="Value of X or Y")
        axis.set_xticks((-4, -2, 0, 2, 4))
    entries = center.get_legend_handles_labels()
    drawing.add_legend(figure, "outside lower right", entries=entries, ncols=4, handlelength=3.4)
    return figure


def _draw_duals(axis: Any, curves: _AllCurves, constraint: str) -> None:
    axis.axhline(0.0, color=drawing.THEME.quiet, linewidth=0.8, zorder=2)
    for number, (name, regularizer) in enumerate(product(_MEANS, _REGULARIZERS)):
        solved = curves[regularizer, constraint]
        duals = solved.x_dual if name == "X" else solved.y_dual
        axis.plot(
            _GRID,
            duals.mean(axis=0),
            color=_COLOURS[name],
            linestyle=_DASHES[regularizer],
            linewidth=1.8 if regularizer == "l2" else 1.3,
            marker=_MARKERS[name],
            markersize=5,
            markerfacecolor=_COLOURS[name] if regularizer == "l2" else "white",
            markevery=(4 + 5 * number, 20),
            label=f"dual of {name}, {_WORDS[regularizer]}",
            zorder=4,
        )


def assemble(results: Mapping[str, finding.Result], *, quick: bool) -> finding.Finding:
    """Draw Figure 1 and check the paper's claims about it."""
    kinds = product(_REGULARIZERS, _CONSTRAINTS)
    curves = {kind: _Curves.gather(finding.stack_seeds(results, "figure1-" + "-".join(kind))) for kind in kinds}
    rng = np.random.default_rng(0)
    shares = {name: finding.shares_of(_sampler(mean, _DRAWN, rng), _BINS) for name, mean in _MEANS.items()}
    strength = f"{_SETTINGS['strength']:g}" + ("" if quick else f", mean of {_SEEDS} seeds")
    return finding.Finding(
        "figure1",
        "Figure 1: dual variables",
        "Left: histograms of two Gaussians. Center: their optimal dual variables by stochastic gradient, with L2 "
        f"and with entropy regularization of strength {strength}. Right: the same with duals that "
        "sum to zero at every point. A constant moved from one dual to the other changes nothing; they are drawn with "
        "equal means. Surplus: how much higher a dual is, on average, under its own distribution than under the "
        "other.",
        figures={"figure1": _figure(curves, shares)},
        tables={
            "figure1": _curve_table(curves),
            "figure1-histograms": finding.bin_table(
                _BINS, {f"{name}_percent": share for name, share in shares.items()}
            ),
        },
        shown={"figure1": _value_table(curves)},
        claims=_claims(curves),
    )
