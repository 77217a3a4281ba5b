"""Training runs of Figure 4: COT and DOT go on while the share of women in class 1 changes; see `figure4`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairtransport.linear.solvers.sgd_problem import TrainingProblem
from fairtransport.paper._adult_training import paper_classifier
from fairtransport.paper._cached_parts import Part
from fairtransport.paper._shifted_adult import adult_by_sex, rows_at_rates
from fairtransport.paper._training_curves import Evaluator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.linear import Trainer
    from fairtransport.paper._cached_parts import Result, Stop
    from fairtransport.paper.splits import Split

__all__ = [
    "AFTER",
    "END",
    "EVERY",
    "GRID",
    "LOW",
    "METHODS",
    "ORIGINAL",
    "SETTLED",
    "SHOWN",
    "Runs",
    "all_rates",
    "gather_duals",
    "jumps",
    "part_name",
    "parts",
    "seeds",
    "segments_at",
]

# Shares of women in class 1: of the original data, roughly, and then the paper's list.
ORIGINAL = 0.1
_RATES = (0.2, 0.3, 0.3, 0.4, 0.1, 0.4, 0.3, 0.2, 0.2, 0.3, 0.3, 0.4, 0.1, 0.4, 0.3, 0.2, 0.2, 0.3, 0.3, 0.4)
METHODS = ("COT", "DOT")
_BATCH = 100
_COT = MappingProxyType(
    {
        "regularizer": "l2",
        "strength": 0.003,
        "opposite_duals": False,
        "n_fourier_features": 50,
        "kernel_variance": 0.1,
        "dual_step": 0.1,
    }
)
SEGMENT, _QUICK_SEGMENT = 5_000, 1_500  # updates
_STEP, _QUICK_STEP = 0.005, 0.012  # of theta
EVERY = 50  # updates between two records
_SEEDS, _QUICK_SEEDS = 3, 1
AFTER = 200  # updates after a change at which the duals are looked at again
GRID = np.linspace(0.0, 1.0, 101)

SETTLED = 3  # the segment that begins with the third change
END = 10  # records that make a segment's end
LOW = 0.03
SHOWN = 6  # the segment that begins at update 30,000


# ---------------------------------------------------------------- training


@lru_cache(maxsize=1)
def _start() -> Any:
    """Return theta*, scikit-learn's logistic regression with its default C."""
    split = adult_by_sex()
    return LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)


def _evaluator(split: Split, rate: float | None, target: NDArray[np.float64]) -> Evaluator:
    """Return an evaluator on test rows at a rate, the same rows for the same rate; all rows for the original data."""
    rows = np.arange(len(split.y_test))
    if rate is not None:
        rng = np.random.default_rng(round(1000 * rate))
        rows = rows_at_rates(split.y_test, split.sensitive_test["sex"], {"Female": rate}, rng)
    sex = {"sex": split.sensitive_test["sex"][rows]}
    return Evaluator.build(split.X_test[rows], split.y_test[rows], sex, target)


def _problem(split: Split, rate: float, target: NDArray[np.float64], rng: np.random.Generator) -> TrainingProblem:
    """Return the problem of training rows at a rate, with the same columns, groups and target."""
    rows = rows_at_rates(split.y_train, split.sensitive_train["sex"], {"Female": rate}, rng)
    return TrainingProblem.build(
        split.X_train[rows], split.y_train[rows], split.groups_train.select(rows), target, None
    )


def _duals(trainer: Trainer) -> NDArray[np.float64]:
    """Tabulate the women's dual variable and the target's in their problem over [0, 1]; DOT has none."""
    if trainer.objective.dual is None:
        return np.zeros((2, GRID.size))
    woman = trainer.problem.groups.index_of("Female")
    return np.array([trainer.duals[woman], trainer.target_duals[woman]]) @ trainer.objective.dual.features(GRID).T


def _adapt(settings: Mapping[str, Any], stop: Stop) -> Result:
    """Train through all segments and measure on test rows.

    Returns
    -------
    dict of ndarray
        ``update``, ``wass1`` and ``error`` of shape (segments, records): the first record of a segment is of
        theta as the segment before left it, each other one of the iterates' mean since the record before.
        ``duals`` of shape (segments, 2, 2, grid): soon after the change and at the end; of women and target.
    """
    split, parameters = adult_by_sex(), dict(settings)
    method, rates, segment, every = (parameters.pop(key) for key in ("method", "rates", "segment", "every"))
    seed, after = parameters.pop("seed"), parameters.pop("after")
    model = paper_classifier(method, _start(), seed, {"target": "Male", **parameters})
    stop.check()
    trainer = model.make_trainer(split.X_train, split.y_train, sensitive_features=split.sensitive_train)
    evaluators = {rate: _evaluator(split, rate, model.target_) for rate in (None, *dict.fromkeys(rates))}
    records, duals = [], []
    for number, rate in enumerate((None, *rates)):
        stop.check()
        if rate is not None:
            trainer.switch(_problem(split, rate, model.target_, np.random.default_rng([seed, number])))
        begin = trainer.done
        records.append([(begin, *evaluators[rate].measure(trainer.theta))])
        soon = _duals(trainer)
        while trainer.done < begin + segment:
            stop.check()
            trainer.forget_average()
            trainer.advance(min(every, begin + segment - trainer.done), average_from=trainer.done)
            records[-1].append((trainer.done, *evaluators[rate].measure(trainer.averaged())))
            if trainer.done <= begin + after:
                soon = _duals(trainer)
        duals.append((soon, _duals(trainer)))
    update, wass1, error = np.moveaxis(np.array(records), -1, 0)
    return {"update": update, "wass1": wass1, "error": error, "duals": np.array(duals)}


def seeds(*, quick: bool) -> range:
    """Return the seeds of the runs."""
    return range(_QUICK_SEEDS if quick else _SEEDS)


def part_name(method: str, seed: int) -> str:
    """Return the name of a run."""
    return f"figure4-{method}-seed{seed}"


def parts(*, quick: bool) -> list[Part]:
    """Return one training run for each method and seed.

    With ``quick``: one seed, shorter segments with longer steps.
    """
    segment, step = (_QUICK_SEGMENT, _QUICK_STEP) if quick else (SEGMENT, _STEP)
    runs = []
    for method in METHODS:
        for seed in seeds(quick=quick):
            settings = {
                "method": method,
                "rates": list(_RATES),
                "segment": segment,
                "every": EVERY,
                "after": AFTER,
                "batch_size": _BATCH,
                "parameter_step": step,
                "seed": seed,
                **(_COT if method == "COT" else {}),
            }
            cost = 1.5e-4 * segment * (1 + len(_RATES))
            runs.append(Part(part_name(method, seed), settings, partial(_adapt, settings), cost))
    return runs


# ---------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class Runs:
    """All seeds of one method: arrays of shape (seeds, segments, records)."""

    update: NDArray[np.float64]
    wass1: NDArray[np.float64]
    error: NDArray[np.float64]

    @classmethod
    def gather(cls, results: list[Result]) -> Runs:
        """Return the runs of a method from the results of its parts."""
        wass1, error = (np.array([result[key] for result in results]) for key in ("wass1", "error"))
        return cls(results[0]["update"], wass1, error)

    @property
    def start(self) -> NDArray[np.float64]:
        """Wass1 just after each change, by seed and segment."""
        return self.wass1[:, :, 0]

    @property
    def end(self) -> NDArray[np.float64]:
        """Mean Wass1 of each segment's last records, by seed and segment."""
        return self.wass1[:, :, -END:].mean(axis=2)

    @property
    def least(self) -> NDArray[np.float64]:
        """The minimum of each segment, by seed and segment."""
        return self.wass1.min(axis=2)

    @property
    def jitter(self) -> NDArray[np.float64]:
        """Standard deviation over each segment's second half, by seed and segment."""
        return self.wass1[:, :, self.wass1.shape[2] // 2 :].std(axis=2)

    @property
    def needed(self) -> NDArray[np.float64]:
        """Updates until Wass1 is low, by seed and segment; the whole segment where it never is."""
        low = self.wass1 <= LOW
        first = np.where(low.any(axis=2), low.argmax(axis=2), low.shape[2] - 1)
        return (self.update - self.update[:, :1])[0][first]


def all_rates() -> tuple[float, ...]:
    """Return the share of women in class 1 of each segment: the original data, then the paper's list."""
    return (ORIGINAL, *_RATES)


def segments_at(rate: float) -> list[int]:
    """Return the segments with a rate, in order."""
    return [segment for segment, other in enumerate(all_rates()) if other == rate]


def jumps() -> list[int]:
    """Return the segments that begin with the change from .1 to .4."""
    return [before + 1 for before, change in enumerate(pairwise(all_rates())) if change == (0.1, 0.4)]


def gather_duals(results: Mapping[str, Result], *, quick: bool) -> dict[str, NDArray[np.float64]]:
    """Return the duals at the change that the paper shows; arrays of shape (seeds, 2, grid).

    A constant moved from one dual to the other changes nothing, so both are shifted to the same mean over [0, 1].
    """
    runs = np.array([results[part_name("COT", seed)]["duals"] for seed in seeds(quick=quick)])
    runs += runs.mean(axis=(3, 4), keepdims=True) - runs.mean(axis=4, keepdims=True)
    return {"before": runs[:, SHOWN - 1, 1], "after": runs[:, SHOWN, 0]}
