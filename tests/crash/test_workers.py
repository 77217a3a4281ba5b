"""Memory that runs out in a worker, thread or process: a clear error, nothing hangs, and what comes next works."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.processes import run_script
from tests.worlds import people

import fairtransport as ft

SECONDS = 200  # that a search may take on a busy machine before it counts as hanging


class Greedy(LogisticRegression):
    """Asks for more memory than there is, really, while others train."""

    def fit(self, X, y, sample_weight=None):
        if self.C == 7.0:
            np.ones(1 << 55)
        time.sleep(0.01)
        return super().fit(X, y, sample_weight)


def test_a_thread_without_memory_ends_the_frontier():
    X, y, group = people(200)
    before = threading.active_count()
    model = ft.QuantileRepairClassifier(Greedy(C=7.0))
    with pytest.raises(MemoryError) as caught:
        ft.frontier(model, X, y, sensitive_features=group, amounts=[0.0, 0.5, 1.0], cv=3, n_jobs=2, random_state=0)
    assert caught.value.__notes__ == ["With amount=0.", "Raised in fold 1."] or len(caught.value.__notes__) == 2
    assert threading.active_count() == before
    model.set_params(estimator__C=1.0)
    found = ft.frontier(model, X, y, sensitive_features=group, amounts=[0.0, 1.0], cv=3, n_jobs=2, random_state=0)
    assert len(found.values) == 2


@pytest.mark.trust
def test_a_killed_process_ends_a_search_and_the_next_one_works():
    assert run_script(Path(__file__).with_name("killed_worker.py"), timeout=SECONDS) == {
        "killed": "TerminatedWorkerError",
        "after": "done",
    }
