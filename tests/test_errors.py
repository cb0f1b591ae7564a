import pickle

import pytest

from polyseme import errors

KINDS = [
    thing
    for thing in vars(errors).values()
    if isinstance(thing, type) and issubclass(thing, Exception)
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_keeps_its_text_on_the_way_from_a_worker(kind: type[Exception]) -> None:
    error = pickle.loads(pickle.dumps(kind("what happened")))
    assert type(error) is kind
    assert str(error) == "what happened"


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    error = errors.MissingExtraError.of("jieba", extra="zh", purpose="Finding Chinese words")
    assert "[zh]'" in str(error)
    error = errors.MissingExtraError.of("matplotlib", purpose="Drawing")
    assert str(error).endswith("Install it with: pip install matplotlib")


@pytest.mark.parametrize(
    ("recorded", "command"),
    [
        (None, "pip install 'polyseme[zh]'"),
        ('{"url": "https://example.org/polyseme.whl"}', "pip install 'polyseme[zh]'"),
        ("not json", "pip install 'polyseme[zh]'"),
        ('{"url": "file:///my%20code", "dir_info": {}}', "pip install '/my code[zh]'"),
    ],
)
def test_the_command_is_right_for_how_polyseme_was_installed(
    recorded: str | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return recorded if name == "direct_url.json" else None

    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed())
    error = errors.MissingExtraError.of("jieba", extra="zh", purpose="Finding Chinese words")
    assert str(error).endswith(command)
