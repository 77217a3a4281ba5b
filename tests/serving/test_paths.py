"""Health, figures, description, access and new versions of the model."""

import re
import shutil
import socket
import threading

import numpy as np
import pytest
from tests.processes import until
from tests.serving.conftest import people

import fairtransport as ft
from fairtransport.metrics import noise_floor, pairwise_disparity
from fairtransport.persistence import make_keys
from fairtransport.serving._answers import Answer
from fairtransport.serving._counters import SCORE_BINS, RequestCounts, ScoreCounts, SharedCounts
from fairtransport.serving._sockets import listen
from fairtransport.serving.bodies import FORMATS
from fairtransport.tabular.rows import ReasonKind, RowReason


def ask(client, rows, **headers):
    return client.post("/score", json=rows, headers=headers)


def figures(client):
    """Return the figures by name and labels."""
    lines = [line for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_figures_of_requests_and_rows(client, rows):
    served = client()
    ask(served, rows[1])
    ask(served, [{**rows[1][0], "age": None}, rows[1][0]])
    ask(served, [{"age": 1}])
    found = figures(served)
    assert found['fairtransport_requests_total{status="200"}'] == 2
    assert found['fairtransport_requests_total{status="422"}'] == 1
    assert found["fairtransport_rows_total"] == 42
    assert found['fairtransport_rejected_rows_total{reason="missing value"}'] == 1
    assert found['fairtransport_request_seconds_bucket{le="+Inf"}'] == found["fairtransport_request_seconds_count"] == 3


def test_scores_of_groups_and_their_disparity(client, files):
    X, _, sex = people(600, seed=2)
    served = client("n.ft")
    ask(served, X.assign(sex=sex).to_dict("records"))
    found = figures(served)
    scores = ft.load(files / "n.ft").predict_proba(X)[:, 1]
    for group in ("F", "M"):
        own = scores[sex == group]
        assert found[f'fairtransport_scores_bucket{{group="{group}",le="0.3"}}'] == np.count_nonzero(own < 0.3)
        assert found[f'fairtransport_scores_sum{{group="{group}"}}'] == pytest.approx(own.sum())
    expected = pairwise_disparity(scores, sensitive_features=sex)
    assert found["fairtransport_disparity"] == pytest.approx(expected, abs=1 / SCORE_BINS)
    chance = noise_floor(pairwise_disparity, scores, sensitive_features=sex, random_state=0).mean
    assert found["fairtransport_disparity_noise_floor"] == pytest.approx(chance, rel=0.2)


@pytest.mark.parametrize("name", ["m.ft", "table.ft"])
def test_small_groups_are_not_shown(client, rows, name):
    served = client(name, min_group_rows=10)
    ask(served, [{**row, "job": "cook", "sex": "F"} for row in rows[1]])
    ask(served, [{**row, "job": "cook", "sex": "M"} for row in rows[1][:9]])
    ask(served, [{**row, "job": "cook", "sex": "unheard"} for row in rows[1]])
    text = served.get("/metrics").text
    assert 'group="F"' in text
    assert 'group="M"' not in text
    assert "unheard" not in text
    assert "fairtransport_disparity " not in text
    ask(served, [{**row, "job": "cook", "sex": "M"} for row in rows[1][:5]])
    assert 'group="M"' in served.get("/metrics").text


def test_what_one_request_adds_to_the_figures_is_not_its_score(client, rows):
    def sums():
        lines = served.get("/metrics").text.splitlines()
        return [line for line in lines if line.startswith(("fairtransport_scores", "fairtransport_disparity"))]

    served = client(min_group_rows=10)
    ask(served, rows[1] * 2)
    before = sums()
    for row in rows[1][:4]:
        ask(served, [{**row, "sex": "F"}])
        assert sums() == before
    ask(served, [{**rows[1][4], "sex": "F"}])
    assert sums() != before


def test_answers_on_kept_connections_do_not_wait_for_an_acknowledgement():
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted = listener.accept()[0]
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        accepted.close()


def test_processes_share_their_counts_and_go_on_after_a_kill(tmp_path):
    first, second = (RequestCounts(SharedCounts(tmp_path, 2, index)) for index in range(2))
    first.add(200, 0.01)
    second.add(200, 0.02)
    reasons = {2: RowReason("no group in 'sex'", ReasonKind.NO_GROUP)}
    second.add_answer(Answer(np.zeros(7), reasons, "v", {"unreadable": {"a": 2}}))
    again = RequestCounts(SharedCounts(tmp_path, 2, 1))  # in place of the second
    again.add(599, 100.0)
    total = first.total()
    assert total["statuses"].sum() == total["latencies"].sum() == 3
    assert total["statuses"][-1] == 1
    assert total["sums"].tolist() == pytest.approx([100.03, 7])
    assert (total["reasons"].sum(), total["replaced"].tolist()) == (1, [2, 0, 0])
    counts = [ScoreCounts("FM", SharedCounts(tmp_path, 2, index), "v") for index in range(2)]
    for one in counts:
        one.add(np.repeat([0.0, 1.0, 0.5], 5), np.repeat([[0], [1], [2]], 5, axis=0))  # the last belong to no group
    histograms, sums = counts[0].total()
    assert histograms.sum(axis=1).tolist() == [10, 10]
    assert sums.tolist() == [0, 10]


@pytest.mark.parametrize("name", ["m.ft", "table.ft", "aware.ft"])
def test_the_example_of_the_description_is_scored(client, name):
    served = client(name)
    document = served.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    bodies = document["paths"]["/score"]["post"]["requestBody"]["content"]
    body = bodies["application/json"]
    assert {*bodies} == {*FORMATS}
    assert None not in ask(served, body["example"]).json()["scores"]
    row = document["components"]["schemas"]["Row"]
    assert set(row["required"]) <= set(row["properties"])
    needed = {"m.ft": 3, "table.ft": 4, "aware.ft": 4}[name]
    assert len(row["required"]) == needed


def test_the_page_is_self_contained_and_names_are_text(client, tmp_path):
    X, y, sex = people(300)
    odd = X.rename(columns={"age": "<script>alert(1)</script>"})
    model = ft.TransportClassifier(parity_weight=0.1).fit(odd, y, sensitive_features={"<b>": sex})
    served = client(ft.save(model, tmp_path / "odd.ft"))
    page = served.get("/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    assert not re.search(r'(src|href)="(https?:)?//', page.text)
    assert "--data @rows.json http://127.0.0.1:8000/score</code>" in page.text
    other = served.get("/docs/", headers={"Host": "scores.example:81"})
    assert "--data @rows.json http://scores.example:81/score</code>" in other.text
    assert served.get("/docs/page.css").headers["Content-Type"].startswith("text/css")


def test_a_token_is_needed_but_for_health(client, rows):
    served = client(token="secret")  # noqa: S106
    for path in ("/metrics", "/openapi.json", "/docs/", "/", "/nowhere"):
        assert served.get(path).status_code == 401
    assert served.get("/healthz").status_code == served.get("/readyz").status_code == 200
    for wrong in ("", "secret", "Bearer", "Bearer wrong", "Basic secret", "Bearer secret2", "Bearer secret, x"):
        assert ask(served, rows[1], Authorization=wrong).status_code == 401
    assert ask(served, rows[1]).headers["WWW-Authenticate"] == "Bearer"
    assert ask(served, rows[1], Authorization="Bearer secret").status_code == 200


def test_other_hosts_are_refused(client, rows):
    served = client(hosts=("127.0.0.1:8000",))
    assert ask(served, rows[1]).status_code == 200
    assert ask(served, rows[1], Host="evil.example").status_code == 403


def test_a_new_version_is_served_and_a_damaged_one_is_not(client, files, rows, tmp_path):
    path = tmp_path / "model.ft"
    shutil.copy(files / "m.ft", path)
    served = client(path, reload_every=0.05)
    old = ask(served, rows[1]).json()
    path.write_bytes(b"CANARY" * 1000)
    until(lambda: served.get("/healthz").json()["status"] == "degraded")
    assert ask(served, rows[1]).json() == old
    problems = served.get("/healthz").json()["problems"]
    assert "the old one is served" in problems[0]
    assert "CANARY" not in problems[0]
    assert served.get("/readyz").json() == {"ready": True, "model": old["model"], "problems": problems}
    assert figures(served)["fairtransport_model_file_loaded"] == 0
    path.unlink()
    until(lambda: "No such file" in served.get("/healthz").json()["problems"][0])
    shutil.copy(files / "n.ft", tmp_path / "next.ft")
    (tmp_path / "next.ft").replace(path)
    until(lambda: served.get("/healthz").json()["status"] == "ok")
    new = ask(served, rows[1]).json()
    assert new["model"] != old["model"]
    expected = ft.load(files / "n.ft").predict_proba(rows[0])[:, 1]
    np.testing.assert_allclose(new["scores"], expected, rtol=1e-12)
    assert served.get("/openapi.json").json()["info"]["version"] == new["model"]


def test_an_unsigned_new_version_is_not_served(client, files, rows, tmp_path):
    path = tmp_path / "model.ft"
    shutil.copy(files / "m.ft", path)
    private, public = make_keys(tmp_path / "signing.key")
    ft.persistence.sign(path, private)
    served = client(path, verify=public, reload_every=0.05)
    version = ask(served, rows[1]).json()["model"]
    shutil.copy(files / "n.ft", path)
    until(lambda: served.get("/healthz").json()["status"] == "degraded")
    assert ask(served, rows[1]).json()["model"] == version


def test_scores_that_threads_count_at_once_are_all_counted():
    counts, rows = ScoreCounts(["a", "b"]), (np.linspace(0.0, 1.0, 2000), np.zeros((2000, 1), dtype=np.int64))
    threads = [threading.Thread(target=lambda: [counts.add(*rows) for _ in range(300)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.total()[0].sum() == 3 * 300 * 2000
