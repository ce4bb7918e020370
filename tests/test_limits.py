"""No test waits for ever."""

import subprocess
import threading

import pytest
from limits import ended_after


def waiting_thread():
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "wait",
    [
        lambda: threading.Event().wait(),
        lambda: waiting_thread().join(),
        lambda: subprocess.run(["sleep", "600"]),
    ],
    ids=["lock", "thread", "process"],
)
def test_whatever_a_test_waits_for_it_ends(wait):
    with pytest.raises(pytest.fail.Exception, match="did not end"), ended_after(0.2):
        wait()
