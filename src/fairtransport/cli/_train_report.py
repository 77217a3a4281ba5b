"""What ``fairtransport train`` reports: the model, and its figures on held-out rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairtransport.cli._console import count_of, make_table, print_sentence, print_table

if TYPE_CHECKING:
    from fairtransport.tabular import TableModel
    from fairtransport.tabular.held_out_evaluation import HeldOut

__all__ = ["show", "summarize"]

_TITLES = {
    "error_rate": "Error",
    "auc": "Area under the ROC curve",
    "rmse": "Root mean squared error",
    "r2": "R squared",
    "strong_demographic_disparity": "Distance to everyone (SDD)",
    "strong_pairwise_disparity": "Distance between pairs (SPDD)",
    "rank_disparity": "The same for ranks",
    "separation_disparity": "SPDD within labels",
    "opportunity_disparity": "SPDD within the positive label",
    "conditional_disparity": "SPDD within strata",
}


def summarize(model: TableModel, n_rows: int, method: str, shown: HeldOut | None) -> dict[str, Any]:
    """Describe the model and its figures for JSON."""
    estimator = model.estimator_
    summary = {
        "method": method,
        "rows": n_rows,
        "set_aside": model.set_aside_,
        "label": model.label,
        "task": model.task,
        "positive": str(model.classes_[1]) if model.task == "classification" else None,
        "sensitive": list(model.sensitive_features),
        "criterion": model.criterion,
        "strata": list(model.strata),
        "needed_to_score": model.columns,
        "left_out": model.encoder_.left_out_,
        "unreadable": model.encoder_.unreadable_,
        "amount": getattr(estimator, "amount", None),
        "outcome": getattr(estimator, "outcome_", None),
        "parity_weight": getattr(estimator, "parity_weight_", None),
        "information_kept": getattr(estimator, "information_kept_", None),
        "group_model": asdict(estimator.report_) if hasattr(estimator, "report_") else None,
        "held_out": None,
    }
    if shown is not None:
        summary["held_out"] = {
            "rows": shown.rows,
            "groups": shown.groups,
            "small_groups": shown.small_groups,
            "set_aside": shown.set_aside,
            "figures": shown.figures,
            "noise_floor": shown.floor,
        }
    return summary


def _show_held_out(shown: HeldOut) -> None:
    title = f"{shown.rows:,} held-out rows in {shown.groups} groups"
    table = make_table(title, [""], [name.upper() for name in shown.figures] + ["by chance"])
    for name in next(iter(shown.figures.values())):
        row = [_three(figures[name]) for figures in shown.figures.values()]
        table.add_row(_TITLES[name], *row, _three(shown.floor.get(name)))
    print_table(table)
    if shown.small_groups:
        small = f"{count_of(shown.small_groups, 'group')} with fewer than 30 of these rows"
        if shown.groups - shown.small_groups > 1:
            print_sentence(f"Left out of the distances: {small}.")
        else:
            print_sentence(f"Distances are mostly chance: {small}.")
    for reason, rows in shown.set_aside.items():
        print_sentence(f"Not measured: {count_of(rows, 'row')}, {reason}.")


def show(model: TableModel, summary: dict[str, Any], shown: HeldOut | None, method: str) -> None:
    """Print the figures, and what is needed to score."""
    if shown is not None:
        _show_held_out(shown)
    print_sentence(f"{method.upper()} trained on {summary['rows']:,} rows. {_outcome(summary)}".rstrip())
    if summary["group_model"] is not None:
        print_sentence(str(model.estimator_.report_))
    if model.task == "classification":
        print_sentence(f"The score is the probability that {model.label} is {summary['positive']!r}.")
    else:
        print_sentence(f"The score is the predicted {model.label}; distances are in its units.")
    sensitive = ", ".join(model.sensitive_features)
    used = [name for name in model.sensitive_features if name in model.columns]
    print_sentence(f"Needed to score: {len(model.columns)} columns, {'with' if used else 'without'} {sensitive}.")
    if model.needs_strata:
        print_sentence(f"Needed to score, too, for the stratum of a row: {', '.join(model.strata)}.")
    groups, few = model.known_groups, "too small to be compared one by one"
    if groups is not None and groups.pooled:
        pools = ", ".join(groups.names[groups.labels.index(pool)] for pool in groups.pools)
        print_sentence(f"Pooled as {pools}: {count_of(len(groups.pooled), 'group')} {few}.")
    if groups is not None and groups.dropped:
        print_sentence(f"Left out of the comparisons: {count_of(len(groups.dropped), 'group')} {few}.")
    for reason, rows in model.set_aside_.items():
        print_sentence(f"Not used for training: {count_of(rows, 'row')}, {reason}.")
    for name, why in model.encoder_.left_out_.items():
        print_sentence(f"Left out: {name} ({why}).")
    for name, cells in model.encoder_.unreadable_.items():
        print_sentence(
            f"Treated as missing: {count_of(cells, 'cell')} of {name}, unlike the other cells of that column."
        )


def _outcome(summary: dict[str, Any]) -> str:
    outcome, amount, kept = str(summary["outcome"] or ""), summary["amount"], summary["information_kept"]
    sentences = [f"{outcome[:1].upper()}{outcome[1:]}."] if outcome else []
    if summary["parity_weight"] is not None and "parity_weight" not in outcome:
        sentences.append(f"Parity weight {summary['parity_weight']:.3g}.")
    if kept is not None:
        gain = "log-loss" if summary["task"] == "classification" else "squared error"
        sentences.append(f"{max(kept, 0.0):.0%} of the plain model's gain in {gain} over a constant is kept.")
    if amount not in {None, 1.0}:
        sentences.append(f"Amount {amount:.2f}{' of the way there' if kept is not None else ''}.")
    return " ".join(sentences)


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
