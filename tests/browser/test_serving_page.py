"""The page of a server that says how to ask for scores."""

import threading
import time

import numpy as np
import pandas as pd
import pytest
import uvicorn

import fairtransport as ft
from fairtransport.serving import ServerSettings, create_app

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    rng = np.random.default_rng(0)
    names = ["hours", "<img src=x onerror=alert(1)>", "a rather long name of a column that nobody would type"]
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=names)
    y = (X["hours"] + rng.logistic(size=300) > 0).astype(int)
    model = ft.TransportClassifier(parity_weight=0.1)
    model.fit(X, y, sensitive_features={"sex": rng.choice(["F", "M"], 300)})
    path = ft.save(model, tmp_path_factory.mktemp("model") / "m.ft")
    server = uvicorn.Server(uvicorn.Config(create_app(ServerSettings(path)), port=0, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_opens_without_messages_and_fits_the_screen(open_url, url, width, dark):
    with open_url(url, width=width, height=800, dark=dark) as page:
        assert page.locator("table").first.locator("tbody tr").count() == 4
        assert page.locator("main img").count() == 0
        assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert page.evaluate("() => getComputedStyle(document.querySelector('pre')).borderTopWidth") == "1px"
