"""A folder of kept files counts only if nobody else could have written to it."""

import os
import shutil
import stat

import pytest

from sl_discs.support.cache import cache_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes say nothing here")


def test_a_new_folder_is_private(tmp_path, capfd):
    before = os.umask(0)
    try:
        folder = cache_folder(tmp_path / "new")
    finally:
        os.umask(before)
    assert folder == tmp_path / "new" and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(cache_folder(folder, "part").stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(folder)
    assert cache_folder(tmp_path / "link") == folder and not capfd.readouterr().err


@pytest.mark.parametrize("part", ["", "part"])
@pytest.mark.parametrize(
    "wrong", ["others can write", "a group can write", "belongs to another", "is a file"]
)
def test_a_folder_that_does_not_count_is_said_once(tmp_path, capfd, monkeypatch, wrong, part):
    """Neither the cache nor a folder in it, whose other parts may be private."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    folder = cache / part
    if wrong == "is a file":
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("")
    else:
        folder.mkdir(exist_ok=True)
        folder.chmod({"others can write": 0o1777, "a group can write": 0o2775}.get(wrong, 0o700))
    if wrong == "belongs to another" and part:
        if os.geteuid() != 0:
            pytest.skip("only the superuser can give files away")
        os.chown(folder, 12345, -1)
    elif wrong == "belongs to another":  # to the superuser, too
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for _ in range(2):
        assert cache_folder(cache, part, "cache_dir") is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("warning: no cache in ") and "set cache_dir to" in line
