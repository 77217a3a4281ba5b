"""Ours and the field: error against disparity of all methods at equal base models, resumed where it was left.

Each (data set, split, method, setting) is a line of JSON in ``results/field``; what is there is not run again, so that
an interrupted run goes on where it was. ``--minutes 0`` only writes the page and its pictures.
"""

from __future__ import annotations

import time

CLAIM = (
    "At equal base models, by mean rank disparity and by strong pairwise demographic disparity (SPDD), the best of our "
    "curves is below every peer's or within one standard error of it, on every data set, with and without the group."
)


def run(report):
    from benchmarks.field import methods, page, runner  # noqa: PLC0415 - the number of threads is set before

    cache = runner.Cache(report.folder / "field")
    options = {"folder": report.data_folder, "quick": report.quick, "warmed": set()}
    options["deadline"] = time.time() + 60 * report.minutes if report.minutes is not None else float("inf")
    try:
        for n_splits in (1,) if report.quick else (2, 3, runner.N_SPLITS):  # two have a standard error
            cells = list(methods.cells())[:: 20 if report.quick else 1]
            if not all(runner.run_cell(cell, cache, n_splits=n_splits, **options) for cell in cells):
                break
    except KeyboardInterrupt:
        print("interrupted: run again to go on", flush=True)
    page.write(cache.records.values(), report)
