"""The methods that ``fairtransport train`` offers, and their estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtransport.cli._errors import misuse

__all__ = ["METHODS", "MethodOptions", "make_estimator"]

METHODS = {
    "cot": "continuous optimal transport",
    "dot": "discrete optimal transport",
    "dpp": "logistic regression with quantile post-processing of its scores (needs the group to score)",
    "lr": "logistic regression without parity",
}


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

    def check(self) -> None:
        """End the command if options cannot be combined."""
        if self.method not in METHODS:
            raise misuse(f"--method must be one of {', '.join(METHODS)}; got {self.method!r}")
        trained = self.method in {"cot", "dot"}
        for name, value, allowed in (
            ("--parity-weight", self.parity_weight, trained),
            ("--amount", self.amount, self.method != "lr"),
            ("--max-disparity", self.max_disparity, self.method != "lr"),
            ("--target", self.target, self.method != "lr"),
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
            raise misuse("--method dpp needs the group to score; use --blind with cot, dot or lr")


def make_estimator(options: MethodOptions, *, verbose: bool) -> Any:
    """Return the unfitted classifier of a method."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - scikit-learn takes a while

    from fairtransport.linear import ContinuousTransportClassifier, DiscreteTransportClassifier  # noqa: PLC0415
    from fairtransport.repair import QuantileRepairClassifier  # noqa: PLC0415

    plain = LogisticRegression(max_iter=1000)
    if options.method == "lr":
        return plain
    shared: dict[str, Any] = {
        "amount": 1.0 if options.amount is None else options.amount,
        "small_groups": options.small_groups,
        "min_group_size": options.min_group_size,
    }
    if options.method == "dpp":
        return QuantileRepairClassifier(plain, target=options.target or "barycenter_w2", **shared)
    kind = ContinuousTransportClassifier if options.method == "cot" else DiscreteTransportClassifier
    weight: dict[str, Any] = {} if options.parity_weight is None else {"parity_weight": options.parity_weight}
    return kind(
        target=options.target or "each_other",
        group_specific=bool(options.aware),
        verbose=verbose,
        **weight,
        **shared,
    )
