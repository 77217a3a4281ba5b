"""A raw table of people, as a file would have it."""

import numpy as np
import polars as pl


def raw_people(n=600, seed=0):
    """Numbers as text, words, dates, gaps, an identifier; men work longer hours, and hours decide who is hired."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    hours = rng.normal(35, 5, n) + 4.0 * (sex == "M")
    skill = rng.normal(size=n)
    hired = hours / 5 + skill + rng.logistic(size=n) * 0.7 > 8
    return pl.DataFrame(
        {
            "person": [f"P{seed}-{k:06d}" for k in range(n)],
            "sex": sex,
            "region": rng.choice(["north", "south"], n),
            "hours": [f"{value:.2f}" for value in hours],
            "skill": [None if k % 13 == 0 else float(value) for k, value in enumerate(skill)],
            "job": rng.choice(["cook", "smith", "judge", "?"], n),
            "joined": [str(day) for day in np.datetime64("2020-01-01") + rng.integers(0, 900, n)],
            "hired": np.where(hired, "yes", "no"),
        }
    )
