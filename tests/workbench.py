"""A workbench on a free port, and a table of people to open in it."""

import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import polars as pl
import uvicorn

from fairtransport.app.server import Workbench


def people(n=1500, seed=0):
    """Applicants whose scores and features differ by sex, with an identifier, a proxy and a leak."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    hours = rng.normal(35, 6, n) + 5 * (sex == "M")
    hired = hours + rng.normal(0, 6, n) > 37
    return pl.DataFrame(
        {
            "person": [f"p{k}" for k in range(n)],
            "sex": sex,
            "hours": hours.round(2),
            "region": rng.choice(["north", "south", "west"], n),
            "title": np.where(rng.random(n) < 0.97, np.where(sex == "F", "Ms", "Mr"), "Dr"),
            "salary": np.where(hired, "paid", "unpaid"),
            "score": (1 / (1 + np.exp(-(hours - 37) / 5))).round(4),
            "hired": np.where(hired, "yes", "no"),
        }
    )


TOKEN = "for-these-tests"  # noqa: S105


@contextmanager
def running(home):
    """Serve a workbench in a thread; yields it and its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    workbench = Workbench(home, port, TOKEN)
    server = uvicorn.Server(uvicorn.Config(workbench.app, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield workbench, f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        workbench.projects.close()
        listener.close()
