"""Twenty synthetic tables that are hard for a linear model under demographic parity.

Every table is drawn from a fixed integer seed. What a linear model of its features can reach is known by construction:
``fair_basis`` holds directions in which the features are independent of the group, so a model within their span has
rank parity; the columns that carry the label tell how much information such a model keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LARGEST = 1e6  # heavy tails are clipped here


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, labels, group labels and, where a table has them, sample weights of one sample."""

    X: Any
    y: np.ndarray
    groups: np.ndarray
    sample_weight: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class HardTable:
    """A training sample and independent samples of the same distribution.

    ``aware`` says whether indicators of the groups are among the features. ``family_allows`` says whether a linear
    model of these features can reach rank parity and keep at least half of the information, and ``why`` gives the
    reason. ``fair_basis`` has a column for each direction along which features do not depend on the group; it is None
    where the family does not allow parity.
    """

    name: str
    train: Rows
    fresh: tuple[Rows, ...]
    sizes: Mapping[str, int]
    aware: bool
    family_allows: bool
    why: str
    fair_basis: np.ndarray | None


@dataclass(frozen=True)
class Recipe:
    """How one table is drawn: the features and the logit (without intercept) of rows with given group codes."""

    draw: Callable[[np.random.Generator, np.ndarray], tuple[Any, np.ndarray]]
    sizes: tuple[int, ...]
    rate: float
    why: str
    fair_basis: np.ndarray | None = None
    aware: bool = False
    separable: bool = False
    weighted: bool = False


# --------------------------------------------------------------------------------------------------------- columns


def independent(rng, n, n_columns):
    return rng.normal(size=(n, n_columns))


def shifted(rng, codes, n_columns, shifts):
    """Normal columns whose mean depends on the group."""
    return rng.normal(size=(len(codes), n_columns)) + np.asarray(shifts)[codes][:, None]


def collinear(rng, factor, n_columns, correlation):
    """Copies of a factor with noise, so that any two of them have the given correlation."""
    noise = np.sqrt((1 - correlation) / correlation) * rng.normal(size=(len(factor), n_columns))
    return factor[:, None] + noise


def heavy_tailed(rng, n, n_columns, spread=4.0):
    """Log-normal columns of either sign, clipped at one million."""
    values = np.exp(spread * rng.normal(size=(n, n_columns))) * rng.choice((-1.0, 1.0), size=(n, n_columns))
    return np.clip(values, -LARGEST, LARGEST)


def binaries(rng, codes, rates):
    """Columns of 0 and 1; ``rates`` has a row for each group, or one row for all of them."""
    rates = np.atleast_2d(rates)
    return (rng.random((len(codes), rates.shape[1])) < rates[codes % len(rates)]).astype(np.float64)


def indicators(codes, n_groups):
    return np.eye(n_groups)[codes]


def select(columns, n_columns):
    """Directions along single columns."""
    return np.eye(n_columns)[:, list(columns)]


def residuals(shifts, scales=(1.0,)):
    """Directions along columns from which the indicators' coefficients take the mean of each group away.

    Columns come first, one for each scale; indicators of the groups follow.
    """
    return np.vstack((np.eye(len(scales)), -np.outer(shifts, scales)))


def spread_evenly(n_groups, scale, seed):
    """Shifts from -scale to scale in random order, so that size and shift are unrelated."""
    return np.random.default_rng(seed).permutation(np.linspace(-scale, scale, n_groups))


# ---------------------------------------------------------------------------------------------------------- tables


def fair_and_shifted(fair, unfair, shifts, *, effects=(1.0, 0.7)):
    """Independent normal columns first, shifted ones after them; both carry the label."""

    def draw(rng, codes):
        first, second = independent(rng, len(codes), fair), shifted(rng, codes, unfair, shifts)
        logit = effects[0] * first.sum(axis=1) / np.sqrt(fair) + effects[1] * second.sum(axis=1) / np.sqrt(unfair)
        return np.hstack((first, second)), logit

    return draw


def all_shifted(n_columns, shifts, effect):
    """Columns that all move with the group, along the direction that carries the label."""

    def draw(rng, codes):
        X = shifted(rng, codes, n_columns, shifts)
        return X, effect * X.sum(axis=1) / np.sqrt(n_columns)

    return draw


def draw_single_aware(rng, codes):
    x = shifted(rng, codes, 1, (0.0, 1.2))
    return np.hstack((x, indicators(codes, 2))), 1.5 * x[:, 0]


def draw_collinear(rng, codes):
    n = len(codes)
    first, second, third = rng.normal(size=(3, n))
    third = third + spread_evenly(4, 1.0, 4)[codes]
    X = [
        collinear(rng, first, 12, 0.97), collinear(rng, second, 8, 0.99), heavy_tailed(rng, n, 8),
        collinear(rng, third, 7, 0.97),
    ]  # fmt: skip
    return np.hstack(X), 1.5 * first + second + 0.8 * third


def draw_heavy_tails(rng, codes):
    n = len(codes)
    plain, tails = independent(rng, n, 3), heavy_tailed(rng, n, 3)
    exponents = shifted(rng, codes, 2, spread_evenly(3, 1.0, 5))
    X = np.hstack((plain, tails, np.exp(exponents)))
    return X, 1.2 * plain.sum(axis=1) + 0.1 * np.arcsinh(tails).sum(axis=1) + 0.6 * exponents.sum(axis=1)


def draw_rare_binaries(rng, codes):
    n, structure = len(codes), np.random.default_rng(6)
    same, base = structure.uniform(0.001, 0.01, 20), structure.uniform(0.001, 0.004, 20)
    by_group = base * structure.choice((0.25, 1.0, 2.5), size=(6, 20))
    fair, unfair = independent(rng, n, 4), shifted(rng, codes, 2, spread_evenly(6, 0.8, 6))
    rare = np.hstack((binaries(rng, codes, same), binaries(rng, codes, by_group)))
    logit = fair.sum(axis=1) + 0.6 * unfair.sum(axis=1) + rare @ structure.choice((-2.0, 2.0), 40)
    return sparse.csr_matrix(np.hstack((fair, rare, unfair))), logit


def draw_wide(rng, codes):
    n = len(codes)
    noise = independent(rng, n, 461)
    noise = noise[:, 1:] + noise[:, :-1]
    fair, unfair = independent(rng, n, 20), shifted(rng, codes, 20, (-0.25, 0.25, 0.0))
    return np.hstack((fair, noise, unfair)), 0.5 * fair.sum(axis=1) + 0.15 * unfair.sum(axis=1)


def draw_wide_sparse(rng, codes):
    structure = np.random.default_rng(10)
    same = np.broadcast_to(structure.uniform(0.02, 0.1, 140), (5, 140))
    by_group = structure.uniform(0.02, 0.06, 60) * structure.choice((0.5, 1.0, 2.0), size=(5, 60))
    counts = rng.poisson(np.hstack((same, by_group))[codes]).astype(np.float64)
    effects = structure.normal(size=200) * np.repeat((1.2, 0.7), (140, 60))
    return sparse.csr_matrix(np.hstack((counts, indicators(codes, 5)))), counts @ effects


def draw_unequal_spread(rng, codes):
    x = rng.normal(size=len(codes)) * (1.0 + 2.0 * codes) + codes
    return np.column_stack((x, indicators(codes, 2))), x


def draw_constant_columns(rng, codes):
    X, logit = fair_and_shifted(5, 2, (-0.8, 0.0, 0.8), effects=(1.5, 0.8))(rng, codes)
    constants = np.broadcast_to((0.0, 1.0, 1e5), (len(codes), 3))
    return np.hstack((constants, X[:, :1], X)), logit


UNITS = 10.0 ** np.array((-6, -4, -2, 0, 0, 1, 2, 4, 6))


def draw_units(rng, codes):
    X = shifted(rng, codes, len(UNITS), (0.0, 0.4))
    return np.hstack((X * UNITS, indicators(codes, 2))), 0.6 * X.sum(axis=1)


def draw_everything(rng, codes):
    n, structure = len(codes), np.random.default_rng(20)
    first, second = rng.normal(size=(2, n))
    unfair = rng.normal(size=n) + spread_evenly(8, 1.2, 20)[codes]
    rare = binaries(rng, codes, structure.uniform(0.001, 0.01, 10))
    X = (
        collinear(rng, first, 10, 0.97), collinear(rng, second, 10, 0.95), heavy_tailed(rng, n, 10), rare,
        np.broadcast_to((0.0, 1.0, -3.0, 1e4, 1e-4), (n, 5)), independent(rng, n, 5) * (1e-5, 1e-2, 1.0, 1e3, 1e5),
        collinear(rng, unfair, 10, 0.98),
    )  # fmt: skip
    return np.hstack(X), 1.4 * first + second + rare @ structure.choice((-2.0, 2.0), 10) + 0.8 * unfair


TWELVE = (3, 7, 15, 30, 60, 120, 250, 500, 800, 1200, 2000, 3000)
INDEPENDENT = "the first columns are independent of the group and carry most of the label"
ALIGNED = "the groups' features differ in location only, and the indicators' coefficients align them"
SAME_DIRECTION = (
    "all columns move with the group along the direction that carries the label, and the group is no feature"
)

RECIPES = {
    "single_blind": Recipe(
        all_shifted(1, (0.0, 1.0), 1.5), (3000, 2000), 0.5,
        "one column that moves with the group, which is no feature: every model keeps its order or reverses it",
    ),
    "single_aware": Recipe(draw_single_aware, (2500, 1500), 0.5, ALIGNED, residuals((0.0, 1.2)), aware=True),
    "few_blind": Recipe(all_shifted(4, (0.0, 0.8), 1.5), (2500, 1800), 0.4, SAME_DIRECTION),
    "collinear": Recipe(draw_collinear, (10000, 7000, 3000, 1000), 0.3, INDEPENDENT, select(range(28), 35)),
    "heavy_tails": Recipe(draw_heavy_tails, (2500, 1500, 800), 0.4, INDEPENDENT, select(range(6), 8)),
    "rare_binaries": Recipe(
        draw_rare_binaries, (5000, 3000, 2000, 1200, 600, 200), 0.2, INDEPENDENT, select(range(24), 46)
    ),
    "twelve_groups": Recipe(
        fair_and_shifted(10, 5, spread_evenly(12, 0.8, 7), effects=(2.0, 0.8)), TWELVE, 0.9, INDEPENDENT,
        select(range(10), 15),
    ),
    "large_group": Recipe(
        fair_and_shifted(5, 3, (0.0, 1.0, -1.0, 0.5), effects=(1.5, 0.8)), (50000, 2000, 40, 3), 0.25, INDEPENDENT,
        select(range(5), 8),
    ),
    "wide": Recipe(draw_wide, (3500, 2000, 500), 0.5, INDEPENDENT, select(range(480), 500)),
    "wide_sparse": Recipe(
        draw_wide_sparse, (3500, 2000, 1500, 700, 300), 0.35, INDEPENDENT, select(range(140), 205), aware=True
    ),
    "separable": Recipe(
        fair_and_shifted(7, 3, (0.0, 1.0), effects=(1.0, 0.25)), (1800, 1200), 0.5, INDEPENDENT, select(range(7), 10),
        separable=True,
    ),
    "rare_label": Recipe(
        fair_and_shifted(4, 2, (0.0, 0.8), effects=(1.8, 0.8)), (12000, 8000), 0.01, INDEPENDENT, select(range(4), 6)
    ),
    "unequal_spread": Recipe(
        draw_unequal_spread, (2500, 1500), 0.7,
        "the column is three times as spread out in one group; an indicator moves scores but does not rescale them",
        aware=True,
    ),
    "constant_columns": Recipe(
        draw_constant_columns, (1200, 900, 400), 0.5, INDEPENDENT, select(range(9), 11)
    ),
    "units": Recipe(draw_units, (2500, 1500), 0.45, ALIGNED, residuals((0.0, 0.4), UNITS), aware=True),
    "weights": Recipe(
        fair_and_shifted(5, 3, (-0.7, 0.0, 0.7), effects=(1.5, 0.8)), (2500, 1500, 1000), 0.4, INDEPENDENT,
        select(range(5), 8), weighted=True,
    ),
    "no_difference": Recipe(
        fair_and_shifted(3, 3, (0.0,) * 4), (2000, 1500, 1000, 500), 0.3, "groups do not differ: nothing is to be done",
        select(range(6), 6),
    ),
    "two_rare_groups": Recipe(
        fair_and_shifted(8, 3, (0.0, 1.8, -1.0, 3.0), effects=(2.0, 0.6)), (2965, 2000, 20, 15), 0.5, INDEPENDENT,
        select(range(8), 11),
    ),
    "separable_blind": Recipe(
        all_shifted(3, (0.0, 0.7, -0.7, 1.0), 1.0), (1500, 1000, 500, 100), 0.3, SAME_DIRECTION, separable=True
    ),
    "everything": Recipe(
        draw_everything, (8000, 3000, 1000, 400, 100, 30, 8, 3), 0.15, INDEPENDENT, select(range(50), 60)
    ),
}  # fmt: skip
NAMES = tuple(RECIPES)


# --------------------------------------------------------------------------------------------------------- samples


def make_table(name: str | int, *, n_fresh: int = 5, task: str = "classification") -> HardTable:
    """Draw one of the twenty tables, by name or index; the same arrays at every call.

    Each of the ``n_fresh`` independent samples has half as many rows of every group as the training rows, and three of
    a group at least. For regression ``y`` is in units from 1e-6 to 1e9, in every second table with heavy tails.
    """
    if task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression'; got {task!r}.")
    name = NAMES[name] if isinstance(name, int) else name
    if name not in RECIPES:
        raise ValueError(f"no such table: {name!r}; there are {', '.join(NAMES)}.")
    recipe, seed = RECIPES[name], NAMES.index(name)
    intercept = _intercept(recipe, np.random.default_rng((seed, 2)))
    smaller = tuple(max(3, size // 2) for size in recipe.sizes)
    drawn = partial(_sample, number=None if task == "classification" else seed)
    train = drawn(recipe, recipe.sizes, intercept, np.random.default_rng((seed, 0)))
    fresh = tuple(
        drawn(recipe, smaller, intercept, np.random.default_rng((seed, 1, index))) for index in range(n_fresh)
    )
    sizes = {_group_name(code): size for code, size in enumerate(recipe.sizes)}
    basis = recipe.fair_basis
    return HardTable(name, train, fresh, sizes, recipe.aware, basis is not None, recipe.why, basis)


def _group_name(code):
    return "abcdefghijkl"[code]


def _codes(sizes, rng):
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def _intercept(recipe, rng):
    """Find the intercept that gives the label its rate on a sample of its own."""
    _, logit = recipe.draw(rng, _codes(recipe.sizes, rng))
    if recipe.separable:
        return -np.quantile(logit, 1 - recipe.rate)
    return brentq(lambda intercept: expit(logit + intercept).mean() - recipe.rate, -100.0, 100.0)


def _sample(recipe, sizes, intercept, rng, number=None):
    codes = _codes(sizes, rng)
    X, logit = recipe.draw(rng, codes)
    if number is None:
        noise = 0.0 if recipe.separable else rng.logistic(size=len(codes))
        y = (logit + intercept + noise > 0).astype(np.int64)
    else:
        y = _real_y(logit + intercept, number, rng, noise=0.01 if recipe.separable else 1.0)
    names = np.array([_group_name(code) for code in range(len(sizes))])
    weight = np.clip(np.exp(0.7 * rng.normal(size=len(codes))), 0.1, 10.0) if recipe.weighted else None
    return Rows(X, y, names[codes], weight)


def _real_y(signal, number, rng, *, noise):
    """The signal of the labels with noise, in every second table of heavy tails, in a unit of the table's own."""
    errors = rng.standard_t(3.0, len(signal)) if number % 2 else rng.standard_normal(len(signal))
    unit = 10.0 ** np.round(np.linspace(-6.0, 9.0, len(NAMES)))[number]
    return unit * (signal + noise * errors)
