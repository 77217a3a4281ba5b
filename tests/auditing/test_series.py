"""One audit for each value of a column: the same figures as audits of the parts, and few false alarms."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.report import AuditSeriesDisplay

FAST = {"inference": Inference(n_bootstrap=60, n_permutations=60, random_state=0)}


def people(n=6000, months=6, shifted=(), seed=0):
    rng = np.random.default_rng(seed)
    sex, month = rng.choice(["F", "M"], n), rng.integers(1, months + 1, n)
    scores = np.round(rng.beta(2, np.where((sex == "F") & np.isin(month, shifted), 5, 3)), 4)
    return pl.DataFrame({"s": scores, "sex": sex, "month": month, "y": (rng.random(n) < scores).astype(int)})


def series(frame, **options):
    return ft.audit_table(frame, **{"by": "month", "score": "s", "sensitive_features": "sex", **FAST, **options})


def test_each_audit_is_that_of_the_rows_with_the_value():
    frame = people()
    result = series(frame, label="y")
    assert list(result.audits) == ["1", "2", "3", "4", "5", "6"]
    for value, audit in result.audits.items():
        part = frame.filter(pl.col("month") == int(value))
        alone = ft.audit_table(part, score="s", sensitive_features="sex", label="y", **FAST)
        assert audit.metrics == pytest.approx(alone.metrics)
        assert audit.rows == len(part)
    whole = ft.audit_table(frame, score="s", sensitive_features="sex", label="y", **FAST)
    assert result.overall.metrics == pytest.approx(whole.metrics)


def test_values_that_differ_from_the_others_are_outside_the_limits():
    result = series(people(12_000, 8, shifted=(7,)))
    assert [point.value for point in result.points if point.outside] == ["7"]
    assert "Outside the control limits: 7." in result.sentence
    point = result.points[6]
    assert (point.status, point.p_value < 0.05) == ("matters", True)


@pytest.mark.trust
def test_values_that_do_not_differ_are_seldom_outside():
    """Groups that differ in the same way in every month: three standard errors are left by chance in few of 120."""
    outside = established = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frame = people(6000, 12, seed=seed).with_columns(
            s=pl.Series(np.round(rng.beta(2, 3, 6000), 4)) * pl.when(pl.col("sex") == "F").then(0.8).otherwise(1.0)
        )
        result = series(frame, inference=replace(FAST["inference"], n_bootstrap=100))
        outside += sum(point.outside for point in result.points)
        established += sum(point.p_value <= 0.05 for point in result.points)
    assert outside <= 2
    assert established > 100


def test_p_values_are_adjusted_for_the_number_of_values_and_can_still_be_small():
    result = series(people(20_000, 40, shifted=range(1, 41)), inference=replace(FAST["inference"], n_permutations=20))
    raw = np.array([audit.readings["strong_pairwise_disparity"].p_value for audit in result.audits.values()])
    adjusted = np.array([point.p_value for point in result.points])
    assert (adjusted >= raw).all()
    assert adjusted.max() <= 0.05
    assert result.overall.settings.n_permutations == 1600


def test_values_with_one_group_are_set_aside_and_named():
    frame = people().with_columns(sex=pl.when(pl.col("month") == 3).then(pl.lit("F")).otherwise(pl.col("sex")))
    result = series(frame)
    assert result.set_aside == {"3": "one group"}
    assert "Not audited: 3, one group." in str(result)


def test_text_frame_json_page_and_picture_agree(tmp_path):
    result = series(people(8000, 5, shifted=(2,)), label="y")
    lines = str(result).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.endswith(" *") for line in lines) == 1
    frame = result.to_frame()
    assert frame["outside"].tolist() == [point.outside for point in result.points]
    content = json.loads(result.to_json())
    assert [point["value"] for point in content["points"]] == list(result.audits)
    assert content["audits"]["2"]["rows"] == result.audits["2"].rows
    page = result.to_html(tmp_path / "series.html", title="A & B").read_text()
    assert "A &amp; B" in page
    assert page.count('<tr class="outside">') == 1
    assert "http" not in page.split("<body>")[1]
    display = result.plot()
    assert isinstance(display, AuditSeriesDisplay)
    assert len(display.ax_.get_xticklabels()) == 5
    assert "2" in result._repr_html_()
    import matplotlib.pyplot as plt  # noqa: PLC0415

    plt.close("all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "s"}, "by has at least .* values in column 's', too many for one audit each"),
        ({"by": "sex"}, "No value of column 'sex' has rows of two groups"),
        ({"by": "one"}, "Column 'one' has one value"),
        ({"by": "none"}, "no column 'none'"),
        ({"strata": "y"}, "by and strata cannot be combined"),
    ],
)
def test_columns_that_cannot_be_meant(options, message):
    with pytest.raises(ValueError, match=message):
        series(people().with_columns(one=1), **options)


def test_numbers_are_in_order_of_numbers_and_words_of_the_alphabet():
    assert list(series(people(6000, 12)).audits) == [str(month) for month in range(1, 13)]
    words = people().with_columns(month=pl.col("month").replace_strict(dict(enumerate("zyxwvu", start=1))))
    assert list(series(words).audits) == list("uvwxyz")


def test_names_are_escaped_and_never_taken_for_mathematics(tmp_path):
    frame = people().with_columns(month=pl.col("month").replace_strict({1: "<b>$x$"}, default="plain"))
    page = series(frame).to_html()
    assert "<b>$x$" not in page
    assert "&lt;b&gt;$x$" in page
