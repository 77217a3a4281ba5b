"""The methods that ``fairtransport train`` offers, and their estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtransport.cli._errors import misuse

__all__ = ["BASES", "CRITERIA", "METHODS", "TASKS", "MethodOptions", "make_estimator"]

CRITERIA = ("demographic_parity", "equalized_odds", "equal_opportunity")  # fairtransport.criteria.CRITERIA loads slowly

METHODS = {
    "cot": "continuous optimal transport",
    "dot": "discrete optimal transport",
    "trees": "boosted trees of LightGBM with such a penalty (extra boosting)",
    "dpp": "a model with quantile post-processing of its scores (needs the group to score)",
    "blind-repair": "a model whose scores are repaired by a second model, of the groups (not needed to score)",
    "lr": "a linear model without parity: logistic or linear regression",
}
TASKS = ("classification", "regression")
#: Models that are repaired, and which of them a method repairs by default.
BASES = ("linear", "trees")
_USUAL_BASE = {"dpp": "linear", "blind-repair": "trees"}


@dataclass(frozen=True)
class MethodOptions:
    """The options of the method; None for an option that is not used."""

    method: str
    parity_weight: float | str | None
    amount: float | None
    max_disparity: float | None
    aware: bool | None
    target: str | None
    small_groups: str
    min_group_size: int
    seed: int
    criterion: str = "demographic_parity"
    strata: bool = False
    base: str | None = None

    @property
    def repaired(self) -> str | None:
        """The model that is repaired; None for a method that repairs none."""
        return self.base or _USUAL_BASE.get(self.method)

    @property
    def limit_of_table(self) -> float | None:
        """The limit on the disparity, unless the method keeps it by itself."""
        return None if self.method == "blind-repair" else self.max_disparity

    def check(self, task: str | None) -> None:
        """End the command if options cannot be combined."""
        self._check_task(task)
        if self.method not in METHODS:
            raise misuse(f"--method must be one of {', '.join(METHODS)}; got {self.method!r}")
        if self.base not in {*BASES, None}:
            raise misuse(f"--base must be one of {', '.join(BASES)}; got {self.base!r}")
        if self.criterion not in CRITERIA:
            raise misuse(f"--criterion must be one of {', '.join(CRITERIA)}; got {self.criterion!r}")
        other = None if self.criterion == "demographic_parity" else self.criterion
        for name, value, allowed in (
            ("--criterion", other, self.method != "lr"),
            ("--parity-weight", self.parity_weight, self.method in {"cot", "dot", "trees"}),
            ("--amount", self.amount, self.method != "lr"),
            ("--max-disparity", self.max_disparity, self.method != "lr"),
            ("--target", self.target, self.method not in {"lr", "blind-repair"}),
            ("--base", self.base, self.method in _USUAL_BASE),
            ("--aware", self.aware or None, self.method != "blind-repair"),
        ):
            if value is not None and not allowed:
                raise misuse(f"{name} cannot be combined with --method {self.method}")
        if isinstance(self.parity_weight, str) and self.parity_weight != "auto":
            raise misuse(f"--parity-weight must be auto or a number, zero or more; got {self.parity_weight!r}")
        if self.amount is not None and self.max_disparity is not None:
            raise misuse(
                "--max-disparity and --amount cannot be combined, because both decide how much parity there is"
            )
        if self.method == "dpp" and self.aware is False:
            raise misuse("--method dpp needs the group to score; use --blind with blind-repair, cot, dot, trees or lr")

    def _check_task(self, task: str | None) -> None:
        if task not in {*TASKS, None}:
            raise misuse(f"--task must be one of {', '.join(TASKS)}; got {task!r}")
        if task == "regression" and self.criterion == "equal_opportunity":
            raise misuse(
                "--criterion equal_opportunity compares people with the positive label, and numbers have none; use "
                "equalized_odds"
            )


def make_estimator(options: MethodOptions, *, task: str, verbose: bool) -> Any:
    """Return the unfitted classifier or regressor of a method."""
    from fairtransport import linear, repair  # noqa: PLC0415 - scikit-learn takes a while

    kind = "Regressor" if task == "regression" else "Classifier"
    if options.method == "lr":
        return _make_base("linear", kind, options.seed)
    weight: dict[str, Any] = {} if options.parity_weight is None else {"parity_weight": options.parity_weight}
    shared: dict[str, Any] = {
        "criterion": options.criterion,
        "small_groups": options.small_groups,
        "min_group_size": options.min_group_size,
    }
    shared["amount"] = 1.0 if options.amount is None else options.amount
    if options.method == "trees":
        from fairtransport import boosting  # noqa: PLC0415 - needs an extra

        trees = getattr(boosting, f"TransportBoosting{kind}")
        return trees(target=options.target or "each_other", random_state=options.seed, **weight, **shared)
    if options.repaired is not None:
        base = _make_base(options.repaired, kind, options.seed)
        if options.method == "blind-repair":
            repaired = getattr(repair, f"BlindRepair{kind}")
            return repaired(base, max_disparity=options.max_disparity, random_state=options.seed, **shared)
        return getattr(repair, f"QuantileRepair{kind}")(base, target=options.target or "barycenter_w2", **shared)
    distance = "Continuous" if options.method == "cot" else "Discrete"
    return getattr(linear, f"{distance}Transport{kind}")(
        target=options.target or "each_other",
        group_specific=bool(options.aware),
        verbose=verbose,
        **weight,
        **shared,
    )


def _make_base(base: str, kind: str, seed: int) -> Any:
    """Return a model without parity: linear, or scikit-learn's gradient boosting with early stopping."""
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415

    if base == "linear":
        return Ridge() if kind == "Regressor" else LogisticRegression(max_iter=1000)
    from fairtransport.repair.blind import dense_boosting  # noqa: PLC0415

    return getattr(dense_boosting, f"DenseBoosting{kind}")(
        max_iter=300, max_leaf_nodes=15, max_features=0.5, early_stopping=True, n_iter_no_change=20, random_state=seed
    )
