"""Many pieces of work at once, in threads: the compiled loops release the interpreter lock."""

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

__all__ = ["Control", "run_in_threads"]

T = TypeVar("T")

_WAKE = 0.2  # seconds between two looks for Ctrl-C where waiting itself does not hear it


class Control:
    """Told by a piece of work between its steps; stops it; see `run_in_threads`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._running: set[int] = set()
        self.steps = 0

    def step(self) -> None:
        """Count a step as done. Raises KeyboardInterrupt when all work is to stop."""
        with self._lock:
            self._check()
            self.steps += 1

    def _check(self) -> None:
        if self._set:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop all work: what runs sees a KeyboardInterrupt, as it would in the main thread."""
        with self._lock:
            self._set = True
            for thread in self._running:
                # Python delivers Ctrl-C to the main thread only; this is its way of telling the others.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Have this thread told while the block runs."""
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
    n_steps: int = 1,
    n_jobs: int | None = None,
    title: str = "running",
    verbose: bool = False,
) -> list[T]:
    """Run tasks and return their results in order.

    Parameters
    ----------
    tasks : sequence of callable
        Called with a `Control`. A task of several steps calls its ``step()`` between them.
    names : sequence of str
        What each task is called in errors.
    n_steps : int, default 1
        Steps of each task, for the bar.
    n_jobs : int, optional
        How many run at once, as in joblib: None is 1 unless a ``joblib.parallel_config`` says otherwise, -1 all cores.
    title : str
        Shown with the bar.
    verbose : bool, default False
        Show a progress bar.

    Returns
    -------
    list
        The same for every ``n_jobs``, as far as the tasks do not share random numbers.

    Raises
    ------
    Exception
        The first that a task raises, with a note that names the task. The other tasks are stopped.
    KeyboardInterrupt
        After Ctrl-C, when all tasks have stopped.

    Notes
    -----
    Tasks see scikit-learn's settings of the caller. Warnings are gathered and given once at the end: many equal
    runs would else repeat them, and Python's filters of warnings are not safe to change from several threads.
    """
    check_flag(verbose, name="verbose")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
        raise TypeError(f"n_jobs must be a whole number or None; got {type(n_jobs).__name__}.")
    n_threads = max(1, min(effective_n_jobs(n_jobs), len(tasks)))
    control, settings = Control(), get_config()
    total = n_steps * len(tasks)

    def run(task: Callable[[Control], T]) -> T:
        with control.watching(), config_context(**settings):
            result = task(control)
            control.step()  # the last one
            return result

    results: dict[int, T] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with progress(title, total, show=verbose) as bar, ThreadPoolExecutor(n_threads) as pool:
            waiting: dict[Future[T], int] = {}
            try:
                for place, task in enumerate(tasks):  # the first may run, and be stopped, before the last is here
                    waiting[pool.submit(run, task)] = place
                while waiting:
                    finished, _ = wait(waiting, timeout=_WAKE, return_when=FIRST_COMPLETED)
                    for future in sorted(finished, key=waiting.__getitem__):
                        results[waiting[future]] = _result(future, names[waiting[future]])
                        del waiting[future]
                    bar.advance(control.steps, f"{control.steps}/{total}")
            except BaseException:
                for future in waiting:
                    future.cancel()
                control.stop()
                raise
    _give_again(caught)
    return [results[place] for place in range(len(tasks))]


def _result(future: Future[T], name: str) -> T:
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"This happened in {name}.")
        raise


def _give_again(caught: Sequence[warnings.WarningMessage]) -> None:
    """Give each warning of one line of code once, with how often it came."""
    places: dict[Any, list[warnings.WarningMessage]] = defaultdict(list)
    for warning in caught:
        places[warning.category, warning.filename, warning.lineno].append(warning)
    for (category, filename, line), same in places.items():
        message: Any = same[0].message
        if len(same) > 1:
            with contextlib.suppress(TypeError):  # a category that takes more than a text stays as it came
                message = category(f"{message} (One of {len(same)} such warnings.)")
        warnings.warn_explicit(message, category, filename, line)
