import pytest

from fairtransport.storage import replacing, write_atomically


def test_old_file_stays_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_replaces(tmp_path):
    write_atomically(tmp_path / "file", b"old")
    assert write_atomically(tmp_path / "file", b"new").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_draft_takes_the_place_when_it_is_finished(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_draft_is_removed_when_it_is_not_finished(tmp_path, error):
    path = tmp_path / "file"

    def fail():
        with replacing(path) as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []
