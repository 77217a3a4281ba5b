"""Old file or new file: when writing fails, when two write at once, and whoever left what behind."""

import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from fairtransport.storage import remove_leftovers, replacing, write_atomically


def test_a_disk_that_is_really_full(tmp_path):
    """The system itself refuses to write more than 4 KiB to a file."""
    path = tmp_path / "file"
    write_atomically(path, b"old")
    code = (
        "import resource, sys; from fairtransport.storage import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "write_atomically(sys.argv[1], b'x' * 100_000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the existing file is unchanged" in done.stderr.splitlines()[-1]
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_wrong_paths_say_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="create the folder first"):
        write_atomically(tmp_path / "none" / "file", b"")
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, b"")
    assert list(tmp_path.iterdir()) == []


def test_replaces_and_keeps_permissions(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write_atomically(path, b"old")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    path.chmod(0o600)
    assert write_atomically(path, b"new").read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_replaced_not_followed(tmp_path):
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "other").read_bytes() == b"mine"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "link").is_symlink()


def test_many_writers_one_whole_file(tmp_path):
    path, contents = tmp_path / "file", [bytes([number]) * 200_000 for number in range(8)]
    seen = []

    def write(content):
        for _ in range(20):
            write_atomically(path, content)
            seen.append(path.read_bytes() in contents)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert all(seen)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_leftovers_of_the_killed_go_when_they_are_old(tmp_path):
    old, young, other = (tmp_path / name for name in (".file.aa.part", ".file.bb.part", ".another.cc.part"))
    for path in (old, young, other):
        path.write_bytes(b"half")
    hours_ago = time.time() - 7200
    for path in (old, other):
        os.utime(path, (hours_ago, hours_ago))
    write_atomically(tmp_path / "file", b"whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".another.cc.part", ".file.bb.part", "file"]
    assert remove_leftovers(tmp_path / "file", older_than=0) == 1
    assert remove_leftovers(tmp_path / "nowhere" / "file") == 0


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
