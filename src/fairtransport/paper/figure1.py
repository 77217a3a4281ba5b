"""Figure 1: the optimal dual variables of N(-1, 1) and N(1, 1), free and with opposite duals.

Both regularizations, with fresh samples of the two Gaussians in every update. The Wasserstein-1 distance of the two is
2, the difference of their means. A regularized distance is not: its divergence is least, phi(1), when the coupling is
independent, so it is at least 2 + strength * phi(1), with phi(1) = 1 for L2 and -1 for the entropy. The
coupling that W1 calls for is close to independent here (nearly all of X lies left of Y, and then every coupling
costs the same), so the bound is almost met.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from fairtransport.paper.finding import Claim, Finding, Part, Table, bin_table, default_style, start_figure, verdict
from fairtransport.report.style.figures import THEMES, GroupStyle
from fairtransport.transport.dual import solve_dual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.paper.finding import Result, Stop


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

_STYLES = {"X": GroupStyle("#0072b2"), "Y": GroupStyle("#d55e00")}
_MARKERS = {"X": "o", "Y": "s"}
_DASHES: Mapping[str, Any] = {"l2": "solid", "entropy": (0, (4.0, 1.6))}


# ---------------------------------------------------------------- computing


def _sampler(mean: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.normal(mean, 1.0, n)


def _solve(settings: Mapping[str, Any], stop: Stop) -> Result:
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


def _seeds(quick: bool) -> range:
    return range(_QUICK_SEEDS if quick else _SEEDS)


def _name(regularizer: str, constraint: str, seed: int) -> str:
    return f"figure1-{regularizer}-{constraint}-seed{seed}"


def parts(*, quick: bool) -> list[Part]:
    """Return one dual problem for each regularizer, with and without the constraint, and seed.

    With ``quick``: one seed and fewer updates.
    """
    runs = []
    for regularizer in _REGULARIZERS:
        for constraint, opposite in _CONSTRAINTS.items():
            for seed in _seeds(quick):
                n_updates = _QUICK_UPDATES if quick else _UPDATES
                settings = {
                    "regularizer": regularizer,
                    "opposite_duals": opposite,
                    "n_updates": n_updates,
                    "seed": seed,
                    **_SETTINGS,
                }
                name = _name(regularizer, constraint, seed)
                runs.append(Part(name, settings, partial(_solve, settings), cost=3e-4 * n_updates))
    return runs


# ---------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class _Curves:
    """All seeds of one regularizer, free or opposite; duals are of shape (seeds, grid)."""

    x_dual: NDArray[np.float64]
    y_dual: NDArray[np.float64]
    value: NDArray[np.float64]

    @classmethod
    def gather(cls, results: list[Result]) -> _Curves:
        x, y = (np.array([result[key] for result in results], dtype=np.float64) for key in ("x_dual", "y_dual"))
        # A constant moved from one dual to the other changes nothing, so both are shifted to the same mean.
        shift = 0.5 * (y @ _mass("Y") - x @ _mass("X"))[:, None]
        return cls(x + shift, y - shift, np.array([float(result["value"]) for result in results]))

    @property
    def surplus(self) -> tuple[float, float]:
        """Mean of each dual under its own distribution minus its mean under the other, the lowest over seeds."""
        gap = _mass("X") - _mass("Y")
        return float((self.x_dual @ gap).min()), float(-(self.y_dual @ gap).max())

    @property
    def sum(self) -> float:
        """Largest absolute sum of the two duals at a point."""
        return float(np.abs(self.x_dual + self.y_dual).max())


def _mass(which: str) -> NDArray[np.float64]:
    """Return the probabilities of the grid points, with sum 1."""
    density = np.asarray(norm.pdf(_GRID, loc=_MEANS[which]), dtype=np.float64)
    return density / density.sum()


_AllCurves = dict[tuple[str, str], _Curves]


def _gather(results: Mapping[str, Result], quick: bool) -> _AllCurves:
    return {
        (regularizer, constraint): _Curves.gather(
            [results[_name(regularizer, constraint, seed)] for seed in _seeds(quick)]
        )
        for regularizer in _REGULARIZERS
        for constraint in _CONSTRAINTS
    }


def _curve_table(curves: _AllCurves) -> Table:
    rows = []
    for (regularizer, constraint), solved in curves.items():
        for seed in range(len(solved.value)):
            for position, point in enumerate(_GRID):
                values = (float(solved.x_dual[seed, position]), float(solved.y_dual[seed, position]))
                rows.append((regularizer, constraint, seed, round(float(point), 3), *(round(v, 5) for v in values)))
    return Table(("regularizer", "duals", "seed", "point", "x_dual", "y_dual"), tuple(rows))


def _value_table(curves: _AllCurves) -> Table:
    rows = []
    for (regularizer, constraint), solved in curves.items():
        bound = _W1 + _SETTINGS["strength"] * _REGULARIZERS[regularizer]
        numbers = (
            _two_digits(solved.value.mean()),
            _two_digits(np.ptp(solved.value)),
            _two_digits(bound),
            *map(_two_digits, solved.surplus),
        )
        rows.append((_WORDS[regularizer], constraint, *numbers))
    head = ("Regularization", "Duals", "Dual value", "Range over seeds", "W1 and bias", "Surplus of X", "Surplus of Y")
    return Table(head, tuple(rows))


# ---------------------------------------------------------------- claims


def _two_digits(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _list(curves: _AllCurves, describe: Any) -> str:
    return "; ".join(f"{_WORDS[r]}, {constraint}: {describe(solved)}" for (r, constraint), solved in curves.items())


def _claims(curves: _AllCurves) -> tuple[Claim, ...]:
    least = min(min(solved.surplus) for solved in curves.values())
    opposite = max(solved.sum for (_, constraint), solved in curves.items() if constraint == "opposite")
    free = max(solved.sum for (_, constraint), solved in curves.items() if constraint == "free")
    strength = _SETTINGS["strength"]
    misses = [abs(solved.value.mean() - _W1 - strength * _REGULARIZERS[r]) for (r, _), solved in curves.items()]
    return (
        Claim(
            "The dual variable of a distribution is large where that distribution has more mass than the other.",
            "",
            "mean of each dual under its own distribution minus that under the other (X, Y): "
            + _list(curves, lambda solved: ", ".join(map(_two_digits, solved.surplus))),
            verdict(holds=least > 0),
            "Decided by the signs, the lowest seed of each.",
        ),
        Claim(
            "With the constraint the two dual variables sum to zero at every point.",
            "0",
            f"largest absolute sum {opposite:.1e}; without the constraint {_two_digits(free)}",
            verdict(holds=opposite <= 1e-9),
            "Decided by a sum of 1e-9 or less. Without the constraint nothing ties a dual down where its own "
            "distribution has no mass.",
        ),
        Claim(
            "The dual objective is the distance of the two distributions.",
            "W1 = 2",
            _list(curves, lambda solved: _two_digits(solved.value.mean())),
            verdict(holds=max(misses) <= _NEAR),
            f"Regularization of strength {strength:g} makes of it at least {_two_digits(_W1 + strength)} (L2) or "
            f"{_two_digits(_W1 - strength)} (entropy); the constraint lowers it again. Decided by a difference of "
            f"{_NEAR:g} or less from these; the largest is {_two_digits(max(misses))}.",
        ),
    )


# ---------------------------------------------------------------- the figure


def _shares() -> dict[str, NDArray[np.float64]]:
    """Return the percentage of the samples in each bin."""
    rng = np.random.default_rng(0)
    return {name: 100.0 * np.histogram(_sampler(mean, _DRAWN, rng), _BINS)[0] / _DRAWN for name, mean in _MEANS.items()}


def _figure(curves: _AllCurves, shares: Mapping[str, NDArray[np.float64]]) -> Any:
    figure, ((left, center, right),) = start_figure(1, 3, (10.2, 3.7))
    center.sharey(right)
    with default_style():
        for name, share in shares.items():
            fill = {"facecolor": _STYLES[name].colour, "alpha": 0.35}
            left.stairs(share, _BINS, fill=True, linewidth=0, **fill)
            dashes = "solid" if name == "X" else (0, (2.0, 1.0))
            label = f"{name} from N({_MEANS[name]:.0f}, 1)".replace("-", "\N{MINUS SIGN}")
            left.stairs(share, _BINS, color=_STYLES[name].colour, linewidth=1.6, linestyle=dashes, label=label)
        left.set_title("Samples", fontsize=10, loc="left")
        left.set_ylabel(f"Share of samples (%) in bins of {_BINS[1] - _BINS[0]:.1f}", fontsize=9)
        left.set_yticks(np.arange(0, 9, 2))
        left.set_ylim(0, 1.22 * max(float(share.max()) for share in shares.values()))
        left.legend(fontsize=8.5, frameon=False, loc="upper center", ncols=2, handlelength=2.0, columnspacing=1.2)
        _draw_duals(center, curves, "free")
        _draw_duals(right, curves, "opposite")
        center.set_title("Optimal dual variables", fontsize=10, loc="left")
        right.set_title("The same, held opposite", fontsize=10, loc="left")
        center.set_ylabel("Value of the dual variable", fontsize=9)
        for axis in (left, center, right):
            axis.set_xlabel("Value of X or Y", fontsize=9)
            axis.set_xticks((-4, -2, 0, 2, 4))
        handles, labels = center.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower right", ncols=4, fontsize=8.5, frameon=False, handlelength=3.4
        )
    return figure


def _draw_duals(axis: Any, curves: _AllCurves, constraint: str) -> None:
    axis.axhline(0.0, color=THEMES["light"].quiet, linewidth=0.8, zorder=2)
    for position, name in enumerate(_MEANS):
        for order, regularizer in enumerate(_REGULARIZERS):
            solved = curves[regularizer, constraint]
            duals = solved.x_dual if name == "X" else solved.y_dual
            axis.plot(
                _GRID,
                duals.mean(axis=0),
                color=_STYLES[name].colour,
                linestyle=_DASHES[regularizer],
                linewidth=1.8 if regularizer == "l2" else 1.3,
                marker=_MARKERS[name],
                markersize=5,
                markerfacecolor=_STYLES[name].colour if regularizer == "l2" else "white",
                markevery=(4 + 5 * (2 * position + order), 20),
                label=f"dual of {name}, {_WORDS[regularizer]}",
                zorder=4,
            )


def assemble(results: Mapping[str, Result], *, quick: bool) -> Finding:
    """Draw Figure 1 and check the paper's claims about it; see `fairtransport.paper.finding.Item`."""
    curves, shares = _gather(results, quick), _shares()
    strength = f"{_SETTINGS['strength']:g}" + ("" if quick else f", mean of {_SEEDS} seeds")
    return Finding(
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
            "figure1-histograms": bin_table(_BINS, {f"{name}_percent": share for name, share in shares.items()}),
        },
        shown={"figure1": _value_table(curves)},
        claims=_claims(curves),
    )
