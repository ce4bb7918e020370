"""The faults of `tests/mutations.py` can be made: each stands for text that is in the package."""

import ast

import pytest
from mutations import MUTATIONS, ROOT


def test_there_are_thirty():
    assert len(MUTATIONS) == len({mutation.fault for mutation in MUTATIONS}) == 30


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.fault)
def test_a_fault_changes_the_code_once_and_names_tests(mutation):
    text = (ROOT / "sl_discs" / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.before) == 1
    ast.parse(text.replace(mutation.before, mutation.after))
    paths = [test for test in mutation.tests.split() if test.startswith("tests/")]
    assert paths and all((ROOT / path).exists() for path in paths)
