"""Tables in files: the same counts as in memory, in every format; damaged files are refused without quoting them."""

import _thread
import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.worlds import write_table as write

from fairtransport import GroupPolicy
from fairtransport.tables import Columns, count_table, open_files
from fairtransport.tables.files import engine as decompression_limit
from fairtransport.tables.files import table_writer
from fairtransport.tables.files.engine import Engine

CANARY = "CANARY"
SCORED = Columns.named(score="s", sensitive_features="g")
USED = Columns.named(score="s", sensitive_features=["race", "sex"], label="y", weight="w")


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "s": np.round(rng.random(n), 6),
        "race": rng.choice(["B", "W", "ä;,|\t'"], n),
        "sex": rng.integers(0, 2, n),
        "y": rng.integers(0, 2, n),
        "w": rng.integers(1, 4, n) / 2,
        "note": rng.choice(['say "hi"', "two\nlines", "", "007"], n),
    }
    frame = pl.DataFrame(table)
    gone = pl.Series(np.arange(n) % 37 == 5)
    return frame.with_columns(
        s=pl.when(gone).then(None).otherwise(pl.col("s")),
        race=pl.when(gone.shift(1, fill_value=False)).then(None).otherwise(pl.col("race")),
    )


def text(path, content, encoding="utf-8"):
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def count(paths, columns=USED, **options):
    with open_files(paths if isinstance(paths, list) else [paths], **options) as table:
        return table.run(count_table, columns, groups=GroupPolicy(missing="set_aside"))


def counted_in_memory(frame):
    columns = {"score": "s", "sensitive_features": ["race", "sex"], "label": "y", "weight": "w"}
    return count_table(frame, **columns, groups=GroupPolicy(missing="set_aside"))


def as_counts(counts):
    groups = counts.histograms.groups
    names = [name.split(", ") if isinstance(name, str) else name for name in groups.names]
    order = sorted(range(len(names)), key=lambda place: str(names[place]))
    return [str(names[place]) for place in order], counts.set_aside, counts.histograms.masses[:, order]


def assert_same_counts(found, expected):
    (*found, masses), (*expected, masses_there) = as_counts(found), as_counts(expected)
    assert found == expected
    np.testing.assert_array_equal(masses, masses_there)


FORMATS = ("csv", "tsv", "csv.gz", "csv.zst", "parquet", "feather", "jsonl", "jsonl.gz", "jsonl.zst")


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_counts_of_the_table_in_memory(tmp_path, ending):
    expected = counted_in_memory(rows())
    assert expected.set_aside == {"no score": 8, "no group": 8}
    assert_same_counts(count(write(tmp_path / f"scores.{ending}", rows())), expected)


@pytest.mark.parametrize("ending", FORMATS)
def test_several_files_are_one_table(tmp_path, ending):
    """Three files by a pattern and a name; the columns of one are in another order."""
    parts = [rows(50, 1), rows(70, 2).select("w", "sex", "s", "note", "y", "race"), rows(30, 3)]
    for number, part in enumerate(parts):
        write(tmp_path / f"part{number}.{ending}", part)
    write(tmp_path / f"other.{ending}", rows(20, 4))
    whole = pl.concat([part.select(parts[0].columns) for part in [*parts, rows(20, 4)]])
    names = [str(tmp_path / f"part*.{ending}"), str(tmp_path / f"other.{ending}")]
    assert_same_counts(count(names), counted_in_memory(whole))


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("s;g\n0.25;a\n0.5;b\n", {}),
        ("s|g\n0.25|a\n0.5|b\n", {}),
        ("s;g\n0,25;a\n0,5;b\n", {"decimal": ","}),
        ("s#g\n0.25#a\n0.5#b\n", {"delimiter": "#"}),
        ("\ufeffs,g\n0.25,a\n0.5,b\n", {}),
        ("\n\ns,g\n0.25,a\n0.5,b\n", {}),
        ("s,g\r\n0.25,a\r\n0.5,b\r\n", {}),
        ("s,g\r0.25,a\r0.5,b\r", {}),
        ("s,g\n0.25,a\n0.5,b", {}),
        ("s, g\n 0.25,a\n0.5,b\n\n", {}),
        ('"s","g"\n"0.25","a"\n"0.5","b"\n', {}),
        ("n,s,S,s_1,g\n1,0.25,x,x,a\n2,0.5,y,y,b\n", {}),
        ("other,other,s,g,\n1,1,0.25,a,\n2,2,0.5,b,\n", {}),
    ],
)
def test_csv_files_as_people_have_them(tmp_path, content, options):
    found = count(text(tmp_path / "x.csv", content), SCORED, **options)
    assert found.histograms.groups.names == ("a", "b")
    assert np.flatnonzero(found.histograms.by_group[0]) == [4096]
    assert np.flatnonzero(found.histograms.by_group[1]) == [8192]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings(tmp_path, encoding):
    path = text(tmp_path / "x.csv", "s,größe\n0.25,ä\n0.5,ö\n", encoding)
    found = count(path, Columns.named(score="s", sensitive_features="größe"), encoding=encoding)
    assert found.histograms.groups.names == ("ä", "ö")


def test_nan_in_a_parquet_file_is_missing_though_its_statistics_leave_nan_out(tmp_path):
    frame = rows().with_columns(pl.col("w").cast(pl.Float32))
    some = pl.Series(np.arange(300) % 7 == 0)
    nan = {name: pl.when(some).then(np.nan).otherwise(pl.col(name)).cast(frame[name].dtype) for name in ("s", "w")}
    null = {name: pl.when(~some).then(pl.col(name)) for name in ("s", "w")}
    frame.with_columns(**nan).write_parquet(tmp_path / "nan.parquet")
    assert_same_counts(count(tmp_path / "nan.parquet"), counted_in_memory(frame.with_columns(**null)))


def test_text_that_means_nothing_is_missing_only_where_it_is_said(tmp_path):
    path = text(tmp_path / "x.csv", "s,g\n0.5,a\nNA,b\n0.5,NA\nnan,a\n,a\n0.5,\n")
    with pytest.raises(ValueError, match=r"x\.csv, line 3: column 's' contains something that is not a number.*null="):
        count(path, SCORED)
    assert count(path, SCORED, null=["NA"]).set_aside == {"no score": 3, "no group": 2}


def test_a_positive_label_is_read_as_its_column_holds_it(tmp_path):
    frame = pl.DataFrame({"s": [0.1, 0.9], "n": [1, 2], "b": [True, False], "t": ["no", "yes"]})
    for ending in ("parquet", "jsonl", "feather"):
        with open_files([write(tmp_path / f"x.{ending}", frame)]) as table:
            for label, given, expected in (
                ("n", "2", 2),
                ("n", "2.5", 2.5),
                ("b", "False", False),
                ("t", "yes", "yes"),
            ):
                found = table.read_label(Columns.named(score="s", sensitive_features="t", label=label), given)
                assert found == expected
                assert type(found) is type(expected)
            for label in ("n", "b"):
                with pytest.raises(ValueError, match="pos_label is n"):
                    table.read_label(Columns.named(score="s", sensitive_features="t", label=label), "maybe")


def test_names_that_differ_in_case_only(tmp_path):
    frame = pl.DataFrame({"S": ["a", "b"], "s": [0.25, 0.5], "g": ["c", "d"]})
    for ending in ("csv", "parquet", "feather"):
        path = write(tmp_path / f"x.{ending}", frame)
        assert count(path, SCORED).histograms.groups.names == ("c", "d")
        assert count(path, Columns.named(score="s", sensitive_features="S")).histograms.groups.names == ("a", "b")
    with pytest.raises(ValueError, match="differ only in case"):
        count(write(tmp_path / "x.jsonl", frame), SCORED)


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        (["none.csv"], FileNotFoundError, "No such file"),
        (["*.nope"], FileNotFoundError, "No file matches the pattern"),
        (["fold*"], FileNotFoundError, r"\(1 folders do\)"),
        (["folder"], IsADirectoryError, "This is a folder; give its files by a pattern"),
        (["empty.csv"], ValueError, r"empty\.csv is empty \(0 bytes\)"),
        (["a.csv", "b.parquet"], ValueError, r"of 2 formats \(csv, parquet\)"),
        (["a.csv", "./a.csv"], ValueError, r"a\.csv is given twice"),
        (["a.xls"], ValueError, "unknown extension; known are .csv, .tsv"),
        (["a.json"], ValueError, "one object a line is format jsonl"),
        (["a.csv.bz2"], ValueError, r"\.bz2 files cannot be read as a stream; \.gz and \.zst can"),
        (["a.csv.zip"], ValueError, r"\.zip files cannot be read"),
        (["b.parquet.gz"], ValueError, "parquet files are compressed internally"),
        ([], ValueError, "No file is given"),
    ],
)
def test_files_that_cannot_be_meant(tmp_path, monkeypatch, names, kind, message):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("empty.csv").touch()
    for name in ("a.csv", "b.parquet", "a.xls", "a.json", "a.csv.bz2", "a.csv.zip", "b.parquet.gz"):
        Path(name).write_text("x")
    with pytest.raises(kind, match=message):
        open_files(names)


GOOD = "s,g\n" + "0.5,a\n" * 3


def cut(data):
    return data[: len(data) // 2]


def hole(data):
    return data[:200] + bytes(2000) + data[2200:]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", GOOD + f"0.5,a,{CANARY}\n" + GOOD, r"x\.csv, line 5: the row does not have the 2 fields"),
        ("x.csv", "s,g\n" + "0.5,a\n" * 30_000 + f"{CANARY}\n", r"x\.csv, line 30002: the row does not have"),
        ("x.csv", f"s,g\n{CANARY},a\n0.5,b\n", r"x\.csv, line 2: column 's' contains something that is not a number"),
        ("x.csv", f's,g\n0.5,"{CANARY}\n0.5,b\n', r"x\.csv, line 2: a quotation mark is not closed"),
        (
            "x.csv",
            f"s,g\n0.5,{CANARY}".encode() + b"\xe4\n0.5,b\n",
            r"x\.csv, line 2: the file is not UTF-8; .*encoding=",
        ),
        (
            "x.csv",
            b"s,g\n" + b"0.5,aaaaaaaa\n" * 20_000 + f"0.5,{CANARY}".encode() + b"\xe4\n",
            r"x\.csv, line 20002: the file is not UTF-8; give its encoding=",
        ),
        ("x.csv", f"s,g\n0.5,{CANARY}\n".encode("utf-16"), "is UTF-16; use encoding='utf-16'"),
        ("x.csv", f"s,g\n0.5,{CANARY * 400_000}\n", r"x\.csv, line 2: the line is longer than 2,000,000 bytes"),
        ("x.csv", CANARY * 400_000, "its first line does not end within 2,000,000 bytes"),
        ("x.csv", f"PK\0\0{CANARY}", "is not a CSV file: it contains zero bytes"),
        *(
            ("x.csv", f"{start}\n{CANARY}\n</html>\n", r"x\.csv is not a CSV file but (a web page|XML|a PDF); export")
            for start in ("\n <!DOCTYPE html>", "<HTML lang='en'>,g", "<?xml version='1.0'?>", "%PDF-1.7")
        ),
        ("x.csv", "\n \n", "has only empty lines"),
        ("x.csv", f"{CANARY * 40_000},s\n1,1\n", "has no column 's'"),
        ("x.csv", "s,g\n", "The table has no rows"),
        (
            "x.csv",
            f"0.5,{CANARY}\n0.6,b\n",
            "has no column 's'; its first line contains numbers, and should contain the names",
        ),
        ("x.csv", "s,s,g\n1,1,a\n", r"x\.csv has 2 columns named 's'; choose one by its position: 's#1' or 's#2'"),
        ("x.csv", f"s,g\n0.5,a\n0.5,{CANARY}\r\n0.5,b\n", "line ends or quotation marks are mixed|line 3: "),
        ("x.csv", "Score,Gender,g\n1,1,a\n", "has no column 's'; it has 'Score', 'Gender', 'g'"),
        ("x.csv", "ss,g\n1,a\n", "has no column 's'; close to it: 'ss'"),
        ("x.csv.gz", f"s,g\n0.5,{CANARY}\n", "is not a gzip file, or is truncated"),
        ("x.csv.zst", f"s,g\n0.5,{CANARY}\n", "is not a zstd file, or is truncated"),
        (
            "x.csv.gz",
            cut(gzip.compress(f"s,g\n0.5,{CANARY}\n".encode() * 90_000)),
            r"x\.csv\.gz (cannot be read|is no)",
        ),
        (
            "x.jsonl",
            '{"s":0.5,"g":"a"}\n' * 4 + f'{{"s":"{CANARY},"g":1}}\n',
            r"x\.jsonl, line 5: the line is not a JSON object",
        ),
        (
            "x.jsonl",
            '{"s":0.5,"g":"a"}\n' * 4 + f'{{"s":"{CANARY}"}}\n',
            r"x\.jsonl, line 5: a value does not have the type",
        ),
        ("x.jsonl", f'{{"s":0.5,"s":0.7,"g":"{CANARY}"}}\n', r"x\.jsonl, line 1: .*a name occurs twice"),
        ("x.jsonl", f'[1,"{CANARY}"]\n', "line 1: the line is not a JSON object"),
        ("x.parquet", CANARY * 10, "is not a Parquet file, or is truncated"),
        ("x.feather", CANARY * 10, "is not a Feather file .*, or is truncated"),
    ],
)
def test_damage_is_named_and_not_quoted(tmp_path, name, content, message):
    path = text(tmp_path / name, content)
    with pytest.raises(ValueError, match=message) as raised:
        count(path, SCORED)
    assert_not_quoted(raised.value)


def assert_not_quoted(error):
    """Neither the error nor what a traceback would show before it holds a value of the file."""
    while error is not None:
        assert CANARY not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize("damage", [cut, hole])
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_binary_files_that_are_cut_off_or_overwritten(tmp_path, ending, damage):
    rng = np.random.default_rng(0)
    path = tmp_path / f"x.{ending}"
    write(path, pl.DataFrame({"s": rng.random(9000), "g": rng.choice([CANARY, "b"], 9000)}))
    path.write_bytes(damage(path.read_bytes()))
    # Where the scores themselves are overwritten, what there is instead is not between 0 and 1.
    with pytest.raises(ValueError, match=rf"x\.{ending} (is no|cannot be read)|values outside \[0, 1\]") as raised:
        count(path, SCORED)
    assert_not_quoted(raised.value)


def test_one_of_several_files_is_named(tmp_path):
    for number in range(3):
        text(tmp_path / f"part{number}.csv", GOOD if number != 1 else GOOD + f"0.5,a,{CANARY}\n")
    with pytest.raises(ValueError, match=r"part1\.csv, line 5: ") as raised:
        count(str(tmp_path / "part*.csv"), SCORED)
    assert_not_quoted(raised.value)


def test_files_that_do_not_fit_together(tmp_path):
    for ending in ("csv", "parquet", "feather", "jsonl"):
        one = write(tmp_path / f"one.{ending}", pl.DataFrame({"s": [0.5], "g": ["a"]}))
        other = write(tmp_path / f"other.{ending}", pl.DataFrame({"s": [0.5], "gg": ["a"]}))
        with pytest.raises(ValueError, match=rf"other\.{ending} has no column 'g'; close to it: 'gg'"):
            count([one, other], SCORED)
    for ending in ("parquet", "feather"):
        third = write(tmp_path / f"third.{ending}", pl.DataFrame({"s": [0.5], "g": [1]}))
        with pytest.raises(ValueError, match=r"Column 'g' contains text in .*one\..* and numbers in .*third\."):
            count([tmp_path / f"one.{ending}", third], SCORED)


def bomb(path, n_members):
    """Rows that unpack to about 670 times their size, without unpacking them here."""
    member = gzip.compress(b"0.5,a\n" * 175_000)
    path.write_bytes(gzip.compress(b"s,g\n0.5,b\n") + member * n_members)
    return path


def test_a_bomb_is_refused_at_the_limit(tmp_path, monkeypatch):
    assert (decompression_limit.ALWAYS_ALLOWED, decompression_limit.MOST_EXPANSION) == (2**30, 200)  # as the help says
    monkeypatch.setattr(decompression_limit, "ALWAYS_ALLOWED", 1 << 24)
    path = bomb(tmp_path / "x.csv.gz", 20)
    with pytest.raises(
        ValueError, match=r"decompresses to more than 200 times its size and more than 0\.0156 GiB.*max_expansion="
    ):
        count(path, SCORED)
    assert count(path, SCORED, max_expansion=1000).histograms.rows.tolist() == [3_500_000, 1]


def test_a_bomb_does_not_pass_as_rows_either(tmp_path, monkeypatch):
    monkeypatch.setattr(decompression_limit, "ALWAYS_ALLOWED", 1 << 20)
    with open_files([bomb(tmp_path / "x.csv.gz", 50)]) as table, pytest.raises(ValueError, match="max_expansion="):
        for _ in table.batches(SCORED):
            pass


def test_ctrl_c_ends_the_query(tmp_path):
    ended = []

    def work(frame, **names):
        _thread.interrupt_main()
        try:
            frame.query("t", "SELECT sum(a.range + b.range) FROM range(10000000) a, range(10000000) b").fetchall()
        finally:
            ended.append(True)

    with open_files([text(tmp_path / "x.csv", GOOD)]) as table, pytest.raises(KeyboardInterrupt):
        table.run(work, SCORED)
    assert ended == [True]


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with open_files([text(tmp_path / "x.csv", GOOD)], memory="100MB", threads=1) as table:
        assert len(list((tmp_path / "tmp").iterdir())) == 1
        assert table.run(lambda frame, **_: len(frame.frame.collect()), SCORED) == 3
    with pytest.raises(ValueError, match="is not a CSV file"):
        open_files([text(tmp_path / "y.csv", "\0")])
    assert list((tmp_path / "tmp").iterdir()) == []


def test_memory_is_bounded(tmp_path):
    """A sort of 6 million numbers, 96 MB, goes through with 60 MB: the engine writes to its folder."""
    bounded = Engine(memory="60MB", threads=1)
    query = "SELECT count(*) FROM (SELECT hash(range) AS h FROM range(6000000) ORDER BY h OFFSET 10)"
    try:
        assert bounded.connection.execute("SELECT current_setting('memory_limit')").fetchall() == [("57.2 MiB",)]
        assert bounded.connection.execute(query).fetchall() == [(6_000_000 - 10,)]
    finally:
        bounded.close()


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv.gz", "jsonl"])
def test_batches_have_all_rows_in_order_and_all_columns(tmp_path, ending):
    frames = [rows(25_000, seed).with_row_index("n") for seed in range(5)]
    paths = [write(tmp_path / f"{number}.{ending}", frame) for number, frame in enumerate(frames)]
    whole = pl.concat(frames)
    with open_files(paths, threads=4) as table:
        parts = list(table.batches(USED, guess=True))
    found = pl.concat([pl.from_arrow(batch) for batch, _ in parts])
    assert found.columns == whole.columns
    assert found["n"].to_list() == whole["n"].to_list()
    empty_is_null = pl.col("note").replace("", None) if ending == "csv.gz" else pl.col("note")
    assert found["note"].to_list() == whole.select(empty_is_null)["note"].to_list()
    scores = np.concatenate([used["s"].to_numpy(zero_copy_only=False) for _, used in parts])
    np.testing.assert_array_equal(scores, whole["s"].to_numpy())


def test_csv_columns_stay_text_unless_guessed(tmp_path):
    path = text(tmp_path / "x.csv", "s,g,zip,n\n0.5,a,007,1\n0.5,b,100,2.5\n")
    with open_files([path]) as table:
        (plain, _), (guessed, _) = next(iter(table.batches(SCORED))), next(iter(table.batches(SCORED, guess=True)))
    assert plain.to_pylist()[0] == {"s": 0.5, "g": "a", "zip": "007", "n": "1"}
    assert guessed.schema.field("n").type == pa.float64()


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "csv.gz", "tsv", "jsonl", "jsonl.zst"])
def test_what_is_written_is_read_again(tmp_path, ending):
    table = rows(500).to_arrow()
    path = tmp_path / f"x.{ending}"
    with table_writer(path, table.schema) as write_batch:
        for batch in table.to_batches(max_chunksize=200):
            write_batch(batch)
        assert not path.exists()
    with open_files([path]) as again:
        found = pl.concat([pl.from_arrow(batch) for batch, _ in again.batches(USED, guess=True)])
    expected = rows(500)
    if "sv" in ending:
        expected = expected.with_columns(note=pl.col("note").replace("", None))
    assert found.select("s", "race", "y", "w", "note").rows() == expected.select("s", "race", "y", "w", "note").rows()


def test_nothing_is_left_of_a_file_that_fails(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    good, lists = pa.record_batch({"s": [0.5]}), pa.record_batch({"s": [[0.5]]})

    def stopped():
        with table_writer(path, good.schema) as write_batch:
            write_batch(good)
            raise KeyboardInterrupt

    def nested():
        with table_writer(path, lists.schema) as write_batch:
            write_batch(lists)

    with pytest.raises(KeyboardInterrupt):
        stopped()
    with pytest.raises(ValueError, match=r"cannot be written as csv\. Lists and records can be written as \.parquet"):
        nested()
    assert [one.name for one in tmp_path.iterdir()] == ["x.csv"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["x.xlsx", "x", "x.parquet.gz", "x.csv.bz2", "x.json"])
def test_formats_that_are_not_written(tmp_path, name):
    with pytest.raises(ValueError, match="no format that can be written"), table_writer(tmp_path / name, pa.schema([])):
        pass


def test_lists_and_dates_survive(tmp_path):
    frame = pl.DataFrame({"s": [0.5, 0.6], "g": ["a", "b"], "l": [[1, 2], []], "d": [{"a": 1}, {"a": 2}]})
    frame = frame.with_columns(t=pl.date(2024, 2, 29), u=pl.col("s").cast(pl.Decimal(9, 2)))
    path = write(tmp_path / "x.parquet", frame)
    with open_files([path]) as table:
        batches = table.batches(SCORED)
        with table_writer(tmp_path / "y.parquet", batches.schema) as write_batch:
            for batch, _ in batches:
                write_batch(batch)
    assert pl.read_parquet(tmp_path / "y.parquet").rows() == frame.rows()


def test_offsets_that_lie_do_not_end_the_process():
    """Found by fuzzing: text whose offsets point beyond the file ended the engine, and Python with it."""
    with pytest.raises(ValueError, match="damaged"):
        count(Path(__file__).parent / "data" / "damaged_offsets.feather", SCORED)


def test_a_group_of_digits_stays_text(tmp_path):
    found = count(text(tmp_path / "x.csv", "s,g\n0.5,007\n0.5,7\n"), SCORED)
    assert found.histograms.groups.names == ("007", "7")


def test_numbers_of_several_widths_fit_together(tmp_path):
    one = write(tmp_path / "one.parquet", pl.DataFrame({"s": [0.5], "g": [1]}))
    two = write(tmp_path / "two.parquet", pl.DataFrame({"s": [1], "g": [2]}, schema={"s": pl.Int8, "g": pl.Int16}))
    found = count([one, two], SCORED).histograms
    assert np.argwhere(found.by_group).tolist() == [[0, 8192], [1, 16384]]


def test_usual_files_are_not_taken_for_bombs(tmp_path, monkeypatch):
    monkeypatch.setattr(decompression_limit, "ALWAYS_ALLOWED", 1000)
    for ending in ("csv.gz", "csv.zst", "jsonl.gz"):
        count(write(tmp_path / f"x.{ending}", rows(2000)))
