import pytest

from fairtransport.storage import write_atomically


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
