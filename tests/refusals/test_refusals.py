"""Bad input is one InputError, of the right kind, that names what is wrong; in one line, before any
work. The sentences are those of the file that a person reads when it changes.
"""

import pytest
from refusals import refused, sentences, words_of
from refused_calls import NOT_PLAIN, REFUSALS, TAKE_PLAIN

from sl_discs.support.errors import FormatError, InputError


@pytest.mark.parametrize("name", REFUSALS)
def test_it_is_refused_by_name(name, tmp_path):
    refusal = REFUSALS[name]
    found = refused(refusal, tmp_path.resolve())
    assert (found.error, found.named) == (refusal.error, refusal.named), found.sentence
    if refusal.error is FormatError:
        assert found.sentence.startswith("FOLDER/"), found.sentence
    said = words_of(found.sentence)
    assert said == sentences()[name], "if it is better: python tests/refusals/refusals.py"


def test_the_file_has_the_sentences_of_the_table():
    assert list(sentences()) == list(REFUSALS)


@pytest.mark.parametrize("function", TAKE_PLAIN)
def test_arrays_in_the_place_of_a_name_or_number_are_refused_in_one_line(function):
    call, arguments = TAKE_PLAIN[function]
    for argument in arguments.split():
        for kind, value in NOT_PLAIN.items():
            if (argument, kind) == ("temperature", "vector"):
                continue  # several temperatures of one run
            with pytest.raises(InputError) as error:
                call(**{argument: value})
            said = str(error.value)
            assert "\n" not in said and len(said) < 250, (argument, kind, said)
