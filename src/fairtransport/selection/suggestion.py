"""Which method to try first, from what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from fairtransport._validation import check_choice, check_count, check_flag

MODELS = ("any", "scores", "linear", "trees", "network")
TASKS = ("classification", "regression")
_ENOUGH_FOR_TREES = 2000  # rows from which gradient boosting was the better base model
_FEW_ROWS_OF_A_GROUP = 100


@dataclass(frozen=True)
class Suggestion:
    """A method to try first; ``print`` shows it.

    Attributes
    ----------
    method : str
        Name of the class in this package; empty where nothing can be done.
    reason : str
    code : str
        How it is made.
    cautions : tuple of str
    """

    method: str
    reason: str
    code: str
    cautions: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.method or 'No method'}: {self.reason}", *([self.code] if self.code else [])]
        return "\n".join([*lines, *(f"Caution: {caution}" for caution in self.cautions)])


def suggest(
    *,
    group_at_prediction: bool,
    model: str = "any",
    task: str = "classification",
    n_rows: int | None = None,
    n_groups: int = 2,
) -> Suggestion:
    """Return the method to try first, by the table of the page "Which method when".

    Parameters
    ----------
    group_at_prediction : bool
        Whether the group of every person is known, and may be used, when they are scored.
    model : {"any", "scores", "linear", "trees", "network"}, default="any"
        What there is: any model to be chosen, only a column of scores, or a kind of model that has to stay.
    task : {"classification", "regression"}, default="classification"
    n_rows : int, optional
        Number of training rows.
    n_groups : int, default=2

    Returns
    -------
    Suggestion

    Examples
    --------
    >>> suggest(group_at_prediction=False, n_rows=30_000).code
    'BlindRepairClassifier(HistGradientBoostingClassifier())'
    >>> print(suggest(group_at_prediction=True, model="scores"))
    QuantileRepair: exact, and it needs nothing but scores.
    QuantileRepair()
    """
    check_flag(group_at_prediction, name="group_at_prediction")
    check_choice(model, MODELS, name="model")
    check_choice(task, TASKS, name="task")
    check_count(n_groups, name="n_groups")
    if n_rows is not None:
        check_count(n_rows, name="n_rows")
    kind = "Regressor" if task == "regression" else "Classifier"
    cautions = _cautions(n_rows, n_groups)
    if group_at_prediction:
        if model in {"scores", "network"}:
            options = 'range="learned"' if task == "regression" else ""
            code = f"QuantileRepair({options})"
            return Suggestion("QuantileRepair", "exact, and it needs nothing but scores.", code, cautions)
        base = _base(model, kind, n_rows)
        reason = "exact, and training for parity gained little beyond it."
        return Suggestion(f"QuantileRepair{kind}", reason, f"QuantileRepair{kind}({base})", cautions)
    if model == "scores":
        return Suggestion("", "scores alone cannot be repaired without the group; their features can tell it.", "")
    if model == "network":
        reason = "one more term in the loss of the network, with groups in training batches only."
        return Suggestion("torch.TransportPenalty", reason, "fairtransport.torch.TransportPenalty()", cautions)
    reason = "its error at equal disparity was among the lowest of our blind methods."
    if model == "linear":
        reason += f" Where the scores themselves must be linear, Transport{kind}."
    return Suggestion(f"BlindRepair{kind}", reason, f"BlindRepair{kind}({_base(model, kind, n_rows)})", cautions)


def _base(model: str, kind: str, n_rows: int | None) -> str:
    few = n_rows is not None and n_rows < _ENOUGH_FOR_TREES
    if model == "trees" or (model == "any" and not few):
        return f"HistGradientBoosting{kind}()"
    return "Ridge()" if kind == "Regressor" else "LogisticRegression()"


def _cautions(n_rows: int | None, n_groups: int) -> tuple[str, ...]:
    if n_rows is None or n_rows >= _FEW_ROWS_OF_A_GROUP * n_groups:
        return ()
    text = (
        f"{n_rows:,} rows in {n_groups} groups are fewer than {_FEW_ROWS_OF_A_GROUP} for each: compare every disparity "
        "with its noise floor, and pool small groups (small_groups='pool')."
    )
    return (text,)
