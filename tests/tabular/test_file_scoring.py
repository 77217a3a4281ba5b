"""Files of raw rows, read and scored in batches."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from tests.worlds import raw_people

from fairtransport.tables import open_files
from fairtransport.tables.files.writers import stream_writer
from fairtransport.tabular import RowScorer, TableModel
from fairtransport.tabular.file_scoring import collect_file, score_file

CANARY = "CANARY"


@pytest.fixture(scope="module")
def model():
    return TableModel(LogisticRegression(), label="hired", sensitive_features=["sex"]).fit(raw_people(300))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr("fairtransport.tables.files._file_table._BATCH", 128)
    raw_people(5000).write_parquet(tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_all_rows_are_collected_in_order_as_they_are(path, tmp_path):
    shares = []
    with open_files([path]) as table:
        assert pl.DataFrame(collect_file(table, on_progress=shares.append)).equals(raw_people(5000))
    assert shares
    assert all(0 <= share <= 1 for share in shares)
    raw_people(50).write_csv(tmp_path / "people.csv")
    with open_files([tmp_path / "people.csv"]) as table:
        assert set(pl.DataFrame(collect_file(table)).dtypes) == {pl.String}  # what it holds is the model's to find out


def test_parts_are_written_as_they_are_scored(path, model):
    parts = []

    @contextlib.contextmanager
    def open_output(schema):
        assert schema.names[-2:] == ["p", "hire"]
        yield parts.append

    with open_files([path]) as table:
        done = score_file(RowScorer(model), table, open_output, output="p", decision="hire", threshold=0.7)
    assert len(parts) > 1
    written = pl.DataFrame(pa.Table.from_batches(parts))
    np.testing.assert_array_equal(written["p"], model.score_rows(raw_people(5000)).scores)
    assert written["hire"].to_list() == (written["p"] > 0.7).cast(int).to_list()
    assert (done.rows, done.scored, done.positive) == (5000, 5000, written["hire"].sum())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"output": "Sex"}, "has a column 'sex' already"),
        ({"output": "x", "decision": "x"}, "cannot both be called 'x'"),
        ({"threshold": 1.5}, "threshold"),
    ],
)
def test_wrong_names_and_thresholds(path, model, options, match):
    with open_files([path]) as table, pytest.raises(ValueError, match=match):
        score_file(RowScorer(model), table, lambda _: contextlib.nullcontext(print), **options)


def test_tables_go_to_an_open_file_as_text():
    batch = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]})
    for known, expected in (("csv", b"a,b\n1,x\n2,\n"), ("jsonl", b'{"a":1,"b":"x"}\n{"a":2,"b":null}\n')):
        sink = io.BytesIO()
        with stream_writer(sink, known, batch.schema) as write:
            write(batch)
        assert sink.getvalue() == expected
    with pytest.raises(ValueError, match="format must be one of"), stream_writer(io.BytesIO(), "parquet", batch.schema):
        pass
    lists = pa.RecordBatch.from_pydict({"a": [[CANARY]]})
    with (
        pytest.raises(ValueError, match="cannot be written as csv") as caught,
        stream_writer(io.BytesIO(), "csv", lists.schema) as write,
    ):
        write(lists)
    assert CANARY not in str(caught.value)
