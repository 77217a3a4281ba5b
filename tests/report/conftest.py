from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from tests.worlds import scores as scored

import fairtransport as ft
from fairtransport import make_groups
from fairtransport.auditing import Inference
from fairtransport.metrics import error_rate
from fairtransport.metrics._disparity import disparities
from fairtransport.report import Comparison, MethodOutcome

mpl.use("Agg")
HOSTILE = "<script>alert(1)</script>"


def build(names=("Female", "Male"), methods=("LR", "COT"), **changes):
    """A comparison of random scores whose groups move together from the first method to the last."""
    rng = np.random.default_rng(0)
    codes = np.arange(240) % len(names)
    groups = make_groups({"group": [names[code] for code in codes]})
    y_true = rng.integers(2, size=codes.size)
    target = rng.beta(1, 3, size=100)
    outcomes = []
    for index, method in enumerate(methods):
        apart = 0.6 * (1 - index / len(methods))
        scores = np.clip(rng.beta(1, 3, size=codes.size) + apart * codes / len(names), 0, 1)
        metrics = {
            "error_rate": error_rate(y_true, scores),
            **disparities(scores, sensitive_features=groups, target=target),
        }
        outcomes.append(MethodOutcome(method, f"Title of {method}", metrics, 1.25, scores))
    entries = {
        "dataset": "Toy",
        "groups": groups,
        "y_true": y_true,
        "target": target,
        "outcomes": tuple(outcomes),
        "floor": {"strong_pairwise_disparity": 0.05},
        "settings": {"Split": "75/25", "NumPy": np.__version__},
    }
    return Comparison(**{**entries, **changes})


@pytest.fixture(scope="session")
def comparison():
    return build()


@pytest.fixture(scope="session")
def hostile():
    """Names that a page, a spreadsheet, a terminal, a legend or mathtext would act on."""
    names = (HOSTILE, "=1+1", "\x1b[31mred", "_hidden", "$a_{$", "\u202eright to left", "日本", "x" * 90)
    one = build(names, methods=("LR", "COT"))
    outcome = one.outcomes[0]
    bad = MethodOutcome(
        f'"><img src=x onerror=alert(1)>{HOSTILE}', "@title", outcome.metrics, 1.0, outcome.scores, "-note\nline"
    )
    return build(
        names, dataset=HOSTILE, outcomes=(bad, one.outcomes[1]), settings={HOSTILE: "{{ 7 * 7 }} </style></svg>"}
    )


QUICK = {"inference": Inference(n_bootstrap=60, n_permutations=60, random_state=0)}


def audit_of(*args, sensitive="group", options=None, **changes):
    scores, labels, groups = scored(*args, **changes)
    return ft.audit(scores, labels, sensitive_features={sensitive: groups}, **{**QUICK, **(options or {})})


@pytest.fixture(scope="session")
def audit():
    return audit_of()


def draw_on_axes(constructor, *data, width, height=None, **options):
    """Draw a display on axes of so many centimetres."""
    figure, ax = plt.subplots(figsize=(width / 2.54, (height or width) / 2.54), layout="constrained")
    display = constructor(*data, ax=ax, **options)
    figure.draw_without_rendering()
    assert display.figure_ is figure
    assert display.ax_ is ax
    return display


def legend_words(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def tick_labels(axis):
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]


def assert_legible(display, least=6.0):
    """All text is large enough and inside the figure, the legend above the axes, and no tick covers another."""
    ax, bounds, legend = display.ax_, display.figure_.bbox, display.ax_.get_legend()
    ticks = tick_labels(ax.xaxis)
    texts = [ax.xaxis.label, ax.yaxis.label, *ticks, *tick_labels(ax.yaxis), *ax.texts]
    for text in [*texts, *(legend.get_texts() if legend else ())]:
        if not text.get_text():
            continue
        box = text.get_window_extent()
        assert text.get_fontsize() >= least, text.get_text()
        assert box.x0 >= -1, text.get_text()
        assert box.x1 <= bounds.x1 + 1, text.get_text()
        assert box.y1 <= bounds.y1 + 1, text.get_text()
    if legend:
        assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 1
        assert legend.get_window_extent().x1 <= bounds.x1
    assert ax.get_window_extent().height > 0.3 * bounds.height
    assert not any(one.get_window_extent().overlaps(other.get_window_extent()) for one, other in combinations(ticks, 2))
