"""Commands and calls that a page shows without a test that runs them: in `sh` blocks, in a
sentence, in Chinese what another page has in English. Each must be one that is there.

Pages of history (experiments, decisions) show what was typed then, and are left out.
"""

import ast
import functools
import importlib
import inspect
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from pages import FENCE, blocks, commands_in

import polyseme
from polyseme.cli import all_verbs, find_verb
from polyseme.cli.app import _build_app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HISTORY = (DOCS / "experiments.md", *DOCS.glob("decisions/*.md"))
PAGES = sorted(
    {*ROOT.glob("*.md"), *DOCS.rglob("*.md")} - {*HISTORY, ROOT / "CHANGELOG.md"},
    key=lambda page: page.relative_to(ROOT).as_posix(),
)
INLINE = re.compile(r"`([^`\n]+)`")
OPTION = re.compile(r"--[a-z][\w-]*")
PLACEHOLDER = re.compile(r"…|\.\.\.|\$\w")
VERBS = {verb.name: verb for verbs in all_verbs().values() for verb in verbs}
OF_OTHERS = {"--cpus", "--node-ip-address", "--resume"}  # Docker's, Ray's, what nobody needs
OF_BENCHMARKS = {"--kill", "--original", "--reference", "--shards", "--small", "--ways"}
"""Options that pages speak of by themselves, and that are no command's."""


class Accepted(Exception):  # noqa: N818  # not an error
    """A command's settings were built; what it would do then is not done."""


@cache
def command_line(names: tuple[str, ...]) -> Any:
    """All of it, with the options of one command."""
    return typer.main.get_command(_build_app(find_verb(list(names))))


def check(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """That the command line takes these words; nothing is read, written or computed."""
    chosen = find_verb(words)
    assert chosen, words
    module, function = importlib.import_module(chosen[-1].module), chosen[-1].function

    @functools.wraps(getattr(module, function))  # has its signature, which options are made from
    def accept(*_: object, **__: object) -> None:
        raise Accepted

    monkeypatch.setattr(module, function, accept)
    app = command_line(tuple(verb.name for verb in chosen))
    with pytest.raises(Accepted):
        app.main(words, prog_name="polyseme", standalone_mode=False)


SHOWN = {
    shlex.join(words): pytest.param(page, words, id=f"{page.relative_to(ROOT)}: {' '.join(words)}")
    for page in PAGES
    for block in blocks(page, "sh")
    for words in commands_in(block)
    if not any(PLACEHOLDER.search(word) for word in words)
}


@pytest.mark.parametrize(("page", "words"), SHOWN.values())
def test_a_command_that_is_shown_is_one_that_is_taken(
    page: Path, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "--config" in words:  # a file that the page shows
        [settings] = blocks(page, "toml")
        Path(words[words.index("--config") + 1]).write_text(settings, encoding="utf-8")
    check(words, monkeypatch)


def options_of(verb: str) -> set[str]:
    """Of a command, and of its sub-commands."""
    found = {"--help"}
    chosen: list[tuple[str, ...]] = [(verb, part.name) for part in VERBS[verb].parts]
    for names in chosen or [(verb,)]:
        app = command_line(names)
        for name in names:
            app = app.commands[name]
        found |= {name for parameter in app.params for name in parameter.opts}
    return found


def test_options_that_a_sentence_names_are_there() -> None:
    """`prepare --meta`, `polyseme uses bank --json`, and `--meta` alone, which some command has."""
    options = {verb: options_of(verb) for verb in VERBS}
    anywhere = {"--version", "--install-completion", "--show-completion"}.union(*options.values())
    unknown = []
    for page in PAGES:
        for code in INLINE.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            words = code.removeprefix("polyseme ").split()
            named = set(OPTION.findall(code))
            if not words or not named:
                continue
            if words[0] in options and ("polyseme" in code or words[1].startswith("-")):
                known = options[words[0]]
            elif code.startswith("--"):
                known = anywhere | OF_OTHERS | OF_BENCHMARKS
            else:
                continue  # another program's command
            unknown += [(page.name, code)] if not named <= known else []
    assert unknown == []


def calls_in(code: str) -> list[ast.Call]:
    """Calls of `polyseme.NAME` and `polyseme.NAME.METHOD`."""
    nodes = ast.walk(ast.parse(code))
    return [
        node
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("polyseme.")
    ]


CALLS = {
    (page.name, ast.unparse(call)): pytest.param(call, id=f"{page.stem}: {ast.unparse(call.func)}")
    for page in PAGES
    for block in blocks(page, "python")
    if "polyseme." in block and not re.search(r"^(?:from|import) polyseme\.", block, re.MULTILINE)
    for call in calls_in(block)
}


@pytest.mark.parametrize("call", CALLS.values())
def test_a_call_that_is_shown_fits_what_is_called(call: ast.Call) -> None:
    called: Any = polyseme
    for name in ast.unparse(call.func).split(".")[1:]:
        called = getattr(called, name)
    inspect.signature(called).bind(*call.args, **{str(each.arg): None for each in call.keywords})


def skeleton(words: list[str]) -> str:
    """A command without what a translation may change: words, folders, numbers, the language."""
    options = [OPTION.match(word)[0] for word in words if word.startswith("--")]  # type: ignore[index]
    return " ".join([words[0], *(option for option in options if option != "--language")])


def plain_code(code: str) -> str:
    """Python without its comments and constants."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.unparse(tree)


def outline(page: Path) -> list[str]:
    """Commands and Python in the order of the page."""
    found: list[str] = []
    for kind, code in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "sh":
            found += [skeleton(words) for words in commands_in(code)]
        elif kind == "python":
            found.append(plain_code(code))
    return found


SAME_IN_CHINESE = {
    "README.zh.md": "README.md",
    "docs/zh/index.md": "docs/index.md",
    "docs/zh/explore-a-word-in-the-browser.md": "docs/tutorials/explore-a-word-in-the-browser.md",
    "docs/zh/index-a-corpus.md": "docs/how-to/index-a-corpus.md",
    "docs/zh/judge-together.md": "docs/how-to/judge-together.md",
    "docs/zh/label-your-own-senses.md": "docs/how-to/label-your-own-senses.md",
}
FEWER_IN_CHINESE = {
    "docs/zh/compare-two-periods.md": "docs/how-to/compare-two-periods.md",
}
"""Pages that leave an example out."""


@pytest.mark.parametrize(("name", "other"), SAME_IN_CHINESE.items())
def test_a_chinese_page_shows_the_same_with_words_of_its_own(name: str, other: str) -> None:
    assert outline(ROOT / name) == outline(ROOT / other)


@pytest.mark.parametrize(("name", "other"), FEWER_IN_CHINESE.items())
def test_a_chinese_page_shows_nothing_else_than_the_other(name: str, other: str) -> None:
    shown = iter(outline(ROOT / other))
    assert [each for each in outline(ROOT / name) if each not in shown] == []
