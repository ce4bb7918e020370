"""A folder of kept files counts only if nobody else could have written to it."""

import os
import stat

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


@pytest.mark.parametrize("wrong", ["others can write", "belongs to another", "is a file"])
def test_a_folder_that_does_not_count_is_said_once(tmp_path, capfd, wrong):
    folder = tmp_path / "cache"
    if wrong == "is a file":
        folder.write_text("")
    else:
        folder.mkdir(mode=0o777)
        folder.chmod(0o1777 if wrong == "others can write" else 0o700)
    if wrong == "belongs to another":
        if os.geteuid() != 0:
            pytest.skip("only the superuser can give files away")
        os.chown(folder, 12345, -1)
    assert cache_folder(folder) is None and cache_folder(folder) is None
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("warning: no cache in ") and "SL_DISCS_CACHE" in line
