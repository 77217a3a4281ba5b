"""Do the error rates of an audit agree with fairlearn's MetricFrame and scikit-learn?"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.metrics import accuracy_score, precision_score

import fairtransport as ft
from fairtransport.auditing import Inference

CLAIM = "Error rates by group, equalized odds and equal opportunity agree with fairlearn and scikit-learn to 1e-12."


def tables(n_tables):
    """Yield groups, scores, labels, weights and a threshold; every second table is weighted."""
    rng = np.random.default_rng(7)
    for number in range(n_tables):
        n, n_groups = int(rng.choice([40, 300, 5000])), int(rng.integers(2, 9))
        groups, scores = rng.integers(0, n_groups, n), rng.beta(2, 3, n).round(int(rng.integers(1, 6)))
        weights = np.ones(n) if number % 2 else rng.random(n) + 0.05
        yield groups, scores, (rng.random(n) < scores).astype(int), weights, float(rng.choice([0.25, 0.5, 0.6, 0.75]))


def differences(groups, scores, labels, weights, threshold):
    """Yield how far each figure of an audit is from fairlearn's; rates without rows are left out."""
    from fairlearn import metrics as fl  # noqa: PLC0415 - not needed by the other benchmarks

    names = ("selection_rate", "true_positive_rate", "false_positive_rate", "false_negative_rate")
    functions = {name: getattr(fl, name) for name in names} | {"accuracy": accuracy_score}
    for name, label in (("positive_predictive_value", 1), ("negative_predictive_value", 0)):
        functions[name] = partial(precision_score, pos_label=label, zero_division=np.nan)
    options = {
        "inference": Inference(n_bootstrap=20, n_permutations=20, random_state=0),
        "groups": ft.GroupPolicy(min_size=1),
    }
    audit = ft.audit(scores, labels, sensitive_features=groups, sample_weight=weights, thresholds=threshold, **options)
    ours, selected = audit.error_rates[0], (scores > threshold).astype(int)
    frame = fl.MetricFrame(
        metrics=functions, y_true=labels, y_pred=selected, sensitive_features=groups,
        sample_params={name: {"sample_weight": weights} for name in functions},
    )  # fmt: skip
    for name in functions:
        cases = [(ours.overall[name], frame.overall[name])]
        cases += [(group.rates[name], frame.by_group.loc[int(group.name), name]) for group in ours.groups]
        yield from (abs(estimate.value - theirs) for estimate, theirs in cases if estimate is not None)
    if not {"true_positive_rate", "false_positive_rate"} & set(ours.undefined):
        options = {"sensitive_features": groups, "sample_weight": weights}
        theirs = fl.equalized_odds_difference(labels, selected, **options)
        yield abs(ours.equalized_odds.value - theirs)
        yield abs(ft.metrics.equalized_odds_difference(labels, scores, threshold=threshold, **options) - theirs)
        yield abs(ours.equal_opportunity.value - fl.equal_opportunity_difference(labels, selected, **options))


def run(report):
    n_tables = 4 if report.quick else 40
    found = [difference for table in tables(n_tables) for difference in differences(*table)]
    report.note(f"{n_tables} tables, {len(found):,} figures, largest difference {max(found):.1e}")
