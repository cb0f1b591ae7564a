"""Whatever a name, a word or a text holds, the terminal shows it and does not obey it."""

import ast
import io
import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from screens import ALWAYS_SHOWN, HOSTILE, controls_in, is_shown, shown_as

import polyseme
from polyseme.cli import app as cli
from polyseme.cli.terminal import PlainConsole, RichProgress, show_error
from polyseme.display import PrintableText, printable, titled
from polyseme.errors import ConfigError, InputError

CHARACTERS = st.one_of(
    st.sampled_from([*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *ALWAYS_SHOWN]),
    st.sampled_from(["\udcff", "\ud800", "[", "]", "[red]", ":bomb:", "\x1b[2J", "a", "中", " "]),
    st.characters(codec="utf-8", categories=["L", "N", "P"]),
)
STRINGS = st.lists(CHARACTERS, min_size=1, max_size=12).map("".join)


def screen() -> PlainConsole:
    return PlainConsole(file=io.StringIO(), force_terminal=True, width=400)


def sent_for(renderable: RenderableType) -> str:
    console = screen()
    console.print(renderable, crop=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@settings(max_examples=250, deadline=None)
@given(text=STRINGS)
def test_a_text_is_one_line_without_controls_and_with_all_its_characters(text: str) -> None:
    shown = printable(text)
    assert not controls_in(shown)
    for character in set(text):
        assert shown_as(character) in shown
    assert printable(shown) == shown
    assert shown.encode("utf-8")


def cells(text: str) -> RenderableType:
    table = Table(title=text, caption=text)
    table.add_column(text)
    table.add_row(text)
    table.add_row(PrintableText(text))
    return Group(titled(text, table), text, PrintableText.assemble(("x ", "red"), text))


def predicted(text: str) -> RenderableType:
    from polyseme.commands.predict import PredictResult, show
    from polyseme.tasks.families.labels import PredictedLabel
    from polyseme.tasks.families.tagging import PredictedTags

    names = PredictedTags((text, "and"), (f"B-{text}", "O"), marks_spans=True)
    tags = PredictedTags((text,), (text,))
    return show(PredictResult([names, tags, PredictedLabel((text,), text)], None, Path("o")))


def scored(text: str) -> RenderableType:
    from polyseme.commands.score import ScoreResult, show
    from polyseme.pretraining.evaluation import DirectionScore, Score

    part = DirectionScore((math.log(0.5),), 0.0)
    return show(ScoreResult([Score((text,), {"forward": part})]))


@pytest.mark.parametrize("make", [cells, predicted, scored], ids=["cells", "predict", "score"])
@settings(max_examples=70, deadline=None)
@given(text=STRINGS)
@example(text="\x1b[2J\x07\n[red]:bomb:\u202e\udcff")
def test_results_show_every_character_and_obey_none(
    make: Callable[[str], RenderableType], text: str
) -> None:
    sent = sent_for(make(text))
    assert not controls_in(sent)
    assert is_shown(text, sent)


@pytest.fixture(autouse=True)
def wide_colour_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # `main` puts in its own


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_errors_messages_and_bars_obey_nothing(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_error(text)
    with RichProgress() as bars:
        bars.log(text)
        bars.start(text, total=2)
        bars.update(1, note=text)
    sent = capsys.readouterr().err
    assert not controls_in(sent)
    assert is_shown(f"Error: {text}", sent)
    lines = sent.splitlines()
    assert not [line for line in lines[1:] if line.startswith("Error")]


def test_an_error_that_begins_with_a_long_path_says_once_that_it_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = "/" + "a" * 500
    show_error(f"{path} is missing.")
    sent = capsys.readouterr().err
    assert sent.count("Error:") == 1
    assert path in sent


def test_what_rich_itself_was_given_passes_the_same_gate() -> None:
    sent = sent_for(Group(Text("a\x1b[2J\u202eb"), Text("\x9bc\udcff")))
    assert not controls_in(sent)
    assert is_shown("a\x1b[2J\u202eb", sent)


def test_the_check_itself_sees_what_a_plain_console_would_send() -> None:
    from rich.console import Console

    for text in ("\x1b[2J", "\u202e", "\x9b2J", "[red]x", ":bomb:"):
        console = Console(file=io.StringIO(), force_terminal=True)
        console.print(text)
        sent = console.file.getvalue()  # type: ignore[attr-defined]
        assert controls_in(sent) or not is_shown(text, sent), text


def test_persian_and_emoji_keep_the_joiners_they_are_spelt_with() -> None:
    for word in ("می\u200cخواهم", "👩\u200d🔬", "क्\u200dष"):
        assert printable(word) == word


@pytest.mark.parametrize("text", ["".join(HOSTILE[:13]), *HOSTILE[13:16]], ids=ascii)
@pytest.mark.parametrize(
    "words",
    [
        ("prepare", "{}", "--language", "en", "--out", "o"),
        ("prepare", "x", "--language", "en", "--out", "{}/o"),
        ("prepare", "x", "--language", "{}", "--out", "o"),
        ("prepare", "x", "--language", "en", "--out", "o", "--set", "corpus.{}=1"),
        ("prepare", "x", "--language", "en", "--out", "o", "--set", "{}"),
        ("prepare", "x", "--language", "en", "--out", "o", "--meta", "{}", "--format", "{}"),
        ("prepare", "x", "--config", "{}"),
        ("prepare", "--{}"),
        ("inspect", "{}"),
        ("inspect", "x", "--top", "{}"),
        ("inspect", "x", "one {} too many"),
        ("{}",),
    ],
    ids=lambda words: words[0],
)
def test_no_argument_of_any_kind_is_obeyed(
    words: tuple[str, ...],
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    text = text.replace("\0", "\x01")  # a command line cannot hold it
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    monkeypatch.setattr(sys, "argv", ["polyseme", *(word.format(text) for word in words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    sent = capsys.readouterr().err
    assert not controls_in(sent)
    assert sent.count("\x1b[1;31mError: ") == 1
    assert ended.value.code in (2, 65, 66)
    assert not [line for line in sent.splitlines() if line.startswith("Error")]


def test_a_librarys_warning_passes_the_same_gate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warn() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("in \x1b[2J\u202e", stacklevel=1)

    monkeypatch.setattr(cli, "_build_app", lambda _: lambda *_, **__: warn())
    monkeypatch.setattr(sys, "argv", ["polyseme", "x"])
    with pytest.raises(SystemExit):
        cli.main()
    sent = capsys.readouterr().err
    assert not controls_in(sent)
    assert is_shown("in \x1b[2J\u202e", sent)


def test_a_line_end_in_a_name_begins_no_line_and_ours_do() -> None:
    error = ConfigError("one\nError: two", "three")
    assert str(error) == "one\nError: two\nthree"
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        console = PlainConsole(file=file, width=200)
        for line in InputError(*error.args).args:
            console.print(line)
        file.seek(0)
        assert file.read() == "one\\nError: two\nthree\n"


def test_only_the_terminal_makes_consoles_and_only_printable_makes_texts() -> None:
    found: dict[str, set[str]] = {"Console": set(), "Text": set(), "print": set()}
    package = Path(polyseme.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich"):
                for name in node.names:
                    found.get(name.name, set()).add(path.name)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                found["print"].add(path.name)
    # And a bar that `encode` draws if it is asked to, with no text of anyone's.
    assert found["Console"] == {"terminal.py", "word_embedder.py"}
    assert found["Text"] == {"display.py", "terminal.py"}  # the terminal names it as a type
    assert not found["print"]
