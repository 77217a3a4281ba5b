"""The final training on all rows: a plain model, and one with the penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from fairtransport.boosting._penalty_settings import RoundSchedule
from fairtransport.boosting._search import make_evaluator, training_run
from fairtransport.linear.training.weight_path import WeightPath

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.boosting._penalty_settings import PenaltySettings, Settings
    from fairtransport.boosting._responses import BoostedResponse
    from fairtransport.boosting._search import Choice
    from fairtransport.boosting._training_data import TrainingData
    from fairtransport.criteria import ComparedStrata
    from fairtransport.linear.training.evaluation import ScoreEvaluator, ScoreMetrics

__all__ = ["Training", "train"]


@dataclass(frozen=True, eq=False)
class Training:
    """A trained model, and what its fitted attributes and its outcome are made from.

    Attributes
    ----------
    plain, model : estimators of the library
        Without and with the penalty; the same where there is none.
    plain_margins, margins : ndarray of shape (n_rows,)
        Of the training rows.
    plain_rounds, n_rounds : int
        Their numbers of rounds.
    is_stopped_early : bool
        Whether early stopping chose them.
    parity_weight, unit : float
        The weight that was used, and the factor of the penalty at weight 1.
    is_within_chance : bool
        Whether there is no penalty because groups of the plain model differ no more than by chance.
    reason : str
        Why this weight was chosen; empty where it was given.
    reached : bool
        Whether the goal of an automatic weight was reached.
    evaluator : ScoreEvaluator
    scores : ndarray
        Of the rows of the evaluator: held-out ones where there are any.
    metrics : ScoreMetrics
        Of these scores.
    history, path : dict of ndarray
    compared : ComparedStrata
        Where groups were compared.
    bounds : (float, float) or None
        Of scores.
    """

    plain: Any
    model: Any
    plain_margins: NDArray[np.float64]
    margins: NDArray[np.float64]
    plain_rounds: int
    n_rounds: int
    is_stopped_early: bool
    parity_weight: float
    unit: float
    is_within_chance: bool
    reason: str
    reached: bool
    evaluator: ScoreEvaluator
    scores: NDArray[np.float64]
    metrics: ScoreMetrics
    history: dict[str, NDArray[np.float64]]
    path: dict[str, NDArray[np.float64]]
    compared: ComparedStrata
    bounds: tuple[float, float] | None


def train(
    settings: Settings,
    penalty: PenaltySettings,
    rows: TrainingData,
    choice: Choice | None,
    *,
    parity_weight: float | None,
    response: BoostedResponse,
    seed: int,
) -> Training:
    """Train on all rows.

    Parameters
    ----------
    settings : Settings
    penalty : PenaltySettings
    rows : TrainingData
    choice : Choice or None
        Rounds and weight that were chosen on held-out rows; None where both are given.
    parity_weight : float or None
        The weight, where it is given.
    response : BoostedResponse
    seed : int
        Of the models of the groups.

    Returns
    -------
    Training
    """
    library, run = settings.library, training_run(settings, rows)
    plain_rounds = settings.n_rounds if choice is None else choice.plain_rounds
    wanted = (parity_weight or 0.0) if choice is None else choice.parity_weight
    plain = library.fit_plain(_with_rounds(settings, plain_rounds), run)
    plain_margins = library.margins(plain, rows.X)
    reference = penalty.refer_to(settings, rows, plain_margins)
    weight = wanted if reference.unit.factor > 0.0 else 0.0
    model, margins, n_rounds = plain, plain_margins, plain_rounds
    if weight > 0.0:
        schedule = RoundSchedule(settings.n_rounds, rows.groups.n_rows) if choice is None else choice.rounds.schedule
        n_rounds = schedule.n_rounds if choice is None else choice.rounds.n_rounds
        objective = penalty.objective(
            settings, rows, reference,
            parity_weight=weight,
            schedule=schedule,
            group_probabilities=penalty.group_probabilities(settings, rows, reference, seed),
        )  # fmt: skip
        model = library.fit_objective(_with_rounds(settings, n_rounds), run, objective)
        margins = library.margins(model, rows.X)
    predict = settings.loss.predictions
    if choice is None:
        evaluator = make_evaluator(response, penalty, rows, predict(plain_margins))
        scores, path = predict(margins), WeightPath(lambda _, __: (None, predict(margins)), evaluator)
        path.at(weight)
    else:
        evaluator, path = choice.path.evaluator, choice.path
        scores = choice.scores if weight > 0.0 else evaluator.initial_scores
    return Training(
        plain=plain,
        model=model,
        plain_margins=plain_margins,
        margins=margins,
        plain_rounds=plain_rounds,
        n_rounds=n_rounds,
        is_stopped_early=settings.patience is not None,
        parity_weight=weight,
        unit=reference.unit.factor,
        is_within_chance=reference.unit.factor == 0.0 or (choice is not None and not choice.has_differences),
        reason=choice.reason if choice is not None else "",
        reached=choice.reached if choice is not None else True,
        evaluator=evaluator,
        scores=scores,
        metrics=evaluator.evaluate(scores),
        history=choice.rounds.history if choice is not None else {},
        path=path.table(),
        compared=reference.compared.resolved,
        bounds=response.bounds,
    )


def _with_rounds(settings: Settings, n_rounds: int) -> Any:
    return clone(settings.estimator).set_params(n_estimators=n_rounds)
