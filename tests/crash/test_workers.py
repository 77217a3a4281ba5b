"""Memory that runs out in a worker, thread or process: a clear error, nothing hangs, and what comes next works."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft

SECONDS = 200  # that a search may take on a busy machine before it counts as hanging


class Greedy(LogisticRegression):
    """Asks for more memory than there is, really, while others train."""

    def fit(self, X, y, sample_weight=None):
        if self.C == 7.0:
            np.ones(1 << 55)
        time.sleep(0.01)
        return super().fit(X, y, sample_weight)


def people():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(200, 3)), np.arange(200) % 2
    return X, (X[:, 0] + rng.logistic(size=200) > 0).astype(int), group


def test_a_thread_without_memory_ends_the_frontier():
    X, y, group = people()
    before = threading.active_count()
    model = ft.QuantileRepairClassifier(Greedy(C=7.0))
    with pytest.raises(MemoryError) as caught:
        ft.frontier(model, X, y, sensitive_features=group, amounts=[0.0, 0.5, 1.0], cv=3, n_jobs=2, random_state=0)
    assert caught.value.__notes__ == ["With amount=0.", "Raised in fold 1."] or len(caught.value.__notes__) == 2
    assert threading.active_count() == before
    model.set_params(estimator__C=1.0)
    found = ft.frontier(model, X, y, sensitive_features=group, amounts=[0.0, 1.0], cv=3, n_jobs=2, random_state=0)
    assert len(found.values) == 2


def test_a_thread_without_memory_ends_fit_many():
    X, y, group = people()
    models = [ft.QuantileRepairClassifier(Greedy(C=strength)) for strength in (1.0, 7.0, 2.0)]
    with pytest.raises(MemoryError) as caught:
        ft.fit_many(models, X, y, sensitive_features=group, n_jobs=2)
    assert caught.value.__notes__


@pytest.mark.trust
def test_a_killed_process_ends_a_search_and_the_next_one_works():
    script = Path(__file__).with_name("killed_worker.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"killed": "TerminatedWorkerError", "after": "done"}


def test_save_on_a_full_disk_and_in_a_folder_that_is_not_ours(tmp_path):
    """The system itself refuses: more than 4 KiB to a file, and any file in a folder of the kernel's."""
    path = tmp_path / "model.ft"
    code = (
        "import resource, sys, numpy as np, fairtransport as ft\n"
        "scores, group = np.linspace(0, 1, 5000), np.arange(5000) % 2\n"
        "model = ft.QuantileRepair().fit(scores, sensitive_features=group)\n"
        "ft.save(model, sys.argv[1])\n"
        "size = len(open(sys.argv[1], 'rb').read())\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "for path in (sys.argv[1], '/proc/model.ft'):\n"
        "    try:\n"
        "        ft.save(model, path)\n"
        "    except OSError as error:\n"
        "        print(type(error).__name__, error)\n"
        "print(size == len(open(sys.argv[1], 'rb').read()), ft.load(sys.argv[1]).n_features_in_)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    full, forbidden, after = done.stdout.splitlines()
    assert full.startswith("OSError")
    assert "the existing file is unchanged" in full
    assert "nothing was written. Free disk space or choose a folder" in forbidden
    assert after == "True 1"
    assert [one.name for one in tmp_path.iterdir()] == ["model.ft"]
