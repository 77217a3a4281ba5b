"""Run what the cache does not have: each method of each split in a process of its own, its lines appended at once."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import multiprocessing
import os
import resource
import signal
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from benchmarks.field import methods
from benchmarks.field.tasks import make_task
from fairtransport import metrics

N_SPLITS, TIME_LIMIT = 5, 900
TINY = 1e-6
POST_PROCESSING, TRAINING = ("fairlearn.postprocessing", "equipy.fairness", "cvxpy"), ("torch", "fairlearn.reductions")
KEY = ("data", "regime", "base", "criterion", "split", "method", "setting")


# ------------------------------------------------------------------------------------------------------------- cache


class Cache:
    """Lines of JSON in one file for each data set; a line that an interrupt cut off is ignored."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.records = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self.records[key_of(record)] = record

    def append(self, records):
        """Write all lines by one call, so that other processes and interrupts find all of them or none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = "".join(letter if letter.isalnum() else "_" for letter in records[0]["data"].lower())
        path = self.folder / f"{name}.jsonl"
        torn = path.exists() and not path.read_bytes().endswith(b"\n")
        text = ("\n" if torn else "") + "".join(json.dumps(record) + "\n" for record in records)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, text.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        self.records |= {key_of(record): record for record in records}


def key_of(record):
    return tuple(json.dumps(record[name]) for name in KEY)


def settings_left(cache, cell, split, method):
    """Settings of the method's grid that the cache does not have."""
    about = {**vars(cell), "split": split, "method": method.name}
    return [value for value in method.grid if key_of({**about, "setting": value}) not in cache.records]


# --------------------------------------------------------------------------------------------------------- measuring


def measure(task, scores, chance=None):
    """Figures of test rows; scores may be several draws, one in each row, whose figures are averaged."""
    if task.regression:
        return _measure_numbers(task, np.atleast_2d(scores)[0])
    if scores is None:
        return _decisions(task, np.asarray(chance))
    each = [_measure_scores(task, np.clip(draw, 0.0, 1.0)) for draw in np.atleast_2d(scores)]
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def _measure_scores(task, scores):
    known = {"sensitive_features": task.groups_test}
    safe = np.clip(scores, TINY, 1 - TINY)
    return {
        **_decisions(task, (scores > 0.5).astype(float)),
        "auc": float(roc_auc_score(task.y_test, scores)),
        "log_loss": float(-np.mean(np.log(np.where(task.y_test == 1, safe, 1 - safe)))),
        "rank": float(metrics.rank_disparity(scores, **known)),
        "spdd": float(metrics.strong_pairwise_disparity(scores, **known)),
        "separation": float(metrics.separation_disparity(task.y_test, scores, **known)),
        "separation_ranks": float(metrics.separation_disparity(task.y_test, rankdata(scores) / scores.size, **known)),
    }


def _decisions(task, chance):
    """Error and largest differences of rates between groups, of decisions that are 1 with probability ``chance``."""
    y, groups = task.y_test, task.groups_test
    rates = [[chance[(groups == code) & (y == label)].mean() for code in range(task.n_groups)] for label in (0, 1)]
    overall = [chance[groups == code].mean() for code in range(task.n_groups)]
    return {
        "error": float(np.mean(np.where(y == 1, 1 - chance, chance))),
        "constant": float(min(y.mean(), 1 - y.mean())),
        "parity_difference": float(np.ptp(overall)),
        "odds_difference": float(max(np.ptp(each) for each in rates)),
    }


def _measure_numbers(task, predicted):
    """Squared error as a share of the variance; distances in standard deviations of the training rows' outcome."""
    known = {"sensitive_features": task.groups_test}
    error = float(np.mean((predicted - task.y_test) ** 2))
    share = error / float(np.var(task.y_test))
    return {
        "error": share,
        "constant": 1.0,
        "r2": 1 - share,
        "mse": error,
        "rank": float(metrics.rank_disparity(predicted, **known)),
        "spdd": float(metrics.strong_pairwise_disparity(predicted, scale=float(task.y_train.std()), **known)),
    }


def _work(task, method, grid, sender, time_limit):
    """In a process of its own: send a list of settings and figures, or the name of an error."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time_limit),) * 2)  # of the processor; then it is killed
    resident = _resident()
    try:
        found, seconds = [], _seconds()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for setting, *scores in method.run(task, grid):
                now = _seconds()
                figures = measure(task, *scores)
                memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - resident) if resident else None
                found.append((setting, {**figures, "seconds": now - seconds, "memory": memory}))
                seconds = _seconds()
        sender.send(found)
    except (ImportError, OSError) as error:
        sender.send(f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - a peer's failure is a result
        traceback.print_exc()
        sender.send({"failed": type(error).__name__})


def _seconds():
    """Processor seconds of this process and of those that it has started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _resident():
    """MiB of this process now, None where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if statm.exists() else None


# ----------------------------------------------------------------------------------------------------------- running


def run_method(task, method, grid, time_limit=TIME_LIMIT):
    """Return settings and figures, a dictionary with the reason of a failure, or the text of a missing library."""
    context = multiprocessing.get_context("fork")  # predictions of the base model are shared, memory is counted apart
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(task, method, grid, sender, time_limit), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside idle threads of a library
        child.start()
    sender.close()
    try:
        answered = receiver.poll(10 * time_limit)  # on a busy machine, or where it waits for nothing
        return receiver.recv() if answered else {"failed": f"over {time_limit} s"}
    except EOFError:
        child.join()
        return {"failed": f"over {time_limit} s" if child.exitcode == -signal.SIGKILL else "the process ended"}
    finally:
        child.terminate()
        child.join()


def warm_up(cell, chosen, done):
    """Call our methods once in this process, so that no time of compiling or of loading libraries is counted."""
    left = {(cell.aware, cell.base, cell.criterion, cell.regression, method.name): method for method in chosen}
    left = {key: method for key, method in left.items() if key not in done}
    if not left:
        return
    done.update(left)
    trained = any(not method.needs for method in left.values())
    for library in (*POST_PROCESSING, *(TRAINING if trained else ())):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    data = "Communities, rate" if cell.regression else "German, age"
    task = make_task(data, 0, aware=cell.aware, base=cell.base, quick=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in (method for method in left.values() if method.ours):
            for _, *scores in method.run(task, method.grid[:1]):
                measure(task, *scores)


def run_cell(cell, cache, *, warmed=None, folder=None, quick=False, deadline=np.inf, n_splits=N_SPLITS):
    """Run the missing settings of a cell, split by split; False where the time is over."""
    for split in range(n_splits):
        left = [(method, settings_left(cache, cell, split, method)) for method in methods.methods(cell, folder)]
        left = [(method, grid[:2] if quick else grid) for method, grid in left if grid]
        if not left:
            continue
        if time.time() > deadline:
            return False
        try:
            task = make_task(cell.data, split, aware=cell.aware, base=cell.base, folder=folder, quick=quick)
        except ModuleNotFoundError as error:
            print(f"  {cell}: {error}", flush=True)
            return True
        warm_up(cell, [method for method, _ in left], set() if warmed is None else warmed)
        for method, grid in left:
            if time.time() > deadline:
                return False
            for name in method.needs:
                getattr(task, name)
            began = time.perf_counter()
            found = run_method(task, method, grid)
            about = {**vars(cell), "split": split, "method": method.name}
            if isinstance(found, str):
                print(f"  {cell}, {method.name} does not load: {found}", flush=True)
                continue
            if isinstance(found, dict):
                found = [(setting, found) for setting in grid]
            cache.append([{**about, "setting": setting, **_rounded(figures)} for setting, figures in found])
            print(f"  {cell}, split {split}, {method.name}: {time.perf_counter() - began:.1f} s", flush=True)
    return True


def _rounded(figures):
    return {name: value if isinstance(value, str) or value is None else float(f"{value:.5g}")
            for name, value in figures.items()}  # fmt: skip
