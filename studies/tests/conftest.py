"""What these tests share with those of the package."""

from session import (  # noqa: F401 (pytest finds them here)
    programs_of_one_file,
    pytest_collection_finish,
    pytest_configure,
    pytest_runtest_protocol,
    pytest_sessionstart,
)
