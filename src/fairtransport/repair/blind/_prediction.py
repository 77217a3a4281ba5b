"""Predictions of a fitted blind repair, and what its fit has to say."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport._sklearn.estimator_calls import n_rows
from fairtransport._validation import check_length, check_real
from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.repair.blind._cross_fitting import group_probabilities, predictions
from fairtransport.repair.blind._fitting import joint_probabilities
from fairtransport.repair.blind.group_model import linear_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.repair.blind._fitting import BlindFit, CrossFit
    from fairtransport.strata import Strata

__all__ = ["describe_blind_repair", "fit_slacks", "repaired_predictions", "store_fit", "warn_of_fit"]

#: Share of the groups' entropy above which features as good as contain the groups.
_KNOWN = 0.95


def store_fit(model: Any, fitted: BlindFit) -> None:
    """Set the fitted attributes of an estimator; none of them contains a row."""
    model.estimator_ = fitted.estimator
    model.group_estimator_ = fitted.group_estimator
    model.group_calibration_ = fitted.calibration
    model.cells_ = fitted.cells
    model.potentials_ = fitted.potentials
    model.report_ = fitted.report
    model.groups_ = fitted.groups
    model.strata_ = fitted.strata


def fit_slacks(model: Any, cross_fit: CrossFit, slacks: Sequence[float]) -> list[Any]:
    """Return a fitted copy of an estimator for each slack, from the largest; each solution starts from the last."""
    values = [check_real(slack, name="slacks", most=1.0) for slack in slacks]
    if not values or values != sorted(values, reverse=True):
        raise ValueError("slacks must descend, from little parity to much: each solution starts from the one before.")
    models, start = [], None
    for slack in values:
        fitted = cross_fit.fit(slack, None, start=start)
        start = fitted.potentials
        one = copy(model).set_params(slack=slack, max_disparity=None)
        store_fit(one, fitted)
        models.append(one)
    warn_of_fit(models[-1], fitted)
    return models


def describe_blind_repair(model: Any) -> list[str]:
    """Return statements about a fitted blind repair."""
    report = model.report_
    return [
        "groups are not needed at prediction",
        f"the features tell {report.information:.0%} of the groups' entropy",
        f"disparity on held-out rows {report.disparity_before:.3g} before, {report.disparity:.3g} after full repair",
    ]


def repaired_predictions(model: Any, X: Any, strata: Any, *, predicts_label: bool) -> NDArray[np.float64]:
    """Return the mixture of predictions and repaired predictions: two model calls and one evaluation of the map."""
    amount = check_real(model.amount, name="amount", most=1.0)
    codes = _stratum_codes(model.strata_, strata, n_rows(X))
    predicted = predictions(model.estimator_, X)
    if amount == 0.0:
        return predicted
    probabilities = group_probabilities(model.group_estimator_, X, model.group_calibration_.offsets.size)
    linear = linear_scale(predicted, are_probabilities=predicts_label)
    calibrated = model.group_calibration_.apply(probabilities, linear)
    n_labels = calibrated.shape[1] // len(model.groups_)
    joint = joint_probabilities(calibrated, np.clip(predicted, 0.0, 1.0) if predicts_label else None, n_labels)
    moved = model.potentials_.move(predicted, model.cells_.contrasts(joint, codes))
    return (1.0 - amount) * predicted + amount * moved


def _stratum_codes(known: Strata | None, strata: Any, size: int) -> NDArray[np.int64] | None:
    if known is None:
        if strata is not None:
            raise ValueError("This repair was fitted without strata; leave strata out, or fit it with them.")
        return None
    if strata is None:
        raise ValueError(
            f"This repair was fitted within strata of {say_columns(known.columns)}; pass strata, with the same columns."
        )
    codes = known.encode(strata).codes
    check_length(codes, size=size, name="strata")
    n_unseen = int(np.count_nonzero(codes == len(known)))
    if n_unseen:
        raise ValueError(
            f"{n_unseen} of {size} rows belong to a stratum that was not seen in fit, so there is no map for them. "
            "Fit with rows of every stratum, or assign these rows to one that was seen."
        )
    return codes


def warn_of_fit(model: Any, fitted: BlindFit) -> None:
    """Warn where blind repair is not what it seems, or a limit was not reached."""
    report = fitted.report
    if not report.is_predictable:
        warn_caller(
            "The features do not tell the groups better than chance does, so that predictions from them cannot differ "
            "between groups by more: nothing is repaired.",
            FairnessWarning,
        )
    elif report.information > _KNOWN:
        warn_caller(
            f"The features tell {report.information:.0%} of what there is to know about the groups. Repair without "
            "the group then treats people as if their group were known; leave out columns that tell it if that is not "
            "intended.",
            FairnessWarning,
        )
    if not fitted.reached:
        warn_caller(
            f"max_disparity={model.max_disparity:g} was not reached: the disparity of held-out rows is "
            f"{report.disparity:.4g}, and chance alone shows {report.noise_floor:.4g}.",
            FairnessWarning,
        )
