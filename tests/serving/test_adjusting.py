"""A server that adjusts its model does what a stream does, and counts a request once, however often it is sent."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from tests.serving.conftest import NAMES, people

import fairtransport as ft
from fairtransport.serving._adjusting import AnswerLog, LoggedAnswer
from fairtransport.serving._answers import Answer
from fairtransport.stream import ContinualAdjuster, read_journal


def requests(n, size=30, gap=2.0):
    """Requests with rows of a world that has moved."""
    rng = np.random.default_rng(5)
    bodies = []
    for _ in range(n):
        X, _, sex = people(size, seed=int(rng.integers(1 << 30)))
        X["grade"] += gap * (sex == "M")
        bodies.append([{**row, "sex": str(own)} for row, own in zip(X.to_dict("records"), sex, strict=True)])
    return bodies


def ask(client, rows, key=None):
    return client.post("/score", json=rows, headers={} if key is None else {"Idempotency-Key": key})


def in_memory(path, batches):
    """Return the scores of a stream in memory, and the adjuster."""
    adjuster = ContinualAdjuster(ft.load(path), checkpoint_every=None)
    scores = []
    for rows in batches:
        X = np.array([[row[name] for name in NAMES] for row in rows])
        sex = np.array([row["sex"] for row in rows], dtype=object)
        scores.append(adjuster.adjust(X, sensitive_features={"sex": sex}).scores)
    return scores, adjuster


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_scores_and_model_are_those_of_a_stream(client, files, tmp_path):
    bodies, store = requests(12), tmp_path / "store"
    served = client("m.ft", store=store)
    found = [ask(served, body).json()["scores"] for body in bodies]
    expected, adjuster = in_memory(files / "m.ft", bodies)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    served.__exit__(None, None, None)
    resumed = ContinualAdjuster.resume(store)
    np.testing.assert_array_equal(resumed.model.coef_, adjuster.model.coef_)
    assert (resumed.batches, resumed.rows) == (12, 360)
    resumed.close()


def test_a_request_that_is_sent_again_counts_once(client, tmp_path):
    body, other = requests(2)
    served = client("m.ft", store=tmp_path / "store")
    first = ask(served, body, "one").json()
    ask(served, other)
    assert ask(served, body, "one").json() == first
    response = ask(served, other, "one")
    assert (response.status_code, "use a new key" in response.json()["error"]) == (422, True)
    assert [entry["rows"] for entry in read_journal(tmp_path / "store")] == [30, 60]
    served.__exit__(None, None, None)
    again = client("m.ft", store=tmp_path / "store")  # after a restart, too
    assert ask(again, body, "one").json() == first
    assert ask(again, body, "two").json() != first
    assert read_journal(tmp_path / "store")[-1]["rows"] == 90


def test_answers_are_kept_up_to_a_number_of_bytes(tmp_path, monkeypatch):
    path, most = tmp_path / "answers.jsonl", 100_000
    monkeypatch.setattr("fairtransport.serving._adjusting._MAX_LOGGED", most)
    log = AnswerLog(path, 10_000, 0)
    for number in range(300):
        answers = [LoggedAnswer(str(number), 0, 0, Answer(np.full(1000, 0.12345678901234567)))]
        log.write(answers)
        log.confirm(answers)
        assert path.stat().st_size < 5 * most
    assert [*log.answers] == [str(number) for number in range(289, 300)]  # 8.5 KB each
    log.close()
    again = AnswerLog(path, 10_000, 0)
    assert [*again.answers] == [*log.answers]
    again.close()


def test_rows_that_cannot_be_scored_are_set_aside(client, tmp_path):
    body = requests(1)[0]
    body[3] = {**body[3], "age": "CANARY"}
    body[5] = {**body[5], "age": 1e300}
    body[7] = {name: value for name, value in body[7].items() if name != "age"}
    body[9] = "CANARY"
    served = client("m.ft", store=tmp_path / "store")
    content = ask(served, body, "key").json()
    assert {one["row"] for one in content["rejected"]} == {3, 7, 9}
    assert [row for row, score in enumerate(content["scores"]) if score is None] == [3, 7, 9]
    assert content["scores"][5] == ask(client("m.ft"), body).json()["scores"][5]  # a large number is one
    assert read_journal(tmp_path / "store")[-1]["rows"] == 27
    assert ask(served, body, "key").json() == content
    assert ask(served, ["CANARY"]).json()["scores"] == [None]
    text = "".join(path.read_bytes().decode(errors="replace") for path in (tmp_path / "store").iterdir())
    assert "CANARY" not in text


def test_the_search_for_rows_that_the_model_cannot_score_is_bounded(client, tmp_path, monkeypatch, capfd):
    X, y, _ = people(200)
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression()).fit(X, y)
    served = client(ft.save(model, tmp_path / "m.ft"), store=tmp_path / "store")
    real, calls = ContinualAdjuster.dry_run, []
    monkeypatch.setattr(ContinualAdjuster, "dry_run", lambda *given: calls.append(1) or real(*given))
    good = X.iloc[0].to_dict()
    content = ask(served, [{**good, "age": 1e300}, good] * 1000).json()
    assert all(score is None for score in content["scores"][::2])
    assert content["scores"][1] == pytest.approx(ask(served, [good]).json()["scores"][0])
    assert 10 < len(calls) < 310  # of one request, however many batches it is
    assert capfd.readouterr().err == ""


def test_requests_at_the_same_time_share_checkpoints_and_each_gets_its_own_scores(client, tmp_path):
    bodies = requests(40, size=5)
    served = client("m.ft", store=tmp_path / "store", batch=20)
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda pair: ask(served, pair[1], str(pair[0])).json(), enumerate(bodies))]
    assert all(len(one["scores"]) == 5 and None not in one["scores"] for one in found)
    assert [ask(served, body, str(n)).json() for n, body in enumerate(bodies)] == found
    assert read_journal(tmp_path / "store")[-1]["rows"] == 200


def test_figures_live_page_and_description(client, tmp_path):
    served = client("m.ft", store=tmp_path / "store")
    ask(served, requests(1, size=200)[0])
    text = served.get("/metrics").text
    for name in ("disparity_after", "noise_floor", "alarm", "alarm_evidence", "batches_total"):
        assert f"fairtransport_stream_{name} " in text
    assert 'fairtransport_scores_count{group="F"}' in text
    assert served.get("/live").status_code == 200
    assert served.get("/live/snapshot.json").json()["rows"] == 200
    assert "Idempotency-Key" in served.get("/openapi.json").text
    row = served.get("/openapi.json").json()["components"]["schemas"]["Row"]
    assert [*row["properties"]] == [*NAMES, "sex"]


def test_rows_without_a_group_are_counted_and_warned_of_once(client, tmp_path, caplog):
    """The model does not need the group, so the rows are scored, but it cannot be adjusted to them."""
    rows = [{name: row[name] for name in NAMES} for row in requests(1, size=20)[0]]
    served = client("m.ft", store=tmp_path / "store")
    for _ in range(2):
        assert None not in ask(served, rows).json()["scores"]
    assert "fairtransport_stream_rows_without_group_total 40.0" in served.get("/metrics").text
    warnings = [record.message for record in caplog.records if "none of the first 20 rows" in record.message]
    assert len(warnings) == 1
    assert "a column 'sex'" in warnings[0]
    assert served.get("/live/snapshot.json").json()["rows_without_group"] == 40


def test_a_store_that_cannot_be_written_answers_nothing(client, tmp_path, monkeypatch):
    bodies = requests(3)
    served = client("m.ft", store=tmp_path / "store")
    ask(served, bodies[0])

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fairtransport.stream.ContinualAdjuster.checkpoint", fail)
    for body in (bodies[1], bodies[1], bodies[2]):
        response = ask(served, body, "key")
        assert (response.status_code, "store cannot be written" in response.json()["error"]) == (503, True)
    assert served.get("/readyz").status_code == 503
    assert served.get("/healthz").json()["status"] == "degraded"
    monkeypatch.undo()
    served.__exit__(None, None, None)
    again = client("m.ft", store=tmp_path / "store")
    assert ask(again, bodies[2], "key").status_code == 200
    assert read_journal(tmp_path / "store")[-1]["rows"] == 60  # what was not answered does not count


def test_a_model_that_knows_no_groups_is_scored_and_not_adjusted(client, tmp_path):
    X, y, _ = people(100)
    model = LogisticRegression().fit(X, y)
    served = client(ft.save(model, tmp_path / "m.ft"), store=tmp_path / "store")
    scores = ask(served, X.to_dict("records")).json()["scores"]
    np.testing.assert_allclose(scores, model.predict_proba(X)[:, 1])
    assert served.get("/metrics").status_code == served.get("/live/snapshot.json").status_code == 200


def test_an_optional_group_is_read_whichever_row_has_it(client, tmp_path):
    body = requests(1, size=40)[0]
    body[0] = {name: body[0][name] for name in NAMES}
    served = client("m.ft", store=tmp_path / "store")
    ask(served, body)
    assert "fairtransport_stream_rows_without_group_total 1.0" in served.get("/metrics").text


def test_a_model_that_does_not_follow_is_a_problem_that_is_told(client, tmp_path, monkeypatch):
    served, problem = client("m.ft", store=tmp_path / "store", reload_every=0.01), "does not follow"
    ask(served, requests(1)[0])
    assert served.get("/healthz").json()["problems"] == []
    monkeypatch.setattr("fairtransport.linear.online._shrinkage", lambda *_: 0.5)
    ask(served, requests(1)[0])
    assert "fairtransport_stream_skipped_updates_total 1.0" in served.get("/metrics").text
    assert problem in served.get("/healthz").json()["problems"][0]
    assert served.get("/readyz").status_code == 200
    monkeypatch.undo()
    ask(served, requests(1)[0])
    assert served.get("/healthz").json()["status"] == "ok"


def test_freezing_monitors_only(client, tmp_path):
    bodies, store = requests(3), tmp_path / "store"
    served = client("m.ft", store=store, frozen=True)
    assert [ask(served, bodies[0]).json()["scores"] for _ in range(2)] == [ask(served, bodies[0]).json()["scores"]] * 2
    assert {entry["updates"] for entry in read_journal(store) if "updates" in entry} == {0}
