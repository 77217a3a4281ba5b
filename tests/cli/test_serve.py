"""``fairtransport serve``: what it refuses, and how it ends; tests/serving has what it answers."""

import signal
import socket

import pytest
from tests.worlds import fitted

import fairtransport as ft


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    model = fitted(ft.TransportClassifier(parity_weight=0.1), n=300, names="abc")
    return ft.save(model, tmp_path_factory.mktemp("model") / "m.ft")


def test_a_port_in_use(run, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", model, "--port", port)
    assert result.exit_code == 1
    assert result.stderr == f"error: Port {port} is in use by another program; choose another, or 0 for a free port\n"


def test_an_address_of_another_machine(run, model):
    result = run("serve", model, "--host", "203.0.113.1", "--port", 0)
    assert result.exit_code == 1
    assert "no such address" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--adjust"], "--store DIR belong together"),
        (["--store", "s"], "--store DIR belong together"),
        (["--freeze"], "--freeze needs --adjust"),
        (["--adjust", "--store", "s", "--workers", 2], "--workers 1"),
        (["--token-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE of --token-env is not set"),
        (["--port", 70000], "65535"),
    ],
)
def test_wrong_usage(run, model, arguments, text):
    result = run("serve", model, *arguments)
    assert result.exit_code == 64
    assert text in result.stderr


@pytest.mark.parametrize("content", [None, b"CANARY" * 100])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_that_cannot_be_loaded(run, tmp_path, content, workers):
    path = tmp_path / "model.ft"
    if content is not None:
        path.write_bytes(content)
    result = run("serve", path, "--port", 0, "--workers", workers)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "CANARY" not in result.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_options_reach_the_server_and_signals_the_status(run, model, monkeypatch, number, status):
    given = {}

    def serve(settings, *, on_start, **options):
        given.update(options, settings=settings)
        on_start("http://0.0.0.0:1")
        return number

    monkeypatch.setenv("SCORES_TOKEN", "")
    monkeypatch.setattr("fairtransport.serving.serve", serve)
    result = run("serve", model, "--host", "0.0.0.0", "--max-body", 1, "--features", "a,b", "--timeout", 5)  # noqa: S104
    assert result.exit_code == status
    assert "other machines can ask for scores without a token" in result.stderr
    assert "serving m.ft at http://0.0.0.0:1" in result.stderr
    settings = given["settings"]
    assert (settings.max_bytes, settings.features, settings.timeout) == (2**20, ("a", "b"), 5)
    assert (given["host"], given["workers"]) == ("0.0.0.0", 1)  # noqa: S104
