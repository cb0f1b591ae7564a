import pickle

import pytest

from polyseme import errors

KINDS = [thing for thing in vars(errors).values() if isinstance(thing, type)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_keeps_its_text_on_the_way_from_a_worker(kind: type[Exception]) -> None:
    error = pickle.loads(pickle.dumps(kind("what happened")))
    assert type(error) is kind
    assert str(error) == "what happened"


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    error = errors.MissingExtraError.of("jieba", extra="zh", purpose="Finding Chinese words")
    assert "pip install 'polyseme[zh]'" in str(error)
