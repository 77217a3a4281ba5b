"""The comparison of the demo: four methods on Adult's test rows, all with the paper's target."""

from __future__ import annotations

from collections.abc import Callable

from fairtransport import __version__
from fairtransport.groups import GroupPolicy
from fairtransport.linear import SgdSettings, TransportClassifier
from fairtransport.paper._methods import METHODS, Problem, fit_method, measure, prepare, shuffled_floor
from fairtransport.paper.finding import ignore_training_warnings
from fairtransport.paper.splits import adult_split
from fairtransport.repair import QuantileRepair
from fairtransport.report import Comparison, MethodOutcome
from fairtransport.transport.targets import TARGET_SIZE

# Name on the page -> method.
_TRAINED = {"DPP": "DPP", "DOT": "DOT (anchor)", "COT": "COT (anchor)"}
_NOTES = {
    "DPP": "Must know a person's group to score them.",
    "DOT": "Race and sex are among the features here; the method runs without them as well.",
    "COT": "Race and sex are among the features here; the method runs without them as well.",
}


def compare_on_adult(
    *, quick: bool = False, random_state: int = 0, progress: Callable[[str], None] | None = None
) -> Comparison:
    """Compare logistic regression, quantile repair, and discrete and continuous transport on Adult."""
    report = progress or (lambda _: None)
    report("Reading Adult")
    split = adult_split()
    report("Training LR")
    problem = prepare(split)
    report("Compiling, the first time only")
    _compile(problem)
    fits = {"LR": fit_method("LR", problem)}
    with ignore_training_warnings():
        for name, method in _TRAINED.items():
            report(f"Training {name}")
            fits[name] = fit_method(method, problem, random_state=random_state, quick=quick)
    report("Measuring")
    outcomes = tuple(
        MethodOutcome(name, METHODS[fit.method], measure(fit, problem), fit.seconds, fit.scores, _NOTES.get(name, ""))
        for name, fit in fits.items()
    )
    return Comparison(
        split.name,
        split.groups_test,
        split.y_test,
        problem.test_target.equal_mass(TARGET_SIZE),
        outcomes,
        shuffled_floor(fits["DPP"], problem, random_state=random_state),
        {
            "Data": "Adult (UCI), people whose race is Black or White, official split into training and test rows",
            "Groups": "race and sex, crossed",
            "Features": f"{split.X_train.shape[1]} columns with race and sex: numbers standardised, words one-hot",
            "Rows": f"{split.X_train.shape[0]:,} training, {split.X_test.shape[0]:,} test",
            "Target": "Wasserstein-1 barycenter of the groups with equal weights, fixed at LR's scores",
            "Training": "the paper's algorithms with the logistic loss kept"
            + (", a tenth of the updates (quick)" if quick else ""),
            "Noise floor": "DPP's scores with group membership shuffled, mean of 200 shuffles",
            "Seed": str(random_state),
            "Version": f"fairtransport {__version__}",
        },
    )


def _compile(problem: Problem) -> None:
    """Call every compiled loop once, so that the times do not include compilation."""
    split = problem.split
    once = SgdSettings(n_updates=1, batch_size=1)
    loop = TransportClassifier(problem.model, solver=once, parity_weight=3.0)
    loop.fit(split.X_train, split.y_train, sensitive_features=split.groups_train)
    few = {name: column[:1000] for name, column in split.sensitive_train.items()}
    scores = problem.train_scores[:1000]
    QuantileRepair("barycenter", groups=GroupPolicy(min_size=1)).fit(scores, sensitive_features=few).transform(
        scores, sensitive_features=few
    )
