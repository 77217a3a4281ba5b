"""What the workbench writes is what its command line and its Python code write."""

import json
import shlex
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import confusion_matrix
from tests.workbench import people
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport import _progress
from fairtransport.app import worker
from fairtransport.app.projects import STEPS
from fairtransport.app.recipes import METHODS, audit_code, audit_command, take_code, take_commands
from fairtransport.cli.app import app
from fairtransport.tabular import HeldOutRows

SETTINGS = {name: value for fields in STEPS.values() for name, value in fields.items()}
ROLES = {"score": "score", "label": "hired", "pos_label": "yes", "sensitive": ["sex"], "drop": ["person", "salary"]}
REPORT = worker.Report([].append)
REPAIRED = {**SETTINGS, **ROLES, "thresholds": [], "action": "repair", "methods": ["repair"]}


@pytest.fixture
def data(tmp_path, monkeypatch):
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    return tmp_path / "people.csv"


def run(command):
    for line in command.splitlines():
        name, *words = shlex.split(line)
        result = CliRunner().invoke(app, words)
        assert name == "fairtransport"
        assert result.exit_code == 0, result.output


def execute(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.FairnessWarning)
        exec(code, {})  # noqa: S102 - what users are given


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"criterion": "equalized_odds", "favourable": "low", "thresholds": ["0.4", "top 10%"], "small": "pool"},
        {"strata": ["region"], "min_size": "40"},
        {"by": "region"},
        {"by": "since"},
    ],
    ids=["default", "odds", "strata", "by", "by month"],
)
def test_the_audit_is_that_of_the_command_and_of_the_code(data, tmp_path, changes):
    settings = {**SETTINGS, **ROLES, "thresholds": [], **changes}
    table = pl.read_csv(data)
    days = pl.date(2024, 1, 1) + pl.duration(days=pl.int_range(len(table)) % 366)
    table.with_columns(since=days).write_csv(data)
    command = audit_command(str(data), settings)
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings, "command": command}
    made = worker.audit(job, REPORT)
    for do, recipe in ((run, command), (execute, audit_code(str(data), settings))):
        do(recipe)
        for name in made["files"]:
            size = Path(name).stat().st_size
            assert size == pytest.approx((tmp_path / name).stat().st_size, rel=0.2)
        if not settings["by"]:
            ours, theirs = (ft.Audit.from_json(folder / "audit.json") for folder in (tmp_path, Path()))
            assert ours.verdict == theirs.verdict
            assert ours.metrics == theirs.metrics
            for known in ("files", "rows", "columns", "positive", "seed", "strata_cuts"):
                assert getattr(ours.provenance, known) == getattr(theirs.provenance, known)
        for name in made["files"]:
            Path(name).unlink()


@pytest.mark.parametrize(
    ("method", "amount", "changes"),
    [
        ("repair", 0.5, {}),
        ("repair", 1.0, {"criterion": "equal_opportunity"}),
        ("dpp", 0.7, {}),
        ("cot-aware", 1.0, {"criterion": "equalized_odds"}),
        ("cot-blind", 0.4, {}),
        ("blind-repair", 0.6, {}),
    ],
)
def test_files_are_those_of_the_command_and_of_the_code(data, tmp_path, monkeypatch, method, amount, changes):
    settings = {**SETTINGS, **ROLES, "thresholds": [], "methods": [method], **changes}
    settings |= {"action": "repair" if method == "repair" else "train", "situation": METHODS[method][1]}
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings}
    curve = worker.tradeoff(job, REPORT)
    for name in curve["models"]:  # as the server does with the result
        (tmp_path / f"{name}.new.ft").replace(tmp_path / f"{name}.ft")
    chosen = {"method": method, "amount": amount}
    made = worker.take({**job, "chosen": chosen, "range": curve["range"]}, REPORT)
    file, column = ("repaired.csv", "score_repaired") if method == "repair" else ("scored.csv", "fair_score")
    ours = pl.read_csv(tmp_path / file)[column].to_numpy()
    assert file in made["files"]
    recipe = (str(data), settings, chosen, curve["range"])
    for do, text in ((run, take_commands(*recipe)), (execute, take_code(*recipe))):
        do(text)
        np.testing.assert_allclose(pl.read_csv(file)[column].to_numpy(), ours, atol=1e-9)
        written = {path.name for path in Path().iterdir()}
        sizes = [(folder / "comparison.html").stat().st_size for folder in (tmp_path, Path())]
        assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
        if do is execute or method == "repair":  # of the audits of a model, the command writes the page only
            assert written == set(made["files"])
            for name in ("before.json", "after.json"):
                audits = [ft.Audit.from_json(folder / name) for folder in (tmp_path, Path())]
                assert audits[0].verdict == audits[1].verdict
                assert audits[0].metrics == audits[1].metrics
                assert audits[0].provenance.positive == audits[1].provenance.positive == "yes"
        else:
            assert written == {"model.ft", file, "comparison.html"}
            assert Path("comparison.html").read_text() == (tmp_path / "comparison.html").read_text()
        if method != "repair":
            model = ft.load("model.ft")
            np.testing.assert_allclose(model.score_rows(pl.read_csv(data)).scores, ours, atol=1e-9)
        for name in written:
            Path(name).unlink()
    points = {(point["method"], point["amount"]): point for point in curve["points"]}
    assert points[method, 1.0]["rank_disparity"] < points[method, 0.0]["rank_disparity"]
    assert points[method, 0.0]["kept"] == pytest.approx(1.0)


def test_names_that_would_run_in_a_shell_or_in_python_are_quoted():
    hostile = """x'; rm -rf ~; echo " $(id) `id`\\"""
    settings = {**SETTINGS, **ROLES, "thresholds": [], "sensitive": [hostile], "label": hostile}
    words = shlex.split(take_commands("a b.csv", settings, {"method": "dpp", "amount": 1.0}).splitlines()[0])
    assert words[words.index("--sensitive") + 1] == hostile
    code = compile(take_code("a b.csv", settings, {"method": "dpp", "amount": 1.0}), "code", "exec")
    assert hostile in [text for part in code.co_consts for text in (part if isinstance(part, tuple) else (part,))]


def test_scores_beyond_0_and_1_are_repaired_within_their_range(data, tmp_path):
    people().with_columns(score=pl.col("score") * 600 + 250).write_csv(data)
    settings = {**REPAIRED, "label": "", "pos_label": ""}
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings}
    curve = worker.tradeoff(job, REPORT)
    assert curve["range"][0] >= 250
    assert curve["points"][0]["error"] == 0.0  # without labels, how far scores move
    recipe = (str(data), settings, {"method": "repair", "amount": 1.0}, curve["range"])
    worker.take({**job, "chosen": recipe[2], "range": curve["range"]}, REPORT)
    run(take_commands(*recipe))
    ours, theirs = (pl.read_csv(folder / "repaired.csv")["score_repaired"] for folder in (tmp_path, tmp_path / "there"))
    np.testing.assert_allclose(theirs, ours, atol=1e-9)


def repair_curve(data, table, **changes):
    table.write_parquet(data.with_suffix(".parquet"))
    job = {"path": str(data.with_suffix(".parquet")), "folder": str(data.parent), "settings": {**REPAIRED, **changes}}
    return worker.tradeoff(job, REPORT), job


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_labelled_scores_beyond_0_and_1_are_not_compared_with_labels(data, criterion):
    table = people().with_columns(score=pl.col("score") * 600 + 250)
    curve, job = repair_curve(data, table, criterion=criterion)
    points = curve["points"]
    assert not curve["labelled"]
    assert "not compared with labels" in curve["notes"][0]
    assert (points[0]["error"], points[0]["kept"]) == (0.0, None)
    assert points[-1]["disparity"] < points[0]["disparity"]
    made = worker.take({**job, "chosen": {"method": "repair", "amount": 1.0}, "range": curve["range"]}, REPORT)
    assert "repaired.parquet" in made["files"]


def test_the_positive_label_is_that_of_the_library_or_has_to_be_named(data):
    named, _ = repair_curve(data, people())
    assert repair_curve(data, people(), pos_label="")[0]["points"] == named["points"]  # of no and yes
    words = people().with_columns(hired=pl.col("hired").replace({"yes": "good", "no": "bad"}))
    assert repair_curve(data, words, pos_label="good")[0]["points"] == named["points"]
    with pytest.raises(ValueError, match="specify which of them is positive"):
        repair_curve(data, words, pos_label="")
    with pytest.raises(ValueError, match="has 3 different labels"):
        repair_curve(data, people().with_columns(hired=pl.col("region")), pos_label="north")


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_scores_are_set_aside_and_counted_in_the_curve_and_stay_missing_in_the_file(data, missing):
    some = pl.Series(np.arange(1500) % 10 == 0)
    table = people().with_columns(score=pl.when(~some).then(pl.col("score")).otherwise(missing))
    curve, job = repair_curve(data, table)
    assert curve["rows"] == 1350
    assert curve["notes"] == ["Rows set aside, because a score, a label or a group is missing: 150."]
    worker.take({**job, "chosen": {"method": "repair", "amount": 1.0}, "range": curve["range"]}, REPORT)
    repaired = pl.read_parquet(data.parent / "repaired.parquet")["score_repaired"]
    assert repaired.is_null().to_list() == some.to_list()


def test_scores_that_know_less_than_a_constant_keep_no_information():
    labels = np.arange(400) % 2
    held = HeldOutRows(ft.make_groups(np.arange(400) % 4 < 2), labels)
    assert held.measure(np.where(labels, 0.2, 0.8), np.where(labels, 0.52, 0.5))["kept"] == 0.0


CRITERIA = ("demographic_parity", "equalized_odds", "equal_opportunity")


@pytest.mark.parametrize("strata", [False, True], ids=["everyone", "strata"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_floor_is_that_of_the_groups_and_of_the_measure_beside_it(criterion, strata):
    """Scores that are independent of the group: the disparity is about the floor; a tiny group counts in neither."""
    rng = np.random.default_rng(0)
    codes, levels = rng.integers(2, size=4000), rng.integers(8, size=4000)
    codes[:5] = 2
    scores = rng.random(4000) / 4 + levels / 20
    labels = (rng.random(4000) < scores).astype(int)

    def measure(codes, rows):
        cut = {"level": levels[rows]} if strata else None
        held = HeldOutRows(ft.make_groups(codes[rows]), labels[rows], criterion, cut)
        floors = held.floors(scores[rows], n_shuffles=20)
        return held.measure(scores[rows], scores[rows])["disparity"], [*floors.values()][-1]

    large = codes < 2
    (disparity, floor), alone = measure(codes, codes < 3), measure(codes, large)
    assert (disparity, floor) == pytest.approx(alone)
    shuffled = [measure(rng.permutation(np.where(large, codes, 0)), large)[0] for _ in range(40)]
    assert floor == pytest.approx(np.mean(shuffled), rel=0.25)


@pytest.mark.parametrize("strata", [False, True], ids=["everyone", "strata"])
@pytest.mark.parametrize("criterion", CRITERIA[1:])
def test_the_disparity_of_a_criterion_is_that_of_the_metrics(criterion, strata):
    table = people(3000)
    labels, scores = (table["hired"] == "yes").to_numpy().astype(int), table["score"].to_numpy()
    cut = {"region": table["region"].to_numpy()} if strata else None
    held = HeldOutRows(ft.make_groups(table["sex"].to_numpy()), labels, criterion, cut)
    point = held.measure(scores, scores)
    metric = ft.metrics.separation_disparity if criterion == "equalized_odds" else ft.metrics.opportunity_disparity
    expected = metric(labels, scores, sensitive_features=table["sex"].to_numpy(), strata=cut)
    assert point["disparity"] == pytest.approx(expected)
    for at, sex in enumerate(("F", "M")):
        mine = (table["sex"] == sex).to_numpy()
        tn, fp, fn, tp = confusion_matrix(labels[mine], scores[mine] > 0.5).ravel()
        assert point["groups"][at]["missed"] == pytest.approx(fn / (fn + tp))
        assert point["groups"][at]["false_alarm"] == pytest.approx(fp / (fp + tn))
        assert point["groups"][at]["error"] == pytest.approx((fp + fn) / mine.sum())


@pytest.mark.parametrize("criterion", CRITERIA[1:])
def test_parity_within_labels_and_strata_is_chosen_and_taken_away(data, tmp_path, criterion):
    curve, job = repair_curve(data, people(3000), criterion=criterion, strata=["region"])
    assert curve["points"][-1]["disparity"] < 0.7 * curve["points"][0]["disparity"]
    made = worker.take({**job, "chosen": {"method": "repair", "amount": 1.0}, "range": None}, REPORT)
    assert "repaired.parquet" in made["files"]


def test_numbers_are_learned_and_their_errors_are_in_their_units(data, tmp_path):
    rng = np.random.default_rng(0)
    pay = 2000 + 30 * people()["hours"].to_numpy() + rng.normal(0, 100, 1500)
    people().drop("hired", "salary", "score").with_columns(pay=pay.round(2)).write_csv(data)
    settings = {**SETTINGS, "label": "pay", "sensitive": ["sex"], "drop": ["person"], "methods": ["cot-blind"]}
    settings |= {"thresholds": [], "action": "train", "situation": "blind", "criterion": "equalized_odds"}
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings}
    curve = worker.tradeoff(job, REPORT)
    assert curve["regression"]
    errors = [one["error"] for one in (curve["points"][0], *curve["points"][0]["groups"])]
    assert errors == pytest.approx([100] * 3, rel=0.2)  # the noise has a standard deviation of 100
    (tmp_path / "cot-blind.new.ft").replace(tmp_path / "cot-blind.ft")
    made = worker.take({**job, "chosen": {"method": "cot-blind", "amount": 1.0}, "range": None}, REPORT)
    assert "scored.csv" in made["files"]


def test_bars_of_the_library_move_the_bar_of_a_job(capsys, monkeypatch):
    """Those with a percentage, and training, which estimates what is left of a fit: as the library prints them."""
    seconds = iter((0.0, 12.0))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(seconds))
    lines = _progress._Lines("COT training", None)
    lines.advance(30, "fit 2, iteration 30, disparity 0.0517, loss 0.3312, about 35 s left in this fit")
    sent = []
    report = worker.Report(sent.append, 0.5, 1.0)
    for text in (capsys.readouterr().err, "Reading: 40% rows", "something else: 12 s"):
        report.write(text)
    assert [one["share"] for one in sent] == pytest.approx([0.5 + 0.5 * 12 / 48, 0.7])


def test_verdicts_do_not_tell_how_two_people_were_scored(data, tmp_path):
    """Neither on the page nor in project.json, which keeps them; as the page of the audit does not."""
    few = pl.int_range(1500) < 2
    changed = people().with_columns(
        sex=pl.when(few).then(pl.lit("X")).otherwise("sex"), score=pl.when(few).then(0.99).otherwise("score")
    )
    changed.write_csv(data)
    settings = {**SETTINGS, **ROLES, "thresholds": [], "action": "repair"}
    job = {"path": str(data), "folder": str(tmp_path), "settings": settings, "command": "", "range": None}
    made = worker.audit(job, REPORT)
    assert made["points"][0].startswith("Above 0.5, ")
    assert "% of X" not in json.dumps(made["points"])  # how many they are is said
    taken = worker.take({**job, "chosen": {"method": "repair", "amount": 1.0}}, REPORT)
    assert "% of X" not in json.dumps([taken["before"]["points"], taken["after"]["points"]])


def test_rates_of_fewer_than_five_rows_are_withheld_as_in_audits():
    scores, labels = np.linspace(0, 1, 84), np.arange(84) % 2
    held = HeldOutRows(ft.make_groups(["a"] * 40 + ["b"] * 40 + ["c"] * 4), labels)
    first, second, few = held.measure(scores, scores)["groups"]
    assert few.pop("rows") == 4
    assert {*few.values()} == {None}
    assert (first["selected"], second["selected"]) == (0.0, pytest.approx(38 / 40))
