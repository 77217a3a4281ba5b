"""Do the error rates of an audit agree with fairlearn's MetricFrame?

``python -m benchmarks.error_rates``: 40 tables of 40 to 5,000 rows and 2 to 8 groups, half of them weighted; prints the
largest difference of any rate, of equalized odds and of equal opportunity. Needs fairlearn (0.15.0). Fixed seeds.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, precision_score

import fairtransport as ft

N_TABLES = 40


def tables():
    """Yield groups, scores, labels, weights and a threshold."""
    rng = np.random.default_rng(7)
    for number in range(N_TABLES):
        n, n_groups = int(rng.choice([40, 300, 5000])), int(rng.integers(2, 9))
        groups, scores = rng.integers(0, n_groups, n), rng.beta(2, 3, n).round(int(rng.integers(1, 6)))
        weights = np.ones(n) if number % 2 else rng.random(n) + 0.05
        yield groups, scores, (rng.random(n) < scores).astype(int), weights, float(rng.choice([0.25, 0.5, 0.6, 0.75]))


def _predictive_value(label):
    def metric(y_true, y_pred, sample_weight=None):
        return precision_score(y_true, y_pred, pos_label=label, sample_weight=sample_weight, zero_division=np.nan)

    return metric


def _error_rate(y_true, y_pred, sample_weight=None):
    return 1 - accuracy_score(y_true, y_pred, sample_weight=sample_weight)


def differences(groups, scores, labels, weights, threshold):
    """Yield how far each figure of an audit is from fairlearn's; rates without rows are left out."""
    from fairlearn import metrics as fl  # noqa: PLC0415 - not needed by the other benchmarks

    functions = {
        "selection_rate": fl.selection_rate,
        "true_positive_rate": fl.true_positive_rate,
        "false_positive_rate": fl.false_positive_rate,
        "false_negative_rate": fl.false_negative_rate,
        "positive_predictive_value": _predictive_value(1),
        "negative_predictive_value": _predictive_value(0),
        "accuracy": accuracy_score,
        "error_rate": _error_rate,
    }
    options = {"n_bootstrap": 20, "n_permutations": 20, "random_state": 0, "groups": ft.GroupPolicy(min_size=1)}
    audit = ft.audit(scores, labels, sensitive_features=groups, sample_weight=weights, thresholds=threshold, **options)
    ours, selected = audit.error_rates[0], (scores > threshold).astype(int)
    frame = fl.MetricFrame(
        metrics=functions,
        y_true=labels,
        y_pred=selected,
        sensitive_features=groups,
        sample_params={name: {"sample_weight": weights} for name in functions},
    )
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


def main():
    """Print the largest difference."""
    found = [difference for table in tables() for difference in differences(*table)]
    print(f"{N_TABLES} tables, {len(found)} figures, largest difference {max(found):.1e}")


if __name__ == "__main__":
    main()
