"""The update of continuous optimal transport (COT) in the paper's algorithm box, by NumPy, torch and JAX.

NumPy and torch go group by group, as the box reads and as most would write it; JAX compiles the loop over updates. Rows
are dense (gathering rows of a dense matrix is faster than slicing a sparse one in all three). Gradients are written
out, so no peer pays for automatic differentiation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import _ours
from fairtransport.paper.splits import adult_split
from fairtransport.transport.reference import draw_indices

STRENGTH, DUAL_STEP, PARAMETER_STEP = 0.1, 1.0, 0.002


def adult():
    split = adult_split()
    return split.X_train, split.y_train, split.sensitive_train


def make_trainer(data, batch, dtype="float64", n_features=50):
    """Our run on sparse rows, set up as in the paper."""
    X, y, sensitive = data
    model = _ours.sgd_classifier(
        n_fourier_features=n_features, strength=STRENGTH, dual_step=DUAL_STEP, parameter_step=PARAMETER_STEP,
        batch_size=batch,
    )  # fmt: skip
    return model.make_trainer(X.astype(dtype), y, sensitive_features=sensitive)


def drawn(trainer, update):
    """The rows and target scores that our update draws."""
    problem, batch, seed = trainer.problem, trainer.batch_size, trainer.seed
    n_groups = len(problem.groups)
    position = update * (n_groups + 1) * batch
    rows = [
        rows[draw_indices(seed, position + a * batch, batch, rows.size)] for a, rows in enumerate(problem.groups.rows)
    ]
    target = problem.target[draw_indices(seed, position + n_groups * batch, batch, problem.target.size)]
    return np.stack(rows), target


@dataclass(eq=False)
class Problem:
    """Our problem as dense arrays: rows with a one for the intercept, the members of each group, the target."""

    X: np.ndarray
    members: list[np.ndarray]
    target: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray
    theta: np.ndarray
    batch: int

    @classmethod
    def of(cls, trainer):
        dtype = trainer.problem.X.dtype
        X = trainer.problem.X.toarray()
        features = trainer.objective.dual.features
        return cls(
            np.column_stack((X, np.ones(len(X), dtype))), list(trainer.problem.groups.rows), trainer.problem.target,
            features.frequency.astype(dtype), features.phase.astype(dtype), trainer.theta[0].astype(dtype),
            trainer.batch_size,
        )  # fmt: skip

    @property
    def n_groups(self):
        return len(self.members)

    @property
    def scale(self):
        return math.sqrt(2.0 / self.frequency.size)


class NumpyPeer:
    """Plain NumPy."""

    name = "NumPy, group by group"

    def __init__(self, problem):
        self.problem, self.rng = problem, np.random.default_rng(0)
        self.theta = problem.theta.copy()
        self.duals = np.zeros((problem.n_groups, problem.frequency.size), problem.X.dtype)

    def update(self, rows, target):
        p = self.problem
        psi_target = p.scale * np.cos(target[:, None] * p.frequency + p.phase)
        gradient = np.zeros_like(self.theta)
        for own, dual in zip(rows, self.duals, strict=True):
            X = p.X[own]
            s = 1 / (1 + np.exp(-(X @ self.theta)))
            angle = s[:, None] * p.frequency + p.phase
            psi, gap = p.scale * np.cos(angle), s - target
            alpha = 0.5 * np.maximum((psi @ dual - psi_target @ dual - np.abs(gap)) / STRENGTH, 0)
            rest = (1 - alpha) / p.batch
            dual[:] += DUAL_STEP * (rest @ psi - rest @ psi_target)
            slope = np.sin(angle) @ (dual * (-p.scale * p.frequency))
            gradient += (((1 - alpha) * slope + alpha * np.sign(gap)) * s * (1 - s) / p.batch) @ X
        self.theta -= PARAMETER_STEP * gradient

    def run(self, n_updates):
        p = self.problem
        for _ in range(n_updates):
            rows = np.stack([rows[self.rng.integers(rows.size, size=p.batch)] for rows in p.members])
            self.update(rows, p.target[self.rng.integers(p.target.size, size=p.batch)])

    def state(self):
        return self.theta, self.duals


class TorchPeer:
    """torch, eager; without automatic differentiation."""

    name = "torch eager, group by group"

    def __init__(self, problem):
        import torch  # noqa: PLC0415 - loading it takes seconds, and only some benchmarks need it

        torch.set_num_threads(1)
        self.torch, self.problem = torch, problem
        self.X, self.target, self.frequency, self.phase = map(
            torch.from_numpy, (problem.X, problem.target, problem.frequency, problem.phase)
        )
        self.members = [torch.from_numpy(rows) for rows in problem.members]
        self.theta = torch.from_numpy(problem.theta.copy())
        self.duals = torch.zeros((problem.n_groups, problem.frequency.size), dtype=self.X.dtype)

    def update(self, rows, target):
        torch, p = self.torch, self.problem
        if isinstance(rows, np.ndarray):
            rows, target = torch.from_numpy(rows), torch.from_numpy(target)
        with torch.inference_mode():
            psi_target = p.scale * torch.cos(target[:, None] * self.frequency + self.phase)
            gradient = torch.zeros_like(self.theta)
            for own, dual in zip(rows, self.duals, strict=True):
                X = self.X[own]
                s = torch.sigmoid(X @ self.theta)
                angle = s[:, None] * self.frequency + self.phase
                psi, gap = p.scale * torch.cos(angle), s - target
                alpha = 0.5 * ((psi @ dual - psi_target @ dual - gap.abs()) / STRENGTH).clamp(min=0)
                rest = (1 - alpha) / p.batch
                dual[:] += DUAL_STEP * (rest @ psi - rest @ psi_target)
                slope = torch.sin(angle) @ (dual * (-p.scale * self.frequency))
                gradient += (((1 - alpha) * slope + alpha * torch.sign(gap)) * s * (1 - s) / p.batch) @ X
            self.theta -= PARAMETER_STEP * gradient

    def run(self, n_updates):
        torch, batch = self.torch, self.problem.batch
        for _ in range(n_updates):
            rows = torch.stack([rows[torch.randint(rows.numel(), (batch,))] for rows in self.members])
            self.update(rows, self.target[torch.randint(self.target.numel(), (batch,))])

    def state(self):
        return self.theta.numpy(), self.duals.numpy()


class JaxPeer:
    """JAX: updates compiled by jit and scan, groups unrolled, its fastest generator (the best of four forms tried)."""

    name = "JAX jit + scan"

    def __init__(self, problem):
        import jax  # noqa: PLC0415 - as for torch

        jax.config.update("jax_enable_x64", problem.X.dtype == np.float64)
        self.jax, self.problem = jax, problem
        self.X, self.target, frequency, phase = map(
            jax.numpy.asarray, (problem.X, problem.target, problem.frequency, problem.phase)
        )
        members = [jax.numpy.asarray(rows) for rows in problem.members]
        self.carry = (
            jax.numpy.asarray(problem.theta),
            jax.numpy.zeros((problem.n_groups, problem.frequency.size), self.X.dtype),
        )
        self.key = jax.random.key(0, impl="unsafe_rbg")

        def update(carry, rows, target, X):
            return _jax_update(jax.numpy, problem, (frequency, phase), carry, [X[own] for own in rows], target)

        def below(key, size):
            return jax.random.randint(key, (problem.batch,), 0, size)

        def step(carry, key, X, values):
            keys = jax.random.split(key, len(members) + 1)
            rows = [own[below(key, own.size)] for own, key in zip(members, keys[1:], strict=True)]
            return update(carry, rows, values[below(keys[0], values.size)], X), None

        def many(carry, keys, X, values):
            return jax.lax.scan(lambda carry, key: step(carry, key, X, values), carry, keys)[0]

        self._update, self._many = jax.jit(update), jax.jit(many)

    def update(self, rows, target):
        self.carry = self._update(self.carry, list(rows), target, self.X)

    def run(self, n_updates):
        self.key, now = self.jax.random.split(self.key)
        keys = self.jax.random.split(now, n_updates)
        self.carry = self.jax.block_until_ready(self._many(self.carry, keys, self.X, self.target))

    def state(self):
        return tuple(map(np.asarray, self.carry))


def _jax_update(jnp: Any, p, features, carry, X, target):
    (frequency, phase), (theta, duals) = features, carry
    psi_target = p.scale * jnp.cos(target[:, None] * frequency + phase)
    gradient, new_duals = jnp.zeros_like(theta), []
    for own, dual in zip(X, duals, strict=True):
        s = 1 / (1 + jnp.exp(-(own @ theta)))
        angle = s[:, None] * frequency + phase
        psi, gap = p.scale * jnp.cos(angle), s - target
        alpha = 0.5 * jnp.maximum((psi @ dual - psi_target @ dual - jnp.abs(gap)) / STRENGTH, 0)
        rest = (1 - alpha) / p.batch
        new_dual = dual + DUAL_STEP * (rest @ psi - rest @ psi_target)
        slope = jnp.sin(angle) @ (new_dual * (-p.scale * frequency))
        gradient += (((1 - alpha) * slope + alpha * jnp.sign(gap)) * s * (1 - s) / p.batch) @ own
        new_duals.append(new_dual)
    return theta - PARAMETER_STEP * gradient, jnp.stack(new_duals)


PEERS = (NumpyPeer, TorchPeer, JaxPeer)


def check_equal(trainer, peers, n_updates=3):
    """Let all do the same updates on the same rows, and compare theta and the duals after each."""
    tolerance = 1e-6 if trainer.problem.X.dtype == np.float64 else 1e-3
    for update in range(n_updates):
        rows, target = drawn(trainer, update)
        trainer.advance(1, average_from=n_updates)
        for peer in peers:
            peer.update(rows, target)
            theta, duals = peer.state()
            np.testing.assert_allclose(theta, trainer.theta[0], atol=tolerance, err_msg=peer.name)
            np.testing.assert_allclose(duals, trainer.duals, atol=tolerance, err_msg=peer.name)
