"""A search over processes in which one worker is killed, as a system without memory kills it; run by the test."""

import json
import os
import signal
import sys
import threading
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV

import fairtransport as ft


class Doomed(ft.TransportClassifier):
    """Its worker dies in the middle of training."""

    def _training_data(self, *arguments, **options):
        if self.parity_weight == 7.0:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
            threading.Event().wait(30)
        return super()._training_data(*arguments, **options)


def main():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(200, 3)), np.arange(200) % 2
    y = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    import sklearn  # noqa: PLC0415

    sklearn.set_config(enable_metadata_routing=True)
    told = {}
    for name, weights in (("killed", [1.0, 7.0]), ("after", [1.0, 3.0])):
        model = Doomed()
        model.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=False)
        search = GridSearchCV(model, {"parity_weight": weights}, cv=2, n_jobs=2, error_score="raise")
        try:
            with warnings.catch_warnings(action="ignore"):
                search.fit(X, y, sensitive_features=group)
            told[name] = "done"
        except Exception as error:  # noqa: BLE001 - its name is what the test looks at
            told[name] = type(error).__name__
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
