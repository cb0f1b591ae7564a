"""The commands in README, tutorials and how-to pages, run as written.

A fence marked `console` is run; `sh`, `text` and `python` are not. In it, `$ ` begins a command
and `> ` continues it; the rest is expected output. Expected lines must occur in the output in
that order; `...` says that others may stand between. Only times and versions may differ.

A fence marked `text` that follows shows what such commands print where numbers differ from machine
to machine, or were those of a longer training: its lines must occur, too, but for their numbers.

A line of `polyseme` alone is run in this process; all else, and what only a shell knows, by bash.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command_line import polyseme
from required import need

ROOT = Path(__file__).parents[2]
PAGES = [  # those that take longest first
    "docs/tutorials/an-afternoon-with-a-word.md",
    "docs/zh/an-afternoon-with-a-word.md",
    "docs/tutorials/a-tagger-in-ten-minutes.md",
    "docs/zh/a-tagger-in-ten-minutes.md",
    "docs/tutorials/pretrain-your-own.md",
    "docs/zh/pretrain-your-own.md",
    "docs/tutorials/first-corpus.md",
    "docs/zh/first-corpus.md",
    "docs/how-to/answer-questions.md",
    "docs/zh/answer-questions.md",
    "docs/how-to/choose-a-continuation.md",
    "docs/how-to/segment-chinese.md",
    "docs/zh/train-a-task.md",
    "docs/zh/find-uses-of-a-word.md",
    "docs/how-to/prepare-chinese.md",
    "docs/zh/prepare-chinese.md",
    "docs/how-to/prepare-a-folder-of-files.md",
    "docs/zh/prepare-a-folder-of-files.md",
    "docs/how-to/use-commands-in-a-pipe.md",
    "docs/how-to/prepare-annotated-corpora.md",
    "docs/zh/prepare-annotated-corpora.md",
    "docs/how-to/find-uses-of-a-word.md",
    "docs/how-to/collocates-keywords-ngrams.md",
    "docs/zh/collocates-keywords-ngrams.md",
    "docs/how-to/query-a-corpus.md",
    "docs/zh/query-a-corpus.md",
    "docs/how-to/find-coreference.md",
    "docs/how-to/rewrite-texts.md",
    "docs/zh/rewrite-texts.md",
    "docs/how-to/index-a-corpus.md",
    "docs/zh/index-a-corpus.md",
    "docs/how-to/fix-quarantined-text.md",
    "docs/tutorials/read-a-word-by-its-meanings.md",
    "docs/zh/read-a-word-by-its-meanings.md",
]
# Pages that use a model of the repository, which not every copy of it has.
NEEDED = {
    "docs/tutorials/an-afternoon-with-a-word.md": "en-novels",
    "docs/zh/an-afternoon-with-a-word.md": "zh-classics",
    "docs/tutorials/a-tagger-in-ten-minutes.md": "en-mini",
    "docs/zh/a-tagger-in-ten-minutes.md": "zh-mini",
    "docs/tutorials/read-a-word-by-its-meanings.md": "en-mini",
    "docs/how-to/index-a-corpus.md": "en-mini",
    "docs/zh/index-a-corpus.md": "zh-mini",
    "docs/zh/read-a-word-by-its-meanings.md": "zh-mini",
    "docs/how-to/use-commands-in-a-pipe.md": "en-mini",
    "docs/how-to/answer-questions.md": "en-mini",
    "docs/zh/answer-questions.md": "zh-mini",
    "docs/how-to/choose-a-continuation.md": "en-mini",
    "docs/how-to/segment-chinese.md": "zh-mini",
    "docs/zh/train-a-task.md": "zh-mini",
}
TRANSLATED = {"docs/zh/segment-chinese.md": "docs/how-to/segment-chinese.md"}
"""Pages with the commands of another, which need not be run twice."""
# Their taggers are trained eight times. No line that is compared tells for how long.
LONG, SHORT = "> epochs = 15\n", "> epochs = 1\n"
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(console|sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"""'[^']*'|"[^"$`\\!]*"|\\\n""")
"""What means the same to a shell and to `shlex`: also a line that goes on in the next."""
FOR_A_SHELL = re.compile(r"""[|&;<>()$`\\*?\[\]{}~#!\n"']""")
"""What means something else to a shell, outside of quotes: a pipe, a variable, a glob."""
OF_A_WORD = re.compile(
    r"polyseme (?:uses|collocates|keywords|ngrams|senses|change|label|edit) [^-`…\n][^`…\n]*"
)
SCREEN = {"COLUMNS": "80"}  # a table is then laid out alike everywhere
# What differs between machines and versions: seconds, speeds, versions of other packages.
VOLATILE = re.compile(r"[\d,.]+ s\b|[\d,]+ words/s|\d+\.\d+\.\d+|\s+")
# What else differs with training: numbers, precision, labels, and the frame around them.
TRAINED = re.compile(
    r"\[[A-Z]+\]|b?float\d+|[-+]?\d[\d.,:]*(?:%| [kMG]B\b)?|[±…]|[━┏┳┓┡╇┩└┴┘─┼┻╋]+|\s+"
)
NOT_PRINTED = re.compile(r"Error: SIGINT.*\n")
"""What a page says of a reader's own Ctrl-C."""


@dataclass
class Command:
    """A command and what the page says it prints."""

    text: str
    expected: list[str] = field(default_factory=list)
    outline: list[str] = field(default_factory=list)
    """Lines that it, or a command before it, prints with other numbers."""


def commands_of(page: str) -> list[Command]:
    commands: list[Command] = []
    is_run = False
    for kind, block in BLOCK.findall(page):
        if kind == "text":
            if is_run:
                commands[-1].outline += NOT_PRINTED.sub("", block).splitlines()
            continue
        is_run = kind == "console"
        for line in block.splitlines() if is_run else ():
            if line.startswith("$ "):
                commands.append(Command(line[2:]))
            elif line == ">" or line.startswith("> "):
                commands[-1].text += "\n" + line[2:]
            elif line.strip() not in ("", "..."):
                commands[-1].expected.append(line)
    return commands


def plain(line: str) -> str:
    """A line without what may differ."""
    return VOLATILE.sub(" ", line).strip()


def outline(line: str) -> str:
    """A line without its numbers."""
    return " ".join(TRAINED.sub(" ", plain(line)).split())


def missing_line(command: Command, output: str) -> str | None:
    """The first expected line that does not occur after the one before it."""
    printed = iter([plain(line) for line in output.splitlines()])
    for line in command.expected:
        if plain(line) not in printed:  # moves `printed` on
            return line
    return None


def missing_outline(command: Command, output: str) -> str | None:
    """The first line that does not occur, numbers aside, in what was printed so far."""
    printed = {outline(line) for line in output.splitlines()} | {""}
    return next((line for line in command.outline if outline(line) not in printed), None)


def is_for_a_shell(text: str) -> bool:
    """Whether a command is more than words."""
    return FOR_A_SHELL.search(QUOTED.sub("", text)) is not None


def run(command: Command, folder: Path, shell: str) -> tuple[int, str]:
    """The exit code of a command, and what it printed."""
    if command.text.startswith("polyseme ") and not is_for_a_shell(command.text):
        words = shlex.split(command.text.replace("\\\n", ""))[1:]
        done = polyseme(*words, code=None, cwd=folder, environment=SCREEN, together=True)
        return done.returncode, done.stdout
    programs = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    result = subprocess.run(
        [shell, "-c", command.text],
        cwd=folder,
        env={**os.environ, **SCREEN, "PATH": programs, "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return result.returncode, result.stdout


def bring_models(folder: Path, root: Path = ROOT) -> None:
    """The repository's models, if it has any, as `models` in the page's folder."""
    if not (root / "models").is_dir():
        return
    try:
        (folder / "models").symlink_to(root / "models", target_is_directory=True)
    except OSError:
        shutil.copytree(root / "models", folder / "models")


def bring_texts(folder: Path) -> None:
    """The demo texts, labels beside a page, and what a model's calibration on these texts found.

    The calibration takes half a minute and is the same each time; of another corpus or model than
    it was made with it is measured again.
    """
    for source in [*ROOT.glob("packages/demo-*/**/*.xz"), *ROOT.glob("docs/tutorials/*.csv")]:
        copy = folder / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        shutil.copyfile(source, copy)
    for kept in (ROOT / "tests/docs/calibration").iterdir():
        shutil.copytree(kept, folder / "corpus" / f"{kept.name}.calibration")


def run_page(name: str, commands: list[Command], folder: Path) -> None:
    """Run a page's commands in an empty folder, and compare what they print."""
    shell = shutil.which("bash")
    assert shell is not None, "a shell is part of every Unix"
    assert commands, f"{name} has no console blocks"
    is_there = name not in NEEDED or (ROOT / "models" / NEEDED[name]).is_dir()
    need(is_there, f"models/{NEEDED.get(name)}")
    bring_models(folder)
    if "afternoon" in name:
        bring_texts(folder)
    so_far = ""
    for command in commands:
        code, printed = run(command, folder, shell)
        so_far += printed
        story = f"{name}\n$ {command.text}\n{printed}"
        assert code == 0, story
        missing = missing_line(command, printed) or missing_outline(command, so_far)
        assert missing is None, f"not printed: {missing}\n{story}"


@pytest.mark.skipif(os.name == "nt", reason="the commands are for a Unix shell")
@pytest.mark.parametrize("name", PAGES)
def test_commands_run_and_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    if name in NEEDED:
        assert text.count(LONG) == ("tagger" in name)
        text = text.replace(LONG, SHORT)
    run_page(name, commands_of(text), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the commands are for a Unix shell")
@pytest.mark.parametrize("name", NEEDED)
def test_training_as_long_as_the_page_says_prints_the_same(name: str, tmp_path: Path) -> None:
    run_page(name, commands_of((ROOT / name).read_text(encoding="utf-8")), tmp_path)


CLASSICS = {
    "docs/zh/prepare-chinese.md": "### 拿古籍练手",
    "docs/zh/collocates-keywords-ngrams.md": "## 在古籍上",
    "docs/zh/query-a-corpus.md": "## 古籍：按字检索",
}
"""Sections whose `sh` blocks are of one corpus, which the first of them makes."""


@pytest.mark.skipif(os.name == "nt", reason="the commands are for a Unix shell")
def test_sections_on_the_classics_print_what_they_say(tmp_path: Path) -> None:
    bring_texts(tmp_path)
    for name, heading in CLASSICS.items():
        section = (ROOT / name).read_text(encoding="utf-8").partition(f"{heading}\n")[2]
        printed: set[str] = set()
        for kind, block in BLOCK.findall(re.split(r"(?m)^#+ ", section)[0]):
            if kind == "text":
                assert [s for s in block.splitlines() if plain(s) not in printed] == [], name
                continue
            for command in block.replace("\\\n", "").splitlines():
                code, shown = run(Command(command), tmp_path, "bash")
                assert code == 0, f"{name}\n{command}\n{shown}"
                printed |= {plain(line) for line in shown.splitlines()}


def test_every_page_with_console_blocks_is_run() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found = {p.relative_to(ROOT).as_posix() for p in pages if FENCE.search(p.read_text("utf-8"))}
    assert found == {*PAGES, *TRANSLATED}


@pytest.mark.parametrize(("name", "other"), TRANSLATED.items())
def test_a_translation_has_the_same_commands_with_the_same_results(name: str, other: str) -> None:
    assert commands_of((ROOT / name).read_text("utf-8")) == commands_of(
        (ROOT / other).read_text("utf-8")
    )


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_commands_of_the_first_page_say_in_which_corpus_they_look(name: str) -> None:
    """Also those that are not run: in a sentence, or because they take long."""
    commands = OF_A_WORD.findall((ROOT / name).read_text(encoding="utf-8"))
    assert [command for command in commands if " --in" not in command] == []


@pytest.mark.parametrize(
    ("text", "is_more"),
    [
        ("polyseme uses a --where 'year<1900 and not x~y'", False),
        ('polyseme score "她笑了。" 今天？ --model m \\\n    --json', False),
        ("polyseme predict --task ner --json | wc -l", True),
        ("polyseme score - --model m < texts", True),
        ('polyseme uses "$WORD"', True),
        ("polyseme inspect *", True),
        ("polyseme uses a || true", True),
        ("polyseme inspect a\npolyseme inspect b", True),
    ],
)
def test_words_are_run_here_and_all_else_by_a_shell(text: str, is_more: bool) -> None:
    assert is_for_a_shell(text) == is_more


def test_a_wrong_line_on_a_page_is_noticed() -> None:
    page = "```console\n$ echo\n> more\nfirst 2\n...\n│ words │ 4 │\n```\n"
    [command] = commands_of(page)
    assert command.text == "echo\nmore"
    assert missing_line(command, "first 2\nother\n│ words  │  4 │") is None
    assert missing_line(command, "first 2\n│ words │ 5 │") == "│ words │ 4 │"
    assert missing_line(command, "│ words │ 4 │\nfirst 2") == "│ words │ 4 │"


SHOWN_TWICE = {
    "README.md": "docs/tutorials/an-afternoon-with-a-word.md",
    "docs/how-to/compare-two-periods.md": "docs/tutorials/read-a-word-by-its-meanings.md",
}


@pytest.mark.parametrize(("name", "other"), SHOWN_TWICE.items())
def test_what_is_shown_on_two_pages_is_the_same(name: str, other: str) -> None:
    known = {plain(line) for line in (ROOT / other).read_text(encoding="utf-8").splitlines()}
    block = re.findall(r"```text\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)[0]
    assert [line for line in block.splitlines() if plain(line) not in known] == []


def test_a_wrong_word_in_a_text_block_is_noticed() -> None:
    shown = "```text\n┏━━━━┳━━━━━━┓\n│ f1 │ 0.91 │\nChelsea[ORG] rose .\n```\n"
    [command] = commands_of(f"```console\n$ polyseme evaluate\n```\n\n{shown}")
    assert missing_outline(command, "│ f1 │  1.3 │\nChelsea rose .\n") is None
    assert missing_outline(command, "│ F1 │  1.3 │\nChelsea rose .\n") == "│ f1 │ 0.91 │"
    [other] = commands_of(f"```console\n$ true\n```\n```sh\npolyseme evaluate\n```\n{shown}")
    assert other.outline == []  # it is not run
