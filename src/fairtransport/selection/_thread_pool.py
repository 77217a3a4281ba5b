"""Tasks in parallel threads; the compiled loops release the global interpreter lock."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import warnings
from collections import defaultdict
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import effective_n_jobs
from sklearn import config_context, get_config

from fairtransport._progress import progress
from fairtransport._validation import check_flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


T = TypeVar("T")

_POLL = 0.2  # seconds between two checks for Ctrl-C
_REPEAT = 2.0  # seconds until tasks are stopped again: Python drops an exception that arrives inside a destructor


class Control:
    """Counts the steps of tasks and stops them; see `run_in_threads`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._running: set[int] = set()
        self.steps = 0

    def step(self) -> None:
        """Count a step as done; raise KeyboardInterrupt where the tasks have been stopped."""
        with self._lock:
            self._check()
            self.steps += 1

    def _check(self) -> None:
        if self._stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop all tasks by a KeyboardInterrupt in their threads."""
        with self._lock:
            self._stopped = True
            for thread in self._running:
                # Python delivers Ctrl-C to the main thread only.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))

    @contextlib.contextmanager
    def stoppable(self) -> Iterator[None]:
        """Make this thread stoppable while the block runs."""
        thread = threading.get_ident()
        with self._lock:
            self._check()
            self._running.add(thread)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(thread)


def run_in_threads(
    tasks: Sequence[Callable[[Control], T]],
    *,
    names: Sequence[str],
    n_steps: int,
    n_jobs: int | None,
    title: str,
    verbose: bool,
) -> list[T]:
    """Run tasks with the scikit-learn configuration of the caller, and return their results in order.

    Warnings are issued once at the end: many tasks would repeat them, and warning filters are not thread-safe.
    """
    check_flag(verbose, name="verbose")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
        raise TypeError(f"n_jobs must be an integer or None; got {type(n_jobs).__name__}.")
    n_threads = max(1, min(effective_n_jobs(n_jobs), len(tasks)))
    control, settings = Control(), get_config()
    total = n_steps * len(tasks)

    def run(task: Callable[[Control], T]) -> T:
        with control.stoppable(), config_context(**settings):
            result = task(control)
            control.step()  # the last one
            return result

    results: dict[int, T] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with progress(title, total, show=verbose) as bar, ThreadPoolExecutor(n_threads) as pool:
            waiting: dict[Future[T], int] = {}
            try:
                for index, task in enumerate(tasks):  # within try: a task may be stopped before the last is submitted
                    waiting[pool.submit(run, task)] = index
                while waiting:
                    finished, _ = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
                    for future in sorted(finished, key=waiting.__getitem__):
                        results[waiting[future]] = _result(future, names[waiting[future]])
                        del waiting[future]
                    bar.advance(control.steps, f"{control.steps}/{total}")
            except BaseException:
                for future in waiting:
                    future.cancel()
                control.stop()
                while wait(waiting, timeout=_REPEAT).not_done:
                    control.stop()
                raise
    _issue_again(caught)
    return [results[index] for index in range(len(tasks))]


def _result(future: Future[T], name: str) -> T:
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"Raised in {name}.")
        raise


def _issue_again(caught: Sequence[warnings.WarningMessage]) -> None:
    """Issue each warning of one line of code once, with its number."""
    by_line: dict[Any, list[warnings.WarningMessage]] = defaultdict(list)
    for warning in caught:
        by_line[warning.category, warning.filename, warning.lineno].append(warning)
    for (category, filename, line), same in by_line.items():
        message: Any = same[0].message
        if len(same) > 1:
            with contextlib.suppress(TypeError):  # a category that takes further arguments
                message = category(f"{message} (One of {len(same)} such warnings.)")
        warnings.warn_explicit(message, category, filename, line)
