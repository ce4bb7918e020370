"""A folder of kept files counts only if nobody else could have written to it."""

import os
import stat
from pathlib import Path

import pytest

from sl_discs.cache import cache_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes say nothing here")


def test_a_new_folder_is_private(tmp_path, capfd):
    before = os.umask(0)
    try:
        folder = cache_folder(tmp_path / "new")
    finally:
        os.umask(before)
    assert folder == tmp_path / "new" and stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(folder)
    assert cache_folder(tmp_path / "link") == folder and not capfd.readouterr().err


def others_can_write(folder, monkeypatch):
    folder.mkdir()
    folder.chmod(0o1777)


def belongs_to_another(folder, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give files away")
    folder.mkdir()
    os.chown(folder, 12345, -1)


def is_a_file(folder, monkeypatch):
    folder.write_text("")


def no_home(folder, monkeypatch):
    def fail(path):
        raise RuntimeError

    monkeypatch.setattr(Path, "expanduser", fail)


@pytest.mark.parametrize("wrong", [others_can_write, belongs_to_another, is_a_file, no_home])
def test_a_folder_that_does_not_count_is_said_once(tmp_path, monkeypatch, capfd, wrong):
    wrong(tmp_path / "cache", monkeypatch)
    assert cache_folder(tmp_path / "cache") is None and cache_folder(tmp_path / "cache") is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("warning: no cache in ") and "SL_DISCS_CACHE" in line
