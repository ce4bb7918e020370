"""Kept files count only where nobody else could have written them."""

import os
import stat

import pytest

from sl_discs import cache as cache_module
from sl_discs.cache import Cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes say nothing here")


@pytest.fixture
def folder(tmp_path):
    """A cache with a file `kept`, in a folder that others can reach."""
    folder = tmp_path / "shared" / "cache"
    Cache(folder).save("kept", lambda file: file.write(b"content"))
    assert Cache(folder).load("kept") == b"content"
    return folder


def refused(folder, capfd, says):
    """Whether the cache at a path is left alone, with one line."""
    before = list(folder.iterdir())
    cache = Cache(folder)
    loaded = cache.load("kept"), cache.load("kept")
    cache.save("new", lambda file: file.write(b"new"))
    (line,) = capfd.readouterr().err.splitlines()
    assert says in line and line.startswith("warning: ") and "SL_DISCS_CACHE" in line
    return loaded == (None, None) and list(folder.iterdir()) == before


def test_a_new_folder_is_private(folder):
    before = os.umask(0)
    try:
        new = Cache(folder / "new").folder
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o703])
def test_a_folder_that_others_can_write(folder, capfd, mode):
    folder.chmod(mode)
    assert refused(folder, capfd, f"other users can write to {folder} (chmod go-w)")


def test_a_folder_of_a_group(folder, capfd, monkeypatch):
    folder.chmod(0o770)
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "_is_own_group", lambda group: True)
        assert Cache(folder).load("kept") == b"content"
    monkeypatch.setattr(cache_module, "_is_own_group", lambda group: False)
    assert refused(folder, capfd, "chmod go-w")


def test_a_folder_that_others_can_replace(folder, capfd, tmp_path):
    (tmp_path / "shared").chmod(0o1777)  # as /tmp
    assert Cache(folder).load("kept") == b"content"
    (tmp_path / "shared").chmod(0o777)
    assert refused(folder, capfd, f"other users can write to {tmp_path / 'shared'} (chmod go-w)")


@pytest.mark.parametrize("theirs", ["cache", "shared", "shared/cache/kept"])
def test_what_belongs_to_another_user(folder, capfd, tmp_path, monkeypatch, theirs):
    """A file that was put there while others could write does not count after the folder has been closed."""
    path = {"cache": folder}.get(theirs, tmp_path / theirs)
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give files away")
    os.chown(path, 12345, -1)
    if path.is_dir():
        assert refused(folder, capfd, f"{path} belongs to another user")
    else:
        assert Cache(folder).load("kept") is None
        assert f"{path} belongs to another user" in capfd.readouterr().err


def test_a_file_that_others_can_write(folder, capfd):
    (folder / "kept").chmod(0o666)
    cache = Cache(folder)
    assert cache.load("kept") is None and "other users can write" in capfd.readouterr().err
    cache.save("kept", lambda file: file.write(b"made again"))
    assert cache.load("kept") == b"made again"


def test_links_are_followed_once(folder, capfd, tmp_path):
    """What counts is the folder that a link leads to, even if somebody turns the link elsewhere later."""
    link = tmp_path / "link"
    link.symlink_to(folder)
    cache = Cache(link)
    link.unlink()
    assert cache.load("kept") == b"content"
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    link.symlink_to(tmp_path / "open")
    assert refused(link, capfd, f"other users can write to {tmp_path / 'open'}")


def test_a_full_disk_is_said_once(folder, capfd, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for name in ("one", "two"):
        Cache(folder).save(name, lambda file: file.write(b"new"))
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"warning: nothing more is cached in {folder}: No space left on device")
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_no_home(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("SL_DISCS_CACHE", raising=False)
    monkeypatch.setenv("HOME", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cache_module.Path, "expanduser", lambda path: (_ for _ in ()).throw(RuntimeError))
    assert Cache().folder is None
    assert "there is no home folder" in capfd.readouterr().err and not list(tmp_path.iterdir())
