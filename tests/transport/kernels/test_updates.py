"""The compiled loop of the stochastic solver against the plain algorithm of `fairtransport.transport.reference`."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from fairtransport import GroupPolicy
from fairtransport.criteria.criterion import resolve_criterion
from fairtransport.groups import make_groups
from fairtransport.linear.sgd_solver import Objective, ParameterSteps, Trainer, TrainingProblem
from fairtransport.strata import make_strata
from fairtransport.training.responses import LOSSES
from fairtransport.transport import reference
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import draw_features
from fairtransport.transport.regularizers import get_regularizer

from .tables import TABLES


def make_trainer(*, kind="l2", opposite=True, pairs="matched", storage="dense", anchor=1.0, group_specific=False,
                 dtype="f8", batch=7, n=120, table="mixed", overlap=False, weights=None, criterion=None,
                 strata=None, loss="logistic"):  # fmt: skip
    rng = np.random.default_rng(5)
    X = TABLES[table](rng, n).astype(dtype)
    d = X.shape[1]
    groups = make_groups(rng.integers(3, size=n))
    if overlap:
        groups = make_groups(
            np.column_stack((rng.integers(2, size=n), np.r_[0, 1:n] > 0)), groups=GroupPolicy(crossed=False)
        )
    labels = (rng.random(n) < 0.4).astype(float)
    matrix = sparse.csr_matrix(X) if storage == "csr" else X
    compared, target = None, np.sort(rng.beta(2, 3, 64))
    if criterion is not None:
        strata = None if strata is None else make_strata(np.arange(n) % strata)
        compared = resolve_criterion(criterion, groups, labels=labels, strata=strata)
        target = np.sort(rng.beta(2, 3, (len(compared.compared), 64)))
    outcomes = labels if loss == "logistic" else 3.0 * rng.normal(size=n)
    problem = TrainingProblem.build(matrix, outcomes, groups, target, weights, strata=compared, loss=LOSSES[loss])
    dual = None
    if kind != "discrete":
        dual = DualProblem(draw_features(20, 0.1, rng), get_regularizer(kind), 0.2, opposite, pairs)
    objective = Objective(parity=1.5, anchor=anchor, ridge=0.01, dual=dual, dual_step=0.3)
    steps = ParameterSteps(0.05, rng.uniform(0.5, 2.0, d + 1), decay=0.03)
    theta = rng.normal(size=(len(groups) if group_specific else 1, d + 1))
    return Trainer(problem, objective, steps, theta=theta, batch_size=batch, seed=123456789)


def as_reference(trainer):
    """The problem of a trainer as the plain algorithm takes it."""
    problem, objective, steps = trainer.problem, trainer.objective, trainer.steps
    return reference.Problem(
        X=problem.X.toarray() if sparse.issparse(problem.X) else problem.X,
        cells=problem.cells.rows,
        targets=problem.targets,
        dual=objective.dual,
        batch_size=trainer.batch_size,
        dual_step=objective.dual_step,
        parameter_step=steps.size,
        seed=trainer.seed,
        outcomes=problem.outcomes,
        cell_share=problem.share,
        target_of_cell=problem.cells.targets,
        cell_weight=problem.cells.weights,
        models=problem.cells.groups,
        parity=objective.parity,
        anchor=objective.anchor,
        ridge=objective.ridge,
        link=problem.loss.link,
        decay=steps.decay,
        scale=steps.scale,
    )


CASES = [
    *({"kind": k, "opposite": o, "pairs": p}
      for k, o, p in itertools.product(["l2", "entropy"], [True, False], ["matched", "all"])),
    {"kind": "discrete"},
    {"kind": "discrete", "batch": 60},
    *({"storage": "csr", "table": table} for table in TABLES),
    {"storage": "csr", "group_specific": True, "table": "one-hot"},
    {"storage": "csr", "overlap": True},
    {"table": "long rows"},
    {"group_specific": True, "anchor": 0.0},
    *({"criterion": "equalized_odds", **other}
      for other in ({}, {"kind": "discrete"}, {"storage": "csr"}, {"group_specific": True}, {"overlap": True})),
    *({"criterion": "equal_opportunity", "kind": kind, "storage": storage}
      for kind, storage in (("discrete", "dense"), ("entropy", "csr"))),
    {"criterion": "demographic_parity", "strata": 5},
    *({"loss": "squared", **other}
      for other in ({}, {"kind": "discrete"}, {"kind": "entropy", "opposite": False, "storage": "csr"})),
    {"batch": 1},
    {"batch": 150},
    {"batch": 150, "opposite": False, "kind": "entropy"},
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(f"{k}={v}" for k, v in c.items()))
def test_the_compiled_loop_equals_the_plain_algorithm(case):
    trainer = make_trainer(**case)
    state, mean = reference.run(as_reference(trainer), trainer.theta, 12, average_from=5)
    trainer.advance(12, average_from=5)
    np.testing.assert_allclose(trainer.theta, state.theta, atol=2e-7)
    np.testing.assert_allclose(trainer.averaged(), mean, atol=2e-7)
    for a, duals in enumerate(state.duals):
        np.testing.assert_allclose(trainer.duals[a], duals.x, atol=2e-7)
        if not trainer.objective.dual.opposite:
            np.testing.assert_allclose(trainer.target_duals[a], duals.y, atol=2e-7)


@pytest.mark.parametrize("case", [{}, {"storage": "csr", "table": "one-hot"}, {"kind": "entropy", "pairs": "all"}])
@pytest.mark.trust
def test_float32_follows_float64(case):
    single, double = make_trainer(dtype="f4", **case), make_trainer(dtype="f8", **case)
    single.advance(30, average_from=15)
    double.advance(30, average_from=15)
    assert single._state.theta.dtype == np.float32
    np.testing.assert_allclose(single.theta, double.theta, atol=1e-4)
